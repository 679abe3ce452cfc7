"""What shards make of static data, as a file: the same for all, and nobody sees what another writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from laid_out import LaidOut
from quadweir.algebra.windows import Content
from quadweir.errors import InternalError
from quadweir.kernel.arrays import ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.layout import map_layout, write_layout
from quadweir.kernel.shard import Shard
from quadweir.kernel.stateless import Static
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.testing import Oracle, diff_answers
from quadweir.testing.shards import ShardFeed, as_answers
from streaming import quads, stream

JOIN = """SELECT ?x ?z { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } ?y <urn:r> ?z }"""
MINUS = """SELECT ?x { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } MINUS { ?y <urn:r> ?z } }"""
UNION = (
    """SELECT ?x { { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } } UNION { ?x <urn:r> ?z } }"""
)
MERGED = """SELECT ?x ?z FROM <urn:g> FROM STREAM <urn:s> [RANGE 20ms STEP 10ms]
WHERE { ?x <urn:p> ?y . ?y <urn:r> ?z }"""
STATIC = quads("b0 r c0 . b1 r c1 . b1 r c2")


def test_what_is_written_is_mapped_and_changed_by_each_for_itself(tmp_path: Path) -> None:
    arrays = {
        "numbers": np.arange(6, dtype=np.int64).reshape(2, 3),
        "bytes": np.frombuffer(b"abc", dtype=np.uint8),
        "floats": np.array([0.5, -1.0]),
        "nothing": ints(0),
        "zeros": ints(1 << 20),
    }
    write_layout(tmp_path / "file", arrays)
    one, other = map_layout(tmp_path / "file"), map_layout(tmp_path / "file")
    assert one.keys() == arrays.keys()
    for name, array in arrays.items():
        assert np.array_equal(one[name], array)
        assert one[name].dtype == array.dtype
    one["zeros"][7] = 1
    assert not other["zeros"].any()
    assert not map_layout(tmp_path / "file")["zeros"].any()
    # Eight megabytes of zeros are a hole in the file.
    assert (tmp_path / "file").stat().st_blocks * 512 < 1 << 20


@pytest.mark.parametrize("at", [0, 8], ids=["magic", "version"])
def test_a_file_of_another_kind_or_version_is_refused(tmp_path: Path, at: int) -> None:
    file = tmp_path / "file"
    write_layout(file, {"x": ints(1)})
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)
    with pytest.raises(InternalError, match="no layout"):
        map_layout(file)


def test_a_dictionary_goes_on_where_another_was(tmp_path: Path) -> None:
    before = Dictionary()
    kept = before.numbers([f"<urn:{number}>" for number in range(1_000)])
    before.keep(kept)
    before.numbers(["<urn:passing>"])
    before.grant()
    write_layout(tmp_path / "file", before.layout())
    one, other = (Dictionary(map_layout(tmp_path / "file")) for _ in range(2))
    assert one.numbers(["<urn:7>", "<urn:new>"]).tolist() == [8, 1_001]
    one.hold(np.array([8, 1_001]))
    one.settle()
    snapshot = one.arrays()
    # What is there in any case is not listed.
    assert snapshot["slots"].tolist() == [1_001]
    assert other.numbers(["<urn:other>"]).tolist() == [1_001]
    other.restore(snapshot)
    assert len(other) == 1_001
    assert other.decode(np.array([8, 1_001])).to_pylist() == ["<urn:7>", "<urn:new>"]
    assert other.numbers(["<urn:other>", "<urn:999>"]).tolist() == [1_002, 1_000]
    # Nobody holds what is kept: it stays all the same.
    other.drop(np.array([8, 8, 1_001]))
    other.settle()
    assert len(other) == 1_000
    assert other.numbers(["<urn:7>"]).tolist() == [8]


def shard_over(text: str, folder: Path, *, laid_out: bool) -> Shard:
    query = parse(text, dialect="cqels")
    source = LaidOut.of(query, STATIC, folder)
    return Shard.of(query, static=source if laid_out else source.data, streams=["urn:s"])


@pytest.mark.parametrize("laid_out", [False, True], ids=["made", "mapped"])
def test_static_rows_are_told_only_to_those_who_do_not_index_them(
    tmp_path: Path, laid_out: bool
) -> None:
    for text, reported in ((JOIN, 0), (MINUS, 0), (UNION, 3)):
        shard = shard_over(text, tmp_path, laid_out=laid_out)
        (static,) = (op for op, _ in shard.dataflow.operators if isinstance(op, Static))
        assert static.held() == 3
        assert len(static.step([]).t) == reported


def test_a_mapped_shard_is_the_one_that_was_written_down(tmp_path: Path) -> None:
    for text in (JOIN, MINUS, UNION):
        made, mapped = (shard_over(text, tmp_path, laid_out=each) for each in (False, True))
        assert mapped.fingerprint == made.fingerprint
        theirs = mapped.layout()
        # Each shard that is made has seeds of its own; one that is mapped has those in the file.
        assert theirs.keys() == made.layout().keys()
        (file,) = tmp_path.iterdir()
        for name, array in map_layout(file).items():
            assert np.array_equal(theirs[name], array)
        file.unlink()


@pytest.mark.parametrize("size", [3, 3000], ids=["fewer than in windows", "more"])
@pytest.mark.parametrize("content", Content)
def test_static_rows_of_a_union_are_indexed_by_its_join_and_neither_told_nor_saved(
    content: Content, size: int, tmp_path: Path
) -> None:
    static = quads(" . ".join(f"b{n} r c{n}" for n in range(size)), "g")
    feed = stream(*((n, f"a{n % 7} p b{n % 5} . b{n % 4} r c{n % 6}") for n in range(60)))
    parsed = parse(MERGED, dialect="csparql", content=content)
    expected = Oracle(parsed, static=static).answers(feed)
    query = optimize(parsed).query
    source = LaidOut.of(query, static, tmp_path)
    shard, found = Shard.of(query, static=source), []
    fed = ShardFeed(shard)
    for start in range(0, len(feed), 9):
        found += as_answers(fed.push(feed[start : start + 9]), query)
        left = shard.snapshot()
        assert len(left) < 20_000
        fed.shard = shard = Shard.of(query, static=source)
        shard.restore(left)
    found += as_answers(fed.finish(), query)
    assert expected
    assert diff_answers(expected, found) == ""
