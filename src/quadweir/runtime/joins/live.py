"""The joins of a live mapping, on the host that suits the machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, final

from quadweir.mapping.compile import Compiled, tagged_union
from quadweir.runtime.host.base import AnswerOutput, Trigger
from quadweir.runtime.host.choice import host_of_joins
from quadweir.runtime.joins.frames import join_job, pairs_of
from quadweir.runtime.joins.hosted import JOIN_OUTPUT, JoinSpec
from quadweir.runtime.mappings.live import launch_alone
from quadweir.runtime.portable.joinfile import stored_joins
from quadweir.runtime.shard.base import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quadweir.mapping.joins import JoinInput
    from quadweir.sinks.base import Sink
    from quadweir.sinks.start import RunningQuery


@final
class HostedJoins:
    """Joins the streams of one mapping; `mapping.joins.Host`.

    A mapping is compiled with it, and started with `launch`.

    Args:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._asked: dict[str, JoinInput] = {}
        self._raw: dict[str, DataFrame] = {}

    def __call__(self, asked: JoinInput) -> DataFrame:
        """Return the pairs of a join: none before its host gives them."""
        self._asked[asked.name] = asked
        raw = self._raw.get(asked.name)
        if raw is None:
            raw = self._spark.createDataFrame([], JOIN_OUTPUT)
        return pairs_of(raw, asked)

    def launch(self, compiled: Compiled, sink: Sink, checkpoint: Path) -> RunningQuery:
        """Start the Spark query of a mapping: `mapping.live_run.Launch`."""
        compiled.tagged_in_windows()  # asks for every join
        if not self._asked:
            return launch_alone(compiled, sink, checkpoint)
        host = host_of_joins(self._spark, checkpoint)
        shards = int(self._spark.conf.get("spark.sql.shuffle.partitions") or 1)
        jobs = [join_job(asked, shards) for asked in self._asked.values()]
        alone = compiled.tagged_alone()
        if alone:
            jobs.append(Job.passing_on(tagged_union(alone)))

        made = [
            job.stages([tuple(range(count)) for count in job.counts])[0]
            for job in jobs
            if job.counts
        ]
        stored_joins(
            [each for each in made if isinstance(each, JoinSpec)],
            [each.is_keyed for each in self._asked.values()],
            host.name,
        ).write(checkpoint)

        def quads(raws: Sequence[DataFrame]) -> DataFrame:
            self._raw = dict(zip(self._asked, raws, strict=False))
            return tagged_union([*compiled.tagged_in_windows(), *raws[len(self._asked) :]])

        return host.start(
            jobs, [AnswerOutput(sink, quads)], checkpoint=checkpoint, trigger=Trigger()
        )
