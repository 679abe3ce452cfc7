"""Checkpoints that are divided again while nothing runs, without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from quadweir.errors import QuadweirError, StateError, UnsupportedError, UsageError
from quadweir.runtime.checkpoint import NAME, Fingerprint, network_algebra
from quadweir.runtime.portable import planfile, rewriting
from quadweir.runtime.portable.checkpoints import move, reshard
from quadweir.runtime.portable.describing import describe
from quadweir.testing import Oracle, diff_answers
from stopped_checkpoints import JOIN, STATIC, TWO_STAGES, Stopped, make_feed

COUNTED = """SELECT ?x (COUNT(*) AS ?n) {
  STREAM <urn:s> [TRIPLES 9] { ?x <urn:p> ?y } } GROUP BY ?x"""
REPLICATED = """SELECT ?x ?u {
  STREAM <urn:s> [RANGE 60ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 60ms] { ?y <urn:q> ?z }
  STREAM <urn:s> [RANGE 90ms] { ?u <urn:p> ?v } STREAM <urn:t> [RANGE 90ms] { ?v <urn:q> ?z } }"""
HOPPING = """SELECT ?x (COUNT(*) AS ?n) {
  STREAM <urn:s> [RANGE 60ms SLIDE 20ms] { ?x <urn:p> ?y } } GROUP BY ?x"""


def no_spark() -> NoReturn:
    raise AssertionError("Spark is not needed")


@pytest.mark.parametrize("text", [JOIN, TWO_STAGES, COUNTED, REPLICATED, HOPPING])
def test_a_checkpoint_goes_on_with_other_numbers_of_shards(tmp_path: Path, text: str) -> None:
    feed = make_feed()
    run = Stopped(tmp_path / "checkpoint", text, static=STATIC, shards=1)
    for number, shards in enumerate([2, 5, 3, 1, 2, None]):
        for start in (20 * number, 20 * number + 10):
            run.push(feed[start : start + 10])
        run.stop()
        if shards is not None:
            old = reshard(run.folder, shards, spark=no_spark)
            assert old is not None and old.is_dir()
            assert describe(run.folder).most == shards
        run.go_on()
    run.finish()
    assert diff_answers(Oracle(text, static=STATIC).answers(feed), run.answers) == ""


def stopped(folder: Path, *, shards: int = 2) -> Stopped:
    run = Stopped(folder, JOIN, static=STATIC, shards=shards)
    feed = make_feed()
    for start in range(0, 40, 10):
        run.push(feed[start : start + 10])
    run.stop()
    return run


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file() and each.name not in ("lock", "quadweir.lock")
    }


def test_a_checkpoint_elsewhere_leaves_the_old_one_as_it_is(tmp_path: Path) -> None:
    run = stopped(tmp_path / "one")
    before = content(run.folder)
    assert reshard(run.folder, 3, into=tmp_path / "other", spark=no_spark) is None
    assert content(run.folder) == before
    assert describe(tmp_path / "other").count == 3
    assert not list(tmp_path.glob(".*"))


def test_a_checkpoint_that_cannot_be_completed_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(tmp_path / "one")
    before = content(run.folder)

    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(rewriting, "sync", full)
    with pytest.raises(OSError, match="No space"):
        reshard(run.folder, 3, spark=no_spark)
    assert content(run.folder) == before
    assert [each.name for each in tmp_path.iterdir()] == ["one"]


def test_without_a_call_that_exchanges_folders_they_are_renamed_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(tmp_path / "one")
    before = content(run.folder)
    monkeypatch.setattr(rewriting, "_exchanged", lambda *_: False)
    old = reshard(run.folder, 3, spark=no_spark)
    assert old == tmp_path / "one.before"
    assert content(old) == before
    assert reshard(run.folder, 2, spark=no_spark) == tmp_path / "one.before-2"


def cut_log(folder: Path) -> None:
    file = max((folder / "shards" / "0-1").glob("log-*"))
    os.truncate(file, file.stat().st_size - 3)


def flip_log(folder: Path) -> None:
    file = max((folder / "shards" / "0-0").glob("log-*"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


def lose_a_shard(folder: Path) -> None:
    for each in (folder / "shards" / "0-1").iterdir():
        each.unlink()


def change_the_plan(folder: Path) -> None:
    file = folder / planfile.NAME
    file.write_text(file.read_text().replace("60", "61", 1))


def take_the_plan_of_another(folder: Path) -> None:
    other = Stopped(folder.parent / "other", COUNTED)
    (other.folder / planfile.NAME).replace(folder / planfile.NAME)


def change_the_fingerprint(folder: Path) -> None:
    file = folder / NAME
    file.write_text(file.read_text().replace('"shards": 2', '"shards": 3'))


def lose_a_commit(folder: Path) -> None:
    for number in (2, 3):
        (folder / "commits" / str(number)).unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (cut_log, "does not reach batch 4"),
        (flip_log, "does not reach batch 4"),
        (lose_a_shard, "does not reach batch 4"),
        (change_the_plan, "its digest does not fit"),
        (take_the_plan_of_another, "the query differs"),
        (change_the_fingerprint, "its digest does not fit"),
        (lose_a_commit, "batch 3 is the last that began, and batch 1 the last that is committed"),
        (lambda folder: (folder / planfile.NAME).unlink(), "does not say how its shards"),
    ],
)
def test_a_checkpoint_that_was_changed_is_refused(
    tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    run = stopped(tmp_path / "one")
    change(run.folder)
    before = content(run.folder)
    with pytest.raises(StateError) as raised:
        reshard(run.folder, 3, spark=no_spark)
    assert said in f"{raised.value} {raised.value.detail}"
    assert raised.value.hint
    assert content(run.folder) == before


def test_a_batch_that_is_not_committed_is_left_out(tmp_path: Path) -> None:
    """Spark repeats it, with any number of shards."""
    feed = make_feed()
    run = stopped(tmp_path / "one")
    (run.folder / "commits" / "3").unlink()
    reshard(run.folder, 3, spark=no_spark)
    run._batch, run.answers[:] = 3, []
    run.go_on()
    for start in range(30, len(feed), 10):
        run.push(feed[start : start + 10])
    run.finish()
    expected = [each for each in Oracle(JOIN, static=STATIC).answers(feed) if each.t >= 1060]
    assert diff_answers(expected, run.answers) == ""


def test_a_running_query_is_refused(tmp_path: Path) -> None:
    run = stopped(tmp_path / "one")
    holder = "import sys; from pathlib import Path; from quadweir.runtime.claims import Claim\n"
    holder += "claim = Claim(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", holder, run.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        with pytest.raises(StateError, match=f"process {process.pid} runs with the checkpoint"):
            reshard(run.folder, 3, spark=no_spark)
        process.communicate()
    assert reshard(run.folder, 3, spark=no_spark) is not None


def test_what_cannot_be_divided_is_refused_with_the_reason(tmp_path: Path) -> None:
    run = stopped(tmp_path / "one")
    known = Fingerprint.left_in(run.folder)
    assert known is not None
    with pytest.raises(UsageError, match="has 2 shards already"):
        reshard(run.folder, 2, spark=no_spark)
    with pytest.raises(UsageError, match="exists already"):
        reshard(run.folder, 3, into=tmp_path, spark=no_spark)
    with pytest.raises(UsageError, match="is inside of"):
        reshard(run.folder, 3, into=run.folder / "new", spark=no_spark)
    with pytest.raises(UsageError, match="local worker processes already"):
        move(run.folder, "driver", spark=no_spark)
    with pytest.raises(UsageError, match="cannot be in 'cloud'"):
        move(run.folder, "cloud", spark=no_spark)
    with pytest.raises(StateError, match="no checkpoint"):
        reshard(tmp_path / "nowhere", 3, spark=no_spark)
    mapping = tmp_path / "mapping"
    (mapping / "offsets").mkdir(parents=True)
    with pytest.raises(UnsupportedError, match="not that of a query of Quadweir"):
        reshard(mapping, 3, spark=no_spark)
    network = tmp_path / "network"
    network.mkdir()
    Fingerprint(network_algebra(["urn:s"]), 2, 0, "").guard(network)
    with pytest.raises(UnsupportedError, match="checkpoint of a network"):
        reshard(network, 3, spark=no_spark)
    fed = tmp_path / "fed"
    fed.mkdir()
    Fingerprint("(query)", 2, 0, "", inputs=(known,)).guard(fed)
    with pytest.raises(UnsupportedError, match="reads the answers of other queries"):
        reshard(fed, 3, spark=no_spark)


def test_what_a_checkpoint_has_is_shown(tmp_path: Path) -> None:
    run = stopped(tmp_path / "one")
    found = describe(run.folder)
    assert (found.kind, found.host, found.count, found.last_batch) == ("query", "driver", 2, 3)
    assert [(each.stage, each.shard) for each in found.state] == [(0, 0), (0, 1)]
    assert all(each.bytes > 0 for each in found.state)
    assert json.loads(json.dumps(found.as_data()))["shards"] == 2
    assert "shards: 2 in local worker processes, by ?y" in found.as_text()
    assert "batches: 3 is the last that is committed" in found.as_text()


def test_rows_that_cannot_be_divided_stay_in_one_shard(tmp_path: Path) -> None:
    text = "SELECT (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 60ms] { ?x <urn:p> ?y } }"
    feed = make_feed()
    run = Stopped(tmp_path / "one", text)
    for start in range(0, 60, 20):
        run.push(feed[start : start + 20])
    run.stop()
    reshard(run.folder, 4, spark=no_spark)
    found = describe(run.folder)
    assert (found.count, found.most) == (1, 4)
    assert "4 were asked for" in found.as_text()
    run.go_on()
    run.push(feed[60:])
    run.finish()
    assert diff_answers(Oracle(text).answers(feed), run.answers) == ""


def test_errors_have_hints(tmp_path: Path) -> None:
    with pytest.raises(QuadweirError) as raised:
        reshard(tmp_path, 0, spark=no_spark)
    assert raised.value.hint
