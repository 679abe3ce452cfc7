"""The registry of a network: what a call does at once, and what the log brings back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from network_hosts import inputs_of
from quadweir.algebra.windowing import ReportOn, Windowing
from quadweir.errors import InternalError, QuadweirError, UnboundedStateError, UsageError
from quadweir.runtime.network.controllog import ControlLog
from quadweir.runtime.network.queries import NetworkQuery
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.network.registry import QueryRegistry
from quadweir.runtime.network.templates import Templates

PAIRS = "SELECT ?x ?y { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } }"
COUNTS = "SELECT (COUNT(*) AS ?n) { STREAM <urn:t> [RANGE 20ms SLIDE 5ms] { ?x <urn:p> ?y } }"
NAMES = "SELECT ?x { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> <urn:name> } }"
MAKES = "CONSTRUCT { ?x <urn:q> ?y } { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } }"
WHOLE = """SELECT ?x { STREAM <urn:s> [ALL] { ?x <urn:p> ?y }
  STREAM <urn:t> [ALL] { ?y <urn:q> ?z } }"""

Open = Callable[..., QueryRegistry]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens the registry as a new process finds it; the process before has ended."""
    found: list[ControlLog] = []

    def open_registry(begun: int = -1) -> QueryRegistry:
        for each in found:
            each.close()
        found.append(ControlLog(tmp_path, begun))
        return QueryRegistry(Templates(inputs_of()), found[-1])

    yield open_registry
    for each in found:
        each.close()


def register(
    registry: QueryRegistry, *, replacing: bool = False, **texts: str | QueryText
) -> dict[str, QuadweirError]:
    given = {
        name: text if isinstance(text, QueryText) else QueryText(text)
        for name, text in texts.items()
    }
    return registry.register(given, replacing=replacing)[1]


def numbers(registry: QueryRegistry) -> dict[str, int]:
    return {each.id: each.number for each in registry.queries()}


def described(queries: list[NetworkQuery]) -> list[dict[str, Any]]:
    return [{name: getattr(each, name) for name in NetworkQuery.__slots__} for each in queries]


def assert_same_again(opened: Open, registry: QueryRegistry) -> QueryRegistry:
    """Compare the registry with what a new process reads from the log."""
    again = opened()
    assert described(again.queries()) == described(registry.queries())
    assert described(again.stopped()) == described(registry.stopped())
    used = {each.template for each in registry.queries()}
    assert {each: again.members_of(each) for each in used} == {
        each: registry.members_of(each) for each in used
    }
    for number in used:
        one, other = again.specs[number], registry.specs[number]
        assert (one.number, one.home, one.is_open) == (other.number, other.home, other.is_open)
        assert one.shards.plan.wanted == other.shards.plan.wanted
    return again


# --- one call ---


def test_a_second_query_of_a_name_is_refused(opened: Open) -> None:
    registry = opened()
    assert register(registry, a=PAIRS) == {}
    refused = register(registry, a=COUNTS, b=NAMES)
    assert [*refused] == ["a"]
    assert "there is a query 'a' already" in str(refused["a"])
    assert numbers(registry) == {"a": 0, "b": 1}
    assert registry.by_number(0) is registry.get("a")


def test_the_same_text_again_changes_nothing(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS)
    assert register(registry, a=PAIRS) == {}
    assert register(registry, a=PAIRS, replacing=True) == {}
    assert numbers(registry) == {"a": 0}
    assert [*registry.pending] == [1]


def test_a_query_that_is_replaced_has_another_number(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS, b=PAIRS)
    assert register(registry, a=COUNTS, replacing=True) == {}
    assert numbers(registry) == {"b": 1, "a": 2}
    change = registry.pending[2]
    assert [each.number for each in change.leaving] == [0]
    assert [each.number for each in change.joining] == [2]
    assert registry.by_number(0) is None
    assert_same_again(opened, registry)


def test_bad_queries_are_refused_one_by_one(opened: Open) -> None:
    registry = opened()
    refused = register(
        registry,
        good=PAIRS,
        syntax="SELECT ?x {",
        unknown="SELECT ?x { STREAM <urn:other> [RANGE 5ms] { ?x <urn:p> ?y } }",
        whole=WHOLE,
        times=PAIRS.replace("<urn:s>", "<urn:s> TIMESTAMP <urn:at>"),
        dialect=QueryText(PAIRS, dialect="klingon"),
        content=QueryText(PAIRS, content="sack"),
        fine=COUNTS,
    )
    assert numbers(registry) == {"good": 0, "fine": 1}
    assert [*refused] == ["syntax", "unknown", "whole", "times", "dialect", "content"]
    assert all(each.hint or each.span for each in refused.values())
    assert "urn:other" in str(refused["unknown"])
    assert_same_again(opened, registry)


def test_a_fault_of_ours_in_planning_a_query_does_not_refuse_the_others(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = opened()
    plan = Templates.plan

    def faulty_plan(templates: Templates, key: Any, number: int, **own: Any) -> Any:
        assert number != 1, "a fault"
        return plan(templates, key, number, **own)

    monkeypatch.setattr(Templates, "plan", faulty_plan)
    register(registry, a=PAIRS)
    refused = register(registry, b=COUNTS, c=PAIRS)
    assert isinstance(refused["b"], InternalError)
    assert "a fault" in str(refused["b"])
    assert numbers(registry) == {"a": 0, "c": 1}


def test_a_bad_query_does_not_replace_a_good_one(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS)
    assert [*register(registry, a="SELECT", replacing=True)] == ["a"]
    assert numbers(registry) == {"a": 0}


def test_all_queries_of_a_call_are_one_line_of_the_log(opened: Open, tmp_path: Path) -> None:
    """However the line is cut off, all of them are there after a crash, or none."""
    registry = opened()
    register(registry, a=PAIRS)
    before = (tmp_path / "log").read_bytes()
    register(registry, **{f"q{n}": PAIRS for n in range(5)}, replacing=True, a=COUNTS)
    whole = (tmp_path / "log").read_bytes()
    for end in [len(before), len(before) + 1, (len(before) + len(whole)) // 2, len(whole) - 1]:
        (tmp_path / "log").write_bytes(whole[:end])
        assert numbers(opened()) == {"a": 0}
    (tmp_path / "log").write_bytes(whole)
    assert [*numbers(opened())] == ["q0", "q1", "q2", "q3", "q4", "a"]


def test_unknown_names_change_nothing(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS, b=PAIRS)
    for call in (
        lambda: registry.unregister(["a", "c"]),
        lambda: registry.pause(["a", "c"], is_paused=True),
        lambda: registry.pause(["a", "c"], is_paused=False),
    ):
        with pytest.raises(UsageError, match="there is no query 'c'"):
            call()
    assert numbers(registry) == {"a": 0, "b": 1}
    assert not any(each.is_paused for each in registry.queries())
    assert [*registry.pending] == [1]


def test_a_call_that_changes_nothing_is_not_logged(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS)
    registry.pause(["a"], is_paused=False)
    registry.unregister([])
    registry.pause(["a"], is_paused=True)
    registry.pause(["a"], is_paused=True)
    assert [*registry.pending] == [1, 2]


def test_nothing_changes_if_the_log_cannot_be_written(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS, b=PAIRS, c=PAIRS)
    registry.stop({numbers(registry)["c"]: "it failed"})
    opened()  # another process has the log now
    before = described(registry.queries()), described(registry.stopped())
    for call in (
        lambda: register(registry, d=PAIRS),
        lambda: registry.pause(["a"], is_paused=True),
        lambda: registry.unregister(["a", "c"]),
        lambda: registry.stop({0: "it failed"}),
    ):
        with pytest.raises(UsageError, match="does not run"):
            call()
        assert (described(registry.queries()), described(registry.stopped())) == before


# --- templates ---


def test_equal_queries_share_a_template_whatever_their_names(opened: Open) -> None:
    registry = opened()
    made = MAKES.replace("<urn:q>", "<urn:r>")
    register(registry, a=PAIRS, b=f"# a remark\n{PAIRS}", c=COUNTS, d=MAKES, e=made)
    found = {each.id: each.template for each in registry.queries()}
    assert found["a"] == found["b"] != found["c"]
    assert found["d"] == found["e"], "what is made of a solution is not shared"
    assert registry.members_of(found["a"]) == 2


@pytest.mark.parametrize("allowed", ["urn:w", "urn:s"])
def test_only_queries_that_are_allowed_to_keep_a_stream_whole_do(
    opened: Open, allowed: str
) -> None:
    """Also after a restart, and although a query of the same template is allowed to."""
    text = """SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <urn:s> [ALL]
    WHERE { WINDOW <urn:w> { ?x <urn:p> ?y } }"""
    registry = opened()
    allows = QueryText(text, "rspql", allow_unbounded=(allowed,))
    assert registry.register({"a": allows}, replacing=False)[1] == {}
    refused = registry.register({"b": QueryText(text, "rspql")}, replacing=False)[1]
    assert isinstance(refused["b"], UnboundedStateError)
    assert [each.id for each in opened().queries()] == ["a"]


def test_a_template_without_queries_can_be_forgotten(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS, b=PAIRS)
    registry.unregister(["a"])
    assert registry.forget([0]) == []
    registry.unregister(["b"])
    assert registry.forget([0, 7]) == [0]
    assert registry.specs == {}
    register(registry, c=PAIRS)
    (query,) = registry.queries()
    assert query.template == 1, "its number is never given to another one"


def test_a_forgotten_shape_that_came_again_is_known_by_both_numbers_after_a_restart(
    opened: Open,
) -> None:
    registry = opened()
    register(registry, a=PAIRS)
    registry.unregister(["a"])
    registry.forget([0])
    register(registry, b=PAIRS)
    again = assert_same_again(opened, registry)
    # Journals may still name the first one.
    assert [*again.specs] == [0, 1]
    assert again.forget([0]) == [0]
    register(again, c=PAIRS)
    assert {each.template for each in again.queries()} == {1}
    again.unregister(["b", "c"])
    assert again.forget([1]) == [1]
    assert again.specs == {}


def test_numbers_are_not_given_again_after_a_restart(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS, b=COUNTS)
    registry.unregister(["b"])
    again = opened()
    register(again, c=NAMES)
    query = again.get("c")
    assert query is not None
    assert (query.number, query.template) == (2, 2)


# --- stopped and paused ---


def test_a_stopped_query_is_listed_until_it_is_unregistered(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS, b=PAIRS)
    assert [each.id for each in registry.stop({0: "its sink failed", 9: "unknown"})] == ["a"]
    assert registry.stop({0: "again"}) == []
    assert numbers(registry) == {"b": 1}
    assert [(each.id, each.stopped) for each in registry.stopped()] == [("a", "its sink failed")]
    again = assert_same_again(opened, registry)
    with pytest.raises(UsageError):
        again.pause(["a"], is_paused=True)
    assert again.unregister(["a"]) == ["a"]
    assert again.stopped() == []
    assert_same_again(opened, again)


def test_the_name_of_a_stopped_query_is_free(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS)
    registry.stop({0: "it failed"})
    assert register(registry, a=PAIRS) == {}
    assert numbers(registry) == {"a": 1}
    assert registry.stopped() == []
    again = assert_same_again(opened, registry)
    again.stop({1: "it failed again"})
    assert [each.number for each in again.stopped()] == [1]
    assert_same_again(opened, again)


def test_what_was_paused_is_paused_after_a_restart(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS, b=PAIRS)
    registry.pause(["a", "b"], is_paused=True)
    registry.pause(["b"], is_paused=False)
    again = assert_same_again(opened, registry)
    assert {each.id: each.is_paused for each in again.queries()} == {"a": True, "b": False}


# --- the log ---


@pytest.mark.parametrize("compacts", [0, 1, 3, 6])
def test_a_registry_is_the_same_after_compaction(opened: Open, compacts: int) -> None:
    registry = opened()
    register(registry, a=PAIRS, b=COUNTS, c=NAMES, d=PAIRS)
    registry.pause(["d", "c"], is_paused=True)
    registry.stop({0: "it failed", 1: "it failed, too"})
    register(registry, e=MAKES, c=PAIRS, replacing=True)
    registry.unregister(["b"])
    register(registry, a=COUNTS)
    assert registry._log.version == 6
    registry._log.compact(compacts)
    again = assert_same_again(opened, registry)
    register(again, f=NAMES)
    query = again.get("f")
    assert query is not None
    assert query.number == 7


@pytest.mark.parametrize(
    "text",
    [
        QueryText(PAIRS),
        QueryText(PAIRS, dialect="cqels", content="graph", base="http://example.org/"),
        QueryText(WHOLE, allow_unbounded=("urn:s", "urn:t")),
        QueryText(
            COUNTS, windowing=Windowing(start_ms=3, full=True, report=ReportOn.CONTENT_CHANGE)
        ),
        QueryText(COUNTS, windowing=Windowing(start_ms=0)),
    ],
)
def test_a_query_is_read_back_as_it_was_meant(opened: Open, text: QueryText) -> None:
    registry = opened()
    assert register(registry, a=text) == {}
    assert_same_again(opened, registry)
    (query,) = opened().queries()
    assert query.text == text
    assert query.text.parsed() == text.parsed()


def test_a_query_that_cannot_be_read_any_more_is_named(opened: Open, tmp_path: Path) -> None:
    """Its text was fine when it was registered; the network has other streams now."""
    registry = opened()
    register(registry, a=PAIRS, b=COUNTS)
    log = ControlLog(tmp_path, -1)
    try:
        only = replace(inputs_of(), feeds={"urn:t": inputs_of().feeds["urn:t"]})
        with pytest.raises(QuadweirError, match="'a'"):
            QueryRegistry(Templates(only), log)
    finally:
        log.close()


def test_changes_are_handed_over_once_and_in_their_order(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS)
    register(registry, b=COUNTS)
    registry.unregister(["a"])
    assert registry.queries_at(0) == {}
    assert {each.id for each in registry.queries_at(2).values()} == {"a", "b"}
    first = registry.take_changes(0, 2)
    assert first is not None
    assert [each.id for each in first.joining] == ["a", "b"]
    assert [*registry.pending] == [3]
    second = registry.take_changes(2, 3)
    assert second is not None
    assert [each.id for each in second.leaving] == ["a"]
    assert registry.take_changes(3, 3) is None


def test_what_comes_and_goes_between_two_batches_changes_nothing(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS)
    assert registry.take_changes(0, 1) is not None
    register(registry, b=PAIRS, a=COUNTS, replacing=True)
    registry.pause(["a", "b"], is_paused=True)
    registry.pause(["b"], is_paused=False)
    register(registry, b=COUNTS, a=NAMES, replacing=True)
    registry.stop({numbers(registry)["a"]: "it failed"})
    change = registry.take_changes(1, 6)
    assert change is not None
    assert [(each.id, each.number) for each in change.leaving] == [("a", 0)]
    assert [(each.id, each.number) for each in change.joining] == [("b", 3)]
    assert {*change.paused, *change.resumed} <= {1, 2}, "those that are not there are ignored"


def test_the_last_of_several_pauses_counts(opened: Open) -> None:
    registry = opened()
    register(registry, a=PAIRS, b=PAIRS)
    for is_paused in (True, False, True):
        registry.pause(["a"], is_paused=is_paused)
    for is_paused in (True, False):
        registry.pause(["b"], is_paused=is_paused)
    change = registry.take_changes(1, 6)
    assert change is not None
    assert (change.paused, change.resumed) == ([0], [1])
