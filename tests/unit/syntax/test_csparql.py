"""C-SPARQL: FROM STREAM, the merged default graph, and its policies (W4, W8, R2, R3, A1, A2)."""

from __future__ import annotations

import pytest

from quadweir.algebra.expressions import FunctionCall
from quadweir.algebra.streams import EVERY_INSTANT, OutputOperator, Report, ReportPolicy, Tick
from quadweir.algebra.traverse import walk
from quadweir.algebra.windows import Content, CountScope, CountUnit, Scope, TimeScope
from quadweir.errors import QuerySyntaxError
from quadweir.syntax import parse
from quadweir.syntax.write import TARGETS, write
from quadweir.terms import IRI
from trees import asked, tree

EX = "http://example.org/"


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("[RANGE 10s STEP 1s]", TimeScope(range_ms=10_000, step_ms=1_000)),
        ("[range 30 min step 5 min]", TimeScope(range_ms=1_800_000, step_ms=300_000)),
        ("[RANGE 1h TUMBLING]", TimeScope(range_ms=3_600_000, step_ms=3_600_000)),
        # W4: C-SPARQL's count windows tumble.
        ("[RANGE TRIPLES 10]", CountScope(unit=CountUnit.TRIPLES, size=10, step=10)),
        ("[RANGE TRIPLES 10 STEP 2]", CountScope(unit=CountUnit.TRIPLES, size=10, step=2)),
    ],
)
def test_scopes(text: str, scope: Scope) -> None:
    (window,) = asked(f"SELECT * FROM STREAM :s {text} {{}}").windows
    assert window.scope == scope
    assert window.content is Content.GRAPH


def test_policies() -> None:
    query = asked("REGISTER QUERY Hello AS SELECT * FROM STREAM :s [RANGE 1s TUMBLING] {}")
    assert query.name == "Hello"
    assert query.report == Report(policy=ReportPolicy.ON_CLOSE, non_empty_only=True)
    assert query.tick == EVERY_INSTANT
    assert query.output is OutputOperator.RSTREAM


def test_computed_every() -> None:
    query = asked(
        "REGISTER STREAM s COMPUTED EVERY 15m AS PREFIX e: <http://e/>"
        " CONSTRUCT { ?a e:p ?b } FROM STREAM :s [RANGE 1s STEP 1s] { ?a ?b ?c }"
    )
    assert query.tick == Tick(every_ms=900_000)


def test_one_window_alone_is_written_as_a_window_pattern() -> None:
    query = asked(
        "SELECT ?a FROM STREAM :s [RANGE 1s STEP 1s] FROM NAMED <urn:x:g>"
        " { ?a :p ?b OPTIONAL { ?b :q ?c } GRAPH <urn:x:g> { ?a :r ?d }"
        " FILTER NOT EXISTS { ?a :z 1 } { } }"
    )
    w = "<urn:quadweir:window:1>"
    assert query.pattern == tree(
        f"(project (?a) (filter (not-exists (window {w} (bgp (triple ?a :z 1))))"
        f" (join (leftjoin (window {w} (bgp (triple ?a :p ?b))) (window {w} (bgp (triple ?b :q ?c))))"
        " (graph <urn:x:g> (bgp (triple ?a :r ?d))))))"
    )
    assert query.default_graph_windows == ()


def test_several_windows_and_static_data_are_merged() -> None:
    two = asked(
        "SELECT * FROM STREAM :s [RANGE 1s STEP 1s] FROM STREAM :t [RANGE 1s STEP 1s] { ?a :p ?b }"
    )
    assert two.default_graph_windows == tuple(window.name for window in two.windows)
    assert two.pattern == tree("(project (?a ?b) (bgp (triple ?a :p ?b)))")
    static = asked("SELECT * FROM STREAM :s [RANGE 1s STEP 1s] FROM <urn:x:g> { ?a :p ?b }")
    assert static.default_graph_windows == (static.windows[0].name,)
    assert static.default_graphs == (IRI("urn:x:g"),)
    assert static.pattern == two.pattern


def test_the_same_window_twice_is_one() -> None:
    query = asked(
        "SELECT * FROM STREAM :s [RANGE 1s STEP 1s] FROM STREAM :s [RANGE 1s STEP 1s] { ?a :p ?b }"
    )
    assert len(query.windows) == 1


def test_named_streams_are_named_graphs() -> None:
    text = "SELECT * FROM NAMED STREAM :s [RANGE 1s STEP 1s] {} { ?a :p ?b GRAPH :s { ?a :q ?c } }"
    query = asked(text.replace("{} {", "{"))
    assert query.windows[0].name == IRI(f"{EX}s")
    # The default graph is empty: no FROM STREAM, no FROM.
    assert query.pattern == tree(
        "(project (?a ?b ?c) (join (bgp (triple ?a :p ?b)) (window :s (bgp (triple ?a :q ?c)))))"
    )
    any_graph = asked("SELECT * FROM NAMED STREAM :s [RANGE 1s STEP 1s] { GRAPH ?g { ?a :q ?c } }")
    assert any_graph.pattern == tree("(project (?g ?a ?c) (window ?g (bgp (triple ?a :q ?c))))")
    both = asked(
        "SELECT * FROM NAMED STREAM :s [RANGE 1s STEP 1s] FROM NAMED <urn:x:g>"
        " { GRAPH ?g { ?a :q ?c } }"
    )
    assert both.pattern == tree(
        "(project (?g ?a ?c) (union (graph ?g (bgp (triple ?a :q ?c)))"
        " (window ?g (bgp (triple ?a :q ?c)))))"
    )


@pytest.mark.parametrize("function", ["timestamp", "f:timestamp"])
def test_timestamp(function: str) -> None:
    query = asked(
        "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>"
        f" SELECT ?a FROM STREAM :s [RANGE 1s STEP 1s] {{ ?a :p ?b FILTER({function}(?a) > 5) }}"
    )
    (call,) = (node for node in walk(query) if isinstance(node, FunctionCall))
    assert call.function == "TIMESTAMP"


@pytest.mark.parametrize("function", ["timestamp", "TimeStamp", "f:timestamp"])
def test_timestamp_of_a_triple(function: str) -> None:
    query = asked(
        "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#> SELECT ?a"
        f" FROM STREAM :s [RANGE 1s STEP 1s] {{ ?a :p ?b FILTER({function}(?a, :p, ?b) > 5) }}"
    )
    assert query.pattern == tree(
        "(project (?a) (filter (> (TIMESTAMP ?a :p ?b) 5)"
        " (window <urn:quadweir:window:1> (bgp (triple ?a :p ?b)))))"
    )
    for dialect in TARGETS:
        written = write(query, dialect).text
        assert parse(written, dialect=dialect).pattern == query.pattern, written


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        ("timestamp('a', :p, ?b)", "whose subject is a literal", "No triple has such a subject"),
        ("timestamp(?a, 1, ?b)", "whose predicate is a literal", "No triple has such a predicate"),
        ("timestamp(?a, ?b)", "takes a variable, or the subject", "timestamp(?s, ?p, ?o)"),
        ("timestamp(:a)", "something that is no variable", "timestamp(?s, ?p, ?o)"),
    ],
)
def test_a_timestamp_that_means_nothing_is_explained(call: str, message: str, hint: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        asked(f"SELECT * FROM STREAM :s [RANGE 1s STEP 1s] {{ ?a :p ?b FILTER({call} > 5) }}")
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.span is not None


def test_a_range_alone_is_explained() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        asked("SELECT * FROM STREAM :s [RANGE 10s] { ?a ?b ?c }")
    assert "C-SPARQL windows need STEP or TUMBLING" in (caught.value.hint or "")
    assert "cqels2" in (caught.value.hint or "")
    assert caught.value.span is not None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM STREAM :s [NOW] {}",
        "SELECT * FROM STREAM :s {}",
        "SELECT * FROM NAMED STREAM :s [RANGE 1s TUMBLING] FROM NAMED STREAM :s [RANGE 2s TUMBLING] {}",
        "REGISTER QUERY q COMPUTED EVERY 0s AS SELECT * FROM STREAM :s [RANGE 1s TUMBLING] {}",
        "SELECT * FROM STREAM :s [RANGE 1s TUMBLING] { FILTER(timestamp()) }",
        "SELECT * FROM STREAM :s [RANGE 1s TUMBLING] { FILTER(timestamp(1)) }",
        "SELECT * FROM STREAM :s [RANGE 1s TUMBLING] { FILTER(timestamp(?a, ?b, ?c, ?d)) }",
        "SELECT * FROM STREAM :s [RANGE 1s TUMBLING] { FILTER(timestamp(?a, ?b)) }",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        asked(text, "csparql")
    assert caught.value.span is not None
