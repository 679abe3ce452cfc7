"""The host on a cluster: shards in Spark's executors, their state in Spark's state store."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, final

from quadweir.errors import UsageError
from quadweir.runtime.checkpoint import EXECUTORS
from quadweir.runtime.host.base import AnswerOutput, Host, Run, Trigger
from quadweir.runtime.host.scaling import begin_scaling
from quadweir.runtime.host.stateprocessor import HostingProcessor
from quadweir.runtime.shard.facts import fold_columns
from quadweir.runtime.spark.arrowbatches import counting_rows, stages_in_python
from quadweir.runtime.wire.pack import BLOB_SCHEMA, SHARD_KEY, shard_keys
from quadweir.sinks.base import Sink
from quadweir.sinks.gate import Gate
from quadweir.sinks.start import Split

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quadweir.runtime.shard.base import Job
    from quadweir.sinks.base import Batch


@final
class Executors(Host):
    """Shards in Spark's executors."""

    @property
    def name(self) -> str:
        return EXECUTORS

    def partitions(self, spark: SparkSession) -> int:
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 0)

    def frame(self, job: Job, *, run: str = "", checkpoint: Path | None = None) -> DataFrame:
        """Return the output rows of the shards as a streaming frame.

        Args:
            job: what to run; at most as many shards as Spark has shuffle partitions.
            run: identifies this run among others of the same job, such as its checkpoint.
            checkpoint: the folder of the run, if it is known.
        """
        from pyspark.sql import functions as F

        if not job.counts:
            return job.rows(0)
        rows = job.rows(job.counts[0])
        spark = rows.sparkSession
        partitions = self.partitions(spark)
        if max(job.counts) > partitions:
            raise UsageError(
                f"{max(job.counts)} shards do not fit {partitions} shuffle partitions",
                hint="Set spark.sql.shuffle.partitions to the number of shards.",
            )
        keys = [shard_keys(spark, count, partitions) for count in job.counts]
        clock = str(checkpoint.absolute() / "offsets") if checkpoint is not None else ""
        found = rows.mapInArrow(job.packer(keys[0], clock), BLOB_SCHEMA)
        for spec, metrics in zip(job.stages(keys), job.metrics, strict=True):
            if spec.stage:
                found = found.where(F.col(SHARD_KEY).isNotNull())
            identity = f"{run}\n{spec.stage}\n{job.name}"
            found = found.groupBy(SHARD_KEY).transformWithStateInPandas(
                statefulProcessor=HostingProcessor(
                    hashlib.sha256(identity.encode()).hexdigest()[:16], spec
                ),
                outputStructType=spec.output,
                outputMode="append",
                timeMode="none",
            )
            found = found.observe(metrics, *fold_columns(spec.facts))
        return found

    def start(
        self,
        jobs: Sequence[Job],
        outputs: Sequence[AnswerOutput],
        *,
        checkpoint: Path,
        trigger: Trigger,
    ) -> Run:
        run = str(checkpoint.absolute())
        raws = [self.frame(job, run=run, checkpoint=checkpoint) for job in jobs]
        if len(outputs) == 1:
            frame, sink = outputs[0].choose(raws), outputs[0].sink
        else:
            frame, sink = _split(raws, outputs)
        # Packing, and each stage: if anything else goes to Python, Spark has to count its bytes.
        own = sum(1 + len(job.counts) for job in jobs)
        is_alone = (
            all(job.has_padding for job in jobs)
            and sum(stages_in_python(raw) or 0 for raw in raws) == own
            and not sink.needs.may_use_python
        )
        gate = Gate()
        with counting_rows(frame.sparkSession, when=is_alone):
            complete = sink if sink.needs.reads_all else _Complete(sink)
            started = Run(trigger.start(frame, complete, checkpoint, gate), gate)
        begin_scaling(started, frame.sparkSession, lambda: round(time.time() * 1000))
        return started


def _split(raws: Sequence[DataFrame], outputs: Sequence[AnswerOutput]) -> tuple[DataFrame, Sink]:
    """Return the frame and the sink of several outputs, which read it in one pass."""
    (raw,) = raws

    def split(batch: DataFrame) -> list[DataFrame]:
        return [each.choose([batch]) for each in outputs]

    return raw, Split(split, [each.sink for each in outputs])


@final
class _Complete(Sink):
    """Computes all rows of a batch before another sink gets them.

    Spark writes state where rows are computed. If a sink looked only at the first rows, or skipped a
    batch that it has from before a crash, the state of that batch would not be written.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def prepare(self) -> None:
        self._sink.prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        kept = frame.persist()
        try:
            kept.count()
            self._sink.write(kept, batch)
        finally:
            kept.unpersist()
