"""A worker process that holds shards, from the first batch of a run to its last.

Spark's own workers would do, but Spark hands a shard to another of them in most batches, and reaches
them through a second stage of tasks and a state store. That is most of a small batch's time. Here a
shard stays in its process. The driver sends one request after the other through a socket; when the
driver ends, so does the worker.
"""

from __future__ import annotations

import multiprocessing.connection
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, final

import pyarrow as pa

from quadweir.errors import QuadweirError
from quadweir.runtime.host.answerfiles import read_rows
from quadweir.runtime.host.messages import (
    Arrived,
    Close,
    Done,
    Failed,
    Forward,
    Keep,
    Open,
    Pack,
    Request,
    ShardPlace,
    ShardReport,
    Take,
    WorkerTask,
)
from quadweir.runtime.host.tagging import untagged
from quadweir.runtime.shard.folderjournal import FolderJournal
from quadweir.runtime.spark.heap import freeze_heap
from quadweir.runtime.wire.pack import BLOB, SHARD_KEY


@final
class HeldShards:
    """The shards that one worker holds of one job, with their journals.

    Args:
        work: what to hold.
        batch: the first batch that will come: the shards are recovered as they were before it.

    Raises:
        StateError: another process holds a journal, or a journal is not complete.
    """

    def __init__(self, work: WorkerTask, batch: int) -> None:
        self._work = work
        self._packer = work.packer
        self._shards: list[list[_HeldShard]] = [[] for _ in work.places]
        try:
            for shards, places in zip(self._shards, work.places, strict=True):
                for place in places:
                    held = _HeldShard(place)
                    shards.append(held)
                    held.recover(batch)
        except BaseException:
            self.close()
            raise

    def take(self, request: Take) -> list[ShardReport]:
        """Step the shards of the first stage."""
        different = request.changes[self._work.job]
        if different.packer is not None:
            self._packer = different.packer
        for place in (each for places in self._work.places for each in places):
            place.spec.grow(different.grown)
        blobs = self._blobs(request.now, request.arrived)
        if different.change:
            blobs = [[different.change, *own] for own in blobs]
        return self._step(0, request.batch, blobs)

    def forward(self, request: Forward) -> list[ShardReport]:
        """Step the shards of a later stage."""
        return self._step(request.stage, request.batch, request.blobs)

    def pack(self, arrived: Arrived) -> int:
        """Pack rows as `take` does, and forget them; return the number of bytes."""
        return sum(len(blob) for blobs in self._blobs(0, arrived) for blob in blobs)

    def _blobs(self, now: int, arrived: Arrived) -> list[list[bytes]]:
        """Return the blobs of a batch for each shard of the first stage."""
        keys = [held.place.key for held in self._shards[0]]
        rows = untagged(read_rows(arrived), self._work.job)
        return self._packer.for_shards(keys, rows, now)

    def _step(self, stage: int, batch: int, blobs: list[list[bytes]]) -> list[ShardReport]:
        shards = self._shards[stage]
        reports, answers = [], []
        for held, own in zip(shards, blobs, strict=True):
            report, found = held.step(batch, own)
            reports.append(report)
            answers += found
        if shards and not shards[0].place.spec.sends:
            _write(answers, Path(self._work.answers))
        return reports

    def keep(self, batch: int) -> list[dict[str, int]]:
        """Write what a batch brought to the journals; return their facts, for each stage."""
        return [
            {
                "state_ms": sum(held.keep(batch) for held in shards),
                "state_rows": sum(held.journal.entries for held in shards),
                "state_bytes": sum(held.journal.size for held in shards),
            }
            for shards in self._shards
        ]

    def close(self) -> None:
        """Release all journals."""
        for held in (each for shards in self._shards for each in shards):
            held.journal.close()
        self._shards = []


@final
class _HeldShard:
    """A shard with its journal."""

    def __init__(self, place: ShardPlace) -> None:
        self.place = place
        self.journal = FolderJournal(Path(place.folder))
        try:
            self._hosted = place.spec.host(place.key)
        except BaseException:
            self.journal.close()
            raise
        self._replayed = 0
        self._lasting: list[bytes] = []

    def recover(self, batch: int) -> None:
        self._replayed = self.journal.recover(self._hosted, batch)

    def step(self, batch: int, blobs: list[bytes]) -> tuple[ShardReport, list[pa.RecordBatch]]:
        """Take a batch; return the report and the rows of answers."""
        replayed, self._replayed = self._replayed, 0
        step = f"{self.place.key}.{batch + 1}"
        *found, last = self._hosted.take(blobs, step, replayed)
        self._lasting = self._hosted.lasting(blobs)
        spec = self.place.spec
        facts = {name: last.column(name)[0].as_py() for name in spec.facts}
        if spec.sends:
            return ShardReport(facts, sent=tuple(_sent(found))), []
        # A file without answers has a schema, too.
        return ShardReport(facts, spec.counted(found)), [*found, last.slice(0, 0)]

    def keep(self, batch: int) -> int:
        """Write what a batch brought; return how many milliseconds that took."""
        began = time.monotonic()
        self.journal.append(self._hosted, batch, self._lasting)
        self._lasting = []
        return round((time.monotonic() - began) * 1000)


def _sent(found: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    for batch in found:
        keys = batch.column(SHARD_KEY).to_pylist()
        for key, blob in zip(keys, batch.column(BLOB), strict=True):
            if blob.is_valid:
                yield key, blob.as_py()


def _write(found: list[pa.RecordBatch], file: Path) -> None:
    """Write answers to their file, even if there are none."""
    with pa.OSFile(str(file), "wb") as out, pa.ipc.new_stream(out, found[0].schema) as writer:
        for batch in found:
            writer.write_batch(batch)


@final
class Worker:
    """Carries out requests."""

    def __init__(self) -> None:
        self._held: list[HeldShards] = []

    def carry_out(self, request: Request) -> object:
        """Return the result of a request."""
        match request:
            case Open():
                self._close()
                # Everything is loaded now, and there is no shard yet that would never be collected.
                freeze_heap(HeldShards)
                for work in request.work:
                    self._held.append(HeldShards(work, request.batch))
                return None
            case Close():
                self._close()
                return None
            case Take():
                return [each.take(request) for each in self._open]
            case Forward():
                return self._open[request.job].forward(request)
            case Keep():
                return [each.keep(request.batch) for each in self._open]
            case Pack():
                return sum(each.pack(request.arrived) for each in self._open)

    @property
    def _open(self) -> list[HeldShards]:
        assert self._held, "the driver opens shards before it uses them"
        return self._held

    def _close(self) -> None:
        while self._held:
            self._held.pop().close()


def serve(connection: Any) -> None:
    """Carry out requests until the driver closes the connection."""
    worker = Worker()
    while True:
        try:
            request: Request = connection.recv()
        except (EOFError, OSError):
            return
        try:
            result = worker.carry_out(request)
        except QuadweirError as error:
            connection.send(Failed(error))
        except Exception:  # it ends the run, and the driver reports why
            connection.send(Failed(traceback.format_exc()))
        else:
            connection.send(Done(result))


def main() -> None:
    """Serve the socket whose file descriptor is the argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(multiprocessing.connection.Connection(int(sys.argv[1])))
