"""Sinks that keep the columns of answers and their types: Parquet, Delta Lake, tables, memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from quadweir.errors import EnvironmentProblem
from quadweir.sinks.base import Batch, Sink, SinkNeeds
from quadweir.sinks.memory import MemorySink
from quadweir.sinks.oncefolder import OnceFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NOT_FOUND: Final = "DATA_SOURCE_NOT_FOUND"


@final
@dataclass(frozen=True, slots=True)
class ParquetSink(Sink):
    """Writes Parquet files `BATCH-PART.parquet` into one folder.

    Guarantee: exactly once.

    Attributes:
        folder: a folder on a disk that driver and executors share; it belongs to one query.
    """

    folder: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", OnceFolder.of(self.folder).path)

    @property
    def needs(self) -> SinkNeeds:
        return SinkNeeds(reads_all=True)

    def prepare(self) -> None:
        OnceFolder(self.folder).prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        output = OnceFolder(self.folder)
        if output.is_decided(batch):
            # The files exist, but the state does not: Spark writes it as it computes the rows.
            frame.write.format("noop").mode("overwrite").save()

        def write(folder: Path) -> None:
            frame.write.mode("overwrite").parquet(str(folder.absolute()))

        output.publish(write, batch, suffix=".parquet", is_empty=_is_empty)


def _is_empty(part: Path) -> bool:
    return bool(pq.read_metadata(part).num_rows == 0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableSink(Sink):
    """Appends rows to a table, or to a Delta Lake folder.

    Guarantee: exactly once with `delta`, which notes the number of the batch with the rows;
    otherwise at least once.

    Attributes:
        form: the format of the table, a data source of Spark's; None for that of an existing table,
            and Spark's default for a new one.
        table: the name of the table.
        path: the folder or URI, if there is no name.
        options: options of the data source.
    """

    form: str | None = None
    table: str | None = None
    path: str | None = None
    options: dict[str, str] = field(default_factory=dict)

    @property
    def needs(self) -> SinkNeeds:
        return SinkNeeds(reads_all=True, wants_empty=False)

    def prepare(self) -> None:
        if self.form is not None:
            check_format(self.form)

    def write(self, frame: DataFrame, batch: Batch) -> None:
        writer = frame.write.mode("append").options(**self.options)
        if self.form is not None:
            writer = writer.format(self.form)
        if self.form == "delta":
            writer = writer.option("txnAppId", batch.query).option("txnVersion", str(batch.number))
        if self.table is not None:
            writer.saveAsTable(self.table)
        else:
            writer.save(self.path)


def check_format(name: str) -> None:
    """Check that Spark has a data source.

    Raises:
        EnvironmentProblem: it has not.
    """
    from pyspark.sql import SparkSession

    spark = SparkSession.active()
    try:
        spark.read.format(name).load("/quadweir/no-such-place")
    except (PySparkException, Py4JJavaError) as error:
        # Python knows no class for this exception of Java's.
        if _NOT_FOUND not in str(error):
            return  # It is there, and says that there is nothing to read.
        raise EnvironmentProblem(
            f"Spark has no data source {name!r}",
            hint="Add its jar to the session (spark.jars.packages), or choose another format."
            if name != "delta"
            else "Start the session with Delta Lake (delta-spark), or choose parquet.",
        ) from error


@final
class MemoryTable(Sink):
    """Keeps the last rows as a temporary view of a session, as Spark's memory sink does.

    Guarantee: each row once while the program runs; nothing is kept after that.

    Args:
        spark: the session.
        name: the name of the view.
        most_rows: how many rows are kept.
    """

    def __init__(self, spark: SparkSession, name: str, most_rows: int = 10_000) -> None:
        self._spark = spark
        self._name = name
        self._rows = MemorySink(most_rows)

    def write(self, frame: DataFrame, batch: Batch) -> None:
        self._rows.write(frame, batch)
        kept = self._rows.to_frame(self._spark)
        if kept is not None:
            kept.createOrReplaceTempView(self._name)

    def rows(self) -> list[object]:
        """Return the rows kept now, oldest first."""
        return list(self._rows.rows())
