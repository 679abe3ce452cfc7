"""Shards of a network: queries come and go, faults stay apart, and journals bring all of it back."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest

from network_hosts import LAST, POINTS, NetworkHost, alone
from quadweir.errors import StateError
from quadweir.runtime.network import control
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.network.sharedunit import SharedUnit
from quadweir.runtime.network.unit import Stepped, Unit
from quadweir.runtime.shard import journal
from quadweir.sources.streamfiles import Element
from quadweir.testing import Answer, diff_answers
from streaming import quads, stream

STREAMS = ("urn:s", "urn:t")
PAIRS = "SELECT ?x ?y { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } }"
JOIN = """SELECT ?x ?z {
  STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 30ms] { ?y <urn:q> ?z } }"""
COUNTS = "SELECT (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 20ms SLIDE 5ms] { ?x <urn:p> ?y } }"
TOTALS = """SELECT ?x (COUNT(*) AS ?n)
FROM NAMED WINDOW <urn:w> ON STREAM <urn:t> [RANGE 12ms STEP 4ms]
WHERE { WINDOW <urn:w> { ?x <urn:q> ?z } } GROUP BY ?x"""
NAMED = "SELECT ?x { STREAM <urn:s> [RANGE 8ms] { ?x <urn:p> <urn:b1> } }"
RECENT = "SELECT ?x ?z FROM STREAM <urn:t> [RANGE 9ms STEP 3ms] WHERE { ?x <urn:q> ?z }"
TEXTS = (PAIRS, JOIN, COUNTS, TOTALS, NAMED, RECENT)


def make_batches(seed: int, count: int, size: int = 4) -> list[list[Element]]:
    dice = random.Random(seed)
    found, now = [], 1000
    for position in range(count * size):
        now += dice.randrange(4)
        text, name = f"a{dice.randrange(3)} p b{dice.randrange(3)}", "urn:s"
        if dice.random() < 0.5:
            text, name = f"b{dice.randrange(3)} q c{dice.randrange(3)}", "urn:t"
        found.append(Element(name, now, position, quads(text)))
    return [found[at : at + size] for at in range(0, len(found), size)]


def assert_as_alone(
    host: NetworkHost, batches: list[list[Element]], number: int, first: int, last: int
) -> list[Answer]:
    """Compare the answers of a query with those of the query alone."""
    text = host.lifetimes[number].text
    expected = alone(text, batches, first, last, streams=STREAMS)
    assert diff_answers(expected, host.answers.get(number, [])) == "", number
    return expected


# --- queries that come and go ---


@pytest.mark.parametrize(("shards", "seed"), [(1, 1), (2, 2), (3, 3), (2, 4)])
def test_queries_that_come_and_go_answer_as_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int, seed: int
) -> None:
    """Whatever is lost on the way."""
    monkeypatch.setattr(journal, "LONGEST_LOG", seed + 1)
    dice = random.Random(seed)
    batches = make_batches(seed, 16)
    spans: dict[int, list[int]] = {}
    with NetworkHost(tmp_path, shards=shards, processes=2) as host:
        host.register(**{f"q{place}": text for place, text in enumerate(TEXTS)})
        for place, batch in enumerate(batches):
            host.push(batch, dies=dice.choice([None, None, *POINTS]), loses=dice.random() < 0.3)
            for number in host.delivery.queries:
                spans.setdefault(number, [place, 0])[1] = place + 1
            one, other = (f"q{dice.randrange(8)}" for _ in "ab")
            if one in [each.id for each in host.registry.queries()] and dice.random() < 0.5:
                host.registry.unregister([one])
            host.register(replacing=True, **{other: dice.choice(TEXTS)})
            if dice.random() < 0.3:
                host.die()
        host.push(LAST)
    batches.append(LAST)
    for number in host.delivery.queries:
        spans.setdefault(number, [len(batches) - 1, 0])[1] = len(batches)
    assert len(spans) > 10
    total = sum(len(assert_as_alone(host, batches, each, *spans[each])) for each in spans)
    assert total > 100


def test_a_query_sees_only_what_is_later_than_when_it_joins(tmp_path: Path) -> None:
    """Later than all that was seen on its own streams; of other streams it knows nothing (J1)."""
    with NetworkHost(tmp_path, delays={"urn:s": 50}) as host:
        host.register(first=PAIRS)
        host.push(stream((1000, "a p b"), (1010, "a p c")))
        host.push(stream((1500, "x q y"), name="t"))
        host.register(second=PAIRS)
        host.push(stream((1005, "a p d"), (1010, "a p e"), (1011, "a p f")))
        assert [each.t for each in host.answers[0]] == [1000, 1010, 1005, 1010, 1011]
        assert [each.t for each in host.answers[1]] == [1011]


def test_a_late_statement_is_one_dead_letter_however_many_templates_ask_for_it(
    tmp_path: Path,
) -> None:
    late = Element("urn:s", 900, 7, quads("a p b1 . a p b2"))
    with NetworkHost(tmp_path, shards=1, letters=True) as host:
        host.register(a=PAIRS, named=NAMED, counts=COUNTS, other=PAIRS)
        host.push(stream((1000, "a p b1")))
        host.push([late])
        host.push([late, *stream((1001, "a p b1"))], dies="stepped")
    assert len({each.template for each in host.registry.queries()}) == 3
    assert len(host.letters) == 4, "two statements in each of two batches"
    assert sum("urn:b2" in each for each in host.letters) == 2


def test_queries_that_join_before_anything_is_seen_see_all(tmp_path: Path) -> None:
    with NetworkHost(tmp_path) as host:
        host.push([])
        host.register(a=PAIRS)
        host.push([])
        host.register(b=PAIRS)
        host.push(stream((-5, "a p b")))
        assert host.answers[0] == host.answers[1] != []


def test_a_query_that_was_unregistered_gives_no_more_answers(tmp_path: Path) -> None:
    with NetworkHost(tmp_path) as host:
        host.register(a=PAIRS, b=PAIRS)
        host.push(stream((1000, "a p b")))
        host.registry.unregister(["a"])
        host.push(stream((1001, "a p c")))
        assert {number: len(found) for number, found in host.answers.items()} == {0: 1, 1: 2}


def test_a_query_that_came_and_went_between_two_batches_was_never_there(tmp_path: Path) -> None:
    with NetworkHost(tmp_path) as host:
        host.register(a=PAIRS)
        host.push(stream((1000, "a p b")))
        host.register(b=PAIRS, c=COUNTS)
        host.registry.unregister(["b", "c"])
        host.register(a=NAMED, replacing=True)
        host.register(a=PAIRS, replacing=True)
        host.push(stream((1001, "a p b1")), dies="written")
        host.push(stream((1002, "a p b1")))
        assert {number: len(found) for number, found in host.answers.items()} == {0: 1, 4: 2}


@pytest.mark.parametrize("longest", [1, 50])
def test_a_paused_query_gives_no_answers_and_its_windows_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    """J4; also after a crash, whether a snapshot or the log brings it back."""
    monkeypatch.setattr(journal, "LONGEST_LOG", longest)
    batches = make_batches(5, 8)
    with NetworkHost(tmp_path) as host:
        host.register(a=JOIN, b=JOIN, c=COUNTS)
        for place, batch in enumerate(batches):
            match place:
                case 2:
                    host.registry.pause(["a", "c"], is_paused=True)
                case 4:
                    host.die()
                case 5:
                    host.registry.pause(["a", "c"], is_paused=False)
                    host.registry.pause(["a"], is_paused=True)
                    host.registry.pause(["a"], is_paused=False)
            host.push(batch, dies="kept" if place == 3 else None)
        host.push(LAST)
    batches.append(LAST)
    for number, text in ((0, JOIN), (2, COUNTS)):
        expected: list[Answer] = []

        def unless_paused(
            batch: int, found: list[Answer], expected: list[Answer] = expected
        ) -> None:
            if batch not in (2, 3, 4):
                expected.extend(found)

        every = alone(
            QueryText(text), batches, 0, len(batches), streams=STREAMS, on_batch=unless_paused
        )
        assert len(expected) < len(every)
        assert diff_answers(expected, host.answers[number]) == ""
    assert_as_alone(host, batches, 1, 0, len(batches))


def test_a_query_over_static_data_only(tmp_path: Path) -> None:
    """Its template has no tests of statements."""
    text = """SELECT ?x ?y FROM NAMED WINDOW <urn:w> ON STREAM <urn:s> [RANGE 5ms STEP 5ms]
    WHERE { ?x <urn:p> ?y }"""
    static = quads("a p b")
    batches = [stream((1000, "a p b")), stream((1012, "a p c")), LAST]
    with NetworkHost(tmp_path, static=static) as host:
        refused = host.register(a=text, b=PAIRS)
        for batch in batches:
            host.push(batch)
    if not refused:
        expected = alone(QueryText(text), batches, 0, 3, streams=STREAMS, static=static)
        assert diff_answers(expected, host.answers.get(0, [])) == ""


# --- faults ---


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The templates that fail at their next step."""
    templates: set[int] = set()
    alone, shared = Unit.step, SharedUnit.step

    def fails(*_: object) -> None:
        raise ArithmeticError("it went wrong")

    def failing_step(unit: Unit, *args: Any) -> Stepped:
        if unit.spec.number in templates:
            monkeypatch.setattr(unit._shard, "step", fails)
        return alone(unit, *args)

    def failing_shared(unit: SharedUnit, *args: Any) -> Stepped:
        for number in templates & {*unit.templates}:
            monkeypatch.setattr(unit._shard._heads[str(number)].output, "step", fails)
        return shared(unit, *args)

    monkeypatch.setattr(Unit, "step", failing_step)
    monkeypatch.setattr(SharedUnit, "step", failing_shared)
    return templates


@pytest.mark.parametrize("dies", [None, *POINTS])
@pytest.mark.parametrize("longest", [1, 50])
def test_a_query_that_fails_stops_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: set[int],
    dies: str | None,
    longest: int,
) -> None:
    """With those that share its template; also if the driver dies before it knows."""
    monkeypatch.setattr(journal, "LONGEST_LOG", longest)
    batches = make_batches(3, 7)
    with NetworkHost(tmp_path) as host:
        host.register(a=JOIN, same=JOIN, other=PAIRS, third=COUNTS)
        for place, batch in enumerate(batches):
            if place == 3:
                failing.add(host.lifetimes[0].template)
            host.push(batch, dies=dies if place == 3 else None)
            failing.clear()
        reasons = {each.id: each.stopped for each in host.registry.stopped()}
        assert reasons == dict.fromkeys(["a", "same"], "ArithmeticError: it went wrong")
        host.push(LAST)
    batches.append(LAST)
    assert_as_alone(host, batches, 2, 0, len(batches))
    assert_as_alone(host, batches, 3, 0, len(batches))
    assert_as_alone(host, batches, 0, 0, 3)


def test_a_reason_is_reported_until_the_query_leaves_also_after_recovery(
    tmp_path: Path, failing: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver may die between the batch and the stop."""
    with NetworkHost(tmp_path, shards=1) as host:
        host.register(a=PAIRS, b=COUNTS)
        host.push(stream((1000, "a p b")))
        failing.add(0)
        stop = host.registry.stop
        monkeypatch.setattr(host.registry, "stop", lambda reasons: [])
        host.push(stream((1001, "a p b")))
        failing.clear()
        assert host.registry.stopped() == []
        monkeypatch.setattr(host.registry, "stop", stop)
        host.die()
        host.push(stream((1002, "a p b")))
        assert [each.id for each in host.registry.stopped()] == ["a"]
        assert '"failed": [[0, [0], "ArithmeticError' in host.facts["units"][0]
        host.push(stream((1003, "a p b")))
        assert '"failed": []' in host.facts["units"][0]
        assert len(host.answers[0]) == 1


def test_a_query_that_failed_can_be_registered_again(tmp_path: Path, failing: set[int]) -> None:
    with NetworkHost(tmp_path) as host:
        host.register(a=PAIRS)
        failing.add(0)
        host.push(stream((1000, "a p b")))
        failing.clear()
        host.register(a=PAIRS)
        host.push(stream((1001, "a p c")), dies="kept")
        host.push(stream((1002, "a p d")))
        assert [each.t for each in host.answers[1]] == [1001, 1002]
        assert host.registry.stopped() == []


def test_a_query_that_cannot_join_stops_those_of_its_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them may be forgotten, whether the shard is brought back from its journal or not."""

    def fail(unit: Unit, *args: object) -> None:
        raise ArithmeticError("it went wrong")

    with NetworkHost(tmp_path) as host:
        host.register(a=PAIRS, c=COUNTS)
        host.push([])
        host.register(b=PAIRS)
        with monkeypatch.context() as patch:
            patch.setattr(Unit, "join", fail)
            host.push([])
        host.die()
        host.push(stream((1000, "a p b")))
        assert {each.id for each in host.registry.stopped()} == {"a", "b"}
        host.push(stream((1001, "a p b")))
        assert [*host.answers] == [1]


def test_a_query_that_holds_too_much_is_stopped(tmp_path: Path) -> None:
    many = stream(*((1000, f"a{n} p b{n}") for n in range(30)))
    with NetworkHost(tmp_path, most_held=10, shards=1) as host:
        host.register(a=JOIN, b=PAIRS)
        host.push(many)
        (stopped,) = host.registry.stopped()
        assert stopped.id == "a"
        assert "limit is 10" in str(stopped.stopped)
        host.push(stream((1001, "a p b")))
        assert len(host.answers[1]) == 31


# --- templates ---


def test_templates_without_queries_are_forgotten_when_no_journal_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LONGEST_LOG", 3)
    monkeypatch.setattr(control, "_REMEMBERED", 5)
    batches = make_batches(2, 24, size=2)
    spans = {0: (0, 3), 1: (0, 25), 2: (13, 25)}
    with NetworkHost(tmp_path, shards=1) as host:
        host.register(a=JOIN, b=PAIRS)
        for place, batch in enumerate(batches):
            if place == 3:
                host.registry.unregister(["a"])
            if place == 13:
                assert [*host.registry.specs] == [*host.spec.templates] == [1]
                host.register(c=JOIN)
            # Whenever workers are lost, they find what their journals name.
            host.push(batch, loses=True)
            if place in (5, 14):
                host.die()
        assert [*host.spec.templates] == [1, 2]
        host.push(LAST)
    batches.append(LAST)
    for number, span in spans.items():
        assert_as_alone(host, batches, number, *span)


def test_a_driver_that_starts_again_knows_the_templates_that_journals_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the control log began again after they had left."""
    monkeypatch.setattr(control, "_MOST_CHANGES", 2)
    batches = make_batches(4, 60, size=1)
    with NetworkHost(tmp_path) as host:
        host.register(a=JOIN, b=PAIRS)
        for place, batch in enumerate(batches):
            host.push(batch)
            match place % 4:
                case 0:
                    host.register(**{f"c{place}": COUNTS, f"d{place}": NAMED})
                case 2:
                    host.registry.unregister([f"c{place - 2}", f"d{place - 2}"])
                case 3:
                    host.die()
        assert host.log.first > 0
        host.push(LAST)
    batches.append(LAST)
    assert_as_alone(host, batches, 0, 0, 61)
    assert_as_alone(host, batches, 1, 0, 61)
    assert_as_alone(host, batches, 2, 1, 3)


def test_the_control_log_begins_again_only_if_that_makes_it_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many recent changes, which journals may need, are not written again with every batch."""
    monkeypatch.setattr(control, "_MOST_CHANGES", 5)
    monkeypatch.setattr(control, "_REMEMBERED", 3)
    log = tmp_path / "control" / "log"
    with NetworkHost(tmp_path) as host:
        for number in range(8):
            host.register(**{f"q{number}": PAIRS})
        written = log.stat().st_ino
        for time in range(3):
            host.push(stream((1000 + time, "a p b")))
            assert log.stat().st_ino == written
        host.push([])
        assert log.stat().st_ino != written
        assert (host.log.first, [*host.log.changes()]) == (8, [])


def test_a_journal_of_another_network_is_refused(tmp_path: Path) -> None:
    with NetworkHost(tmp_path) as host:
        host.register(a=PAIRS)
        host.push(stream((1000, "a p b")))
        host.lose()
        host.log.close()
        for file in (tmp_path / "control").iterdir():
            file.unlink()
        host.start()
        with pytest.raises(StateError, match="names a query that the network does not know"):
            host.push(stream((1001, "a p b")))


def test_batches_go_on_while_a_query_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand queries take seconds; nobody else waits for them."""
    monkeypatch.setattr(control, "_REMEMBERED", 1)
    is_planning, goes_on = threading.Event(), threading.Event()
    with NetworkHost(tmp_path) as host:
        host.register(a=PAIRS, b=COUNTS)
        plan = host.templates.plan

        def slow_plan(*args: Any, **options: Any) -> Any:
            is_planning.set()
            assert goes_on.wait(60)
            return plan(*args, **options)

        monkeypatch.setattr(host.templates, "plan", slow_plan)
        host.push(stream((1000, "a p b")))
        texts = {"again": COUNTS, "new": NAMED, "a": JOIN}
        thread = threading.Thread(target=host.register, kwargs={"replacing": True, **texts})
        thread.start()
        try:
            assert is_planning.wait(60)
            host.registry.unregister(["b"])
            for time in range(1, 5):
                host.push(stream((1000 + time, "a p b")))
            # Someone is about to need this template again.
            assert 1 in host.registry.specs
        finally:
            goes_on.set()
            thread.join()
        host.push(stream((1005, "a p b")))
        assert {each.id for each in host.registry.queries()} == {"a", "again", "new"}
        assert {*host.delivery.queries} == {2, 3, 4}
        assert [each.t for each in host.answers[0]] == [1000, 1001, 1002, 1003, 1004]


def test_queries_can_be_registered_while_batches_run(tmp_path: Path) -> None:
    """From another thread: nothing is lost, and no batch fails."""
    batches = make_batches(6, 30, size=2)
    count = 60
    with NetworkHost(tmp_path) as host:
        host.register(a=PAIRS)

        def register() -> None:
            for number in range(count):
                text = NAMED.replace("8ms", f"{number + 1}ms").replace(
                    "<urn:p>", f"<urn:p{number}>"
                )
                host.register(**{f"q{number}": text})
                if number % 3 == 0:
                    host.registry.unregister([f"q{number}"])

        thread = threading.Thread(target=register)
        thread.start()
        for batch in batches:
            host.push(batch)
        thread.join()
        host.push(LAST)
        assert len(host.registry) == 1 + count - count // 3
        assert {*host.delivery.queries} == {each.number for each in host.registry.queries()}
    assert_as_alone(host, [*batches, LAST], 0, 0, 31)
