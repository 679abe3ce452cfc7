"""Stream joins in every window give what a plain model gives, however arrivals are cut up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from join_model import Model, Record
from quadweir.kernel.streamjoin.clock import Heard
from quadweir.kernel.streamjoin.dividing import divided_joins
from quadweir.kernel.streamjoin.join import Arrivals, Pairs, StreamJoin
from quadweir.kernel.streamjoin.policies import (
    CarryPolicy,
    CountPolicy,
    Next,
    PaperPolicy,
    ReleasedPolicy,
    Subwindow,
)
from quadweir.kernel.streamjoin.windows import (
    Dynamic,
    Interval,
    JoinTiming,
    JoinWindow,
    Sliding,
    Tumbling,
)

_SMALL = {
    "size_ms": 20,
    "min_size_ms": 5,
    "max_size_ms": 60,
    "limit": 4,
    "least_limit": 2,
}


@dataclass(frozen=True)
class Own:
    """A policy as a user may write it: by the span alone, and with something carried over."""

    size_ms: int = 15
    limit: int = 3
    max_size_ms: int = 40

    def adapt(self, window: Subwindow) -> Next:
        return Next(max(window.span_ms, 3), window.limits, window.size_ms // 2)


TIMED: st.SearchStrategy[JoinWindow] = st.sampled_from(
    [Tumbling(20), Sliding(20, 7), Sliding(24, 8), Interval(15), Interval(0)]
)
DYNAMIC: st.SearchStrategy[JoinWindow] = st.sampled_from(
    [
        Dynamic(PaperPolicy(**_SMALL)),
        Dynamic(ReleasedPolicy(**_SMALL)),
        Dynamic(CarryPolicy(**_SMALL)),
        Dynamic(CountPolicy(**_SMALL)),
        Dynamic(Own()),
    ]
)
TIMINGS = st.builds(
    JoinTiming,
    st.tuples(st.sampled_from([0, 5, 30]), st.sampled_from([0, 5, 30])),
    st.sampled_from([None, 50]),
)


@st.composite
def arrivals(draw: st.DrawFn) -> list[Record]:
    """Records whose times mostly go on, sometimes fall back, and sometimes leap."""
    found = []
    time, arrival = 1_000, 5_000
    for number in range(draw(st.integers(0, 60))):
        time += draw(st.sampled_from([0, 0, 1, 2, 3, 5, 9, 30, 300]))
        arrival += draw(st.sampled_from([0, 0, 1, 5, 40, 80]))
        back = draw(st.sampled_from([0, 0, 0, 3, 12, 200]))
        key = draw(st.sampled_from(['"a"', '"b"', '"c"', None, '"1"', "2"]))
        found.append(Record(number, draw(st.integers(0, 1)), key, time - back, arrival))
    return found


def numbers(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def as_arrivals(records: list[Record]) -> Arrivals:
    return Arrivals(
        key=pa.array([each.key for each in records], pa.string()),
        side=numbers([each.side for each in records]),
        time=numbers([each.time for each in records]),
        arrival=numbers([each.arrival for each in records]),
        number=numbers([each.number for each in records]),
        order=numbers([each.number for each in records]),
        carried=pa.table({"n": pa.array([f"r{each.number}" for each in records], pa.string())}),
    )


def heard(records: list[Record]) -> Heard:
    return Heard(
        numbers([each.number for each in records]),
        numbers([each.side for each in records]),
        numbers([each.time for each in records]),
        numbers([each.arrival for each in records]),
    )


def run(
    window: JoinWindow,
    timing: JoinTiming,
    records: list[Record],
    cuts: list[int],
    *,
    shards: int = 1,
    restart: bool = False,
    divisions: Sequence[int] = (),
) -> tuple[list[tuple[int, int, int]], int, list[StreamJoin]]:
    joins = [StreamJoin(window, timing, ("n",)) for _ in range(shards)]
    found = []
    edges = [0, *sorted(set(cuts)), len(records)]
    for number, (start, end) in enumerate(pairwise(edges)):
        batch = records[start:end]
        if divisions:
            shards = divisions[number % len(divisions)]
            joins = divided_joins(
                joins, lambda: StreamJoin(window, timing, ("n",)), shards, shards_of_keys
            )
        for shard in range(shards):
            if restart:
                fresh = StreamJoin(window, timing, ("n",))
                fresh.restore(joins[shard].snapshot())
                joins[shard] = fresh
            own = [each for each in batch if hash_of(each.key) % shards == shard]
            for pairs in joins[shard].step(as_arrivals(own), heard(batch), most=3):
                for side in (pairs.children, pairs.parents):
                    assert len(set(side.number.tolist())) == len(side.number)
                    assert side.carried["n"].to_pylist() == [f"r{each}" for each in side.number]
                found += zip(*map(np.ndarray.tolist, ids_and_times(pairs)), strict=True)
    return sorted(found), sum(each.late for each in joins), joins


def shards_of_keys(texts: pa.Array, count: int) -> np.ndarray:
    return numbers([hash_of(each) % count for each in texts.to_pylist()])


def ids_and_times(pairs: Pairs) -> tuple[np.ndarray, ...]:
    return pairs.child, pairs.parent, pairs.time


def hash_of(key: str | None) -> int:
    return sum(map(ord, key or ""))


@given(st.one_of(TIMED, DYNAMIC), TIMINGS, arrivals(), st.data())
def test_each_window_gives_what_the_model_gives(
    window: JoinWindow, timing: JoinTiming, records: list[Record], data: st.DataObject
) -> None:
    model = Model(window, timing)
    expected = model.run(records)
    cuts = data.draw(st.lists(st.integers(0, len(records)), max_size=6))
    shards = data.draw(st.integers(1, 3))
    found, late, _ = run(
        window, timing, records, cuts, shards=shards, restart=data.draw(st.booleans())
    )
    assert found == expected
    assert late == model.late


@given(DYNAMIC, TIMINGS, arrivals())
def test_a_restart_after_every_record_changes_nothing(
    window: JoinWindow, timing: JoinTiming, records: list[Record]
) -> None:
    cuts = list(range(len(records)))
    expected = run(window, timing, records, [])
    found = run(window, timing, records, cuts, restart=True)
    assert found[:2] == expected[:2]
    assert found[2][0].facts()["held"] == expected[2][0].facts()["held"]


@given(st.one_of(TIMED, DYNAMIC), TIMINGS, arrivals(), st.data())
def test_joins_that_are_divided_again_give_what_the_model_gives(
    window: JoinWindow, timing: JoinTiming, records: list[Record], data: st.DataObject
) -> None:
    model = Model(window, timing)
    expected = model.run(records)
    cuts = data.draw(st.lists(st.integers(0, len(records)), max_size=6))
    divisions = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    found, late, joins = run(window, timing, records, cuts, divisions=divisions)
    assert found == expected
    assert late == model.late
    assert sum(each.pairs for each in joins) == len(expected)


@given(TIMED, arrivals(), st.randoms())
def test_arrival_order_within_the_delay_does_not_matter(
    window: JoinWindow, records: list[Record], random: object
) -> None:
    delay = 1_000_000
    timing = JoinTiming((delay, delay))
    shuffled = sorted(records, key=lambda _: random.random())  # type: ignore[attr-defined]
    expected, late, _ = run(window, timing, records, [])
    found, late_too, _ = run(window, timing, shuffled, [len(records) // 2])
    assert found == expected
    assert late == late_too == 0


@given(arrivals(), st.integers(1, 4))
def test_nothing_is_held_once_time_has_gone_on(records: list[Record], shards: int) -> None:
    after = max((each.time for each in records), default=0) + 10_000
    last = [Record(len(records) + n, n % 2, '"z"', after + n // 2 * 1000, 10**6) for n in range(6)]
    for window in (Tumbling(20), Dynamic(CarryPolicy(**_SMALL))):
        _, _, joins = run(window, JoinTiming(), [*records, *last], [len(records)], shards=shards)
        for join in joins:
            join.snapshot()
        assert sum(join.held() for join in joins) <= len(last)
        assert sum(join.facts()["keys"] for join in joins) <= 1
