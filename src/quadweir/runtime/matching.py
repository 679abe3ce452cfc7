"""Triple patterns as column expressions: statements in, the matches of all leaves out, in one pass.

Every statement gives a row for each leaf that it matches, or one row without a leaf: shards have to
know how far time has come in a stream whether anything matches or not.
"""

from __future__ import annotations

import hashlib
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.algebra.patterns import TriplePattern
from quadweir.kernel.network import LeafPlan
from quadweir.plan.query import QueryPlan
from quadweir.runtime.entail import Part, look_up, looked_up, views
from quadweir.terms import Variable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from quadweir.entailment.ways import Ways

    Terms: TypeAlias = tuple[Column, Column, Column]

# A row after matching: which leaf (or source) it is for, when, where, and up to three values.
LEAF: Final = "leaf"
SOURCE: Final = "source"
SHARD: Final = "shard"
VALUES: Final = ("value0", "value1", "value2")
WIDTH: Final = len(VALUES)

ALL_SHARDS: Final = -1
NO_LEAF: Final = -1
ELEMENT: Final = -2
"""The row tells of an element of its source, with a hash of the triple."""

END: Final = "urn:quadweir:end"
"""An element of this stream ends all others: the windows run empty (E3)."""

_MATCHES: Final = "_matches"


def match_statements(statements: DataFrame, plan: QueryPlan, shards: int) -> DataFrame:
    """Match statements of all of a query's streams against its leaves.

    Args:
        statements: rows of `rows.STATEMENT_SCHEMA`.
        plan: the query's plan.
        shards: how many shards there are.

    Returns:
        Rows of leaf, source, event time, position, shard, and values.
    """
    scoped = look_up(_scope_blank_nodes(statements, plan), plan)
    found = []
    arrays = []
    for place, leaf in enumerate(plan.leaves):
        if leaf.pattern is None:
            continue
        ways = plan.ways(leaf)
        for terms, condition in _conditions(leaf.pattern, ways):
            here = F.col(rows.STREAM) == leaf.source.stream
            found.append(F.when(here & condition, _match(terms, place, plan, shards)))
        if ways.looked_up:
            arrays.append(_looked_up(place, plan, shards))
    empty = [F.lit(None).cast("string").alias(name) for name in VALUES]
    for source in sorted(plan.elements):
        struct = F.struct(
            F.lit(ELEMENT).alias(LEAF),
            F.lit(source).alias(SOURCE),
            F.lit(ALL_SHARDS).alias(SHARD),
            F.hex(F.xxhash64(*rows.TERMS[:3])).alias(VALUES[0]),
            *empty[1:],
        )
        found.append(F.when(F.col(rows.STREAM) == plan.sources[source].stream, struct))
    nothing = F.struct(
        F.lit(NO_LEAF).alias(LEAF),
        F.lit(NO_LEAF).alias(SOURCE),
        F.lit(ALL_SHARDS).alias(SHARD),
        *empty,
    )
    matched = F.array_compact(F.array(*found))
    if arrays:
        matched = F.concat(matched, *arrays)
    rows_of = F.when(F.size(_MATCHES) > 0, F.col(_MATCHES)).otherwise(F.array(nothing))
    return scoped.select(
        rows.STREAM, rows.EVENT_TIME, rows.POSITION, matched.alias(_MATCHES)
    ).select(rows.STREAM, rows.EVENT_TIME, rows.POSITION, F.inline(rows_of))


def stream_prefix(stream: str) -> str:
    """Give what the label of a blank node gets to tell it from those of other streams (S3).

    >>> stream_prefix("urn:s")
    'se2219d44-'
    """
    return f"s{hashlib.sha256(stream.encode()).hexdigest()[:8]}-"


def _scope_blank_nodes(statements: DataFrame, plan: QueryPlan) -> DataFrame:
    streams = sorted({source.stream for source in plan.sources})

    def scoped(name: str) -> Column:
        prefix = F.lit(None).cast("string")
        for stream in streams:
            is_here = F.col(rows.STREAM) == stream
            prefix = F.when(is_here, F.lit(f"_:{stream_prefix(stream)}")).otherwise(prefix)
        named = F.concat(prefix, F.substr(F.col(name), F.lit(3)))
        return F.when(F.col(name).startswith("_:"), named).otherwise(F.col(name)).alias(name)

    return statements.where(F.col(rows.STREAM).isin([*streams, END])).select(
        *rows.ELEMENT, scoped(rows.SUBJECT), rows.PREDICATE, scoped(rows.OBJECT)
    )


def _match(terms: Terms, place: int, plan: QueryPlan, shards: int) -> Column:
    """Make the row of a leaf whose pattern these terms match."""
    leaf = plan.leaves[place]
    values = _values(leaf, terms)
    return F.struct(
        F.lit(place).alias(LEAF),
        F.lit(plan.sources.index(leaf.source)).alias(SOURCE),
        _shard(leaf, place, plan, shards, terms).alias(SHARD),
        *(value.alias(name) for name, value in zip(VALUES, values, strict=True)),
    )


def _looked_up(place: int, plan: QueryPlan, shards: int) -> Column:
    """The rows of a leaf by what follows from a statement, where that is looked up."""
    leaf = plan.leaves[place]
    pattern, table = leaf.pattern, plan.table
    assert pattern is not None
    assert table is not None

    def terms(triple: Column) -> Terms:
        return triple[rows.SUBJECT], triple[rows.PREDICATE], triple[rows.OBJECT]

    every = F.filter(looked_up(table), lambda triple: _fits(pattern, terms(triple)))
    made = F.transform(every, lambda triple: _match(terms(triple), place, plan, shards))
    return F.when(F.col(rows.STREAM) == leaf.source.stream, made).otherwise(F.slice(made, 1, 0))


def _conditions(pattern: TriplePattern, ways: Ways) -> list[tuple[Terms, Column]]:
    """Tell under which conditions a statement matches, for each form that a match takes.

    Ways that give the same values make one condition: a statement that matches in two of them
    gives one row.
    """
    found: dict[tuple[Part, ...], tuple[Terms, Column]] = {}
    for view, guard in views(ways):
        terms = (view[0].expression(), view[1].expression(), view[2].expression())
        condition = _fits(pattern, terms)
        if guard is not None:
            condition = guard & condition
        key = tuple(part for part, term in zip(view, _terms(pattern), strict=True) if _varies(term))
        known = found.get(key)
        found[key] = (known[0], known[1] | condition) if known is not None else (terms, condition)
    return list(found.values())


def _varies(term: object) -> bool:
    return isinstance(term, Variable)


def _terms(pattern: TriplePattern) -> tuple[object, object, object]:
    return pattern.subject, pattern.predicate, pattern.object


def _fits(pattern: TriplePattern, terms: Terms) -> Column:
    """Tell whether terms match a pattern: its constants, and its variables that stand twice."""
    tests: list[Column] = []
    first: dict[Variable, Column] = {}
    for asked, given in zip(_terms(pattern), terms, strict=True):
        if isinstance(asked, Variable):
            if asked in first:
                tests.append(given == first[asked])
            first.setdefault(asked, given)
        else:
            tests.append(given == F.lit(str(asked)))
    return reduce(and_, tests, F.lit(True))


def _values(leaf: LeafPlan, terms: Terms) -> list[Column]:
    """Give the terms of a leaf's variables, and NULL for the rest."""
    assert leaf.pattern is not None
    bound = dict(reversed(list(zip(_terms(leaf.pattern), terms, strict=True))))
    found = [bound[variable] for variable in leaf.variables]
    return found + [F.lit(None).cast("string")] * (WIDTH - len(found))


def _shard(leaf: LeafPlan, place: int, plan: QueryPlan, shards: int, terms: Terms) -> Column:
    if place in plan.replicated:
        return F.lit(ALL_SHARDS)
    if plan.key.variable is None:
        return F.lit(0)
    assert leaf.pattern is not None
    asked = _terms(leaf.pattern)
    of_key = terms[asked.index(plan.key.variable)]
    return F.pmod(F.xxhash64(of_key), F.lit(shards)).cast("int")
