"""The engine in this process and the one on Spark give the same lines, messages and dead letters."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import quadweir.runtime.spark.session
from quadweir.cli import main

pytestmark = pytest.mark.spark

STATEMENTS = [
    "<urn:a> <urn:p> <urn:b> .",
    '<http://ex.org/a> <urn:p> "x"@en-GB <urn:g> .',
    "_:a <urn:p> _:b.c _:g .",
    '<urn:a> <urn:p> "a\\nb\\u00e9\\U0001F600"^^<http://www.w3.org/2001/XMLSchema#string> . # c',
    '<urn:a><urn:p>"x"^^<urn:d><urn:g>.',
    '<urn:\\u0061> <urn:p> "\\t\\"\\\\" .',
    "<urn:a> <urn:p> <<( _:a <urn:q> <<( <urn:b> <urn:q> 'x' )>> )>> .",
    '<urn:a> <urn:p> <<( _:a <urn:q> <<(<urn:b> <urn:q> "x")>> )>> <urn:g> .',
]
PIECES = [
    *' \t<>"\\._:@^#-aZ09é·\x0b\x00\x7f\x85\u2028\ufffe{}|`',
    *("\\u0041", "\\u", "\\U0000", "_:", "^^", "@en", "<urn:x>", " .", "http://", '"x"', "<<("),
]


@pytest.fixture
def ask(spark, capsysbinary, monkeypatch, tmp_path):
    """Run `quadweir query` on an engine; give exit code, output, messages and dead letters."""
    monkeypatch.setattr(quadweir.runtime.spark.session, "build", lambda **_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _self: None)

    def run(
        engine: str, text: str, *options: str
    ) -> tuple[int, bytes, bytes, list[dict[str, str]]]:
        (tmp_path / "q.rq").write_text(text, encoding="utf-8")
        dead = tmp_path / f"{engine}.jsonl"
        code = 0
        try:
            words = ["--engine", engine, "--dead-letters", str(dead), *options]
            main(["query", str(tmp_path / "q.rq"), *words])
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsysbinary.readouterr()
        # Spark reads files in parts, in no order.
        lines = dead.read_text(encoding="utf-8").split("\n")[:-1] if dead.exists() else []
        letters = [json.loads(line) for line in lines]
        return code, out, err, sorted(letters, key=lambda each: [str(e) for e in each.values()])

    return run


def near_misses(count: int, seed: int = 1) -> str:
    """Lines with up to three pieces put in, taken out or replaced: near misses of every kind."""
    chance = random.Random(seed)
    lines = []
    for number in range(count):
        text = list(chance.choice(STATEMENTS))
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(text))
            text[at : at + chance.randrange(2)] = chance.choice([[], [chance.choice(PIECES)]])
        time = chance.choice([f"{number} ", f"{number}\t", f"{number}", "1970-01-01T00:00:02Z "])
        lines.append(f"{time}{''.join(text)}\n")
    return "".join(lines)


def test_near_misses_of_statements_are_the_same_dead_letters(ask, tmp_path: Path) -> None:
    path = tmp_path / "s.stream"
    path.write_text(near_misses(3000), encoding="utf-8")
    text = "SELECT * { STREAM <urn:s> [NOW] { ?s ?p ?o OPTIONAL { GRAPH ?g { ?s ?p ?o } } } }"
    options = ["--stream", f"urn:s={path}"]
    code, out, _, letters = ask("local", text, *options)
    expected = ask("spark", text, *options)
    assert code == expected[0] == 0
    assert out == expected[1]
    assert len(letters) > 500
    differing = [
        (one, other) for one, other in zip(letters, expected[3], strict=False) if one != other
    ]
    assert differing == []
    assert len(letters) == len(expected[3])


FAR = """\
5 <urn:a> <urn:v> "1" <urn:g1> .
5 <urn:a> <urn:at> "1970-01-01 00:00:01" <urn:g1> .
6 <urn:b> <urn:v> "2" <urn:g2> .
6 <urn:b> <urn:at> "2500"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g2> .
6 <urn:b> <urn:at> "2600"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g2> .
7 <urn:c> <urn:v> "3" <urn:g3> .
8 <urn:d> <urn:v> "3" <urn:g4> .
8 <urn:d> <urn:at> "soon" <urn:g4> .
900000000000000 <urn:e> <urn:v> "4" .
"""


@pytest.mark.parametrize("at", ["", " @<urn:at>"])
def test_wrong_times_are_the_same_dead_letters(ask, tmp_path: Path, at: str) -> None:
    path = tmp_path / "s.stream"
    path.write_text(FAR, encoding="utf-8")
    text = f"""SELECT ?s ?v FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S STEP PT1S{at}]
    {{ WINDOW <urn:w> {{ ?s <urn:v> ?v }} }}"""
    options = ["--stream", f"urn:s={path}"]
    code, out, err, letters = ask("local", text, *options)
    assert (code, out, letters) == (
        *(expected := ask("spark", text, *options))[:2],
        expected[3],
    )
    assert letters
    assert sorted(err.splitlines()) == sorted(expected[2].splitlines())


GRAPHS = """\
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<urn:g1> prov:generatedAtTime "1970-01-01T00:00:01Z"^^xsd:dateTime .
<urn:g1> { <urn:a> <urn:p> 1 . _:b <urn:p> _:b }
<urn:g2> { <urn:a> <urn:p> 2 }
<urn:g3> prov:generatedAtTime "1970-01-01T00:00:02Z"^^xsd:dateTime .
<urn:g3> { <urn:a> <urn:p> 3 }
<urn:a> <urn:p> 4 .
"""
SCHEMA = """\
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<urn:p> rdfs:domain <urn:C> . <urn:C> rdfs:subClassOf <urn:D> .
"""


def test_graphs_static_data_and_a_schema_give_the_same(ask, tmp_path: Path) -> None:
    (tmp_path / "s.trig").write_text(GRAPHS, encoding="utf-8")
    (tmp_path / "static.ttl").write_text("<urn:a> <urn:n> _:n, 2 .", encoding="utf-8")
    (tmp_path / "schema.ttl").write_text(SCHEMA, encoding="utf-8")
    text = """SELECT ?s ?n ?c { STREAM <urn:s> [RANGE 2s] { ?s a ?c . ?s <urn:p> ?o }
    OPTIONAL { ?s <urn:n> ?n } }"""
    options = ["--stream", f"urn:s={tmp_path / 's.trig'}", "--static", f"{tmp_path / 'static.ttl'}"]
    options += ["--schema", str(tmp_path / "schema.ttl")]
    found, expected = (ask(each, text, *options) for each in ("local", "spark"))
    assert found == expected
    assert b"urn:D" in found[1]
    assert found[3]
