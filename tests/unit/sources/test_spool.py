from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.errors import SourceError
from quadweir.sources.spool import FAULT, Received, Spool, unframe


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Spool]]:
    """Opens the spool in the test's folder; closes what is open at the end."""
    spools: list[Spool] = []

    def open_spool(**options: Any) -> Spool:
        spools.append(Spool(tmp_path, **options))
        return spools[-1]

    yield open_spool
    for spool in spools:
        spool.close()


def record(number: int, size: int = 10) -> Received:
    return Received("/t", number, f"{number:010d}".encode().ljust(size, b"."))


def numbers(spool: Spool, start: int, end: int) -> list[int]:
    found = [pair for first, data in spool.read(start, end) for pair in unframe(first, data)]
    assert all(number == int(one.payload[:10]) for number, one in found)
    return [number for number, _ in found]


def test_what_was_appended_is_read_back_whole(tmp_path: Path, opened: Callable[..., Spool]) -> None:
    spool = opened()
    kept = [Received("/a/b", 5, "é\n".encode()), Received("", -1, b"too long", FAULT)]
    for one in kept:
        spool.append(one)
    assert spool.sync() == 2
    assert [one for run in spool.read(0, 2) for _, one in unframe(*run)] == kept


def test_numbers_go_on_after_reopening_and_after_forgetting_everything(
    tmp_path: Path, opened: Callable[..., Spool]
) -> None:
    spool = opened(segment_bytes=200)
    for number in range(50):
        spool.append(record(number))
    spool.forget(50)
    spool.close()
    again = opened(segment_bytes=200)
    assert again.end == 50
    assert again.append(record(50)) == 50
    assert numbers(again, 50, 51) == [50]


def test_every_cut_of_the_last_frame_loses_that_frame_alone(
    tmp_path: Path, opened: Callable[..., Spool]
) -> None:
    spool = opened()
    for number in range(3):
        spool.append(record(number))
    spool.close()
    (segment,) = tmp_path.glob("*.spool")
    whole = segment.read_bytes()
    frame = len(whole) // 3
    for cut in range(1, frame + 1):
        segment.write_bytes(whole[:-cut])
        again = opened()
        assert numbers(again, 0, again.end) == [0, 1]
        assert again.append(record(2)) == 2
        again.close()
        assert segment.read_bytes() == whole


def test_a_changed_byte_is_noticed(tmp_path: Path, opened: Callable[..., Spool]) -> None:
    spool = opened(segment_bytes=100)
    for number in range(20):
        spool.append(record(number))
    spool.close()
    first = min(tmp_path.glob("*.spool"))
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    with pytest.raises(SourceError, match="damaged"):
        opened()


def test_a_second_owner_is_refused(tmp_path: Path, opened: Callable[..., Spool]) -> None:
    held = opened()
    with pytest.raises(SourceError, match="in use by another query") as caught:
        opened(lock_timeout_s=0)
    assert caught.value.hint is not None
    held.close()
    opened(lock_timeout_s=0).close()


def test_what_was_forgotten_cannot_be_read(tmp_path: Path, opened: Callable[..., Spool]) -> None:
    spool = opened(segment_bytes=100)
    for number in range(20):
        spool.append(record(number))
    spool.forget(15)
    assert 0 < spool.first <= 15
    assert numbers(spool, 15, 20) == [15, 16, 17, 18, 19]
    with pytest.raises(SourceError, match="the checkpoint asks for 0 to 5"):
        list(spool.read(0, 5))


def test_a_full_spool_has_room_again_once_its_records_are_done(
    tmp_path: Path, opened: Callable[..., Spool]
) -> None:
    spool = opened(segment_bytes=100, most_bytes=200)
    while not spool.is_full:
        spool.append(record(spool.end))
    assert not spool.wait_for_room(0)
    spool.forget(spool.end)
    assert spool.wait_for_room(0)


@given(
    st.lists(st.integers(10, 40_000), max_size=60),
    st.integers(100, 200_000),
    st.data(),
)
def test_any_range_reads_what_was_appended(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], segment: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(sizes)))
    end = data.draw(st.integers(start, len(sizes)))
    folder = tmp_path_factory.mktemp("spool")
    with contextlib.closing(Spool(folder, segment_bytes=segment)) as spool:
        for number, size in enumerate(sizes):
            spool.append(record(number, size))
        assert numbers(spool, start, end) == list(range(start, end))


@given(st.lists(st.integers(10, 40_000), min_size=1, max_size=60), st.integers(1, 100_000))
def test_batches_cover_everything_and_stay_near_their_size(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], most: int
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    with contextlib.closing(Spool(folder, segment_bytes=100_000)) as spool:
        for number, size in enumerate(sizes):
            spool.append(record(number, size))
        start = 0
        while start < spool.end:
            end = spool.limit(start, records=10, size=most)
            assert start < end <= start + 10
            # One block of the index more than asked, and the record that may exceed any size.
            assert sum(sizes[start:end]) <= most + 2 * (64 * 2**10 + 40_000)
            start = end
