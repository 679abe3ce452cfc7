"""Triple terms: patterns and functions agree with Oxigraph, incremental answers with the oracle."""

from __future__ import annotations

from collections import Counter

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.test_kernel import by_the_kernel
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import solve
from quadweir.algebra.windows import Content
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.terms import IRI, BlankNode, Literal, Quad, Term, TripleTerm, Variable
from quadweir.testing import Element, Oracle, diff_answers
from quadweir.testing.oxigraph_terms import to_oxigraph, to_oxigraph_quad
from quadweir.vocab import RDF, XSD

EX = "http://example.org/"
PREFIXES = f"PREFIX : <{EX}> PREFIX rdf: <{RDF}> "
REIFIES = IRI(RDF.reifies)
iris = st.sampled_from([IRI(EX + name) for name in "abc"])
links = st.sampled_from([IRI(EX + name) for name in "pq"])
resources = st.one_of(iris, st.sampled_from([BlankNode("x"), BlankNode("y")]))
values = st.one_of(
    iris,
    st.sampled_from([Literal("1", IRI(XSD.integer)), Literal("1", IRI(XSD.decimal))]),
    st.sampled_from([Literal("a b"), Literal(")>>", language="en")]),
)
triple_terms = st.recursive(
    st.builds(TripleTerm, resources, links, values),
    lambda inner: st.builds(TripleTerm, resources, links, inner),
    max_leaves=3,
)
quads = st.one_of(
    st.builds(Quad, resources, links, values),
    st.builds(Quad, resources, st.just(REIFIES), triple_terms),
    st.builds(Quad, resources, links, triple_terms),
)
# A triple, its reifier, and statements about the reifier.
annotated = st.builds(
    lambda quad, name, said: [
        quad,
        Quad(name, REIFIES, TripleTerm(quad.subject, quad.predicate, quad.object)),
        Quad(name, IRI(EX + "q"), said),
    ],
    st.builds(Quad, resources, links, values),
    resources,
    values,
)
datasets = st.lists(annotated | quads.map(lambda quad: [quad]), max_size=6).map(
    lambda groups: [quad for group in groups for quad in group]
)

BODIES = [
    "?x ?y <<( ?s ?p ?o )>>",
    "?x rdf:reifies <<( ?s :p ?o )>> . ?x :q ?c",
    "?x rdf:reifies <<( ?s ?p ?s )>>",
    "?x ?p <<( ?x ?p ?o )>>",
    "?s ?p ?o {| :q ?c |}",
    "?s ?p ?o ~ ?r {| :q ?c |}",
    "?s :p ?o ~ :a , :b",
    "<< ?s ?p ?o ~ ?r >> :q ?c",
    "<< ?s ?p ?o >>",
    "?x ?y <<( ?s ?p <<( ?a ?b ?c )>> )>>",
    "?x ?y <<( _:s :p [] )>>",
    "?x ?y <<( :a :p 1 )>>",
    "?x :p|rdf:reifies <<( ?s ?p ?o )>>",
    "?s ?p ?o OPTIONAL { ?r rdf:reifies <<( ?s ?p ?o )>> }",
    "?s ?p ?o MINUS { ?r rdf:reifies <<( ?s ?p ?o )>> }",
    "?s ?p ?o FILTER NOT EXISTS { ?r rdf:reifies <<( ?s ?p ?o )>> }",
    "?s ?p ?o FILTER EXISTS { ?s ?p ?o {| :q ?c |} }",
    "?x ?p ?t FILTER(isTRIPLE(?t)) BIND(SUBJECT(?t) AS ?a) BIND(OBJECT(?t) AS ?b)",
    "?x ?p ?t BIND(PREDICATE(?t) AS ?a) BIND(isTRIPLE(?t) AS ?b) BIND(isIRI(?t) AS ?c)",
    "?x ?p ?t BIND(isLITERAL(?t) AS ?a) BIND(isBLANK(?t) AS ?b)",
    "?s ?p ?o BIND(TRIPLE(?s, ?p, ?o) AS ?t) BIND(<<( ?o ?p 1 )>> AS ?u)",
    "?x ?p ?t . ?y ?q ?u FILTER(?t = ?u && isTRIPLE(?t))",
    "?x ?p ?t . ?y ?q ?u FILTER(sameTerm(?t, ?u) && isTRIPLE(?t))",
    "?x ?p ?t FILTER(?t IN (<<( :a :p 1 )>>, <<( :a :p 2 )>>, :a))",
    "VALUES ?t { <<( :a :p 1 )>> <<( :b :p <<( :a :p 1 )>> )>> } ?x ?p ?t",
    "{ SELECT ?t (COUNT(*) AS ?n) { ?x ?p ?t FILTER(isTRIPLE(?t)) } GROUP BY ?t }",
]


def _counted(solutions: list[dict[Variable, Term]]) -> Counter[frozenset[tuple[str, str]]]:
    return Counter(
        frozenset((variable.name, str(to_oxigraph(term))) for variable, term in solution.items())
        for solution in solutions
    )


@pytest.mark.parametrize("body", BODIES)
@settings(max_examples=8)
@given(data=datasets)
def test_patterns_over_triple_terms_match_as_oxigraph_does(body: str, data: list[Quad]) -> None:
    text = f"{PREFIXES} SELECT * {{ {body} }}"
    query = parse(text)
    store = ox.Store()
    store.extend(to_oxigraph_quad(quad, None) for quad in data)
    wanted = Counter(
        frozenset(
            (name.value, str(row[name.value]))
            for name in found.variables  # type: ignore[union-attr]
            if row[name.value] is not None
        )
        for found in [store.query(text)]
        for row in found  # type: ignore[union-attr]
    )
    dataset = Dataset.of(list(dict.fromkeys(data)))
    for asked in (query, optimize(query).query):
        found = solve(asked, dataset)
        assert _counted([{v: s[v] for v in s if not v.name.startswith("_:")} for s in found]) == (
            wanted
        )


feeds = st.lists(
    st.tuples(st.integers(0, 4), st.one_of(annotated, quads.map(lambda quad: [quad]))), max_size=6
).map(
    lambda rows: [
        Element(f"{EX}s", 1 + 2_000 * step, place, tuple(dict.fromkeys(content)))
        for place, (step, content) in enumerate(sorted(rows, key=lambda row: row[0]))
    ]
)


@pytest.mark.parametrize("body", BODIES)
@settings(max_examples=4)
@given(feed=feeds, content=st.sampled_from(Content))
def test_incremental_answers_are_those_of_the_oracle(
    body: str, feed: list[Element], content: Content
) -> None:
    text = f"""{PREFIXES} REGISTER RSTREAM :out AS SELECT *
        FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S] WHERE {{ WINDOW :w {{ {body} }} }}"""
    query = parse(text, content=content)
    expected = Oracle(query).run(feed)
    found, _ = by_the_kernel(optimize(query).query, feed, [], steps=[2])
    assert diff_answers(expected.answers, found) == ""
