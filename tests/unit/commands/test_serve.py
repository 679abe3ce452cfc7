"""`quadweir serve`: what it refuses before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import main
from quadweir.commands.serve import check_exposure
from quadweir.errors import UsageError


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_needs_neither_tokens_nor_tls(host: str) -> None:
    check_exposure(host, has_tokens=False, is_safe=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])
def test_an_address_that_others_reach_needs_tokens_and_tls(host: str) -> None:
    for has_tokens, is_safe in ((False, False), (True, False), (False, True)):
        with pytest.raises(UsageError):
            check_exposure(host, has_tokens=has_tokens, is_safe=is_safe)
    check_exposure(host, has_tokens=True, is_safe=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--host", "0.0.0.0"],
        ["--tls-cert", "cert.pem"],
        ["--tls-cert", "cert.pem", "--tls-key", "key.pem"],
        ["--new-token", "root"],
    ],
)
def test_options_that_do_not_go_together_are_refused(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["serve", *arguments])
    assert caught.value.code == 2


def test_a_new_token_is_shown_once_with_its_entry(capsys: pytest.CaptureFixture[str]) -> None:
    main(["serve", "--new-token", "push"])
    shown = capsys.readouterr().out
    assert "qw_" in shown
    assert 'role = "push"' in shown
