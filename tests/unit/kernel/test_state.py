"""State as bytes: how large it is, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.errors import InternalError, StateError
from quadweir.kernel.codec import StateKind, read_frame, write_frame
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.shard import Shard
from quadweir.kernel.takeover import take_over
from quadweir.syntax import parse
from quadweir.terms import IRI, Quad
from quadweir.testing import Answer, diff_answers
from quadweir.testing.shards import ShardFeed, as_answers
from streaming import quads, stream

JOIN = """
SELECT ?a ?c WHERE {
  STREAM <urn:s> [RANGE 100ms] { ?a <urn:p> ?b }
  STREAM <urn:s> [RANGE 100ms] { ?b <urn:q> ?c }
}
"""
GROUPED = """
SELECT ?a (COUNT(*) AS ?n) (MAX(?b) AS ?most)
WHERE { STREAM <urn:s> [RANGE 100ms] { ?a <urn:p> ?b } } GROUP BY ?a
"""


def shard_of(text: str, static: tuple[Quad, ...] = ()) -> Shard:
    return Shard.of(parse(text, dialect="cqels"), static=Dataset.of(static))


def events(shard: Shard, start: int, count: int, *, at: int) -> Events:
    """Matches of every leaf: node i to node i + 1, at growing times."""
    time = at + np.arange(count, dtype=np.int64) * 8 // count
    position = np.arange(start, start + count, dtype=np.int64)
    numbers = range(start, start + count + 1)
    names = [f"<urn:node/{number * 7_919 % 1_000_003}>" for number in numbers]  # in no order
    columns = [pa.array(names[:-1]), pa.array(names[1:])]
    return Events({n: MatchColumns(time, position, columns) for n in range(len(shard.leaves))})


@pytest.mark.parametrize("text", [JOIN, GROUPED])
def test_a_snapshot_grows_with_what_is_held_and_shrinks_with_it(text: str) -> None:
    shard = shard_of(text)
    empty = len(shard.snapshot())
    shard.step(events(shard, 0, 64, at=1), 10)
    few = len(shard.snapshot())
    shard.step(events(shard, 64, 20_000, at=11), 20)
    many = len(shard.snapshot())
    assert few < many / 20
    # The windows run empty but for as many as there were at first.
    shard.step(Events(), 9_000)
    shard.step(events(shard, 100_000, 64, at=9_001), 9_010)
    assert len(shard.snapshot()) < 2 * few
    shard.step(Events(), 99_000)
    assert len(shard.snapshot()) < 2 * empty


@pytest.mark.parametrize("as_numbers", [False, True])
def test_a_delta_grows_with_what_arrived_not_with_what_is_held(as_numbers: bool) -> None:
    shard = shard_of(JOIN)
    shard.step(events(shard, 0, 20_000, at=1), 10)
    many = len(shard.delta())
    arrived = events(shard, 20_000, 16, at=11)
    if as_numbers:
        columns = [shard.dictionary.encode(each) for each in arrived.matches[0].columns]
        arrived = Events(
            {
                place: MatchColumns(each.time, each.position, columns)
                for place, each in arrived.matches.items()
            }
        )
    shard.step(arrived, 20)
    assert len(shard.delta()) < many / 50
    shard.step(Events(), 21)
    assert len(shard.delta()) < 400


def test_a_delta_holds_no_more_of_a_dictionary_than_its_column_uses() -> None:
    names = pa.array([f"<urn:node/{number}>" for number in range(10_000)])
    column = pa.DictionaryArray.from_arrays(pa.array([5, 6], pa.int32()), names)
    shard = shard_of(JOIN)
    times = np.array([1, 2], dtype=np.int64)
    shard.step(Events({0: MatchColumns(times, times, [column, column])}), 2)
    assert len(shard.delta()) < 2_000


def test_numbers_of_terms_are_replayed_as_the_terms_they_were() -> None:
    shard, other = shard_of(JOIN), shard_of(JOIN)
    arrived = events(shard, 0, 4, at=1).matches[0]
    columns = [shard.dictionary.encode(each) for each in arrived.columns]
    shard.step(Events({0: MatchColumns(arrived.time, arrived.position, columns)}), 1)
    # Another shard would number other terms first.
    other.dictionary.numbers(["<urn:other>"])
    other.restore(None, [shard.delta()])
    asked = events(shard, 1, 4, at=2).matches[0]
    answers = [each.step(Events({1: asked}), 2).table() for each in (shard, other)]
    assert len(answers[0]) == 4
    assert answers[0].sort_by("a").equals(answers[1].sort_by("a"))


def test_nothing_is_answered_twice_after_a_restart() -> None:
    shard, other = shard_of(JOIN), shard_of(JOIN)
    assert len(shard.step(events(shard, 0, 8, at=1), 1)) == 7
    other.restore(None, [shard.delta()])
    assert len(other.step(Events(), 50)) == 0


# --- what is refused ------------------------------------------------------------------------------


def test_bytes_of_something_else_are_refused() -> None:
    with pytest.raises(StateError, match="no snapshot of Quadweir"):
        shard_of(JOIN).restore(b"PK\x03\x04 and so on")
    with pytest.raises(StateError, match="no snapshot of Quadweir"):
        shard_of(JOIN).restore(b"")


def test_another_version_is_refused() -> None:
    data = bytearray(shard_of(JOIN).snapshot())
    data[8:10] = (99).to_bytes(2, "little")
    with pytest.raises(StateError, match="format 99, where format 3 is read"):
        shard_of(JOIN).restore(bytes(data))


def test_state_of_another_query_is_refused() -> None:
    longer = JOIN.replace("100ms", "200ms", 1)
    with pytest.raises(StateError, match="another query"):
        shard_of(longer).restore(shard_of(JOIN).snapshot())
    shard = shard_of(JOIN)
    shard.step(Events(), 1)
    with pytest.raises(StateError, match="another query"):
        shard_of(longer).restore(None, [shard.delta()])


def test_the_name_of_a_query_is_of_no_account() -> None:
    named = replace(parse(JOIN, dialect="cqels"), name="urn:other")
    Shard.of(named).restore(shard_of(JOIN).snapshot())


def test_other_static_data_is_refused_and_its_order_is_not() -> None:
    text = "SELECT ?a WHERE { STREAM <urn:s> [RANGE 100ms] { ?a <urn:p> ?b } ?b <urn:q> ?c }"
    quads = tuple(Quad(IRI(f"urn:{n}"), IRI("urn:q"), IRI("urn:o")) for n in range(3))
    left = shard_of(text, quads).snapshot()
    shard_of(text, quads[::-1]).restore(left)
    with pytest.raises(StateError, match="over other static data"):
        shard_of(text, quads[:2]).restore(left)


def test_damage_anywhere_is_noticed() -> None:
    shard = shard_of(JOIN)
    shard.step(events(shard, 0, 8, at=1), 1)
    for data, kind in ((shard.snapshot(), "snapshot"), (shard.delta(), "delta")):
        for place in range(8, len(data), 7):
            damaged = bytearray(data)
            damaged[place] ^= 0x10
            with pytest.raises(StateError):
                restored(kind, bytes(damaged))
        for length in (10, 60, len(data) // 2, len(data) - 1):
            with pytest.raises(StateError, match="damaged"):
                restored(kind, data[:length])


def restored(kind: str, data: bytes) -> None:
    if kind == "snapshot":
        shard_of(JOIN).restore(data)
    else:
        shard_of(JOIN).restore(None, [data])


def test_a_snapshot_is_no_delta() -> None:
    shard = shard_of(JOIN)
    with pytest.raises(StateError, match="not a delta"):
        shard.restore(None, [shard.snapshot()])


def test_missing_and_swapped_deltas_are_noticed() -> None:
    shard = shard_of(JOIN)
    deltas = []
    for t in (1, 2, 3):
        shard.step(Events(), t)
        deltas.append(shard.delta())
    with pytest.raises(StateError, match="step 3 where that of step 2"):
        shard_of(JOIN).restore(None, [deltas[0], deltas[2]])
    with pytest.raises(StateError, match="step 1 where that of step 4"):
        shard_of(JOIN).restore(shard.snapshot(), [deltas[0]])


def test_state_is_taken_up_before_the_first_step_only() -> None:
    shard = shard_of(JOIN)
    with pytest.raises(InternalError):
        shard.delta()
    shard.step(Events(), 1)
    with pytest.raises(InternalError):
        shard.restore(shard.snapshot())


def test_an_array_that_claims_more_than_there_is_is_refused() -> None:
    """Such a frame has a good checksum; it was written by somebody else."""
    query = bytes(32)
    good = {"a": np.arange(6, dtype=np.int64).reshape(2, 3), "b": np.zeros(0, dtype=np.uint8)}
    found = read_frame(StateKind.DELTA, query, write_frame(StateKind.DELTA, query, good))
    assert found["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["b"].dtype == np.uint8

    class Liar(np.ndarray):  # type: ignore[type-arg]
        @property
        def shape(self) -> tuple[int, ...]:  # type: ignore[override]
            return (2**40,)

    lie = good["a"].reshape(-1).view(Liar)
    with pytest.raises(StateError, match="an array ends after its frame"):
        read_frame(StateKind.DELTA, query, write_frame(StateKind.DELTA, query, {"a": lie}))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x ?z { STREAM <urn:s> [RANGE 30ms] { ?x <urn:p> ?y } ?y <urn:r> ?z }",
        "SELECT ?z (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 30ms SLIDE 10ms] { ?x <urn:p> ?y } "
        "?y <urn:r> ?z } GROUP BY ?z",
        "SELECT ?x { STREAM <urn:s> [RANGE 30ms] { ?x <urn:p> ?y } MINUS { ?y <urn:r> ?z } }",
    ],
)
def test_other_static_data_takes_the_place_of_the_old_where_that_is_asked_for(text: str) -> None:
    """From then on answers are those of a shard that had it all along."""
    before, after = quads("b0 r c0 . b1 r c1"), quads("b1 r d1 . b2 r d2 . b9 r d9")
    feed = stream(*((100 + 7 * n, f"a{n % 4} p b{n % 3}") for n in range(20)))
    old, always = (ShardFeed(shard_of(text, each)) for each in (before, after))
    for each in (old, always):
        each.push(feed[:10])
    snapshot = old.shard.snapshot()
    with pytest.raises(StateError, match="over other static data"):
        shard_of(text, after).restore(snapshot)
    old.shard = shard_of(text, after)
    take_over(old.shard, snapshot)
    assert old.shard.through == always.shard.through

    def rest(fed: ShardFeed) -> list[Answer]:
        found = [fed.push(feed[10:15]), fed.push(feed[15:]), fed.finish()]
        return [one for each in found for one in as_answers(each, fed.shard.query)]

    expected = rest(always)
    assert expected
    assert diff_answers(expected, rest(old)) == ""
    assert old.shard.held() == always.shard.held()


def test_a_snapshot_leaves_out_static_data_but_for_what_windows_hold_of_it() -> None:
    text = "SELECT ?x ?z { STREAM <urn:s> [RANGE 30ms] { ?x <urn:p> ?y } ?y <urn:r> ?z }"
    few = quads(" . ".join(f"b{n} r c{n}" for n in range(5)))
    many = quads(" . ".join(f"b{n} r c{n}" for n in range(5_000)))
    feed = stream(*((100 + 7 * n, f"a{n % 4} p b{n % 3}") for n in range(20)))
    sizes = []
    for static in (few, many):
        whole, half = (ShardFeed(shard_of(text, static)) for _ in range(2))
        for each in (whole, half):
            each.push(feed[:10])
        snapshot = half.shard.snapshot()
        sizes.append(len(snapshot))
        half.shard = shard_of(text, static)
        half.shard.restore(snapshot)
        expected = as_answers(whole.push(feed[10:]), whole.shard.query)
        assert expected
        assert diff_answers(expected, as_answers(half.push(feed[10:]), whole.shard.query)) == ""
        again = shard_of(text, static)
        again.restore(half.shard.snapshot())
        assert again.held() == whole.shard.held()
        assert len(again.dictionary) == len(whole.shard.dictionary)
    assert sizes[1] < 2 * sizes[0]
