"""Runs the code of worker processes for a query, without processes and without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import pyarrow as pa

from quadweir import rows
from quadweir.algebra.query import ContinuousQuery
from quadweir.plan.inherit import Inheritance, inherit
from quadweir.runtime.host.answerfiles import AnswerFiles, answer_file
from quadweir.runtime.host.messages import (
    Arrived,
    Forward,
    JobChange,
    ShardPlace,
    ShardReport,
    Take,
    WorkerTask,
)
from quadweir.runtime.host.worker import HeldShards
from quadweir.runtime.match.bits import MatchBits, word_of
from quadweir.runtime.match.matched import MOMENT, MOST_BITS, NarrowPacker
from quadweir.runtime.match.rowform import END
from quadweir.runtime.portable.dividing import divided
from quadweir.runtime.portable.upgrading import inherited_shards
from quadweir.runtime.shard.clock import StreamTiming
from quadweir.runtime.shard.folderjournal import read_kept, write_kept
from quadweir.runtime.wire.pack import Packer
from quadweir.sources.streamfiles import Element
from quadweir.terms import Quad
from quadweir.testing import Answer
from query_hosts import matched, read_answer, spec_of
from streaming import quads

NOW = 1_000_000


def narrowed(batch: pa.RecordBatch, bits: MatchBits) -> pa.RecordBatch:
    """What `matched.narrowed` makes of rows."""
    if bits.used > MOST_BITS:
        return batch
    word, _ = word_of(0)
    time, low = (batch.column(name).to_numpy() for name in (rows.EVENT_TIME, word))
    others = batch.drop_columns([rows.EVENT_TIME, word])
    moment = pa.array((time << bits.used) | low)
    return pa.RecordBatch.from_arrays([moment, *others.columns], [MOMENT, *others.schema.names])


def as_stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


class WorkerHost:
    """Does what the driver does, with shards that can be lost at any time."""

    def __init__(
        self,
        asked: str | ContinuousQuery,
        folder: Path,
        *,
        static: Sequence[Quad] = (),
        streams: Sequence[str] = ("urn:s", "urn:t"),
        shards: int = 2,
        delay_ms: int = 0,
        processes: int = 2,
        like: str = "",
    ) -> None:
        self._processes = processes
        self._asked, self._static, self._streams = asked, static, streams
        self._timing = StreamTiming(dict.fromkeys(streams, delay_ms), {})
        self._plan(shards, like=like)
        self.folder = folder
        self._held: list[HeldShards] = []
        self.batch = 0
        self.answers: list[Answer] = []
        self._before = 0
        self.reports: list[ShardReport] = []
        self.kept: list[dict[str, int]] = []

    def _plan(self, shards: int, *, like: str = "") -> None:
        spec = spec_of(
            self._asked, static=self._static, streams=self._streams, shards=shards, like=like
        )
        self.spec = replace(spec, timing=self._timing)
        self._most = shards
        plan = self.spec.plan
        counts = plan.shards(shards)
        self.shards = counts[0]
        self._stages = self.spec.stages([tuple(range(each)) for each in counts])
        self.spec = self._stages[0]
        self._packer = Packer.of(plan.matching, self.spec.shards)

    def reshard(self, shards: int) -> None:
        """Stop, divide the state among so many shards as `quadweir checkpoint` does, and go on."""
        self.lose()
        kept = [
            [read_kept(self.folder / f"{spec.stage}-{key}", self.batch) for key in spec.shards]
            for spec in self._stages
        ]
        before = self.spec.plan
        # One shard needs no key; more of them may have one.
        self._plan(shards, like=before.layout if self._most > 1 else "")
        self.folder = self.folder / "again"
        found = divided(before, self.spec.plan, kept, self.spec.plan.shards(shards))
        for spec, stage in zip(self._stages, found, strict=True):
            for key, each in zip(spec.shards, stage, strict=True):
                write_kept(self.folder / f"{spec.stage}-{key}", each)

    def upgrade(self, asked: ContinuousQuery) -> Inheritance:
        """Stop, take another query over the same state, and go on; say what is kept."""
        self.lose()
        kept = [read_kept(self.folder / f"0-{key}", self.batch) for key in self._stages[0].shards]
        before, self._asked = self.spec.plan, asked
        self._plan(self._most, like=before.layout)
        after = self.spec.plan
        self.folder = self.folder / "upgraded"
        inherited = inherit(before, after)
        found = inherited_shards(before, after, inherited, kept, after.shards(self._most))
        for spec, stage in zip(self._stages, found, strict=True):
            for key, each in zip(spec.shards, stage, strict=True):
                write_kept(self.folder / f"{spec.stage}-{key}", each)
        return inherited

    def _work(self, number: int) -> WorkerTask:
        places = [
            tuple(
                ShardPlace(key, spec, str(self.folder / f"{spec.stage}-{key}"))
                for key in spec.shards[number :: self._processes]
            )
            for spec in self._stages
        ]
        answers = str(answer_file(self.folder, 0, number))
        return WorkerTask(0, tuple(places), NarrowPacker(self._packer), answers)

    def push(self, elements: Sequence[Element]) -> None:
        """Take a batch."""
        self._before = len(self.answers)
        if not self._held:
            self._held = [
                HeldShards(self._work(number), self.batch) for number in range(self._processes)
            ]
        batch = narrowed(matched(self.spec.plan, elements, self.shards), self._packer.bits)
        arrived = Arrived(inline=as_stream(batch))
        request = Take(self.batch, NOW, arrived, (JobChange(),))
        self.reports = [report for each in self._held for report in each.take(request)]
        for stage in self._stages[1:]:
            sent: list[list[bytes]] = [[] for _ in stage.shards]
            for key, blob in (pair for each in self.reports for pair in each.sent):
                sent[key].append(blob)
            parts = [sent[number :: self._processes] for number in range(self._processes)]
            pairs = zip(self._held, parts, strict=True)
            self.reports = [
                report
                for each, part in pairs
                for report in each.forward(Forward(0, stage.stage, self.batch, part))
            ]
        self.kept = [facts for each in self._held for facts in each.keep(self.batch)]
        count = min(self._processes, len(self._stages[-1].shards))
        files = [str(answer_file(self.folder, 0, number)) for number in range(count)]
        found = AnswerFiles(tuple(files)).read(range(count))
        rows_of = [row for each in found for row in each.to_pylist()]
        assert sum(each.counts.answers for each in self.reports) == len(rows_of)
        for row in rows_of:
            self.answers += read_answer(self.spec, row, f"{len(self.answers)}")
        self.batch += 1

    def lose(self, *, again: bool = False) -> None:
        """Lose what is in memory; with the last batch to be taken again, its answers too."""
        for each in self._held:
            each.close()
        self._held = []
        if again:
            self.batch -= 1
            del self.answers[self._before :]

    def finish(self) -> None:
        self.push([Element(END, 0, 0, quads("a p b"))])
        self.lose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.lose()
