"""The fast readers of files give the same results as the slow ones."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from quadweir.mapping.files import Folders
from quadweir.mapping.iris import percent_encode
from quadweir.mapping.literals import escape_text
from quadweir.mapping.read import parse_mapping
from quadweir.runtime.mappings.bounded import MappingJob, run_bounded
from quadweir.terms import escape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ODD = [
    "",
    "plain-._~",
    "a b",
    "a*b~c d",
    "x:y/z?q=1&r=2#f",
    "100%",
    "a+b",
    "%20",
    'quote " back \\ slash',
    "tab\tline\nreturn\r",
    "\x00\x01\x1f\x7f\x85",
    "é ü~*",
    "日本 語",
    "😀",
    "\ufffe\uffff",
    "> <http://ex.org/injected> .\n<a> <b> <c>",
    "[1]",
    "{}",
]


def mapping(path: str, formulation: str) -> str:
    return f"""
    @prefix rml: <http://w3id.org/rml/> . @prefix ex: <http://ex.org/> .
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    ex:m rml:logicalSource [
        rml:source [ a rml:RelativePathSource; rml:root rml:MappingDirectory; rml:path "{path}" ];
        rml:referenceFormulation rml:{formulation} ];
      rml:subjectMap [ rml:template "http://ex.org/{{id}}/{{v}}" ];
      rml:predicateObjectMap [ rml:predicate ex:natural; rml:objectMap [ rml:reference "v" ] ];
      rml:predicateObjectMap [ rml:predicate ex:typed;
        rml:objectMap [ rml:reference "v"; rml:datatype xsd:token ] ];
      rml:predicateObjectMap [ rml:predicate ex:tagged;
        rml:objectMap [ rml:reference "id"; rml:language "en" ] ] .
    """


def run(
    spark: SparkSession, folder: Path, text: str, limit: int
) -> tuple[list[str], list[str], str]:
    """The lines, the reasons of dead letters, and how the file was read."""
    out, dead = io.BytesIO(), folder / "dead.jsonl"
    dead.unlink(missing_ok=True)
    job = MappingJob(folders=Folders(mapping=folder), driver_characters=limit, dead_letters=dead)
    outcome = run_bounded(parse_mapping(text), spark, job, out)
    letters = dead.read_text(encoding="utf-8").splitlines() if dead.exists() else []
    reasons = sorted(json.loads(line)["reason"] for line in letters)
    return sorted(out.getvalue().decode().splitlines()), reasons, outcome.explanation


def test_percent_encoding_of_odd_texts(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(one,) for one in ODD], "v string")
    found = frame.select(
        "v", percent_encode(frame.v, ascii_only=True), percent_encode(frame.v, ascii_only=False)
    ).collect()
    for value, uri, iri in found:
        assert uri == quote(value, safe="~"), value
        kept = [one for one in value if ord(one) >= 0xA0]
        assert iri == quote(value, safe="~" + "".join(kept)) if not kept else True
        for one in kept:
            assert one in iri
        assert quote(iri, safe="~%") == uri


def test_escapes_of_odd_texts(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(one,) for one in ODD], "v string")
    for value, spelt in frame.select("v", escape_text(frame.v)).collect():
        assert spelt == escape(value), value


FLAT = [
    {"id": 1, "v": "plain"},
    {"id": 2, "v": 'a " \\ \n b*~ c'},
    {"id": 3, "v": 12},
    {"id": 4, "v": 1.50},
    {"id": 5, "v": True},
    {"id": 6, "v": None},
    {"id": 7},
    {"id": 8, "v": "é 日本"},
    {"id": 9, "v": 1e-7, "other": "x"},
]


def test_flat_objects_are_read_like_any_other_json(spark: SparkSession, tmp_path: Path) -> None:
    lines = [json.dumps(one, ensure_ascii=False) for one in FLAT] + ["", "broken", "12"]
    (tmp_path / "a.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    nested = '{"id": 99, "other": {}}'
    (tmp_path / "b.json").write_text("\n".join([*lines, nested]) + "\n", encoding="utf-8")
    flat, flat_reasons, how = run(spark, tmp_path, mapping("a.json", "JSONPath"), 0)
    texts, text_reasons, other = run(spark, tmp_path, mapping("b.json", "JSONPath"), 0)
    assert "flat objects" in how and "flat objects" not in other
    assert flat == texts
    assert len(flat) == 3 * 7 and flat_reasons == text_reasons == ["not valid JSON"]


def test_a_second_document_on_a_line_is_a_dead_letter(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        '{"id": 0, "v": "a"}',
        '{"id": 1, "v": "a"}',
        '{"id": 2, "v": "a"} {"id": 3, "v": "b"}',
        '{"id": 4, "v": "a"}{"id": 5, "v": "b"}',
        '{"id": 6, "v": "a"},{"id": 7, "v": "b"}',
        '{"id": 8, "v": "} x"}',
        '{"id": 9, "v": "a", "more": {"x": [{}, {}]}} ',
        '{"id": 10, "v": "a"} rest',
    ]
    (tmp_path / "a.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found, reasons, _ = run(spark, tmp_path, mapping("a.json", "JSONPath"), 0)
    assert reasons == ["trailing content after the JSON value"] * 4
    subjects = {line.split()[0] for line in found}
    assert subjects == {
        "<http://ex.org/0/a>",
        "<http://ex.org/1/a>",
        "<http://ex.org/8/%7D%20x>",
        "<http://ex.org/9/a>",
    }


@pytest.mark.parametrize("mark", ["", '"'], ids=["plain", "quoted"])
def test_csv_without_quotes_is_cut_like_any_other(
    spark: SparkSession, tmp_path: Path, mark: str
) -> None:
    rows = ["id,v", "1,a b", "2,", "3,é*~", "", "4", "5,x,y", f"6,{mark}z\\{mark}"]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    large, reasons, how = run(spark, tmp_path, mapping("a.csv", "CSV"), 0)
    small, driver_reasons, _ = run(spark, tmp_path, mapping("a.csv", "CSV"), 2**20)
    assert ("without quotes" in how) == (not mark)
    assert _file(spark, tmp_path, mapping("a.csv", "CSV")) == large
    assert large == small
    assert len(reasons) == len(driver_reasons) == 2


def _file(spark: SparkSession, folder: Path, text: str) -> list[str]:
    """The lines of a large file that are written to a file."""
    job = MappingJob(folders=Folders(mapping=folder), driver_characters=0, output=folder / "out.nq")
    run_bounded(parse_mapping(text), spark, job)
    return sorted((folder / "out.nq").read_text(encoding="utf-8").splitlines())


XML = """
    @prefix rml: <http://w3id.org/rml/> . @prefix ex: <http://ex.org/> .
    ex:m rml:logicalSource [
        rml:source [ a rml:RelativePathSource; rml:root rml:MappingDirectory; rml:path "a.xml" ];
        rml:referenceFormulation [ a rml:XPathReferenceFormulation; rml:namespace
          [ a rml:Namespace; rml:namespacePrefix "n"; rml:namespaceURL "urn:n" ] ];
        rml:iterator "/n:list/n:item" ];
      rml:subjectMap [ rml:template "http://ex.org/{n:id}/{n:v}" ];
      rml:predicateObjectMap [ rml:predicate ex:v; rml:objectMap [ rml:reference "n:v" ] ];
      rml:predicateObjectMap [ rml:predicate ex:w;
        rml:objectMap [ rml:reference "n:w/text()"; rml:language "en" ] ];
      rml:predicateObjectMap [ rml:predicate ex:k; rml:objectMap [ rml:reference "@k" ] ];
      rml:predicateObjectMap [ rml:predicate ex:none; rml:objectMap [ rml:reference "v" ] ] .
    """


@pytest.mark.parametrize(
    ("body", "is_plain"),
    [
        ("<item><id>{0}</id><v>{0} & b{0}</v><w></w></item>".replace("&", "&amp;&lt;"), True),
        ('<item l=" k " k="{0}"><id>{0}</id>\n<v>é={0} k="x"</v></item>', True),
        (
            '<item k="{0}"><w>w</w><v>1</v><id>{0}</id></item>\n<item l="&quot;"><id>{0}</id></item>',
            True,
        ),
        ('<item><id>{0}</id><v>1"\\</v></item>\r\n<item><v>\t2</v><id>{0}</id></item>', True),
        ('<item><id u="1" k="2">{0}</id><v>é{0}</v><w u="">x</w></item>', True),
        ('<item><id u="1">{0}</id><v u="2"/></item><item><v>{0}</v><id>1</id><w/></item>', True),
        ("<item><id>{0}</id><v>1</v><v>2</v><w/></item>", False),
        ('<item><id k="1">{0}</id><v>1<b>2</b></v><!-- </item> --></item>', False),
        ("<item><id>{0}</id><v><![CDATA[</item>]]></v></item><other/>", False),
    ],
)
def test_plain_xml_is_cut_like_any_other(
    spark: SparkSession, tmp_path: Path, body: str, is_plain: bool
) -> None:
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<list xmlns="urn:n" k="0"><!-- <list> -->\n'
    records = "\n".join(body.format(number) for number in range(40))
    (tmp_path / "a.xml").write_text(f"{head}{records}\n</list>\n", encoding="utf-8")
    # Small pieces, so that pieces begin in every part of a record.
    spark.conf.set("spark.sql.files.maxPartitionBytes", "499")
    spark.conf.set("spark.sql.files.openCostInBytes", "0")
    try:
        large, reasons, how = run(spark, tmp_path, XML, 0)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        spark.conf.unset("spark.sql.files.openCostInBytes")
    small, driver_reasons, _ = run(spark, tmp_path, XML, 2**24)
    assert ("XPaths are Spark expressions" in how) == is_plain
    assert is_plain or "XPaths run in Python: its records are not all lists" in how
    assert large == small
    assert len(small) >= 40
    assert reasons == driver_reasons == []


SIX_MAPS = """
    @prefix rml: <http://w3id.org/rml/> . @prefix ex: <http://ex.org/> .
    ex:m rml:logicalSource ex:source;
      rml:subjectMap [ rml:template "http://ex.org/{id}/{v}"; rml:class ex:Thing ];
      rml:predicateObjectMap [ rml:predicate ex:v; rml:objectMap [ rml:reference "v" ] ];
      rml:predicateObjectMap [ rml:predicate ex:empty;
        rml:objectMap [ rml:template ""; rml:termType rml:Literal ] ];
      rml:predicateObjectMap [ rml:predicateMap [ rml:template "http://ex.org/{id}" ];
        rml:objectMap [ rml:reference "v"; rml:language "en" ];
        rml:graphMap [ rml:template "http://ex.org/graph/{g}" ] ] .
    ex:n rml:logicalSource ex:source;
      rml:subjectMap [ rml:reference "g"; rml:termType rml:BlankNode ];
      rml:predicateObjectMap [ rml:predicate ex:iri; rml:objectMap [ rml:reference "v";
        rml:termType rml:IRI ] ];
      rml:predicateObjectMap [ rml:predicate ex:other;
        rml:objectMap [ rml:parentTriplesMap ex:m ] ] .
    ex:source rml:source [ a rml:RelativePathSource; rml:root rml:MappingDirectory;
        rml:path "a.json" ]; rml:referenceFormulation rml:JSONPath; rml:iterator "$" .
    """ + "".join(
    # Their lines have a common end: three from the subject on, and one after it.
    f"""
    ex:{name} rml:logicalSource ex:source;
      rml:subjectMap [ rml:template "http://ex.org/{name}/{{{reference}}}" ];
      rml:predicateObjectMap [ rml:predicate ex:v; rml:objectMap [ rml:reference "v" ] ] .
    """
    for name, reference in (("a", "id"), ("b", "id"), ("c", "id"), ("d", "v"))
)


def test_one_text_for_a_record_holds_the_lines_that_there_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    records = [
        {"id": 1, "v": "urn:x", "g": "a b"},
        {"id": 2, "v": 'not an "IRI"\n', "g": "g"},
        {"id": 3, "v": "urn:y"},
        {"id": 4, "g": "g"},
        {"v": "urn:z", "g": None},
        {"id": 5, "v": ["urn:y"], "g": "g"},
        {},
    ]
    lines = [json.dumps(one) for one in records]
    (tmp_path / "a.json").write_text("\n".join([*lines, "broken", ""]), encoding="utf-8")
    found, reasons, _ = run(spark, tmp_path, SIX_MAPS, 0)
    out = io.BytesIO()
    job = MappingJob(folders=Folders(mapping=tmp_path), driver_characters=0, distinct=True)
    run_bounded(parse_mapping(SIX_MAPS), spark, job, out)
    assert found == sorted(out.getvalue().decode().splitlines())
    assert len(found) == 27 and all(line.endswith(" .") for line in found)
    assert len(reasons) == 3
