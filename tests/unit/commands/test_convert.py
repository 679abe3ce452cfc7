from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.cli import main
from quadweir.commands.conversion import Conversion, convert
from quadweir.fileformats import FORMATS
from quadweir.terms import Quad
from terms_strategy import QUADS

SUFFIX = {
    "ntriples": "nt",
    "nquads": "nq",
    "turtle": "ttl",
    "trig": "trig",
    "rdfxml": "rdf",
    "jsonld": "jsonld",
}


def _run(*words: str) -> int:
    try:
        main(["convert", *words])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _triples(path: Path, name: str) -> set[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return {str(quad) for quad in ox.parse(data, FORMATS[name])}


@pytest.mark.parametrize("source", SUFFIX)
@pytest.mark.parametrize("target", SUFFIX)
def test_every_format_becomes_every_other(source: str, target: str, tmp_path: Path) -> None:
    triples = [
        ox.Triple(ox.NamedNode("http://e.org/s"), ox.NamedNode("http://e.org/p"), value)
        for value in (ox.Literal('a "b"\n'), ox.Literal("é", language="fr"), ox.Literal(5))
    ]
    given_file = tmp_path / f"in.{SUFFIX[source]}"
    ox.serialize(triples, str(given_file), FORMATS[source])
    made = tmp_path / f"out.{SUFFIX[target]}.gz"
    assert _run(str(given_file), str(made)) == 0
    assert _triples(made, target) == {str(triple) for triple in triples}


@given(st.lists(QUADS, max_size=30))
def test_n_quads_are_pyoxigraphs_bytes(
    tmp_path_factory: pytest.TempPathFactory, quads: list[Quad]
) -> None:
    folder = tmp_path_factory.mktemp("convert")
    source, target = folder / "in.nq", folder / "out.nq"
    source.write_text("".join(f"{quad}\n" for quad in quads), encoding="utf-8", newline="")
    job = Conversion(source=source, target=target, source_format="nquads", target_format="nquads")
    assert convert(job).quads == len(quads)
    assert target.read_bytes() == source.read_bytes()


def test_wrong_lines_are_counted_kept_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.nt"
    source.write_text("<urn:s> <urn:p> <urn:o> .\nwrong\n<urn:s> <urn:p> <urn:o2> .\n")
    letters = tmp_path / "letters.jsonl"
    target = tmp_path / "out.ttl"
    assert _run(str(source), str(target), "--json", "--dead-letters", str(letters)) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["quads"], summary["bad"]) == (2, 1)
    assert json.loads(letters.read_text())["place"] == "line 2"
    assert len(_triples(target, "turtle")) == 2


def test_strict_ends_with_4_and_writes_nothing(tmp_path: Path) -> None:
    source = tmp_path / "in.nt"
    source.write_text("wrong\n")
    assert _run(str(source), str(tmp_path / "out.ttl"), "--strict") == 4
    assert not (tmp_path / "out.ttl").exists()
    assert not list(tmp_path.glob(".*"))


def test_an_error_in_a_document_ends_with_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.ttl"
    source.write_text('<urn:s> <urn:p> "o" .\n<urn:s> ')
    assert _run(str(source), str(tmp_path / "out.nt")) == 4
    assert "line 2" in capsys.readouterr().err
    assert len(_triples(tmp_path / "out.nt", "ntriples")) == 1


def test_entities_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.rdf"
    source.write_text('<?xml version="1.0"?><!-- x --><!DOCTYPE r [<!ENTITY a "a">]><r/>')
    assert _run(str(source), str(tmp_path / "out.nt")) == 4
    assert "document type declaration" in capsys.readouterr().err


def test_graphs_are_not_lost_in_silence(tmp_path: Path) -> None:
    source = tmp_path / "in.nq"
    source.write_text("<urn:s> <urn:p> <urn:o> <urn:g> .\n")
    target = tmp_path / "out.ttl"
    assert _run(str(source), str(target)) == 2
    assert not target.exists()
    assert _run(str(source), str(target), "--merge-graphs") == 0
    assert _triples(target, "turtle") == {"<urn:s> <urn:p> <urn:o>"}


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    source = tmp_path / "in.ttl"
    source.write_text("<urn:s> <urn:p> [ <urn:q> [] ] .")
    one, other = tmp_path / "one.nt.gz", tmp_path / "other.nt.gz"
    assert _run(str(source), str(one)) == _run(str(source), str(other)) == 0
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    "words",
    [
        ("in.nt", "-"),
        ("in.nt", "out.what"),
        ("in.nt", "in.nt"),
        ("in.nt", "-", "--to", "nquads", "--json"),
    ],
)
def test_wrong_use_ends_with_2(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.nt").write_text("")
    assert _run(*words) == 2


@given(st.lists(QUADS, max_size=30))
def test_jelly_and_back_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, quads: list[Quad]
) -> None:
    pytest.importorskip("pyjelly")
    folder = tmp_path_factory.mktemp("jelly")
    (folder / "in.nq").write_text(
        "".join(f"{quad}\n" for quad in quads), encoding="utf-8", newline=""
    )
    for source, target in (("in.nq", "a.jelly"), ("a.jelly", "b.nq")):
        forms = [{"nq": "nquads"}.get(name.partition(".")[2], "jelly") for name in (source, target)]
        job = Conversion(
            source=folder / source,
            target=folder / target,
            source_format=forms[0],
            target_format=forms[1],
        )
        assert convert(job).quads == len(quads)
    found = (folder / "b.nq").read_text(encoding="utf-8").split("\n")
    assert len(found) == len(quads) + 1


def test_jelly_that_is_cut_ends_with_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyjelly")
    lines = "".join(f'<urn:s{number}> <urn:p> "o" .\n' for number in range(500))
    (tmp_path / "in.nt").write_text(lines)
    assert _run(str(tmp_path / "in.nt"), str(tmp_path / "all.jelly.gz")) == 0
    packed = gzip.decompress((tmp_path / "all.jelly.gz").read_bytes())
    (tmp_path / "cut.jelly").write_bytes(packed[:-5])
    assert _run(str(tmp_path / "cut.jelly"), str(tmp_path / "cut.nt")) == 4
    assert "ends inside a frame" in capsys.readouterr().err
    assert (tmp_path / "cut.nt").read_text() == lines[: (tmp_path / "cut.nt").stat().st_size]
