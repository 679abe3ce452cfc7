"""Queries that join with backfill see what windows hold already (J5), as far as they hold it (J6).

Each gives the answers that it gives alone over all elements later than an instant, without the
answers up to the instant at which it joined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from properties.dense import arrivals, make_feed
from properties.strategies import ALLOW
from properties.test_kernel_groups import Turn, check
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.windows import Content
from quadweir.optimize import optimize
from quadweir.syntax import parse

_PREFIX = "PREFIX : <http://example.org/>"
# Windows of length $R and $S; constants in place of $A.
WINDOWS = {
    "on change": ("RANGE $Rms", "RANGE $Sms"),
    "on close": ("RANGE $Rms STEP 4ms", "RANGE $Sms STEP 3ms"),
    "both": ("RANGE $Rms STEP 4ms", "RANGE $Sms"),
    "count": ("TRIPLES 3", "TRIPLES 2 STEP 2"),
    "instant": ("RANGE $Rms", "NOW"),
    "past": ("RANGE $Rms", "FROM NOW-6ms TO NOW-2ms"),
    "whole": ("ALL", "RANGE $Rms"),
}
BODIES = [
    ("SELECT ?a ?b", "{W} {{ ?a :p0 ?b }}", ""),
    ("SELECT ?a", "{W} {{ ?a ?v $A }}", ""),
    ("SELECT ?a ?b ?c", "{W} {{ ?a :p0 ?b }} {V} {{ ?b :p1 ?c }}", ""),
    ("SELECT ?a ?b ?c", "{W} {{ ?a :p0 ?b . ?b ?v $A }} {V} {{ ?b :p1 ?c }}", ""),
    ("SELECT ?b (COUNT(*) AS ?n)", "{W} {{ ?a :p0 ?b }}", "GROUP BY ?b"),
    ("SELECT ?b (MAX(?a) AS ?n)", "{W} {{ ?a :p0 ?b }} {V} {{ ?b ?v $A }}", "GROUP BY ?b"),
    ("SELECT (COUNT(*) AS ?n)", "{W} {{ ?a :p0 ?b }}", ""),
    ("SELECT DISTINCT ?b", "{W} {{ ?a :p0 ?b }}", ""),
    ("SELECT DISTINCT ?a", "{W} {{ ?a :p0 ?b }} {V} {{ ?b ?v $A }}", ""),
    ("SELECT ?a ?c", "{W} {{ ?a :p0 ?b }} OPTIONAL {{ {V} {{ ?a ?v ?c }} }}", ""),
    ("SELECT ?a", "{W} {{ ?a :p0 ?b }} MINUS {{ {V} {{ ?a :p1 ?c }} }}", ""),
    ("SELECT ?a", "{{ {W} {{ ?a :p0 ?b }} }} UNION {{ {V} {{ ?a :p1 ?b }} }}", ""),
    ("SELECT ?a ?n", "{W} {{ ?a :p0 ?b }} {{ SELECT ?b (COUNT(*) AS ?n) WHERE "
     "{{ {V} {{ ?b :p1 ?c }} }} GROUP BY ?b }}", ""),
    ("SELECT ?a ?b", "{W} {{ ?a :p0 ?b }}", "ORDER BY ?a ?b LIMIT 2"),
    ("ASK", "{W} {{ ?a :p0 $A }}", ""),
]  # fmt: skip


def draw_family(draw: st.DrawFn, windows: str) -> Callable[[], ContinuousQuery]:
    """Draw what draws queries of one shape, the first of which have the longest windows."""
    first, second = WINDOWS[windows]
    content = draw(st.sampled_from(list(Content)))
    declared = (
        f"FROM NAMED WINDOW :w0 ON STREAM :stream0 [{first}] "
        f"FROM NAMED WINDOW :w1 ON STREAM :stream1 [{second}]"
    )
    head, body, tail = draw(st.sampled_from(BODIES))
    body = body.format(W="WINDOW :w0", V="WINDOW :w1")
    text = f"{_PREFIX} {head} {declared} WHERE {{ {body} }} {tail}"
    output = draw(st.sampled_from(list(OutputOperator)))
    lengths = iter([15, 12, 9])

    def query() -> ContinuousQuery:
        own = text.replace("$A", draw(st.sampled_from([":s0", ":s1"])))
        own = own.replace("$R", str(next(lengths, draw(st.sampled_from([3, 6, 9, 15])))))
        own = own.replace("$S", draw(st.sampled_from(["4", "9"])))
        parsed = parse(own, dialect="rspql", allow=ALLOW, content=content)
        return optimize(replace(parsed, output=output)).query

    return query


@given(data=st.data(), windows=st.sampled_from(list(WINDOWS)), seed=st.integers(0, 2**32))
def test_a_query_with_backfill_answers_as_if_it_had_been_there(
    data: st.DataObject, windows: str, seed: int
) -> None:
    query = draw_family(data.draw, windows)
    delay = data.draw(st.integers(0, 6))
    feed = data.draw(arrivals(make_feed(seed, size=10, until_ms=30, names=2), delay))
    turns = [
        Turn(
            size=data.draw(st.integers(1, 4)),
            added=data.draw(st.integers(1, 2)),
            removed=data.draw(st.sampled_from([0, 0, 1])),
            saved=data.draw(st.booleans()),
            restarted=data.draw(st.sampled_from([False, False, True])),
            backfilled=data.draw(st.sampled_from([True, True, False])),
            reloaded=data.draw(st.sampled_from([False, False, True])),
        )
        for _ in range(4)
    ]
    together = data.draw(st.booleans())
    check([query(), query()], query, feed, [], turns, delay_ms=delay, together=together)
