"""The answers of a network, handed to the sinks of its queries.

All answers of a batch arrive together. They go to one sink that all queries share, where the name of
the query stands in each line, to sinks of single queries, or to both. A sink of a single query that
fails stops this query alone.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np
import pyarrow as pa

from quadweir import rows
from quadweir.runtime.network.queries import VersionChange
from quadweir.runtime.network.rendering import (
    SolutionColumns,
    SolutionNames,
    makes_blank_nodes,
    network_lines,
    query_lines,
)
from quadweir.runtime.network.spec import QUERY, VALUES
from quadweir.sinks.base import ArrowSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quadweir.algebra.query import ConstructForm
    from quadweir.runtime.network.queries import NetworkQuery
    from quadweir.sinks.base import Batch, KeyedSink, Sink, TextSink

_KEY: Final = "key"
_RATE_SECONDS: Final = 10


@final
@dataclass(frozen=True, slots=True)
class NetworkAnswer:
    """An answer of a query of a network.

    Attributes:
        query: the name of the query.
        t: the report instant, in milliseconds.
        sign: + or -.
        bindings: the spelling of the term that each variable is bound to.
        graph: the statements of a CONSTRUCT, sorted, one N-Quads line each; else nothing.
    """

    query: str
    t: int
    sign: str
    bindings: Mapping[str, str]
    graph: tuple[str, ...] = ()


Target: TypeAlias = "Sink | Callable[[list[NetworkAnswer]], None]"


def prepare_target(target: Target) -> None:
    """Check what can be checked of a sink before it is used; a function needs nothing."""
    if hasattr(target, "prepare"):
        target.prepare()


@final
class Delivery(ArrowSink):
    """Hands the answers of each batch to sinks.

    Args:
        spark: the session.
        shared: the sink of all queries, if there is one.
        most_answers: how many answers a query may give in a second, over some seconds.
        clock: seconds that only grow; tests pass their own.

    Attributes:
        queries: the queries that the present batch ran with, by number.
        counts: how many answers each query gave since the network was started here, by number.
    """

    def __init__(
        self,
        spark: SparkSession,
        shared: Sink | None,
        *,
        most_answers: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spark = spark
        self._shared = shared
        self._most_answers = most_answers
        self._clock = clock
        # Answers of each query since some instant of the clock.
        self._recent: Counter[int] = Counter()
        self._recent_since = clock()
        # Sinks by the names of queries, for those that are going to join; and by number, for those
        # of the present batch. A query that is replaced keeps its own to its end.
        self._by_name: dict[str, Target] = {}
        self._by_number: dict[int, Target] = {}
        self._lock = threading.Lock()
        self._failures: dict[int, str] = {}
        self.queries: dict[int, NetworkQuery] = {}
        self.counts: Counter[int] = Counter()

    def expect(self, query: str, target: Target | None) -> None:
        """Hand the answers of a query to a sink or a function when it joins; None for nowhere."""
        with self._lock:
            if target is None:
                self._by_name.pop(query, None)
            else:
                self._by_name[query] = target

    def send(self, query: str, target: Target | None) -> None:
        """Hand the answers of a query to a sink or a function from now on; None for no longer."""
        self.expect(query, target)
        with self._lock:
            for number in [each.number for each in self.queries.values() if each.id == query]:
                self._bind(number, target)

    def change(self, change: VersionChange) -> None:
        """Learn which queries there are from the next batch on."""
        with self._lock:
            for each in change.leaving:
                self.queries.pop(each.number, None)
                self.counts.pop(each.number, None)
                self._recent.pop(each.number, None)
                self._by_number.pop(each.number, None)
            self.queries |= {each.number: each for each in change.joining}
            for each in change.joining:
                self._bind(each.number, self._by_name.get(each.id))

    def _bind(self, number: int, target: Target | None) -> None:
        if target is None:
            self._by_number.pop(number, None)
        else:
            self._by_number[number] = target

    def take_failures(self) -> dict[int, str]:
        """Return the queries whose sinks failed, with the reasons, once."""
        found, self._failures = self._failures, {}
        return found

    def prepare(self) -> None:
        if self._shared is not None:
            self._shared.prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        self.write_arrow(frame.toArrow().to_batches(), batch)

    def write_arrow(self, found: Iterable[pa.RecordBatch], batch: Batch) -> None:
        self._forget_old()
        answers = [part for each in found if (part := _answers(each)).num_rows]
        for part in answers:
            numbers, counts = np.unique(part.column(QUERY).to_numpy(), return_counts=True)
            given = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
            self.counts.update(given)
            self._recent.update(given)
        self._check_rates()
        self._write_shared(answers, batch)
        with self._lock:
            own = dict(self._by_number)
        if own:
            self._write_own(answers, own, batch)

    def _check_rates(self) -> None:
        """Note the queries that give too many answers; they are stopped after the batch."""
        most = self._most_answers
        for number, count in self._recent.items():
            if most is not None and count > most * _RATE_SECONDS:
                self._failures[number] = (
                    f"it gave {count:,} answers within {_RATE_SECONDS} s, and the limit is "
                    f"{most:,} in a second"
                )

    def _forget_old(self) -> None:
        """Count answers for some seconds, then begin again."""
        if self._clock() - self._recent_since >= _RATE_SECONDS:
            self._recent.clear()
            self._recent_since = self._clock()

    # --- one sink for all ---

    def _write_shared(self, answers: Sequence[pa.RecordBatch], batch: Batch) -> None:
        sink = self._shared
        if sink is None:
            return
        names = SolutionNames(batch.number)
        lines = [line for part in answers for line in self._network_lines(part, names)]
        if sink.text is not None:
            sink.text.write_text(lines, batch)
        elif sink.keyed is not None:
            if lines:
                _write_messages(sink.keyed, self._spark, lines, batch)
        elif lines or sink.needs.wants_empty:
            sink.write(self._spark.createDataFrame(_line_table(lines)), batch)

    def _network_lines(self, part: pa.RecordBatch, names: SolutionNames) -> list[str]:
        """Return the answers of one template as lines that name their queries."""
        return [
            line
            for group in self._by_form(part, names)
            for line in network_lines(
                group, {number: self.queries[number].id for number in set(group.queries)}
            )
        ]

    def _by_form(self, part: pa.RecordBatch, names: SolutionNames) -> Iterable[SolutionColumns]:
        """Group the answers of one template by what their queries make of a solution."""
        present, whose = np.unique(part.column(QUERY).to_numpy(), return_inverse=True)
        firsts: dict[ConstructForm | None, NetworkQuery] = {}
        queries = [self.queries[number] for number in present.tolist()]
        alike = [firsts.setdefault(each.construct, each).number for each in queries]
        form = np.array(alike, dtype=np.int64)[whose]
        order = np.argsort(form, kind="stable")
        starts = np.flatnonzero(np.diff(form[order], prepend=-1))
        for start, end in pairwise((*starts.tolist(), len(order))):
            rows_of = part if len(firsts) == 1 else part.take(pa.array(order[start:end]))
            yield _solutions(rows_of, self.queries[int(form[order[start]])], names)

    # --- a sink for one ---

    def _write_own(
        self, answers: Sequence[pa.RecordBatch], own: Mapping[int, Target], batch: Batch
    ) -> None:
        parts: dict[int, list[pa.RecordBatch]] = {}
        for part in answers:
            numbers = part.column(QUERY).to_numpy()
            for number in own.keys() & set(np.unique(numbers).tolist()):
                parts.setdefault(number, []).append(part.filter(pa.array(numbers == number)))
        names = SolutionNames(batch.number)
        for number in sorted(parts):
            query = self.queries[number]
            found = [_solutions(each, query, names) for each in parts[number]]
            try:
                self._hand_over(own[number], query, found, batch)
            except Exception as error:  # it stops this query alone
                self._failures[number] = f"its sink failed: {error}"

    def _hand_over(
        self, target: Target, query: NetworkQuery, found: Sequence[SolutionColumns], batch: Batch
    ) -> None:
        if not hasattr(target, "write"):
            target([answer for each in found for answer in each.answers(query.id)])
            return
        sink: Sink = target  # type: ignore[assignment]
        text: TextSink | None = sink.text
        if text is not None:
            text.write_text(
                [line for each in found for line in query_lines(each, text.form)], batch
            )
            return
        lines = [line for each in found for line in network_lines(each, {query.number: query.id})]
        if sink.keyed is not None:
            _write_messages(sink.keyed, self._spark, lines, batch)
        else:
            sink.write(self._spark.createDataFrame(_line_table(lines)), batch)


def _answers(part: pa.RecordBatch) -> pa.RecordBatch:
    """Return the answers among output rows."""
    numbers = part.column(QUERY)
    return part if not numbers.null_count else part.filter(numbers.is_valid())


def _solutions(part: pa.RecordBatch, query: NetworkQuery, names: SolutionNames) -> SolutionColumns:
    """Read answers of queries that make the same of a solution; `query` is one of them."""
    values = part.column(VALUES).flatten().to_numpy(zero_copy_only=False)
    width = len(query.variables)
    columns = values.reshape(part.num_rows, width) if width else values.reshape(part.num_rows, 0)
    bound = {name: columns[:, place].tolist() for place, name in enumerate(query.variables)}
    t, sign = part.column(rows.REPORT).to_pylist(), part.column(rows.SIGN).to_pylist()
    named = makes_blank_nodes(query.construct)
    queries = part.column(QUERY).to_pylist()
    return SolutionColumns(
        queries,
        t,
        sign,
        bound,
        names.of(queries, t, sign, bound.values()) if named else [],
        query.construct,
    )


def _line_table(lines: Sequence[str]) -> pa.Table:
    return pa.table({rows.LINE: pa.array(lines, pa.string())})


def _write_messages(
    sink: KeyedSink, spark: SparkSession, lines: Sequence[str], batch: Batch
) -> None:
    """Write lines with keys by which a reader can drop repeated ones (P2)."""
    seen: Counter[str] = Counter()
    keys = []
    for line in lines:
        digest = hashlib.sha256(line.encode("utf-8", "surrogatepass")).hexdigest()
        seen[digest] += 1
        keys.append(f"{digest}|{batch.number}.{seen[digest]}")
    frame = spark.createDataFrame(
        pa.table({_KEY: pa.array(keys, pa.string()), "value": pa.array(lines, pa.string())})
    )
    sink.write_messages(frame)
