"""Every document in the mapping vocabularies is read, or refused with a message."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.errors import QuadweirError
from quadweir.mapping.check import check_mapping, lint
from quadweir.mapping.read import parse_mapping
from quadweir.mapping.vocabulary import ALLOWED, CSVW, JOIN_PARAMETERS, QW, RML, RMLS
from quadweir.mapping.yarrrml import parse_yarrrml
from quadweir.vocab import RDF

NODES = [f"<urn:n{i}>" for i in range(4)] + ["_:a", "_:b"]
PROPERTIES = sorted(
    {RML[name] for names in ALLOWED.values() for name in names if ":" not in name}
    | {RMLS[n.removeprefix("rmls:")] for ns in ALLOWED.values() for n in ns if n[:5] == "rmls:"}
    | {QW[name] for name in JOIN_PARAMETERS}
    | {CSVW.url, CSVW.dialect, CSVW.delimiter, RDF.type}
)
VALUES = [
    *NODES,
    *(
        f"<{RML[name]}>"
        for name in [
            "CSV",
            "JSONPath",
            "XPath",
            "IRI",
            "Literal",
            "BlankNode",
            "TriplesMap",
            "MappingDirectory",
            "gzip",
            "UTF-8",
            "defaultGraph",
            "FilePath",
        ]
    ),
    *(f"<{RMLS[name]}>" for name in ("KafkaStream", "TCPSocketStream", "Tumbling", "DynamicJoin")),
    '"a.csv"',
    '"{a}"',
    '"a{b"',
    '"$.a"',
    '"en"',
    '"5"',
    '""',
    "5",
    "true",
]
# A core that alone is a whole mapping, so that what is added is not all refused for one reason.
CORE = [
    (f"<{RML.logicalSource}>", "_:a"),
    (f"<{RML.subjectMap}>", "<urn:n1>"),
]

statements = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(PROPERTIES), st.sampled_from(VALUES)),
    max_size=25,
)


@given(statements, st.booleans())
def test_any_graph_of_mapping_properties(found, with_core: bool):
    lines = [f"{s} <{p}> {o} ." for s, p, o in found]
    if with_core:
        lines += [f"<urn:n0> {p} {o} ." for p, o in CORE]
        lines += [
            f'_:a <{RML.source}> "a.csv" ; <{RML.referenceFormulation}> <{RML.CSV}> .',
            f'<urn:n1> <{RML.template}> "http://x/{{a}}" .',
        ]
    text = "\n".join(lines)
    list(ox.parse(text, format=ox.RdfFormat.TURTLE))  # the generator makes valid Turtle
    try:
        mapping = parse_mapping(text)
        lint(mapping, lambda source, reference: False)
        check_mapping(mapping)
    except QuadweirError as error:
        assert error.message
        assert error.exit_code == 3


KEYS = [
    "s",
    "subjects",
    "po",
    "p",
    "o",
    "value",
    "type",
    "datatype",
    "language",
    "function",
    "parameters",
    "mapping",
    "condition",
    "graphs",
    "targets",
    "access",
]
SCALARS = ["ex:$(a)", "$(b", "$(c)", "x~iri", "en~lang", "xsd:date", "a", "grel:toUpperCase", "m", "ex:f(a = $(b))", "join(mapping=m)", "''", "5"]  # fmt: skip
trees = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(
            lambda items: "[" + ", ".join(_quoted(i) for i in items) + "]"
        ),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=3).map(
            lambda pairs: "{" + ", ".join(f"{k}: {_quoted(v)}" for k, v in pairs.items()) + "}"
        ),
    ),
    max_leaves=8,
)


def _quoted(text: str) -> str:
    return text if text[:1] in "[{'" else f'"{text}"'


@given(trees, trees, trees)
def test_any_yarrrml_tree(subject: str, pairs: str, source: str):
    text = (
        "prefixes: {ex: 'http://ex.org/'}\nmappings:\n  m:\n"
        f"    sources: {_quoted(source) if source[:1] in '[{' else '[[a.csv~csv]]'}\n"
        f"    s: {_quoted(subject)}\n    po: [{_quoted(pairs)}, [ex:p, {_quoted(subject)}]]\n"
    )
    try:
        mapping = parse_yarrrml(text)
        lint(mapping)
    except QuadweirError as error:
        assert error.message
        assert error.span is not None


@given(st.text(max_size=80))
@pytest.mark.parametrize("read", [parse_mapping, parse_yarrrml])
def test_any_text(read, text: str):
    with pytest.raises(QuadweirError):
        read(text)
