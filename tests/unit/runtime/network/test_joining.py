"""What each kind of window shows of a query that joins a running network (J1, J2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from network_hosts import NetworkHost
from quadweir.runtime.network.querytext import QueryText
from streaming import stream

JOINED = 10
END = 40


def counting(window: str) -> QueryText:
    text = f"""REGISTER RSTREAM <urn:q> AS SELECT (COUNT(?x) AS ?n)
    FROM NAMED WINDOW <urn:w> ON <urn:s> [{window}] WHERE {{ WINDOW <urn:w> {{ ?x <urn:p> ?y }} }}"""
    return QueryText(text, dialect="rspql", allow_unbounded=("urn:w",))


def counts(host: NetworkHost, number: int) -> dict[int, int]:
    """What a query counted, by its report instants."""
    return {each.t: int(each.bindings["n"].lexical) for each in host.answers[number]}


def joined(folder: Path, window: str) -> tuple[dict[int, int], dict[int, int]]:
    """What a query counts that was there from the start, and the same query that joins at 10.

    There is one element at each instant.
    """
    lines = [(t, f"a{t} p b") for t in range(1, END + 1)]
    with NetworkHost(folder) as host:
        host.register(first=counting(window))
        host.push(stream(*lines[:JOINED]))
        host.register(second=counting(window))
        host.push(stream(*lines[JOINED:]))
        return counts(host, 0), counts(host, 1)


@pytest.mark.parametrize(
    ("window", "complete", "since"),
    [
        ("NOW", 1, 11),
        ("RANGE 5ms", 5, 15),
        ("RANGE 5ms STEP 4ms", 5, 16),
        ("RANGE 4ms TUMBLING", 4, 16),
        ("FROM NOW-6ms TO NOW-2ms", 4, 16),
        ("TRIPLES 4", 4, 14),
        ("ELEMENTS 4", 4, 14),
        ("TRIPLES 4 STEP 3", 4, 16),
    ],
)
def test_the_first_complete_view_of_a_query_that_joins(
    tmp_path: Path, window: str, complete: int, since: int
) -> None:
    _, found = joined(tmp_path, window)
    assert min(found) > JOINED
    assert since in found
    assert [n for t, n in found.items() if t < since and n >= complete] == []
    assert {n for t, n in found.items() if t >= since} == {complete}


@pytest.mark.parametrize("window", ["NOW", "RANGE 5ms", "RANGE 5ms STEP 4ms", "RANGE 4ms TUMBLING"])
def test_complete_views_are_those_of_a_query_that_was_there_before(
    tmp_path: Path, window: str
) -> None:
    first, second = joined(tmp_path, window)
    assert {t: n for t, n in second.items() if t >= 16} == {
        t: n for t, n in first.items() if t >= 16
    }


def test_a_whole_stream_begins_when_the_query_joins(tmp_path: Path) -> None:
    first, second = joined(tmp_path, "ALL")
    assert second
    assert all(n == t for t, n in first.items())
    assert all(n == t - JOINED for t, n in second.items())
