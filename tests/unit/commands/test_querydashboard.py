"""The display of a live query: a panel on a terminal, lines elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from quadweir.commands.board import Board
from quadweir.commands.querydashboard import QueryDashboard, line_of, rows_of

FOUND = {
    "statements": 1200, "answers": 3, "late": 2, "dead_letters": 1, "ahead": 0, "held": 40,
    "lag_ms": 1500,
    "through": 1_700_000_000_000,
    "batches": 7, "batch_ms": 300, "kernel_ms": 20, "state_ms": 30, "spark_ms": 250,
    "input_rate": 400.0, "answer_rate": 1.0, "state_rows": 6, "state_bytes": 2_000_000,
}  # fmt: skip


@pytest.mark.parametrize("terminal", [True, False])
def test_everything_is_shown(terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=200, color_system=None)
    with Board(console) as board:
        dashboard = QueryDashboard("doors [/b]", board)
        dashboard.show(FOUND)
        dashboard.show(FOUND)
        board.say("hello [b]")
    shown = out.getvalue()
    for text in ("1,200", "3 ", "2 late matches", "1 dead letters", "1.5 s", "2.0 MB", "300 ms",
                 "Spark 250", "Python 20", "state 30", "hello [b]"):  # fmt: skip
        assert text in shown
    if terminal:
        assert "doors [/b]" in shown
    else:
        assert shown.count("1,200 statements") == 1, "a batch is reported once"


@pytest.mark.parametrize("terminal", [True, False])
def test_times_in_seconds_are_doubted_once_at_first_sight(terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=200, color_system=None)
    with Board(console) as board:
        dashboard = QueryDashboard("doors", board)
        dashboard.show({**FOUND, "through": None})
        assert "seconds" not in out.getvalue()
        for batch in range(3):
            dashboard.show({**FOUND, "batches": batch, "through": 1_700_000_000 + batch})
    assert out.getvalue().count("they look like seconds") == 1


def test_a_stream_that_comes_to_february_1970_is_not_doubted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Board() as board:
        dashboard = QueryDashboard("doors", board)
        dashboard.show({**FOUND, "through": 5_000})
        dashboard.show({**FOUND, "through": 3_000_000_000, "batches": 8})
    assert "they look like seconds" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lag_ms", "shown"),
    [
        (1_500, "1.5 s behind the clock"),
        (-500, "0.5 s ahead of the clock"),
        (22_450_143_300, "at 2023-11-14T22:13:20.000Z"),
    ],
)
def test_the_watermark_of_a_recording_is_an_instant(lag_ms: int, shown: str) -> None:
    found = {**FOUND, "lag_ms": lag_ms}
    assert dict(rows_of(found))["watermark"] == shown
    assert f"watermark {shown}, " in line_of(found)


def test_what_is_not_known_yet_is_not_shown_as_nothing() -> None:
    """After a restart, the state is read with the first batch."""
    found = {**FOUND, "held": None, "state_bytes": None, "kernel_ms": None, "state_ms": None}
    assert dict(rows_of(found))["state"] == "state not read yet"
    assert "batch 300 ms (Spark 250)" in line_of(found)


def test_nothing_is_shown_of_batches_before_there_is_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Board() as board:
        QueryDashboard("doors", board).show({**FOUND, "batches": 0})
    assert capsys.readouterr().err == ""
