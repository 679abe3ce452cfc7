"""Why a query over bounded streams has no answers: which of its patterns matched nothing.

The streams are read once more for this, and each pattern is tested alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.algebra.patterns import Pattern, TriplePattern
from quadweir.algebra.traverse import walk
from quadweir.plan.matchtests import MatchTest
from quadweir.runtime.match.entail import with_consequences
from quadweir.runtime.match.matching import condition_of
from quadweir.terms import IRI, Variable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from quadweir.plan.query import QueryPlan


def unmatched_in_streams(statements: DataFrame, plan: QueryPlan) -> list[str]:
    """Return sentences about empty streams, and about patterns that no statement matches."""
    streams = sorted({source.stream for source in plan.sources})
    patterns: dict[tuple[str, str], tuple[TriplePattern, list[Column]]] = {}
    for test in plan.wanted:
        for number, _ in test.leaves:
            leaf = plan.matches[number]
            if leaf.pattern is not None:
                key = leaf.source.stream, _wanted(leaf.pattern, leaf.graph)
                patterns.setdefault(key, (leaf.pattern, []))[1].append(_passes(test))
    found = with_consequences(statements, plan.matching).agg(
        *(F.bool_or(F.col(rows.STREAM) == each) for each in streams),
        *(F.bool_or(reduce(or_, tests)) for _, tests in patterns.values()),
    )
    (row,) = found.collect()
    empty = {stream for stream, is_there in zip(streams, row, strict=False) if not is_there}
    said = [f"<{each}> has no statements" for each in sorted(empty)]
    for ((stream, text), (pattern, _)), is_matched in zip(
        patterns.items(), row[len(streams) :], strict=True
    ):
        if not is_matched and stream not in empty:
            said.append(f"no statement of <{stream}> {text}{_place(pattern)}")
    return said


def unmatched_in_static(patterns: Iterable[Pattern]) -> list[str]:
    """Return sentences about the patterns that no static data matches."""
    said = []
    for pattern in patterns:
        triples = [each for each in walk(pattern) if isinstance(each, TriplePattern)]
        if triples:
            text = " . ".join(map(_text, triples))
            said.append(f"no static data matches {text}{_place(triples[0])}")
    return said


def _passes(test: MatchTest) -> Column:
    """Return whether a statement passes a test, without its filters."""
    is_of = F.col(rows.STREAM) == test.stream
    parts = [condition_of(replace(test, conditions=()), is_of, fixed=True)]
    if test.way is None and test.constants[1] is not None:
        parts.append(F.col(rows.PREDICATE) == str(test.constants[1]))
    return reduce(and_, parts)


def _wanted(pattern: TriplePattern, graph: IRI | Variable | None) -> str:
    """Return the end of a sentence that says what a statement has to match."""
    if graph is None:
        return f"matches {_text(pattern)}"
    if pattern.span is not None:
        return f"matches GRAPH {graph} {{ {_text(pattern)} }}"
    return f"is in the graph {graph}" if isinstance(graph, IRI) else "is in a named graph"


def _text(pattern: TriplePattern) -> str:
    return f"{pattern.subject} {pattern.predicate} {pattern.object}"


def _place(pattern: TriplePattern) -> str:
    span = pattern.span
    return f" (line {span.line}, column {span.column})" if span is not None else ""
