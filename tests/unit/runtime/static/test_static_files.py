"""The static relations of a query as files: laid out once for all shards of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.errors import SourceError
from quadweir.kernel.build import relation_of
from quadweir.kernel.shard import Shard
from quadweir.kernel.staticrelations import Loaded
from quadweir.plan.program import program_of
from quadweir.plan.query import plan_query
from quadweir.runtime.static.data import StaticData
from quadweir.runtime.static.files import Stored, relation_file
from quadweir.syntax import parse
from streaming import quads

QUERY = "SELECT ?x ?z { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } ?y <urn:r> ?z }"


@pytest.fixture
def query(tmp_path: Path) -> ContinuousQuery:
    """A query whose static relation is in the folder."""
    found = parse(QUERY, dialect="cqels")
    (asked,) = program_of(found).static
    relation = relation_of(asked, Loaded(Dataset.of(quads("b r c . d r e"))))
    relation.write(tmp_path / relation_file(asked.query, asked.variables))
    return found


def layouts(folder: Path) -> list[int]:
    return [each.stat().st_ino for each in folder.glob("*.layout")]


def test_the_first_shard_lays_out_what_all_others_map(
    tmp_path: Path, query: ContinuousQuery
) -> None:
    source = Stored(str(tmp_path))
    first = Shard.of(query, static=source)
    (made,) = layouts(tmp_path)
    second = Shard.of(query, static=source)
    assert layouts(tmp_path) == [made]
    assert first.fingerprint == second.fingerprint
    assert first.held() == second.held() == 2
    assert not list(tmp_path.glob("*.part"))


def test_nothing_is_laid_out_for_a_plan_or_where_nothing_is_asked(
    tmp_path: Path, query: ContinuousQuery
) -> None:
    plan_query(query, streams=())
    Shard.of(query, static=Stored(str(tmp_path), laid_out=False))
    assert layouts(tmp_path) == []


def test_a_layout_that_cannot_be_written_says_where_and_what_to_do(
    tmp_path: Path, query: ContinuousQuery
) -> None:
    source = Stored(str(tmp_path))
    Shard.of(query, static=source)
    (file,) = tmp_path.glob("*.layout")
    file.rename(file.with_suffix(".part"))
    file.with_suffix(".lock").unlink()
    file.with_suffix(".lock").mkdir()
    with pytest.raises(SourceError, match="laid out") as error:
        Shard.of(query, static=source)
    assert "TMPDIR" in str(error.value.hint)


def test_relations_that_are_gone_are_named(tmp_path: Path, query: ContinuousQuery) -> None:
    for file in tmp_path.glob("*.arrow"):
        file.unlink()
    with pytest.raises(SourceError, match="gone"):
        Shard.of(query, static=Stored(str(tmp_path)))


def test_data_that_cannot_be_made_ready_is_an_error_that_a_running_query_survives(
    monkeypatch, query: ContinuousQuery
) -> None:
    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", full)
    with pytest.raises(SourceError, match="No space left"):
        StaticData().prepare(None, query, ("urn:s",))
