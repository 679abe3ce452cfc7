"""Matching in column expressions gives what going through the tests one by one gives."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from quadweir import rows
from quadweir.plan.query import QueryPlan
from quadweir.runtime.match.bits import REPORTS_TIME, STREAM, MatchBits, shard_by, word_of
from quadweir.runtime.match.matching import match_statements
from quadweir.runtime.match.rowform import VALUES, stream_numbers
from quadweir.runtime.wire.deadletters import split_rows
from quadweir.sources.streamfiles import Element
from quadweir.terms import IRI, BlankNode
from query_hosts import matched, spec_of
from spark_queries import LAST, statements
from streaming import stream

MANY = (
    "SELECT ?x ?y { STREAM <urn:s> [RANGE 15ms] { "
    + " UNION ".join(f"{{ ?x <urn:p{number}> ?y }}" for number in range(62))
    + " } }"
)
TWO_STREAMS = """SELECT ?x ?z { STREAM <urn:s> [RANGE 15ms] { ?x <urn:p1> ?y . ?y <urn:p2> ?y }
  STREAM <urn:t> [RANGE 20ms] { ?y ?p ?z FILTER (?z != <urn:b3>) } }"""
GRAPHS = """SELECT ?g ?x { STREAM <urn:s> [RANGE 15ms] { GRAPH ?g { ?x <urn:p1> ?y } ?g ?p ?x
  GRAPH <urn:b1> { ?x ?p ?y } } STREAM <urn:t> [TRIPLES 3] { GRAPH ?x { ?x ?p ?y } } }"""
COUNTED = "SELECT ?x { STREAM <urn:s> [TRIPLES 5] { ?x <urn:p1> ?y } STREAM <urn:t> [NOW] { ?x <urn:p2> ?y } }"


def feed() -> list[Element]:
    dice = random.Random(7)

    def text() -> str:
        return " . ".join(
            f"{dice.choice(['_:n', 'b'])}{dice.randrange(4)} p{dice.randrange(70)} b{dice.randrange(4)}"
            for _ in range(dice.randrange(1, 4))
        )

    # Times go back and forth, and the same instant comes again.
    times = [1000 + dice.randrange(40) for _ in range(60)]
    one = stream(*[(time, text()) for time in times])
    other = stream(*[(time, f"b{time % 4} p{time % 3} b{time % 4}") for time in times], name="t")
    return [*one, *other, *stream((5, "b p1 b"), name="elsewhere"), LAST]


def named(elements: list[Element]) -> list[Element]:
    """The same, with most triples in named graphs, and some in two."""
    dice = random.Random(8)
    names = [None, IRI("urn:b0"), IRI("urn:b1"), IRI("urn:b2"), BlankNode("n1")]
    return [
        replace(
            each,
            quads=tuple(
                replace(quad, graph=name)
                for quad in each.quads
                for name in dice.sample(names, dice.choice([1, 1, 2]))
            ),
        )
        for each in elements
    ]


@pytest.mark.parametrize(
    "text", [MANY, TWO_STREAMS, COUNTED, GRAPHS], ids=["many", "two", "counted", "graphs"]
)
@pytest.mark.parametrize("shards", [1, 3])
def test_rows_are_those_of_the_tests_one_by_one(spark, text, shards):
    elements = named(feed())
    plan = spec_of(text).plan
    frame = statements(spark, elements).coalesce(1)
    found = match_statements(frame, plan.matching, shards).toArrow()
    every = pa.table(matched(plan, elements, shards, fixed=True))
    assert said(plan, found, shards) == said(plan, every, shards)
    # What passes nothing is there only as far as it tells the first and the last time of its stream.
    assert edges(plan, found, shards) == edges(plan, every, shards)
    assert found.num_rows < every.num_rows


def test_dead_letters_leave_the_times_of_statements_alone(spark):
    """What a letter says of its time counts for nothing; what comes after it does."""
    plan = spec_of(TWO_STREAMS).plan
    frame = statements(spark, stream((1000, "b p9 b"), (1003, "b p9 b"), (1001, "b p9 b")))
    letter = frame.limit(1).select(
        rows.STREAM,
        F.lit(5000).cast("bigint").alias(rows.EVENT_TIME),
        rows.POSITION,
        *(F.lit(None).cast("string").alias(name) for name in rows.TERMS),
    )
    reported = [F.lit("x").alias(name) for name in (rows.SOURCE, rows.PLACE, rows.RECORD)]
    unknown = F.lit(None).cast("string").alias(rows.REASON)
    given = letter.select("*", *reported, F.lit("bad").alias(rows.REASON)).union(
        frame.select("*", *reported, unknown)
    )
    found = match_statements(given.coalesce(1), plan.matching, 1).toArrow()
    letters, rest = split_rows(found.combine_chunks().to_batches()[0])
    assert len(letters) == 1
    assert edges(plan, pa.table(rest), 1) == {0: (1000, 1003)}


def said(plan: QueryPlan, table: pa.Table, shards: int) -> set[tuple[object, ...]]:
    """The tests that were passed, each with the terms that it is about and the shard."""
    streams = stream_numbers(plan.matching)
    bits = MatchBits.of(plan.wanted, streams=len(streams), shards=shards)
    number = bits.read(STREAM, table)
    assert not bits.read(REPORTS_TIME, table).any()
    found: set[tuple[object, ...]] = set()
    for test, each in enumerate(plan.wanted):
        word, bit = word_of(test)
        shard = bits.read(shard_by(each.key), table) if shard_by(each.key) in bits.places else None
        for place, row in enumerate(table.to_pylist()):
            if row[word] >> bit & 1:
                assert streams[number[place]] == each.stream
                terms = [row[VALUES[at]] for at in sorted(each.needed)]
                to = None if shard is None else int(shard[place])
                found.add((test, row[rows.EVENT_TIME], row[rows.POSITION], *terms, to))
    assert found
    return found


def edges(plan: QueryPlan, table: pa.Table, shards: int) -> dict[int, tuple[int, int]]:
    """The first and the last time of each stream, by number."""
    streams = stream_numbers(plan.matching)
    bits = MatchBits.of(plan.wanted, streams=len(streams), shards=shards)
    number, at = bits.read(STREAM, table), table[rows.EVENT_TIME].to_numpy()
    return {
        int(each): (int(at[number == each].min()), int(at[number == each].max()))
        for each in np.unique(number)
    }
