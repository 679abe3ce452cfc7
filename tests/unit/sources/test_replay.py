"""When a record is due follows from the start and the pace alone."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.errors import UsageError
from quadweir.sources.clock import ManualClock
from quadweir.sources.declare import Burst, Format, Pace, Rate, Speed
from quadweir.sources.replay import Play, Recording, play_to
from quadweir.sources.streamfiles import read_elements

Taken = list[tuple[int, str | None]]


def line(time: int, name: str, graph: str = "") -> str:
    return f"{time} <urn:{name}> <urn:p> <urn:o> {graph}.\n"


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    path = tmp_path / "r.stream"
    path.write_text(
        line(5000, "a") + line(5100, "b", "<urn:g> ") + line(5100, "c", "<urn:g> ") + "bad\n"
        + line(5050, "d") + line(7000, "e")
    )  # fmt: skip
    return Recording(path=path, format=Format.TIMED_LINES)


def take(play: Play, elapsed: int, most: int | None = None) -> Taken:
    found: Taken = []
    for batch, due in play.take(elapsed, most):
        names = [
            value.split("<urn:")[1][0] if "<" in value else value
            for value in batch.column("value").to_pylist()
        ]
        found.extend(zip(due.tolist(), names, strict=True))
    return found


def test_speed_follows_the_event_times(recording: Recording) -> None:
    play = Play(recording, Speed(2.0))
    assert play.next_due_ms() == 0
    assert take(play, 0) == [(0, "a")]
    assert take(play, 49) == []
    # The lines of one graph are one unit; what is out of order or wrong is due with its neighbour.
    assert take(play, 50) == [(50, "b"), (50, "bad"), (50, "d")]
    assert play.next_due_ms() == 1000
    assert take(play, 10_000) == [(1000, "e")]
    assert play.is_over
    assert play.next_due_ms() is None


def test_rate_and_burst_follow_the_numbers(recording: Recording) -> None:
    assert take(Play(recording, Rate(4.0)), 600) == [(0, "a"), (250, "b"), (500, "bad")]
    burst = Burst(2, timedelta(seconds=10))
    assert take(Play(recording, burst), 10_000) == [
        (0, "a"),
        (0, "b"),
        (10_000, "bad"),
        (10_000, "d"),
    ]


def test_a_play_stops_at_its_limit(recording: Recording) -> None:
    play = Play(recording, Rate(1000), limit=2)
    assert len(take(play, 10_000)) == 2
    assert play.is_over


def test_a_loop_goes_on_with_later_times_and_positions(recording: Recording) -> None:
    play = Play(recording, Speed(1.0), loop=True, limit=12)
    batches = [batch for batch, _ in play.take(2**60)]
    times = [time for batch in batches for time in batch.column("time").to_pylist()]
    values = [value for batch in batches for value in batch.column("value").to_pylist()]
    positions = [position for batch in batches for position in batch.column("position").to_pylist()]
    assert times == [
        5000, 5100, None, 5050, 7000,
        7500, 7600, None, 7550, 9500,
        10_000, 10_100,
    ]  # fmt: skip
    assert (
        values[6]
        == "7600 <urn:b> <urn:p> <urn:o> <urn:g> .\n7600 <urn:c> <urn:p> <urn:o> <urn:g> ."
    )
    assert positions == sorted(set(positions))


def test_speed_needs_times(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"at": 1000}\n{"at": "1970-01-01T00:00:03Z"}\n{}\n')
    with pytest.raises(UsageError):
        Play(Recording(path=path, format=Format.JSONL), Speed())
    play = Play(Recording(path=path, format=Format.JSONL, column="at"), Speed())
    assert [due for due, _ in take(play, 5000)] == [0, 2000, 2000]


@pytest.mark.parametrize("written", [Format.TIMED_GRAPHS, Format.TIMED_FILES])
def test_every_form_is_played_as_timed_lines(tmp_path: Path, written: Format) -> None:
    (tmp_path / "a.trig").write_text(
        "<urn:g> { <urn:a> <urn:b> 1, 2 } <urn:g> <http://www.w3.org/ns/prov#generatedAtTime> 7000 ."
        "<urn:h> { <urn:a> <urn:b> 3 }"
    )
    step = 1000 if written is Format.TIMED_FILES else None
    play = Play(Recording(path=tmp_path, format=written, step_ms=step), Rate(10))
    (batch,) = [batch for batch, _ in play.take(10_000)]
    texts = [text for text in batch.column("value").to_pylist() if text[0].isdigit()]
    (tmp_path / "b.stream").write_text("\n".join(texts))
    again = list(read_elements(tmp_path / "b.stream"))
    if written is Format.TIMED_GRAPHS:
        assert [(e.event_time, len(e.quads)) for e in again] == [(7000, 2)]
        assert batch.column("reason").to_pylist() == [None, "the graph <urn:h> has no usable time"]
    else:
        assert {e.event_time for e in again} == {0}
        assert sum(len(e.quads) for e in again) == 4


paces = st.one_of(
    st.builds(Speed, st.floats(0.1, 100)),
    st.builds(Rate, st.floats(0.1, 1000)),
    st.builds(Burst, st.integers(1, 3), st.builds(timedelta, milliseconds=st.integers(1, 500))),
)


@given(paces, st.lists(st.integers(0, 3000), max_size=6), st.integers(0, 4), st.booleans())
def test_when_one_looks_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, pace: Pace, looks: list[int], skipped: int, loop: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "looks.stream"
    path.write_text("".join(line(t, "a") for t in (0, 10, 10, 500, 400, 2500)))
    recording = Recording(path=path, format=Format.TIMED_LINES)
    whole = take(Play(recording, pace, loop=loop, limit=10), 2**60)
    assert all(a[0] <= b[0] for a, b in pairwise(whole))
    play = Play(recording, pace, loop=loop, limit=10)
    play.skip(skipped)
    pieces: Taken = []
    for look in [*sorted(looks), 2**60]:
        taken = take(play, look)
        assert all(due <= look for due, _ in taken)
        pieces += taken
    assert pieces == whole[skipped:]


def test_playing_out_waits_for_what_is_due_and_sends_once_a_tick(recording: Recording) -> None:
    clock = ManualClock(1_000_000)
    sent: list[tuple[int, int]] = []
    counts = play_to(
        Play(recording, Speed(1.0)),
        lambda texts: sent.append((clock.now_ms() - 1_000_000, len(texts))),
        now_ms=clock.now_ms,
        wait_until=clock.wait_until,
        tick_ms=300,
    )
    assert sent == [(0, 1), (300, 2), (2000, 1)]
    assert counts == (4, 1)
