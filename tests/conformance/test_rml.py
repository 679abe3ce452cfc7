"""The RML suites, through the same path as `quadweir map --strict`.

A case that cannot pass stands in `rml_known.toml` with its reason, and is still run as far as it
makes sense: an entry there that is no longer needed fails. A case that expects an error passes with
the very error that `rml_errors.toml` names.

The suites' files are small, and small files are read in the driver, for users as for tests. That
larger ones, which Spark or its workers read, give the same is shown by running the cases about
sources again with nothing counted as small.
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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest
from tests.conformance.rml_cases import RmlCase, case_names, load_cases, to_old_vocabulary

from quadweir.errors import DataError, QuadweirError
from quadweir.mapping.check import check_mapping
from quadweir.mapping.files import Folders
from quadweir.mapping.model import Mapping, TriplesMap
from quadweir.mapping.read import parse_mapping
from quadweir.mapping.readfile import DRIVER_CHARACTERS
from quadweir.mapping.sources import ValueRules
from quadweir.runtime.mappings.bounded import MappingJob, run_bounded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
SUITES = Path(
    os.environ.get("QUADWEIR_SUITES", HERE.parent.parent.parent / "shared" / "conformance")
)
KNOWN: dict[str, dict[str, Any]] = tomllib.loads((HERE / "rml_known.toml").read_text())
ERRORS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "rml_errors.toml").read_text())
SUITE_NAMES = ("rml-core", "rml-io", "rml-fnml")
FORMATS = {
    "nq": ox.RdfFormat.N_QUADS,
    "nt": ox.RdfFormat.N_TRIPLES,
    "ttl": ox.RdfFormat.TURTLE,
    "n3": ox.RdfFormat.N3,
    "rdfxml": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
}


def find(suite: str, name: str) -> RmlCase:
    return next(case for case in load_cases(SUITES, suite) if case.name == name)


@pytest.mark.parametrize("name", case_names(SUITES, "rml-core"))
def test_core(name: str, suites: Path, spark: SparkSession, tmp_path: Path) -> None:
    check(find("rml-core", name), spark, tmp_path)


@pytest.mark.parametrize("name", case_names(SUITES, "rml-io"))
def test_io(name: str, suites: Path, spark: SparkSession, tmp_path: Path) -> None:
    check(find("rml-io", name), spark, tmp_path)


@pytest.mark.parametrize("name", case_names(SUITES, "rml-fnml"))
def test_fnml(name: str, suites: Path, spark: SparkSession, tmp_path: Path) -> None:
    check(find("rml-fnml", name), spark, tmp_path)


@pytest.mark.parametrize("name", case_names(SUITES, "rml-core"))
def test_core_in_the_old_vocabulary(
    name: str, suites: Path, spark: SparkSession, tmp_path: Path
) -> None:
    case = find("rml-core", name)
    text = case.mapping.read_text(encoding="utf-8")
    if case.expected is not None:
        new = parse_mapping(text)
        old = parse_mapping(to_old_vocabulary(text)).with_rules(ValueRules.CURRENT)
        if sorted(map(repr, old.triples_maps)) == sorted(map(repr, new.triples_maps)):
            return  # The same mapping that test_core runs.
    check(case, spark, tmp_path, to_old_vocabulary(text), rules=ValueRules.CURRENT)


@pytest.mark.parametrize(
    "name", [name for name in case_names(SUITES, "rml-io") if name.startswith("RMLST")]
)
def test_sources_as_if_they_were_large(
    name: str, suites: Path, spark: SparkSession, tmp_path: Path
) -> None:
    check(find("rml-io", name), spark, tmp_path, driver_characters=-1)


def every_case() -> dict[str, RmlCase]:
    return {case.name: case for suite in SUITE_NAMES for case in load_cases(SUITES, suite)}


def test_the_lists_fit_the_suites(suites: Path) -> None:
    cases = every_case()
    assert set(KNOWN) <= set(cases)
    never = {name for name, known in KNOWN.items() if known["kind"] == "never"}
    succeed = {name for name, known in KNOWN.items() if known.get("succeeds")}
    expect_errors = {name for name, case in cases.items() if case.error} - succeed
    assert set(ERRORS) == expect_errors | never
    for name, case in cases.items():
        # The metadata and the folder agree, except for the listed cases.
        assert case.error == (case.expected is None) or name in succeed, name


@pytest.mark.parametrize("name", [name for name, known in KNOWN.items() if "against" in known])
def test_cases_that_contradict_each_other(name: str, suites: Path) -> None:
    cases = every_case()
    one, other = cases[name], cases[KNOWN[name]["against"]]
    assert [p.read_bytes() for p in one.inputs] == [p.read_bytes() for p in other.inputs]
    assert without_targets(one) == without_targets(other)
    (found,), (against,) = map(load, one.dumps), map(load, other.dumps)
    assert found != against
    assert without_datatypes(found) == without_datatypes(against)
    assert KNOWN[name]["against"] not in KNOWN


def without_targets(case: RmlCase) -> TriplesMap:
    """The mapping without its logical target, which the subject has in these cases."""
    (triples_map,) = Mapping.read(case.mapping).triples_maps
    term = replace(triples_map.subject.term, targets=())
    return replace(triples_map, subject=replace(triples_map.subject, term=term))


def check(
    case: RmlCase,
    spark: SparkSession,
    folder: Path,
    mapping: str | None = None,
    driver_characters: int = DRIVER_CHARACTERS,
    rules: ValueRules | None = None,
) -> None:
    known = KNOWN.get(case.name, {})
    for path in case.inputs:
        if path.is_file():
            shutil.copy(path, folder)
    text = case.mapping.read_text(encoding="utf-8") if mapping is None else mapping
    (folder / "mapping.ttl").write_text(text, encoding="utf-8")
    if case.name in ERRORS:
        with pytest.raises(QuadweirError) as caught:
            run(case, spark, folder, driver_characters, rules)
        wanted = dict(ERRORS[case.name])
        if driver_characters < 0:
            wanted["says"] = wanted.get("says_if_large", wanted["says"])
        check_error(caught.value, wanted, in_old_words=mapping is not None)
        return
    assert case.expected is not None
    found = {"own": quads_of(run(case, spark, folder, driver_characters, rules), "nq")}
    expected = {"own": quads_of(case.expected.read_bytes(), "nq")}
    for dump in case.dumps:
        found[dump.name] = load(folder / dump.name)
        expected[dump.name] = load(dump)
    if known.get("without_datatypes"):
        assert found != expected, "the case passes as it stands; take it off the list"
        found = {name: without_datatypes(one) for name, one in found.items()}
        expected = {name: without_datatypes(one) for name, one in expected.items()}
    assert found == expected


def check_error(error: QuadweirError, wanted: dict[str, Any], *, in_old_words: bool) -> None:
    assert error.code == wanted["code"]
    assert wanted["says"] in f"{error.message}\n{error.detail}"
    if isinstance(error, DataError):
        assert error.span is None and "line" not in wanted
    elif not in_old_words:
        # The rewritten mappings have other lines.
        assert error.span is not None and error.span.line == wanted["line"]


def run(
    case: RmlCase,
    spark: SparkSession,
    folder: Path,
    driver_characters: int,
    rules: ValueRules | None = None,
) -> bytes:
    """The same as `quadweir map mapping.ttl --base ... --strict`, without starting Spark."""
    out = io.BytesIO()
    mapping = Mapping.read(folder / "mapping.ttl", rules=rules)
    check_mapping(mapping)
    job = MappingJob(
        folders=Folders(mapping=folder, working=folder),
        base=case.base_iri,
        strict=True,
        driver_characters=driver_characters,
    )
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
        # Tags are compared without case.
        value = ox.Literal(value.value, language=value.language.lower())
    return f"{quad.subject} {quad.predicate} {value} {quad.graph_name}"


def rdf_json(document: dict[str, Any]) -> list[str]:
    return [
        f"<{subject}> <{predicate}> "
        + json.dumps(str(one["value"]))
        + (f"^^<{one['datatype']}>" if "datatype" in one else "")
        + " DEFAULT"
        for subject, predicates in document.items()
        for predicate, objects in predicates.items()
        for one in objects
    ]


def without_datatypes(quads: set[str]) -> set[str]:
    return {quad.replace("^^<http://www.w3.org/2001/XMLSchema#integer>", "") for quad in quads}
