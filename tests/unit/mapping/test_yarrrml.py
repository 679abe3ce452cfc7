"""YARRRML gives the same model as the equivalent RML."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from quadweir.errors import LimitError, MappingError, UnsupportedError
from quadweir.mapping.model import Mapping, PerRecord, Template, TermType
from quadweir.mapping.read import parse_mapping
from quadweir.mapping.sources import (
    CsvDialect,
    DatabaseSource,
    DeclaredStream,
    KafkaStream,
    MappedFile,
    MqttStream,
    TcpStream,
    ValueRules,
)
from quadweir.mapping.yarrrml import parse_yarrrml

RML = """@prefix rml: <http://w3id.org/rml/> .
@prefix ex: <http://ex.org/> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix grel: <http://users.ugent.be/~bjdmeest/function/grel.ttl#> .
@prefix idlab-fn: <https://w3id.org/imec/idlab/function#> .
@prefix formats: <http://www.w3.org/ns/formats/> .
"""
HEAD = "prefixes:\n  ex: http://ex.org/\n"
CSV = 'rml:logicalSource [ rml:source "p.csv" ; rml:referenceFormulation rml:CSV ]'


def yarrrml(text: str) -> Mapping:
    return parse_yarrrml(HEAD + textwrap.dedent(text), source="m.yml")


def person(body: str) -> Mapping:
    return yarrrml(
        "mappings:\n  person:\n    sources: [[p.csv~csv]]\n"
        + textwrap.indent(textwrap.dedent(body), "    ")
    )


def rml(body: str) -> Mapping:
    return parse_mapping(RML + body)


def same(ours: Mapping, theirs: Mapping) -> None:
    """Compare all but the names: RML has IRIs where YARRRML has keys.

    YARRRML has the rules for values of the older vocabulary.
    """
    assert all(one.source.rules is ValueRules.OLDER for one in ours.triples_maps)
    theirs = theirs.with_rules(ValueRules.OLDER)
    assert len(ours.triples_maps) == len(theirs.triples_maps)
    names = {t.name: o.name for t, o in zip(theirs.triples_maps, ours.triples_maps, strict=True)}
    for mine, other in zip(ours.triples_maps, theirs.triples_maps, strict=True):
        pairs = tuple(
            replace(
                pair,
                objects=tuple(
                    replace(o, parent=names[o.parent]) if hasattr(o, "parent") else o
                    for o in pair.objects
                ),
            )
            for pair in other.predicate_objects
        )
        assert mine == replace(other, name=mine.name, predicate_objects=pairs)


def test_short_and_long_forms_say_the_same():
    expected = rml(f"""ex:t {CSV} ; rml:subjectMap [ rml:template "http://ex.org/{{id}}" ;
        rml:graph ex:g ] ; rml:predicateObjectMap
        [ rml:predicate rdf:type ; rml:object foaf:Person ],
        [ rml:predicate foaf:name, ex:name ; rml:objectMap [ rml:reference "name" ] ],
        [ rml:predicate ex:born ; rml:objectMap [ rml:reference "born" ; rml:datatype xsd:date ] ],
        [ rml:predicate ex:label ; rml:objectMap [ rml:template "Mr {{name}}" ;
          rml:termType rml:Literal ; rml:language "en" ] ],
        [ rml:predicate ex:page ; rml:objectMap [ rml:template "http://x.org/{{id}}" ] ;
          rml:graph ex:h ],
        [ rml:predicate ex:note ; rml:object "fixed" ] .""")
    short = person("""
        s: ex:$(id)
        g: ex:g
        po:
          - [a, foaf:Person]
          - [[foaf:name, ex:name], $(name)]
          - [ex:born, $(born), xsd:date]
          - [ex:label, Mr $(name), en~lang]
          - p: ex:page
            o: http://x.org/$(id)~iri
            graphs: ex:h
          - [ex:note, fixed]
        """)
    long = yarrrml("""
        sources:
          people:
            access: p.csv
            referenceFormulation: csv
        mappings:
          person:
            sources: people
            subjects: {value: "http://ex.org/$(id)"}
            graphs: [ex:g]
            predicateobjects:
              - predicates: rdf:type
                objects: {value: foaf:Person}
              - predicates: [foaf:name, ex:name]
                objects: $(name)
              - predicates: ex:born
                objects: {value: $(born), datatype: xsd:date}
              - predicates: ex:label
                objects: {value: Mr $(name), language: en}
              - predicates: ex:page
                objects: {value: http://x.org/$(id), type: iri}
                graphs: ex:h
              - predicates: ex:note
                objects: fixed
        """)
    same(short, expected)
    same(long, expected)
    assert not short.findings
    assert not long.findings


def test_functions_nested_and_on_one_line():
    expected = rml(f"""ex:t {CSV} ; rml:subject ex:s ; rml:predicateObjectMap [ rml:predicate ex:p ;
        rml:objectMap [ rml:functionExecution [ rml:function grel:escape ;
          rml:input [ rml:parameter grel:valueParameter ; rml:inputValueMap [ rml:functionExecution
            [ rml:function grel:toUpperCase ; rml:input [ rml:parameter grel:valueParameter ;
              rml:inputValueMap [ rml:reference "n" ] ] ] ] ],
          [ rml:parameter grel:modeParameter ; rml:inputValue "html" ] ] ] ] .""")
    nested = person("""
        s: ex:s
        po:
          - p: ex:p
            o:
              function: grel:escape
              parameters:
                - parameter: grel:valueParameter
                  value:
                    f: grel:toUpperCase
                    pms: [[grel:valueParameter, $(n)]]
                - [grel:modeParameter, html]
        """)
    one_line = person("""
        s: ex:s
        po:
          - p: ex:p
            o:
              - function: grel:escape(valueParameter = grel:toUpperCase(grel:valueParameter = $(n)), modeParameter = "html")
        """)
    same(nested, expected)
    same(one_line, expected)


def test_conditions_on_mappings_and_on_pairs():
    condition = """rml:condition [ rml:functionExecution [ rml:function idlab-fn:equal ;
        rml:input [ rml:parameter grel:valueParameter ; rml:inputValueMap [ rml:reference "id" ] ],
        [ rml:parameter grel:valueParameter2 ; rml:inputValue "1" ] ] ]"""
    yaml = """
        condition:
          function: idlab-fn:equal
          parameters:
            - [grel:valueParameter, $(id)]
            - [grel:valueParameter2, 1]
        """
    same(
        person("s: ex:$(id)\npo: [[ex:p, x]]" + textwrap.dedent(yaml)),
        rml(
            f'ex:t {CSV} ; rml:subjectMap [ rml:template "http://ex.org/{{id}}" ; {condition} ] ;'
            ' rml:predicateObjectMap [ rml:predicate ex:p ; rml:object "x" ] .'
        ),
    )
    same(
        person(
            "s: ex:s\npo:\n  - p: ex:p\n    o: $(n)\n"
            + textwrap.indent(textwrap.dedent(yaml).strip(), "    ")
        ),
        rml(
            f"ex:t {CSV} ; rml:subject ex:s ; rml:predicateObjectMap [ rml:predicate ex:p ;"
            f' rml:objectMap [ rml:reference "n" ; {condition} ] ] .'
        ),
    )


JOIN = f"""ex:t {CSV} ; rml:subject ex:s ; rml:predicateObjectMap [ rml:predicate ex:p ;
    rml:objectMap [ rml:parentTriplesMap ex:u ;
      rml:joinCondition [ rml:child "pid" ; rml:parent "id" ] ] ] .
    ex:u rml:logicalSource [ rml:source "q.csv" ; rml:referenceFormulation rml:CSV ] ;
      rml:subjectMap [ rml:template "http://ex.org/q/{{id}}" ] ."""


@pytest.mark.parametrize(
    "condition",
    [
        "{function: equal, parameters: [[str1, $(pid), s], [str2, $(id), o]]}",
        "{function: equal, parameters: [[str1, $(pid)], [str2, $(id)]]}",
        "{function: equal, parameters: [[str1, $(id), o], [str2, $(pid), s]]}",
        "[{function: equal, parameters: [{parameter: str1, value: $(pid)}, [str2, $(id)]]}]",
        '{function: "equal(str1 = $(pid), str2 = $(id))"}',
    ],
)
def test_joins(condition: str):
    ours = yarrrml(f"""
        mappings:
          person:
            sources: [[p.csv~csv]]
            s: ex:s
            po:
              - p: ex:p
                o: {{mapping: project, condition: {condition}}}
          project:
            sources: [[q.csv~csv]]
            s: ex:q/$(id)
        """)
    same(ours, rml(JOIN))


def test_a_join_on_one_line():
    ours = yarrrml("""
        mappings:
          person:
            sources: [[p.csv~csv]]
            s: ex:s
            po:
              - p: ex:p
                o: {function: "join(mapping=project, equal(str1=$(pid), str2=$(id)))"}
          project: {sources: [[q.csv~csv]], s: "ex:q/$(id)"}
        """)
    same(ours, rml(JOIN))


def test_several_sources_and_subjects_make_triples_maps_of_their_own():
    mapping = yarrrml("""
        sources: {one: [a.json~jsonpath, "$.x[*]"]}
        mappings:
          person:
            sources: [one, [b.json~jsonpath, $]]
            s: ["ex:a/$(id)", "ex:b/$(id)"]
            po: [[ex:p, x]]
          other:
            sources: one
            s: ex:s
            po:
              - {p: ex:q, o: {mapping: person}}
        """)
    names = [t.name for t in mapping.triples_maps]
    assert names == ["person", "person#2", "person#3", "person#4", "other"]
    assert [item.parent for item in mapping.triples_map("other").ref_object_maps()] == names[:4]
    assert mapping.triples_maps[0].source.iterator == "$.x[*]"


def test_without_a_subject_every_record_has_a_blank_node():
    term = person("po: [[ex:p, x]]").triples_maps[0].subject.term
    assert (term.expression, term.term_type) == (PerRecord(), TermType.BLANK_NODE)


def test_targets_named_and_inline():
    mapping = yarrrml("""
        targets:
          dump: [out.ttl.gz~void, turtle, gzip]
        mappings:
          person:
            sources: [[p.csv~csv]]
            s: {value: ex:s, targets: dump}
            po:
              - p: ex:p
                o: {value: x, targets: [{access: o.nq, type: localfile}]}
        """)
    first, second = mapping.targets()
    assert (first.name, first.path, first.compression) == ("dump", "out.ttl.gz", "gzip")
    assert first.serialization.endswith("Turtle")
    assert second.path == "o.nq"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[a.tsv~csv]", MappedFile(path="a.tsv", dialect=CsvDialect(delimiter="\t"))),
        (
            "{access: a.csv, referenceFormulation: csv, delimiter: ';', encoding: utf-16}",
            MappedFile(path="a.csv", encoding="utf-16", dialect=CsvDialect(delimiter=";")),
        ),
        (
            "{access: 'h:9092/topic', type: kafka, referenceFormulation: jsonpath}",
            KafkaStream(brokers="h:9092", topic="topic"),
        ),
        (
            "{access: 'mqtt://h/a/b', type: mqtt, referenceFormulation: jsonpath}",
            MqttStream(host="h", topic="a/b"),
        ),
        ("{access: 'h:5', type: tcp, referenceFormulation: csv}", TcpStream(host="h", port=5)),
        (
            "{access: ex:s, type: stream, referenceFormulation: csv}",
            DeclaredStream(iri="http://ex.org/s"),
        ),
        ("{access: 'h/db', type: mysql, query: SELECT 1}", DatabaseSource(dsn="h/db")),
    ],
)
def test_sources(source: str, expected: object):
    mapping = yarrrml(f"mappings: {{m: {{sources: [{source}], s: ex:s}}}}")
    assert mapping.triples_maps[0].source.source == expected


def test_references_escapes_and_external_values():
    mapping = yarrrml("""
        external: {city: Ghent}
        base: http://base.org/
        authors: [John Doe <j@d.org>]
        mappings:
          person:
            sources: [[p.csv~csv]]
            s: ex:$(a\\)b)-$(f(x))
            po:
              - [ex:city, $(_city)]
              - [ex:other, $(_name)]
              - [ex:own, $(\\_city)]
              - [ex:text, \\$(id)]
              - [ex:brace, "{$(id)}"]
        """)
    (triples_map,) = mapping.triples_maps
    assert triples_map.subject.term.expression.references == ("a)b", "f(x)")
    city, other, own, text, brace = (p.objects[0].expression for p in triples_map.predicate_objects)
    assert city.term.lexical == "Ghent"
    assert other.reference == "_name"
    assert own.reference == "_city"
    assert text.term.lexical == "$(id)"
    assert isinstance(brace, Template)
    assert str(brace) == "\\{{id}\\}"
    assert mapping.base_iri == "http://base.org/"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("mappings:\n  p: {s: ex:s}", 4, "no sources"),
        ("mappings:\n  p:\n    sources: none\n    s: ex:s", 5, "no source 'none'"),
        ("mappings:\n  p:\n    sources: [[a~cvs]]\n    s: ex:s", 5, "formulation 'cvs'"),
        ("mappings:\n  p:\n    sources: [[a~csv]]\n    s: nope:$(x", 6, "does not close"),
        ("mappings:\n  p:\n    sources: [[a~csv]]\n    s: ex:s\n    po:\n      - [nope:p, x]", 8, "not an IRI"),
        ("mappings:\n  p:\n    sources: [[a~csv]]\n    s: ex:s\n    po:\n      - [ex:p]", 8, "1 parts"),
        ("mappings:\n  p:\n    sources: [[a~csv]]\n    s: ex:s\n    po:\n      - [ex:p, x, e~lang]", 8, "language tag"),
        ("mappings:\n  p:\n    sources: [[a~csv]]\n    s: ex:s\n    po:\n      - {p: ex:p, o: {mapping: q}}", 8, "no mapping 'q'"),
        ("mappings:\n  p:\n    sources: [[a~csv]]\n    s: ex:s\n    s: ex:t", 7, "given twice"),
        ("mappings: [", 3, "not valid YAML"),
        ("mappings: {}", 3, "no mappings"),
        ("mappings:\n  p:\n    sources: [[a~csv]]\n    s: {type: thing, value: x}", 6, "not a type of term"),
        ("mappings:\n  p:\n    sources: [[a~csv]]\n    s: {function: 'ex:f(a='}", 6, "cannot be read"),
    ],
)  # fmt: skip
def test_errors_have_a_line(text: str, line: int, words: str):
    with pytest.raises(MappingError, match=words) as caught:
        yarrrml(text)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.source) == (line, "m.yml")


@pytest.mark.parametrize("pair", ["{p: ex:p, o: {quoted: other}}", "{i: ex:p, p: ex:p, o: x}"])
def test_what_is_left_out_is_named(pair: str):
    with pytest.raises(UnsupportedError, match="not supported"):
        person(f"s: ex:s\npo:\n  - {pair}")


def test_unknown_keys_are_remarked_on():
    mapping = person("s: ex:s\npredicateobject: [[ex:p, x]]\nsubjcets: ex:t")
    (finding,) = mapping.findings
    assert finding.code == "unknown-property"
    assert "subjects" in (finding.hint or "")


def test_aliases_cannot_blow_up():
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for previous, name in zip("abcdefg", "bcdefgh", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{previous}'] * 10)}]\n"
    with pytest.raises(LimitError, match="too large"):
        parse_yarrrml(bomb)
    with pytest.raises(LimitError, match="nested too deeply"):
        parse_yarrrml("a: " + "[" * 80 + "]" * 80)
    with pytest.raises(LimitError, match="nested too deeply"):
        parse_yarrrml("a: " + "[" * 5_000 + "]" * 5_000)
    with pytest.raises(LimitError):
        parse_yarrrml("a: &a\n  b: *a\n")


def test_merge_keys_and_aliases_serve_as_intended():
    mapping = yarrrml("""
        mappings:
          one: &one {sources: [[a~csv]], s: ex:one, po: [[ex:p, x]]}
          two: {<<: *one, s: ex:two}
        """)
    one, two = mapping.triples_maps
    assert one.source == two.source
    assert two.subject.term.expression.term.value == "http://ex.org/two"
    assert two.predicate_objects == one.predicate_objects


def test_yaml_tags_make_no_objects():
    with pytest.raises(MappingError):
        parse_yarrrml("mappings: !!python/object/apply:os.system ['true']")


def test_a_file_by_its_ending(tmp_path: Path):
    path = tmp_path / "m.yaml"
    path.write_text("mappings: {p: {sources: [[a~csv]], s: 'http://x/$(i)'}}", "utf-8")
    mapping = Mapping.read(path)
    assert mapping.path == path
    assert mapping.triples_maps[0].span.source == str(path)
