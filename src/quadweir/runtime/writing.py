"""What `RegisteredQuery.write_stream` is asked for, as a sink and a trigger."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir import rows
from quadweir.errors import UsageError
from quadweir.paths import PathLike, as_path, is_elsewhere
from quadweir.sinks.console import ConsoleSink
from quadweir.sinks.files import FileSink
from quadweir.sinks.kafka import KafkaSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.start import Call
from quadweir.sinks.tables import MemoryTable, ParquetSink, TableSink
from quadweir.times import DurationLike, as_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quadweir.sinks.base import Sink

AVAILABLE_NOW: Final = "availableNow"
FORMATS: Final = ("parquet", "delta", "table", "jsonl", "kafka", "memory", "console")
_TO_PATH: Final = ("parquet", "delta", "jsonl")
_FORGETFUL: Final = ("memory", "console", None)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """The arguments of `RegisteredQuery.write_stream` that say where answers go.

    Attributes:
        form: the format; None for a function.
        path: the folder, or the URI of a Delta table.
        table: the name of a table.
        servers: the brokers of Kafka.
        topic: the topic.
        function: gets the rows of each batch and its number.
        name: the name of the query, and of the view of `memory`.
        options: options of the data source or of Kafka.
    """

    form: str | None = None
    path: PathLike | None = None
    table: str | None = None
    servers: str | None = None
    topic: str | None = None
    function: Callable[[DataFrame, int], object] | None = None
    name: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def sink(self, spark: SparkSession) -> Sink:
        """Return the sink for these arguments.

        Raises:
            UsageError: one is missing or too many, or there is no such format.
        """
        if self.function is not None:
            self._only("foreach_batch")
            return Call(self.function)
        if self.form is None and self.table is not None:
            self._only("table", "table", "options")
            return TableSink(table=self.table, options=dict(self.options))
        match self.form:
            case "parquet" if self.table is None:
                self._only("parquet", "path")
                return ParquetSink(_local(self._needed("path", self.path)))
            case "parquet" | "delta" if self.table is not None:
                self._only(self.form, "table", "options")
                return TableSink(form=self.form, table=self.table, options=dict(self.options))
            case "delta":
                self._only("delta", "path", "options")
                place = self._needed("path", self.path)
                text = str(place) if is_elsewhere(place) else str(as_path(place).absolute())
                return TableSink(form="delta", path=text, options=dict(self.options))
            case "jsonl":
                self._only("jsonl", "path")
                return FileSink(_local(self._needed("path", self.path)), LineFormat.JSONL)
            case "kafka":
                self._only("kafka", "servers", "topic", "options")
                return KafkaSink(
                    self._needed("servers", self.servers),
                    self._needed("topic", self.topic),
                    LineFormat.JSONL,
                    name=self.name or "",
                    time=rows.REPORT,
                    options=dict(self.options),
                )
            case "memory":
                self._only("memory")
                return MemoryTable(spark, self._needed("name", self.name))
            case "console":
                self._only("console")
                return ConsoleSink(LineFormat.JSONL)
            case _:
                raise UsageError(
                    "nothing says where answers go"
                    if self.form is None
                    else f"there is no format {self.form[:40]!r}",
                    hint=f"Choose {', '.join(FORMATS)}, or foreach_batch=FUNCTION."
                    if self.form != "table"
                    else 'Write table="NAME".',
                )

    def checkpoint(self, given: PathLike | None) -> Path:
        """Return the folder of the checkpoint; a temporary one where nothing is kept anyway.

        Raises:
            UsageError: it is needed.
        """
        if given is not None:
            return as_path(given)
        if self.function is None and (self.form not in _FORGETFUL or self.table is not None):
            raise UsageError(
                "a query that keeps its answers needs a checkpoint",
                detail="It holds the offsets and the state with which the query continues later.",
                hint='Add checkpoint="FOLDER".',
            )
        folder = tempfile.mkdtemp(prefix="quadweir-checkpoint-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def _needed(self, name: str, given: str | PathLike | None) -> str:
        if given is None:
            raise UsageError(f"{self.form} needs {name}", hint=f'Add {name}="{_EXAMPLES[name]}".')
        return str(given)

    def _only(self, what: str, *names: str) -> None:
        """Refuse arguments that mean nothing for a format."""
        own = {"foreach_batch": "function"}.get(what, "form")
        for each in ("form", "path", "table", "servers", "topic", "options"):
            if getattr(self, each) and each not in (*names, own):
                shown = "format" if each == "form" else each
                raise UsageError(
                    f"{what} and {shown} exclude each other"
                    if each in ("form", "path", "table")
                    else f"{what} has no {shown}",
                    hint=f"Leave {shown} out.",
                )


_EXAMPLES: Final = {
    "path": "answers",
    "name": "answers",
    "servers": "localhost:9092",
    "topic": "answers",
}


def _local(given: str) -> Path:
    if is_elsewhere(given):
        raise UsageError(
            f"{given} is not a local path",
            detail="Each answer is there exactly once because files are renamed, which object "
            "stores cannot do.",
            hint='Write there with format="delta", or with foreach_batch.',
        )
    return as_path(given)


def trigger_of(given: DurationLike | None) -> tuple[timedelta | None, bool]:
    """Return how often a batch begins, and whether to end when all that is there now is answered.

    >>> trigger_of("10 seconds"), trigger_of("availableNow")
    ((datetime.timedelta(seconds=10), False), (None, True))

    Raises:
        UsageError: it is neither a duration nor `availableNow`.
    """
    if given is None:
        return None, False
    if isinstance(given, str) and given == AVAILABLE_NOW:
        return None, True
    return as_duration(given), False


def letters_to(given: Sink | PathLike | None) -> Sink | None:
    """Return where dead letters go: a sink, or a folder for JSON Lines."""
    from quadweir.sinks.base import Sink as AnySink

    if given is None or isinstance(given, AnySink):
        return given
    return FileSink(as_path(given), LineFormat.JSONL)
