"""`quadweir query --live` as it is typed: checked, watched, reloaded, stopped by Ctrl-C."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import quadweir.runtime.spark.session
from brokers import until
from live_commands import arrive, arriving, free_port, metrics_of
from quadweir.cli import main
from quadweir.runtime.checkpoint import NAME
from quadweir.testing.answers import answers_from_json
from quadweir.testing.recorded import RecordedElements
from quadweir.testing.sampling import Sampled
from spark_queries import lines_of
from visitor import Visitor

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

QUERY = "SELECT ?x ?n { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } ?y <urn:name> ?n }"


@pytest.fixture
def live(spark, capsysbinary, monkeypatch, tmp_path):
    """Run `quadweir query --live` in the one session while somebody visits."""
    monkeypatch.setattr(quadweir.runtime.spark.session, "build", lambda **_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _self: None)
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "in").mkdir()
    (tmp_path / "names.ttl").write_text('<urn:b> <urn:name> "old" .')

    def run(visit, *options: str) -> tuple[int, str]:
        visitor = Visitor(visit)
        visitor.start()
        code = 0
        try:
            main(
                [
                    "query", str(tmp_path / "q.rq"), "--live", "--delay", "0s",
                    "--stream", f"urn:s={tmp_path / 'in'}",
                    "--static", str(tmp_path / "names.ttl"),
                    "--output", str(tmp_path / "out"), *options,
                ]
            )  # fmt: skip
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            visitor.leave()
        return code, capsysbinary.readouterr().err.decode()

    return run


def names(folder: Path) -> list[str]:
    found = [
        answer
        for file in sorted(folder.glob("0*"))
        for answer in answers_from_json(file.read_text().splitlines())
    ]
    return [answer.bindings["n"].lexical for answer in found]


def test_static_data_is_reloaded_and_prometheus_answered(live, tmp_path) -> None:
    port, out = free_port(), tmp_path / "out"
    note = tmp_path / "check" / NAME
    reported: list[str] = []

    def visit() -> None:
        arrive(tmp_path / "in", 1)
        until(lambda: len(names(out)) == 3, "the first answers")
        (tmp_path / "names.ttl").write_text('<urn:b> <urn:name> "new" .')
        before = note.read_text()
        os.kill(os.getpid(), signal.SIGHUP)
        until(lambda: note.read_text() != before, "the checkpoint is that of the new data")
        until(lambda: 'batches_total{query="query"}' in metrics_of(port), "metrics")
        arriving(tmp_path / "in", "bad", "no statement\n")
        arrive(tmp_path / "in", 2)
        until(lambda: len(names(out)) == 6, "the answers after that")
        until(
            lambda: 'answers_total{query="query"} 6' in metrics_of(port),
            "six answers in the metrics",
        )
        reported.append(metrics_of(port))

    dead = tmp_path / "dead"
    code, err = live(
        visit, "--metrics-port", str(port), "--checkpoint", str(tmp_path / "check"),
        "--dead-letters", str(dead),
    )  # fmt: skip
    assert code == 0, err
    assert [each["record"] for each in lines_of(dead)] == ["no statement"]
    assert names(out) == ["old"] * 3 + ["new"] * 3
    assert "the new static data is used from this batch on" in err
    assert 'quadweir_input_statements_total{query="query"} 6' in reported[0]
    assert "6 answers" in err


def test_reports_are_checked_while_they_are_given(live, tmp_path, monkeypatch) -> None:
    compared: list[int] = []
    check = Sampled.check

    def noted(sampled: Sampled, through: int | None) -> None:
        check(sampled, through)
        compared.append(sampled.reports)

    monkeypatch.setattr(Sampled, "check", noted)

    def visit() -> None:
        arrive(tmp_path / "in", 1)
        until(lambda: len(names(tmp_path / "out")) == 3, "answers")
        arrive(tmp_path / "in", 2)
        until(lambda: max(compared, default=0) >= 4, "reports that were compared")

    code, err = live(visit, "--verify")
    assert code == 0, err
    assert f"the oracle gives the same answers in {compared[-1]} reports" in err


def test_answers_are_explained_while_they_are_given(live, tmp_path) -> None:
    (tmp_path / "q.rq").write_text(
        "SELECT ?x ?n { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y . ?x <urn:q> ?z } "
        "?y <urn:name> ?n }"
    )
    (tmp_path / "s.ttl").write_text(
        "<urn:p0> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <urn:p> ."
    )
    # The file of the schema also declares streams, and the query reads none of them.
    (tmp_path / "streams.toml").write_text(
        'schema = "s.ttl"\n[streams."urn:other"]\nformat = "timed-lines"\n'
        'source = { kind = "file", path = "other.stream" }\n'
    )
    out, check = tmp_path / "out", tmp_path / "check"

    def visit() -> None:
        first = "1000 <urn:a> <urn:p0> <urn:b> .\n2000 <urn:c> <urn:p> <urn:b> .\n"
        arriving(tmp_path / "in", "1", f"{first}2000 <urn:c> <urn:q> <urn:d> .\n")
        until(lambda: len(lines_of(out)) == 1, "an answer")
        arriving(tmp_path / "in", "2", "3000 <urn:a> <urn:q> <urn:d> .\n")
        until(lambda: len(lines_of(out)) == 2, "one that rests on a batch before")

    code, err = live(
        visit, "--why", "--streams", str(tmp_path / "streams.toml"), "--checkpoint", str(check)
    )
    assert code == 0, err
    plain, derived = lines_of(out)
    assert plain["bindings"]["x"]["value"] == "urn:c"
    assert [set(each) for each in plain["why"]] == [{"triple", "elements"}] * 2 + [
        {"triple", "static"}
    ]
    assert derived["bindings"] == {
        "n": {"type": "literal", "value": "old"},
        "x": {"type": "uri", "value": "urn:a"},
    }
    was, now, named = derived["why"]
    assert was["triple"] == "<urn:a> <urn:p> <urn:b> ."
    (element,) = was["elements"]
    assert (element["stream"], element["time"]) == ("urn:s", 1000)
    assert element["carries"] == "<urn:a> <urn:p0> <urn:b> ."
    assert [step["rule"] for step in element["steps"]] == ["rdfs7"]
    assert [each["time"] for each in now["elements"]] == [3000]
    assert named == {"triple": '<urn:b> <urn:name> "old" .', "static": [{}]}
    # What the windows hold is there for a run that goes on from here.
    held = RecordedElements(check / "why").elements().values()
    assert sorted(each.event_time for each in held) == [1000, 2000, 2000, 3000]
