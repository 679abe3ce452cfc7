"""The state processor around a shard: its log, snapshots, copies and late elements, without a JVM."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from pyspark import TaskContext

from quadweir.runtime.host import stateprocessor
from quadweir.runtime.match.rowform import END
from quadweir.runtime.shard import journal
from quadweir.runtime.shard.clock import StreamClock, StreamTiming
from quadweir.runtime.shard.spec import ShardSpec
from quadweir.runtime.wire.pack import BLOB, Header, Packer
from quadweir.sources.labels import stream_prefix
from quadweir.sources.streamfiles import Element
from quadweir.testing import Answer, Oracle, blank_label, diff_answers
from query_hosts import Host, matched
from streaming import quads

LAST = Element(END, 0, 0, quads("a p b"))
PAIRS = """SELECT ?x ?y ?z {
  STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 30ms] { ?y <urn:q> ?z } }"""
CLOSES = """SELECT ?x (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT0.02S STEP PT0.01S]
{ WINDOW <urn:w> { ?x <urn:p> ?y } } GROUP BY ?x"""


def make_feed(count: int, seed: int = 1) -> list[Element]:
    dice = random.Random(seed)
    found, time = [], 1000
    for position in range(count):
        time += dice.randrange(4)
        if dice.random() < 0.5:
            text, name = f"a{dice.randrange(3)} p b{dice.randrange(3)}", "urn:s"
        else:
            text, name = f"b{dice.randrange(3)} q c{dice.randrange(3)}", "urn:t"
        found.append(Element(name, time, position, quads(text)))
    return found


@pytest.fixture(autouse=True)
def no_copies():
    stateprocessor._COPIES.clear()
    yield
    stateprocessor._COPIES.clear()


def expected(text: str, feed: Sequence[Element]) -> list[Answer]:
    return Oracle(text).answers(feed)


@pytest.mark.parametrize("text", [PAIRS, CLOSES])
@pytest.mark.parametrize("size", [3, 40])
def test_batches_give_the_answers_of_the_oracle(text, size):
    feed = make_feed(40)
    host = Host(text)
    for start in range(0, len(feed), size):
        host.push(feed[start : start + size])
    host.finish()
    assert expected(text, feed)
    assert diff_answers(expected(text, feed), host.answers) == ""
    assert host.late == 0


@pytest.mark.parametrize("text", [PAIRS, CLOSES])
def test_a_worker_that_lost_its_copies_takes_the_state_up(text, monkeypatch):
    monkeypatch.setattr(journal, "LONGEST_LOG", 3)
    feed = make_feed(40)
    host = Host(text)
    for start in range(0, len(feed), 4):
        stateprocessor._COPIES.clear()
        host.push(feed[start : start + 4])
    host.finish()
    assert host.replayed > 0
    assert diff_answers(expected(text, feed), host.answers) == ""


def test_a_worker_that_others_took_turns_with_takes_up_what_it_missed(monkeypatch):
    monkeypatch.setattr(journal, "LONGEST_LOG", 7)
    feed = make_feed(60)
    host = Host(PAIRS)
    workers: list[dict[tuple[str, int], stateprocessor._Copy]] = [{}, {}, {}]
    dice = random.Random(5)
    made = []
    spec = ShardSpec.host
    monkeypatch.setattr(ShardSpec, "host", lambda own, key: made.append(own) or spec(own, key))
    for start in range(0, len(feed), 3):
        monkeypatch.setattr(stateprocessor, "_COPIES", dice.choice(workers))
        host.push(feed[start : start + 3])
    host.finish()
    # Shards are made again only at first, or if a snapshot has been written since.
    assert len(made) < host.replayed
    assert diff_answers(expected(PAIRS, feed), host.answers) == ""


def test_the_log_is_cut_by_snapshots(monkeypatch):
    monkeypatch.setattr(journal, "LONGEST_LOG", 3)
    feed = make_feed(40)
    host = Host(PAIRS)
    lengths = []
    for start in range(0, 28, 4):
        host.push(feed[start : start + 4])
        lengths.append(len(host.log()))
    assert lengths == [1, 2, 0, 1, 2, 0, 1]
    assert host.snapshot_parts() == 1


def test_a_batch_larger_than_what_is_held_after_it_is_not_logged(monkeypatch):
    """Another worker then takes a small snapshot up, and not all that arrived."""
    monkeypatch.setattr(journal, "SMALLEST_SNAPSHOT", 1 << 12)
    feed = make_feed(6_000)
    host = Host(PAIRS)
    for start in range(0, 6_000, 1_500):
        stateprocessor._COPIES.clear()
        host.push(feed[start : start + 1_500])
        assert host.log(key=1) == []
    # Few elements are less than the windows hold.
    host.push(make_feed(6_004)[6_000:])
    assert len(host.log(key=1)) == 1


def test_a_copy_of_a_batch_that_failed_is_not_used():
    """A task may fail after its step: the state is then as before, and the copy is not."""
    feed = make_feed(40)
    host = Host(PAIRS)
    host.push(feed[:16])
    states = {key: dict(host.tester.peekMapState("kept", key)) for key in range(2)}
    given = list(host.answers)
    host.push(feed[16:24])
    for key, kept in states.items():
        host.tester.updateMapState("kept", key, kept)
    host.answers = given
    host.replayed = 0
    host.push(feed[16:24])
    assert host.replayed > 0
    host.push(feed[24:])
    host.finish()
    assert diff_answers(expected(PAIRS, feed), host.answers) == ""


def test_a_copy_that_a_step_left_half_done_is_not_used(monkeypatch):
    feed = make_feed(40)
    host = Host(PAIRS)
    host.push(feed[:16])
    with monkeypatch.context() as patch:
        patch.setattr(journal, "pack_entry", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            host.push(feed[16:24])
    assert len(stateprocessor._COPIES) == 1  # the other shard's
    host.push(feed[16:24])
    host.push(feed[24:])
    host.finish()
    assert diff_answers(expected(PAIRS, feed), host.answers) == ""


def test_late_elements_change_nothing_and_are_counted():
    feed = make_feed(40)
    host = Host(PAIRS)
    host.push(feed[:30])
    late = [Element("urn:s", 900, 100, quads("a0 p b0"))]
    host.push(late)
    assert host.late == 1
    host.push(feed[30:])
    host.finish()
    assert host.late == 1
    assert diff_answers(expected(PAIRS, feed), host.answers) == ""


CHAIN = """SELECT ?x ?z ?w WHERE { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y }
  STREAM <urn:t> [RANGE 30ms] { ?y <urn:q> ?z } STREAM <urn:u> [RANGE 30ms] { ?z <urn:r> ?w } }"""


def test_a_late_element_that_every_shard_gets_is_counted_once():
    triples = {"urn:s": "a0 p b0", "urn:t": "b0 q c0", "urn:u": "c0 r d0"}
    host = Host(CHAIN)
    for time in (1000, 1100):
        host.push([Element(name, time, time, quads(text)) for name, text in triples.items()])
    for place, (name, text) in enumerate(triples.items()):
        host.push([Element(name, 900, place, quads(text))])
    assert host.late == len(triples)


def test_within_the_delay_the_order_of_arrival_is_of_no_account():
    feed = make_feed(40)
    host = Host(PAIRS, delay_ms=1000)
    shuffled = list(feed)
    random.Random(2).shuffle(shuffled)
    for start in range(0, len(feed), 5):
        host.push(shuffled[start : start + 5])
    host.finish()
    assert host.late == 0
    assert diff_answers(expected(PAIRS, feed), host.answers) == ""


def test_the_oldest_copies_are_dropped(monkeypatch):
    monkeypatch.setattr(stateprocessor, "_MOST_COPIES", 2)
    for name in ("one", "two"):
        Host(PAIRS, name=name).push(make_feed(4))
    assert {name for name, _ in stateprocessor._COPIES} == {"two.0"}
    # So are those that were not used for a while.
    monkeypatch.setattr(stateprocessor, "_MOST_COPIES", 64)
    for copy in stateprocessor._COPIES.values():
        copy.used -= stateprocessor._KEPT_SECONDS
    Host(PAIRS, name="three").push(make_feed(4))
    assert {name for name, _ in stateprocessor._COPIES} == {"three.0"}


MADE = """CONSTRUCT { ?x <urn:r> ?z } {
  STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 30ms] { ?y <urn:q> ?z } }"""
COUNTED = """SELECT ?x (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <urn:made> [RANGE PT0.02S STEP PT0.01S]
{ WINDOW <urn:w> { ?x <urn:r> ?z } } GROUP BY ?x"""


def test_a_query_that_reads_another_learns_how_far_time_has_come():
    """Answers that leave early do not make those late that leave after them."""
    feed = make_feed(60)
    arrived = list(feed)
    random.Random(3).shuffle(arrived)
    makes = Host(MADE, delay_ms=1000, name="makes")
    counts = Host(COUNTED, streams=["urn:made"], reported=frozenset({"urn:made"}), name="counts")

    def elements(answers: Sequence[Answer]) -> list[Element]:
        return [
            Element("urn:made", each.t, number, tuple(each.graph or ()))
            for number, each in enumerate(answers)
        ]

    given = 0
    for start in range(0, len(arrived) + 1, 10):
        makes.push(arrived[start : start + 10] or [LAST])
        assert makes.through is not None
        made = elements(makes.answers)[given:]
        given += len(made)
        counts.push(made, reported={"urn:made": makes.through})
    assert counts.late == 0
    wanted = Oracle(COUNTED).answers(elements(expected(MADE, feed)))
    assert wanted
    assert diff_answers(wanted, counts.answers) == ""


def test_time_waits_for_streams_that_are_not_idle():
    timing = StreamTiming({"urn:s": 0, "urn:t": 0}, {"urn:s": None, "urn:t": 500})
    times = StreamClock()
    times.highest, times.heard = {"urn:s": 1000}, {"urn:s": 50_000}
    times.advance(("urn:s", "urn:t"), timing, 50_000)
    assert times.through == StreamClock().through
    times.advance(("urn:s", "urn:t"), timing, 50_501)
    assert times.through == 999
    assert StreamClock.of(times.as_text()) == times


def test_labels_of_blank_nodes_are_those_of_the_oracle():
    assert stream_prefix("urn:s") + "x" == blank_label("urn:s", "x")


def test_a_batch_that_is_repeated_has_the_time_that_spark_noted_for_it(tmp_path, monkeypatch):
    task = SimpleNamespace(getLocalProperty={"streaming.sql.batchId": "3"}.get)
    monkeypatch.setattr(TaskContext, "get", lambda: task)
    (tmp_path / "3").write_text('v1\n{"batchWatermarkMs":0,"batchTimestampMs":4711}\n{}\n')
    plan = Host(PAIRS).spec.plan
    rows_of = matched(plan, make_feed(4), 1)

    def packed_at(clock: str) -> int:
        (batch,) = Packer.of(plan.matching, (0,), clock=clock)([rows_of])
        return Header.of(batch.column(BLOB)[0].as_py()).packed_at

    assert packed_at(str(tmp_path)) == 4711
    # Where nothing is noted, or none of it can be read, it is now.
    for clock in ("", str(tmp_path / "elsewhere")):
        assert packed_at(clock) > 1_700_000_000_000
    (tmp_path / "3").write_text("v1\n{}")
    assert packed_at(str(tmp_path)) > 1_700_000_000_000
