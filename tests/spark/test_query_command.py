"""`quadweir query` as it is typed, over files: formats, verification, what goes wrong."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyoxigraph as ox
import pytest

import quadweir.runtime.spark.session
from quadweir.cli import main
from quadweir.terms import Literal, parse_term
from quadweir.testing.answers import answers_from_json

pytestmark = pytest.mark.spark

TRICKY = 'a "quoted" \\ and \n a line,\tA\x01\ufffe\\n end'
STREAM = f"""\
1000 <urn:a> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
1970-01-01T00:00:02Z\t<urn:b> <urn:p> _:x .
this is no statement
1500 <urn:tricky> <urn:p> {Literal(TRICKY)} .
9000 <urn:c> <urn:p> "1"@en .
"""
SELECT = (
    "SELECT ?s ?o ?n { STREAM <urn:s> [RANGE 5s] { ?s <urn:p> ?o } OPTIONAL { ?s <urn:n> ?n } }"
)
CONSTRUCT = (
    "CONSTRUCT { ?s <urn:q> ?o . ?s <urn:r> [] } { STREAM <urn:s> [RANGE 5s] { ?s <urn:p> ?o } }"
)
TIMED = """SELECT ?s ?v FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S STEP PT1S @<urn:at>]
{ WINDOW <urn:w> { ?s <urn:v> ?v } }"""


@pytest.fixture(params=["spark", "local"])
def ask(spark, capsysbinary, monkeypatch, tmp_path, request):
    """Run `quadweir query` on both engines; give exit code, output and messages."""
    monkeypatch.setattr(quadweir.runtime.spark.session, "build", lambda **_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _self: None)
    (tmp_path / "s.stream").write_text(STREAM, encoding="utf-8")
    (tmp_path / "static.ttl").write_text("<urn:a> <urn:n> _:b .", encoding="utf-8")

    def run(text: str, *options: str) -> tuple[int, str, str]:
        (tmp_path / "q.rq").write_text(text, encoding="utf-8")
        code = 0
        stream = [] if "--stream" in options else ["--stream", f"urn:s={tmp_path / 's.stream'}"]
        try:
            words = [*stream, "--engine", request.param, *options]
            main(["query", str(tmp_path / "q.rq"), *words])
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def test_answers_are_lines_of_json_that_the_oracle_confirms(ask, tmp_path):
    code, out, err = ask(SELECT, "--verify", "--static", str(tmp_path / "static.ttl"))
    assert code == 0, err
    assert "the oracle gives the same 4 answers" in err
    assert "1 record could not be read" in err
    assert "line 3" in err
    answers = answers_from_json(out.splitlines())
    assert [answer.t for answer in answers] == [1000, 1500, 2000, 9000]
    assert answers[1].bindings["o"] == Literal(TRICKY)
    assert json.loads(out.splitlines()[3])["bindings"]["o"] == {
        "type": "literal",
        "value": "1",
        "xml:lang": "en",
    }
    assert "n" in answers[0].bindings
    assert "n" not in answers[1].bindings


def test_times_in_seconds_are_doubted(ask, tmp_path):
    (tmp_path / "s.stream").write_text("1700000000 <urn:a> <urn:p> <urn:b> .\n")
    code, out, err = ask(SELECT)
    assert code == 0, err
    assert len(out.splitlines()) == 1
    assert err.count("event times begin at 1970-01-20T16:13:20.000Z: they look like seconds") == 1


def test_answers_as_tables(ask):
    code, out, _ = ask(SELECT, "--format", "csv")
    table = list(csv.reader(io.StringIO(out, newline="")))
    assert code == 0
    assert table[0] == ["t", "sign", "s", "o", "n"]
    assert ["1500", "+", "urn:tricky", TRICKY, ""] in table
    code, out, _ = ask(SELECT, "--format", "tsv")
    rows = [line.split("\t") for line in out.splitlines()]
    assert rows[0] == ["?t", "?sign", "?s", "?o", "?n"]
    assert parse_term(rows[2][3]) == Literal(TRICKY)


def test_triples_of_a_construct_in_every_format(ask, tmp_path):
    code, out, err = ask(CONSTRUCT, "--verify")
    assert code == 0, err
    assert "the same 4 answers" in err
    graphs = [json.loads(line)["graph"] for line in out.splitlines()]
    assert [len(graph) for graph in graphs] == [2, 2, 2, 2]
    blank = [triple.split()[2] for graph in graphs for triple in graph if "<urn:r>" in triple]
    assert len(set(blank)) == 4
    _, out, _ = ask(CONSTRUCT, "--format", "nquads")
    quads = list(ox.parse(out.encode(), format=ox.RdfFormat.N_QUADS))
    assert len(quads) == 8
    target = tmp_path / "out.trig"
    code, out, _ = ask(CONSTRUCT, "--format", "trig", "--output", str(target))
    assert (code, out) == (0, "")
    assert len(list(ox.parse(target.read_bytes(), format=ox.RdfFormat.TRIG))) == 8
    again = tmp_path / "again.stream"
    ask(CONSTRUCT, "--format", "timed-lines", "--output", str(again))
    count = "SELECT ?s ?o { STREAM <urn:s> [RANGE 5s] { ?s <urn:q> ?o . ?s <urn:r> ?b } }"
    code, out, err = ask(count, "--verify", "--stream", f"urn:s={again}")
    assert code == 0, err
    assert len(out.splitlines()) == 4


def test_named_graphs_of_a_construct_in_every_format(ask, tmp_path):
    lines = ["1000 <urn:a> <urn:p> <urn:x> <urn:g> .", "1000 <urn:b> <urn:p> <urn:y> <urn:h> ."]
    lines += ["1000 <urn:c> <urn:p> <urn:z> <urn:g> .", "2000 <urn:d> <urn:p> <urn:z> ."]
    (tmp_path / "s.stream").write_text("\n".join(lines) + "\n")
    text = """CONSTRUCT { ?o <urn:q> ?s . GRAPH ?g { ?s <urn:r> ?o } }
      { STREAM <urn:s> [RANGE 5s] { GRAPH ?g { ?s <urn:p> ?o } } }"""
    code, out, err = ask(text, "--verify")
    assert code == 0, err
    assert "the same 3 answers" in err
    (first, *_) = (json.loads(line)["graph"] for line in out.splitlines())
    assert first == ["<urn:a> <urn:r> <urn:x> <urn:g> .", "<urn:x> <urn:q> <urn:a> ."]
    _, out, _ = ask(text, "--format", "nquads")
    expected = {
        *("<urn:x> <urn:q> <urn:a> .", "<urn:a> <urn:r> <urn:x> <urn:g> ."),
        *("<urn:y> <urn:q> <urn:b> .", "<urn:b> <urn:r> <urn:y> <urn:h> ."),
        *("<urn:z> <urn:q> <urn:c> .", "<urn:c> <urn:r> <urn:z> <urn:g> ."),
    }
    assert set(out.splitlines()) == expected
    target = tmp_path / "out.trig"
    ask(text, "--format", "trig", "--output", str(target))
    quads = ox.parse(target.read_bytes(), format=ox.RdfFormat.TRIG)
    assert {f"{quad} ." for quad in quads} == expected
    again = tmp_path / "again.stream"
    ask(text, "--format", "timed-lines", "--output", str(again))
    # Of one instant, each graph is one element, and what is in none has a name of its own.
    assert [line.split()[-2] for line in again.read_text().splitlines() if "_:a" not in line] == [
        "<urn:g>",
        "<urn:g>",
        "<urn:h>",
    ]
    counted = "SELECT ?g (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 5s] { GRAPH ?g { ?s <urn:r> ?o } } } GROUP BY ?g"
    code, out, err = ask(counted, "--verify", "--stream", f"urn:s={again}")
    assert code == 0, err
    assert {
        (each.bindings["g"].value, each.bindings["n"].lexical)
        for each in answers_from_json(out.splitlines())
    } == {("urn:g", "2"), ("urn:h", "1")}


def test_answers_of_one_instant_stay_apart_in_timed_lines(ask, tmp_path):
    lines = ["1000 <urn:a> <urn:p> <urn:c> .", "1000 <urn:b> <urn:p> <urn:d> ."]
    (tmp_path / "s.stream").write_text("\n".join(lines) + "\n")
    text = """CONSTRUCT { ?s <urn:q> ?o . ?o <urn:q> ?s }
      { STREAM <urn:s> [RANGE 5s] { ?s <urn:p> ?o } }"""
    again = tmp_path / "again.stream"
    ask(text, "--format", "timed-lines", "--output", str(again))
    graphs = [line.split()[-2] for line in again.read_text().splitlines()]
    assert graphs[0] == graphs[1] != graphs[2] == graphs[3]


def test_graph_over_a_stream_without_graphs_says_what_matched_nothing(ask):
    text = "SELECT ?g ?s { STREAM <urn:s> [RANGE 5s] { GRAPH ?g { ?s <urn:p> ?o } } }"
    code, out, err = ask(text)
    assert (code, out) == (0, "")
    assert "no statement of <urn:s> matches GRAPH ?g { ?s <urn:p> ?o }" in err


def test_times_from_a_predicate_inside(ask, tmp_path):
    lines = [
        '5 <urn:a> <urn:v> "1" <urn:g1> .',
        '5 <urn:a> <urn:at> "1970-01-01 00:00:01" <urn:g1> .',
        '6 <urn:b> <urn:v> "2" <urn:g2> .',
        '6 <urn:b> <urn:at> "2500"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g2> .',
        '7 <urn:c> <urn:v> "3" <urn:g3> .',
    ]
    (tmp_path / "s.stream").write_text("\n".join(lines) + "\n")
    code, out, err = ask(TIMED, "--verify")
    assert code == 0, err
    assert [json.loads(line)["t"] for line in out.splitlines()] == [1000, 3000]
    assert "is missing" in err


def test_a_query_without_streams_is_answered_once(ask, tmp_path):
    (tmp_path / "static.ttl").write_text("<urn:a> <urn:n> 1, 2 .", encoding="utf-8")
    options = (
        "--static",
        str(tmp_path / "static.ttl"),
        "--stream",
        f"urn:s={tmp_path / 's.stream'}",
    )
    code, out, err = ask("SELECT ?n { ?s <urn:n> ?n } ORDER BY DESC(?n)", *options)
    assert code == 0, err
    values = [json.loads(line)["bindings"]["n"]["value"] for line in out.splitlines()]
    assert values == ["2", "1"]
    assert "does not read <urn:s>" in err


def test_a_difference_from_the_oracle_is_shown(ask, monkeypatch):
    from quadweir.testing.oracle import Oracle, OracleRun

    monkeypatch.setattr(Oracle, "run", lambda *_: OracleRun())
    code, _, err = ask(SELECT, "--verify")
    assert code == 1
    assert "unexpected 1 x  1000 + ?o = " in err


def test_strict_leaves_no_output(ask, tmp_path):
    target: Path = tmp_path / "out.jsonl"
    code, _, err = ask(SELECT, "--strict", "--output", str(target))
    assert code == 4
    assert "line 3" in err
    assert not target.exists()


def test_a_line_that_is_too_long_is_reported_and_the_rest_is_answered(ask, tmp_path):
    huge = "x" * 10_000_000
    lines = [
        '1000 <urn:a> <urn:p> "1" .',
        f'1100 <urn:b> <urn:p> "{huge}" .',
        "1200 <urn:c> <urn:p",
    ]
    lines.append('1300 <urn:d> <urn:p> "2" .')
    (tmp_path / "s.stream").write_text("\n".join(lines) + "\n")
    code, out, err = ask(SELECT, "--dead-letters", str(tmp_path / "dead.jsonl"))
    assert code == 0, err
    assert [json.loads(line)["t"] for line in out.splitlines()] == [1000, 1300]
    letters = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text().splitlines()]
    assert [letter["place"] for letter in letters] == ["line 2", "line 3"]
    assert letters[1]["record"] == lines[2]
    assert "2 records could not be read" in err
    assert "line 2: " in err
    assert len(err) < 2_000


def test_static_data_that_is_not_there_is_named(ask, tmp_path):
    code, out, err = ask(SELECT, "--static", str(tmp_path / "gone.ttl"))
    assert (code, out) != (0, "")
    assert "gone.ttl" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("form", "expected"), [("jsonl", ""), ("csv", "t,sign,s,o\n"), ("tsv", "?t\t?sign\t?s\t?o\n")]
)
def test_a_query_without_answers_gives_an_empty_table(ask, form, expected):
    text = "SELECT ?s ?o { STREAM <urn:s> [RANGE 5s] { ?s <urn:tpyo> ?o } }"
    code, out, err = ask(text, "--format", form)
    assert code == 0, err
    assert out == expected
    assert "1 record could not be read" in err
    assert "no answers: no statement of <urn:s> matches ?s <urn:tpyo> ?o" in err
    assert "(line 1, column 47)" in err


def test_a_construct_without_answers_gives_an_empty_document(ask, tmp_path):
    out = tmp_path / "out.trig"
    text = "CONSTRUCT { ?s <urn:q> ?o } { STREAM <urn:s> [RANGE 5s] { ?s <urn:tpyo> ?o } }"
    code, _, err = ask(text, "--format", "trig", "--output", str(out))
    assert code == 0, err
    assert list(ox.parse(out.read_bytes(), ox.RdfFormat.TRIG)) == []


def test_a_having_that_excludes_all_blames_no_pattern(ask):
    text = """SELECT ?s (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 5s] { ?s <urn:p> ?o } }
    GROUP BY ?s HAVING (COUNT(*) > 5)"""
    code, out, err = ask(text, "--verify")
    assert (code, out) == (0, ""), err
    assert "no answers, though each pattern matches some statement" in err
    assert "1 record could not be read" in err


def test_an_explained_query_without_answers_ends_well(ask):
    text = "SELECT ?s { STREAM <urn:s> [RANGE 5s] { ?s <urn:p> ?o ; <urn:tpyo> ?x } }"
    code, out, err = ask(text, "--why")
    assert (code, out) == (0, ""), err
    assert "matches ?s <urn:tpyo> ?x" in err
    assert "matches ?s <urn:p> ?o" not in err


def test_a_stream_without_statements_is_named(ask, tmp_path):
    (tmp_path / "empty.stream").write_text("")
    text = "SELECT ?s { STREAM <urn:s> [RANGE 5s] { ?s <urn:p> ?o } }"
    code, out, err = ask(text, "--stream", f"urn:s={tmp_path / 'empty.stream'}")
    assert (code, out) == (0, ""), err
    assert "no answers: <urn:s> has no statements" in err


def test_static_data_that_matches_nothing_is_named(ask, tmp_path):
    text = "SELECT ?s { STREAM <urn:s> [RANGE 5s] { ?s <urn:p> ?o } ?s <urn:tpyo> ?n }"
    code, out, err = ask(text, "--static", str(tmp_path / "static.ttl"))
    assert (code, out) == (0, ""), err
    assert "no static data matches ?s <urn:tpyo> ?n" in err
