"""How values become terms by the rules of the older vocabulary and of the current one."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quadweir.commands.maplive import LiveOptions, begin
from quadweir.mapping.files import Folders
from quadweir.mapping.model import Mapping
from quadweir.mapping.read import parse_mapping
from quadweir.mapping.sources import ValueRules
from quadweir.mapping.yarrrml import parse_yarrrml
from quadweir.runtime.mappings.bounded import MappingJob, MappingOutcome, run_bounded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PREFIXES = """
@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix rml: <http://semweb.mmlab.be/ns/rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix fnml: <http://semweb.mmlab.be/ns/fnml#> . @prefix rmls: <http://semweb.mmlab.be/ns/rmls#> .
@prefix fno: <http://w3id.org/function/ontology#> . @base <http://e.org/> .
@prefix grel: <http://users.ugent.be/~bjdmeest/function/grel.ttl#> .
"""
RECORDS: list[dict[str, Any]] = [
    {"id": 1, "n": 6802, "t": True, "a": ["x", "y", 3], "b": ["p", "q"], "u": "http://e.org/u"},
    {"id": [2, 3], "n": 1.5, "a": "z", "b": [], "u": ["http://e.org/v", "no iri"]},
    {"id": 4, "n": "[not an array]", "a": ["ok", {"no": 1}]},
    {"id": 5, "n": {"no": 1}, "a": None},
]
# What each record gives: the ends of lines without the common beginning.
OLDER = {
    1: [
        *('n> "6802"', 't> "true"', 'a> "x"', 'a> "y"', 'a> "3"', 'd> "6.802E3"^^<DOUBLE>'),
        *('up> "X"', 'up> "Y"', 'up> "3"', 'join> "x+y+3"', 'l> "x"@en', 'l> "y"@en', 'l> "3"@en'),
        *('ab> "x-p"', 'ab> "x-q"', 'ab> "y-p"', 'ab> "y-q"', 'ab> "3-p"', 'ab> "3-q"'),
        "u> <http://e.org/u>",
    ],
    2: ['n> "1.5"', 'd> "1.5E0"^^<DOUBLE>', 'a> "z"', 'up> "Z"', 'join> "z"', 'l> "z"@en'],
    4: [
        *('n> "[not an array]"', 'd> "[not an array]"^^<DOUBLE>'),
        *('a> "ok"', 'up> "OK"', 'join> "ok"', 'l> "ok"@en'),
    ],
}
# Nothing, joined, is an empty text.
OLDER[5] = ['join> ""']
OLDER[2] = OLDER[3] = [*OLDER[2], "u> <http://e.org/v>"]


def call(function: str, *inputs: str) -> str:
    pairs = "".join(f", [ {one} ]" for one in inputs)
    return f"""fnml:functionValue [ rr:predicateObjectMap
      [ rr:predicate fno:executes ; rr:object grel:{function} ] {pairs} ]"""


def mapping_text(source: str, formulation: str, iterator: str | None, step: str = "") -> str:
    def reference(name: str) -> str:
        return f'rml:reference "{step}{name}"'

    value = f"rr:objectMap [ {reference('a')} ]"
    objects = {
        "n": reference("n"),
        "t": reference("t"),
        "a": reference("a"),
        "d": f"{reference('n')} ; rr:datatype xsd:double",
        "l": f"{reference('a')} ; rr:language 'en'",
        "ab": f'rr:template "{{{step}a}}-{{{step}b}}" ; rr:termType rr:Literal',
        "u": f"{reference('u')} ; rr:termType rr:IRI",
        "up": call("toUpperCase", f"rr:predicate grel:valueParam ; {value}"),
        "join": call(
            "array_join",
            f"rr:predicate grel:p_array_a ; {value}",
            "rr:predicate grel:p_string_sep ; rr:object '+'",
        ),
    }
    pairs = "".join(
        f"; rr:predicateObjectMap [ rr:predicate <{name}> ; rr:objectMap [ {one} ] ]\n"
        for name, one in objects.items()
    )
    path = f'; rml:iterator "{iterator}"' if iterator else ""
    return f"""{PREFIXES} <#m> rml:logicalSource [
        rml:source {source} ; rml:referenceFormulation ql:{formulation} {path} ] ;
      rr:subjectMap [ rr:template "http://e.org/{{{step}id}}" ] {pairs} ."""


def run(
    spark: SparkSession, folder: Path, mapping: Mapping, **given: Any
) -> tuple[list[str], MappingOutcome]:
    out = io.BytesIO()
    job = MappingJob(folders=Folders(mapping=folder, working=folder), **given)
    outcome = run_bounded(mapping, spark, job, out)
    return sorted(out.getvalue().decode().splitlines()), outcome


def expected(found: dict[int, list[str]]) -> list[str]:
    double = "http://www.w3.org/2001/XMLSchema#double"
    return sorted(
        f"<http://e.org/{number}> <http://e.org/{end.replace('DOUBLE', double)} ."
        for number, ends in found.items()
        for end in ends
    )


LINES = "\n".join(map(json.dumps, RECORDS))
WRAPPED = "\n".join(json.dumps({"r": record}) for record in RECORDS)
DOCUMENT = json.dumps({"r": RECORDS})
WAYS = {
    "in the driver": (LINES, None, "", 2**20),
    "by Spark": (LINES, None, "", -1),
    "by longer paths": (WRAPPED, None, "r.", -1),
    "by Python": (DOCUMENT, "$..r[*]", "", 2**20),
}


@pytest.mark.parametrize("way", WAYS)
def test_json_by_the_rules_of_the_older_vocabulary(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    content, iterator, step, limit = WAYS[way]
    (tmp_path / "a.json").write_text(content)
    mapping = parse_mapping(mapping_text('"a.json"', "JSONPath", iterator, step))
    dead = tmp_path / "dead.jsonl"
    lines, outcome = run(spark, tmp_path, mapping, driver_characters=limit, dead_letters=dead)
    assert lines == expected(OLDER)
    assert (outcome.records, outcome.bad_records) == (4, 3)
    reasons = {json.loads(line)["reason"] for line in dead.read_text().splitlines()}
    assert reasons == {
        f"the value of {step}a is an array or an object, not a term",
        f"the value of {step}n is an array or an object, not a term",
        "'no iri' is not an IRI",
    }


def test_streams_follow_the_same_rules(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text(LINES)
    source = '[ a rmls:FileStream ; rmls:path "in" ]'
    mapping = parse_mapping(mapping_text(source, "JSONPath", None))
    folders = Folders(mapping=tmp_path, working=tmp_path)
    given = LiveOptions(folders=folders, output=str(tmp_path / "out"))
    begun = begin(spark, mapping, given, tmp_path / "cp", {})
    begun.query.processAllAvailable()
    begun.query.stop()
    found = [one for path in tmp_path.glob("out/*.nq") for one in path.read_text().splitlines()]
    assert sorted(found) == expected(OLDER)


def test_the_rules_can_be_chosen(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(LINES)
    text = mapping_text('"a.json"', "JSONPath", None)
    current, outcome = run(spark, tmp_path, parse_mapping(text).with_rules(ValueRules.CURRENT))
    xsd = "http://www.w3.org/2001/XMLSchema#"
    ends = [line.removeprefix("<http://e.org/1> <http://e.org/") for line in current]
    assert f'n> "6802"^^<{xsd}integer> .' in ends and f't> "true"^^<{xsd}boolean> .' in ends
    assert not [end for end in ends if end.startswith("a>")]
    assert outcome.bad_records == 4
    new = text.replace("http://semweb.mmlab.be/ns/rml#", "http://w3id.org/rml/")
    assert run(spark, tmp_path, parse_mapping(new))[0] == current
    older = parse_mapping(new).with_rules(ValueRules.OLDER)
    assert run(spark, tmp_path, older)[0] == expected(OLDER)


def test_flat_json_lines_have_plain_values_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1, "n": 6802}\n{"id": 2, "n": "x"}\n')
    mapping = parse_mapping(mapping_text('"a.json"', "JSONPath", None))
    lines, outcome = run(spark, tmp_path, mapping, driver_characters=-1)
    assert '<http://e.org/1> <http://e.org/n> "6802" .' in lines
    assert "flat objects" in outcome.explanation


@pytest.mark.parametrize("limit", [-1, 2**20], ids=["large", "small"])
def test_an_array_joins_with_each_of_its_elements(
    spark: SparkSession, tmp_path: Path, limit: int
) -> None:
    child = [{"id": 1, "k": ["a", "b"]}, {"id": 2, "k": "c"}]
    parent = [{"id": ["x", "y"], "k": "a"}, {"id": "z", "k": ["b", "c"]}]
    for name, records in (("c", child), ("p", parent)):
        (tmp_path / f"{name}.json").write_text("\n".join(map(json.dumps, records)))
    text = f"""{PREFIXES} <#c> rml:logicalSource [ rml:source "c.json" ;
        rml:referenceFormulation ql:JSONPath ] ; rr:subjectMap [ rr:template "http://e.org/{{id}}" ] ;
      rr:predicateObjectMap [ rr:predicate <p> ; rr:objectMap [ rr:parentTriplesMap <#p> ;
        rr:joinCondition [ rr:child "k" ; rr:parent "k" ] ] ] .
      <#p> rml:logicalSource [ rml:source "p.json" ; rml:referenceFormulation ql:JSONPath ] ;
        rr:subjectMap [ rr:template "http://e.org/{{id}}" ] ."""
    lines, _ = run(spark, tmp_path, parse_mapping(text), driver_characters=limit)
    pairs = [(1, "x"), (1, "y"), (1, "z"), (2, "z")]
    assert lines == [f"<http://e.org/{c}> <http://e.org/p> <http://e.org/{p}> ." for c, p in pairs]


def test_yarrrml_follows_the_older_rules(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1, "a": [2, "b"]}')
    mapping = parse_yarrrml(
        """
        mappings:
          m:
            sources: [[a.json~jsonpath, $]]
            s: http://e.org/$(id)
            po: [[http://e.org/p, $(a)]]
        """
    )
    lines, _ = run(spark, tmp_path, mapping)
    assert lines == [f'<http://e.org/1> <http://e.org/p> "{value}" .' for value in ("2", "b")]


QUOTED = 'id,v,w\n1,,x\n2,"",x\n3," ",""\n4,"a, ""b""",\n'
UNQUOTED = "id,v,w\n1,,x\n3, ,\n4,a,\n"


@pytest.mark.parametrize("limit", [-1, 2**20], ids=["large", "small"])
@pytest.mark.parametrize("content", [QUOTED, UNQUOTED], ids=["quoted", "unquoted"])
def test_an_empty_cell_without_quotes_is_missing(
    spark: SparkSession, tmp_path: Path, content: str, limit: int
) -> None:
    (tmp_path / "a.csv").write_text(content)
    text = f"""{PREFIXES} <#m> rml:logicalSource [ rml:source "a.csv" ;
        rml:referenceFormulation ql:CSV ] ; rr:subjectMap [ rr:template "http://e.org/{{id}}" ] ;
      rr:predicateObjectMap [ rr:predicate <v> ; rr:objectMap [ rml:reference "v" ] ] ,
        [ rr:predicate <w> ; rr:objectMap [ rml:reference "w" ] ] ."""
    older = {
        QUOTED: ['1 w "x"', '2 v ""', '2 w "x"', '3 v " "', '3 w ""', '4 v "a, \\"b\\""'],
        UNQUOTED: ['1 w "x"', '3 v " "', '4 v "a"'],
    }
    current = {
        QUOTED: [*older[QUOTED], '1 v ""', '4 w ""'],
        UNQUOTED: [*older[UNQUOTED], '1 v ""', '3 w ""', '4 w ""'],
    }
    mapping = parse_mapping(text)
    for rules, cells in ((None, older), (ValueRules.CURRENT, current)):
        chosen = mapping if rules is None else mapping.with_rules(rules)
        lines, outcome = run(spark, tmp_path, chosen, driver_characters=limit)
        spelt = (one.split(" ", 2) for one in cells[content])
        assert lines == sorted(f"<http://e.org/{i}> <http://e.org/{p}> {t} ." for i, p, t in spelt)
        assert outcome.bad_records == 0


def test_arrays_go_through_joins_of_streams(spark: SparkSession, tmp_path: Path) -> None:
    child = [{"id": ["1", "2"], "k": ["a", "b"], "t": 1000}, {"id": "3", "k": "b", "t": 1000}]
    parent = [{"id": "x", "k": "a", "t": 1000}, {"id": ["y", "z"], "k": ["b"], "t": 1000}]
    for name, records in (("c", child), ("p", parent)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jsonl").write_text("\n".join(map(json.dumps, records)))

    def side(name: str) -> str:
        return f"""<#{name}> rml:logicalSource [
          rml:source [ a rmls:FileStream ; rmls:path "{name}" ] ;
          rml:referenceFormulation ql:JSONPath ] ;
        rr:subjectMap [ rr:template "http://e.org/{{id}}" ]"""

    text = f"""{PREFIXES} @prefix qw: <urn:quadweir:mapping#> .
      {side("p")} . {side("c")} ; rr:predicateObjectMap [ rr:predicate <p> ; rr:objectMap [
        rr:parentTriplesMap <#p> ; rr:joinCondition [ rr:child "k" ; rr:parent "k" ] ;
        rmls:windowType rmls:TumblingWindow ; qw:size "10 s" ; qw:timestamp "t" ] ] ."""
    folders = Folders(mapping=tmp_path, working=tmp_path)
    given = LiveOptions(folders=folders, output=str(tmp_path / "out"))
    begun = begin(spark, parse_mapping(text), given, tmp_path / "cp", {})
    begun.query.processAllAvailable()
    begun.query.stop()
    found = [one for path in tmp_path.glob("out/*.nq") for one in path.read_text().splitlines()]
    pairs = [(c, p) for c in (1, 2) for p in "xyz"] + [(3, "y"), (3, "z")]
    assert sorted(found) == [
        f"<http://e.org/{c}> <http://e.org/p> <http://e.org/{p}> ." for c, p in pairs
    ]
