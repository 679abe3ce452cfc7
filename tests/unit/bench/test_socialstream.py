"""The generated social network: what the benchmark's queries find in it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from quadweir.bench.socialstream import FILES, STREAM, SocialNetworkSize, write_streams
from quadweir.sources.staticfiles import StaticFile, read_static

SMALL = SocialNetworkSize(users=50)


def test_batches_follow_one_another_in_time_and_hold_what_was_asked_for(tmp_path: Path) -> None:
    count = write_streams(SMALL, ["posts", "post-likes"], tmp_path, batches=3, triples=1500)
    assert count == 1500
    before = 0
    for batch in range(3):
        tables = [
            pq.read_table(tmp_path / name / f"{batch:05}-{part}.parquet")
            for name in ("posts", "post-likes")
            for part in range(FILES)
        ]
        times = [time for table in tables for time in table["event_time"].to_pylist()]
        assert min(times) >= before
        before = max(times)
        assert sum(table.num_rows for table in tables) == count
    assert set(tables[0]["stream"].to_pylist()) == {f"{STREAM}posts"}


def test_the_same_seed_gives_the_same_rows() -> None:
    assert SMALL.posts(10, 20).equals(SMALL.posts(10, 20))
    assert not SMALL.posts(10, 20).equals(SocialNetworkSize(users=50, seed=2).posts(10, 20))


def test_static_data_is_complete_and_describes_every_user(tmp_path: Path) -> None:
    written = SMALL.static(folder=tmp_path)
    quads = list(read_static([StaticFile(tmp_path)]))
    assert len(quads) == written
    accounts = [quad for quad in quads if quad.predicate.value.endswith("account_of")]
    assert len({quad.subject for quad in accounts}) == SMALL.users
