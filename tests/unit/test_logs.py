"""Messages on standard error as JSON lines."""

import io
import json
import sys

import pytest

from quadweir.cli import main
from quadweir.errors import UsageError
from quadweir.logs import JsonLines, entry, wants_json


def test_lines_become_entries_with_level_and_source() -> None:
    assert entry("quadweir: warning: it is late")["level"] == "warning"
    assert entry("quadweir: 3 dead letters")["message"] == "3 dead letters"
    found = entry("spark: 08:00:01 WARN TaskSetManager: lost a task: again")
    assert (found["level"], found["source"]) == ("warning", "TaskSetManager")
    assert found["message"] == "lost a task: again"
    coloured = entry("quadweir: \x1b[1;31merror[QW-PLAN]\x1b[0m: no window")
    assert (coloured["level"], coloured["code"], coloured["message"]) == (
        "error",
        "QW-PLAN",
        "no window",
    )


def test_lines_may_come_in_pieces() -> None:
    out = io.StringIO()
    lines = JsonLines(out)
    for piece in ("one ", 'tw"o\nth', "ree\n\n", "four"):
        lines.write(piece)
    lines.flush()
    found = [json.loads(line)["message"] for line in out.getvalue().splitlines()]
    assert found == ['one tw"o', "three", "four"]
    assert not lines.isatty()


def test_the_command_line_writes_json_if_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUADWEIR_LOGS", "json")
    before = sys.stderr
    with pytest.raises(SystemExit):
        main(["explain", "no-such-file.rq"])
    assert sys.stderr is before
    first, *_ = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (first["level"], first["source"]) == ("error", "quadweir")
    assert first["code"].startswith("QW-")
    assert "no-such-file.rq" in first["message"]
    assert first["time"].endswith("Z")


def test_other_formats_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUADWEIR_LOGS", "xml")
    with pytest.raises(UsageError, match="QUADWEIR_LOGS=xml is no format"):
        wants_json()
    with pytest.raises(SystemExit):
        main(["--version"])
    assert "QUADWEIR_LOGS=xml is no format" in capsys.readouterr().err
