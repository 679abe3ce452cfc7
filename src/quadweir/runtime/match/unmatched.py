"""Why a query over bounded streams has no answers: which of its patterns matched nothing.

The streams are read once more for this, and each pattern is tested alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.plan.matchtests import MatchTest
from quadweir.runtime.match.entail import with_consequences
from quadweir.runtime.match.matching import condition_of
from quadweir.runtime.match.sentences import asked_patterns, unmatched_patterns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from quadweir.plan.query import QueryPlan


def unmatched_in_streams(statements: DataFrame, plan: QueryPlan) -> list[str]:
    """Return sentences about empty streams, and about patterns that no statement matches."""
    streams = sorted({source.stream for source in plan.sources})
    patterns = asked_patterns(plan)
    passes = [[_passes(plan.wanted[test]) for test in each.tests] for each in patterns]
    found = with_consequences(statements, plan.matching).agg(
        *(F.bool_or(F.col(rows.STREAM) == each) for each in streams),
        *(F.bool_or(reduce(or_, tests)) for tests in passes),
    )
    (row,) = found.collect()
    empty = {stream for stream, is_there in zip(streams, row, strict=False) if not is_there}
    matched = dict(zip(patterns, row[len(streams) :], strict=True))
    return unmatched_patterns(patterns, empty, lambda each: bool(matched[each]))


def _passes(test: MatchTest) -> Column:
    """Return whether a statement passes a test, without its filters."""
    is_of = F.col(rows.STREAM) == test.stream
    parts = [condition_of(replace(test, conditions=()), is_of, fixed=True)]
    if test.way is None and test.constants[1] is not None:
        parts.append(F.col(rows.PREDICATE) == str(test.constants[1]))
    return reduce(and_, parts)
