"""`quadweir map` on the command line: every option, and hostile input."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

import quadweir.runtime.spark.session
from quadweir.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MAPPING = """
prefixes:
  ex: http://ex.org/
sources:
  people: [people.json~jsonpath, "$.people[*]"]
mappings:
  person:
    sources: people
    s: $(id)
    graphs: %s
    po:
      - [ex:name, $(name)]
      - [ex:kind, ex:Person~iri]
      - [ex:knows, "$(knows[*])~iri"]
"""
PEOPLE = {
    "people": [
        {"id": "http://ex.org/a", "name": "A", "knows": ["b", "b"]},
        {"id": "b", "name": 2, "knows": []},
    ]
}
IN_GRAPH = MAPPING % "ex:g"
PLAIN = MAPPING.replace("    graphs: %s\n", "")
FORMATS = {
    "nquads": ox.RdfFormat.N_QUADS,
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "turtle": ox.RdfFormat.TURTLE,
    "trig": ox.RdfFormat.TRIG,
    "jsonld": ox.RdfFormat.JSON_LD,
}
BASE = ("--base", "http://base.org/")

Call = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def call(
    spark: SparkSession, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Call:
    """Type `quadweir map ...`: exit code, standard output, standard error; Spark runs already."""
    monkeypatch.setattr(quadweir.runtime.spark.session, "build", lambda **_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)

    def typed(*words: object) -> tuple[int, bytes, str]:
        capsysbinary.readouterr()
        with pytest.raises(SystemExit) as end:
            main(["map", *map(str, words)])
        said = capsysbinary.readouterr()
        return int(end.value.code or 0), said.out, said.err.decode()

    return typed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.json").write_text(json.dumps(PEOPLE))
    (tmp_path / "m.yml").write_text(PLAIN)
    (tmp_path / "g.yml").write_text(IN_GRAPH)
    return tmp_path


def quads_in(data: bytes, form: str) -> list[str]:
    return sorted(str(quad) for quad in ox.parse(data, FORMATS[form]))


def test_every_format_holds_the_same(call: Call, folder: Path) -> None:
    _, out, _ = call(folder / "m.yml", *BASE)
    expected = quads_in(out, "nquads")
    assert len(expected) == 6
    for form in FORMATS:
        target = folder / "out" / f"{form}.txt"
        assert call(folder / "m.yml", *BASE, "--format", form, "-o", target)[0] == 0
        assert set(quads_in(target.read_bytes(), form)) == set(expected)
    # The name of the file says it too, and packs.
    target = folder / "out.ttl.gz"
    assert call(folder / "m.yml", *BASE, "-o", target)[0] == 0
    assert set(quads_in(gzip.decompress(target.read_bytes()), "turtle")) == set(expected)
    assert quads_in(call(folder / "m.yml", *BASE, "-o", "-")[1], "nquads") == expected
    code, _, err = call(folder / "m.yml", "-o", folder / "out.rdf")
    assert (code, "QW-USAGE" in err) == (2, True)


def test_graphs_distinct_base_and_summary(call: Call, folder: Path) -> None:
    target = folder / "out.nq"
    _, out, err = call(folder / "g.yml", *BASE, "-o", target, "--json", "--distinct", "--explain")
    assert json.loads(out) == {
        "records": 2,
        "bad_records": 0,
        "outputs": [str(target)],
        "dead_letters": None,
    }
    assert "people.json" in err and "in one pass" in err
    lines = target.read_text().splitlines()
    assert len(lines) == len(set(lines)) == 5
    assert all(line.endswith(" <http://ex.org/g> .") for line in lines)
    assert "<http://base.org/b> <http://ex.org/name>" in target.read_text()
    for form in ("ntriples", "turtle"):
        code, _, err = call(folder / "g.yml", *BASE, "--format", form)
        assert code == 2 and "named graphs" in err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--json",), 2, "both want standard output"),
        (("-o", "kafka:localhost:1/t"), 2, "needs --live"),
        (("--dead-letters", "kafka:localhost:1/t"), 2, "needs --live"),
        (("--checkpoint", "cp"), 2, "no checkpoint"),
        (("--live", "--json"), 2, "no summary"),
        (("--live", "--distinct"), 2, "remember every quad"),
        (("--live", "--format", "trig"), 2, "documents have an end"),
        (("--live",), 2, "reads no stream"),
        (("--realtime", "--strict"), 2, "cannot stop a real-time run"),
        (("--format", "rdfxml"), 2, "rdfxml"),
        (("--base", "not an IRI"), 2, "--base"),
    ],
)
def test_options_that_do_not_go_together(
    call: Call, folder: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    found, out, err = call(folder / "m.yml", *words)
    assert (found, out) == (code, b"")
    assert says in err
    assert "Traceback" not in err


def test_files_and_hosts_outside_are_allowed_by_name_only(call: Call, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "people.json").write_text(json.dumps(PEOPLE))
    (inner / "m.yml").write_text(PLAIN.replace("people.json~", "../people.json~"))
    code, out, err = call(inner / "m.yml", *BASE)
    assert (code, out) == (3, b"")
    assert f"--allow-dir {tmp_path}" in err and "m.yml:5:" in err
    code, out, _ = call(inner / "m.yml", *BASE, "--allow-dir", tmp_path)
    assert code == 0 and len(out.splitlines()) == 6
    source = (
        "{access: 'nowhere.invalid:1/t', type: kafka, referenceFormulation: jsonpath, iterator: $}"
    )
    (inner / "k.yml").write_text(PLAIN.replace('[people.json~jsonpath, "$.people[*]"]', source))
    code, _, err = call(inner / "k.yml")
    assert code == 3 and "--allow-net nowhere.invalid" in err
    code, _, err = call(inner / "k.yml", "--allow-net", "nowhere.invalid")
    assert code == 1 and "no Kafka broker answers at nowhere.invalid:1" in err


def test_validate_lists_what_is_wrong_without_running(call: Call, folder: Path) -> None:
    code, out, err = call(folder / "m.yml", "--validate")
    assert (code, out) == (0, b"") and "the mapping is valid" in err
    doubtful = PLAIN.replace("$(name)", "$(nmae)")
    (folder / "doubtful.yml").write_text(doubtful)
    code, out, _ = call(folder / "doubtful.yml", "--validate", "--json")
    (finding,) = json.loads(out)
    assert (code, finding["code"]) == (0, "unmatched-reference")
    assert finding["place"].endswith("doubtful.yml:11:19")
    (folder / "wrong.ttl").write_text(
        """@prefix rml: <http://w3id.org/rml/> . @prefix ex: <http://ex.org/> .
        <urn:m> rml:logicalSource [ rml:source "people.json" ;
            rml:referenceFormulation rml:JSONPath ; rml:iterator "$.people[" ] ;
          rml:subjectMap [ rml:template "http://ex.org/{id}" ; rml:clas ex:C ] .
        <urn:unused> rml:reference "x" .
        """
    )
    code, out, err = call(folder / "wrong.ttl", "--validate", "--json")
    found = {one["code"]: one["place"] for one in json.loads(out)}
    assert code == 3 and "1 error" in err
    assert set(found) == {"cannot-run", "unknown-property", "unused-node", "unused-map"}
    assert found["unknown-property"].endswith("wrong.ttl:4:64")
    assert call(folder / "wrong.ttl")[0] == 3


HOSTILE = """
@prefix rml: <http://w3id.org/rml/> . @prefix ex: <http://ex.org/> .
<urn:lines> rml:logicalSource [ rml:source "lines.jsonl" ;
    rml:referenceFormulation rml:JSONPath ; rml:iterator "$" ] ;
  rml:subjectMap [ rml:reference "id" ] ;
  rml:predicateObjectMap [ rml:predicate ex:v ; rml:objectMap [ rml:reference "v" ] ] .
<urn:xml> rml:logicalSource [ rml:source "bomb.xml" ;
    rml:referenceFormulation rml:XPath ; rml:iterator "/r/x" ] ;
  rml:subjectMap [ rml:template "http://ex.org/{.}" ; rml:class ex:C ] .
<urn:csv> rml:logicalSource [ rml:source "rows.csv" ; rml:referenceFormulation rml:CSV ] ;
  rml:subjectMap [ rml:template "http://ex.org/{id}" ; rml:termType rml:UnsafeIRI ] ;
  rml:predicateObjectMap [ rml:predicate ex:v ; rml:objectMap [ rml:reference "v" ] ] .
"""
INJECTED = 'http://ex.org/x> <http://ex.org/p> "pwned" .\n<http://ex.org/y'
BIG = 50 * 2**20


def test_input_that_means_harm_ends_in_dead_letters_and_not_in_the_output(
    call: Call, tmp_path: Path
) -> None:
    lines = [
        json.dumps({"id": "http://ex.org/ok", "v": 'a"b\\\n'}).encode(),
        b'{"id": "http://ex.org/broken", ',
        b'{"id": "http://ex.org/latin", "v": "\xe4"}',
        json.dumps({"id": INJECTED, "v": "1"}).encode(),
        b"[" * 100_000,
        json.dumps({"id": "http://ex.org/big", "v": "x" * BIG}).encode(),
    ]
    (tmp_path / "lines.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    (tmp_path / "bomb.xml").write_text(
        f'<!DOCTYPE r [<!ENTITY e0 "ha">{entities}]><r><x>&e9;</x></r>'
    )
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        file.write(f'id,v\nfine,1\n"{INJECTED.replace(chr(34), chr(34) * 2)}",2\n')
    (tmp_path / "m.ttl").write_text(HOSTILE)
    out, dead = tmp_path / "out.nq", tmp_path / "dead.jsonl"
    code, _, err = call(tmp_path / "m.ttl", "-o", out, "--dead-letters", dead)
    assert code == 0 and "Traceback" not in err
    # Lenient, since an unsafe IRI may hold anything, in escapes that no parser takes for its end.
    parsed = ox.parse(out.read_bytes(), ox.RdfFormat.N_QUADS, lenient=True)
    assert {quad.subject.value: quad.object.value for quad in parsed} == {
        "http://ex.org/ok": 'a"b\\\n',
        "http://ex.org/fine": "1",
        f"http://ex.org/{INJECTED}": "2",
    }
    assert out.read_bytes().count(b"\n") == 3
    letters = [json.loads(line) for line in dead.read_text().splitlines()]
    assert sorted(Path(one["source"]).name for one in letters) == ["bomb.xml", *5 * ["lines.jsonl"]]
    assert any("longer than 16777216 bytes" in one["reason"] for one in letters)
    assert all(len(one["record"] or "") <= 10_000 for one in letters)
    assert "6 of 9 records could not be used" in err
    # Strict: no output at all, and the exit code says that it is the data.
    out.unlink()
    code, _, err = call(tmp_path / "m.ttl", "-o", out, "--strict")
    assert code == 4 and "QW-DATA" in err
    assert not out.exists()
