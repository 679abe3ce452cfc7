"""A mapping reads the files that it names and no others: no globs, no links out of its folders."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quadweir.errors import MappingError
from quadweir.mapping.files import Folders
from quadweir.mapping.read import parse_mapping
from quadweir.runtime.mappings.bounded import MappingJob, run_bounded
from quadweir.sources.rdf_files import read_rdf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CONTENTS = {
    "CSV": lambda value: f"v\n{value}\n",
    "CSV quoted": lambda value: f'v\n"{value}"\n',
    "JSONPath": lambda value: f'{{"v": "{value}"}}\n' * 2,
    "JSONPath nested": lambda value: f'{{"v": "{value}", "o": {{}}}}\n' * 2,
    "XPath": lambda value: f"<rs><r><v>{value}</v></r></rs>",
}


def mapping(kind: str, source: str) -> str:
    formulation = kind.split()[0]
    iterator = '; rml:iterator "/rs/r"' if formulation == "XPath" else ""
    return f"""
    @prefix rml: <http://w3id.org/rml/> . @prefix rmls: <http://semweb.mmlab.be/ns/rmls#> .
    <http://e.org/m> rml:logicalSource [ rml:source {source} ;
        rml:referenceFormulation rml:{formulation} {iterator} ] ;
      rml:subject <http://e.org/s> ;
      rml:predicateObjectMap [
        rml:predicate <http://e.org/p> ; rml:objectMap [ rml:reference "v" ] ] ."""


def values(spark: SparkSession, folder: Path, text: str) -> tuple[set[str], list[dict[str, str]]]:
    """The values of the triples, and the dead letters."""
    out, dead = io.BytesIO(), folder / "dead.jsonl"
    job = MappingJob(folders=Folders(mapping=folder), driver_characters=0, dead_letters=dead)
    run_bounded(parse_mapping(text), spark, job, out)
    letters = dead.read_text().splitlines() if dead.exists() else []
    found = {line.split('"')[1] for line in out.getvalue().decode().splitlines()}
    return found, [json.loads(line) for line in letters]


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_large_file_whose_name_is_a_glob_is_read_itself(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    write = CONTENTS[kind]
    for decoy in ("ab.x", "xy.x"):
        (tmp_path / decoy).write_text(write("decoy"))
    for number, name in enumerate(("a[b].x", "{x,a}?.x", "c:d.x")):
        (tmp_path / name).write_text(write(f"own {number}"))
        text = mapping(kind, f'"{name}"')
        assert values(spark, tmp_path, text) == ({f"own {number}"}, [])


def test_rdf_files_whose_names_are_globs_or_have_colons(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = ("a[b].nt", "c:d.nt", "n[:].nt")
    for name in (*names, "ab.nt"):
        (tmp_path / name).write_text(f'<urn:s> <urn:p> "{name}" .\n')
    found = read_rdf(spark, *(tmp_path / name for name in names)).quads.collect()
    assert {row.object for row in found} == {f'"{name}"' for name in names}


@pytest.mark.parametrize("kind", ["CSV", "JSONPath", "XPath"])
def test_links_out_of_a_folder_are_dead_letters(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    write = CONTENTS[kind]
    home, outside, allowed = (tmp_path / name for name in ("home", "outside", "home/allowed"))
    folder = home / "data"
    for path in (folder, outside, allowed):
        path.mkdir(parents=True)
    (outside / "secret.x").write_text(write("secret"))
    (allowed / "shared.x").write_text(write("shared"))
    (folder / "own.x").write_text(write("own"))
    (folder / "near.x").symlink_to("own.x")
    (folder / "shared.x").symlink_to(allowed / "shared.x")
    (folder / "out.x").symlink_to(outside / "secret.x")
    found, letters = values(spark, home, mapping(kind, '[ a rmls:FileStream ; rmls:path "data" ]'))
    assert found == {"own", "shared"}
    assert [letter["reason"] for letter in letters] == [
        "out.x is a link that leads out of the folders that may be read"
    ]


@pytest.mark.parametrize("kind", ["CSV", "JSONPath", "XPath"])
def test_a_folder_whose_name_is_a_glob_is_read_itself(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    write = CONTENTS[kind]
    home = tmp_path / "home"
    own = home / "{x/y,.}./secretx"
    for path in (own, tmp_path / "secretx", home / "x" / "y" / "secretx"):
        path.mkdir(parents=True)
        (path / "a[1].x").write_text(write("own" if path is own else "secret"))
        (path / "a1.x").write_text(write("other"))
    folder = '[ a rmls:FileStream ; rmls:path "{x/y,.}./secretx" ]'
    assert values(spark, home, mapping(kind, folder)) == ({"own", "other"}, [])
    file = '[ a rmls:FileStream ; rmls:path "{x/y,.}./secretx/a[1].x" ]'
    assert values(spark, home, mapping(kind, file)) == ({"own"}, [])


@pytest.mark.parametrize(
    ("path", "reason"),
    [("a\\u0000b", "null"), ("x" * 5000, "too long"), ("loop", "loop|links")],
)
@pytest.mark.parametrize("kind", ["file", "stream"])
def test_what_is_not_a_path_says_so(
    spark: SparkSession, tmp_path: Path, path: str, reason: str, kind: str
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    named = f'"{path}"' if kind == "file" else f'[ a rmls:FileStream ; rmls:path "{path}" ]'
    with pytest.raises(MappingError, match="which is not a path") as caught:
        values(spark, tmp_path, mapping("CSV", named))
    assert caught.value.span is not None
    assert re.search(reason, str(caught.value.detail), re.IGNORECASE)
