"""Answers of a run over files are put in place whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadweir.commands.faults import known_fault
from quadweir.commands.queryoutput import OutputTarget, PendingAnswers, ScratchLines


def answers(folder: Path, output: str, form: str = "jsonl") -> PendingAnswers:
    lines = folder / "scratch" / "lines"
    lines.mkdir(parents=True)
    (lines / "part-0").write_text("one\n")
    return PendingAnswers(OutputTarget(output, form), ScratchLines(folder / "scratch"), None)


def test_a_file_is_replaced_by_all_answers(tmp_path: Path) -> None:
    place = tmp_path / "out.jsonl"
    place.write_text("of another run\n")
    answers(tmp_path, str(place)).publish()
    assert place.read_text() == "one\n"
    assert [each.name for each in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "out.jsonl"
    place.write_text("of another run\n")
    written = answers(tmp_path, str(place))
    (tmp_path / "scratch" / "lines" / "part-1").mkdir()
    with pytest.raises(IsADirectoryError):
        written.publish()
    assert place.read_text() == "of another run\n"
    assert [each.name for each in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_full_disk_is_reported_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught:
        answers(tmp_path, "/dev/full").publish()
    fault = known_fault(caught.value)
    assert fault is not None
    assert fault.message == "no space left on /dev/full"
