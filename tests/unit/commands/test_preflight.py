"""Errors that can be found before Spark starts are reported before Spark starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quadweir.cli import main
from quadweir.runtime.claims import Claim
from quadweir.syntax.read import parse

QUERY = "SELECT ?s { STREAM <urn:s> [RANGE 5s] { ?s <urn:p> ?o } }"
MAPPING = """
@prefix rml: <http://w3id.org/rml/> .
[] a rml:TriplesMap ; rml:logicalSource [ rml:source [ a rml:RelativePathSource ; rml:path "a.csv" ] ;
  rml:referenceFormulation rml:CSV ] ;
  rml:subjectMap [ rml:template "urn:{a}" ; rml:class <urn:c> ] .
"""
WATCHED = MAPPING.replace('[ a rml:RelativePathSource ; rml:path "a.csv" ]', "<urn:watched>")
FILES = """
[streams."urn:s"]
source = { kind = "file", path = "nowhere.stream" }
format = "timed-lines"
[streams."urn:watched"]
source = { kind = "folder", path = "in", watch = true }
format = "timed-lines"
"""
RECORDS = FILES.replace('"timed-lines"', '"csv"\ntime = { column = "t" }')

Run = Callable[..., str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command that must fail before Spark starts; return its messages."""

    def build(**_: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr("quadweir.runtime.spark.session.build", build)
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.stream").write_text("1000 <urn:a> <urn:p> <urn:b> .\n")
    (tmp_path / "m.ttl").write_text(MAPPING)
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "in").mkdir()

    def ended(*words: str | Path) -> str:
        with pytest.raises(SystemExit) as end:
            main([str(each) for each in words])
        assert end.value.code not in (0, None)
        return capsys.readouterr().err

    return ended


@pytest.fixture
def live(run: Run, tmp_path: Path) -> Run:
    def ended(*words: str | Path) -> str:
        return run(
            "query", tmp_path / "q.rq", "--live", "--stream", f"urn:s={tmp_path / 'in'}", *words
        )

    return ended


@pytest.fixture
def bounded(run: Run, tmp_path: Path) -> Run:
    def ended(*words: str | Path) -> str:
        stream = f"urn:s={tmp_path / 's.stream'}"
        return run("query", tmp_path / "q.rq", "--stream", stream, *words)

    return ended


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A folder in which not even root can make files."""
    if os.geteuid() != 0:
        folder = tmp_path / "closed"
        folder.mkdir(mode=0o500)
        return folder
    if not Path("/sys/kernel").is_dir():
        pytest.skip("needs a user that is not root, or Linux")
    return Path("/sys/kernel")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("name", ["", "state", "state/deeper"])
def test_a_checkpoint_without_rights(live: Run, closed: Path, name: str) -> None:
    err = live("--checkpoint", closed / name)
    assert "QW-STATE" in err
    assert f"the checkpoint folder {closed / name} cannot be used: " in err


@pytest.mark.parametrize("name", ["", "out", "out/deeper"])
def test_an_output_folder_without_rights(
    live: Run, run: Run, tmp_path: Path, closed: Path, name: str
) -> None:
    (tmp_path / "streams.toml").write_text(RECORDS)
    (tmp_path / "m.ttl").write_text(WATCHED)
    mapped = ["map", tmp_path / "m.ttl", "--live", "--streams", tmp_path / "streams.toml"]
    for err in (
        live("--output", closed / name),
        live("--dead-letters", closed / name),
        run(*mapped, "-o", closed / name),
    ):
        assert "QW-SOURCE" in err
        assert f"cannot write to {closed / name}" in err


def test_an_output_file_without_rights(
    bounded: Run, run: Run, tmp_path: Path, closed: Path
) -> None:
    for err in (
        bounded("--output", closed / "out.jsonl"),
        bounded("--dead-letters", closed / "dead.jsonl"),
        run("map", tmp_path / "m.ttl", "-o", closed / "deeper" / "out.nt"),
    ):
        assert "QW-SOURCE" in err
        assert f"cannot write {closed}" in err


def test_a_folder_as_an_output_file(bounded: Run, run: Run, tmp_path: Path) -> None:
    assert "it is a folder" in bounded("--output", tmp_path)
    assert "it is a folder" in run("map", tmp_path / "m.ttl", "-o", tmp_path)
    assert "it is a folder" in run(
        "map", tmp_path / "m.ttl", "-o", tmp_path / "o.nt", "--dead-letters", tmp_path
    )


def test_an_output_file_that_no_system_can_have(bounded: Run) -> None:
    assert "NUL character" in bounded("--output", "a\0b")
    assert "File name too long" in bounded("--output", 300 * "x")


def test_a_port_in_use(live: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        err = live("--metrics-port", str(port))
    assert f"port {port} cannot be used for metrics: Address already in use" in err


@pytest.mark.parametrize("form", ["live", "bounded"])
def test_declarations_that_are_wrong(request: pytest.FixtureRequest, form: str) -> None:
    ended: Run = request.getfixturevalue(form)
    folder: Path = request.getfixturevalue("tmp_path")
    (folder / "streams.toml").write_text("[streams]\nbroken =")
    assert "QW-DECLARATION" in ended("--streams", folder / "streams.toml")


@pytest.mark.parametrize("form", ["live", "bounded"])
def test_static_data_and_schemas_that_are_wrong(request: pytest.FixtureRequest, form: str) -> None:
    ended: Run = request.getfixturevalue(form)
    folder: Path = request.getfixturevalue("tmp_path")
    (folder / "bad.ttl").write_text("<urn:a> <urn:b> .")
    assert "no such file" in ended("--static", folder / "none.ttl")
    assert "QW-DATA" in ended("--static", folder / "bad.ttl")
    assert "none.ttl" in ended("--schema", folder / "none.ttl")


@pytest.mark.parametrize("kind", ["kafka:127.0.0.1:{}/t", "mqtt:127.0.0.1:{}/t"])
def test_brokers_that_do_not_answer(run: Run, tmp_path: Path, kind: str) -> None:
    target = kind.format(free_port())
    err = run("query", tmp_path / "q.rq", "--live", "--stream", f"urn:s={target}")
    assert "broker answers at 127.0.0.1" in err


def test_brokers_of_outputs_and_mappings_that_do_not_answer(
    live: Run, run: Run, tmp_path: Path
) -> None:
    assert "no Kafka broker answers" in live("--output", f"kafka:127.0.0.1:{free_port()}/t")
    assert "no Kafka broker answers" in live("--dead-letters", f"kafka:127.0.0.1:{free_port()}/t")
    mapping = MAPPING.replace(
        'a rml:RelativePathSource ; rml:path "a.csv"',
        f"a <http://semweb.mmlab.be/ns/rmls#KafkaStream> ; "
        f'<http://semweb.mmlab.be/ns/rmls#broker> "127.0.0.1:{free_port()}" ; '
        f'<http://semweb.mmlab.be/ns/rmls#topic> "t" ; '
        f'<http://semweb.mmlab.be/ns/rmls#groupId> "g"',
    ).replace("rml:CSV", 'rml:JSONPath ; rml:iterator "$"')
    (tmp_path / "m.ttl").write_text(mapping)
    assert "no Kafka broker answers" in run("map", tmp_path / "m.ttl", "--live")
    assert "no Kafka broker answers" in run("map", tmp_path / "m.ttl", "-o", tmp_path / "o.nt")


def test_a_mapping_is_not_let_to_other_hosts_to_see_whether_they_answer(
    run: Run, tmp_path: Path
) -> None:
    mapping = MAPPING.replace(
        'a rml:RelativePathSource ; rml:path "a.csv"',
        "a <http://semweb.mmlab.be/ns/rmls#KafkaStream> ; "
        '<http://semweb.mmlab.be/ns/rmls#broker> "192.0.2.2:9092" ; '
        '<http://semweb.mmlab.be/ns/rmls#topic> "t" ; '
        '<http://semweb.mmlab.be/ns/rmls#groupId> "g"',
    ).replace("rml:CSV", 'rml:JSONPath ; rml:iterator "$"')
    (tmp_path / "m.ttl").write_text(mapping)
    for words in (["--realtime", "-o", "kafka:127.0.0.1:1/t"], ["--live"], []):
        err = run("map", tmp_path / "m.ttl", *words)
        assert "192.0.2.2, which is not this machine" in err


def test_a_checkpoint_of_something_else(live: Run, tmp_path: Path) -> None:
    (tmp_path / "state" / "offsets").mkdir(parents=True)
    assert "not of a Quadweir query" in live("--checkpoint", tmp_path / "state")


def test_a_checkpoint_of_another_query(live: Run, tmp_path: Path) -> None:
    from quadweir.algebra.render import render
    from quadweir.optimize.pipeline import optimize
    from quadweir.runtime.checkpoint import Fingerprint

    other = optimize(parse(QUERY.replace("urn:p", "urn:q"))).query
    Fingerprint(render(other), 1, 1, "").guard(tmp_path / "state")
    err = live("--checkpoint", tmp_path / "state")
    assert "the query differs" in err


def test_a_checkpoint_in_use(live: Run, run: Run, tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from quadweir.runtime.claims import Claim; "
        "claim = Claim(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "state")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        said = f"process {holder.pid} runs with the checkpoint {tmp_path / 'state'}"
        assert said in live("--checkpoint", tmp_path / "state")
        assert said in run("map", tmp_path / "m.ttl", "--live", "--checkpoint", tmp_path / "state")
        holder.kill()
    with Claim(tmp_path / "state"):
        pass


def test_streams_that_are_not_declared_or_not_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "streams.toml").write_text(FILES)
    (tmp_path / "other.rq").write_text(QUERY.replace("urn:s", "urn:other"))
    streams = ["--streams", tmp_path / "streams.toml"]
    for live in ([], ["--live"]):
        err = run("query", tmp_path / "other.rq", *live, *streams)
        assert "the query reads the stream <urn:other>, which is not declared" in err
        assert "<urn:s>, <urn:watched>" in err
    assert "nowhere.stream, which does not exist" in run("query", tmp_path / "q.rq", *streams)


def test_streams_with_an_end_in_a_live_run_and_the_reverse(run: Run, tmp_path: Path) -> None:
    (tmp_path / "streams.toml").write_text(FILES)
    (tmp_path / "watched.rq").write_text(QUERY.replace("urn:s", "urn:watched"))
    (tmp_path / "plain.rq").write_text("SELECT ?s { ?s ?p ?o }")
    streams = ["--streams", tmp_path / "streams.toml"]
    assert "files and has an end" in run("query", tmp_path / "q.rq", "--live", *streams)
    assert "has no end" in run("query", tmp_path / "watched.rq", *streams)
    assert "reads no stream" in run("query", tmp_path / "plain.rq", "--live")
    assert "reads no stream" in run("map", tmp_path / "m.ttl", "--live")


def test_sources_and_targets_of_a_mapping(run: Run, tmp_path: Path, closed: Path) -> None:
    (tmp_path / "a.csv").unlink()
    for words in ([], ["--live"]):
        err = run("map", tmp_path / "m.ttl", *words)
        assert "a.csv, which does not exist" in err
    (tmp_path / "a.csv").touch()
    (tmp_path / "d.ttl").write_text(WATCHED)
    assert "<urn:watched>, which is not declared" in run("map", tmp_path / "d.ttl", "--live")
    target = f"""rml:subjectMap [ rml:logicalTarget [ a rml:LogicalTarget ;
      rml:target [ a rml:FilePath ; rml:path "{closed}/out.nt" ] ; rml:serialization
      <http://www.w3.org/ns/formats/N-Triples> ] ; """
    (tmp_path / "t.ttl").write_text(MAPPING.replace("rml:subjectMap [", target))
    err = run("map", tmp_path / "t.ttl", "-o", tmp_path / "o.nt", "--allow-dir", closed)
    assert f"cannot write {closed / 'out.nt'}" in err


def test_what_real_time_mode_cannot_do(run: Run, tmp_path: Path) -> None:
    (tmp_path / "streams.toml").write_text(RECORDS)
    (tmp_path / "d.ttl").write_text(WATCHED)
    err = run("map", tmp_path / "d.ttl", "--realtime", "--streams", tmp_path / "streams.toml")
    assert "real-time mode reads Kafka only" in err


def test_an_invalid_place_of_shards(live: Run) -> None:
    assert "'driver', 'executors'" in live("--shards-in", "space")
