"""`quadweir run` as it is typed: a file of queries, a folder of queries, a restart, Ctrl-C."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quadweir.runtime.spark.session
from brokers import until
from live_commands import arrive, free_port, metrics_of
from pages import ROOT
from quadweir.cli import main
from visitor import Visitor

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

APP = """\
queries_folder = "queries"
[streams."urn:s"]
source = { kind = "folder", path = "in", watch = true }
format = "timed-lines"
[network]
output = "out"
checkpoint = "check"
shards = 2
"""
QUERY = "SELECT ?x { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } }"


@pytest.fixture
def run(spark, capsysbinary, monkeypatch, tmp_path):
    """Run `quadweir run` in the one session, perhaps while somebody visits."""
    monkeypatch.setattr(quadweir.runtime.spark.session, "build", lambda **_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _self: None)
    for name in ("in", "queries"):
        (tmp_path / name).mkdir()

    def call(visit: Callable[[], None] | None, *words: str) -> tuple[int, str, str]:
        visitor = Visitor(visit) if visit is not None else None
        if visitor is not None:
            visitor.start()
        code = 0
        try:
            main(["run", *words])
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            if visitor is not None:
                visitor.leave()
        said = capsysbinary.readouterr()
        return code, said.out.decode(), said.err.decode()

    return call


def lines(folder: Path) -> list[dict[str, Any]]:
    found = [file.read_text().splitlines() for file in sorted(folder.glob("0*"))]
    return [json.loads(line) for part in found for line in part]


def answers(folder: Path) -> Counter[str]:
    """How many answers each query gave."""
    return Counter(each["query"] for each in lines(folder))


def replaced(file: Path, text: str) -> None:
    """Let a file have another text at once, as an editor does."""
    scratch = file.with_name(f".{file.name}")
    scratch.write_text(text)
    scratch.rename(file)


def test_queries_come_and_go_with_the_files_of_a_folder(run, tmp_path) -> None:
    app, port, out = tmp_path / "app.toml", free_port(), tmp_path / "out"
    app.write_text(APP)
    folder = tmp_path / "queries"
    (folder / "a.rq").write_text(QUERY)
    told: list[str] = []

    def counter(query: str) -> str:
        return f'quadweir_query_answers_total{{network="app",query="{query}"}}'

    def visit() -> None:
        arrive(tmp_path / "in", 1)
        until(lambda: answers(out) == {"a": 3}, "the first answers")
        replaced(folder / "b.rq", QUERY)
        until(lambda: counter("b") in metrics_of(port), "another query")
        arrive(tmp_path / "in", 2)
        until(lambda: answers(out) == {"a": 6, "b": 3}, "the answers of both")
        replaced(folder / "a.rq", "SELECT ?x\nWHER {}")
        replaced(folder / "b.rq", QUERY.replace("SELECT ?x", "SELECT ?y"))
        until(lambda: f"{counter('b')} 0.0" in metrics_of(port), "its counter begins again")
        arrive(tmp_path / "in", 3)
        until(lambda: answers(out) == {"a": 9, "b": 6}, "the answers of a good and of a new text")
        total = 'quadweir_answers_total{network="app"} 15.0'
        until(lambda: total in metrics_of(port), "the answers of all in the metrics")
        told.append(metrics_of(port))
        (folder / "b.rq").unlink()
        until(lambda: counter("b") not in metrics_of(port), "one query less")
        arrive(tmp_path / "in", 4)
        until(lambda: answers(out)["a"] == 12, "the answers of the other")

    code, _, err = run(visit, str(app), "--metrics-port", str(port))
    assert code == 0, err
    assert answers(out) == {"a": 12, "b": 6}
    assert [set(each["bindings"]) for each in lines(out) if each["query"] == "b"] == [
        *[{"x"}] * 3,
        *[{"y"}] * 3,
    ]
    for text in (
        "registered the query b",
        "replaced the query b",
        f"error[QW-SYNTAX]: {folder / 'a.rq'}:2:1: ",
        "unregistered the query b",
        "2 queries in 2 templates",
    ):
        assert text in err
    assert 'quadweir_network_queries{network="app",state="running"} 2.0' in told[0]
    assert 'quadweir_network_templates{network="app"}' in told[0]


def test_a_restart_goes_on_with_the_queries_of_the_file(run, tmp_path) -> None:
    app = tmp_path / "app.toml"
    table = '[queries.{}]\ntext = "{}"\n'
    own = table.format("own", QUERY) + 'output = "own"\nformat = "csv"\n'
    quiet = table.format("quiet", QUERY)
    app.write_text(f"{APP}{own}{quiet}paused = true\n{table.format('old', QUERY)}")
    (tmp_path / "queries" / "bad.rq").write_text(QUERY.replace("urn:s", "urn:t"))
    arrive(tmp_path / "in", 1)
    code, _, err = run(None, str(app), "--once")
    assert code == 0, err
    assert answers(tmp_path / "out") == {"own": 3, "old": 3}
    assert "the query reads the stream <urn:t>" in err
    assert len("".join(each.read_text() for each in (tmp_path / "own").glob("0*")).split()) == 3

    app.write_text(f"{APP}{own}{quiet}")
    arrive(tmp_path / "in", 2)
    code, _, err = run(None, str(app), "--once")
    assert code == 0, err
    assert answers(tmp_path / "out") == {"own": 6, "old": 3, "quiet": 3}

    app.write_text(APP.replace('"urn:s"', '"urn:u"').replace("shards = 2", "shards = 3"))
    code, _, err = run(None, str(app))
    assert code == 1
    assert "error[QW-STATE]" in err
    assert "starting Spark" not in err


def test_the_example_shows_something(run, tmp_path) -> None:
    shutil.copytree(ROOT / "examples" / "network", tmp_path / "network")
    out = tmp_path / "answers"

    def visit() -> None:
        until(lambda: len(answers(out)) == 3, "answers of each query")

    app = tmp_path / "network" / "app.toml"
    code, _, err = run(visit, str(app), "--output", str(out))
    assert code == 0, err
    assert set(answers(out)) == {"floors", "warm", "visits"}


def test_what_can_be_checked_is_checked_before_spark_starts(run, tmp_path, monkeypatch) -> None:
    def no_spark(**_: object) -> None:
        raise AssertionError("Spark is not needed to see this")

    monkeypatch.setattr(quadweir.runtime.spark.session, "build", no_spark)
    app = tmp_path / "app.toml"
    (tmp_path / "answers").write_text("not a folder")
    for change, code, message in (
        (("watch = true", "watch = false"), 2, "has an end"),
        (('path = "in"', 'path = "not"'), 1, "does not exist"),
        (('"out"', '"answers"'), 1, "cannot write to"),
        (("shards = 2", 'static = ["no.ttl"]'), 1, "no such file"),
        (("shards = 2", "shards = 2\n[queries.a]\ntext = 'SELECT'"), 3, "app.toml:10:"),
    ):
        app.write_text(APP.replace(*change))
        ended, out, err = run(None, str(app))
        assert (ended, out) == (code, ""), err
        assert message in err
