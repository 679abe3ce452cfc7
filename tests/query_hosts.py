"""Queries run as Spark would run them, without Spark: matching in Python, real blobs and processors."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.tws_tester import TwsTester

from laid_out import LaidOut
from quadweir import rows
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import static_dataset
from quadweir.algebra.functions import default_context
from quadweir.algebra.query import ConstructForm, ContinuousQuery
from quadweir.algebra.scalar import holds
from quadweir.kernel.build import facts_of, relation_of
from quadweir.kernel.staticrelations import Loaded
from quadweir.kernel.xxhash import shard_numbers
from quadweir.optimize.pipeline import optimize
from quadweir.plan.facts import StaticFacts
from quadweir.plan.matchtests import MatchTest
from quadweir.plan.nodes import StaticRelation
from quadweir.plan.program import program_of
from quadweir.plan.query import QueryPlan, plan_query
from quadweir.runtime.host import stateprocessor
from quadweir.runtime.host.bounded import BoundedTask
from quadweir.runtime.host.stateprocessor import HostingProcessor
from quadweir.runtime.match.bits import REPORTS_TIME, STREAM, Field, MatchBits, shard_by
from quadweir.runtime.match.rowform import END, HASH, VALUES, stream_numbers
from quadweir.runtime.shard.clock import StreamTiming
from quadweir.runtime.shard.hosted import HostedShard
from quadweir.runtime.shard.spec import ShardSpec
from quadweir.runtime.wire import pack as exchange
from quadweir.runtime.wire.pack import BLOB, FIRST_TIME, SHARD_KEY, Packer
from quadweir.sources.streamfiles import Element
from quadweir.syntax.read import parse
from quadweir.terms import IRI, Quad, Term, Variable, parse_term
from quadweir.testing import Answer
from quadweir.testing.scoping import fill, of_stream
from quadweir.testing.shards import scoped_static
from streaming import quads


def spec_of(
    asked: str | ContinuousQuery,
    *,
    static: Sequence[Quad] = (),
    streams: Sequence[str] = ("urn:s", "urn:t"),
    folder: Path | None = None,
    shards: int | None = None,
    like: str = "",
) -> ShardSpec:
    parsed = parse(asked, allow=("FROM",)) if isinstance(asked, str) else asked
    query = optimize(parsed).query
    facts, source = facts_over(query, static, streams)
    plan = plan_query(query, streams=tuple(streams), facts=facts, shards=shards, like=like)
    # As a run over files does: it looks values up before it plans.
    plan = plan.resolved(lambda relation, variable: values_in(source, relation, variable))
    held = source if folder is None else LaidOut.of(query, static, folder)
    reported = "".join(sorted(map(str, static)))
    digest = hashlib.sha256(reported.encode()).hexdigest() if static else ""
    return ShardSpec(plan, held, digest)


def facts_over(
    query: ContinuousQuery, static: Sequence[Quad], streams: Sequence[str]
) -> tuple[StaticFacts, Loaded]:
    """Count what a query finds in static data; gives the data as the query sees it, too."""
    source = Loaded(static_dataset(query, Dataset.of(scoped_static(static))))
    return facts_of(program_of(query, streams=streams), source), source


def values_in(source: Loaded, relation: StaticRelation, variable: Variable) -> tuple[str, ...]:
    """List the values of a variable in a static relation."""
    found = relation_of(relation, source)
    codes = np.unique(found.codes[found.variables.index(variable)])
    return tuple(found.terms.take(pa.array(codes[codes >= 0])).to_pylist())


def passes(test: MatchTest, terms: Sequence[Term | None]) -> bool:
    """Whether a quad of the test's stream passes it, without entailment."""
    if test.is_named and terms[3] is None:
        return False
    return all(
        constant is None or constant == term
        for constant, term in zip(test.constants, terms, strict=True)
    ) and all(terms[one] == terms[other] for one, other in test.equal)


Asked = Mapping[Variable, Callable[[str], bool]]
"""Whether some query asks for a term, for each parameter of templates."""


def is_of_use(
    test: MatchTest,
    terms: Sequence[Term | None],
    *,
    fixed: bool,
    asked: Asked = MappingProxyType({}),
) -> bool:
    """Tell what the conditions of a test say; what static data has, only where that is fixed."""
    if not test.conditions:
        return True
    for parts, condition in test.conditions:
        placed = [(name, terms[part]) for name, part in parts if isinstance(part, int)]
        bound = {name: term for name, term in placed if term is not None}
        if (
            all(
                holds(each, bound, default_context(), lambda *_: False)
                for each in condition.expressions
            )
            and not any(
                parameter in asked and not asked[parameter](str(bound[variable]))
                for variable, parameter in condition.parameters
            )
            and not (
                fixed
                and any(str(bound[variable]) not in values for variable, values in condition.values)
            )
        ):
            return True
    return False


def matched(
    plan: QueryPlan,
    elements: Iterable[Element],
    shards: int,
    reported: Mapping[str, int] = MappingProxyType({}),
    *,
    fixed: bool = False,
    asked: Asked = MappingProxyType({}),
) -> pa.RecordBatch:
    """What `match_statements` gives, found by going through the tests one by one."""
    streams = stream_numbers(plan.matching)
    bits = MatchBits.of(plan.wanted, streams=len(streams), shards=shards)
    keys = [each.key for each in plan.wanted if each.key is not None and shards > 1]
    table: list[tuple[object, ...]] = []

    def words(passed: Iterable[bool], fields: Mapping[Field, int]) -> list[int]:
        masks = bits.masks(passed)
        found = [masks.get(name, 0) for name in bits.names]
        for field, (word, shift, _) in bits.places.items():
            found[word] |= fields.get(field, 0) << shift
        return found

    for element in elements:
        if element.stream not in streams:
            continue
        # What an element says twice is there twice.
        for each in (*dict.fromkeys(element.quads), *element.quads[:1]):
            quad = of_stream(each, IRI(element.stream))
            terms = (quad.subject, quad.predicate, quad.object, quad.graph)
            passed = [
                test.stream == element.stream
                and passes(test, terms)
                and is_of_use(test, terms, fixed=fixed, asked=asked)
                for test in plan.wanted
            ]
            spelled = [str(term) if any(passed) and term is not None else None for term in terms]
            sent = [each if isinstance(each, str) else spelled[each] or "" for each in keys]
            numbers = shard_numbers(pa.array(sent, pa.string()), shards).tolist()
            fields = dict(zip(map(shard_by, keys), numbers, strict=True))
            fields[STREAM] = streams.index(element.stream)
            table.append(
                (
                    element.event_time,
                    element.position,
                    *words(passed, fields),
                    *spelled,
                    zlib.crc32(str(replace(quad, graph=None)).encode()),
                )
            )
    table += [
        (through, 0, *words([], {REPORTS_TIME: 1, STREAM: streams.index(each)}), *[None] * 4, 0)
        for each, through in reported.items()
    ]
    names = [rows.EVENT_TIME, rows.POSITION, *bits.names, *VALUES, HASH]
    columns = list(zip(*table, strict=True)) if table else [()] * len(names)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(column, pa.string() if name in VALUES else pa.int64())
            for column, name in zip(columns, names, strict=True)
        ],
        names=names,
    )


def blobs_of(
    plan: QueryPlan,
    elements: Sequence[Element],
    shards: int,
    *,
    tasks: int = 1,
    reported: Mapping[str, int] = MappingProxyType({}),
) -> dict[int, pa.Table]:
    """What the tasks of one batch send to each shard."""
    packer = Packer.of(plan.matching, tuple(range(shards)))
    packed = pa.Table.from_batches(
        [
            batch
            for task in range(tasks)
            for batch in packer([matched(plan, elements[task::tasks], shards, reported)])
        ]
    )
    return {key: packed.filter(pc.equal(packed.column(SHARD_KEY), key)) for key in range(shards)}


class Direct:
    """Shards of a stage without any processor around them; each can be saved and brought back."""

    def __init__(self, spec: ShardSpec, timing: StreamTiming) -> None:
        self._make = lambda key: HostedShard(replace(spec, timing=timing), key)
        self._hosted: dict[int, HostedShard] = {}
        self._steps = 0

    def run(self, key: int, blobs: list[bytes]) -> list[dict[str, Any]]:
        self._steps += 1
        hosted = self._hosted.get(key) or self._hosted.setdefault(key, self._make(key))
        return [
            row for batch in hosted.take(blobs, f"{self._steps}", 0) for row in batch.to_pylist()
        ]

    def restart(self) -> None:
        self.take_up(self)

    def take_up(self, left: Direct | Tested) -> None:
        """Go on where another one stopped."""
        assert isinstance(left, Direct)
        for key, before in list(left._hosted.items()):
            self._hosted[key] = after = self._make(key)
            after.restore(before.snapshot())
            after.resume(before.note())


class Tested:
    """A stage under Spark's tester of processors."""

    def __init__(self, name: str, spec: ShardSpec, timing: StreamTiming) -> None:
        # Over other static data it has another name, if there is any.
        own = f"{name}.{spec.stage}" + (f".{spec.static_digest}" if spec.static_digest else "")
        self.tester = TwsTester(HostingProcessor(own, replace(spec, timing=timing)))
        self._keys: set[int] = set()

    def run(self, key: int, blobs: list[bytes]) -> list[dict[str, Any]]:
        self._keys.add(key)
        found = self.tester.testInPandas(key, pd.DataFrame({BLOB: blobs}))
        rows_of: list[dict[str, Any]] = found.to_dict("records")
        return rows_of

    def restart(self) -> None:
        stateprocessor._COPIES.clear()

    def state(self) -> dict[int, dict[Any, Any]]:
        """What the stage keeps for each of its shards."""
        return {key: dict(self.tester.peekMapState("kept", key)) for key in self._keys}

    def take_up(self, left: Direct | Tested | Mapping[int, dict[Any, Any]]) -> None:
        """Go on where another one stopped, or as a state was."""
        assert not isinstance(left, Direct)
        for key, kept in (left.state() if isinstance(left, Tested) else left).items():
            self._keys.add(key)
            self.tester.updateMapState("kept", key, kept)


def run_bounded(
    asked: str,
    elements: Sequence[Element],
    *,
    tasks: int,
    shards: int,
    static: Sequence[Quad] = (),
) -> list[Answer]:
    """Answer a query over all of its streams as a bounded run does, a few elements to a blob."""
    spec = spec_of(asked, static=static)
    plan = spec.plan
    counts = plan.shards(shards)
    count = counts[0]
    packer = Packer.of(plan.matching, tuple(range(count)))
    with mock.patch.object(exchange, "MOST_BYTES", 1):
        blobs = pa.Table.from_batches(
            [
                batch
                for task in range(tasks)
                for batch in packer(
                    matched(plan, elements[start : start + 5 * tasks : tasks], count, fixed=True)
                    for start in range(task, len(elements), 5 * tasks)
                )
            ]
        )
    for stage in spec.stages([tuple(range(each)) for each in counts]):
        found = []
        for shard in stage.shards:
            mine = blobs.filter(pc.equal(blobs.column(SHARD_KEY), shard)).sort_by(FIRST_TIME)
            found += BoundedTask(stage)(mine.combine_chunks().to_batches())
        blobs = pa.Table.from_batches(found)
    host = Host(asked)
    for row in blobs.to_pylist():
        host.take(row)
    return host.answers


def read_answer(spec: ShardSpec, row: Mapping[str, Any], salt: str) -> list[Answer]:
    """What a row that a shard gives says; a CONSTRUCT's may be of no triple."""
    bound = {
        variable.name: parse_term(row[f"v{place}"])
        for place, variable in enumerate(spec.answer_form.variables)
        if row[f"v{place}"] is not None
    }
    t, sign, form = int(row[rows.REPORT]), row[rows.SIGN], spec.plan.query.form
    if not isinstance(form, ConstructForm):
        return [Answer.of(t, sign, bound)]
    graph = fill(form, bound, salt)
    return [Answer(t, sign, graph=graph)] if graph else []


class Host:
    """Runs the shards of a query; it can be started again on the state that it left."""

    def __init__(
        self,
        asked: str | ContinuousQuery,
        *,
        static: Sequence[Quad] = (),
        streams: Sequence[str] = ("urn:s", "urn:t"),
        shards: int = 2,
        delay_ms: int = 0,
        name: str = "one",
        direct: bool = False,
        reported: frozenset[str] = frozenset(),
        folder: Path | None = None,
    ) -> None:
        self._asked = asked
        self._streams, self._folder = streams, folder
        self._timing = StreamTiming(dict.fromkeys(streams, delay_ms), {}, reported)
        self._name = None if direct else name
        self._most = shards
        self._turns = 0
        self._start(static)
        self.answers: list[Answer] = []
        self.late = 0
        self.replayed = 0
        self.through: int | None = None

    def _start(self, static: Sequence[Quad], *, like: str = "") -> None:
        spec = spec_of(
            self._asked,
            static=static,
            streams=self._streams,
            folder=self._folder,
            shards=self._most,
            like=like,
        )
        counts = spec.plan.shards(self._most)
        stages = spec.stages([tuple(range(each)) for each in counts])
        self.shards, self.spec = counts[0], stages[0]
        self.stages: list[Direct | Tested] = [
            Direct(stage, self._timing)
            if self._name is None
            else Tested(self._name, stage, self._timing)
            for stage in stages
        ]

    def reload(self, static: Sequence[Quad]) -> bool:
        """Go on with other static data; tells whether that can be."""
        plan, stages = self.spec.plan, self.stages
        if self._folder is not None:
            self._folder = self._folder / "again"
            self._folder.mkdir()
        self._start(static, like=plan.layout)
        if self.spec.plan.held != plan.held:
            return False
        for now, before in zip(self.stages, stages, strict=True):
            now.take_up(before)
        return True

    def push(
        self,
        elements: Sequence[Element],
        *,
        tasks: int = 1,
        reported: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        tables = blobs_of(self.spec.plan, elements, self.shards, tasks=tasks, reported=reported)
        given = {key: table.column(BLOB).to_pylist() for key, table in tables.items()}
        for stage in self.stages[:-1]:
            sent: dict[int, list[bytes]] = {}
            for key, blobs in given.items():
                for row in stage.run(key, blobs):
                    if row[BLOB] is None:
                        self.count(row)
                    else:
                        sent.setdefault(int(row[SHARD_KEY]), []).append(row[BLOB])
            # Their order does not matter.
            self._turns += 1
            given = {key: blobs[:: -1 if self._turns % 2 else 1] for key, blobs in sent.items()}
        for key, blobs in given.items():
            for row in self.stages[-1].run(key, blobs):
                self.take(row)

    def restart(self) -> None:
        """Start again from the state that is there."""
        for stage in self.stages:
            stage.restart()

    def count(self, row: dict[str, Any]) -> None:
        self.late += int(row["late"])
        self.replayed += int(row["replayed"])
        self.through = int(row["through"])

    def take(self, row: dict[str, Any]) -> None:
        if row[rows.SIGN] is None:
            self.count(row)
            return
        self.answers += read_answer(self.spec, row, f"{len(self.answers)}")

    def finish(self) -> None:
        self.push([Element(END, 0, 0, quads("a p b"))])

    @property
    def tester(self) -> TwsTester:
        """Spark's tester of the first stage."""
        (first, *_) = self.stages
        assert isinstance(first, Tested)
        return first.tester

    def log(self, key: int = 0) -> list[int]:
        return sorted(number for (number,) in self.tester.peekMapState("kept", key) if number > 0)

    def snapshot_parts(self, key: int = 0) -> int:
        return sum(number < 0 for (number,) in self.tester.peekMapState("kept", key))
