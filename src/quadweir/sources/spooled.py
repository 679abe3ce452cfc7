"""A Spark stream reader for sources that push: a receiver fills a spool, Spark reads the spool.

The receiver runs in the Python process that Spark keeps on the driver for the source. An offset is
the identity of the spool and a record number. The records of a batch are sent inside its input
partitions, so executors need no access to the driver's disk.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from quadweir import rows
from quadweir.errors import SourceError, UsageError
from quadweir.sources.lines import NOT_UTF8
from quadweir.sources.raw import RAW_SCHEMA
from quadweir.sources.spool import FAULT, MOST_BYTES, Received, Spool, unframe

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

MAX_RECORD_BYTES: Final = 4 * 2**20
MAX_RECORDS_PER_TRIGGER: Final = 100_000
MAX_BYTES_PER_TRIGGER: Final = 32 * 2**20
_SEQUENCE: Final = "sequence"
_SPOOL: Final = "spool"
Offset: TypeAlias = dict[str, Any]
_ALL: Final = 2**62


class Receiver(ABC):
    """Receives records into a spool, in its own thread, until `stop` is called."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.stopping = threading.Event()
        self.failure: SourceError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="quadweir-receiver")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        try:
            self.receive()
        except SourceError as error:
            self.failure = error
        except Exception as error:  # the query must get the error; it must not end with the thread
            self.failure = SourceError(f"the receiver failed: {type(error).__name__}: {error}")

    @abstractmethod
    def receive(self) -> None:
        """Receive until `stopping` is set; a `SourceError` ends the query."""


def now_ms() -> int:
    """Return the arrival time of a record that is received now."""
    return time.time_ns() // 1_000_000


@final
class Backoff:
    """The time to wait before another try: twice as long each time, up to a maximum.

    >>> backoff = Backoff(first_s=1, most_s=3)
    >>> [backoff.next_s() for _ in range(4)]
    [1, 2, 3, 3]
    """

    def __init__(self, first_s: float = 0.1, most_s: float = 30.0) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._wait_s = first_s

    def next_s(self) -> float:
        wait_s = self._wait_s
        self._wait_s = min(self._wait_s * 2, self._most_s)
        return wait_s

    def reset(self) -> None:
        self._wait_s = self._first_s


@final
@dataclass
class _Run(InputPartition):
    """Some records of a batch, as frames of the spool."""

    first: int
    data: bytes


class SpooledReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets, partitions and commits over a spool.

    Spark makes some readers only to pickle their `read`. So nothing is opened before Spark asks for
    an offset.
    """

    def __init__(self, source: str, options: Mapping[str, str]) -> None:
        self._source = source
        self._options = dict(options)
        self._folder = Path(self._options["spool"])
        self._spool: Spool | None = None
        self._receiver: Receiver | None = None
        self._target: int | None = None

    def make_receiver(self, spool: Spool, options: Mapping[str, str]) -> Receiver:
        """Return the receiver that fills the spool."""
        raise NotImplementedError

    def _opened(self) -> Spool:
        if self._spool is None:
            self._spool = Spool(
                self._folder, most_bytes=whole(self._options, "max_spool_bytes", MOST_BYTES)
            )
            self._receiver = self.make_receiver(self._spool, self._options)
            self._receiver.start()
        if self._receiver is not None and self._receiver.failure is not None:
            raise self._receiver.failure
        return self._spool

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        # What an earlier query received and did not finish is still in the spool.
        spool = self._opened()
        return {_SPOOL: spool.identity, _SEQUENCE: spool.first}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(whole(self._options, "max_records_per_trigger", MAX_RECORDS_PER_TRIGGER))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._opened().sync()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        spool = self._opened()
        begin = self._begin(spool, start)
        end = spool.sync()
        if self._target is not None:
            end = min(end, self._target)
        if not isinstance(limit, ReadAllAvailable):
            most = limit.max_rows if isinstance(limit, ReadMaxRows) else _ALL
            size = whole(self._options, "max_bytes_per_trigger", MAX_BYTES_PER_TRIGGER)
            end = min(end, spool.limit(begin, records=most, size=size))
        return {_SPOOL: spool.identity, _SEQUENCE: max(end, begin)}

    def _begin(self, spool: Spool, offset: Offset) -> int:
        """Return the record number in this spool for an offset of a checkpoint.

        Raises:
            SourceError: the offset belongs to another spool, which is lost, and the option
                `fail_on_data_loss` is set.
        """
        if offset[_SPOOL] == spool.identity:
            return int(offset[_SEQUENCE])
        if self._options.get("fail_on_data_loss", "true").lower() != "false":
            raise SourceError(
                f"the spool folder {spool.folder} is not the one that the checkpoint belongs to",
                detail="What the other one held and was not finished would be missing.",
                hint="Restore the folder; to go on without what was lost, set the source's option "
                "fail_on_data_loss to false.",
            )
        return spool.first

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        if self._spool is None:
            return None
        return {_SPOOL: self._spool.identity, _SEQUENCE: self._spool.end}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        spool = self._opened()
        runs = spool.read(self._begin(spool, start), self._begin(spool, end))
        return [_Run(first, data) for first, data in runs]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Run)
        yield to_batch(self._source, unframe(partition.first, partition.data))

    def commit(self, end: Offset) -> None:
        if self._spool is not None and end[_SPOOL] == self._spool.identity:
            self._spool.forget(end[_SEQUENCE])

    def stop(self) -> None:
        if self._receiver is not None:
            self._receiver.stop()
        if self._spool is not None:
            self._spool.close()


def to_batch(source: str, records: Iterator[tuple[int, Received]]) -> pa.RecordBatch:
    """Return records as a batch of `RAW_SCHEMA`."""
    import pyarrow as pa

    columns: tuple[list[Any], ...] = ([], [], [], [], [])
    for number, record in records:
        value: str | None = None
        reason: str | None = None
        if record.kind == FAULT:
            reason = record.payload.decode(errors="replace")
        else:
            try:
                value = record.payload.decode()
            except UnicodeDecodeError:
                value, reason = record.payload.decode(errors="replace"), NOT_UTF8
        row = (source + record.source, str(number), record.arrival_ms, value, reason)
        for column, cell in zip(columns, row, strict=True):
            column.append(cell)
    # Spark compares the whole schema, including which columns may be NULL.
    schema = pa.schema(
        [
            pa.field(
                one.name, pa.int64() if one.name == rows.ARRIVAL else pa.string(), one.nullable
            )
            for one in RAW_SCHEMA.fields
        ]
    )
    return pa.RecordBatch.from_arrays(
        [pa.array(column, one.type) for column, one in zip(columns, schema, strict=True)],
        schema=schema,
    )


class SpooledSource(DataSource):
    """The common part of the Spark data sources for TCP and MQTT."""

    def schema(self) -> StructType:
        return RAW_SCHEMA


def whole(options: Mapping[str, str], name: str, default: int) -> int:
    """Return an option that is a whole number above zero.

    >>> whole({"port": "1883"}, "port", 1)
    1883

    Raises:
        UsageError: the option is not such a number.
    """
    text = str(options.get(name, default))
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(f"{name} must be a whole number above zero, not {text}")
    return int(text)
