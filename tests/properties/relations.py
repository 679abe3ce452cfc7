"""Generated queries and data: small, dense, and full of the cases where scoping matters.

A query is generated as text, so that an engine that shares nothing with ours can answer it too.
Few names are used, so that patterns meet, variables are shared and some stay unbound.
"""

from __future__ import annotations

from hypothesis import strategies as st

from quadweir.terms import IRI, Literal, Quad
from quadweir.vocab import XSD

PREFIXES = "PREFIX : <http://example.org/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
EX = "http://example.org/"
VARIABLES = ("?x", "?y", "?z")
RESOURCES = (":a", ":b", ":c")
PREDICATES = (":p", ":q", ":r")
CONSTANTS = ("0", "1", "2", '"a"', '"b"@en')
GRAPHS = (":g", ":h")

variables = st.sampled_from(VARIABLES)
constants = st.sampled_from(CONSTANTS)


def _resource(name: str) -> IRI:
    return IRI(EX + name.removeprefix(":"))


def _term(text: str) -> IRI | Literal:
    if text.startswith(":"):
        return _resource(text)
    if text.startswith('"'):
        lexical, _, language = text[1:].partition('"')
        return Literal(lexical, language=language.removeprefix("@") or None)
    return Literal(text, IRI(XSD.integer))


# --- data -------------------------------------------------------------------------------------

triples = st.builds(
    lambda s, p, o: Quad(_resource(s), _resource(p), _term(o)),
    st.sampled_from(RESOURCES),
    st.sampled_from(PREDICATES),
    st.sampled_from((*RESOURCES, *CONSTANTS)),
)
named_triples = st.builds(
    lambda t, g: Quad(t.subject, t.predicate, t.object, _resource(g)),
    triples,
    st.sampled_from(GRAPHS),
)
datasets = st.builds(
    lambda default, named: [*default, *named],
    st.lists(triples, max_size=8),
    st.lists(named_triples, max_size=5),
)


# Oxigraph lets a path of no steps start only at a node of the graph, where SPARQL lets it start at
# any term: with these triples, all terms are nodes everywhere, so both agree.
all_nodes = [
    Quad(_resource(subject), _resource(":node"), _term(each), graph)
    for graph in (None, *map(_resource, GRAPHS))
    for subject, each in zip(RESOURCES * 3, (*RESOURCES, *CONSTANTS), strict=False)
]


# --- expressions ------------------------------------------------------------------------------

_leaves = st.one_of(
    variables, constants, st.sampled_from(RESOURCES), st.sampled_from(("true", "1/0"))
)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def two(form: str) -> st.SearchStrategy[str]:
        return st.builds(form.format, inner, inner)

    return st.one_of(
        two("({} && {})"),
        two("({} || {})"),
        two("({} = {})"),
        two("({} != {})"),
        # Oxigraph orders a term of any kind with itself; SPARQL orders numbers, not IRIs.
        two("({} + 0 < {})"),
        two("({} + {})"),
        two("COALESCE({}, {})"),
        two("({} IN ({}, 1))"),
        st.builds("IF({}, {}, {})".format, inner, inner, inner),
        st.builds("(! {})".format, inner),
        st.builds("isLiteral({})".format, inner),
        st.builds("STR({})".format, inner),
        st.builds("bound({})".format, variables),
    )


expressions = st.recursive(_leaves, _compound, max_leaves=4)


# --- patterns ---------------------------------------------------------------------------------

_paths = st.sampled_from(
    (":p", ":p", ":q", ":r", ":p|:q", ":p/:q", ":p+", ":p*", ":q?", "^:p", "!:p")
)
_subjects = st.one_of(variables, variables, st.sampled_from((*RESOURCES, "_:n")))
_objects = st.one_of(variables, variables, st.sampled_from((*RESOURCES, *CONSTANTS, "[]")))
_triple = st.one_of(
    st.builds("{} {} {} .".format, _subjects, st.sampled_from(PREDICATES), _objects),
    st.builds("{} {} {} .".format, _subjects, _paths, _objects),
    st.builds("{} {} {} .".format, _subjects, variables, _objects),
)
_block = st.lists(_triple, min_size=1, max_size=3).map(" ".join)
_values = st.one_of(
    st.builds("VALUES {} {{ {} {} }}".format, variables, constants, st.sampled_from(RESOURCES)),
    st.just("VALUES (?x ?y) { (:a UNDEF) (UNDEF 1) (:b :c) }"),
)


_TAILS = (
    "LIMIT 2",
    "OFFSET 1",
    "LIMIT 2 OFFSET 1",
    "ORDER BY ?y LIMIT 2",
    "ORDER BY DESC(?x) ?z LIMIT 3",
    "ORDER BY DESC(?z) LIMIT 2 OFFSET 1",
    "ORDER BY (?y + 1) OFFSET 2",
    "ORDER BY ?x",
)
tails = st.sampled_from(("", "", *_TAILS))


def _group(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(_elements(inner), min_size=1, max_size=4).map(" ".join)


def _group_with_slices(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    cut = st.builds(
        "{{ SELECT {} {{ {} }} {} }}".format,
        st.sampled_from(("?x", "?y ?x", "?z", "DISTINCT ?y", "DISTINCT ?z ?x")),
        inner,
        st.sampled_from(_TAILS),
    )
    element = st.one_of(_elements(inner), _elements(inner), _elements(inner), cut)
    return st.lists(element, min_size=1, max_size=4).map(" ".join)


def _elements(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        _block,
        _block,
        st.builds("OPTIONAL {{ {} }}".format, inner),
        st.builds("OPTIONAL {{ {} FILTER({}) }}".format, inner, expressions),
        st.builds("{{ {} }} UNION {{ {} }}".format, inner, inner),
        st.builds("MINUS {{ {} }}".format, inner),
        st.builds("FILTER({})".format, expressions),
        st.builds("FILTER({})".format, expressions),
        st.builds("FILTER EXISTS {{ {} }}".format, inner),
        st.builds("FILTER NOT EXISTS {{ {} FILTER({}) }}".format, inner, expressions),
        st.builds("GRAPH {} {{ {} }}".format, st.sampled_from((*GRAPHS, "?g")), inner),
        st.builds("BIND({} AS {})".format, expressions, st.sampled_from(("?n", "?m", "?z"))),
        _values,
        st.builds("{{ SELECT {} {{ {} }} }}".format, st.sampled_from(("?x", "?x ?y", "*")), inner),
        st.builds("{{ SELECT DISTINCT {} {{ {} }} }}".format, variables, inner),
        st.builds(
            "{{ SELECT {0} (COUNT(*) AS ?k) (MIN({1}) AS ?l) {{ {2} }} GROUP BY {0} }}".format,
            variables,
            variables,
            inner,
        ),
        st.builds("{{ SELECT (COUNT({}) AS ?k) {{ {} }} }}".format, variables, inner),
    )


groups = st.recursive(_block, _group, max_leaves=6)
# With subqueries that keep only some solutions. SPARQL does not say which ones; we have a rule
# (A4).
sliced_groups = st.recursive(_block, _group_with_slices, max_leaves=6)

_heads = st.sampled_from(
    ("SELECT *", "SELECT ?x ?y ?z", "SELECT ?x ?n ?k", "SELECT DISTINCT ?y", "SELECT (?x AS ?o) ?y")
)
selects = st.builds("{} WHERE {{ {} }}".format, _heads, groups).map(PREFIXES.__add__)
sliced_selects = st.builds("{} WHERE {{ {} }} {}".format, _heads, sliced_groups, tails).map(
    PREFIXES.__add__
)
