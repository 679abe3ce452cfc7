"""The status of a run: drawn on a terminal, with answers above, and as lines elsewhere."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest
from rich.console import Console
from rich.panel import Panel

from quadweir.commands.board import Board

_CODE = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[\?25[hl]|([\r\n])")


class Terminal:
    """A pseudo-terminal, and the lines that a user would see on it."""

    def __init__(self) -> None:
        self._master, slave = os.openpty()
        self.out: TextIO = os.fdopen(slave, "w", encoding="utf-8")
        self._data = bytearray()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        try:
            while found := os.read(self._master, 4096):
                self._data += found
        except OSError:
            pass  # the other end is closed

    def close(self) -> list[str]:
        self.out.close()
        self._reader.join()
        os.close(self._master)
        return _seen(self._data.decode())


def _seen(text: str) -> list[str]:
    """Interpret the few control codes that redrawing needs."""
    lines, row, column, at = [""], 0, 0, 0
    for match in [*_CODE.finditer(text), None]:
        plain = text[at : match.start() if match is not None else len(text)]
        lines[row] = lines[row][:column].ljust(column) + plain + lines[row][column + len(plain) :]
        column += len(plain)
        if match is None:
            break
        at = match.end()
        count, code, control = match.groups()
        if control == "\r":
            column = 0
        elif control == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif code == "A":
            row -= int(count or 1)
        elif code == "K":
            lines[row] = ""
    return [line.rstrip() for line in lines if line.strip()]


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Terminal, Console]]:
    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown.out)
    console = Console(file=shown.out, force_terminal=True, width=60, color_system=None)
    try:
        yield shown, console
    finally:
        monkeypatch.undo()


def test_answers_are_printed_above_the_display(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "x" * 100
    with terminal(monkeypatch) as (shown, console):
        with Board(console) as board:
            board.start("starting Spark")
            out = board.output()
            board.draw(Panel("one"))
            print('{"t": 1}', file=out)
            print(f"[bold]{long}", file=out)
            out.flush()
            board.draw(Panel("two"))
            board.say("a message")
            print("last", file=out)
            out.flush()
            out.flush()
        lines = shown.close()
    assert lines[:4] == ['{"t": 1}', f"[bold]{long}", "a message", "last"]
    assert len(lines) == 7, "one panel, no trace of the others"
    assert "two" in lines[5]


def test_standard_output_elsewhere_stays_what_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with terminal(monkeypatch) as (shown, console), (tmp_path / "out").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        with Board(console) as board:
            assert board.output() is file
            assert sys.stdout is file
        shown.close()


def test_off_a_terminal_there_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with Board() as board:
        board.start("starting Spark")
        board.draw(Panel("one"))
        board.say("a [b] message")
        assert board.output() is sys.stdout
    assert capsys.readouterr().err == "quadweir: starting Spark\na [b] message\n"


def test_a_bounded_run_is_silent_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Board.of_bounded(prints=True) as board:
        board.start("starting Spark")
    assert capsys.readouterr().err == ""


def test_a_bounded_run_that_prints_to_the_terminal_is_not_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for prints, is_drawn in ((True, False), (False, True)):
        with terminal(monkeypatch) as (shown, _):
            monkeypatch.setattr(sys, "stderr", shown.out)
            monkeypatch.setenv("TERM", "xterm")
            with Board.of_bounded(prints=prints) as board:
                assert board.is_drawn is is_drawn
                board.start("starting Spark")
            lines = shown.close()
        assert any("starting Spark" in line for line in lines)
