"""Queries on which a careless rule goes wrong; each must answer the same after optimisation."""

from __future__ import annotations

from collections import Counter

import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import Solutions, evaluate
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.solutions import key_of
from quadweir.algebra.windows import Content
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.terms import IRI
from quadweir.testing import MemoryStream, read_turtle

PREFIX = "PREFIX : <http://example.org/> "
DATA = Dataset.of(
    read_turtle(
        """@prefix : <http://example.org/> .
        :a :p 1, 2 ; :q :b ; :r "x" .   :b :p 2, 3 ; :q :c .   :c :p 1 ; :q :a ; :r "y" .
        :d :q :d ; :r :a .   :e :q :a .
        :g { :a :p 5 . :b :p 1 . :g :q :g }   :h { :a :p 1 . :c :q :a . :h :q :a }"""
    )
)


def answers(query: ContinuousQuery, **windows: object) -> Counter[object]:
    found = evaluate(query, DATA, **windows)  # type: ignore[arg-type]
    assert isinstance(found, Solutions)
    return Counter(key_of(row) for row in found.rows)


TRAPS = {
    # The left side may leave ?v unbound, and then takes it from the right.
    "optional-then-bound": "SELECT * { ?x :q ?y OPTIONAL { ?x :p ?v } OPTIONAL { ?y :p ?v } FILTER(?v > 1) }",
    "unbound-in-one-input": "SELECT * { { ?x :q ?y OPTIONAL { ?x :r ?v } } { ?y :p ?v } FILTER(?v = 2) }",
    "unbound-in-no-certain-input": "SELECT * { { ?x :q ?y OPTIONAL { ?x :r ?v } } { ?y :p ?v } FILTER(?v = 1 || ?x = :z) }",
    "bound-is-about-all": "SELECT * { ?x :q ?y OPTIONAL { ?x :r ?v } FILTER(!bound(?v)) }",
    "bound-in-a-join": "SELECT * { { ?x :q ?y OPTIONAL { ?x :r ?v } } { ?x :p ?v } FILTER(bound(?v)) }",
    "coalesce": "SELECT * { ?x :q ?y OPTIONAL { ?x :r ?v } FILTER(COALESCE(?v, 1) = 1) }",
    # OPTIONAL's own condition: about both sides, about the right, about the left.
    "condition-both": "SELECT * { ?x :p ?v OPTIONAL { ?x :q ?y FILTER(?v > 1 && ?y != :d) } }",
    "condition-left": "SELECT * { ?x :p ?v OPTIONAL { ?x :q ?y FILTER(?v > 1) } }",
    "condition-right": "SELECT * { ?x :p ?v OPTIONAL { ?x :q ?y FILTER(?y = :b) } }",
    "condition-bind": "SELECT ?x { ?x :q ?y BIND(1 AS ?k) OPTIONAL { ?x :p ?v FILTER(?v >= ?k) } }",
    "condition-shared": "SELECT * { ?x :q ?z OPTIONAL { ?z :r ?x } OPTIONAL { ?z :q ?y OPTIONAL { ?y :p ?w } FILTER(?w = 1) } }",
    # Scope of subqueries: the ?v inside is another one.
    "subquery-hides": "SELECT * { ?x :p ?v { SELECT ?x { ?x :p ?v FILTER(?v = 3) } } FILTER(?v = 2) }",
    "subquery-hides-unbound": "SELECT * { { SELECT ?x { ?x :p ?v } } FILTER(!bound(?v)) }",
    "subquery-hides-error": "SELECT * { { SELECT ?x { ?x :p ?v } } FILTER(COALESCE(?v, 9) = 9) }",
    "exists-in-subquery": "SELECT * { ?x :q ?y FILTER EXISTS { SELECT ?x { ?x :p ?y } } }",
    "subquery-distinct": "SELECT ?x { { SELECT DISTINCT ?x ?v { ?x :p ?v } } }",
    "subquery-limit": "SELECT * { { SELECT ?x ?v { ?x :p ?v } ORDER BY ?v ?x LIMIT 2 } FILTER(?x = :b) }",
    # Unused columns still decide which of two equals LIMIT keeps.
    "subquery-limit-unused": "SELECT ?x { { SELECT ?v ?x { ?x :p ?v } LIMIT 2 } }",
    "subquery-limit-bind": "SELECT ?x { { SELECT ?w ?x { ?x :p ?v BIND(-?v AS ?w) } LIMIT 2 } }",
    "subquery-bind-unused": "SELECT ?x { { SELECT ?x (?v + 1 AS ?w) { ?x :p ?v } } }",
    "subquery-order-bind": "SELECT ?x { { SELECT ?x { ?x :p ?v BIND(-?v AS ?k) } ORDER BY ?k LIMIT 2 } }",
    # Groups: an empty one still answers; filters on what is no key stay.
    "group-empty": "SELECT * { { SELECT (COUNT(*) AS ?k) { ?x :p ?v } } FILTER(1 = 2 || ?k > 99) }",
    "group-without-key": "SELECT * { { SELECT (COUNT(*) AS ?k) { ?x :p ?v } } FILTER(!bound(?x)) }",
    "group-exists-without-key": "SELECT * { { SELECT (COUNT(*) AS ?k) { ?x :p ?v } } FILTER EXISTS { :z :p :z } }",
    "group-key": "SELECT * { { SELECT ?x (SUM(?v) AS ?k) { ?x :p ?v } GROUP BY ?x } FILTER(?x != :a) }",
    "group-not-key": "SELECT * { { SELECT ?x (SUM(?v) AS ?k) { ?x :p ?v } GROUP BY ?x } FILTER(COALESCE(?v, 2) = 2) }",
    "having": "SELECT ?x (COUNT(?v) AS ?k) { ?x :p ?v } GROUP BY ?x HAVING(COUNT(?v) > 1 && ?x != :a)",
    "count-distinct-star": "SELECT (COUNT(DISTINCT *) AS ?k) { { SELECT ?x ?v { ?x :p ?v BIND(?v AS ?u) } } }",
    # EXISTS uses the graph around it, and sees the whole solution.
    "exists-outside-graph": "SELECT * { GRAPH :g { ?x :p ?v } FILTER EXISTS { ?x :q ?y } }",
    "exists-inside-graph": "SELECT * { GRAPH :g { ?x :p ?v FILTER NOT EXISTS { ?x :q ?y } } }",
    "exists-correlated": "SELECT * { { ?x :q ?y } { ?y :p ?v } FILTER EXISTS { ?x :p ?v } }",
    "exists-correlated-optional": "SELECT * { ?x :q ?y OPTIONAL { ?y :r ?v } FILTER EXISTS { ?x :r ?v } }",
    "exists-filter-outer": "SELECT * { ?x :p ?v FILTER NOT EXISTS { ?y :q ?x FILTER(?v = 2) } }",
    "exists-pushed-filter": "SELECT * { ?x :p ?v FILTER EXISTS { ?x :q ?y . ?y :p ?w FILTER(?w > ?v) } }",
    # GRAPH ?g binds ?g only outside; inside it may be bound by data.
    "graph-variable": "SELECT * { GRAPH ?g { ?x :p ?v } FILTER(?g = :h) }",
    "graph-variable-unbound-inside": "SELECT * { GRAPH ?g { ?x :p ?v OPTIONAL { ?g :q ?z } } FILTER(bound(?g) && ?g != :g) }",
    "graph-variable-inside": "SELECT * { GRAPH ?g { ?g :q ?x } FILTER(?g = :g) }",
    "graph-variable-in-subquery": "SELECT ?x { GRAPH ?g { { SELECT ?x ?g { ?x :q ?g } } } }",
    "graph-subquery": "SELECT * { GRAPH ?g { { SELECT (COUNT(*) AS ?k) { ?x :p ?v } } } }",
    "graphs-together": "SELECT * { GRAPH :g { ?x :p ?v } GRAPH :h { ?x :p ?w } }",
    # MINUS compares only what is shared.
    "minus-nothing-shared": "SELECT * { ?x :p ?v MINUS { ?a :q ?b } }",
    "minus-shared-by-optional": "SELECT * { ?x :q ?y OPTIONAL { ?x :r ?v } MINUS { ?z :r ?v } }",
    "minus-filter-right": "SELECT * { ?x :p ?v MINUS { ?x :q ?y FILTER(?v = 1) } }",
    "minus-subquery": "SELECT * { ?x :p ?v MINUS { SELECT ?x ?y { ?x :q ?y FILTER(?y = :b) } } }",
    # BIND: its own variable, an error, one used in a join.
    "bind-filter": "SELECT * { ?x :p ?v BIND(?v + 1 AS ?w) FILTER(?w = 3 && ?v = 2) }",
    "bind-error": 'SELECT * { ?x :r ?v BIND(?v + 1 AS ?w) FILTER(!bound(?w) || ?w = "x") }',
    "bind-joined": "SELECT ?x { { ?x :p ?v BIND(?v AS ?w) } { ?y :p ?w } }",
    "bind-optional": "SELECT ?x ?y { ?x :p ?v OPTIONAL { ?x :q ?y BIND(2 AS ?v) } }",
    "bind-minus-right": "SELECT ?x { ?x :p ?v MINUS { ?x :q ?y BIND(2 AS ?v) } }",
    "bind-minus": "SELECT ?x { { ?x :p ?v BIND(?v AS ?w) } MINUS { :b :p ?w } }",
    # VALUES with UNDEF is not always bound.
    "values-undef": "SELECT * { VALUES (?x ?v) { (:a UNDEF) (UNDEF 2) } ?x :p ?v FILTER(?v = 2) }",
    "values-undef-bound": "SELECT * { VALUES (?x ?v) { (:a UNDEF) (:b 2) } FILTER(!bound(?v)) }",
    # Unions: the parts all branches share, as often as they are there.
    "union-common": "SELECT * { { ?x :p ?v . ?x :q ?y } UNION { ?x :p ?v . ?x :r ?z } }",
    "union-equal": "SELECT * { { ?x :p ?v } UNION { ?x :p ?v } }",
    "union-contained": "SELECT * { { ?x :p ?v } UNION { ?x :p ?v . ?x :q ?y } }",
    "union-twice": "SELECT * { { ?x :p ?v . ?x :p ?v . ?x :q ?y } UNION { ?x :p ?v . ?x :r ?y . ?x :q ?z } }",
    "union-filter": "SELECT * { { ?x :p ?v } UNION { ?x :r ?w } FILTER(!bound(?v) || ?v = 1) }",
    # Truth and errors in folded conditions.
    "true-and-string": "SELECT * { ?x :r ?v FILTER(true && ?v) BIND((true && ?v) AS ?w) }",
    "or-one-string": "SELECT * { ?x :r ?v BIND((false || ?v) AS ?w) }",
    "false-and-error": "SELECT * { ?x :p ?v FILTER(!(false && (1/0 = 1))) }",
    "error-stays": "SELECT * { ?x :p ?v FILTER(COALESCE(1/0, ?v) = 2) }",
    "if-constant": "SELECT * { ?x :p ?v BIND(IF(1 < 2, ?v, 1/0) AS ?w) }",
    "if-of-no-truth": "SELECT * { ?x :p ?v BIND(COALESCE(IF(:a, 1, 2), 3) AS ?w) }",
    "nothing": "SELECT ?x ?v { { ?x :p ?v FILTER(false) } UNION { ?x :q ?v } }",
    "nothing-optional": "SELECT * { ?x :q ?y OPTIONAL { ?x :p ?v FILTER(1 > 2) } }",
    "nothing-counted": "SELECT (COUNT(*) AS ?k) { ?x :p ?v FILTER(false) }",
    "filter-iri": "SELECT * { ?x :p ?v FILTER(:a) }",
    # Order and duplicates.
    "distinct-filter": "SELECT DISTINCT ?x { ?x :p ?v FILTER(?v > 1) }",
    "order-limit": "SELECT ?x ?v { ?x :p ?v FILTER(?v > 1) } ORDER BY DESC(?v) ?x LIMIT 2",
    "cross-product": "SELECT * { ?x :p ?v . ?y :r ?w FILTER(?v = 1) FILTER(isLiteral(?w)) }",
    "path": "SELECT * { ?x :q+ ?y . ?y :p ?v FILTER(?x = :a) FILTER(?v = ?v) }",
}


@pytest.mark.parametrize("body", TRAPS.values(), ids=TRAPS)
def test_answers_are_kept(body: str) -> None:
    query = parse(PREFIX + body)
    optimized = optimize(query).query
    assert answers(optimized) == answers(query)


WINDOW_TRAPS = {
    # In a bag, a repeated pattern is joined with itself for every element.
    "twice": "SELECT * { WINDOW :w { ?x :p ?v . ?x :p ?v } }",
    "same-window-twice": "SELECT * { WINDOW :w { ?x :p ?v } WINDOW :w { ?x :p ?w } }",
    "two-windows": "SELECT * { WINDOW :w { ?x :p ?v } WINDOW :u { ?x :p ?u } FILTER(?v = 1 && ?u > 1) }",
    "window-variable": "SELECT * { WINDOW ?n { ?x :p ?v } FILTER(?n = :u) }",
    "exists-outside": "SELECT * { WINDOW :w { ?x :p ?v } FILTER EXISTS { ?x :q ?y } }",
    "exists-inside": "SELECT * { WINDOW :w { ?x :p ?v FILTER NOT EXISTS { ?x :q ?y } } }",
    "optional-window": "SELECT * { ?x :q ?y OPTIONAL { WINDOW :w { ?x :p ?v } } FILTER(!bound(?v)) }",
    "count": "SELECT ?x (COUNT(*) AS ?k) { WINDOW :w { ?x :p ?v } ?x :q ?y . ?y :p 2 } GROUP BY ?x",
    "static-parts": "SELECT * { ?x :q ?y WINDOW :w { ?x :p ?v } ?y :p ?z . ?d :r ?e FILTER(?v < 3) }",
    "graph-in-window": "SELECT * { WINDOW :w { ?x :p ?v GRAPH :g { ?x :p ?u } } }",
    "optional-same-window": "SELECT * { WINDOW :w { ?x :p ?v } OPTIONAL { WINDOW :w { ?x :q ?u FILTER(?v = ?u) } } }",
    "optional-same-window-exists": "SELECT * { WINDOW :w { ?x :p ?v } OPTIONAL { WINDOW :w { ?x :p ?u } FILTER EXISTS { ?x :q ?y } } }",
    "optional-same-graph": "SELECT * { GRAPH :g { ?x :p ?v } OPTIONAL { GRAPH :g { ?y :q ?x } } }",
    # A join keeps the later of two times, a subquery and a group keep none.
    "time-join": "SELECT * { WINDOW :w { ?x :p ?v } WINDOW :u { ?x :p ?u } FILTER(timestamp(?x) > 1) }",
    "time-basic": "SELECT * { WINDOW :w { ?x :p ?v . ?x :q ?u } FILTER(timestamp(?x) > 1) }",
    "time-optional": "SELECT * { WINDOW :w { ?x :p ?v } OPTIONAL { WINDOW :u { ?x :p ?u } FILTER(timestamp(?x) > 1) } }",
    "time-subquery": "SELECT * { { SELECT ?x { WINDOW :w { ?x :p ?v } } } FILTER(timestamp(?x) > 1) }",
    "time-having": "SELECT ?x (COUNT(*) AS ?k) { WINDOW :w { ?x :p ?v } } GROUP BY ?x HAVING(timestamp(?x) > 1)",
    "time-of-a-triple": "SELECT * { ?x :q ?y WINDOW :w { ?x :p ?v } FILTER(timestamp(?x, :p, ?v) > 0) }",
    "time-of-a-triple-static": "SELECT * { { ?x :p ?v FILTER(timestamp(?x, :p, ?v) > 0) } GRAPH :g { ?x :p ?u } }",
    # The window's own variable may be bound inside as well.
    "window-variable-in-subquery": "SELECT ?x { WINDOW ?n { { SELECT ?x ?n { ?x :in ?n } } } }",
    "union": "SELECT * { { WINDOW :w { ?x :p ?v } } UNION { WINDOW :w { ?x :q ?v } } }",
}


@pytest.mark.parametrize("content", Content)
@pytest.mark.parametrize("body", WINDOW_TRAPS.values(), ids=WINDOW_TRAPS)
def test_answers_over_windows_are_kept(body: str, content: Content) -> None:
    head, _, rest = body.partition(" { ")
    query = parse(
        f"{PREFIX}REGISTER RSTREAM :out AS {head} FROM NAMED WINDOW :w ON :s [RANGE PT9S STEP PT9S]"
        f" FROM NAMED WINDOW :u ON :t [RANGE PT9S STEP PT9S] WHERE {{ {rest}",
        dialect="rspql",
        content=content,
    )
    prefix = "@prefix : <http://example.org/> . "
    stream = MemoryStream("http://example.org/s")
    for time, triples in enumerate(
        (":a :p 1 .", ":a :p 1 .", ":b :p 2 . :a :q 1 .", ":d :p 1 . :c :in :u .")
    ):
        stream.add(time, prefix + triples)
    other = MemoryStream("http://example.org/t")
    other.add(1, prefix + ":a :p 1, 2 . :d :p 3 . :a :in :u .")
    windows = {
        IRI("http://example.org/w"): list(stream),
        IRI("http://example.org/u"): list(other),
    }
    optimized = optimize(query).query
    assert answers(optimized, windows=windows) == answers(query, windows=windows)


STREAM_TRAPS = {
    "filter": (
        "SELECT ?s ?x { STREAM ?s [RANGE 9s] { ?x :p ?v } FILTER(?s = :t && ?v = 1) }",
        1,
    ),
    # EXISTS looks at the stream that ?s has outside: it does not go where ?s is not yet known.
    "exists": (
        "SELECT ?s ?x { ?x :q ?y STREAM ?s [RANGE 9s] { ?z :r ?w }"
        " FILTER EXISTS { STREAM ?s [RANGE 9s] { ?x :p ?v } } }",
        4,
    ),
    "exists-in-optional": (
        "SELECT ?s ?x ?y { STREAM ?s [RANGE 9s] { ?z :r ?w } OPTIONAL { ?x :q ?y"
        " FILTER NOT EXISTS { STREAM ?s [RANGE 9s] { ?x :p ?v } } } }",
        6,
    ),
    "exists-in-one-branch": (
        "SELECT ?s ?x { { ?x :q ?y } { STREAM ?s [RANGE 9s] { ?x :p ?v } }"
        " FILTER NOT EXISTS { STREAM ?s [RANGE 9s] { ?x :r ?w } } }",
        3,
    ),
    # Bound inside as well, it has to agree with the stream, even if nothing uses it.
    "subquery": ("SELECT ?x { STREAM ?s [RANGE 9s] { { SELECT ?x ?s { ?x :in ?s } } } }", 1),
    "bound-inside": ("SELECT ?s ?x { STREAM ?s [RANGE 9s] { ?x :in ?s } FILTER(?s = :t) }", 1),
    # An optional part that names the stream has to know it when a partner is looked for.
    "optional-bound-inside": (
        "SELECT ?s ?x ?y { STREAM ?s [RANGE 9s] { ?x :r ?w }"
        " OPTIONAL { STREAM ?s [RANGE 9s] { ?y :in ?s } } }",
        2,
    ),
    "optional-condition": (
        "SELECT ?s ?x ?y { STREAM ?s [RANGE 9s] { ?x :r ?w }"
        " OPTIONAL { STREAM ?s [RANGE 9s] { ?y :p 1 } FILTER(?s = :t) } }",
        2,
    ),
    "optional-bound-before": (
        "SELECT ?s ?x ?y { STREAM ?s [RANGE 9s] { ?x :in ?s }"
        " OPTIONAL { STREAM ?s [RANGE 9s] { ?y :p 2 } } }",
        1,
    ),
}


@pytest.mark.parametrize(("body", "count"), STREAM_TRAPS.values(), ids=STREAM_TRAPS)
def test_a_stream_variable_is_kept(body: str, count: int) -> None:
    query = parse(PREFIX + body, dialect="cqels")
    prefix = "@prefix : <http://example.org/> . "
    streams = [MemoryStream(f"http://example.org/{name}") for name in "st"]
    streams[0].add(1, prefix + ":a :p 1 . :b :p 2 . :b :in :t .  :a :r 1 .")
    streams[1].add(1, prefix + ":a :p 1 . :c :p 2 . :c :in :t .  :d :r 1 .")
    (window,) = query.windows
    windows = {window.name: [element for stream in streams for element in stream]}
    found = answers(query, windows=windows)
    assert sum(found.values()) == count
    assert answers(optimize(query).query, windows=windows) == found
