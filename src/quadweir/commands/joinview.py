"""The windows of stream joins, as tables for a terminal and as lines for a log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.commands.output import printable
from quadweir.times import format_time

if TYPE_CHECKING:
    from rich.console import RenderableType

JOIN_METRICS: Final = "quadweir_join_"
"""The same as in `runtime.joins`, which would import Spark."""
_MOST_KEYS: Final = 10
# The same as in the kernel: the watermark is not known yet.
_EDGE: Final = 2**59


@final
@dataclass(frozen=True, slots=True)
class JoinReport:
    """The status of a join.

    Attributes:
        name: its number in the mapping.
        totals: late records, pairs, records held and so on, by name.
        windows: the windows of the keys that hold most.
    """

    name: str
    totals: Mapping[str, int]
    windows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def through(self) -> str:
        """The watermark as text."""
        at = self.totals.get("through")
        return format_time(at) if at is not None and abs(at) < _EDGE else "not yet"

    def line(self) -> str:
        """The status in one line, for logs.

        >>> JoinReport("1", {"pairs": 5, "held": 2, "keys": 1, "through": 1000}).line()
        'join 1: 5 pairs, 2 records held for 1 keys, 0 evictions, 0 late, 0 without a key, through 1970-01-01T00:00:01.000Z'
        """
        of = {**dict.fromkeys(("evictions", "late", "without_key"), 0), **self.totals}
        return (
            f"join {self.name}: {of['pairs']:,} pairs, {of['held']:,} records held for "
            f"{of['keys']:,} keys, {of['evictions']:,} evictions, {of['late']:,} late, "
            f"{of['without_key']:,} without a key, through {self.through}"
        )


def read_reports(progress: Mapping[str, Any]) -> list[JoinReport]:
    """The status of all joins in one of Spark's progress reports, given as JSON."""
    found = []
    for name, metrics in sorted(progress.get("observedMetrics", {}).items()):
        # A batch without rows observes nothing.
        if name.startswith(JOIN_METRICS) and metrics.get("held") is not None:
            windows = [one for text in metrics.get("windows") or () for one in json.loads(text)]
            windows.sort(key=lambda one: -(one["child_records"] + one["parent_records"]))
            totals = {key: value for key, value in metrics.items() if isinstance(value, int)}
            found.append(JoinReport(name.removeprefix(JOIN_METRICS), totals, windows))
    return found


def tables_of(reports: list[JoinReport]) -> list[RenderableType]:
    """A table for each join: its windows, and how full they are."""
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = []
    for report in reports:
        table = Table(title=report.line(), title_justify="left", title_style="bold")
        table.add_column("key", no_wrap=True, max_width=40)
        for name in ("size", "child of limit", "parent of limit", "evictions"):
            table.add_column(name, justify="right")
        for window in report.windows[:_MOST_KEYS]:
            table.add_row(
                Text(printable(window["key"])),
                f"{window['size_ms']:,} ms" if window["size_ms"] is not None else "",
                _fill(window["child_records"], window["child_limit"]),
                _fill(window["parent_records"], window["parent_limit"]),
                f"{window['evictions']:,}" if window["evictions"] is not None else "",
            )
        parts.append(table)
    return parts


def _fill(count: int, limit: int | None) -> str:
    """The fill of a list, in words.

    >>> _fill(150, 1000), _fill(7, None)
    ('150 of 1,000', '7')
    """
    return f"{count:,}" if limit is None else f"{count:,} of {limit:,}"
