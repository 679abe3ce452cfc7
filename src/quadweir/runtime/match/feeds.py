"""The streams of a query, opened as one frame of statements."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.errors import NotImplementedYetError, UsageError
from quadweir.rowfilters import ahead_reason, event_time
from quadweir.runtime.match.counts import live_counts
from quadweir.runtime.shard.clock import StreamTiming
from quadweir.sources.declare import undeclared
from quadweir.terms import IRI
from quadweir.vocab import XSD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from quadweir.entailment.table import Table
    from quadweir.plan.matchtests import MatchTest
    from quadweir.runtime.checkpoint import Fingerprint

INPUT_METRICS: Final = "quadweir_input"
"""The name of the counts of statements and dead letters in Spark's progress."""
_COLUMNS: Final = (*rows.ELEMENT, *rows.TERMS, rows.SOURCE, rows.PLACE, rows.REASON, rows.RECORD)
_INTEGERS: Final = tuple(
    f"{XSD[name]}" for name in ("integer", "long", "int", "unsignedLong", "unsignedInt")
)
_DATE_TIME: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?\z"
)


class MadeBy(Protocol):
    """A query that makes a stream."""

    def fingerprint(self, host: str, partitions: int) -> Fingerprint:
        """Return what its state depends on."""


@final
@dataclass(frozen=True, slots=True)
class Feed:
    """A stream that a query can read.

    Attributes:
        iri: its name.
        open: returns its rows: statements, and dead letters, which have a `rows.REASON`. Its
            arguments are the predicate from which event times are read, if a window says so, and a
            folder for data that has to be kept until it is processed.
        delay_ms: the allowed delay (S4).
        idle_ms: after how long without elements it is idle; None is never.
        timed_by: the predicate that its event times are read from, if there is one.
        reports_time: whether rows without a triple report how far time has come in it.
        made_by: the query of this engine whose answers it is, if there is one.
        ahead_ms: how far ahead of the clock its elements may be; None for any time.
        asked: returns the same stream without statements that pass none of some tests, if making
            fewer statements is cheaper. What is known of time and elements stays the same.
        left_out: with `asked`, returns what is left out, for people; None if nothing is.
    """

    iri: str
    open: Callable[[str | None, Path | None], DataFrame]
    delay_ms: int = 0
    idle_ms: int | None = None
    timed_by: str | None = None
    reports_time: bool = False
    made_by: MadeBy | None = None
    ahead_ms: int | None = None
    asked: Callable[[AllAsked], Feed] | None = None
    left_out: Callable[[], str | None] | None = None


@final
@dataclass(frozen=True, slots=True)
class AllAsked:
    """All that a run can ask of its streams.

    Attributes:
        tests: the tests of statements.
        table: the consequences of statements, if there is a schema.
    """

    tests: tuple[MatchTest, ...]
    table: Table | None = None

    def of(self, stream: str) -> AllAsked:
        """Return what is asked of one stream."""
        return replace(self, tests=tuple(one for one in self.tests if one.stream == stream))


@final
@dataclass(frozen=True, slots=True)
class Opened:
    """All streams of a query in one frame: statements, and dead letters, which have a reason.

    Attributes:
        frame: the rows.
        timing: delays and idle times of the streams.
        plain: whether every row that a source gives is a statement.
    """

    frame: DataFrame
    timing: StreamTiming
    plain: bool

    @property
    def is_streaming(self) -> bool:
        return bool(self.frame.isStreaming)

    def counted(self, *, tag: str = "") -> Opened:
        """Let Spark count statements and dead letters, under `INPUT_METRICS` and a tag.

        Counting goes row by row, outside of Spark's compiled code. If every row that a source gives
        is a statement, Spark counts them anyway.
        """
        if self.plain:
            return self
        return replace(self, frame=self.frame.observe(INPUT_METRICS + tag, *live_counts()))

    @property
    def statements(self) -> DataFrame:
        return rows.select_statements(self.frame.where(F.col(rows.REASON).isNull()))

    @property
    def dead_letters(self) -> DataFrame:
        bad = self.frame.where(F.col(rows.REASON).isNotNull())
        return bad.select(rows.SOURCE, rows.PLACE, rows.REASON, rows.RECORD)


def open_feeds(
    times: Mapping[str, IRI | None],
    feeds: Mapping[str, Feed],
    spool: Path | None,
    asked: AllAsked | None = None,
) -> Opened | None:
    """Open some streams, each once; None if there are none.

    Args:
        times: for each stream the predicate from which its event times are read, None for none.
        feeds: the streams that exist.
        spool: where TCP and MQTT keep what arrived until it is processed.
        asked: all that the run can ask; None if that is not known, or if every statement counts.

    Raises:
        UsageError: a stream is not known, or some streams are live and others have an end.
    """
    frames, delays, idles = [], {}, {}
    plain = True
    for iri, predicate in times.items():
        feed = feeds.get(iri)
        if feed is None:
            raise undeclared(iri, feeds)
        if asked is not None and feed.asked is not None:
            feed = feed.asked(asked.of(iri))
        own = spool / hashlib.sha256(iri.encode()).hexdigest()[:12] if spool is not None else None
        wanted = predicate.value if predicate is not None else None
        opened = feed.open(wanted if wanted != feed.timed_by else None, own)
        ahead_ms = feed.ahead_ms if opened.isStreaming else None
        is_plain = not feed.reports_time and rows.REASON not in opened.columns and ahead_ms is None
        plain = plain and is_plain
        rows_of = _complete(opened)
        if wanted is not None and wanted != feed.timed_by and not rows_of.isStreaming:
            rows_of = timed_by(rows_of, wanted)
        frames.append(with_times_that_can_be(rows_of, ahead_ms))
        delays[iri] = feed.delay_ms
        idles[iri] = feed.idle_ms
    if not frames:
        return None
    live = [frame.isStreaming for frame in frames]
    if any(live) and not all(live):
        names = dict(zip(delays, live, strict=True))
        still = ", ".join(f"<{iri}>" for iri, goes_on in names.items() if not goes_on)
        raise UsageError(
            f"some streams are live, and {still} has an end",
            hint="Watch its folder (watch = true) or replay it.",
        )
    reporting = frozenset(iri for iri in delays if feeds[iri].reports_time)
    frame = reduce(lambda one, other: one.unionByName(other), frames)
    return Opened(frame, StreamTiming(delays, idles, reporting), plain)


def _complete(frame: DataFrame) -> DataFrame:
    nothing = F.lit(None).cast("string")
    return frame.select(
        *[F.col(name) if name in frame.columns else nothing.alias(name) for name in _COLUMNS]
    )


def with_times_that_can_be(frame: DataFrame, ahead_ms: int | None = None) -> DataFrame:
    """Return the frame with statements of implausible times as dead letters (P5, S4).

    One of them would end all windows, and make later elements late until that time. Times that are
    thousands of years away are most likely not milliseconds.

    Args:
        frame: statements, and dead letters, which have a reason.
        ahead_ms: how far ahead of the clock they may be; None for any time.
    """
    # Rows without a triple report how far time has come, which may be to its end.
    is_statement = F.col(rows.PREDICATE).isNotNull()
    time = F.col(rows.EVENT_TIME)
    is_far = is_statement & ~time.between(-rows.LAST_TIME_MS, rows.LAST_TIME_MS)
    reason = F.when(
        is_far,
        F.concat(
            F.lit("its time, "),
            time.cast("string"),
            F.lit(", is thousands of years away: milliseconds since 1970 are meant"),
        ),
    )
    is_bad = is_far
    if ahead_ms is not None:
        ahead = ahead_reason(time, ahead_ms)
        is_bad = is_far | (is_statement & ahead.isNotNull())
        reason = F.coalesce(reason, F.when(is_statement, ahead))
    triple = F.concat_ws(" ", *(F.col(name) for name in rows.TERMS[:3]))
    said = {
        rows.SOURCE: F.col(rows.STREAM),
        rows.PLACE: F.concat(F.lit("position "), F.col(rows.POSITION).cast("string")),
        rows.REASON: reason,
        rows.RECORD: F.substring(triple, 1, rows.DEAD_LETTER_TEXT),
    }
    return frame.select(
        *(
            F.coalesce(F.col(name), F.when(is_bad, said[name])).alias(name)
            if name in said
            else F.col(name)
            for name in frame.columns
        )
    )


def other_times(iri: str, predicate: str) -> NotImplementedYetError:
    """Return the error for a window that takes the times of a live stream from elsewhere."""
    return NotImplementedYetError(
        f"a window takes the times of <{iri}> from <{predicate}>, and the stream has its own",
        hint="Declare the stream with this predicate as its time, in a format of whole elements "
        "(ntriples, nquads, timed-graphs).",
    )


def timed_by(frame: DataFrame, predicate: str) -> DataFrame:
    """Return a bounded stream whose elements have the value of a predicate as their time (S2)."""
    from pyspark.sql import Window

    element = Window.partitionBy(*rows.ELEMENT)
    value = F.when(F.col(rows.PREDICATE) == f"<{predicate}>", F.col(rows.OBJECT))
    values = F.collect_set(value).over(element)
    found = frame.withColumn("_times", values).withColumn("_time", _read_time(F.get("_times", 0)))
    count = F.size("_times")
    why = (
        F.when(count == 0, F.lit(f"no time: <{predicate}> is missing"))
        .when(count > 1, F.lit(f"several times: <{predicate}> has more than one value"))
        .when(F.col("_time").isNull(), F.lit(f"the value of <{predicate}> is not a time"))
    )
    kept = [name for name in _COLUMNS if name not in (rows.EVENT_TIME, rows.REASON)]
    return found.select(
        *kept,
        F.when(count == 1, F.col("_time")).alias(rows.EVENT_TIME),
        F.coalesce(rows.REASON, why).alias(rows.REASON),
    )


def _read_time(term: Column) -> Column:
    """Return the time of a literal in milliseconds since 1970; NULL if it is no time."""
    shape = '(?s)^"(.*)"(?:\\^\\^<([^>]*)>)?$'
    lexical, kind = F.trim(F.regexp_extract(term, shape, 1)), F.regexp_extract(term, shape, 2)
    is_number = kind.isin(*_INTEGERS) & lexical.rlike(r"^[+-]?[0-9]{1,18}\z")
    is_moment = kind.isin("", str(XSD.dateTime)) & lexical.rlike(_DATE_TIME)
    moment = F.regexp_replace(lexical, " ", "T")
    return F.when(is_number, lexical.try_cast("bigint")).when(is_moment, event_time(moment))
