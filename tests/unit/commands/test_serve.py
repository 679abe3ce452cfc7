"""`quadweir serve`: what it refuses before anything starts."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import main
from quadweir.commands import serve
from quadweir.commands.serve import check_exposure
from quadweir.errors import EnvironmentProblem, UsageError


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


def test_a_port_that_is_taken_is_said_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SystemExit) as caught:
            main(["serve", "--data", str(tmp_path / "data"), "--port", str(port)])
    assert caught.value.code == 1
    said = capsys.readouterr().err
    assert "Another program has it" in said
    assert "Spark" not in said


def test_a_folder_that_another_service_uses_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hold = "import sys\nfrom pathlib import Path\nfrom quadweir.runtime.claims import Claim\n"
    hold += "with Claim(Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(SystemExit):
            main(["serve", "--data", str(tmp_path), "--port", "0"])
        assert other.stdin is not None
        other.stdin.close()
    assert "--data" in capsys.readouterr().err


def test_a_missing_package_is_said_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda _name: None)
    with pytest.raises(EnvironmentProblem) as caught:
        serve.check_packages()
    assert "quadweir[serve]" in str(caught.value.hint)


def test_as_many_files_may_be_open_as_subscribers_need() -> None:
    assert serve.allow_subscribers() >= 1
