"""The optimiser keeps every answer, and the evaluator agrees with an engine that is not ours."""

from __future__ import annotations

from collections import Counter

import pyoxigraph as ox
from hypothesis import assume, example, given
from hypothesis import strategies as st

from properties.relations import (
    PREFIXES,
    all_nodes,
    datasets,
    selects,
    sliced_groups,
    sliced_selects,
    tails,
    triples,
)
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import Solutions, evaluate
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.solutions import key_of
from quadweir.algebra.windows import Content
from quadweir.errors import QuerySyntaxError
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.terms import IRI, BlankNode, Literal, Quad, Term
from quadweir.testing import Element


def read(text: str, **options: object) -> ContinuousQuery:
    try:
        return parse(text, **options)  # type: ignore[arg-type]
    except QuerySyntaxError:
        assume(False)
        raise


def bag(answer: object) -> Counter[object]:
    assert isinstance(answer, Solutions)
    return Counter(key_of(row) for row in answer.rows)


@given(sliced_selects, datasets)
def test_optimized_equals_unoptimized(text: str, quads: list[Quad]) -> None:
    query = read(text)
    data = Dataset.of(quads)
    assert bag(evaluate(optimize(query).query, data)) == bag(evaluate(query, data))


STREAM = "http://example.org/s"
elements = st.builds(
    lambda time, content: Element(STREAM, time, time, tuple(content)),
    st.integers(0, 5),
    st.lists(triples, min_size=1, max_size=3),
)
window_groups = st.lists(
    st.one_of(
        st.builds("WINDOW :w {{ {} }}".format, sliced_groups),
        st.builds("WINDOW :v {{ {} }}".format, sliced_groups),
        st.builds("WINDOW ?w {{ {} }}".format, sliced_groups),
        st.builds("OPTIONAL {{ WINDOW :w {{ {} }} }}".format, sliced_groups),
        sliced_groups,
    ),
    min_size=1,
    max_size=3,
).map(" ".join)


@given(
    st.sampled_from(("SELECT *", "SELECT ?x ?y", "SELECT DISTINCT ?x")),
    window_groups,
    tails,
    datasets,
    st.lists(elements, max_size=4),
    st.lists(elements, max_size=4),
    st.sampled_from(Content),
)
def test_optimized_equals_unoptimized_over_windows(
    head: str,
    body: str,
    tail: str,
    quads: list[Quad],
    one: list[Element],
    other: list[Element],
    content: Content,
) -> None:
    text = (
        f"{PREFIXES}REGISTER RSTREAM <http://example.org/out> AS {head}"
        " FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT5S]"
        " FROM NAMED WINDOW :v ON :s [RANGE PT20S STEP PT5S]"
        f" WHERE {{ {body} }} {tail}"
    )
    query = read(text, dialect="rspql", content=content)
    windows = {IRI("http://example.org/w"): one, IRI("http://example.org/v"): other}
    data = Dataset.of(quads)
    plain = bag(evaluate(query, data, windows=windows))
    assert bag(evaluate(optimize(query).query, data, windows=windows)) == plain


# --- an independent judge ---------------------------------------------------------------------


def to_ox(term: Term) -> object:
    match term:
        case IRI():
            return ox.NamedNode(term.value)
        case BlankNode():
            return ox.BlankNode(term.label)
        case Literal():
            if term.language is not None:
                return ox.Literal(term.lexical, language=term.language)
            return ox.Literal(term.lexical, datatype=ox.NamedNode(term.datatype.value))


def oxigraph(text: str, quads: list[Quad]) -> Counter[object]:
    store = ox.Store()
    for quad in quads:
        graph = ox.DefaultGraph() if quad.graph is None else to_ox(quad.graph)
        parts = (to_ox(term) for term in (quad.subject, quad.predicate, quad.object))
        store.add(ox.Quad(*parts, graph))
    try:
        found = store.query(text)
    except SyntaxError:  # it reads some queries more narrowly than the grammar does
        assume(False)
        raise
    names = [variable.value for variable in found.variables]
    return Counter(
        frozenset((name, str(row[name])) for name in names if row[name] is not None)
        for row in found
    )


# A path between two variables keeps to the nodes, even if a pattern before has bound them.
@example(PREFIXES + "SELECT * { ?y :p* ?y . ?x ?y ?x }", [])
@given(selects, datasets)
def test_the_evaluator_agrees_with_oxigraph(text: str, quads: list[Quad]) -> None:
    quads = [*quads, *all_nodes]
    # Oxigraph leaves ?g unbound where a GRAPH holds no triple to match.
    text = text.replace("GRAPH ?g {", "GRAPH ?g { :a :node :a .")
    answer = evaluate(read(text), Dataset.of(quads))
    assert isinstance(answer, Solutions)
    ours = Counter(
        frozenset((variable.name, str(to_ox(term))) for variable, term in row.items())
        for row in answer.rows
    )
    assert ours == oxigraph(text, quads)
