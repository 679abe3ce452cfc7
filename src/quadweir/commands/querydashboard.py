"""Watch a running query: a live panel on a terminal, or plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.commands.output import printable
from quadweir.times import doubt_of_time, format_time

if TYPE_CHECKING:
    from rich.console import RenderableType

    from quadweir.commands.board import Board

_COUNTS: Final = (
    ("late", "late matches"),
    ("dead_letters", "dead letters"),
    ("ahead", "of them too far ahead"),
)
_SPLIT: Final = (("spark_ms", "Spark"), ("kernel_ms", "Python"), ("state_ms", "state"))
# A stream with times further from the clock is a recording, so the lag means nothing.
_LIVE_MS: Final = 3_600_000


@final
class QueryDashboard:
    """Shows the metrics of a query on a board."""

    def __init__(self, title: str, board: Board) -> None:
        self._title = title
        self._board = board
        self._display = BatchDisplay(board)

    def show(self, found: dict[str, Any]) -> None:
        """Show metrics; without a terminal, only after a new batch."""
        if not self._display.is_new(found):
            return
        if self._board.is_drawn:
            self._board.draw(panel_of(self._title, grid_of(rows_of(found))))
        else:
            self._board.say(line_of(found), style="dim")


@final
class BatchDisplay:
    """Says when there is something new to show, and doubts event times that look like seconds."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._told = 0
        self._knows_time = False

    def is_new(self, found: dict[str, Any]) -> bool:
        """Whether to show metrics: on a terminal after the first batch, elsewhere after each one."""
        if not self._knows_time and found["through"] is not None:
            self._knows_time = True
            doubt = doubt_of_time(found["through"])
            if doubt is not None:
                self._board.say(f"quadweir: warning: {doubt}")
        batches = found["batches"]
        if not batches or (batches == self._told and not self._board.is_drawn):
            return False
        self._told = batches
        return True


def panel_of(title: str, inside: RenderableType) -> RenderableType:
    """Draw a frame around what is shown."""
    from rich.panel import Panel
    from rich.text import Text

    return Panel(inside, title=Text(printable(title)), title_align="left", border_style="green")


def grid_of(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """Format names and texts as two columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, text in rows:
        table.add_row(Text(printable(name)), Text(printable(text)))
    return table


def rows_of(found: dict[str, Any]) -> list[tuple[str, str]]:
    """The metrics in words, a line for each kind.

    >>> rows_of({"statements": 1200, "answers": 3, "late": 0, "dead_letters": 1, "ahead": 1, "held": 40,
    ...     "through": 1000, "lag_ms": 1500, "batches": 7, "batch_ms": 300, "kernel_ms": 20,
    ...     "state_ms": 30, "spark_ms": 250, "input_rate": 400.0, "answer_rate": 1.0,
    ...     "state_rows": 6, "state_bytes": 2_000_000})[-1]
    ('set aside', '0 late matches, 1 dead letters, 1 of them too far ahead')
    """
    return [
        (
            "statements in",
            f"{found['input_rate']:,.0f} a second   ({found['statements']:,} so far)",
        ),
        ("answers out", f"{found['answer_rate']:,.0f} a second   ({found['answers']:,} so far)"),
        ("watermark", watermark(found["through"], found["lag_ms"]) or "not yet"),
        ("state", _state(found)),
        ("batches", f"{found['batches']:,}, the last took {_batch(found)}"),
        ("set aside", ", ".join(f"{found[key]:,} {name}" for key, name in _COUNTS)),
    ]


def line_of(found: dict[str, Any]) -> str:
    """The status of a run in one line.

    >>> line_of({"statements": 1200, "answers": 3, "late": 0, "dead_letters": 1, "ahead": 1, "held": 40,
    ...     "through": 1000, "lag_ms": 1500, "batch_ms": 300, "kernel_ms": 20, "state_ms": 30,
    ...     "spark_ms": 250, "input_rate": 4000.0, "state_rows": 6, "state_bytes": 2_000_000})
    '1,200 statements (4,000/s), 3 answers, 1 dead letters, 1 of them too far ahead, watermark 1.5 s behind the clock, 40 mappings held, 2.0 MB of state, batch 300 ms (Spark 250, Python 20, state 30)'
    """
    rate = found["input_rate"]
    parts = [
        f"{found['statements']:,} statements" + (f" ({rate:,.0f}/s)" if rate else ""),
        f"{found['answers']:,} answers",
    ]
    parts += [f"{found[key]:,} {name}" for key, name in _COUNTS if found[key]]
    at = watermark(found["through"], found["lag_ms"])
    if at is not None:
        parts.append(f"watermark {at}")
    parts += [_state(found), f"batch {_batch(found)}"]
    return ", ".join(parts)


def watermark(through: int | None, lag_ms: int | None) -> str | None:
    """The watermark in words: its lag behind the clock in a live stream, an instant in a recording.

    >>> watermark(1_000, 1_500), watermark(1_000, -2_000), watermark(1_000, 10**12)
    ('1.5 s behind the clock', '2.0 s ahead of the clock', 'at 1970-01-01T00:00:01.000Z')
    """
    if through is None or lag_ms is None:
        return None
    if abs(lag_ms) > _LIVE_MS:
        return f"at {format_time(through)}"
    return f"{abs(lag_ms) / 1000:,.1f} s {'behind' if lag_ms >= 0 else 'ahead of'} the clock"


def _state(found: dict[str, Any]) -> str:
    """The size of the state in words. After a restart the state is unknown until the first batch
    reads it.
    """
    if found["held"] is None:
        return "state not read yet"
    size = f", {found['state_bytes'] / 1e6:,.1f} MB of state" if found["state_bytes"] else ""
    return f"{found['held']:,} mappings held{size}"


def _batch(found: dict[str, Any]) -> str:
    split = ", ".join(f"{name} {found[key]:,}" for key, name in _SPLIT if found[key] is not None)
    return f"{found['batch_ms'] or 0:,} ms" + (f" ({split})" if split else "")
