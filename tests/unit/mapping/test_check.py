"""Errors that stop a run, and remarks that do not."""

from __future__ import annotations

import pytest

from quadweir.errors import MappingError
from quadweir.mapping.check import check_mapping, lint
from quadweir.mapping.findings import Level
from quadweir.mapping.functions import FUNCTIONS, register
from quadweir.mapping.model import Mapping
from quadweir.mapping.read import parse_mapping

PREFIXES = """@prefix rml: <http://w3id.org/rml/> .
@prefix rmls: <http://semweb.mmlab.be/ns/rmls#> .
@prefix grel: <http://users.ugent.be/~bjdmeest/function/grel.ttl#> .
@prefix idlab-fn: <https://w3id.org/imec/idlab/function#> .
@prefix ex: <http://ex.org/> .
"""
FIRST_LINE = 6
CSV = 'rml:logicalSource [ rml:source "a.csv" ; rml:referenceFormulation rml:CSV ]'
STREAM = "rml:logicalSource [ rml:source ex:{} ; rml:referenceFormulation rml:JSONPath ]"


def read(body: str) -> Mapping:
    return parse_mapping(PREFIXES + body, source="m.ttl")


def with_object(object_map: str, source: str = CSV) -> Mapping:
    return read(
        f"ex:t {source} ; rml:subject ex:s ; rml:predicateObjectMap [ rml:predicate ex:p ;\n"
        f" rml:objectMap [ {object_map} ] ] ."
    )


def codes(mapping: Mapping, *arguments: object) -> list[tuple[str, int]]:
    return [
        (finding.code, finding.span.line - FIRST_LINE + 1) for finding in lint(mapping, *arguments)
    ]


def call(function: str, parameter: str = "grel:valueParam", extra: str = "") -> str:
    return (
        f"rml:functionExecution [ rml:function {function} ; rml:input [ rml:parameter {parameter} ;"
        f' rml:inputValueMap [ rml:reference "a" ] ] ] {extra}'
    )


@pytest.mark.parametrize(
    ("object_map", "words", "hint"),
    [
        (call("grel:toUpercase"), "is not known", "toUpperCase"),
        (call("ex:mine"), "is not known", "Register it"),
        (call("grel:toUpperCase", "grel:valuParam"), "has no parameter", "valueParam"),
        (call("grel:string_replace"), "is not given", "input"),
        (call("grel:toUpperCase", extra="; rml:return grel:out"), "does not return", "stringOut"),
        (
            "rml:functionExecution [ rml:function grel:toUpperCase ; rml:input"
            " [ rml:parameter grel:valueParam ; rml:inputValue 'a' ],"
            " [ rml:parameter grel:valueParameter ; rml:inputValue 'b' ] ]",
            "twice",
            "one of the two",
        ),
        (
            "rml:functionExecution [ rml:function grel:toUpperCase ; rml:input [ rml:parameter"
            f" grel:valueParam ; rml:inputValueMap [ {call('ex:inner')} ] ] ]",
            "ex.org/inner is not known",
            "Register it",
        ),
        (f"rml:reference 'a' ; rml:condition [ {call('ex:f')} ]", "is not known", "Register it"),
    ],
)
def test_function_calls_are_checked(object_map: str, words: str, hint: str):
    mapping = with_object(object_map)
    with pytest.raises(MappingError, match=words) as caught:
        check_mapping(mapping)
    assert hint in (caught.value.hint or "")
    assert caught.value.span.line == FIRST_LINE + 1
    assert "http://ex.org/t" in caught.value.message
    (finding, *_) = lint(mapping)
    assert finding.level is Level.ERROR
    assert finding.code == "cannot-run"


def test_a_registered_function_is_known():
    registry = FUNCTIONS.copy()
    register("http://ex.org/mine", str.upper, ["http://ex.org/in"], registry=registry)
    mapping = with_object(call("ex:mine", "ex:in"))
    check_mapping(mapping, registry)
    assert lint(mapping, None, registry) == []
    with pytest.raises(MappingError):
        check_mapping(mapping)


def test_a_function_for_queries_alone_cannot_be_called_by_parameters_without_iris():
    registry = FUNCTIONS.copy()
    register("http://ex.org/mine", lambda text: text, registry=registry)
    with pytest.raises(MappingError, match="have no IRIs") as caught:
        check_mapping(with_object(call("ex:mine", "ex:in")), registry)
    assert "quadweir.register('http://ex.org/mine'" in (caught.value.hint or "")
    register("http://ex.org/mine", str.upper, ["http://ex.org/in"], registry=registry)
    with pytest.raises(MappingError, match="does not return") as caught:
        mapping = with_object(call("ex:mine", "ex:in", "; rml:return ex:out"))
        check_mapping(mapping, registry)
    assert "leave rml:return out" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("formulation", "reference", "iterator"),
    [
        ("rml:JSONPath", "$.a[", None),
        ("rml:JSONPath", "$.a", "$.students[*]]"),
        ("rml:XPath", "a[", None),
        ("rml:XPath", "a", "//b["),
        ("rml:JSONPath", "$.a)", None),
        ("rml:XPath", "nope(a)", None),
    ],
)
def test_paths_are_checked(formulation: str, reference: str, iterator: str | None):
    source = (
        f"rml:logicalSource [ rml:source 'a' ; rml:referenceFormulation {formulation}"
        + (f" ; rml:iterator '{iterator}'" if iterator else "")
        + " ]"
    )
    mapping = with_object(f"rml:reference '{reference}'", source)
    with pytest.raises(MappingError, match="is not a"):
        check_mapping(mapping)


def test_unknown_properties_are_guessed():
    mapping = with_object("rml:reference 'a' ; rml:langauge 'en'")
    (finding,) = lint(mapping)
    assert (finding.code, finding.level) == ("unknown-property", Level.WARNING)
    assert finding.hint == "Did you mean rml:language?"
    assert finding.span.line == FIRST_LINE + 1


def test_nodes_that_nothing_leads_to():
    mapping = read(
        f"ex:t {CSV} ; rml:subjectMap [ rml:constant ex:s ; rml:class ex:C ] .\n"
        "ex:left rml:function grel:toUpperCase .\nex:alsoLeft rml:template 'x' ."
    )
    assert codes(mapping) == [("unused-node", 2), ("unused-node", 3)]


def test_maps_that_make_nothing_unless_they_are_parents():
    alone = read(f"ex:t {CSV} ;\n rml:subject ex:s .")
    assert codes(alone) == [("unused-map", 1)]
    parent = read(
        f"ex:t {CSV} ; rml:subject ex:s ; rml:predicateObjectMap [ rml:predicate ex:p ;"
        f" rml:objectMap [ rml:parentTriplesMap ex:u ] ] .\nex:u {CSV} ; rml:subject ex:s ."
    )
    assert codes(parent) == []


def joined(first: str, second: str, extra: str) -> Mapping:
    return read(
        f"ex:t {first} ; rml:subject ex:s ; rml:predicateObjectMap [ rml:predicate ex:p ;\n"
        f" rml:objectMap [ rml:parentTriplesMap ex:u {extra} ] ] .\n"
        f"ex:u {second} ; rml:subject ex:s ."
    )


CONDITION = "; rml:joinCondition [ rml:child 'a' ; rml:parent 'b' ]"


def test_streams_joined_without_a_window():
    one, two = STREAM.format("one"), STREAM.format("two")
    assert codes(joined(one, two, CONDITION)) == [("unbounded-join", 2)]
    assert codes(joined(one, two, CONDITION + " ; rmls:windowType rmls:Tumbling")) == []
    assert codes(joined(one, CSV, CONDITION)) == []
    assert codes(joined(one, one, CONDITION)) == []


def test_joins_without_a_condition():
    other = CSV.replace("a.csv", "b.csv")
    assert codes(joined(CSV, other, "")) == [("cross-join", 2)]
    assert codes(joined(CSV, CSV, "")) == []
    endless = joined(STREAM.format("one"), STREAM.format("two"), "")
    with pytest.raises(MappingError, match="without a condition or a window"):
        check_mapping(endless)


@pytest.mark.parametrize(
    ("object_map", "code"),
    [
        ("rml:template 'http://x.org/a'", "constant-template"),
        ("rml:template 'http://x.org/a b/{c}'", "bad-iri-text"),
        ("rml:constant 'http://x.org/{id}'", "template-as-constant"),
        ("rml:constant []", "blank-constant"),
        ("rml:reference '$.name'", "foreign-reference"),
        ("rml:functionExecution [ rml:function idlab-fn:random ]", "not-deterministic"),
    ],
)
def test_doubts(object_map: str, code: str):
    assert codes(with_object(object_map)) == [(code, 2)]


def test_a_base_that_is_no_iri():
    mapping = read(
        f"ex:t {CSV} ; rml:baseIRI 'nowhere' ; rml:subjectMap [ rml:constant ex:s ; rml:class ex:C ] ."
    )
    assert codes(mapping) == [("bad-base", 1)]


def test_references_against_a_sample():
    mapping = with_object("rml:reference 'nmae'")
    source = mapping.triples_maps[0].source
    (finding,) = lint(mapping, {source: ["id", "name"]})
    assert finding.code == "unmatched-reference"
    assert finding.hint == "Did you mean 'name'?"
    assert lint(mapping, {source: ["nmae"]}) == []
    assert lint(mapping, {}) == []
    assert lint(mapping, lambda source, reference: reference == "nmae") == []
    assert codes(mapping, lambda source, reference: False) == [("unmatched-reference", 2)]


def test_join_operands_are_looked_up_in_their_own_sample():
    other = CSV.replace("a.csv", "b.csv")
    mapping = joined(CSV, other, CONDITION)
    child, parent = (t.source for t in mapping.triples_maps)
    assert codes(mapping, {child: ["a"], parent: ["b"]}) == []
    found = [f.message for f in lint(mapping, {child: ["b"], parent: ["a"]})]
    assert len(found) == 2
    assert "'a'" in found[0] + found[1]


def test_functions_inputs_are_looked_up_too():
    mapping = with_object(call("grel:toUpperCase"))
    source = mapping.triples_maps[0].source
    assert codes(mapping, {source: ["b"]}) == [("unmatched-reference", 2)]


@pytest.mark.parametrize(
    ("serialization", "graph", "is_wrong"),
    [
        ("N-Triples", "rml:graph ex:g", True),
        ("Turtle", "rml:graphMap [ rml:template 'http://ex.org/{a}' ]", True),
        ("RDF_JSON", "rml:graph ex:g", True),
        ("Turtle", "rml:graph rml:defaultGraph", False),
        ("TriG", "rml:graph ex:g", False),
        ("N-Quads", "rml:graph ex:g", False),
    ],
)
def test_targets_that_would_lose_graphs(serialization: str, graph: str, is_wrong: bool):
    mapping = read(
        f"""ex:t {CSV} ; rml:subjectMap [ rml:constant ex:s ; {graph} ] ; rml:predicateObjectMap
          [ rml:predicate ex:p ; rml:objectMap [ rml:reference "a" ; rml:logicalTarget ex:l ] ] .
        ex:l rml:serialization <http://www.w3.org/ns/formats/{serialization}> ;
          rml:target [ rml:path "out.x" ] ."""
    )
    if is_wrong:
        with pytest.raises(MappingError, match=rf"out\.x is in a named graph.*{serialization}"):
            check_mapping(mapping)
    else:
        check_mapping(mapping)
