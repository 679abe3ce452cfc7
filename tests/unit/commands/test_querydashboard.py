"""The display of a live query: a panel on a terminal, lines elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from quadweir.commands import querydashboard
from quadweir.commands.querydashboard import QueryDashboard

FOUND = {
    "statements": 1200, "answers": 3, "late": 2, "dead_letters": 1, "held": 40, "lag_ms": 1500,
    "batches": 7, "batch_ms": 300, "kernel_ms": 20, "state_ms": 30, "spark_ms": 250,
    "input_rate": 400.0, "answer_rate": 1.0, "state_rows": 6, "state_bytes": 2_000_000,
}  # fmt: skip


@pytest.mark.parametrize("terminal", [True, False])
def test_everything_is_shown(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=200, color_system=None)
    monkeypatch.setattr(querydashboard, "stderr_console", lambda: console)
    with QueryDashboard("doors [/b]") as board:
        board.show(FOUND)
        board.show(FOUND)
        board.say("hello [b]")
    shown = out.getvalue()
    for text in ("1,200", "3 ", "2 late matches", "1 dead letters", "1.5 s", "2.0 MB", "300 ms",
                 "Spark 250", "Python 20", "state 30", "hello [b]"):  # fmt: skip
        assert text in shown
    if terminal:
        assert "doors [/b]" in shown
    else:
        assert shown.count("1,200 statements") == 1, "a batch is told of once"
