"""A live mapping shows its status, with joins and without."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from quadweir.commands.board import Board
from quadweir.commands.mapview import MapView

JOIN = {"pairs": 5, "held": 2, "keys": 1, "evictions": 0, "late": 0, "without_key": 0}


def report(batch: int, rows: int = 100, *, idle: bool = False, pairs: int | None = None) -> Any:
    metrics = {"quadweir_join_1": {**JOIN, "pairs": pairs}} if pairs is not None else {}
    return SimpleNamespace(
        batchId=batch,
        numInputRows=0 if idle else rows,
        batchDuration=3 if idle else 250,
        durationMs={"latestOffset": 1} if idle else {"addBatch": 200},
        json=json.dumps({"observedMetrics": metrics}),
    )


def test_off_a_terminal_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    with Board() as board:
        view = MapView(board, clock=lambda: now[0])
        view.update([], 0)
        assert capsys.readouterr().err == ""
        done = []
        for second in range(1, 25):
            now[0] = float(second)
            done.append(report(second))
            view.update([*done, report(second + 1, idle=True)], 7)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" (")[0] for line in lines] == [
        "100 records", "1,100 records", "2,100 records",
    ]  # fmt: skip
    assert lines[1] == (
        "1,100 records (100/s), 7 could not be used, 11 batches, the last took 250 ms"
    )


@pytest.mark.parametrize("terminal", [True, False])
def test_joins_are_shown_below(terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=200, color_system=None)
    with Board(console) as board:
        MapView(board).update([report(0, pairs=1234)], 0)
    shown = out.getvalue()
    assert shown.index("100 records") < shown.index("join 1: 1,234 pairs")
    assert "could not be used" not in shown
