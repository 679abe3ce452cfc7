"""Files of every kind through a whole run, small and large, valid and broken."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

from quadweir.errors import DataError, MappingError, SourceError, UsageError
from quadweir.mapping.compile import compile_mapping
from quadweir.mapping.files import Folders
from quadweir.mapping.read import parse_mapping
from quadweir.mapping.readfile import read_file
from quadweir.runtime.mappings.bounded import MappingJob, MappingOutcome, run_bounded
from quadweir.sinks.rdf_documents import Syntax

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PREFIXES = """
@prefix rml: <http://w3id.org/rml/> . @prefix ex: <http://ex.org/> . @base <http://ex.org/m/> .
@prefix csvw: <http://www.w3.org/ns/csvw#> .
"""


def source(path: str, formulation: str, iterator: str | None = None, extra: str = "") -> str:
    step = f'; rml:iterator "{iterator}"' if iterator else ""
    return f"""rml:logicalSource [
        rml:source [ a rml:RelativePathSource; rml:root rml:MappingDirectory;
                     rml:path "{path}" {extra} ];
        rml:referenceFormulation rml:{formulation} {step} ]"""


def mapping_text(logical: str, subject: str, reference: str) -> str:
    return f"""{PREFIXES}
    <#m> {logical};
      rml:subjectMap [ {subject} ];
      rml:predicateObjectMap [ rml:predicate ex:p; rml:objectMap [ rml:reference "{reference}" ] ] .
    """


def template(reference: str) -> str:
    return f'rml:template "http://ex.org/{{{reference}}}"'


def run(
    spark: SparkSession, folder: Path, text: str, **given: object
) -> tuple[list[str], MappingOutcome]:
    out = io.BytesIO()
    job = MappingJob(folders=Folders(mapping=folder, working=folder), **given)  # type: ignore[arg-type]
    outcome = run_bounded(parse_mapping(text), spark, job, out)
    return sorted(out.getvalue().decode().splitlines()), outcome


def letters_of(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# -- the same file read in every way ----------------------------------------------------------

JSON_LINES = "\n".join(
    ['{"id": 1, "v": "a \\" b\\n"}', '{"id": 2, "v": 1.50}', "{broken", '{"id": 3}', ""]
)
JSON_QUADS = [
    '<http://ex.org/1> <http://ex.org/p> "a \\" b\\n" .',
    '<http://ex.org/2> <http://ex.org/p> "1.5E0"^^<http://www.w3.org/2001/XMLSchema#double> .',
]


@pytest.mark.parametrize("limit", [0, 2**20], ids=["large", "small"])
def test_json_lines(spark: SparkSession, tmp_path: Path, limit: int) -> None:
    (tmp_path / "a.json").write_text(JSON_LINES, encoding="utf-8")
    text = mapping_text(source("a.json", "JSONPath", "$"), template("$.id"), "$.v")
    dead = tmp_path / "dead.jsonl"
    lines, outcome = run(spark, tmp_path, text, driver_characters=limit, dead_letters=dead)
    assert lines == JSON_QUADS
    assert (outcome.records, outcome.bad_records) == (4, 1)
    (letter,) = letters_of(dead)
    assert letter["source"] == "a.json"
    assert letter["reason"].startswith("not valid JSON")
    assert letter["record"].startswith("{broken")
    assert ("read by Spark" in outcome.explanation) == (limit == 0)


@pytest.mark.parametrize("limit", [0, 2**20], ids=["large", "small"])
def test_a_json_document(spark: SparkSession, tmp_path: Path, limit: int) -> None:
    document = {"skip": {"x": [1]}, "items": [{"id": 1, "v": "x"}, {"id": 2, "v": "y"}], "z": 1}
    (tmp_path / "a.json").write_text(json.dumps(document), encoding="utf-8")
    text = mapping_text(source("a.json", "JSONPath", "$.items[*]"), template("$.id"), "$.v")
    lines, outcome = run(spark, tmp_path, text, driver_characters=limit)
    assert lines == [
        '<http://ex.org/1> <http://ex.org/p> "x" .',
        '<http://ex.org/2> <http://ex.org/p> "y" .',
    ]
    assert ("by Python in one worker" in outcome.explanation) == (limit == 0)


NO_RECORDS = {
    "a.xml": ("XPath", "/students/student", "<students/>"),
    "a.json": ("JSONPath", "$.students[*]", '{"students": []}'),
    "b.json": ("JSONPath", "$..student[*]", "{}"),
    "a.csv": ("CSV", None, "id,v\n"),
}


@pytest.mark.parametrize("limit", [-1, 2**20], ids=["large", "small"])
@pytest.mark.parametrize("name", NO_RECORDS)
def test_a_file_without_records_gives_nothing(
    spark: SparkSession, tmp_path: Path, name: str, limit: int
) -> None:
    formulation, iterator, content = NO_RECORDS[name]
    (tmp_path / name).write_text(content, encoding="utf-8")
    text = mapping_text(source(name, formulation, iterator), template("id"), "v")
    lines, outcome = run(spark, tmp_path, text, driver_characters=limit)
    assert lines == []
    assert (outcome.records, outcome.bad_records) == (0, 0)


CSV = 'id,v\n1,"a, ""b"""\n2,\n3,x,y\n4,é\n'
CSV_QUADS = [
    '<http://ex.org/1> <http://ex.org/p> "a, \\"b\\"" .',
    '<http://ex.org/2> <http://ex.org/p> "" .',
    '<http://ex.org/4> <http://ex.org/p> "é" .',
]


@pytest.mark.parametrize("limit", [0, 2**20], ids=["large", "small"])
def test_csv(spark: SparkSession, tmp_path: Path, limit: int) -> None:
    (tmp_path / "a.csv").write_text(CSV, encoding="utf-8")
    text = mapping_text(source("a.csv", "CSV"), template("id"), "v")
    lines, outcome = run(spark, tmp_path, text, driver_characters=limit)
    assert lines == CSV_QUADS
    assert outcome.bad_records == 1
    assert ("read by Spark" in outcome.explanation) == (limit == 0)


def test_line_breaks_in_quotes_keep_a_large_file_in_one_piece(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text('id,v\n1,"a\nb"\n', encoding="utf-8")
    text = mapping_text(source("a.csv", "CSV"), template("id"), "v")
    lines, outcome = run(spark, tmp_path, text, driver_characters=0)
    assert lines == ['<http://ex.org/1> <http://ex.org/p> "a\\nb" .']
    assert "by Python in one worker" in outcome.explanation


def test_a_packed_file_in_another_encoding_and_dialect(spark: SparkSession, tmp_path: Path) -> None:
    rows = "# a comment\nnothing\nid;v\n1;'é;x'\n2;N/A\n"
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(rows.encode("iso-8859-15")))
    extra = """; rml:encoding "ISO-8859-15"; rml:compression rml:gzip; rml:null "N/A" """
    logical = f"""rml:logicalSource [
        rml:source [ a csvw:Table; csvw:url "a.csv.gz" {extra};
          csvw:dialect [ csvw:delimiter ";"; csvw:quoteChar "'"; csvw:skipRows 2 ] ];
        rml:referenceFormulation rml:CSV ]"""
    lines, _ = run(spark, tmp_path, mapping_text(logical, template("id"), "v"))
    assert lines == ['<http://ex.org/1> <http://ex.org/p> "é;x" .']


def test_ten_triples_maps_read_a_file_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV, encoding="utf-8")
    maps = "\n".join(
        f"""<#m{n}> {source("a.csv", "CSV")}; rml:subjectMap [ {template("id")} ];
        rml:predicateObjectMap [ rml:predicate ex:p{n}; rml:objectMap [ rml:reference "v" ] ] ."""
        for n in range(10)
    )
    lines, outcome = run(spark, tmp_path, PREFIXES + maps)
    assert len(lines) == 30
    assert outcome.explanation.count("a.csv: read") == 1
    assert outcome.records == 4


# -- attacks by untrusted data --------------------------------------------------------------


def test_nothing_gets_into_the_output_but_terms(spark: SparkSession, tmp_path: Path) -> None:
    evil = 'x> <urn:p> <urn:o> .\n<urn:injected> <urn:p> "'
    (tmp_path / "a.json").write_text(json.dumps({"v": evil}) + "\n", encoding="utf-8")
    logical = source("a.json", "JSONPath", "$")
    kinds = ["IRI", "URI", "UnsafeIRI", "UnsafeURI", "BlankNode"]
    maps = "".join(
        f"""<#m{kind}{number}> {logical};
        rml:subjectMap [ {subject}; rml:termType rml:{kind} ];
        rml:predicateObjectMap [ rml:predicate ex:p; rml:objectMap [ rml:reference "$.v" ] ] ."""
        for kind in kinds
        for number, subject in enumerate([template("$.v"), 'rml:reference "$.v"'])
    )
    lines, outcome = run(spark, tmp_path, PREFIXES + maps, base="http://base.org/")
    assert outcome.bad_records == 1  # As an IRI the value is refused; the other terms are made.
    quads = list(ox.parse("\n".join(lines), ox.RdfFormat.N_QUADS, lenient=True))
    assert len(quads) == len(lines) == 8
    for quad in quads:
        assert str(quad.predicate) == "<http://ex.org/p>"
        assert isinstance(quad.object, ox.Literal)
        assert quad.object.value == evil
        assert str(quad.subject) != "<urn:injected>"


@pytest.mark.parametrize("limit", [0, 2**20], ids=["large", "small"])
def test_bytes_that_are_not_utf8(spark: SparkSession, tmp_path: Path, limit: int) -> None:
    (tmp_path / "a.json").write_bytes(b'{"id": 1, "v": "x"}\n{"id": 2, "v": "\xff\xfe"}\n')
    (tmp_path / "a.csv").write_bytes(b"id,v\n1,x\n2,\xff\xfe\n")
    for logical, subject, reference in (
        (source("a.json", "JSONPath", "$"), "$.id", "$.v"),
        (source("a.csv", "CSV"), "id", "v"),
    ):
        text = mapping_text(logical, template(subject), reference)
        dead = tmp_path / "dead.jsonl"
        lines, outcome = run(spark, tmp_path, text, driver_characters=limit, dead_letters=dead)
        assert lines == ['<http://ex.org/1> <http://ex.org/p> "x" .']
        assert outcome.bad_records == 1
        assert letters_of(dead)[0]["reason"].startswith(("not UTF-8", "not in the file's encoding"))


BOMB = (
    '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(8))
    + "]><r><i><v>&i;</v></i></r>"
)


@pytest.mark.parametrize("iterator", ["/r/i", "//i[1]"], ids=["one by one", "whole"])
def test_an_entity_bomb_is_refused(spark: SparkSession, tmp_path: Path, iterator: str) -> None:
    (tmp_path / "a.xml").write_text(BOMB, encoding="utf-8")
    text = mapping_text(source("a.xml", "XPath", iterator), template("v"), "v")
    dead = tmp_path / "dead.jsonl"
    lines, outcome = run(spark, tmp_path, text, dead_letters=dead)
    assert (lines, outcome.bad_records) == ([], 1)
    assert "document type declaration" in letters_of(dead)[0]["reason"]


def test_a_record_of_50_megabytes(spark: SparkSession, tmp_path: Path) -> None:
    big = "x" * 50_000_000
    with (tmp_path / "a.json").open("w", encoding="utf-8") as file:
        file.write(f'{{"id": 1, "v": "{big}"}}\n{{"id": 2, "v": "y"}}\n')
    text = mapping_text(source("a.json", "JSONPath", "$"), template("$.id"), "$.v")
    out, dead = tmp_path / "out.nq", tmp_path / "dead.jsonl"
    _, outcome = run(spark, tmp_path, text, output=out, dead_letters=dead)
    assert (outcome.records, outcome.bad_records) == (2, 1)
    assert out.read_text() == '<http://ex.org/2> <http://ex.org/p> "y" .\n'
    (letter,) = letters_of(dead)
    assert letter["reason"].startswith("longer than")
    assert len(letter["record"]) == 10_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "dead.jsonl", "out.nq"]


def test_a_field_of_30_megabytes_in_csv(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"id,v\n1,{'x' * 30_000_000}\n2,y\n", encoding="utf-8")
    text = mapping_text(source("a.csv", "CSV"), template("id"), "v")
    out = tmp_path / "out.nq"
    _, outcome = run(spark, tmp_path, text, output=out)
    assert (outcome.records, outcome.bad_records) == (2, 0)
    assert out.stat().st_size > 30_000_000


def test_strict_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(JSON_LINES, encoding="utf-8")
    text = mapping_text(source("a.json", "JSONPath", "$"), template("$.id"), "$.v")
    with pytest.raises(DataError, match="1 of 4 records") as caught:
        run(spark, tmp_path, text, strict=True, output=tmp_path / "out.nq")
    assert caught.value.exit_code == 4
    assert "not valid JSON" in (caught.value.detail or "")
    assert not (tmp_path / "out.nq").exists()


def test_files_outside_of_the_folder_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    other.mkdir()
    (other / "a.csv").write_text(CSV, encoding="utf-8")
    (home / "link.csv").symlink_to(other / "a.csv")
    for path in ("../other/a.csv", str(other / "a.csv"), "link.csv"):
        text = mapping_text(source(path, "CSV"), template("id"), "v")
        with pytest.raises(MappingError, match="outside of its folder"):
            run(spark, home, text)
    out = io.BytesIO()
    job = MappingJob(folders=Folders(mapping=home, working=home, allowed=(other,)))
    run_bounded(parse_mapping(text), spark, job, out)
    assert len(out.getvalue().splitlines()) == 3


def test_a_file_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    text = mapping_text(source("none.csv", "CSV"), template("id"), "v")
    with pytest.raises(SourceError, match=r"none\.csv"):
        run(spark, tmp_path, text)


# -- outputs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 2**20], ids=["large", "small"])
def test_targets_of_large_and_small_runs(spark: SparkSession, tmp_path: Path, limit: int) -> None:
    (tmp_path / "a.csv").write_text(CSV, encoding="utf-8")
    text = f"""{PREFIXES} @prefix formats: <http://www.w3.org/ns/formats/> .
    <#m> {source("a.csv", "CSV")};
      rml:subjectMap [ {template("id")} ];
      rml:predicateObjectMap [ rml:predicate ex:p; rml:objectMap [ rml:reference "v" ] ];
      rml:predicateObjectMap [ rml:predicate ex:q;
        rml:objectMap [ rml:reference "v"; rml:logicalTarget <#t> ] ] .
    <#t> a rml:LogicalTarget; rml:serialization formats:Turtle; rml:target [ a rml:FilePath;
      rml:root rml:CurrentWorkingDirectory; rml:path "t.ttl" ] ."""
    lines, outcome = run(spark, tmp_path, text, driver_characters=limit)
    assert lines == CSV_QUADS
    assert outcome.outputs == (tmp_path / "t.ttl",)
    found = list(ox.parse((tmp_path / "t.ttl").read_bytes(), ox.RdfFormat.TURTLE))
    assert {quad.predicate.value for quad in found} == {"http://ex.org/q"}
    assert len(found) == 3


def test_distinct_and_syntaxes(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,v\n1,x\n1,x\n", encoding="utf-8")
    text = mapping_text(source("a.csv", "CSV"), template("id"), "v")
    assert len(run(spark, tmp_path, text)[0]) == 2
    assert len(run(spark, tmp_path, text, distinct=True)[0]) == 1
    lines, _ = run(spark, tmp_path, text, syntax=Syntax.JSONLD)
    assert [quad.object.value for quad in ox.parse("\n".join(lines), ox.RdfFormat.JSON_LD)] == [
        "x",
        "x",
    ]


def test_graphs_are_not_lost_silently(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV, encoding="utf-8")
    text = mapping_text(source("a.csv", "CSV"), template("id") + "; rml:graph ex:g", "v")
    with pytest.raises(UsageError, match="named graphs"):
        run(spark, tmp_path, text, syntax=Syntax.TURTLE)


# -- joins ------------------------------------------------------------------------------------


def test_two_conditions_and_several_values(spark: SparkSession, tmp_path: Path) -> None:
    children = [{"id": 1, "k": ["a", "b"], "m": 1}, {"id": 2, "k": ["c"], "m": 1}, {"id": 3}]
    parents = [{"n": "p", "k": "a", "m": 1}, {"n": "q", "k": "b", "m": 2}, {"n": "r", "k": "c"}]
    (tmp_path / "c.json").write_text(json.dumps(children), encoding="utf-8")
    (tmp_path / "p.json").write_text(json.dumps(parents), encoding="utf-8")
    text = f"""{PREFIXES}
    <#c> {source("c.json", "JSONPath", "$[*]")}; rml:subjectMap [ {template("$.id")} ];
      rml:predicateObjectMap [ rml:predicate ex:p; rml:objectMap [ rml:parentTriplesMap <#p>;
        rml:joinCondition [ rml:child "$.k[*]"; rml:parent "$.k" ],
                          [ rml:child "$.m"; rml:parent "$.m" ] ] ] .
    <#p> {source("p.json", "JSONPath", "$[*]")}; rml:subjectMap [ {template("$.n")} ] ."""
    lines, outcome = run(spark, tmp_path, text)
    assert lines == ["<http://ex.org/1> <http://ex.org/p> <http://ex.org/p> ."]
    assert outcome.records == 6


def test_blank_nodes_of_records_meet_in_joins(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,v\n1,x\n2,y\n", encoding="utf-8")
    text = f"""{PREFIXES}
    <#c> {source("a.csv", "CSV")}; rml:subjectMap [ {template("id")} ];
      rml:predicateObjectMap [ rml:predicate ex:p; rml:objectMap [ rml:parentTriplesMap <#p>;
        rml:joinCondition [ rml:child "v"; rml:parent "v" ] ] ] .
    <#p> {source("a.csv", "CSV")}; rml:subjectMap [ rml:termType rml:BlankNode ];
      rml:predicateObjectMap [ rml:predicate ex:v; rml:objectMap [ rml:reference "v" ] ] ."""
    lines, _ = run(spark, tmp_path, text)
    quads = list(ox.parse("\n".join(lines), ox.RdfFormat.N_QUADS))
    nodes = {quad.object for quad in quads if quad.predicate.value == "http://ex.org/p"}
    assert nodes == {quad.subject for quad in quads if quad.predicate.value == "http://ex.org/v"}
    assert len(nodes) == 2


def test_a_join_cuts_each_record_once(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id,v\n1,x\n2,y\n", encoding="utf-8")
    text = f"""{PREFIXES}
    <#c> {source("a.csv", "CSV")}; rml:subjectMap [ {template("id")} ];
      rml:predicateObjectMap [ rml:predicate ex:p; rml:objectMap [ rml:parentTriplesMap <#p>;
        rml:joinCondition [ rml:child "v"; rml:parent "v" ] ] ] .
    <#p> {source("b.csv", "CSV")}; rml:subjectMap [ {template("id")} ] ."""
    compiled = compile_mapping(
        parse_mapping(text),
        lambda logical, references: read_file(
            spark, logical, references, Folders(mapping=tmp_path), driver_characters=0
        ),
    )
    plan = compiled.texts()._jdf.queryExecution().optimizedPlan().toString()
    # Spark tests keys for NULL, and would do that before it has split the lines.
    assert plan.count("split(value") == 2


DOUBLE = {
    "a.csv": ("CSV", None, "id,v\n1,6802\n2,6.802e3\n3,x\n4,.5\n5,-Infinity\n"),
    "a.json": (
        "JSONPath",
        "$[*]",
        '[{"id":1,"v":6802},{"id":2,"v":6802.0},{"id":3,"v":"x"},{"id":4,"v":0.5},'
        '{"id":5,"v":"-Infinity"}]',
    ),
    "b.json": (
        "JSONPath",
        "$..r[*]",
        '{"r":[{"id":1,"v":6802},{"id":2,"v":"6802"},{"id":3,"v":"x"},{"id":4,"v":5E-1},'
        '{"id":5,"v":"-Infinity"}]}',
    ),
    "a.xml": (
        "XPath",
        "/r/e",
        "<r><e><id>1</id><v>6802</v></e><e><id>2</id><v>+6802.00</v></e><e><id>3</id><v>x</v></e>"
        "<e><id>4</id><v>0.50</v></e><e><id>5</id><v>-Infinity</v></e></r>",
    ),
}


@pytest.mark.parametrize("limit", [-1, 2**20], ids=["large", "small"])
@pytest.mark.parametrize("name", DOUBLE)
@pytest.mark.parametrize(
    "datatype",
    ["rml:datatype xsd:double", 'rml:datatypeMap [ rml:template "{}double" ]'],
    ids=["constant", "computed"],
)
def test_a_double_is_canonical_whatever_it_is_read_from(
    spark: SparkSession, tmp_path: Path, name: str, limit: int, datatype: str
) -> None:
    formulation, iterator, content = DOUBLE[name]
    (tmp_path / name).write_text(content, encoding="utf-8")
    xsd = "http://www.w3.org/2001/XMLSchema#"
    text = f"@prefix xsd: <{xsd}> ." + mapping_text(
        source(name, formulation, iterator), template("id"), f'v" ; {datatype.format(xsd)} ; a "'
    )
    lines, _ = run(spark, tmp_path, text, driver_characters=limit)
    assert lines == [
        f'<http://ex.org/{number}> <http://ex.org/p> "{value}"^^<{xsd}double> .'
        for number, value in enumerate(("6.802E3", "6.802E3", "x", "5.0E-1", "-INF"), 1)
    ]
