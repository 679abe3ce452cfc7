"""What an upgraded query keeps of its windows, and what it says is lost."""

from __future__ import annotations

import pytest

from quadweir.optimize import optimize
from quadweir.plan.inherit import Inheritance, inherit
from quadweir.plan.query import QueryPlan, plan_query
from quadweir.syntax import parse


def planned(text: str) -> QueryPlan:
    return plan_query(optimize(parse(text)).query, streams=("urn:s",))


def window(inside: str, scope: str = "RANGE 10s", select: str = "?s", after: str = "") -> str:
    return f"SELECT {select} {{ STREAM <urn:s> [{scope}] {{ {inside} }} }} {after}"


def compared(then: str, now: str) -> Inheritance:
    return inherit(planned(then), planned(now))


JOINED = "?s <urn:room> ?r . ?s <urn:temp> ?v"
MEANS = window(JOINED, "RANGE 10s SLIDE 5s", "?r (AVG(?v) AS ?m)", "GROUP BY ?r")


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (MEANS, MEANS),
        # What stands above the windows.
        (MEANS, MEANS + " HAVING (AVG(?v) > 20)"),
        (MEANS + " HAVING (AVG(?v) > 20)", MEANS),
        (MEANS, MEANS.replace("AVG", "MAX").replace("GROUP BY ?r", "GROUP BY ?s").replace("?r (", "?s (")),
        (window(JOINED), window(JOINED, select="DISTINCT ?r")),
        # Names of variables, and the order in which a join is written.
        (window(JOINED), window("?x <urn:temp> ?y . ?x <urn:room> ?z", select="?x")),
        # A pattern less, and a shorter window.
        (window(JOINED), window("?s <urn:temp> ?v")),
        (window(JOINED), window(JOINED, "RANGE 5s")),
        # A filter more, or a stricter one.
        (window(JOINED), window(JOINED + " FILTER(?v > 20)")),
        (window(JOINED + " FILTER(?v > 20)"), window(JOINED + " FILTER(?v > 30)")),
        (window(JOINED + " FILTER(?v <= 2.5)"), window(JOINED + " FILTER(?v <= 2)")),
    ],
)  # fmt: skip
def test_what_is_made_of_the_same_windows_loses_nothing(then: str, now: str) -> None:
    found = compared(then, now)
    assert found.losses == ()
    assert None not in found.leaves


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (window("?s <urn:temp> ?v"), window(JOINED), "begins empty: the old query kept no matches"),
        (window(JOINED), window(JOINED + " . ?s <urn:door> ?d"), "<urn:door> ?d begins empty"),
        (window(JOINED), window(JOINED, "RANGE 30s"), "begins with the last 10 s; it is complete after 30 s"),
        (MEANS, MEANS.replace("SLIDE 5s", "SLIDE 2s"), "begins empty: the checkpoint has no such"),
        (MEANS, MEANS.replace("SLIDE 5s", "SLIDE 2s"), "the groups by ?r are made of"),
        (window(JOINED + " FILTER(?v > 30)"), window(JOINED + " FILTER(?v > 20)"), "dropped all but (> ?v 30)"),
        (window(JOINED + " FILTER(?v > 30)"), window(JOINED), "it is complete after 10 s"),
        (window(JOINED + " FILTER(?v > 30)"), window(JOINED + " FILTER(?v < 40)"), "lacks matches"),
        (window(JOINED, "TRIPLES 5"), window(JOINED, "TRIPLES 9"), "it is complete after 9 triples"),
        (
            window("?s <urn:temp> ?v", "ALL", "(COUNT(*) AS ?n)"),
            window("?s <urn:temp> ?v", "ALL", "(COUNT(?v) AS ?n)"),
            "kept no matches, only totals; what came before stays lost",
        ),
        (
            window("?s <urn:temp> ?v", "RANGE 10s", "DISTINCT ?s"),
            window("?s <urn:temp> ?v", "RANGE 10s SLIDE 5s", "DISTINCT ?s"),
            "begins empty",
        ),
    ],
)  # fmt: skip
def test_what_is_lost_is_said(then: str, now: str, said: str) -> None:
    assert said in "\n".join(compared(then, now).losses)
