"""A query over streams that have an end, answered in this process by one kernel shard.

The plan, the kernel and the events of the shard are those of every host. What Spark does for them
elsewhere, `reading.py` and `matching.py` do here, over whole tables in memory: it is meant for input
of a few megabytes. Nothing is late, and no state is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, final

import pyarrow as pa
import pyarrow.compute as pc

from quadweir import rows
from quadweir.algebra.analyze import analyze, refuse_unbounded
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import static_dataset
from quadweir.algebra.patterns import Pattern, Values
from quadweir.algebra.query import ContinuousQuery
from quadweir.entailment.close import refuse_transitive, static_closure
from quadweir.entailment.needs import needs_of
from quadweir.entailment.schema import Schema
from quadweir.entailment.table import Table
from quadweir.kernel.answers import Answers
from quadweir.kernel.arrays import ALWAYS, FOREVER
from quadweir.kernel.shard import Shard
from quadweir.kernel.staticrelations import Loaded
from quadweir.optimize.pipeline import optimize
from quadweir.plan.bounds import refuse_endless
from quadweir.plan.facts import NO_STATIC_DATA, NOTHING_KNOWN, StaticFacts
from quadweir.plan.program import program_of
from quadweir.plan.query import QueryPlan, plan_query
from quadweir.plan.shardkey import IN_ONE_SHARD
from quadweir.runtime.local.matching import StatementMatcher
from quadweir.runtime.local.reading import read_rows, timed_by, with_times_that_can_be
from quadweir.runtime.match.rowtimes import event_times
from quadweir.runtime.match.sentences import (
    asked_patterns,
    unmatched_in_static,
    unmatched_patterns,
)
from quadweir.runtime.wire.unpack import ArrivedRows, Unpacker
from quadweir.sources.declare import FromPredicate, StreamDeclaration, undeclared
from quadweir.sources.fileplan import PARSED
from quadweir.sources.staticfiles import StaticFile, apart_from_streams, read_static
from quadweir.terms import IRI

_LETTER: Final = (rows.SOURCE, rows.PLACE, rows.REASON, rows.RECORD)


@final
@dataclass(frozen=True)
class LocalAnswers:
    """What a run in this process found.

    Attributes:
        query: the query, optimised.
        answers: the answers.
        letters: the dead letters, as rows of `rows.DEAD_LETTER_SCHEMA`.
        statements: how many statements were read.
        earliest: the earliest event time of a statement; None if there is none.
        unmatched: sentences about patterns that matched nothing, and about empty streams.
    """

    query: ContinuousQuery
    answers: Answers
    letters: tuple[dict[str, str | None], ...]
    statements: int
    earliest: int | None
    unmatched: tuple[str, ...]


@final
class LocalQuery:
    """A continuous query over stream files; nothing is read before `run`.

    Args:
        query: the query as it was parsed.
        streams: the streams that exist, by IRI; each has an end (`why_not_local`).
        static: the static files.
        schema: what else follows from the triples of streams and static data (N1).
        allow_unbounded: windows and streams that may be kept whole.

    Raises:
        UnboundedStateError: the query would have to keep a stream whole.
        UnsupportedError: a window would need the closure of a transitive property.
        PlanError: it cannot be planned.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        streams: Mapping[str, StreamDeclaration],
        *,
        static: Iterable[StaticFile] = (),
        schema: Schema | None = None,
        allow_unbounded: Iterable[str] = (),
    ) -> None:
        analyze(query)
        allowed = frozenset(map(IRI, allow_unbounded))
        refuse_unbounded(query, allowed=allowed)
        self._query = query
        self._optimized = optimize(query).query
        self._streams = dict(streams)
        self._static = tuple(static)
        self._schema = schema
        if schema is not None:
            refuse_transitive(schema, query)
        # Right for any static data; none of it is read yet.
        draft = self._planned_by(NOTHING_KNOWN if self._static else NO_STATIC_DATA)
        refuse_endless(self._optimized, draft.endless, draft.why_not, allowed=allowed)

    def _planned_by(self, facts: StaticFacts) -> QueryPlan:
        schema = self._schema
        return plan_query(
            self._optimized,
            streams=tuple(sorted(self._streams)),
            facts=facts,
            table=Table.of(schema, needs_of(self._query)) if schema is not None else None,
            # There is one shard, and nothing runs a second stage.
            like=IN_ONE_SHARD,
        )

    def run(self) -> LocalAnswers:
        """Read everything and answer the query.

        Raises:
            SourceError: a file does not exist.
            DataError: a static file is not what its name says.
            PlanError: FROM names a graph that does not exist.
            UsageError: a stream is not declared.
        """
        static, facts, unmatched = self._solve()
        plan = self._planned_by(facts)
        found = self._read(plan)
        is_bad = found.column(rows.REASON).is_valid()
        letters = found.filter(is_bad).select(list(_LETTER)).to_pylist()
        statements = found.filter(pc.invert(is_bad))
        matcher = StatementMatcher(statements, plan.matching)
        shard = Shard(plan.first.program, static=static, records=False)
        arrived = ArrivedRows(matcher.matched(), (_spans(statements),), True)
        events, _ = Unpacker(shard, plan.wanted).events_of(arrived, after=ALWAYS)
        answers = shard.step(events, FOREVER)
        said = unmatched_in_static(unmatched)
        if plan.sources:
            named = set(pc.unique(statements.column(rows.STREAM)).to_pylist())
            empty = {source.stream for source in plan.sources} - named
            said += unmatched_patterns(
                asked_patterns(plan),
                empty,
                lambda each: any(matcher.passed[test].any() for test in each.tests),
            )
        return LocalAnswers(
            self._optimized,
            answers,
            tuple(letters),
            statements.num_rows,
            pc.min(statements.column(rows.EVENT_TIME)).as_py(),
            tuple(said),
        )

    def _solve(self) -> tuple[Loaded, StaticFacts, list[Pattern]]:
        """Read static data; return it, what a planner may know of it, and what does not match."""
        program = program_of(self._optimized, streams=tuple(sorted(self._streams)))
        asked = [each for each in program.static if not isinstance(each.query.pattern, Values)]
        if not asked and program.why_not is None:
            return Loaded(Dataset()), StaticFacts({}), []
        follows = None if self._schema is None else static_closure(self._schema, self._query)
        quads = apart_from_streams(read_static(self._static))
        if follows is not None:
            quads = follows.of(quads)
        source = Loaded(static_dataset(self._optimized, Dataset.of(quads)))
        counts = {each.query: source.relation(each.query, each.variables).count for each in asked}
        unmatched = [each.query.pattern for each in asked if not counts[each.query]]
        return source, StaticFacts(counts), unmatched

    def _read(self, plan: QueryPlan) -> pa.Table:
        """Return the rows of all streams that the query reads."""
        tables = [PARSED.empty_table()]
        for iri, predicate in event_times(plan).items():
            declared = self._streams.get(iri)
            if declared is None:
                raise undeclared(iri, self._streams)
            time = declared.time
            own = time.predicate if isinstance(time, FromPredicate) else None
            table = read_rows(declared)
            if predicate is not None and predicate.value != own:
                table = timed_by(table, predicate.value)
            tables.append(with_times_that_can_be(table))
        return pa.concat_tables(tables)


def _spans(statements: pa.Table) -> dict[str, tuple[int, int]]:
    """Return the earliest and the latest event time of each stream."""
    found = statements.group_by(rows.STREAM).aggregate(
        [(rows.EVENT_TIME, "min"), (rows.EVENT_TIME, "max")]
    )
    return {
        each[rows.STREAM]: (each[f"{rows.EVENT_TIME}_min"], each[f"{rows.EVENT_TIME}_max"])
        for each in found.to_pylist()
    }
