"""`quadweir query --engine`: what is answered in this process, and what is not."""

import gzip
import json
import os
import subprocess
import sys

import pytest

from command_line import main
from quadweir.runtime.local import choice

STREAM = """\
1000 <urn:a> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
1970-01-01T00:00:02Z\t<urn:b> <urn:p> _:x .
this is no statement
1500 <urn:unsorted> <urn:p> "1" .
9000 <urn:c> <urn:p> "1"@en .
"""
SELECT = "SELECT ?s ?o { STREAM <urn:s> [RANGE 5s] { ?s <urn:p> ?o } }"


class SparkStartError(Exception):
    pass


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Run a query; starting Spark is an error. Gives the answers and the messages."""

    def no_spark(*_, **__):
        raise SparkStartError

    monkeypatch.setattr("quadweir.runtime.spark.session.build", no_spark)
    monkeypatch.setenv("QUADWEIR_DEBUG", "1")
    monkeypatch.delenv("QUADWEIR_MASTER", raising=False)

    def ask(text, *options, **files):
        for name, content in {"s.stream": STREAM, **files}.items():
            (tmp_path / name.replace("_", ".")).write_text(content, encoding="utf-8")
        (tmp_path / "q.rq").write_text(text, encoding="utf-8")
        arguments = [option.replace("@", str(tmp_path)) for option in options]
        main(
            ["query", str(tmp_path / "q.rq"), "--stream", f"urn:s={tmp_path}/s.stream", *arguments]
        )
        out, err = capsys.readouterr()
        return [json.loads(line) for line in out.splitlines()], err

    return ask


def test_small_stream_files_are_answered_without_spark(run):
    answers, err = run(SELECT)
    assert [(each["t"], each["bindings"]["s"]["value"]) for each in answers] == [
        (1000, "urn:a"),
        (1500, "urn:unsorted"),
        (2000, "urn:b"),
        (9000, "urn:c"),
    ]
    assert "1 record could not be read" in err
    assert "line 3: not an event time: this" in err


def test_groups_of_a_join_that_would_need_a_second_stage_on_spark_are_complete(run):
    """Rows that are joined by one variable and grouped by another."""
    joined = "\n".join(
        f'{1000 + each} <urn:o{each}> <urn:{name}> "{value}" .'
        for each in range(3)
        for name, value in (("room", "r1"), ("temp", f"v{each}"))
    )
    answers, _ = run(
        "SELECT ?room (COUNT(?t) AS ?n) { STREAM <urn:s> [RANGE 10s SLIDE 10s] "
        "{ ?o <urn:room> ?room . ?o <urn:temp> ?t } } GROUP BY ?room",
        s_stream=joined,
    )
    assert [(each["t"], each["bindings"]["n"]["value"]) for each in answers] == [(10_000, "3")]


def test_neither_spark_nor_pandas_is_imported(tmp_path):
    (tmp_path / "s.stream").write_text(STREAM, encoding="utf-8")
    (tmp_path / "q.rq").write_text(SELECT, encoding="utf-8")
    code = (
        "import sys; from quadweir.cli import main\n"
        "try:\n    main(['query', 'q.rq', '--stream', 'urn:s=s.stream'])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print(sorted({'pyspark', 'pandas', 'py4j'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stdout
    assert len(done.stdout.splitlines()) == 5


@pytest.mark.parametrize(
    "options",
    [
        ["--engine", "spark"],
        ["--master", "local[2]"],
        ["--shards", "2"],
    ],
)
def test_spark_answers_where_it_is_needed(run, options):
    with pytest.raises(SparkStartError):
        run(SELECT, *options)


def test_spark_answers_where_the_environment_names_a_master(run, monkeypatch):
    monkeypatch.setenv("QUADWEIR_MASTER", "local[2]")
    with pytest.raises(SparkStartError):
        run(SELECT)


def test_spark_answers_over_larger_input(run, monkeypatch):
    monkeypatch.setattr(choice, "LOCAL_BYTES", len(STREAM.encode()))
    assert len(run(SELECT)[0]) == 4
    with pytest.raises(SparkStartError):
        run(SELECT, "--static", "@/d.ttl", d_ttl="<urn:a> <urn:n> 1 .")
    assert len(run(SELECT, "--static", "@/d.ttl", "--engine", "local")[0]) == 4


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--master", "local[2]"], "--master names where Spark runs"),
        (["--shards", "2"], "--shards divides the state"),
        (["--output", "kafka:127.0.0.1:9/t"], "it writes answers to Kafka"),
        (["--live"], "a live run needs Spark"),
    ],
)
def test_what_this_process_cannot_do_is_named(run, options, why, capsys, monkeypatch):
    monkeypatch.delenv("QUADWEIR_DEBUG")
    with pytest.raises(SystemExit) as ended:
        run(SELECT, "--engine", "local", *options)
    assert ended.value.code == 2
    assert why in " ".join(capsys.readouterr().err.split())


def test_a_stream_of_bare_statements_is_for_spark(run, capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("QUADWEIR_DEBUG")
    (tmp_path / "t.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    declared = """[streams."urn:t"]
source = { kind = "file", path = "t.nt" }
format = "ntriples"
time = { predicate = "urn:at" }
"""
    with pytest.raises(SystemExit):
        text = SELECT.replace("urn:s", "urn:t")
        run(text, "--engine", "local", "--streams", "@/t.toml", t_toml=declared)
    err = " ".join(capsys.readouterr().err.split())
    assert "this query needs Spark: <urn:t> is written as ntriples" in err


def test_answers_are_checked_and_explained(run):
    answers, err = run(SELECT, "--verify")
    assert len(answers) == 4
    assert "the oracle gives the same 4 answers" in err
    answers, _ = run(SELECT, "--why")
    assert all(each["why"] for each in answers)


def test_dead_letters_are_kept_and_strictness_is_kept(run, tmp_path, monkeypatch):
    run(SELECT, "--dead-letters", "@/dead.jsonl")
    (letter,) = map(json.loads, (tmp_path / "dead.jsonl").read_text().splitlines())
    assert letter == {
        "source": str(tmp_path / "s.stream"),
        "place": "line 3",
        "reason": "not an event time: this",
        "record": "this is no statement",
    }
    monkeypatch.delenv("QUADWEIR_DEBUG")
    with pytest.raises(SystemExit) as ended:
        run(SELECT, "--strict")
    assert ended.value.code == 4


def test_compressed_files_count_tenfold(tmp_path):
    from quadweir.sources.declare import FolderSource, Format, StreamDeclaration

    packed = gzip.compress(os.urandom(1000))
    (tmp_path / "a.stream.gz").write_bytes(packed)
    (tmp_path / "b.stream").write_text(STREAM)
    (tmp_path / "_ignored").write_text(STREAM)
    stream = StreamDeclaration(
        iri="urn:s", source=FolderSource(path=tmp_path), format=Format.TIMED_LINES
    )
    expected = 10 * len(packed) + len(STREAM.encode())
    assert choice.input_bytes([stream], []) == expected
    assert choice.input_bytes([None], []) == 0


def test_a_missing_file_is_reported_by_whoever_reads_it(run, capsys, monkeypatch):
    monkeypatch.delenv("QUADWEIR_DEBUG")
    with pytest.raises(SystemExit):
        run(SELECT, "--static", "@/gone.ttl")
    assert "gone.ttl" in capsys.readouterr().err
