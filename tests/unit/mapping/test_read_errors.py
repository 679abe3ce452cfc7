"""Invalid RML texts: errors at the right place."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadweir.errors import LimitError, MappingError, SourceError, UnsupportedError
from quadweir.mapping import graph as graph_module
from quadweir.mapping.model import (
    Mapping,
)
from quadweir.mapping.read import parse_mapping
from rml_texts import (
    FIRST_LINE,
    PREFIXES,
    SOURCE,
    join,
    read,
    read_object,
    read_source,
)


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        (f"ex:t {SOURCE} .", 1, "no subject map"),
        ("ex:t a rml:TriplesMap ;\n rml:subject ex:s .", 1, "no logical source"),
        (f"ex:t {SOURCE} ;\n rml:subject ex:a ;\n rml:subjectMap [ rml:constant ex:b ] .", 3, "2 subject maps"),
        (f"ex:t {SOURCE} ;\n rml:subjectMap [\n rml:tempalte 'x' ] .", 2, "no constant, reference"),
        (f"ex:t {SOURCE} ;\n rml:subjectMap [\n rml:template 'a{{b' ] .", 3, "never closes"),
        (f"ex:t {SOURCE} ;\n rml:subjectMap [\n rml:template 'a', 'b' ] .", 3, "of which it can have one"),
        (f"ex:t {SOURCE} ;\n rml:subjectMap [ rml:constant ex:s ;\n rml:termType rml:Iri ] .", 3, "not a term type"),
        (f"ex:t {SOURCE} ;\n rml:subject 'text' .", 2, "the subject is the string"),
        (f"ex:t {SOURCE} ;\n rml:subjectMap [ rml:reference 'a' ; rml:termType rml:Literal ] .", 2, "makes literals"),
        (f"ex:t {SOURCE} ;\n rml:subjectMap [ rml:constant ex:s ;\n rml:class 'C' ] .", 3, "is not an IRI"),
        (f"ex:t {SOURCE} ; rml:subject ex:s ;\n rml:predicateObjectMap [ rml:predicate ex:p ] .", 2, "no object"),
        (f"ex:t {SOURCE} ; rml:subject ex:s ;\n rml:predicateObjectMap [ rml:object 1 ] .", 2, "no predicate"),
        (
            f"ex:t {SOURCE} ; rml:subject ex:s ; rml:predicateObjectMap [\n"
            " rml:predicate ex:p ;\n rml:objectMap [ rml:reference 'a' ; rml:language 'x' ] ] .",
            3,
            "not a language tag",
        ),
        (
            f"ex:t {SOURCE} ; rml:subject ex:s ; rml:predicateObjectMap [ rml:predicate ex:p ;\n"
            " rml:objectMap [ rml:reference 'a' ; rml:language 'en' ; rml:datatype xsd:date ] ] .",
            2,
            "both a language and a datatype",
        ),
        (
            f"ex:t {SOURCE} ; rml:subject ex:s ; rml:predicateObjectMap [ rml:predicate ex:p ;\n"
            " rml:objectMap [\n rml:parentTriplesMap ex:none ] ] .",
            2,
            "which the mapping does not have",
        ),
        (
            "ex:t rml:logicalSource [\n rml:source 'a' ;\n rml:referenceFormulation rml:JsonPath ] ;"
            " rml:subject ex:s .",
            3,
            "not a reference formulation",
        ),
        ("ex:t rml:logicalSource\n [ rml:source 'a' ] ; rml:subject ex:s .", 2, "no reference formulation"),
        (
            "ex:t rml:logicalSource [ rml:referenceFormulation rml:CSV ;\n rml:source [ a rmls:KafkaStream ;"
            " rmls:broker 'b' ] ] ; rml:subject ex:s .",
            2,
            "no rmls:topic",
        ),
        (
            "ex:t rml:logicalSource [ rml:referenceFormulation rml:CSV ;\n rml:source [ rml:path 'a' ;\n"
            " rml:encoding 'klingon' ] ] ; rml:subject ex:s .",
            3,
            "encoding",
        ),
        (
            f"ex:t {SOURCE} ; rml:subjectMap [ rml:functionExecution ex:e ] .\n"
            "ex:e rml:function ex:f ; rml:input [ rml:parameter ex:p ;\n"
            " rml:inputValueMap [ rml:functionExecution ex:e ] ] .",
            3,
            "its own result",
        ),
    ],
)  # fmt: skip
def test_errors_name_the_triples_map_and_the_place(body: str, line: int, words: str):
    with pytest.raises(MappingError, match=words) as caught:
        read(body)
    error = caught.value
    assert error.span is not None
    assert error.span.line == FIRST_LINE + line - 1
    assert error.span.source == "m.ttl"
    assert "http://ex.org/t" in error.message


def test_a_misspelt_property_is_guessed_in_the_error():
    with pytest.raises(MappingError) as caught:
        read(f"ex:t {SOURCE} ; rml:subjectMap [ rml:tempalte 'x' ] .")
    assert "rml:template" in (caught.value.detail or "")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("rmls:windowType rmls:Hopping", "not a kind of window"),
        ("rmls:joinConfig [ rmls:joinType rmls:TumblingJoin ] ; rmls:windowType rmls:Sliding", "by its join type"),
        ("rmls:joinConfig [ a rmls:JoinConfigMap ]", "has no type"),
        ("rmls:windowType rmls:Tumbling ; qw:slide '1 s'", "a window that is tumbling"),
        ("rmls:windowType qw:Interval ; qw:size '1 s'", "a window that is interval"),
        ("rmls:windowType rmls:Dynamic ; qw:distance '1 s'", "a window that is dynamic"),
        ("rmls:windowType rmls:Sliding ; qw:size 'soon'", "not a duration"),
        ("rmls:windowType rmls:Sliding ; qw:size 0", "not a duration"),
        ("rmls:windowType rmls:Dynamic ; qw:growFactor 'much'", "not a number"),
    ],
)  # fmt: skip
def test_errors_in_windows(body: str, words: str):
    with pytest.raises(MappingError, match=words):
        join(body)


@pytest.mark.parametrize(
    "body",
    [
        "rml:gather ( [ rml:reference 'a' ] ) ; rml:gatherAs rml:List",
        "rml:quotedTriplesMap ex:t",
    ],
)
def test_modules_that_are_left_out_are_named(body: str):
    with pytest.raises(UnsupportedError, match="not supported"):
        read_object(body)


def test_the_network_is_out_of_reach():
    with pytest.raises(UnsupportedError, match="on the network"):
        read_source("[ <http://www.w3.org/ns/dcat#downloadURL> <http://x.org/a.json> ]")


def test_syntax_errors_have_a_place(tmp_path: Path):
    path = tmp_path / "m.ttl"
    path.write_text("@prefix ex: <http://x/> .\nex:a ex:b 'c .\n", "utf-8")
    with pytest.raises(MappingError, match="not valid Turtle") as caught:
        Mapping.read(path)
    assert caught.value.span.line == 2
    assert caught.value.span.source == str(path)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(SourceError, match="cannot read the mapping"):
        Mapping.read(tmp_path / "none.ttl")
    path = tmp_path / "m.ttl"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(MappingError, match="not UTF-8"):
        Mapping.read(path)
    monkeypatch.setattr(graph_module, "MAX_MAPPING_BYTES", 1)
    with pytest.raises(LimitError):
        Mapping.read(path)
    path.write_text("")
    with pytest.raises(MappingError, match="no triples map"):
        Mapping.read(path)


@pytest.mark.parametrize("ending", ["nt", "rdf", "jsonld"])
def test_other_rdf_syntaxes_say_the_same(tmp_path: Path, ending: str):
    import pyoxigraph as ox

    text = PREFIXES + f"ex:t {SOURCE} ; rml:subject ex:s ."
    formats = {
        "nt": ox.RdfFormat.N_TRIPLES,
        "rdf": ox.RdfFormat.RDF_XML,
        "jsonld": ox.RdfFormat.JSON_LD,
    }
    path = tmp_path / f"m.{ending}"
    path.write_bytes(
        ox.serialize(ox.parse(text, format=ox.RdfFormat.TURTLE), format=formats[ending])
    )
    assert Mapping.read(path) == parse_mapping(text)


def test_entities_of_rdf_xml_are_refused_unopened(tmp_path: Path):
    entities = '<!ENTITY a "xxxxxxxxxx">' + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True)
    )
    path = tmp_path / "bomb.rdf"
    path.write_text(
        f'<?xml version="1.0"?>\n<!DOCTYPE r [{entities}]>\n'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        ' xmlns:e="http://e/"><rdf:Description rdf:about="urn:s"><e:p>&j;</e:p>'
        "</rdf:Description></rdf:RDF>",
        "utf-8",
    )
    with pytest.raises(MappingError, match="document type declaration") as caught:
        Mapping.read(path)
    assert caught.value.span.line == 2


def test_remote_json_ld_contexts_are_not_fetched(tmp_path: Path):
    path = tmp_path / "m.jsonld"
    path.write_text('{"@context": "http://127.0.0.1:9/c", "@id": "urn:a", "p": "b"}', "utf-8")
    with pytest.raises(MappingError, match="not valid JSON-LD"):
        Mapping.read(path)
