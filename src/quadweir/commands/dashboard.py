"""Watch a streaming query: a live table on a terminal, or a plain line at intervals elsewhere."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, final

from quadweir.commands.output import printable, stderr_console

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from rich.console import RenderableType
    from rich.live import Live

DEMO_METRICS: Final = "quadweir"
"""The name under which a query observes `triples`, and `used`, the number of records that it could
use (see `DataFrame.observe`)."""

_SECONDS_BETWEEN_LINES: Final = 2.0
_RATE_SECONDS: Final = 5.0
_TOGETHER_SECONDS: Final = 0.05
_NO_WATERMARK: Final = "1970-01-01T00:00:00.000Z"


@final
@dataclass(slots=True)
class ProgressMeter:
    """Sums of Spark's progress reports.

    >>> meter = ProgressMeter(names=("flow",))
    >>> meter.add({"batchId": 0, "durationMs": {"triggerExecution": 90},
    ...            "sources": [{"numInputRows": 20}], "eventTime": {},
    ...            "observedMetrics": {"quadweir": {"triples": 95, "used": 19}}}, 1.0)
    >>> meter.records, meter.triples, meter.bad, meter.batch_ms
    ({'flow': 20}, 95, 1, [90])
    """

    names: tuple[str, ...]
    records: dict[str, int] = field(default_factory=dict)
    triples: int = 0
    bad: int = 0
    latest: str = ""
    answers: str = ""
    watermark: str | None = None
    batch_ms: list[int] = field(default_factory=list)
    _last_batch: int = -1
    _history: list[tuple[float, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.records = dict.fromkeys(self.names, 0)

    def add(self, progress: Mapping[str, Any], elapsed: float) -> None:
        """Add one progress report; a report that was added before changes nothing."""
        if progress["batchId"] <= self._last_batch:
            return
        rows = [source["numInputRows"] for source in progress["sources"]]
        watermark = progress.get("eventTime", {}).get("watermark")
        if watermark and watermark != _NO_WATERMARK:
            self.watermark = watermark
        if not any(rows):
            return  # While nothing arrives, Spark reports the number of the next batch.
        self._last_batch = progress["batchId"]
        self.batch_ms.append(progress["durationMs"]["triggerExecution"])
        for name, count in zip(self.names, rows, strict=True):
            self.records[name] += count
        observed = progress.get("observedMetrics", {}).get(DEMO_METRICS) or {}
        self.triples += observed.get("triples") or 0
        # A batch without any usable record observes nothing, rather than zero.
        self.bad += sum(rows) - (observed.get("used") or 0)
        # Batches that are reported together say nothing about the time between them.
        if self._history and elapsed - self._history[-1][0] < _TOGETHER_SECONDS:
            self._history.pop()
        self._history.append((elapsed, self.total_records, self.triples))

    @property
    def total_records(self) -> int:
        """All records of all sources."""
        return sum(self.records.values())

    def rates(self) -> tuple[float, float]:
        """Records and triples a second over the last few seconds."""
        if len(self._history) < 2:
            return 0.0, 0.0
        end = self._history[-1]
        begin = next(
            (past for past in self._history if past[0] >= end[0] - _RATE_SECONDS), self._history[0]
        )
        if begin is end:
            begin = self._history[-2]
        seconds = end[0] - begin[0]
        return (end[1] - begin[1]) / seconds, (end[2] - begin[2]) / seconds


class Dashboard:
    """Shows a query's progress on standard error until the `with` block ends.

    Args:
        title: the title of the table.
        names: the names of the query's sources, in the order in which it reads them.
        prefixes: how to shorten IRIs in the latest RDF, prefix to namespace.
        clock: seconds that only grow; tests pass their own.
    """

    def __init__(
        self,
        title: str,
        names: Iterable[str],
        *,
        prefixes: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.meter = ProgressMeter(names=tuple(names))
        self._title = title
        self._prefixes = dict(prefixes or {})
        self._clock = clock
        self._began = clock()
        self._console = stderr_console()
        self._live: Live | None = None
        self._next_line = 0.0

    def __enter__(self) -> Self:
        self._began = self._clock()
        if self._console.is_terminal:
            from rich.live import Live

            self._live = Live(self._render(), console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.update(self._render(), refresh=True)
            self._live.stop()
            self._live = None

    @property
    def elapsed(self) -> float:
        """Seconds since the `with` block began."""
        return self._clock() - self._began

    def update(self, query: StreamingQuery) -> None:
        """Add the query's newest progress reports and show them."""
        self.show(json.loads(progress.json) for progress in query.recentProgress)

    def show(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Add progress reports in Spark's JSON form, and show them."""
        for report in reports:
            self.meter.add(report, self.elapsed)
        if self._live is not None:
            self._live.update(self._render(), refresh=True)
        elif self.meter.batch_ms and self.elapsed >= self._next_line:
            self._next_line = self.elapsed + _SECONDS_BETWEEN_LINES
            self._console.print(self.line())

    def line(self) -> str:
        """The progress in one line, for logs."""
        records, triples = self.meter.rates()
        last = self.meter.batch_ms[-1] if self.meter.batch_ms else 0
        return (
            f"{self.elapsed:5.1f} s  {records:8,.0f} records/s  {triples:9,.0f} triples/s  "
            f"watermark {clock_time(self.meter.watermark)}  batch {last:,} ms"
        )

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        meter = self.meter
        records, triples = meter.rates()
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column()
        counts = ", ".join(f"{name} {count:,}" for name, count in meter.records.items())
        table.add_row("time", f"{self.elapsed:.0f} s")
        table.add_row("records in", f"{records:,.0f} a second   ({counts})")
        table.add_row("triples out", f"{triples:,.0f} a second   ({meter.triples:,} so far)")
        table.add_row("watermark", clock_time(meter.watermark))
        table.add_row("batches", _batches(meter.batch_ms))
        shown = shorten(printable(meter.latest), self._prefixes) or "..."
        latest = Text(shown, style="cyan", overflow="ellipsis", no_wrap=True)
        panels = [
            Panel(table, title=self._title, title_align="left", border_style="green"),
            Panel(latest, title="latest RDF", title_align="left", border_style="cyan"),
        ]
        if meter.answers:
            answers = Text(printable(meter.answers), overflow="ellipsis", no_wrap=True)
            panels.append(
                Panel(answers, title="where cars crawl", title_align="left", border_style="red")
            )
        return Group(*panels)


def clock_time(stamp: str | None) -> str:
    """Spark's time stamp, shortened for display.

    >>> clock_time("2026-03-03T07:45:00.000Z"), clock_time(None)
    ('2026-03-03 07:45:00', 'not yet')
    """
    return stamp[:19].replace("T", " ") if stamp else "not yet"


def shorten(text: str, prefixes: Mapping[str, str]) -> str:
    """Write IRIs with prefixes, for display only: the text may not parse.

    >>> shorten("<urn:x:a> <urn:x:b> <urn:y> .", {"x": "urn:x:"})
    'x:a x:b <urn:y> .'
    """
    for prefix, namespace in prefixes.items():
        text = re.sub(f"<{re.escape(namespace)}([^>]*)>", rf"{prefix}:\1", text)
    return text


def _batches(batch_ms: list[int]) -> str:
    if not batch_ms:
        return "none yet"
    median = statistics.median(batch_ms)
    return f"{len(batch_ms)}, the last took {batch_ms[-1]:,} ms, half at most {median:,.0f} ms"
