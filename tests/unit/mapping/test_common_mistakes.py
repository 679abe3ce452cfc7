"""Common mistakes in mappings: odd forms that are accepted, and the errors for the others."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from tests.rml_texts import FIRST_LINE, PREFIXES, SOURCE, only, read

from quadweir.errors import MappingError
from quadweir.mapping.check import check_mapping, lint
from quadweir.mapping.formats.xmlfile import XmlPlan, read_elements
from quadweir.mapping.model import FunctionExecution, Mapping
from quadweir.mapping.records import no_such_column
from quadweir.mapping.vocabulary import IDLAB
from quadweir.mapping.yarrrml import parse_yarrrml

YARRRML = """
mappings:
  m:
    sources: [[a.csv~csv]]
    s: http://ex.org/$(id)
    po: [[foaf:name, $(name), LANGUAGE~lang]]
"""


def pair(text: str) -> str:
    return f"ex:t {SOURCE} ; rr:subject ex:s ; rr:predicateObjectMap [\n {text} ] ."


# -- files --------------------------------------------------------------------------------------


def test_n3_is_read_as_turtle_with_places(tmp_path: Path) -> None:
    path = tmp_path / "m.n3"
    path.write_text(PREFIXES + f"ex:t {SOURCE} ; rml:subject ex:s .")
    assert Mapping.read(path).triples_maps[0].span.line == FIRST_LINE
    path.write_text(PREFIXES + f"ex:t {SOURCE} .")
    with pytest.raises(MappingError) as caught:
        Mapping.read(path)
    assert caught.value.span.line == FIRST_LINE


def test_yarrrml_has_an_ending_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "m.yarrrml"
    path.write_text(YARRRML.replace("LANGUAGE", "en"))
    assert Mapping.read(path).triples_maps[0].name == "m"


# -- languages ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tag", "is_reported"), [("english", True), ("jp", True), ("nl-BE", False), ("x-mine", False)]
)
def test_unregistered_language_tags_are_remarked_on(tag: str, is_reported: bool) -> None:
    rml = read(
        pair(f"rr:predicate ex:p ; rr:objectMap [ rml:reference 'a' ; rr:language '{tag}' ]")
    )
    for mapping in (rml, parse_yarrrml(YARRRML.replace("LANGUAGE", tag))):
        found = [one for one in lint(mapping) if one.code == "unregistered-language"]
        assert bool(found) is is_reported
        assert all(repr(tag) in one.message and one.span is not None for one in found)
        check_mapping(mapping)


# -- functions ----------------------------------------------------------------------------------


def function(inner: str, executes: str = "https://w3id.org/function/ontology#executes") -> str:
    return pair(
        f"""rr:predicate ex:p ; rr:objectMap [ fnml:functionValue [ {inner}
          rr:predicateObjectMap [ rr:predicate <{executes}> ; rr:object grel:toUpperCase ] ,
            [ rr:predicate grel:valueParam ; rr:objectMap [ rml:reference 'a' ] ] ] ]"""
    )


def test_the_function_ontology_is_known_by_http_too() -> None:
    body = function("", "http://w3id.org/function/ontology#executes")
    found = only(body).predicate_objects[0].objects[0].expression
    assert isinstance(found, FunctionExecution)
    assert found.function.endswith("#toUpperCase")
    check_mapping(read(body))


def test_idlab_functions_are_known_by_http_too() -> None:
    iri = IDLAB.toUpperCaseURL.replace("https:", "http:")
    parameter = IDLAB.str.replace("https:", "http:")
    check_mapping(
        read(
            pair(
                f"rr:predicate ex:p ; rml:objectMap [ rml:functionExecution [ rml:function <{iri}> ;"
                f" rml:input [ rml:parameter <{parameter}> ;"
                " rml:inputValueMap [ rml:reference 'a' ] ] ] ]"
            )
        )
    )


def test_a_function_may_repeat_the_source_of_its_triples_map() -> None:
    repeated = read(function(f"{SOURCE} ;"))
    assert repeated.triples_maps == read(function("")).triples_maps
    assert lint(repeated) == []
    new = SOURCE.replace("rml:logicalSource", "orml:logicalSource")
    assert read(function(f"{new} ;")).triples_maps == repeated.triples_maps


def test_a_function_with_another_source_is_refused() -> None:
    with pytest.raises(MappingError, match="another logical source") as caught:
        read(function(SOURCE.replace("a.csv", "b.csv") + " ;"))
    assert caught.value.span.line == FIRST_LINE + 1
    assert "rml:parentTriplesMap" in caught.value.hint


def test_a_function_on_the_parents_side_of_a_join_has_the_parents_source() -> None:
    other = SOURCE.replace("a.csv", "b.csv")
    call = """rml:functionExecution [ %s ; rml:function grel:toUpperCase ; rml:input
      [ rml:parameter grel:valueParam ; rml:inputValueMap [ rml:reference 'a' ] ] ]"""
    body = f"""ex:t {SOURCE} ; rr:subject ex:s ; rr:predicateObjectMap [ rr:predicate ex:p ;
      rr:objectMap [ rr:parentTriplesMap ex:u ; rr:joinCondition [
        rml:childMap [ {call % SOURCE} ] ; rml:parentMap [ {call % "SIDE"} ] ] ] ] .
      ex:u {other} ; rr:subject ex:s ."""
    check_mapping(read(body.replace("SIDE", other)))
    with pytest.raises(MappingError, match="another logical source"):
        read(body.replace("SIDE", SOURCE))


# -- XML ----------------------------------------------------------------------------------------

BY_ROOT = (
    '<r xmlns:e="urn:e"><e:p e:id="1"><e:n>a</e:n></e:p>'
    '<e:p e:id="2"><x:n xmlns:x="urn:e">b</x:n></e:p></r>'
)
BY_RECORD = (
    '<r><e:p xmlns:e="urn:e" e:id="1"><e:n>a</e:n></e:p>'
    '<e:p xmlns:e="urn:e" e:id="2"><x:n xmlns:x="urn:e">b</x:n></e:p></r>'
)


@pytest.mark.parametrize("document", [BY_ROOT, BY_RECORD])
@pytest.mark.parametrize("iterator", ["/r/e:p", "//e:p[e:n]"], ids=["one-by-one", "whole"])
def test_prefixes_of_the_document(document: str, iterator: str) -> None:
    plan = XmlPlan(iterator, ("@e:id", "e:n", "x:n", "y:n", "@xml:lang"), ())
    rows = list(read_elements(document, plan, None))
    assert [row.values for row in rows] == [
        (["1"], ["a"], [], [], []),
        (["2"], ["b"], ["b"], [], []),
    ]


def test_the_mappings_prefixes_come_first() -> None:
    plan = XmlPlan("/r/e:p", ("@f:id",), (("e", "urn:other"), ("f", "urn:e")))
    assert list(read_elements(BY_ROOT, plan, None)) == []
    plan = XmlPlan("/r/e:p", ("@f:id",), (("f", "urn:e"),))
    assert [row.values for row in read_elements(BY_ROOT, plan, None)] == [(["1"],), (["2"],)]


@pytest.mark.parametrize("iterator", ["/r/q:p", "//q:p[1]"])
def test_a_prefix_that_is_not_declared(iterator: str) -> None:
    (row,) = read_elements(BY_ROOT, XmlPlan(iterator, (), ()), None)
    assert row.reason == f"nothing declares the prefix q: of the iterator {iterator}"


# -- messages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("rr:predicate 'http://ex.org/p' ; rr:object 1", "predicate", "Write <http://ex.org/p>."),
        ("rr:predicate 'foaf:name' ; rr:object 1", "predicate", "Write foaf:name."),
        ("rr:predicate 'name' ; rr:object 1", "predicate", "<http://...>"),
        ("rr:predicateMap [ rr:constant 'urn:p' ] ; rr:object 1", "predicate", "Write <urn:p>."),
        ("rr:graph 'urn:g' ; rr:predicate ex:p ; rr:object 1", "graph", "Write <urn:g>."),
    ],
)
def test_a_string_where_an_iri_belongs(text: str, what: str, hint: str) -> None:
    with pytest.raises(MappingError, match=f"the {what} is the string") as caught:
        read(pair(text))
    assert hint in caught.value.hint
    assert caught.value.span.line == FIRST_LINE + 1


def test_a_misspelt_property_is_named_as_it_was_written() -> None:
    with pytest.raises(MappingError, match="has no object") as caught:
        read(pair("rr:predicate ex:p ; rr:objctMap [ rml:reference 'a' ]"))
    assert caught.value.detail == "It has rr:objctMap. Did you mean rr:objectMap?"


@pytest.mark.parametrize(
    ("header", "delimiter"), [("id;name", ";"), ("id|'name'", "|"), ("id\tname", "\\t")]
)
def test_a_file_with_another_delimiter(header: str, delimiter: str) -> None:
    error = no_such_column(
        "name", [header], "a.csv", only(f"ex:t {SOURCE} ; rr:subject ex:s .").source
    )
    assert "between its columns" in error.message
    assert f'csvw:delimiter "{delimiter}"' in error.hint


@pytest.mark.parametrize("names", [["i\0d\0", "\0n\0"], ["\udc8b\x08\0\0" + 9999 * "x"]])
def test_a_file_in_another_encoding_or_compressed(names: list[str]) -> None:
    error = no_such_column("id", names, "a.csv", only(f"ex:t {SOURCE} ; rr:subject ex:s .").source)
    assert "not text, or in another encoding" in error.message
    assert "rml:UTF-16LE" in error.hint
    assert len(str(error)) < 1000


def test_long_names_of_columns_are_cut() -> None:
    error = no_such_column(
        "id", [9999 * "x"], "a.csv", only(f"ex:t {SOURCE} ; rr:subject ex:s .").source
    )
    assert len(str(error)) < 1000


def test_an_error_that_many_triples_maps_share_is_reported_once() -> None:
    source = (
        "rml:logicalSource [ rml:source 'a.json' ; rml:iterator '$.[' ;"
        " rml:referenceFormulation rml:JSONPath ]"
    )
    maps = "\n".join(f"ex:t{n} {source} ; rr:subject ex:s ; rr:class ex:C ." for n in range(13))
    maps = maps.replace(
        "rr:subject ex:s ; rr:class ex:C", "rr:subjectMap [ rr:constant ex:s ; rr:class ex:C ]"
    )
    (finding,) = lint(read(textwrap.dedent(maps)))
    assert finding.message.startswith(
        "triples map http://ex.org/t0: the iterator is not a JSONPath"
    )
    assert finding.message.endswith("(and in 12 more places)")
