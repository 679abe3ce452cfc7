"""The RML suites, through the same path as `quadweir map`.

A case that cannot pass stands in `rml_known.toml` with its reason, and is still run as far as it
makes sense: an entry there that is no longer needed fails.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest
from tests.conformance.rml_cases import RmlCase, case_names, load_cases, to_old_vocabulary

from quadweir.errors import QuadweirError
from quadweir.mapping.files import Folders
from quadweir.mapping.model import Mapping
from quadweir.mapping.read import parse_mapping
from quadweir.mapping.run import Job, run_bounded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
SUITES = Path(
    os.environ.get("QUADWEIR_SUITES", HERE.parent.parent.parent / "shared" / "conformance")
)
KNOWN: dict[str, dict[str, Any]] = tomllib.loads((HERE / "rml_known.toml").read_text())
FORMATS = {
    "nq": ox.RdfFormat.N_QUADS,
    "nt": ox.RdfFormat.N_TRIPLES,
    "ttl": ox.RdfFormat.TURTLE,
    "n3": ox.RdfFormat.N3,
    "rdfxml": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
}


@pytest.fixture(scope="module")
def quick(spark: SparkSession) -> SparkSession:
    """The session without generated code: for a handful of rows, making it takes longest."""
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    yield spark
    spark.conf.unset("spark.sql.codegen.wholeStage")


def find(suite: str, name: str) -> RmlCase:
    return next(case for case in load_cases(SUITES, suite) if case.name == name)


@pytest.mark.parametrize("name", case_names(SUITES, "rml-core"))
def test_core(name: str, suites: Path, quick: SparkSession, tmp_path: Path) -> None:
    check(find("rml-core", name), quick, tmp_path)


@pytest.mark.parametrize("name", case_names(SUITES, "rml-io"))
def test_io(name: str, suites: Path, quick: SparkSession, tmp_path: Path) -> None:
    check(find("rml-io", name), quick, tmp_path)


@pytest.mark.parametrize("name", case_names(SUITES, "rml-fnml"))
def test_fnml(name: str, suites: Path, quick: SparkSession, tmp_path: Path) -> None:
    check(find("rml-fnml", name), quick, tmp_path)


@pytest.mark.parametrize("name", case_names(SUITES, "rml-core"))
def test_core_in_the_old_vocabulary(
    name: str, suites: Path, quick: SparkSession, tmp_path: Path
) -> None:
    case = find("rml-core", name)
    text = case.mapping.read_text(encoding="utf-8")
    if case.expected is not None:
        new = parse_mapping(text)
        old = parse_mapping(to_old_vocabulary(text))
        if sorted(map(repr, old.triples_maps)) == sorted(map(repr, new.triples_maps)):
            return  # The very mapping that test_core runs.
    check(case, quick, tmp_path, to_old_vocabulary(text))


def test_known_failures_are_cases_of_the_suites(suites: Path) -> None:
    names = {
        name for suite in ("rml-core", "rml-io", "rml-fnml") for name in case_names(SUITES, suite)
    }
    assert set(KNOWN) <= names


def check(case: RmlCase, spark: SparkSession, folder: Path, mapping: str | None = None) -> None:
    known = KNOWN.get(case.name, {})
    for path in case.inputs:
        if path.is_file():
            shutil.copy(path, folder)
    text = case.mapping.read_text(encoding="utf-8") if mapping is None else mapping
    (folder / "mapping.ttl").write_text(text, encoding="utf-8")
    if case.expected is None or known.get("kind") == "never":
        with pytest.raises(QuadweirError) as caught:
            run(case, spark, folder)
        assert caught.value.message
        return
    plain = bool(known.get("without_datatypes"))
    found = {"own": quads_of(run(case, spark, folder), "nq")}
    expected = {"own": quads_of(case.expected.read_bytes(), "nq")}
    for dump in case.dumps:
        found[dump.name] = load(folder / dump.name)
        expected[dump.name] = load(dump)
    if plain:
        assert found != expected, "the case passes as it stands; take it off the list"
        found = {name: without_datatypes(one) for name, one in found.items()}
        expected = {name: without_datatypes(one) for name, one in expected.items()}
    assert found == expected


def run(case: RmlCase, spark: SparkSession, folder: Path) -> bytes:
    out = io.BytesIO()
    mapping = Mapping.read(folder / "mapping.ttl")
    job = Job(folders=Folders(mapping=folder, working=folder), base=case.base_iri, strict=True)
    run_bounded(mapping, spark, job, out)
    return out.getvalue()


def load(path: Path) -> set[str]:
    name, data = path.name, path.read_bytes()
    if name.endswith((".tar.gz", ".tar.xz")):
        with tarfile.open(path) as archive:
            member = next(one for one in archive.getmembers() if one.isfile())
            inner = archive.extractfile(member)
            assert inner is not None
            data = inner.read()
        name = name.rpartition(".tar")[0]
    elif name.endswith(".gz"):
        name, data = name.removesuffix(".gz"), gzip.decompress(data)
    elif name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            data = archive.read(archive.namelist()[0])
        name = name.removesuffix(".zip")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16").encode()
    return quads_of(data, name.rpartition(".")[2])


def quads_of(data: bytes, suffix: str) -> set[str]:
    if suffix == "rdfjson":
        return set(rdf_json(json.loads(data)))
    # Lenient: expected outputs of unsafe IRIs hold blanks.
    dataset = ox.Dataset(ox.parse(data, FORMATS[suffix], lenient=True))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return {spell(quad) for quad in dataset}


def spell(quad: ox.Quad) -> str:
    value = quad.object
    if isinstance(value, ox.Literal) and value.language:
        # Tags are equal whatever their case.
        value = ox.Literal(value.value, language=value.language.lower())
    return f"{quad.subject} {quad.predicate} {value} {quad.graph_name}"


def rdf_json(document: dict[str, Any]) -> list[str]:
    return [
        f"<{subject}> <{predicate}> "
        + json.dumps(str(one["value"]))
        + (f"^^<{one['datatype']}>" if "datatype" in one else "")
        for subject, predicates in document.items()
        for predicate, objects in predicates.items()
        for one in objects
    ]


def without_datatypes(quads: set[str]) -> set[str]:
    return {quad.replace("^^<http://www.w3.org/2001/XMLSchema#integer>", "") for quad in quads}
