"""How a play reaches the engine: as files taken batch by batch, as live files, or through Kafka.

A feed gives two streaming frames of records with the columns of every live source: text, event
time, arrival time and position. Files are played in lockstep, one of each stream in every batch, so
a replay is the same on every machine.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quadweir import rows
from quadweir.bench.ndw.publisher import SIDES, LaneReadings, SendSchedule
from quadweir.sources.kafka import read_kafka

if TYPE_CHECKING:
    import numpy.typing as npt
    from pyspark.sql import DataFrame, SparkSession

_RECORDS: Final = pa.schema(
    [
        pa.field(rows.SOURCE, pa.string()),
        pa.field(rows.PLACE, pa.string()),
        pa.field(rows.ARRIVAL, pa.int64()),
        pa.field(rows.VALUE, pa.string()),
        pa.field(rows.REASON, pa.string()),
        pa.field(rows.EVENT_TIME, pa.int64()),
        pa.field(rows.POSITION, pa.int64()),
    ]
)


def write_bounded(folder: Path, recording: LaneReadings, records: SendSchedule) -> None:
    """Write all records of a play as JSON Lines, one file for each stream."""
    for side, one in enumerate(SIDES):
        chosen = np.flatnonzero(records.side == side)
        with (folder / f"{one.name}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(f"{text}\n" for text in recording.texts(records, chosen))


@final
@dataclass(frozen=True, slots=True)
class FileFeed:
    """A folder for each stream; each batch takes one file of each."""

    folder: Path

    def __post_init__(self) -> None:
        for side in SIDES:
            (self.folder / side.name).mkdir(parents=True, exist_ok=True)

    def write(self, recording: LaneReadings, records: SendSchedule, every_ms: int) -> int:
        """Write a whole play, a file for each `every_ms` of it; return the number of files."""
        piece = (records.sent_ms - records.sent_ms[0]) // every_ms
        edges = np.searchsorted(piece, np.arange(int(piece[-1]) + 2))
        for number, (start, end) in enumerate(itertools.pairwise(edges.tolist())):
            self.add(number, recording, records, np.arange(start, end))
        return len(edges) - 1

    def add(
        self,
        number: int,
        recording: LaneReadings,
        records: SendSchedule,
        chosen: npt.NDArray[np.intp],
    ) -> None:
        """Write one file of each stream; each appears complete."""
        for side, one in enumerate(SIDES):
            mine = chosen[records.side[chosen] == side]
            path = self.folder / one.name / f"{number:08d}.parquet"
            hidden = path.with_name(f".{path.name}")
            pq.write_table(_table(one.name, recording, records, mine), hidden, compression="NONE")
            # Spark orders files by their modification times, in milliseconds.
            os.utime(hidden, (1_600_000_000 + number, 1_600_000_000 + number))
            hidden.rename(path)

    def frames(self, spark: SparkSession, files_per_batch: int | None = 1) -> dict[str, DataFrame]:
        """Both streams, as streaming frames of records."""
        from pyspark.sql.pandas.types import from_arrow_schema

        options = {"maxFilesPerTrigger": str(files_per_batch)} if files_per_batch else {}
        return {
            one.name: spark.readStream.schema(from_arrow_schema(_RECORDS))
            .options(**options)
            .parquet(str(self.folder / one.name))
            for one in SIDES
        }


def _table(
    name: str, recording: LaneReadings, records: SendSchedule, chosen: npt.NDArray[np.intp]
) -> pa.Table:
    count = len(chosen)
    sent, number = pa.array(records.sent_ms[chosen]), pa.array(chosen)
    return pa.table(
        [
            pa.array([name] * count, pa.string()),
            number.cast(pa.string()),
            sent,
            pa.array(recording.texts(records, chosen), pa.string()),
            pa.nulls(count, pa.string()),
            sent,
            number.cast(pa.int64()),
        ],
        schema=_RECORDS,
    )


class LiveStreams(Protocol):
    """Two streams that are fed while the query runs.

    Attributes:
        delay_ms: how late records may be; None for the engine's default.
    """

    @property
    def delay_ms(self) -> int | None: ...

    def open(self, spark: SparkSession) -> dict[str, DataFrame]:
        """Both streams, as streaming frames of records."""
        ...

    def send(
        self,
        number: int,
        recording: LaneReadings,
        records: SendSchedule,
        chosen: npt.NDArray[np.intp],
    ) -> None:
        """Send some records of a play."""
        ...


@final
@dataclass(frozen=True, slots=True)
class LiveFiles:
    """Feeds through files that appear during the play.

    Spark reads the files of one batch in the order of their sizes, so records can be late by up to
    the length of a batch.
    """

    feed: FileFeed

    @property
    def delay_ms(self) -> int | None:
        return 10_000

    def open(self, spark: SparkSession) -> dict[str, DataFrame]:
        return self.feed.frames(spark, files_per_batch=None)

    def send(
        self,
        number: int,
        recording: LaneReadings,
        records: SendSchedule,
        chosen: npt.NDArray[np.intp],
    ) -> None:
        self.feed.add(number, recording, records, chosen)


@final
class LiveKafka:
    """Feeds through two topics of a real broker; each message carries its sending time."""

    delay_ms: int | None = None

    def __init__(self, spark: SparkSession, servers: str) -> None:
        self._servers = servers
        self._tag = uuid.uuid4().hex[:8]
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        clients = self._jvm.org.apache.kafka.clients
        settings = self._jvm.java.util.HashMap()
        settings["bootstrap.servers"] = servers
        settings["linger.ms"] = "0"
        serializer = self._jvm.org.apache.kafka.common.serialization.StringSerializer
        self._admin = clients.admin.AdminClient.create(settings)
        self._producer = clients.producer.KafkaProducer(settings, serializer(), serializer())
        wanted = self._jvm.java.util.ArrayList()
        optional = self._jvm.java.util.Optional
        for side in SIDES:
            topic = clients.admin.NewTopic(self._topic(side.name), optional.of(1), optional.empty())
            wanted.add(topic)
        self._admin.createTopics(wanted).all().get()

    def open(self, spark: SparkSession) -> dict[str, DataFrame]:
        return {
            side.name: read_kafka(spark, servers=self._servers, topic=self._topic(side.name))
            for side in SIDES
        }

    def send(
        self,
        number: int,  # noqa: ARG002 - files have one, messages need none
        recording: LaneReadings,
        records: SendSchedule,
        chosen: npt.NDArray[np.intp],
    ) -> None:
        record = self._jvm.org.apache.kafka.clients.producer.ProducerRecord
        topics = [self._topic(side.name) for side in SIDES]
        sides, times = records.side[chosen].tolist(), records.sent_ms[chosen].tolist()
        for side, sent, text in zip(sides, times, recording.texts(records, chosen), strict=True):
            self._producer.send(record(topics[side], 0, sent, None, text))
        self._producer.flush()

    def close(self) -> None:
        """Delete the topics, and close the connection to the broker."""
        names = self._jvm.java.util.ArrayList()
        for side in SIDES:
            names.add(self._topic(side.name))
        self._admin.deleteTopics(names).all().get()
        self._producer.close()
        self._admin.close()

    def _topic(self, name: str) -> str:
        return f"{name}-{self._tag}"


@final
@dataclass(slots=True)
class Publisher:
    """Sends a play in real time from a thread: slot by slot, each record when it is due.

    Attributes:
        behind_ms: how late the last record of a slot was sent, at most.
    """

    feed: LiveStreams
    recording: LaneReadings
    records: SendSchedule
    behind_ms: float = 0.0
    failure: BaseException | None = None
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self, now: Callable[[], float] = time.time) -> None:
        """Begin; the times of the play must be in the future."""
        self._thread = threading.Thread(target=self._run, args=(now,), daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until all is sent.

        Raises:
            BaseException: the error that stopped the thread.
        """
        assert self._thread is not None
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self, now: Callable[[], float]) -> None:
        due = np.unique(self.records.sent_ms // 10)
        edges = np.searchsorted(self.records.sent_ms // 10, [*due, due[-1] + 1])
        try:
            for number, (start, end) in enumerate(itertools.pairwise(edges.tolist())):
                chosen = np.arange(start, end)
                last = float(self.records.sent_ms[end - 1])
                time.sleep(max(0.0, last / 1000 - now()))
                self.feed.send(number, self.recording, self.records, chosen)
                self.behind_ms = max(self.behind_ms, 1000 * now() - last)
        except BaseException as error:
            self.failure = error
