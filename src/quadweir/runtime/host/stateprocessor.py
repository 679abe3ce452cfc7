"""The Spark state processor that hosts shards in executors: it moves blobs and journals state.

A worker that still holds a shard as the last batch left it only appends to the journal. One that
holds it as an earlier batch left it replays what was logged since. Any other one begins with the
snapshot.

Spark starts a process next to the driver only to ask a processor for its state variables. That
process should not have to load the kernel, so the kernel is imported where it is used, and the
stage travels in pickled form.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import pandas as pd
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from quadweir.runtime.shard.base import Hosted, StageSpec
from quadweir.runtime.shard.journal import replay
from quadweir.runtime.shard.statejournal import KEY, NAME, VALUE, StateJournal
from quadweir.runtime.spark.heap import freeze_heap


@final
@dataclass
class _Copy:
    """A shard in a worker's memory, as the batch with this token left it."""

    token: str
    hosted: Hosted
    replayed: int = 0
    used: float = 0.0


# Shards outlive batches in the workers that Spark reuses. The least recently used ones are dropped,
# and those that were not used for a while: their queries may have ended, and if not, the journal
# brings them back.
_COPIES: dict[tuple[str, int], _Copy] = {}
_MOST_COPIES: Final = 64
_KEPT_SECONDS: Final = 120.0


class HostingProcessor(StatefulProcessor):
    """Hosts the shards of one stage.

    Args:
        name: identifies this stage of this run in a worker's memory.
        spec: makes the shards.
    """

    def __init__(self, name: str, spec: StageSpec) -> None:
        self._name = name
        # Our own plan, as Spark would send it.
        self._spec = CloudPickleSerializer().dumps(spec)  # type: ignore[no-untyped-call]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # The process next to the driver would print what it does on our standard error.
        main = getattr(sys.modules["__main__"], "__spec__", None)
        if main is not None and main.name.endswith("transform_with_state_driver_worker"):
            sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for good

    def init(self, handle: Any) -> None:
        self._store = handle.getMapState(NAME, KEY, VALUE)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        blobs = [bytes(blob) for frame in rows for blob in frame["blob"] if blob is not None]
        shard, journal = int(key[0]), StateJournal(self._store)
        copy = self._copy(shard, journal)
        version = journal.version + 1
        for batch in copy.hosted.take(blobs, f"{shard}.{version}", copy.replayed):
            # As Arrow's own columns: Spark accepts them without making Python objects of texts.
            yield batch.to_pandas(types_mapper=pd.ArrowDtype)
        copy.replayed = 0
        copy.token = secrets.token_hex(8)
        journal.append(copy.hosted, version, copy.hosted.lasting(blobs))
        journal.commit(copy.token)
        self._keep(shard, copy)

    def close(self) -> None:
        """Keep the copies: the next batch may use them."""

    def _copy(self, key: int, journal: StateJournal) -> _Copy:
        """Return the shard as the journal has it.

        It is taken out of the copies: a step that fails must leave no half-stepped shard there. Spark
        may have given batches since then to another worker; what they logged is replayed.
        """
        copy = _COPIES.pop((self._name, key), None)
        if copy is not None and copy.token in journal.tokens:
            behind = len(journal.tokens) - 1 - journal.tokens.index(copy.token)
            if not behind:
                return copy
        else:
            behind = journal.entries
            spec: StageSpec = CloudPickleSerializer().loads(self._spec)  # type: ignore[no-untyped-call]
            # Everything is loaded now, and there is no shard yet that would never be collected.
            freeze_heap(HostingProcessor)
            copy = _Copy("", spec.host(key))
            snapshot = journal.snapshot()
            if snapshot is not None:
                copy.hosted.restore(snapshot)
        copy.replayed += replay(copy.hosted, journal.latest(behind), journal.note)
        return copy

    def _keep(self, key: int, copy: _Copy) -> None:
        copy.used = time.monotonic()
        _COPIES[self._name, key] = copy
        oldest = next(iter(_COPIES))
        while len(_COPIES) > _MOST_COPIES or copy.used - _COPIES[oldest].used > _KEPT_SECONDS:
            del _COPIES[oldest]
            oldest = next(iter(_COPIES))
