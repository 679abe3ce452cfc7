"""What queries see that join with backfill (J5 to J7), and what is said about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from network_hosts import NetworkHost
from quadweir.runtime.network.backfill import find_not_backfilled
from quadweir.runtime.network.queries import Backfilled
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.network.unit import Unit
from quadweir.runtime.shard import journal
from streaming import stream

JOINED = 10
END = 40
LINES = [(t, f"a{t} p b") for t in range(1, END + 1)]


def asking(text: QueryText) -> QueryText:
    return replace(text, backfill=True)


def join(host: NetworkHost, name: str, text: QueryText, *, replacing: bool = False) -> str:
    """Register a query with backfill; give why its windows will begin empty, if they will."""
    made, refused = host.registry.register({name: asking(text)}, replacing=replacing)
    assert not refused
    return find_not_backfilled(host.registry, host.log.running, made).get(name, "")


def backfill(host: NetworkHost, name: str) -> Backfilled | None:
    query = host.registry.get(name)
    assert query is not None
    return query.backfill


def counting(window: str, *, by: str = "") -> QueryText:
    """How many there are, or how many for each value of a variable."""
    text = f"""REGISTER RSTREAM <urn:q> AS SELECT {by} (COUNT(?x) AS ?n)
    FROM NAMED WINDOW <urn:w> ON <urn:s> [{window}] WHERE {{ WINDOW <urn:w> {{ ?x <urn:p> ?y }} }}
    {"GROUP BY" if by else ""} {by}"""
    return QueryText(text, dialect="rspql", allow_unbounded=("urn:w",))


def counts(host: NetworkHost, number: int, *, after: int = 0) -> dict[int, int]:
    """What a query counted, by its report instants."""
    return {
        each.t: int(each.bindings["n"].lexical)
        for each in host.answers.get(number, [])
        if each.t > after
    }


# --- J5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "window",
    [
        "NOW",
        "ALL",
        "RANGE 5ms",
        "RANGE 5ms STEP 4ms",
        "RANGE 4ms TUMBLING",
        "FROM NOW-6ms TO NOW-2ms",
        "TRIPLES 4",
        "ELEMENTS 4",
        "TRIPLES 4 STEP 3",
    ],
)
def test_J5_with_backfill_the_first_view_is_complete(tmp_path: Path, window: str) -> None:
    with NetworkHost(tmp_path) as host:
        host.register(first=counting(window))
        host.push(stream(*LINES[:JOINED]))
        assert join(host, "second", counting(window)) == ""
        host.push(stream(*LINES[JOINED:]))
        assert backfill(host, "second") == Backfilled("done")
        assert counts(host, 0, after=JOINED) == counts(host, 1) != {}
        assert min(counts(host, 1)) > JOINED


@pytest.mark.parametrize("step", ["", "STEP 4ms"])
@pytest.mark.parametrize("own", [2, 7, 12])
def test_J5_windows_that_are_shorter_are_complete_at_once(
    tmp_path: Path, own: int, step: str
) -> None:
    """Others have longer windows, and one joined that was not there from the start."""
    with NetworkHost(tmp_path) as host:
        host.register(
            first=counting(f"RANGE 12ms {step}", by="?y"),
            same=counting(f"RANGE {own}ms {step}", by="?y"),
        )
        host.push(stream(*LINES[:JOINED]))
        join(host, "second", counting(f"RANGE {own}ms {step}", by="?y"))
        host.push(stream(*LINES[JOINED:]), dies="written")
        assert backfill(host, "second") == Backfilled("done")
        assert counts(host, 1, after=JOINED) == counts(host, 2) != {}


def test_J5_a_query_with_backfill_sees_what_comes_late(tmp_path: Path) -> None:
    """Elements of before it joined that arrive after that, unless they are late for all."""
    with NetworkHost(tmp_path, delays={"urn:s": 50}) as host:
        host.register(first=counting("RANGE 40ms", by="?y"))
        host.push(stream((1000, "a p b"), (1010, "c p b")))
        join(host, "second", counting("RANGE 40ms", by="?y"))
        host.register(third=counting("RANGE 40ms", by="?y"))
        host.push(stream((1005, "d p b"), (1020, "e p b")))
        host.finish()
        assert counts(host, 0)[1020] == counts(host, 1)[1020] == 4
        assert counts(host, 0)[1005] == 2
        assert min(counts(host, 1)) == 1020, "it joined at 1010"
        assert counts(host, 2)[1020] == 1


def test_J5_new_answers_are_those_that_come_after_it_joined(tmp_path: Path) -> None:
    """What was new before is not new again, and parts of before make new answers."""
    pairs = QueryText("""SELECT ?x ?z { STREAM <urn:s> [RANGE 100ms] { ?x <urn:p> ?y }
        STREAM <urn:t> [RANGE 100ms] { ?y <urn:q> ?z } }""")
    with NetworkHost(tmp_path) as host:
        host.register(first=pairs)
        host.push(stream((1, "a p b")))
        host.push(stream((2, "b q c"), name="t"))
        join(host, "second", pairs)
        host.register(third=pairs)
        host.push(stream((3, "b q d"), name="t"))
        assert [each.t for each in host.answers[0]] == [2, 3]
        assert [each.t for each in host.answers[1]] == [3]
        assert 2 not in host.answers


def test_J5_a_query_that_is_replaced_leaves_its_windows_to_its_successor(tmp_path: Path) -> None:
    with NetworkHost(tmp_path) as host:
        host.register(a=counting("RANGE 12ms STEP 1ms", by="?y"))
        host.push(stream(*LINES[:JOINED]))
        assert join(host, "a", counting("RANGE 7ms STEP 1ms", by="?y"), replacing=True) == ""
        host.push(stream(*LINES[JOINED:20]), dies="stepped")
        host.push(stream(*LINES[20:]), loses=True)
        assert counts(host, 1) == dict.fromkeys(range(JOINED + 1, END), 7)


@pytest.mark.parametrize("longest", [1, 50])
def test_J5_after_a_crash_windows_begin_with_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    """Whether a snapshot or the log brings the query back; what it sees is reported again."""
    monkeypatch.setattr(journal, "LONGEST_LOG", longest)
    with NetworkHost(tmp_path, processes=2) as host:
        host.register(a=counting("RANGE 12ms STEP 1ms", by="?y"))
        host.push([])
        host.push(stream(*LINES[:4]))
        host.register(b=counting("RANGE 20ms STEP 1ms", by="?y"))
        host.push(stream(*LINES[4:JOINED]))
        join(host, "c", counting("RANGE 15ms STEP 1ms", by="?y"))
        for place in range(JOINED, END, 5):
            host.push(stream(*LINES[place : place + 5]), dies="kept")
            host.die()
            assert backfill(host, "c") == Backfilled()
            host.push([])
            assert backfill(host, "c") == Backfilled("done", 4)
        assert counts(host, 2) == {t: min(t - 4, 15) for t in range(JOINED + 1, END)}


# --- J6 -------------------------------------------------------------------------------------------

TOGETHER = """SELECT ?x ?z {{ STREAM <urn:s> [RANGE {0}ms] {{ <urn:{1}> <urn:p> ?x }}
    STREAM <urn:t> [RANGE {2}ms] {{ ?x <urn:q> ?z . ?z <urn:r> <urn:{3}> }} }}"""


def together(*own: object) -> QueryText:
    return QueryText(TOGETHER.format(*own))


@pytest.mark.parametrize(
    ("own", "since", "reason"),
    [
        ((30, "a", 40, "b"), None, ""),
        ((50, "a", 30, "b"), 2, ""),
        ((30, "a", 40, "c"), 2, ""),
        ((50, "a", 50, "b"), None, "has windows as long"),
        ((30, "e", 40, "b"), None, "asks for the same constants"),
        ((30, "a", 40, "e"), None, "asks for the same constants"),
    ],
)
def test_J6_each_pattern_needs_a_query_with_its_constants_and_a_window_as_long(
    tmp_path: Path, own: tuple[object, ...], since: int | None, reason: str
) -> None:
    with NetworkHost(tmp_path) as host:
        host.register(first=together(30, "a", 40, "b"))
        host.push(stream((2, "a p x")))
        host.register(second=together(60, "a", 30, "c"), third=together(60, "d", 40, "c"))
        host.push(stream((4, "a p y")))
        found = join(host, "new", together(*own))
        assert reason in found
        host.push(stream((6, "x q z . z r b"), name="t"))
        if reason:
            assert backfill(host, "new") == Backfilled("none", 4, found)
        else:
            assert found == ""
            assert backfill(host, "new") == Backfilled("done", since)


def test_J6_the_queries_of_one_call_do_not_see_what_the_others_see(tmp_path: Path) -> None:
    text = counting("RANGE 5ms", by="?y")
    with NetworkHost(tmp_path) as host:
        host.push(stream((1, "a p b")))
        host.register(other=QueryText("SELECT * { STREAM <urn:s> [NOW] { ?x <urn:p> ?y } }"))
        host.push(stream((2, "a p b")))
        assert join(host, "one", text) == join(host, "two", text) == "no query of its template runs"
        host.push(stream((3, "a p b")))
        why = Backfilled("none", 2, "no query of its template runs")
        assert backfill(host, "one") == backfill(host, "two") == why
        assert host.registry.get("other").backfill is None  # type: ignore[union-attr]


def test_J6_before_anything_is_seen_nothing_is_missing(tmp_path: Path) -> None:
    with NetworkHost(tmp_path) as host:
        assert join(host, "one", counting("RANGE 5ms")) == ""
        host.push(stream((1, "a p b")))
        assert backfill(host, "one") == Backfilled("done")


def test_J6_paused_queries_hold_windows_and_stopped_ones_do_not(tmp_path: Path) -> None:
    text = counting("RANGE 5ms", by="?y")
    with NetworkHost(tmp_path) as host:
        host.register(one=text, two=counting("RANGE 5ms"))
        host.push(stream((1, "a p b")))
        host.registry.pause(["one"], is_paused=True)
        host.push(stream((2, "a p b")))
        assert join(host, "three", text) == ""
        host.registry.stop({host.number("two"): "its sink failed"})
        join(host, "four", counting("RANGE 5ms"))
        host.push(stream((3, "a p b")))
        assert backfill(host, "three") == Backfilled("done")
        assert backfill(host, "four") == Backfilled("none", 2, "no query of its template runs")


def test_J6_a_query_whose_windows_are_lost_in_one_shard_begins_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other shards have these windows; half of them would give half of the answers."""
    pairs = QueryText("SELECT ?x ?y { STREAM <urn:s> [RANGE 9ms] { ?x <urn:p> ?y } }")
    whole = Unit._step
    failing: set[object] = set()

    def step(self: Unit, *given: object) -> object:
        if failing and failing.pop():
            raise ArithmeticError("it went wrong")
        return whole(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Unit, "_step", step)
    with NetworkHost(tmp_path) as host:
        host.register(one=pairs)
        host.push(stream((1, "a p b"), (1, "c p b")))
        failing.add(1)
        # The crash comes before the reason is logged: nobody has stopped the query yet.
        with monkeypatch.context() as here:
            here.setattr(host.registry, "stop", lambda _: [])
            host.push(stream((2, "a p b"), (2, "c p b")))
        join(host, "two", pairs)
        host.push(stream((3, "a p b"), (3, "c p b")))
        stopped = {each.id: each.stopped for each in host.registry.stopped()}
        assert stopped["one"] == "ArithmeticError: it went wrong"
        assert "queries failed whose windows it was to share" in (stopped["two"] or "")


# --- J7 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("output", "works"), [("RSTREAM", True), ("ISTREAM", False)])
def test_J7_a_report_is_not_compared_with_what_is_not_held(
    tmp_path: Path, output: str, works: bool
) -> None:
    text = QueryText(
        f"""REGISTER {output} <urn:q> AS SELECT ?y (COUNT(?x) AS ?n)
        FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 9ms STEP 4ms]
        FROM NAMED WINDOW <urn:v> ON <urn:s> [RANGE 9ms]
        WHERE {{ WINDOW <urn:w> {{ ?x <urn:p> ?y }} WINDOW <urn:v> {{ ?x <urn:p> ?y }} }}
        GROUP BY ?y""",
        dialect="rspql",
    )
    with NetworkHost(tmp_path) as host:
        host.register(first=text)
        host.push(stream(*LINES[:JOINED]))
        found = join(host, "second", text)
        host.push(stream(*LINES[JOINED:]))
        if works:
            assert backfill(host, "second") == Backfilled("done")
            assert counts(host, 0, after=JOINED) == counts(host, 1) != {}
        else:
            assert "what the last report saw is not held" in found
            assert backfill(host, "second") == Backfilled("none", JOINED, found)
