"""`quadweir map` before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.command_line import main
from tests.rml_texts import PREFIXES, SOURCE

MAPPING = (
    PREFIXES + f"ex:t {SOURCE} ; rr:subject ex:s ; rr:predicateObjectMap [ rr:predicate ex:p ;\n"
    " rr:objectMap [ rml:reference 'a' ; rr:language 'english' ] ] ."
)


def test_warnings_about_the_text_are_printed_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.ttl"
    path.write_text(MAPPING)
    with pytest.raises(SystemExit):
        # Refused before Spark starts: both want standard output.
        main(["map", str(path), "--json"])
    printed = capsys.readouterr()
    assert "the language tag 'english' is not registered [unregistered-language]" in printed.err
    assert printed.out == ""


def test_rules_for_values_are_one_of_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.ttl"
    path.write_text(MAPPING)
    main(["map", str(path), "--validate", "--value-rules", "older"])
    with pytest.raises(SystemExit) as end:
        main(["map", str(path), "--validate", "--value-rules", "newest"])
    assert end.value.code == 2
    assert "older" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--live",), "hint: Map it without --live, or name a stream."),
        (("--realtime", "--strict"), "hint: Map it with --live, or watch the topic"),
    ],
)
def test_hints_say_what_to_do_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], hint: str
) -> None:
    path = tmp_path / "m.ttl"
    path.write_text(MAPPING)
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(SystemExit):
        main(["map", str(path), *words])
    assert hint in capsys.readouterr().err
