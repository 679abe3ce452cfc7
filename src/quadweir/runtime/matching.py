"""Triple patterns as column expressions: statements in, the matches of all leaves out, in one pass.

Every statement gives a row for each leaf that it matches, or one row without a leaf: shards have to
know how far time has come in a stream whether anything matches or not.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.algebra.patterns import TriplePattern
from quadweir.kernel.network import LeafPlan
from quadweir.plan.query import QueryPlan
from quadweir.terms import Variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

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
    scoped = _scope_blank_nodes(statements, plan)
    found = []
    for place, leaf in enumerate(plan.leaves):
        if leaf.pattern is None:
            continue
        source = plan.sources.index(leaf.source)
        values = _values(leaf)
        struct = F.struct(
            F.lit(place).alias(LEAF),
            F.lit(source).alias(SOURCE),
            _shard(leaf, place, plan, shards).alias(SHARD),
            *(value.alias(name) for name, value in zip(VALUES, values, strict=True)),
        )
        found.append(F.when(_condition(leaf.source.stream, leaf.pattern), struct))
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


def _places(pattern: TriplePattern) -> Sequence[tuple[object, str]]:
    return (
        (pattern.subject, rows.SUBJECT),
        (pattern.predicate, rows.PREDICATE),
        (pattern.object, rows.OBJECT),
    )


def _condition(stream: str, pattern: TriplePattern) -> Column:
    """Tell whether a statement matches: its constants, and its variables that stand twice."""
    condition = F.col(rows.STREAM) == stream
    first: dict[Variable, str] = {}
    for term, name in _places(pattern):
        if isinstance(term, Variable):
            if term in first:
                condition = condition & (F.col(name) == F.col(first[term]))
            first.setdefault(term, name)
        else:
            condition = condition & (F.col(name) == F.lit(str(term)))
    return condition


def _values(leaf: LeafPlan) -> list[Column]:
    """Give the columns of a leaf's variables, and NULL for the rest."""
    assert leaf.pattern is not None
    places = dict(reversed(_places(leaf.pattern)))
    found = [F.col(places[variable]) for variable in leaf.variables]
    return found + [F.lit(None).cast("string")] * (WIDTH - len(found))


def _shard(leaf: LeafPlan, place: int, plan: QueryPlan, shards: int) -> Column:
    if place in plan.replicated:
        return F.lit(ALL_SHARDS)
    if plan.key.variable is None:
        return F.lit(0)
    assert leaf.pattern is not None
    name = next(name for term, name in _places(leaf.pattern) if term == plan.key.variable)
    return F.pmod(F.xxhash64(name), F.lit(shards)).cast("int")
