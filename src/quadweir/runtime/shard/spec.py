"""What the shards of a query are made from, in whatever process they run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa

from quadweir.algebra.render import render
from quadweir.kernel.shard import Shard
from quadweir.kernel.staticrelations import ShardShare, StaticSource
from quadweir.plan.query import QueryPlan
from quadweir.plan.shapes import answer_variables
from quadweir.runtime.answers import AnswerForm
from quadweir.runtime.match.matched import NarrowPacker, matched_rows
from quadweir.runtime.shard.base import Counts, Job
from quadweir.runtime.shard.clock import StreamTiming
from quadweir.runtime.shard.facts import QUERY_FACTS, Fold
from quadweir.runtime.shard.functions import install_functions
from quadweir.runtime.shard.hosted import HostedShard
from quadweir.runtime.wire.changes import ChangeReceiver, ChangeSender
from quadweir.runtime.wire.deadletters import LETTER
from quadweir.runtime.wire.pack import Packer
from quadweir.runtime.wire.unpack import Unpacker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

ANSWER_METRICS: Final = "quadweir_answers"
"""The name in Spark's progress of the facts of the last stage."""
STAGE_METRICS: Final = "quadweir_stage_"
"""With a number, the name in Spark's progress of the facts of each earlier stage."""


@final
@dataclass(frozen=True)
class ShardSpec:
    """What a worker needs to make a shard of one stage of a query: `base.StageSpec`.

    Attributes:
        plan: the plan of the query.
        static: the static data.
        static_digest: names the static data.
        timing: delays and idle times of the streams.
        stage: the place of the stage in the plan.
        shards: the shuffle keys of the shards of this stage, in their order.
        keys: the shuffle keys of the next stage; none in the last.
        letters: whether to write dead letters about late statements.
        functions: the registered functions that the query calls, packed.
    """

    plan: QueryPlan
    static: StaticSource
    static_digest: str = ""
    timing: StreamTiming = field(default_factory=StreamTiming)
    stage: int = 0
    shards: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    letters: bool = False
    functions: bytes = b""

    def __getstate__(self) -> dict[str, object]:
        # A worker gets only what a shard needs: Spark sends what is larger than a megabyte in another
        # way, which its driver worker for streams does not have.
        return {**self.__dict__, "plan": self.plan.for_shards()}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        install_functions(self.functions)

    @property
    def answer_form(self) -> AnswerForm:
        """The columns of the answers."""
        return AnswerForm.of(self.plan.query, answer_variables(self.plan.query))

    @property
    def receives(self) -> bool:
        """Whether its input comes from the stage before."""
        return self.stage > 0

    @property
    def sends(self) -> bool:
        return self.stage < len(self.plan.stages) - 1

    @property
    def output(self) -> StructType:
        return self.writer.schema

    @property
    def facts(self) -> Mapping[str, Fold]:
        return QUERY_FACTS

    def stages(self, keys: Sequence[tuple[int, ...]]) -> list[ShardSpec]:
        """Return the stages of the query; `keys` are the shuffle keys of each."""
        return [
            replace(self, stage=place, shards=own, keys=then)
            for place, (own, then) in enumerate(zip(keys, (*keys[1:], ()), strict=True))
        ]

    def host(self, key: int | None) -> HostedShard:
        return HostedShard(self, key)

    def counted(self, batches: Sequence[pa.RecordBatch]) -> Counts:
        rows_of = sum(each.num_rows for each in batches)
        letters = sum(len(each) - each.column(LETTER).null_count for each in batches)
        return Counts(rows_of - letters, letters)

    def grow(self, parts: Iterable[Any]) -> None:
        """A single query stays as it is."""

    def share(self, key: int | None) -> ShardShare | None:
        """Return which part of static data the shard of a shuffle key has; None for all of it."""
        if len(self.shards) < 2 or key is None:
            return None
        return ShardShare(self.shards.index(key), len(self.shards))

    def make(self, key: int | None = None) -> Shard:
        """Make the shard of a shuffle key; None if no rows go to it."""
        program = self.plan.stages[self.stage].program
        return Shard(program, static=self.static, records=False, share=self.share(key))

    def reader(self, shard: Shard) -> Unpacker | ChangeReceiver:
        """Return what turns blobs into the shard's events."""
        if self.receives:
            return ChangeReceiver()
        return Unpacker(shard, self.plan.wanted, letters=self.letters)

    @property
    def writer(self) -> AnswerForm | ChangeSender:
        """What packs the output of the shard."""
        return self.sender if self.sends else self.answer_form

    @property
    def sender(self) -> ChangeSender:
        """What packs changes for the shards of the next stage."""
        sent = self.plan.stages[self.stage].program.sent
        assert sent is not None, "a stage before the last says what it sends"
        return ChangeSender(
            self.keys, sent.variables.index(sent.key) if sent.key is not None else None
        )

    def job(self, statements: DataFrame, *, shards: int, tag: str = "") -> Job:
        """Return the job that answers the query over statements.

        Args:
            statements: rows of `rows.STATEMENT_SCHEMA` of all streams of the query. Rows that have a
                reason as well are dead letters, and leave as such.
            shards: how many shards to use, if the plan can be sharded.
            tag: makes the names of its metrics differ from those of others in the same run.
        """
        plan = self.plan
        text = f"{render(plan.query)}\n{self.static_digest}"
        before = range(1, len(plan.stages))
        names = (*(f"{STAGE_METRICS}{place}" for place in before), ANSWER_METRICS)
        return Job(
            name=hashlib.sha256(text.encode()).hexdigest(),
            counts=tuple(plan.shards(shards)),
            rows=lambda count: matched_rows(statements, plan.matching, count),
            packer=lambda keys, clock: NarrowPacker(Packer.of(plan.matching, keys, clock=clock)),
            stages=self.stages,
            metrics=tuple(name + tag for name in names),
            has_padding=True,
        )
