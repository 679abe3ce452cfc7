"""Times of recorded elements that jump implausibly far ahead are found by their neighbours (S4)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir import rows
from quadweir.sources.declare import Format, Speed
from quadweir.sources.plausible import without_jumps
from quadweir.sources.replay import UNITS, Play, Recording

HOUR = 3_600_000
YEARS = 10 * 365 * 24 * HOUR


def units(times: list[int | None], sizes: list[int]) -> list[pa.RecordBatch]:
    found, done = [], 0
    for size in [*sizes, len(times)]:
        part = times[done : done + size]
        done += len(part)
        if part:
            table = [("f", "line", done, each, "x", None) for each in part]
            columns = zip(*table, strict=True)
            arrays = [pa.array(list(c), f.type) for c, f in zip(columns, UNITS, strict=True)]
            found.append(pa.RecordBatch.from_arrays(arrays, schema=UNITS))
    return found


def judged(times: list[int | None], sizes: list[int] | None = None) -> list[int]:
    """Give the places of what is found to be too far ahead."""
    table = pa.Table.from_batches(without_jumps(units(times, sizes or []), HOUR), schema=UNITS)
    reasons = table.column("reason").to_pylist()
    found = [place for place, reason in enumerate(reasons) if reason is not None]
    assert len(reasons) == len(times)
    assert all(reasons[place].startswith(rows.AHEAD) for place in found)
    assert [None if place in found else time for place, time in enumerate(times)] == table.column(
        "time"
    ).to_pylist()
    return found


@pytest.mark.parametrize(
    ("times", "ahead"),
    [
        ([1, 2, YEARS, 3, 4, 5], [2]),
        # Of one that is last nothing can be said, and nothing after it can be late.
        ([1, 2, 3, YEARS], []),
        # The first may be the one that is wrong.
        ([YEARS, 1, 2, 3], [0]),
        ([YEARS, YEARS + 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [0, 1]),
        # A pause in the data is no mistake.
        ([1, 2, 3, YEARS, YEARS + 1, YEARS + 2], []),
        # Five in a row are found, and more are not.
        ([1, *[YEARS] * 5, *range(2, 12)], [1, 2, 3, 4, 5]),
        ([1, *[YEARS] * 12, *range(2, 12)], []),
        # One far in the past makes nothing before it implausible.
        ([YEARS, YEARS + 1, YEARS + 2, 1], []),
        ([YEARS, YEARS + 1, 1, YEARS + 2, YEARS + 3], []),
        # Not further ahead than is allowed.
        ([1, 2, HOUR + 2, 3, 4], []),
        ([1, 2, HOUR + 5, 3, 4], [2]),
        # What has no time is passed over.
        ([1, None, YEARS, None, None, 2, 3, None], [2]),
        ([None, None], []),
        ([], []),
    ],
)
def test_an_element_is_judged_by_its_neighbours(times: list[int | None], ahead: list[int]) -> None:
    assert judged(times) == ahead


@given(
    times=st.lists(
        st.one_of(st.none(), st.integers(0, 5), st.integers(0, 5).map(lambda n: n * 2 * HOUR)),
        max_size=60,
    ),
    sizes=st.lists(st.integers(1, 9), max_size=20),
)
def test_how_units_are_cut_into_batches_is_of_no_account(
    times: list[int | None], sizes: list[int]
) -> None:
    assert judged(times, sizes) == judged(times)


def test_a_play_does_not_wait_for_a_time_that_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "r.stream"
    times = [1000, 2000, YEARS, 3000, 4000]
    file.write_text("".join(f"{time} <urn:a> <urn:p> <urn:{time}> .\n" for time in times))
    recording = Recording(path=file, format=Format.TIMED_LINES, ahead_ms=HOUR)
    taken = list(Play(recording, Speed(1.0)).take(3000))
    assert [due for _, dues in taken for due in dues.tolist()] == [0, 1000, 1000, 2000, 3000]
    reasons = [each for batch, _ in taken for each in batch.column("reason").to_pylist()]
    assert [each is not None for each in reasons] == [False, False, True, False, False]
