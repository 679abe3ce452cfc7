"""Queries run as Spark would run them, without Spark: matching in Python, real blobs and processors."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.tws_tester import TwsTester

from quadweir import rows
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ConstructForm
from quadweir.optimize.pipeline import optimize
from quadweir.plan.describe import second_shards, shards_used
from quadweir.plan.query import QueryPlan, plan_query
from quadweir.runtime.bounded import ShardSpec
from quadweir.runtime.exchange import BLOB, SHARD_KEY, Packer
from quadweir.runtime.matching import (
    BITS,
    END,
    HASH,
    SHARD,
    STREAM,
    VALUES,
    bit_columns,
    stream_numbers,
)
from quadweir.runtime.processor import ShardProcessor, Timing
from quadweir.sources.streamfiles import Element
from quadweir.syntax.read import parse
from quadweir.terms import IRI, Quad, parse_term
from quadweir.testing import Answer
from quadweir.testing.elements import distinct_triples
from quadweir.testing.oracle import of_stream
from quadweir.testing.shards import scoped_static
from streaming import quads


def spec_of(
    text: str, *, static: Sequence[Quad] = (), streams: Sequence[str] = ("urn:s", "urn:t")
) -> ShardSpec:
    query = optimize(parse(text, allow=("FROM",))).query
    dataset = Dataset.of(scoped_static(static))
    plan = plan_query(query, static=dataset, streams=tuple(streams))
    return ShardSpec(plan, dataset, tuple(streams))


def matched(plan: QueryPlan, elements: Iterable[Element], shards: int) -> pa.RecordBatch:
    """What `match_statements` gives, found by going through the tests one by one."""
    streams = stream_numbers(plan)
    bits = bit_columns(len(plan.wanted))
    table: list[tuple[object, ...]] = []
    for element in elements:
        if element.stream not in streams:
            continue
        # What an element says twice is there twice.
        for quad in (*distinct_triples(element), *element.triples[:1]):
            triple = of_stream(quad, IRI(element.stream))
            terms = (triple.subject, triple.predicate, triple.object)
            passed = [0] * len(bits)
            for number, test in enumerate(plan.wanted):
                if test.stream == element.stream and test.passes(terms):
                    passed[number // BITS] |= 1 << (number % BITS)
            spelled = [str(term) if any(passed) else None for term in terms]
            table.append(
                (
                    streams.index(element.stream),
                    element.event_time,
                    element.position,
                    *passed,
                    *spelled,
                    zlib.crc32(str(triple).encode()),
                    *(zlib.crc32((each or "").encode()) % shards for each in spelled),
                )
            )
    names = [
        STREAM,
        rows.EVENT_TIME,
        rows.POSITION,
        *bits,
        *VALUES,
        HASH,
        *(f"{SHARD}{place}" for place in range(3)),
    ]
    columns = list(zip(*table, strict=True)) if table else [()] * len(names)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(column, pa.string() if name in VALUES else pa.int64())
            for column, name in zip(columns, names, strict=True)
        ],
        names=names,
    )


def blobs_of(
    plan: QueryPlan, elements: Sequence[Element], shards: int, *, tasks: int = 1
) -> dict[int, pa.Table]:
    """What the tasks of one batch send to each shard."""
    packer = Packer.of(plan, tuple(range(shards)))
    packed = pa.Table.from_batches(
        [
            batch
            for task in range(tasks)
            for batch in packer([matched(plan, elements[task::tasks], shards)])
        ]
    )
    return {key: packed.filter(pc.equal(packed.column(SHARD_KEY), key)) for key in range(shards)}


def _through(tester: TwsTester, given: dict[int, list[bytes]]) -> Iterator[dict[str, Any]]:
    for key, blobs in given.items():
        yield from tester.testInPandas(key, pd.DataFrame({BLOB: blobs})).to_dict("records")


class Host:
    """Runs the shards of a query; it can be started again on the state that it left."""

    def __init__(
        self,
        text: str,
        *,
        static: Sequence[Quad] = (),
        streams: Sequence[str] = ("urn:s", "urn:t"),
        shards: int = 2,
        delay_ms: int = 0,
        name: str = "one",
    ) -> None:
        self.spec = spec_of(text, static=static, streams=streams)
        self.shards = shards_used(self.spec.plan, shards)
        timing = Timing(dict.fromkeys(streams, delay_ms), {})
        plan = self.spec.plan
        stages = [self.spec]
        if plan.key.cut is not None:
            stages = [*self.spec.stages(tuple(range(second_shards(plan, shards))))]
        self.testers = [
            TwsTester(ShardProcessor(f"{name}.{stage.stage}", stage, timing)) for stage in stages
        ]
        self.answers: list[Answer] = []
        self.late = 0
        self.replayed = 0

    def push(self, elements: Sequence[Element], *, tasks: int = 1) -> None:
        tables = blobs_of(self.spec.plan, elements, self.shards, tasks=tasks)
        given = {key: table.column(BLOB).to_pylist() for key, table in tables.items()}
        for tester in self.testers[:-1]:
            sent: dict[int, list[bytes]] = {}
            for row in _through(tester, given):
                if row[BLOB] is None:
                    self.count(row)
                else:
                    sent.setdefault(int(row[SHARD_KEY]), []).append(row[BLOB])
            given = sent
        for row in _through(self.testers[-1], given):
            self.take(row)

    def count(self, row: dict[str, Any]) -> None:
        self.late += int(row["late"])
        self.replayed += int(row["replayed"])

    def take(self, row: dict[str, Any]) -> None:
        if row[rows.SIGN] is None:
            self.count(row)
            return
        bound = {
            variable.name: parse_term(row[f"v{place}"])
            for place, variable in enumerate(self.spec.shape.variables)
            if row[f"v{place}"] is not None
        }
        assert not isinstance(self.spec.plan.query.form, ConstructForm)
        self.answers.append(Answer.of(int(row[rows.REPORT]), row[rows.SIGN], bound))

    def finish(self) -> None:
        self.push([Element(END, 0, 0, quads("a p b"))])

    def log(self, key: int = 0) -> list[int]:
        return sorted(number for (number,) in self.testers[0].peekMapState("log", key))

    def snapshot_parts(self, key: int = 0) -> int:
        return len(self.testers[0].peekMapState("snapshot", key))
