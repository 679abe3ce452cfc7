"""A process beside the driver that holds shards of a query, from its first batch to its last.

Spark's own workers would do, but Spark hands a shard to another of them in most batches, and reaches
them through a second stage of tasks and a state store, which is most of a small batch's time. Here a
shard stays where it is. The driver says what to do over a socket that it made, one request after the
other; when it ends, so does this.
"""

from __future__ import annotations

import multiprocessing.connection
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pyarrow as pa

from quadweir.errors import QuadweirError
from quadweir.runtime.answers import FACTS
from quadweir.runtime.host.bounded import ShardSpec
from quadweir.runtime.shard.folderjournal import ShardLog
from quadweir.runtime.shard.hosted import HostedShard, Timing
from quadweir.runtime.spark.heap import settle
from quadweir.runtime.wire.deadletters import LETTER, packed
from quadweir.runtime.wire.handover import widened
from quadweir.runtime.wire.pack import BLOB, SHARD_KEY, Packer


@final
@dataclass(frozen=True)
class Place:
    """A shard that a process is to hold.

    Attributes:
        key: its number among the shards of its stage.
        spec: what it is made from.
        folder: where its state is kept.
    """

    key: int
    spec: ShardSpec
    folder: str


@final
@dataclass(frozen=True)
class Work:
    """What one process is to do for one run of a query.

    Attributes:
        places: the shards of each stage, in their order.
        packer: what the first stage gets its rows by.
        timing: delays and idle times of the streams.
        answers: the file that answers go to.
    """

    places: tuple[tuple[Place, ...], ...]
    packer: Packer
    timing: Timing
    answers: str


@final
@dataclass(frozen=True)
class Arrived:
    """The rows of a batch.

    Attributes:
        inline: an Arrow stream of some.
        files: such streams in files.
    """

    inline: bytes = b""
    files: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class Told:
    """What a shard made of a batch.

    Attributes:
        facts: how it fares (`answers.FACTS`).
        answers: how many it gave.
        letters: how many letters.
        sent: blobs for the shards of the next stage.
    """

    facts: Mapping[str, int]
    answers: int = 0
    letters: int = 0
    sent: tuple[tuple[int, bytes], ...] = ()


@final
class HeldShards:
    """The shards of one process, with their state on disk.

    Args:
        work: what to hold.
        batch: the first batch that will come: state is taken up as it was before that.

    Raises:
        StateError: state is held by another process, or is not whole.
    """

    def __init__(self, work: Work, batch: int) -> None:
        self._work = work
        self._shards: list[list[_Held]] = [[] for _ in work.places]
        try:
            for shards, places in zip(self._shards, work.places, strict=True):
                for place in places:
                    held = _Held(place, work.timing)
                    shards.append(held)
                    held.take_up(batch)
        except BaseException:
            self.close()
            raise

    def first(self, batch: int, now: int, arrived: Arrived) -> list[Told]:
        """Take the rows of a batch in; gives what each shard of the first stage makes of them.

        Args:
            batch: its number.
            now: when it was read.
            arrived: the rows.
        """
        return self._take(0, batch, self._blobs(now, arrived))

    def pack(self, now: int, arrived: Arrived) -> int:
        """Pack the rows of a batch as `first` does, and forget them; gives how many bytes that makes."""
        return sum(len(blob) for blobs in self._blobs(now, arrived) for blob in blobs)

    def _blobs(self, now: int, arrived: Arrived) -> list[list[bytes]]:
        """Give what of a batch is for each shard of the first stage."""
        keys = [held.place.key for held in self._shards[0]]
        packer = self._work.packer
        rows_of = (widened(each, packer.bits) for each in _read(arrived))
        letters, blobs = packer.for_shards(keys, rows_of, now)
        # Of what is no shard's, one of them tells.
        return [
            [packed(letters), blob] if letters and key == 0 else [blob]
            for key, blob in zip(keys, blobs, strict=True)
        ]

    def then(self, stage: int, batch: int, sent: list[list[bytes]]) -> list[Told]:
        """Take what the stage before sent, for each shard of a stage."""
        return self._take(stage, batch, sent)

    def _take(self, stage: int, batch: int, given: list[list[bytes]]) -> list[Told]:
        shards = self._shards[stage]
        told, answers = [], []
        for held, blobs in zip(shards, given, strict=True):
            made, found = held.take(batch, blobs)
            told.append(made)
            answers += found
        if shards and not shards[0].sends:
            _write(answers, Path(self._work.answers))
        return told

    def keep(self, batch: int) -> list[dict[str, int]]:
        """Write down what a batch brought to each shard, after which it need not come again.

        Returns:
            Of the state of each stage the entries of logs, bytes, and milliseconds that this took.
        """
        return [
            {
                "state_ms": sum(held.keep(batch) for held in shards),
                "state_rows": sum(held.log.entries for held in shards),
                "state_bytes": sum(held.log.size for held in shards),
            }
            for shards in self._shards
        ]

    def close(self) -> None:
        """Let go of all state."""
        for held in (each for shards in self._shards for each in shards):
            held.log.close()
        self._shards = []


@final
class _Held:
    """A shard with its state on disk."""

    def __init__(self, place: Place, timing: Timing) -> None:
        self.place = place
        self.log = ShardLog(Path(place.folder))
        try:
            self._hosted = HostedShard(place.spec, timing, place.key)
        except BaseException:
            self.log.close()
            raise
        self._replayed = 0
        self._taken: list[bytes] = []

    @property
    def sends(self) -> bool:
        """Whether what it gives is for the next stage."""
        return self.place.spec.sends

    def take_up(self, batch: int) -> None:
        self._replayed = self.log.take_up(self._hosted, batch)

    def take(self, batch: int, blobs: list[bytes]) -> tuple[Told, list[pa.RecordBatch]]:
        """Take a batch; gives what is told of it, and the answers."""
        replayed, self._replayed = self._replayed, 0
        step = f"{self.place.key}.{batch + 1}"
        *found, facts = self._hosted.take(blobs, step, replayed)
        self._taken = self._hosted.lasting(blobs)
        told = {name: facts.column(name)[0].as_py() or 0 for name in FACTS}
        if self.sends:
            return Told(told, sent=tuple(_sent(found))), []
        rows_of = sum(each.num_rows for each in found)
        letters = sum(len(each) - each.column(LETTER).null_count for each in found)
        # That there is nothing is told by rows, too: of none.
        return Told(told, rows_of - letters, letters), [*found, facts.slice(0, 0)]

    def keep(self, batch: int) -> int:
        """Write down what a batch brought; gives how many milliseconds that took."""
        began = time.monotonic()
        self.log.append(self._hosted, batch, self._taken)
        self._taken = []
        return round((time.monotonic() - began) * 1000)


def _read(arrived: Arrived) -> Iterator[pa.RecordBatch]:
    if arrived.inline:
        yield from pa.ipc.open_stream(arrived.inline)
    for place in arrived.files:
        with pa.memory_map(place) as file:
            yield from pa.ipc.open_stream(file)


def _sent(found: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    for batch in found:
        keys = batch.column(SHARD_KEY).to_pylist()
        for key, blob in zip(keys, batch.column(BLOB), strict=True):
            if blob.is_valid:
                yield key, blob.as_py()


def _write(found: list[pa.RecordBatch], file: Path) -> None:
    """Write answers where they are read, also if there are none."""
    with pa.OSFile(str(file), "wb") as out, pa.ipc.new_stream(out, found[0].schema) as writer:
        for batch in found:
            writer.write_batch(batch)


def serve(connection: Any) -> None:
    """Do what the driver asks for until it has nothing more to say."""
    held: HeldShards | None = None
    while True:
        try:
            name, *given = connection.recv()
        except (EOFError, OSError):
            return
        result: object = None
        try:
            match name:
                case "open":
                    if held is not None:
                        held.close()
                    # All is loaded now, and there is no shard yet that would never be collected.
                    settle(HeldShards)
                    held = HeldShards(*given)
                case "close":
                    if held is not None:
                        held.close()
                    held = None
                case _:
                    result = getattr(held, name)(*given)
        except QuadweirError as error:
            connection.send((False, error))
        except Exception:  # it ends the run, and the driver has to say why
            connection.send((False, traceback.format_exc()))
        else:
            connection.send((True, result))


def main() -> None:
    """Serve the socket whose number is the argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(multiprocessing.connection.Connection(int(sys.argv[1])))
