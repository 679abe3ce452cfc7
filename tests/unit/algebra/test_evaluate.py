"""Cases of the evaluator that the W3C suite does not cover: windows, times, datasets, forms."""

from __future__ import annotations

import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import Solutions, evaluate, solve
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.windows import Content
from quadweir.errors import PlanError, UnsupportedError
from quadweir.sources.streamfiles import Element
from quadweir.syntax import parse
from quadweir.terms import IRI, BlankNode, Literal, Quad, Variable
from quadweir.testing import MemoryStream, read_turtle
from quadweir.vocab import XSD

PREFIX = "PREFIX : <http://example.org/> "
TURTLE = "@prefix : <http://example.org/> . "
STATIC = Dataset.of(
    read_turtle(TURTLE + ":a :name 'A' ; :knows [ :name 'B' ] . :g { :a :p 9 } :h { :b :p 8 }")
)


def ex(name: str) -> IRI:
    return IRI("http://example.org/" + name)


def integer(value: int) -> Literal:
    return Literal(str(value), IRI(XSD.integer))


def stream(name: str, *elements: tuple[int, str]) -> list[Element]:
    made = MemoryStream(f"http://example.org/{name}")
    for time, triples in elements:
        made.add(time, TURTLE + triples)
    return list(made)


def rows(query: ContinuousQuery, **windows: list[Element]) -> list[tuple[str, ...]]:
    """The rows, each as the spellings of its values, sorted; "-" is unbound."""
    answer = evaluate(query, STATIC, windows={ex(name): each for name, each in windows.items()})
    assert isinstance(answer, Solutions)

    def spell(row: dict[Variable, object], variable: Variable) -> str:
        term = row.get(variable)
        if isinstance(term, Literal):
            return term.lexical
        return "-" if term is None else str(term).removeprefix("<http://example.org/").rstrip(">")

    return sorted(tuple(spell(row, each) for each in answer.variables) for row in answer.rows)


def over_windows(select: str, body: str, content: Content) -> ContinuousQuery:
    return parse(
        f"{PREFIX}REGISTER RSTREAM :out AS {select} FROM NAMED WINDOW :w ON :s [RANGE PT9S]"
        f" FROM NAMED WINDOW :v ON :t [RANGE PT9S] WHERE {{ {body} }}",
        dialect="rspql",
        content=content,
    )


TWICE = stream("s", (1, ":a :p 1 ."), (2, ":a :p 1 . :a :p 1 ."), (3, ":a :p 2 ."))


def test_w8_in_a_graph_a_triple_is_there_once() -> None:
    query = over_windows("SELECT ?v", "WINDOW :w { :a :p ?v }", Content.GRAPH)
    assert rows(query, w=TWICE) == [("1",), ("2",)]


def test_w8_in_a_bag_every_element_counts_and_each_only_once() -> None:
    query = over_windows("SELECT ?v", "WINDOW :w { :a :p ?v }", Content.BAG)
    assert rows(query, w=TWICE) == [("1",), ("1",), ("2",)]


def test_w8_in_a_bag_each_pair_of_elements_joins() -> None:
    query = over_windows("SELECT ?v ?u", "WINDOW :w { :a :p ?v . :a :p ?u }", Content.BAG)
    assert len(rows(query, w=TWICE)) == 9


def test_a1_a_window_matches_its_own_content_alone_and_the_rest_static_data() -> None:
    query = over_windows(
        "SELECT ?v ?n", "WINDOW :w { ?x :p ?v } ?x :name ?n OPTIONAL { ?x :p ?z }", Content.GRAPH
    )
    assert rows(query, w=TWICE, v=stream("t", (1, ":a :p 7 ."))) == [("1", "A"), ("2", "A")]


def test_w9_graph_inside_a_window_looks_into_its_elements() -> None:
    named = stream("s", (1, ":g { :a :p 1 } :a :p 2 ."), (2, "<urn:x> { :a :p 3 }"))
    query = over_windows("SELECT ?v", "WINDOW :w { GRAPH :g { :a :p ?v } }", Content.GRAPH)
    assert rows(query, w=named) == [("1",)]
    query = over_windows("SELECT ?g ?v", "WINDOW :w { GRAPH ?g { :a :p ?v } }", Content.GRAPH)
    assert rows(query, w=named) == [("<urn:x", "3"), ("g", "1")]
    query = over_windows("SELECT ?v", "WINDOW :w { ?a :p ?u } GRAPH :g { ?a :p ?v }", Content.GRAPH)
    assert rows(query, w=TWICE) == [("9",), ("9",)]


def test_a_template_can_name_graphs() -> None:
    query = parse(
        PREFIX + "CONSTRUCT { :s :p ?v . GRAPH ?g { :s :q ?v } GRAPH :k { :s :r ?v } }"
        " { VALUES (?v ?g) { (1 :h) (2 UNDEF) (3 'no') } }"
    )
    made = {
        (ex(verb), integer(v), None if g is None else ex(g))
        for verb, v, g in (
            *((verb, v, g) for v in (1, 2, 3) for verb, g in (("p", None), ("r", "k"))),
            ("q", 1, "h"),
        )
    }
    found = evaluate(query)
    assert isinstance(found, frozenset)
    assert {(each.predicate, each.object, each.graph) for each in found} == made


def test_a_window_variable_tries_every_window() -> None:
    query = over_windows("SELECT ?n ?v", "WINDOW ?n { :a :p ?v }", Content.GRAPH)
    assert rows(query, w=TWICE, v=stream("t", (1, ":a :p 7 ."))) == [
        ("v", "7"),
        ("w", "1"),
        ("w", "2"),
    ]


def test_an_empty_window_has_the_empty_solution() -> None:
    query = over_windows("SELECT ?v", "WINDOW :w { OPTIONAL { :a :p ?v } }", Content.GRAPH)
    assert rows(query) == [("-",)]


def test_a_graph_that_is_not_there_has_no_solution() -> None:
    assert rows(parse(PREFIX + "SELECT ?v { GRAPH :z { OPTIONAL { :a :p ?v } } }")) == []


def test_a_stream_variable_is_bound_to_the_stream() -> None:
    query = parse(
        f"{PREFIX}SELECT ?s ?v {{ STREAM ?s [RANGE 9s] {{ :a :p ?v }} }}", dialect="cqels"
    )
    (window,) = query.windows
    both = TWICE[:1] + stream("t", (1, ":a :p 7 ."))
    found = solve(query, STATIC, windows={window.name: both})
    s, v = Variable("s"), Variable("v")
    assert {row[s]: row[v] for row in found} == {ex("s"): integer(1), ex("t"): integer(7)}


CSPARQL = (
    PREFIX + "REGISTER QUERY q AS SELECT {} FROM STREAM :s [RANGE 9s STEP 9s]"
    " FROM STREAM :t [RANGE 9s STEP 9s] FROM :g WHERE {{ {} }}"
)


def csparql(select: str, body: str, content: Content) -> list[tuple[str, ...]]:
    query = parse(CSPARQL.format(select, body), dialect="csparql", content=content, allow=("FROM",))
    first, second = query.windows
    contents = {first.name: TWICE, second.name: stream("t", (4, ":a :p 1 . :b :q 5 ."))}
    answer = evaluate(query, STATIC, windows=contents)
    assert isinstance(answer, Solutions)
    return sorted(
        tuple(row[v].lexical if v in row else "-" for v in answer.variables)  # type: ignore[union-attr]
        for row in answer.rows
    )


def test_a1_csparql_merges_its_windows_and_from_into_the_default_graph() -> None:
    assert csparql("?v", "?x :p ?v", Content.GRAPH) == [("1",), ("2",), ("9",)]
    assert csparql("?v", "?x :p ?v", Content.BAG) == [("1",), ("1",), ("1",), ("2",), ("9",)]


def test_timestamp_is_that_of_the_latest_element_that_bound_the_variable() -> None:
    found = csparql("?v (timestamp(?v) AS ?t)", "?x :p ?v", Content.GRAPH)
    assert found == [("1", "4"), ("2", "3"), ("9", "-")]
    both = csparql("?v (timestamp(?x) AS ?t)", "?x :p ?v . ?y :q ?x2", Content.GRAPH)
    assert both == [("1", "4"), ("2", "3"), ("9", "-")]


def test_timestamp_over_a_bag_is_that_of_each_element() -> None:
    found = csparql("?v (timestamp(?v) AS ?t)", "?x :p ?v", Content.BAG)
    assert found == [("1", "1"), ("1", "2"), ("1", "4"), ("2", "3"), ("9", "-")]


def test_a_join_keeps_the_later_time_and_a_filter_sees_it() -> None:
    found = csparql(
        "?v ?u (timestamp(?x) AS ?t)",
        "{ ?x :p ?v } { ?x :p ?u } FILTER(timestamp(?x) > 3 && ?v < ?u)",
        Content.GRAPH,
    )
    assert found == [("1", "2", "4"), ("1", "9", "4")]


@pytest.mark.parametrize("content", Content)
def test_timestamp_of_a_triple_is_that_of_its_latest_carrier(content: Content) -> None:
    found = csparql("DISTINCT ?v (timestamp(?x, :p, ?v) AS ?t)", "?x :p ?v", content)
    assert found == [("1", "4"), ("2", "3"), ("9", "-")]
    # The parts of the triple are terms, whatever bound them and wherever the call stands.
    assert csparql("?n", "BIND(timestamp(:b, :q, 2 + 3) AS ?n)", content) == [("4",)]
    assert csparql("?n", "BIND(timestamp(:b, :q, 6) AS ?n)", content) == [("-",)]


def test_timestamp_of_what_is_no_triple_is_an_error() -> None:
    body = "BIND('b' AS ?x) BIND(COALESCE(timestamp(?x, :q, 5), timestamp(?none, :q, 5), 0) AS ?n)"
    assert csparql("?n", body, Content.GRAPH) == [("0",)]


# --- datasets and forms -----------------------------------------------------------------------


def test_from_picks_and_merges_named_graphs() -> None:
    query = parse(PREFIX + "SELECT ?v FROM :g FROM :h { ?x :p ?v }", allow=("FROM",))
    assert rows(query) == [("8",), ("9",)]


def test_from_named_hides_the_others() -> None:
    text = "SELECT ?g ?v FROM NAMED :h { GRAPH ?g { ?x :p ?v } }"
    assert rows(parse(PREFIX + text, allow=("FROM",))) == [("h", "8")]


def test_from_a_graph_that_is_not_there_is_refused() -> None:
    query = parse(PREFIX + "SELECT ?v FROM :z { ?x :p ?v }", allow=("FROM",))
    with pytest.raises(PlanError, match="no graph"):
        evaluate(query, STATIC)


def test_service_is_refused_unless_it_may_fail() -> None:
    text = PREFIX + "SELECT * {{ SERVICE {} :end {{ ?x :p ?v }} }}"
    with pytest.raises(UnsupportedError):
        evaluate(parse(text.format(""), allow=("SERVICE",)), STATIC)
    silent = evaluate(parse(text.format("SILENT"), allow=("SERVICE",)), STATIC)
    assert isinstance(silent, Solutions)
    assert silent.rows == ({},)


def test_construct_makes_new_blank_nodes_and_leaves_out_what_is_no_triple() -> None:
    query = parse(
        PREFIX + "CONSTRUCT { [] :is ?v . ?v :of :a . :a :maybe ?u }"
        " { VALUES ?v { 1 2 } OPTIONAL { :z :p ?u } }"
    )
    answer = evaluate(query, STATIC)
    assert isinstance(answer, frozenset)
    assert {quad.object for quad in answer} == {integer(1), integer(2)}
    nodes = {quad.subject for quad in answer}
    assert len(nodes) == 2
    assert all(isinstance(node, BlankNode) for node in nodes)


def test_ask() -> None:
    assert evaluate(parse(PREFIX + "ASK { :a :name 'A' }"), STATIC) is True
    assert evaluate(parse(PREFIX + "ASK { :a :name 'B' }"), STATIC) is False


def test_describe_follows_blank_nodes() -> None:
    answer = evaluate(parse(PREFIX + "DESCRIBE :a"), STATIC)
    assert isinstance(answer, frozenset)
    assert {quad.predicate for quad in answer} == {ex("name"), ex("knows")}
    assert Literal("B") in {quad.object for quad in answer}


# --- aggregates and order ---------------------------------------------------------------------


def aggregate(call: str, values: str) -> str:
    ((found,),) = rows(parse(f"{PREFIX}SELECT ({call} AS ?r) {{ VALUES ?v {{ {values} }} }}"))
    return found


@pytest.mark.parametrize(
    ("call", "values", "expected"),
    [
        ("COUNT(?v)", "1 UNDEF 1", "2"),
        ("COUNT(DISTINCT ?v)", "1 1 1.0", "2"),
        ("COUNT(*)", "1 UNDEF 1", "3"),
        ("COUNT(DISTINCT *)", "1 UNDEF 1", "2"),
        ("SUM(?v)", "", "0"),
        ("SUM(?v)", "1 2.5", "3.5"),
        ("SUM(?v)", "1 'a'", "-"),
        ("SUM(?v)", "1 UNDEF", "-"),
        ("AVG(?v)", "", "0"),
        ("AVG(?v)", "1 2", "1.5"),
        ("MIN(?v)", "", "-"),
        ("MIN(?v)", "2 :a 10", "a"),
        ("MIN(?v)", "1 UNDEF", "-"),
        ("MAX(?v)", "2 10 :a", "10"),
        ("SAMPLE(?v)", "UNDEF 3", "3"),
        ("SAMPLE(?v)", "", "-"),
        ("GROUP_CONCAT(?v)", "'b' 'a'", "a b"),
        ("GROUP_CONCAT(?v; SEPARATOR=', ')", "2 1 :a", "1, 2, http://example.org/a"),
        ("GROUP_CONCAT(DISTINCT ?v)", "'a' 'a'", "a"),
        ("GROUP_CONCAT(?v)", "", ""),
    ],
)
def test_aggregate(call: str, values: str, expected: str) -> None:
    assert aggregate(call, values) == expected


def test_order_by_puts_every_kind_of_term_in_its_place() -> None:
    query = parse(PREFIX + "SELECT ?v { VALUES ?v { 'b' 10 2 :z UNDEF true 'a' 2.5 } } ORDER BY ?v")
    answer = evaluate(query, STATIC)
    assert isinstance(answer, Solutions)
    spelled = [str(row.get(Variable("v"), "-")).partition("^^")[0] for row in answer.rows]
    assert spelled == [
        "-",
        "<http://example.org/z>",
        '"2"',
        '"2.5"',
        '"10"',
        '"a"',
        '"b"',
        '"true"',
    ]


def test_order_by_several_keys_and_slice() -> None:
    query = parse(
        PREFIX + "SELECT ?v ?w { VALUES (?v ?w) { (1 1) (2 1) (1 2) (2 2) } }"
        " ORDER BY DESC(?v) ?w OFFSET 1 LIMIT 2"
    )
    answer = evaluate(query, STATIC)
    assert isinstance(answer, Solutions)
    v, w = Variable("v"), Variable("w")
    assert [(row[v], row[w]) for row in answer.rows] == [
        (integer(2), integer(2)),
        (integer(1), integer(1)),
    ]


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        # Without ORDER BY all are equal: the spelling of the selected variables decides.
        ("?v ?w", "LIMIT 2", "- 3, 1 1"),
        ("?w ?v", "LIMIT 2", "1 1, 1 2"),
        ("?w ?v", "OFFSET 3", "3 -, 3 1"),
        ("?w", "LIMIT 3", "1, 1, 2"),
        # With it, among those that it leaves equal.
        ("?v ?w", "ORDER BY DESC(?w) LIMIT 1", "- 3"),
        ("?v ?w", "ORDER BY DESC(?v)", "2 1, 1 1, 1 2, 1 3, - 3"),
        ("?w", "ORDER BY DESC(?v) LIMIT 3", "1, 1, 2"),
        # A repeated solution counts at its first place.
        ("DISTINCT ?w", "ORDER BY DESC(?v) DESC(?w)", "1, 3, 2"),
        ("DISTINCT ?w", "ORDER BY ?v ?w LIMIT 2", "3, 1"),
        ("DISTINCT ?w", "LIMIT 1 OFFSET 1", "2"),
    ],
)
def test_ties_are_broken_by_spelling(head: str, tail: str, expected: str) -> None:
    data = "(1 3) (2 1) (1 2) (UNDEF 3) (1 1)"
    query = parse(f"SELECT {head} {{ VALUES (?v ?w) {{ {data} }} }} {tail}")
    answer = evaluate(query)
    assert isinstance(answer, Solutions)
    found = [
        " ".join(getattr(row.get(each), "lexical", "-") for each in answer.variables)
        for row in answer.rows
    ]
    assert ", ".join(found) == expected


def test_ties_in_a_subquery_are_broken_by_what_it_selects() -> None:
    query = parse("SELECT ?v { { SELECT ?w ?v { VALUES (?v ?w) { (1 3) (2 1) (3 2) } } LIMIT 1 } }")
    assert rows(query) == [("2",)]


def test_ties_under_construct_are_broken_by_the_variables_of_the_template() -> None:
    query = parse(
        PREFIX + "CONSTRUCT { :s :p ?w } { VALUES (?v ?w) { (1 3) (2 1) (3 2) } } LIMIT 1"
    )
    assert evaluate(query) == frozenset({Quad(ex("s"), ex("p"), integer(1))})


def test_quads_of_an_element_are_matched_whatever_graph_they_name() -> None:
    triple = Quad(ex("a"), ex("p"), integer(1), ex("g"))
    element = Element("http://example.org/s", 1, 0, (triple,))
    query = over_windows("SELECT ?v", "WINDOW :w { :a :p ?v }", Content.BAG)
    assert rows(query, w=[element]) == [("1",)]
