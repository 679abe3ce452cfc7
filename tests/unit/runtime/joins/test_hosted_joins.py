"""Joins of streams as Spark hosts them, without a JVM: tasks, shards, batches, restarts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester
from pyspark.sql.types import StringType, StructField, StructType

from join_model import Model, Record
from quadweir import rows
from quadweir.errors import StateError, UnsupportedError, UsageError
from quadweir.kernel.streamjoin.policies import CarryPolicy, PaperPolicy
from quadweir.kernel.streamjoin.windows import (
    Dynamic,
    Interval,
    JoinTiming,
    JoinWindow,
    Sliding,
    Tumbling,
)
from quadweir.kernel.xxhash import shard_numbers
from quadweir.mapping.joins import KEY, SIDE, shown_key
from quadweir.runtime.host import stateprocessor
from quadweir.runtime.host.stateprocessor import HostingProcessor
from quadweir.runtime.joins import pack
from quadweir.runtime.joins.frames import JoinUnpacker, met_schema
from quadweir.runtime.joins.hosted import PAIR_TIMES, PAIRS, JoinSpec
from quadweir.runtime.joins.pack import JoinPacker, _Profile
from quadweir.runtime.portable.checkpoints import move, reshard
from quadweir.runtime.portable.describing import describe
from quadweir.runtime.portable.joinfile import NAME, StoredJoins, stored_joins
from quadweir.runtime.portable.journals import read_journals, write_journals
from quadweir.runtime.portable.mappings import divided_records
from quadweir.runtime.shard import journal
from quadweir.runtime.shard.statejournal import as_values, of_values
from quadweir.runtime.wire.pack import BLOB, SHARD_KEY

PASSED = ("why", "what")
TEXTS = StructType([StructField(name, StringType()) for name in ("c", "p", *PASSED)])
TIMING = JoinTiming((5, 10), 2_000)
SMALL = {"size_ms": 20, "min_size_ms": 5, "max_size_ms": 60, "limit": 4, "least_limit": 2}
WINDOWS = (
    Tumbling(20),
    Sliding(20, 7),
    Interval(15),
    Dynamic(PaperPolicy(**SMALL)),
    Dynamic(CarryPolicy(**SMALL)),
)


@pytest.fixture(autouse=True)
def _without_copies() -> Iterator[None]:
    stateprocessor._COPIES.clear()
    yield
    stateprocessor._COPIES.clear()


def make_records(count: int, seed: int = 3) -> list[Record]:
    dice = random.Random(seed)
    found, time, arrival = [], 1_000, 50_000
    for number in range(count):
        time += dice.choice([0, 1, 2, 5, 9])
        arrival += dice.choice([0, 1, 3])
        key = dice.choice(["a", "b", "c", "d", None])
        back = dice.choice([0, 0, 0, 4, 30])
        found.append(Record(number, dice.randrange(2), key, time - back, arrival))
    return found


class Cluster:
    """Some tasks that read and some shards that join, fed batch by batch."""

    def __init__(self, window: JoinWindow, *, shards: int, name: str = "test") -> None:
        self.spec = JoinSpec(window, TIMING, ("c",), ("p",), PASSED, tuple(range(shards)))
        self.shards = shards
        self.packer = JoinPacker(tuple(range(shards)), self.spec.columns)
        self.unpacker = JoinUnpacker(met_schema(self.spec, TEXTS))
        self.tester = TwsTester(HostingProcessor(name, self.spec))
        self.pairs: list[tuple[int, int, int]] = []
        self.letters: list[tuple[str, str]] = []
        self.facts: dict[int, dict[str, int]] = {}

    def batch(self, records: list[Record], monkeypatch: pytest.MonkeyPatch) -> None:
        blobs: dict[int, list[bytes]] = {}
        # A task for each side, as for two topics of one partition.
        for side in (0, 1):
            own = [each for each in records if each.side == side]
            table = pa.table(
                {
                    SIDE: pa.array([each.side for each in own], pa.int64()),
                    KEY: pa.array([each.key for each in own], pa.string()),
                    rows.EVENT_TIME: pa.array([each.time for each in own], pa.int64()),
                    rows.ARRIVAL: pa.array([each.arrival for each in own], pa.int64()),
                    "c": pa.array([f"c{r.number}" if not side else None for r in own], pa.string()),
                    "p": pa.array([f"p{r.number}" if side else None for r in own], pa.string()),
                    # Some have no name, so dead letters cannot name them.
                    "why": pa.array(["bad" if is_bad(r) else None for r in own], pa.string()),
                    "what": pa.array(
                        [str(r.number) if r.number % 10 else None for r in own], pa.string()
                    ),
                    "shard": pa.array([shard_of(r.key, self.shards) for r in own], pa.int32()),
                }
            )
            monkeypatch.setattr("pyspark.TaskContext.get", lambda side=side: _Task(side))
            for packed in self.packer(table.to_batches(max_chunksize=3)):
                for row in packed.to_pylist():
                    blobs.setdefault(row[SHARD_KEY], []).append(row[BLOB])
        for shard, own_blobs in blobs.items():
            frame = pd.DataFrame({BLOB: own_blobs})
            for values in self.tester.testInPandas(shard, frame).to_dict("records"):
                if values[BLOB] is None:
                    self.facts[shard] = values
                    continue
                packed = pa.RecordBatch.from_pydict({BLOB: [values[BLOB]]})
                for met in (each for part in self.unpacker([packed]) for each in part.to_pylist()):
                    if met["why"] is None:
                        self.pairs += paired(met)
                    else:
                        self.letters += zip(met["what"], met["why"], strict=True)

    def total(self, name: str) -> int:
        return sum(int(each[name]) for each in self.facts.values())


def shard_of(key: str | None, shards: int) -> int:
    """As Spark finds it."""
    return 0 if key is None else int(shard_numbers(pa.array([key]), shards)[0])


def paired(met: dict[str, list[Any]]) -> Iterator[tuple[int, int, int]]:
    """What Spark's columns make of a row of arrays."""
    for pair in met[PAIRS]:
        child, parent = pair >> 32, pair & 0xFFFFFFFF
        times = met[PAIR_TIMES[0]][child], met[PAIR_TIMES[1]][parent]
        yield int(met["c"][child][1:]), int(met["p"][parent][1:]), max(times)


class _Task:
    def __init__(self, number: int) -> None:
        self._number = number

    def partitionId(self) -> int:
        return self._number


def is_bad(record: Record) -> bool:
    return record.number % 50 == 7


def number_of(record: Record) -> int:
    return record.number


def in_order(batches: list[list[Record]]) -> list[Record]:
    """The order of arrival: batches, then times of arrival, then tasks."""
    return [each for batch in batches for each in sorted(batch, key=lambda r: (r.arrival, r.side))]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_any_shards_cuts_and_restarts_give_what_the_model_gives(
    window: JoinWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LONGEST_LOG", 4)
    records = in_order([make_records(300)])
    model = Model(window, TIMING)
    expected = model.run(records)
    assert len(expected) > 40
    for shards, size in ((1, 300), (2, 31), (3, 7)):
        cluster = Cluster(window, shards=shards, name=f"{shards}")
        if shards == 3:
            monkeypatch.setattr(pack, "MOST_BYTES", 1)  # a blob for every Arrow batch
        cuts = range(0, len(records), size)
        for place, start in enumerate(cuts):
            # The model takes records one by one; equal times of arrival stay in one batch here.
            cluster.batch(records[start : start + size], monkeypatch)
            if place % 3 == 1:
                stateprocessor._COPIES.clear()
        batches = [records[start : start + size] for start in cuts]
        model = Model(window, TIMING)
        assert sorted(cluster.pairs) == model.run(in_order(batches)) == expected
        assert cluster.total("late") == model.late > 10
        late = [int(what) for what, why in cluster.letters if why.startswith("late: its time is ")]
        assert sorted(late) == sorted(each for each in model.late_ones if each % 10)
        bad = sorted(int(what) for what, why in cluster.letters if why == "bad")
        assert bad == [each.number for each in sorted(records, key=number_of) if is_bad(each)]
        assert cluster.total("pairs") == len(expected)


def test_state_of_another_window_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Cluster(Tumbling(20), shards=1)
    first.batch(make_records(10), monkeypatch)
    other = JoinSpec(Tumbling(30), TIMING, ("c",), ("p",), PASSED, (0,)).host(0)
    with pytest.raises(StateError, match="another join"):
        other.resume(first.spec.host(0).note())


def test_a_clock_set_back_does_not_change_the_order_of_a_task() -> None:
    profile = _Profile()
    table = {"time": [10, 20, 15, 30], "arrival": [5, 5, 7, 7]}
    columns = (np.array(each, dtype="int64") for each in table.values())
    time, arrival = columns
    profile.note(np.arange(4), np.zeros(4, dtype="int64"), time, arrival)
    assert profile.taken()[0].tolist() == [0, 1, 2, 3]
    profile.note(np.arange(4, 6), np.zeros(2, dtype="int64"), time[:2], arrival[:2])
    assert profile.taken().shape == (4, 1)


def test_keys_are_shown_without_their_marks() -> None:
    assert shown_key('5:"a,b"2:=3') == 'a,b", 3'
    assert shown_key("all records") == "all records"


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("counts", [(1, 3, 2), (3, 1, 4)])
def test_joins_go_on_with_other_numbers_of_shards(
    window: JoinWindow, counts: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = in_order([make_records(120)])
    model = Model(window, TIMING)
    expected = model.run(records)
    found: list[tuple[int, int, int]] = []
    before: Cluster | None = None
    for number, shards in enumerate(counts):
        cluster = Cluster(window, shards=shards, name=f"{number}")
        if before is not None:
            stored_joins([before.spec], [True], "driver").write(tmp_path)
            stored = StoredJoins.left_in(tmp_path)
            assert stored is not None
            kept = [
                of_values(
                    {
                        n: bytes(each)
                        for (n,), (each,) in before.tester.peekMapState("kept", key).items()
                    },
                    4 * number,
                )
                for key in range(before.shards)
            ]
            now = stored.with_shards(shards)
            for key, each in enumerate(divided_records(stored.specs[0], now.specs[0], kept)):
                values = {(n,): (value,) for n, value in as_values(each).items()}
                cluster.tester.updateMapState("kept", key, values)
        for start in range(40 * number, 40 * number + 40, 10):
            cluster.batch(records[start : start + 10], monkeypatch)
        found += cluster.pairs
        before = cluster
    assert sorted(found) == expected
    assert before is not None
    assert before.total("late") == model.late


def test_a_policy_that_is_code_is_not_stored(tmp_path: Path) -> None:
    class Own:
        size_ms, limit, max_size_ms = 15, 3, 40

    spec = JoinSpec(Dynamic(Own()), TIMING, ("c",), ("p",), PASSED, (0, 1))  # type: ignore[arg-type]
    stored_joins([spec], [True], "driver").write(tmp_path)
    assert StoredJoins.left_in(tmp_path) is None


def test_joins_that_were_changed_are_refused(tmp_path: Path) -> None:
    spec = JoinSpec(Tumbling(20), TIMING, ("c",), ("p",), PASSED, (0, 1))
    stored_joins([spec], [True], "driver").write(tmp_path)
    assert StoredJoins.left_in(tmp_path) == stored_joins([spec], [True], "driver")
    file = tmp_path / NAME
    file.write_text(file.read_text().replace("20", "21", 1))
    with pytest.raises(StateError, match="cannot be read"):
        StoredJoins.left_in(tmp_path)


def test_the_checkpoint_of_a_mapping_is_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "checkpoint"
    cluster = Cluster(Tumbling(20), shards=2)
    cluster.batch(in_order([make_records(40)]), monkeypatch)
    kept = [
        of_values(
            {n: bytes(each) for (n,), (each,) in cluster.tester.peekMapState("kept", key).items()},
            1,
        )
        for key in range(2)
    ]
    write_journals(folder, [[kept]])
    stored_joins([cluster.spec], [True], "driver").write(folder)
    for name, text in (("offsets", 'v1\n{"conf": {}}\n0'), ("commits", "v1\n{}")):
        (folder / name).mkdir()
        (folder / name / "0").write_text(text)
    assert describe(folder).kind == "mapping"
    old = reshard(folder, 3, spark=pytest.fail)
    assert old is not None
    found = describe(folder)
    assert (found.count, found.last_batch, len(found.state)) == (3, 0, 3)
    assert all(each.snapshot for each in read_journals(folder, 0, [3], 1)[0])
    with pytest.raises(UsageError, match="3 shards already"):
        reshard(folder, 3, spark=pytest.fail)
    with pytest.raises(UsageError, match="there already"):
        move(folder, "driver", spark=pytest.fail)
    stored_joins([cluster.spec] * 2, [True, True], "driver").write(folder)
    with pytest.raises(UnsupportedError, match="has 2 stream joins"):
        move(folder, "executors", spark=pytest.fail)
