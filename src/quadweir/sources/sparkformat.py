"""The data source `quadweir-stream`: stream files as rows of statements, for anyone who has Spark.

    spark.read.format("quadweir-stream").load("doors.stream")
    spark.readStream.format("quadweir-stream").load("doors")

Unlike the engine's own reader (`filesource.py`), it needs no column expressions after it, so that
SQL can begin with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, InputPartition

from quadweir import rows
from quadweir.errors import DataError, SourceError, UsageError
from quadweir.paths import as_path
from quadweir.sources.declare import Format
from quadweir.sources.fileplan import PARSED, FilePlan
from quadweir.sources.filesource import BoundedReader, WatchingReader
from quadweir.sources.parsedlines import parsed_lines
from quadweir.sources.streamfiles import guess_form
from quadweir.times import as_duration, as_instant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME: Final = "quadweir-stream"
_FORMATS: Final = (Format.TIMED_LINES, Format.TIMED_GRAPHS, Format.TIMED_FILES)
_STATEMENT: Final = pa.schema([PARSED.field(name) for name in (*rows.ELEMENT, *rows.TERMS)])


class LineMode(StrEnum):
    """What becomes of a line that is no statement, in the words of Spark's own text sources."""

    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"
    FAILFAST = "FAILFAST"


@final
@dataclass(frozen=True, slots=True)
class StatementPlan:
    """A plan to read stream files as rows of statements."""

    files: FilePlan
    mode: LineMode

    @staticmethod
    def of(options: Mapping[str, str]) -> StatementPlan:
        """Return the plan for the options of a reader.

        Raises:
            UsageError: an option is missing or wrong.
        """
        if "path" not in options:
            raise UsageError(f"{NAME} needs a path", hint='Write .load("FILE OR FOLDER").')
        path = as_path(options["path"]).absolute()
        step = as_duration(options["step"]) if "step" in options else None
        most = options.get("maxFilesPerTrigger")
        try:
            mode = LineMode(options.get("mode", LineMode.PERMISSIVE).upper())
            form = options.get("format") or str(guess_form(path, step=step))
            written = Format(form)
        except ValueError as error:
            raise UsageError(str(error), hint="Choose one of the documented values.") from None
        except SourceError:
            written = Format.TIMED_LINES  # Nothing is there yet.
        if written not in _FORMATS:
            raise UsageError(
                f"{NAME} does not read {written}", hint=f"Choose {', '.join(_FORMATS)}."
            )
        return StatementPlan(
            FilePlan(
                path=str(path),
                stream=options.get("stream") or path.as_uri(),
                format=written,
                pattern=options.get("pattern", "*"),
                start=as_instant(options.get("start", "0")),
                step_ms=step // timedelta(milliseconds=1) if step is not None else None,
                predicate=options.get("predicate"),
                max_files_per_batch=int(most) if most is not None else None,
                index=options.get("index"),
                roots=(str(path),) if path.is_dir() else None,
            ),
            mode,
        )

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return PARSED if self.mode is LineMode.PERMISSIVE else _STATEMENT

    def rows(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the files of a partition."""
        for batch in self.files.read(partition.value):
            found = batch
            if self.files.format is Format.TIMED_LINES:
                found = parsed_lines(batch, self.files.stream)
            if self.mode is LineMode.PERMISSIVE:
                yield found
                continue
            reasons = found.column(rows.REASON)
            if self.mode is LineMode.FAILFAST and reasons.null_count < len(reasons):
                bad = found.filter(reasons.is_valid()).slice(0, 1).to_pylist()[0]
                raise DataError(f"{bad[rows.SOURCE]}, {bad[rows.PLACE]}: {bad[rows.REASON]}")
            yield found.filter(pc.is_null(reasons)).select(_STATEMENT.names)


class StreamFormat(DataSource):
    """The Spark data source `quadweir-stream`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(StatementPlan.of(self.options).schema)

    def reader(self, schema: Any) -> BoundedReader:
        del schema
        return _Bounded(StatementPlan.of(self.options))

    def streamReader(self, schema: Any) -> WatchingReader:  # noqa: N802 - Spark's name
        del schema
        return _Watching(StatementPlan.of(self.options))


class _Bounded(BoundedReader):
    def __init__(self, plan: StatementPlan) -> None:
        super().__init__(plan.files)
        self._statements = plan

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._statements.rows(partition)


class _Watching(WatchingReader):
    def __init__(self, plan: StatementPlan) -> None:
        if not Path(plan.files.path).is_dir():
            raise UsageError(
                f"{plan.files.path} is not a folder",
                hint="A stream watches a folder for new files.",
            )
        super().__init__(plan.files)
        self._statements = plan

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._statements.rows(partition)


def register_formats(spark: SparkSession) -> None:
    """Let a session read stream files as the format `quadweir-stream`.

    An `Engine` does this for its session. Without one, such as over Spark Connect, call it once:

        register_formats(spark)
        spark.read.format("quadweir-stream").load("doors.stream").createOrReplaceTempView("doors")

    Args:
        spark: the session.
    """
    spark.dataSource.register(StreamFormat)
