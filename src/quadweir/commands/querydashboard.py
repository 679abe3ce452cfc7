"""Watch a running query from a terminal: a live panel, or plain lines off one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, final

from quadweir.commands.output import printable, stderr_console

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

_COUNTS: Final = (("late", "late matches"), ("dead_letters", "dead letters"))
_SPLIT: Final = (("spark_ms", "Spark"), ("kernel_ms", "Python"), ("state_ms", "state"))


@final
class QueryDashboard:
    """Shows the metrics of a query on standard error until it is closed."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._console = stderr_console()
        self._live: Live | None = None
        self._told = 0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            from rich.live import Live

            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, found: dict[str, Any]) -> None:
        """Show metrics; off a terminal only if there was a batch since."""
        if self._live is not None:
            self._live.update(panel_of(self._title, found), refresh=True)
        elif found["batches"] != self._told:
            self._told = found["batches"]
            self._console.print(printable(line_of(found)), markup=False, style="dim")

    def say(self, text: str) -> None:
        """Say something above the panel."""
        self._console.print(printable(text), markup=False)


def panel_of(title: str, found: dict[str, Any]) -> RenderableType:
    """Lay metrics out for reading."""
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, text in rows_of(found):
        table.add_row(name, Text(text))
    return Panel(table, title=Text(printable(title)), title_align="left", border_style="green")


def rows_of(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Word metrics, a line for each kind.

    >>> rows_of({"statements": 1200, "answers": 3, "late": 0, "dead_letters": 1, "held": 40,
    ...     "lag_ms": 1500, "batches": 7, "batch_ms": 300, "kernel_ms": 20, "state_ms": 30,
    ...     "spark_ms": 250, "input_rate": 400.0, "answer_rate": 1.0, "state_rows": 6,
    ...     "state_bytes": 2_000_000})[-1]
    ('set aside', '0 late matches, 1 dead letters')
    """
    lag = found["lag_ms"]
    split = ", ".join(f"{name} {found[key] or 0:,}" for key, name in _SPLIT)
    return [
        (
            "statements in",
            f"{found['input_rate']:,.0f} a second   ({found['statements']:,} so far)",
        ),
        ("answers out", f"{found['answer_rate']:,.0f} a second   ({found['answers']:,} so far)"),
        ("watermark", "not yet" if lag is None else f"{lag / 1000:,.1f} s behind the clock"),
        (
            "state",
            f"{found['held']:,} mappings; {found['state_rows']:,} rows, "
            f"{found['state_bytes'] / 1e6:,.1f} MB in Spark's store",
        ),
        (
            "batches",
            f"{found['batches']:,}, the last took {found['batch_ms'] or 0:,} ms ({split})",
        ),
        ("set aside", ", ".join(f"{found[key]:,} {name}" for key, name in _COUNTS)),
    ]


def line_of(found: dict[str, Any]) -> str:
    """Say in one line how a run fares.

    >>> line_of({"statements": 1200, "answers": 3, "late": 0, "dead_letters": 1, "held": 40,
    ...     "lag_ms": 1500, "batch_ms": 300, "kernel_ms": 20, "state_ms": 30, "spark_ms": 250,
    ...     "input_rate": 4000.0, "state_bytes": 2_000_000})
    '1,200 statements (4,000/s), 3 answers, 1 dead letters, watermark 1.5 s behind, 40 mappings in 2.0 MB of state, batch 300 ms (Spark 250, Python 20, state 30)'
    """
    rate = found["input_rate"]
    parts = [
        f"{found['statements']:,} statements" + (f" ({rate:,.0f}/s)" if rate else ""),
        f"{found['answers']:,} answers",
    ]
    parts += [f"{found[key]:,} {name}" for key, name in _COUNTS if found[key]]
    if found["lag_ms"] is not None:
        parts.append(f"watermark {found['lag_ms'] / 1000:,.1f} s behind")
    parts.append(f"{found['held']:,} mappings in {found['state_bytes'] / 1e6:.1f} MB of state")
    split = ", ".join(f"{name} {found[key] or 0}" for key, name in _SPLIT)
    parts.append(f"batch {found['batch_ms']} ms ({split})")
    return ", ".join(parts)
