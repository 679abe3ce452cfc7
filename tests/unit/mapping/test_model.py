"""Nodes of the model refuse invalid mappings."""

from __future__ import annotations

import pytest

from quadweir.errors import MappingError, UsageError
from quadweir.mapping.functions import Function, Output, Parameter
from quadweir.mapping.model import (
    ConstantTerm,
    FunctionExecution,
    FunctionInput,
    JoinCondition,
    Mapping,
    PerRecord,
    Reference,
    SubjectMap,
    Template,
    TermMap,
    TermType,
    TriplesMap,
    constant,
    expression_references,
)
from quadweir.mapping.sources import (
    CsvDialect,
    Formulation,
    FormulationKind,
    LogicalSource,
    MappedFile,
    TcpStream,
)
from quadweir.spans import Span
from quadweir.terms import IRI, BlankNode, Literal

SOURCE = LogicalSource(
    source=MappedFile(path="a.csv"), formulation=Formulation(kind=FormulationKind.CSV)
)


def triples_map(name: str) -> TriplesMap:
    return TriplesMap(name=name, source=SOURCE, subject=SubjectMap(term=constant(IRI("urn:s"))))


@pytest.mark.parametrize(
    ("term", "kind"),
    [
        (IRI("urn:a"), TermType.LITERAL),
        (Literal("a"), TermType.IRI),
        (BlankNode("a"), TermType.IRI),
        (IRI("urn:a"), TermType.BLANK_NODE),
    ],
)
def test_a_constant_is_of_its_own_type(term, kind: TermType):
    with pytest.raises(MappingError, match="term type"):
        TermMap(expression=ConstantTerm(term=term), term_type=kind)


def test_only_literals_have_languages_and_datatypes():
    tag = constant(Literal("en"))
    with pytest.raises(MappingError, match="has a language"):
        TermMap(expression=Reference(reference="a"), term_type=TermType.IRI, language=tag)
    with pytest.raises(MappingError, match="has a datatype"):
        TermMap(expression=Reference(reference="a"), term_type=TermType.IRI, datatype=tag)


def test_only_blank_nodes_come_from_nothing():
    with pytest.raises(MappingError, match="no constant"):
        TermMap(expression=PerRecord(), term_type=TermType.IRI)
    with pytest.raises(MappingError, match="lacks"):
        JoinCondition(child=PerRecord(), parent=Reference(reference="a"))


def test_empty_references_and_odd_dialects_and_ports():
    with pytest.raises(MappingError, match="empty"):
        Reference(reference="")
    with pytest.raises(MappingError, match="one character"):
        CsvDialect(delimiter="::")
    with pytest.raises(MappingError, match="not a TCP port"):
        TcpStream(host="h", port=70_000)
    with pytest.raises(MappingError, match="has none"):
        Formulation(kind=FormulationKind.CSV, namespaces=(("a", "b"),))


def test_names_are_unique():
    with pytest.raises(MappingError, match="two triples maps"):
        Mapping(triples_maps=(triples_map("a"), triples_map("a")))


def test_spans_take_no_part_in_equality():
    here, there = Span(1, 1), Span(2, 2)
    first = TermMap(expression=Reference(reference="a"), term_type=TermType.LITERAL, span=here)
    second = TermMap(expression=Reference(reference="a"), term_type=TermType.LITERAL, span=there)
    assert first == second
    assert hash(first) == hash(second)


def test_references_are_found_inside_functions():
    def given(term: TermMap) -> FunctionExecution:
        return FunctionExecution(
            function="urn:f", inputs=(FunctionInput(parameter="urn:p", value=term),)
        )

    inner = TermMap(
        expression=given(TermMap(expression=Template.parse("{a}{b}"), term_type=TermType.LITERAL)),
        term_type=TermType.LITERAL,
    )
    assert expression_references(given(inner)) == {"a", "b"}


def test_functions_have_outputs_and_distinct_parameters():
    with pytest.raises(UsageError, match="no output"):
        Function(iri="urn:f", outputs=())
    with pytest.raises(UsageError, match="one name"):
        Function(
            iri="urn:f",
            parameters=(Parameter("a", ("urn:a",)), Parameter("a", ("urn:b",))),
            outputs=(Output(("urn:o",)),),
        )
