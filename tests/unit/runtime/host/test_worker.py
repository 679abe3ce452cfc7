"""Shards in local workers and their journals: lost at any time, they continue as they were."""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
from pathlib import Path

import pytest

import small_lsbench
from quadweir.errors import InternalError, StateError
from quadweir.runtime.host import pool
from quadweir.runtime.host.messages import Arrived, Close, Done, Failed, JobChange, Take
from quadweir.runtime.host.pool import ProcessEndedError
from quadweir.runtime.host.worker import serve
from quadweir.runtime.shard import journal
from quadweir.runtime.shard.folderjournal import FolderJournal
from quadweir.sources.streamfiles import Element
from quadweir.syntax.read import parse
from quadweir.testing import Oracle, diff_answers
from streaming import quads
from worker_hosts import WorkerHost

QUERIES = Path(__file__).parents[4] / "src/quadweir/bench/queries/lsbench"
PAIRS = """SELECT ?x ?y ?z {
  STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 30ms] { ?y <urn:q> ?z } }"""
TWO_STAGES = """SELECT ?z (COUNT(*) AS ?n) {
  STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 30ms] { ?y <urn:q> ?z } }
GROUP BY ?z"""


def make_feed(count: int, seed: int = 1) -> list[Element]:
    dice = random.Random(seed)
    found, time = [], 1000
    for position in range(count):
        time += dice.randrange(4)
        text, name = f"a{dice.randrange(3)} p b{dice.randrange(3)}", "urn:s"
        if dice.random() < 0.5:
            text, name = f"b{dice.randrange(3)} q c{dice.randrange(3)}", "urn:t"
        found.append(Element(name, time, position, quads(text)))
    return found


@pytest.mark.parametrize("text", [PAIRS, TWO_STAGES])
@pytest.mark.parametrize("longest", [1, 3, 50])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_shards_that_are_lost_are_taken_up_as_they_were(tmp_path, monkeypatch, text, longest, seed):
    """Also where the last batch is taken again, whether its snapshot replaced others or not."""
    monkeypatch.setattr(journal, "LONGEST_LOG", longest)
    dice = random.Random(seed)
    feed = make_feed(48)
    host = WorkerHost(text, tmp_path)
    for start in range(0, len(feed), 4):
        host.push(feed[start : start + 4])
        for _ in range(dice.randrange(3)):
            host.lose(again=True)
            host.push(feed[start : start + 4])
        if dice.random() < 0.5:
            host.lose()
    host.finish()
    expected = Oracle(text).answers(feed)
    assert len(expected) > 20
    assert diff_answers(expected, host.answers) == ""


def test_a_snapshot_takes_the_place_of_what_was_logged(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "LONGEST_LOG", 3)
    host = WorkerHost(PAIRS, tmp_path, shards=1)
    feed = make_feed(40)
    kept = []
    for start in range(0, 28, 4):
        host.push(feed[start : start + 4])
        kept.append(sorted(each.name for each in (tmp_path / "0-0").iterdir()))
    # What came before is kept until the batch that left the snapshot is known to be done.
    assert kept[1] == ["lock", "log--1"]
    assert kept[2] == ["lock", "log--1", "log-2", "snapshot-2"]
    assert kept[3] == ["lock", "log-2", "snapshot-2"]
    assert kept[5] == ["lock", "log-2", "log-5", "snapshot-2", "snapshot-5"]
    assert sum(each["state_rows"] for each in host.kept) == 1
    assert sum(each["state_bytes"] for each in host.kept) > 0
    host.lose()


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_an_entry_that_was_not_written_to_its_end_does_not_count(tmp_path, cut):
    feed = make_feed(24)
    host = WorkerHost(PAIRS, tmp_path, shards=1)
    for start in range(0, 24, 4):
        host.push(feed[start : start + 4])
    host.lose(again=True)
    log = tmp_path / "0-0" / "log--1"
    os.truncate(log, log.stat().st_size - cut)
    host.push(feed[20:])
    host.finish()
    assert diff_answers(Oracle(PAIRS).answers(feed), host.answers) == ""


@pytest.mark.parametrize("harm", ["truncate", "change", "remove"])
def test_state_that_does_not_reach_far_enough_is_refused(tmp_path, harm):
    feed = make_feed(24)
    host = WorkerHost(PAIRS, tmp_path, shards=1)
    for start in range(0, 24, 4):
        host.push(feed[start : start + 4])
    host.lose()
    log = tmp_path / "0-0" / "log--1"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    match harm:
        case "truncate":
            log.write_bytes(data[:-1])
        case "change":
            log.write_bytes(data)
        case _:
            log.unlink()
    with pytest.raises(StateError, match="does not reach batch 6"):
        host.push(feed)


def test_a_shard_belongs_to_one_process_at_a_time(tmp_path):
    first = FolderJournal(tmp_path)
    with pytest.raises(StateError, match="another run holds the checkpoint"):
        FolderJournal(tmp_path, wait_seconds=0.05)
    # Who is about to let go of it is waited for.
    timer = threading.Timer(0.1, first.close)
    timer.start()
    FolderJournal(tmp_path, wait_seconds=60).close()
    timer.join()


def test_what_fails_is_reported_and_the_next_request_is_carried_out():
    ours, theirs = multiprocessing.Pipe()
    thread = threading.Thread(target=serve, args=(theirs,))
    thread.start()
    ours.send(Take(0, 0, Arrived(), (JobChange(),)))
    reply = ours.recv()
    assert isinstance(reply, Failed)
    assert "the driver opens shards before it uses them" in str(reply.error)
    ours.send(Close())
    assert ours.recv() == Done(None)
    ours.close()
    thread.join()


def test_processes_are_used_again_unless_they_ended():
    pool.end_idle()
    (one,) = pool.take(1)
    with pytest.raises(InternalError, match="a worker process failed"):
        one.ask(Take(0, 0, Arrived(), (JobChange(),)))
        one.answer()
    pool.give_back([one])
    (again, other) = pool.take(2)
    assert again is one
    assert other.number != one.number
    os.kill(other.number, 9)
    with pytest.raises(ProcessEndedError):
        other.ask(Close())
        other.answer()
    pool.give_back([one, other])
    assert [one] == pool._IDLE
    pool.end_idle()
    with pytest.raises(ProcessEndedError):
        one.ask(Close())
    assert not Path(f"/proc/{one.number}").exists()


@pytest.mark.parametrize("number", range(1, 13))
def test_lsbench_queries_whose_shards_are_lost_give_the_answers_of_the_oracle(tmp_path, number):
    dialect = ("cqels", "csparql", "rspql")[number % 3]
    text = (QUERIES / dialect / f"q{number:02}.rq").read_text(encoding="utf-8")
    feed = small_lsbench.feed(posts=16)
    static = [*small_lsbench.static(), *small_lsbench.static_by_name()]
    streams = sorted({each.stream for each in feed})
    expected = Oracle(parse(text, allow=("FROM",)), static=static).answers(feed)
    assert expected
    for shards, size in ((1, len(feed)), (2, 37), (5, 100)):
        folder = tmp_path / f"{shards}"
        folder.mkdir()
        host = WorkerHost(text, folder, static=static, streams=streams, shards=shards)
        for start in range(0, len(feed), size):
            host.push(feed[start : start + size])
            host.lose(again=start % 2 == 0)
            if start % 2 == 0:
                host.push(feed[start : start + size])
        host.finish()
        assert diff_answers(expected, host.answers) == ""
