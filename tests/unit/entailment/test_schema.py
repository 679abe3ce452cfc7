"""Reading a schema: axioms, and warnings with their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadweir.entailment.schema import TYPE, Axiom, AxiomKind, Schema
from quadweir.errors import DataError, LimitError, SourceError, UnsupportedError
from quadweir.sources import schemafiles
from quadweir.sources.schemafiles import read_schema
from quadweir.terms import IRI

PREFIXES = """@prefix : <urn:> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""


def read(folder: Path, text: str, name: str = "schema.ttl") -> tuple[list[str], list[str]]:
    """The axioms and the warnings, as text; warnings with line and column."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    schema, warnings = read_schema([file])
    return list(map(str, schema.axioms)), [str(each).replace(f"{file}:", "") for each in warnings]


def test_every_axiom_is_read(tmp_path):
    axioms, warnings = read(
        tmp_path,
        f"""{PREFIXES}
        :Cat rdfs:subClassOf :Animal . :feeds rdfs:subPropertyOf :knows .
        :feeds rdfs:domain :Person ; rdfs:range :Animal ; owl:inverseOf :fedBy .
        :knows a owl:SymmetricProperty, owl:TransitiveProperty .
        :Cat owl:equivalentClass :Feline . :knows owl:equivalentProperty :meets .
        :Cat rdfs:label "cat" ; a owl:Class .
        """,
    )
    assert axioms == [
        "<urn:Cat> rdfs:subClassOf <urn:Animal>",
        "<urn:feeds> rdfs:subPropertyOf <urn:knows>",
        "<urn:feeds> rdfs:domain <urn:Person>",
        "<urn:feeds> rdfs:range <urn:Animal>",
        "<urn:feeds> owl:inverseOf <urn:fedBy>",
        "<urn:knows> a owl:SymmetricProperty",
        "<urn:knows> a owl:TransitiveProperty",
        "<urn:Cat> rdfs:subClassOf <urn:Feline>",
        "<urn:Feline> rdfs:subClassOf <urn:Cat>",
        "<urn:knows> rdfs:subPropertyOf <urn:meets>",
        "<urn:meets> rdfs:subPropertyOf <urn:knows>",
    ]
    assert warnings == []


@pytest.mark.parametrize(
    ("said", "place", "words"),
    [
        (':a rdfs:subClassOf "x" .', "3:20", "the literal"),
        (":a a 5 .", "3:6", "the literal"),
        (":p rdfs:range 5 .", "3:15", "the literal"),
        ("zz:a rdfs:subClassOf :b .", "3:1", "the prefix zz: is not defined"),
        ("<rdfs:a> rdfs:subClassOf :b .", "3:26", "a prefix that is not defined"),
        (":n a owl:AnnotationProperty ; rdfs:domain :c .", "3:43", "is an annotation"),
        (":p rdfs:subPropertyOf _:b .", "3:23", "stands for a property"),
        ("_:p rdfs:domain :c .", "3:17", "stands for a property"),
        ("[] a owl:SymmetricProperty .", "3:6", "stands for a property"),
        (":p a owl:FunctionalProperty .", "3:6", "owl:FunctionalProperty is not used"),
        (":a owl:disjointWith :b .", "3:21", "owl:disjointWith is not used"),
        (":tom a :Cat .", "3:8", "give them as static data"),
    ],
)
def test_doubtful_statements_are_reported_with_their_place(tmp_path, said, place, words):
    axioms, warnings = read(tmp_path, PREFIXES + said)
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{place}: ")
    assert words in warnings[0]
    kept = "annotation" in words or ("not defined" in words and "looks" in warnings[0])
    assert bool(axioms) == kept


def test_the_rest_of_a_schema_with_an_undefined_prefix_is_read(tmp_path):
    axioms, warnings = read(
        tmp_path, "zz:a :b yy:c .\n" + PREFIXES + ":Cat rdfs:subClassOf :Animal , zz:Pet ."
    )
    assert axioms == ["<urn:Cat> rdfs:subClassOf <urn:Animal>"]
    places = [each.partition(": ")[0] for each in warnings]
    assert places == ["1:1", "1:6", "1:9"]


def test_a_schema_may_have_several_files_and_formats(tmp_path):
    turtle, lines = tmp_path / "a.ttl", tmp_path / "b.nt"
    turtle.write_text(PREFIXES + ":a rdfs:subClassOf [] .", encoding="utf-8")
    lines.write_text(
        "<urn:b> <http://www.w3.org/2000/01/rdf-schema#subClassOf> _:x .\n", encoding="utf-8"
    )
    schema, _ = read_schema([turtle, lines])
    # Blank nodes are those of the schema and of no stream.
    assert all(str(each.object).startswith("_:schema-") for each in schema.axioms)
    assert len(schema.axioms) == 2
    assert schema.digest == Schema(schema.axioms[::-1]).digest
    assert schema.digest != Schema(schema.axioms[:1]).digest


def test_what_is_no_schema_is_refused_with_its_place(tmp_path, monkeypatch):
    with pytest.raises(SourceError, match="no such file"):
        read_schema([tmp_path / "none.ttl"])
    with pytest.raises(DataError) as caught:
        read(tmp_path, ":a :b\n.")
    assert caught.value.span is not None
    with pytest.raises(DataError, match="suffix"):
        read(tmp_path, "", "schema.txt")
    with pytest.raises(DataError, match="document type"):
        read(tmp_path, "<!DOCTYPE a><rdf/>", "schema.owl")
    (tmp_path / "bad.ttl").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="UTF-8"):
        read_schema([tmp_path / "bad.ttl"])
    monkeypatch.setattr(schemafiles, "MAX_BYTES", 10)
    with pytest.raises(LimitError):
        read(tmp_path, PREFIXES)


@pytest.mark.parametrize(
    "axioms",
    [
        [Axiom(AxiomKind.SYMMETRIC, TYPE, TYPE)],
        [Axiom(AxiomKind.INVERSE, TYPE, TYPE)],
        [
            Axiom(AxiomKind.SUBPROPERTY, TYPE, IRI("urn:p")),
            Axiom(AxiomKind.INVERSE, IRI("urn:q"), IRI("urn:p")),
            Axiom(AxiomKind.SUBPROPERTY, IRI("urn:q"), TYPE),
        ],
    ],
)
def test_rdf_type_cannot_be_its_own_inverse(axioms):
    with pytest.raises(UnsupportedError, match="its own inverse"):
        Schema.of(axioms)
