"""W11: GRAPH inside a window, by the oracle, by the incremental kernel, and evaluated at each report."""

from __future__ import annotations

import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.windows import Content
from quadweir.kernel.shard import Shard
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.syntax.write import write
from quadweir.testing import Answer, MemoryStream, Oracle, diff_answers, read_turtle
from quadweir.testing.shards import ShardFeed, as_answers, scoped_static

PREFIX = "PREFIX : <http://example.org/> "
TRIG = "@prefix : <http://example.org/> . "
STATIC = read_turtle(TRIG + ":g { :a :p 9 } :h { :a :p 8 }")


def asked(
    body: str, content: Content = Content.GRAPH, *, head: str = "SELECT *"
) -> ContinuousQuery:
    return parse(
        f"{PREFIX}REGISTER RSTREAM :out AS {head} FROM NAMED WINDOW :w ON :s [RANGE PT0.01S]"
        f" WHERE {{ {body} }}",
        dialect="rspql",
        content=content,
    )


def feed(*elements: tuple[int, str]) -> MemoryStream:
    made = MemoryStream("http://example.org/s")
    for time, quads in elements:
        made.add(time, TRIG + quads)
    return made


def by_the_kernel(
    query: ContinuousQuery, elements: MemoryStream, *, incremental: bool
) -> tuple[list[Answer], str | None]:
    shard = Shard.of(
        optimize(query).query,
        static=Dataset.of(scoped_static(STATIC)),
        streams=["http://example.org/s"],
        incremental=incremental,
    )
    fed = ShardFeed(shard)
    found = as_answers(fed.push(list(elements)), query)
    return found + as_answers(fed.finish(), query), shard.program.why_not


def answers(
    query: ContinuousQuery, elements: MemoryStream, *, is_incremental: bool = True
) -> list[tuple[int, str]]:
    """What all three say: times with the values of the variables, in the order of their names."""
    expected = Oracle(query, static=STATIC).answers(elements)
    found, why_not = by_the_kernel(query, elements, incremental=True)
    assert diff_answers(expected, found) == ""
    assert (why_not is None) == is_incremental
    again, _ = by_the_kernel(query, elements, incremental=False)
    assert diff_answers(expected, again) == ""
    return sorted((each.t, _words(each)) for each in expected)


def _words(answer: Answer) -> str:
    spelled = (
        str(term).removeprefix("<http://example.org/").rstrip(">") for _, term in answer.solution
    )
    return " ".join(each.split("^")[0].strip('"') for each in spelled)


def test_W11_a_graph_variable_is_bound_to_the_graphs_of_the_elements() -> None:
    elements = feed(
        (1, ":g1 { :a :p 1 }"), (2, ":g2 { :a :p 2 } :g3 { :a :p 3 }"), (3, ":a :p 4 .")
    )
    found = answers(asked("WINDOW :w { GRAPH ?g { :a :p ?v } }"), elements)
    assert [each for each in found if each[0] == 3] == [(3, "g1 1"), (3, "g2 2"), (3, "g3 3")]


def test_W11_a_pattern_outside_of_graph_matches_all_triples_of_a_window() -> None:
    elements = feed((1, ":g1 { :a :p 1 } :g2 { :a :p 1 } :a :p 2 ."))
    assert answers(asked("WINDOW :w { :a :p ?v }", Content.BAG), elements) == [(1, "1"), (1, "2")]


def test_W11_a_named_graph_of_a_window_is_not_the_static_one() -> None:
    elements = feed((1, ":g { :a :p 1 }"))
    assert answers(asked("WINDOW :w { GRAPH :g { :a :p ?v } }"), elements) == [(1, "1")]
    assert answers(asked("WINDOW :w { GRAPH :h { :a :p ?v } }"), elements) == []
    outside = asked("WINDOW :w { ?a :p ?b } GRAPH :h { ?a :p ?v }", head="SELECT ?v")
    assert answers(outside, elements) == [(1, "8")]


def test_W11_elements_with_one_graph_name_share_the_graph() -> None:
    elements = feed((1, ":g { :a :p :b }"), (2, ":g { :b :q 1 }"), (3, ":h { :b :q 2 }"))
    query = asked("WINDOW :w { GRAPH ?g { ?a :p ?b . ?b :q ?v } }", head="SELECT ?g ?v")
    found = answers(query, elements)
    assert found == [(2, "g 1"), (3, "g 1")]


def test_W11_a_graph_is_a_bag_if_the_window_is() -> None:
    elements = feed((1, ":g { :a :p 1 } :h { :a :p 1 }"), (1, ":g { :a :p 1 }"))
    body = "WINDOW :w { GRAPH ?g { :a :p ?v } }"
    assert answers(asked(body, Content.BAG), elements) == [(1, "g 1"), (1, "g 1"), (1, "h 1")]
    assert answers(asked(body), elements) == [(1, "g 1"), (1, "h 1")]


def test_W11_a_graph_is_there_while_an_element_has_a_quad_in_it() -> None:
    elements = feed((1, ":g { :a :p 1 }"), (5, ":h { :b :q 2 }"))
    assert answers(asked("WINDOW :w { GRAPH ?g { } }"), elements) == [
        (1, "g"),
        (5, "g"),
        (5, "h"),
        (11, "h"),
    ]
    assert [t for t, _ in answers(asked("WINDOW :w { GRAPH :g { } }"), elements)] == [1, 5]


def test_W11_the_name_of_a_graph_can_be_a_node_in_it() -> None:
    elements = feed((1, ":g { :g :at 5 . :a :p 1 } :h { :a :p 2 }"))
    query = asked("WINDOW :w { GRAPH ?g { ?g :at ?t . :a :p ?v } }")
    assert answers(query, elements) == [(1, "g 5 1")]
    both_sides = asked("WINDOW :w { GRAPH ?g { :a :p ?v } ?g :at ?t }")
    assert answers(both_sides, elements) == [(1, "g 5 1")]


def test_W11_a_blank_graph_name_belongs_to_its_stream() -> None:
    elements = feed((1, "_:b { :a :p 1 }"), (2, "_:b { :a :p 2 }"))
    query = asked("WINDOW :w { GRAPH ?g { :a :p ?v . :a :p ?u } }", head="SELECT ?v ?u")
    assert [each for each in answers(query, elements) if each[0] == 2] == [
        (2, "1 1"),
        (2, "1 2"),
        (2, "2 1"),
        (2, "2 2"),
    ]


def test_W11_a_quad_in_another_graph_is_a_change_where_graphs_are_asked_for() -> None:
    elements = feed((1, ":g { :a :p 1 }"), (2, ":h { :a :p 1 }"))
    assert {t for t, _ in answers(asked("WINDOW :w { GRAPH ?g { :a :p ?v } }"), elements)} == {
        1,
        2,
        11,
    }
    assert {t for t, _ in answers(asked("WINDOW :w { :a :p ?v }"), elements)} == {1}


@pytest.mark.parametrize(
    ("body", "is_incremental"),
    [
        ("WINDOW :w { GRAPH ?g { ?a :p ?v OPTIONAL { ?a :q ?u } } }", True),
        ("WINDOW :w { GRAPH ?g { ?a :p ?v MINUS { ?a :q ?u } } }", True),
        ("WINDOW :w { GRAPH ?g { ?a :p ?v FILTER NOT EXISTS { ?a :q ?u } } }", True),
        ("WINDOW :w { GRAPH ?g { { ?a :p ?v } UNION { ?a :q ?u } } }", True),
        ("WINDOW :w { GRAPH ?g { SELECT ?a (COUNT(*) AS ?n) { ?a ?v ?u } GROUP BY ?a } }", True),
        ("WINDOW :w { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?a ?v ?u } } }", False),
        ("WINDOW :w { GRAPH ?g { ?a :p+ ?v } }", False),
        ("WINDOW :w { GRAPH :g { ?a :p+ ?v } }", True),
    ],
)
@pytest.mark.parametrize("content", Content)
def test_W11_graph_goes_with_every_operator(
    body: str, is_incremental: bool, content: Content
) -> None:
    elements = feed(
        (1, ":g { :a :p :b } :h { :a :q :c }"),
        (3, ":g { :a :q :c . :b :p :c }"),
        (4, ":h { :a :p :b }"),
        (9, ":g { :a :p :b }"),
    )
    assert answers(asked(body, content), elements, is_incremental=is_incremental)


@pytest.mark.parametrize("dialect", ["rspql", "cqels", "csparql", "sparqlstream"])
def test_W11_a_block_of_any_language_can_ask_for_named_graphs(dialect: str) -> None:
    query = parse(
        f"{PREFIX}REGISTER RSTREAM :out AS CONSTRUCT {{ GRAPH ?g {{ ?a :has ?v }} }}"
        " FROM NAMED WINDOW :w ON :s [RANGE PT0.01S STEP PT0.005S]"
        " WHERE { WINDOW :w { GRAPH ?g { ?a :p ?v } } }",
        dialect="rspql",
        content=Content.GRAPH,
    )
    read = parse(write(query, dialect).text, dialect=dialect, content=Content.GRAPH)
    (made,) = {
        each.graph
        for each in Oracle(read, static=STATIC).answers(feed((1, ":k { :a :p 1 } :a :p 2 .")))
    }
    assert made == frozenset(read_turtle(TRIG + ":k { :a :has 1 }"))
