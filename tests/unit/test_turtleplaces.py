from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.mapping.read import parse_mapping
from quadweir.turtleplaces import locate_triples, match_places

TEXT = """# a comment with <angle> and "quotes"
@prefix : <http://x/ns#> .
@base <http://x/base/> .
PREFIX ex: <http://y/>

<#tm> a :Map ;
  :p "one # not a comment" , \"\"\"two
lines "quoted" \"\"\"@en-GB ;
  :q [ :r 1.5 ; :s true, [ a ex:Inner ; ] ] ;
  ex:list ( 1 [ :t "x" ] ) .
_:label :p 'single'^^ex:type .
[ :alone "yes" ] .
[ :more 1 ] :p ex:a.b , ex:c\\,d .
"""


def places(text: str) -> dict[str, tuple[int, int]]:
    quads = list(ox.parse(text, format=ox.RdfFormat.TURTLE, base_iri="http://doc/"))
    matched = match_places(quads, locate_triples(text, base="http://doc/"))
    return {
        f"{quads[i].predicate.value} {quads[i].object}": (
            place.predicate_span.line,
            place.object_span.line,
        )
        for i, place in matched.items()
    }


def test_every_triple_outside_lists_has_its_place():
    found = places(TEXT)
    expected = {
        '"one # not a comment"': (7, 7),
        '"two\\nlines \\"quoted\\" "@en-gb': (7, 7),
        '"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>': (9, 9),
        "<http://y/Inner>": (9, 9),
        '"single"^^<http://y/type>': (11, 11),
        '"yes"': (12, 12),
        "<http://y/a.b>": (13, 13),
        "<http://y/c,d>": (13, 13),
    }
    by_object = {key.split(" ", 1)[1]: value for key, value in found.items()}
    for term, lines in expected.items():
        assert by_object[term] == lines, term
    assert any(key.startswith("http://y/list ") for key in found)


def test_columns_count_from_one_and_ends_are_exclusive():
    (place,) = locate_triples("  <urn:s> <urn:p>\n\t<urn:o> .")
    assert (place.subject_span.column, place.subject_span.end_column) == (3, 10)
    assert (place.object_span.line, place.object_span.column) == (2, 2)


def test_what_is_not_understood_costs_places_only():
    text = "<urn:a> <urn:p> <urn:b> .\n<<( <urn:s> <urn:p> 1 )>> <urn:q> 2 ."
    assert [p.object for p in locate_triples(text)] == ["urn:b"]
    assert locate_triples("\x00") == []


def test_equal_siblings_keep_their_order():
    text = "<urn:s> <urn:p> [ <urn:q> 1 ],\n [ <urn:q> 2 ],\n [ <urn:q> 3 ] ."
    quads = list(ox.parse(text, format=ox.RdfFormat.TURTLE))
    matched = match_places(quads, locate_triples(text))
    lines = {
        quads[i].object.value: place.predicate_span.line
        for i, place in matched.items()
        if quads[i].predicate.value == "urn:q"
    }
    assert lines == {"1": 1, "2": 2, "3": 3}


@given(st.text(max_size=60))
def test_any_text_is_survived(text: str):
    locate_triples(text)


@pytest.mark.parametrize(
    "base", ["urn:", "urn:a:b", "mailto:a", "http://x/a/b?q", "tag:x,2020:/a/"]
)
@pytest.mark.parametrize("iri", ["tm", "#tm", "../tm", "", "?q", "urn:\\u0041"])
def test_names_resolve_under_every_base(base, iri):
    """Also under schemes whose names are no paths, which are legal bases."""
    text = f"@base <{base}> .\n@prefix : <http://x/ns#> .\n<{iri}> :p [ :q 1 ] ."
    found = places(text)
    if "\\" not in iri:
        assert [found[each] for each in sorted(found)] == [(3, 3), (3, 3)]


def test_a_mapping_may_have_a_urn_as_its_base():
    text = """@base <urn:> . @prefix rml: <http://w3id.org/rml/> .
    <#tm> rml:logicalSource [ rml:source "a.csv" ; rml:referenceFormulation rml:CSV ] ;
      rml:subjectMap [ rml:template "urn:{id}" ] ."""
    (found,) = parse_mapping(text).triples_maps
    assert (found.name, found.span.line) == ("urn:#tm", 2)
