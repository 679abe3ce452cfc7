"""`quadweir replay` on the command line, and its outputs."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest

from quadweir.cli import main
from quadweir.commands.replay import ReplayFormat, _guess, _pace
from quadweir.commands.replayoutputs import (
    FolderOutput,
    KafkaOutput,
    StandardOutput,
    TcpOutput,
    output_for,
)
from quadweir.errors import SourceError, UsageError
from quadweir.sources.declare import Burst, Rate, Speed

LINES = "".join(f"{t} <urn:a> <urn:p> <urn:o{t}> .\n" for t in (1000, 1001, 1002))


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "a.stream"
    path.write_text(LINES)
    return path


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    code = end.value.code
    assert isinstance(code, int)
    return code


def test_playing_to_standard_output(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("replay", recording, "--speed", "1000") == 0
    out = capsys.readouterr()
    assert out.out == LINES
    assert "played 3 elements" in out.err


def test_playing_into_a_folder_goes_on_after_files_that_are_there(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "00000041.stream").write_text("")
    assert run("replay", recording, "--rate", "1e6", "--to", folder, "--limit", "2", "--json") == 0
    # The clock decides which elements share a file, but all must come in order.
    before, *played = sorted(folder.iterdir())
    assert before.name == "00000041.stream"
    assert played[0].name == "00000042.stream"
    assert "".join(path.read_text() for path in played) == "".join(LINES.splitlines(True)[:2])
    assert json.loads(capsys.readouterr().out)["played"] == 2


def test_checking_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.stream"
    path.write_text(LINES + "500 <urn:a> <urn:p> <urn:late> .\nwrong\n")
    assert run("replay", path, "--check") == 4
    out = capsys.readouterr().out
    assert "4 elements" in out
    assert 'delay = "503ms"' in out
    assert "line 5: no event time before the statement" in out
    assert run("replay", path, "--check", "--json") == 4
    found = json.loads(capsys.readouterr().out)
    assert (found["bad"], found["max_lateness_ms"]) == (1, 502)


def test_checking_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"at": 1}\n{}\n')
    assert run("replay", path, "--check") == 0
    assert run("replay", path, "--check", "--time-column", "at", "--json") == 4
    out = capsys.readouterr().out
    assert '"reason": "no event time in the column \\"at\\""' in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--json"],
        ["--speed", "2", "--rate", "3"],
        ["--rate", "0"],
        ["--burst", "5"],
        ["--burst", "0/1"],
        ["--step", "often"],
        ["--start", "noon"],
        ["--format", "csv"],
        ["--format", "jsonl"],
        ["--to", "tcp:here"],
        ["--to", "kafka:here"],
    ],
)
def test_arguments_that_do_not_go_together(recording: Path, arguments: list[str]) -> None:
    assert run("replay", recording, *arguments) == 2


def test_a_missing_file_is_a_runtime_failure(tmp_path: Path) -> None:
    assert run("replay", tmp_path / "none.stream") == 1


def test_names_say_the_format(tmp_path: Path) -> None:
    assert _guess(Path("a.csv.gz"), None) is ReplayFormat.CSV
    assert _guess(Path("a.ndjson"), None) is ReplayFormat.JSONL
    assert _guess(Path("a.trig"), None) is ReplayFormat.TIMED_GRAPHS
    assert _guess(Path("a.txt"), None) is ReplayFormat.TIMED_LINES
    assert _guess(tmp_path, 1000) is ReplayFormat.TIMED_FILES
    (tmp_path / "x.jsonl").touch()
    assert _guess(tmp_path, None) is ReplayFormat.JSONL


def test_paces() -> None:
    assert _pace(None, None, None) == Speed(1.0)
    assert _pace(None, 5.0, None) == Rate(5.0)
    burst = _pace(None, None, "500/0.5")
    assert isinstance(burst, Burst)
    assert (burst.count, burst.every.total_seconds()) == (500, 0.5)


def test_targets() -> None:
    assert isinstance(output_for("-", ""), StandardOutput)
    assert isinstance(output_for("kafka:a:9092,b:9092/topic", ""), KafkaOutput)
    assert isinstance(output_for("some/folder", ".stream"), FolderOutput)
    with pytest.raises(UsageError):
        output_for("tcp:host:99999", "")


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SourceError):
        FolderOutput(tmp_path / "file" / "sub", ".stream").open()


def test_tcp_clients_get_the_lines_and_may_come_and_go() -> None:
    output = TcpOutput("127.0.0.1", 0)
    output.listen()
    try:
        opening = threading.Thread(target=output.open)
        opening.start()
        first = socket.create_connection(("127.0.0.1", output.port))
        opening.join(timeout=30)
        assert not opening.is_alive()
        output.send(["a", "b\nc"])
        with first, first.makefile() as lines:
            assert [next(lines) for _ in range(3)] == ["a\n", "b\n", "c\n"]
        second = socket.create_connection(("127.0.0.1", output.port))
        with second, second.makefile() as lines:
            output.send(["d"])
            assert next(lines) == "d\n"
        with pytest.raises(SourceError):
            TcpOutput("127.0.0.1", output.port).listen()
    finally:
        output.close()
