"""Spark's progress reports are summed, and shown with and without a terminal."""

import io

import pytest
from rich.console import Console

from quadweir.commands import dashboard
from quadweir.commands.dashboard import DEMO_METRICS, Dashboard, ProgressMeter


def progress(batch: int, rows: tuple[int, ...], triples: int = 0, **more):
    return {
        "batchId": batch,
        "durationMs": {"triggerExecution": 100 + batch},
        "sources": [{"numInputRows": count} for count in rows],
        "eventTime": {},
        "observedMetrics": {DEMO_METRICS: {"triples": triples, "used": sum(rows) - 1}},
    } | more


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def screen(monkeypatch):
    """Let the dashboard write here; `terminal` decides whether it is a terminal."""

    def make(terminal: bool) -> io.StringIO:
        written = io.StringIO()
        console = Console(file=written, force_terminal=terminal, width=100, height=40)
        monkeypatch.setattr(dashboard, "stderr_console", lambda: console)
        return written

    return make


def test_a_meter_adds_batches_up_once_each():
    meter = ProgressMeter(names=("a", "b"))
    for report in (progress(0, (2, 3), 50), progress(0, (2, 3), 50), progress(1, (1, 0), 10)):
        meter.add(report, 1.0)
    assert meter.records == {"a": 3, "b": 3}
    assert (meter.triples, meter.bad, meter.batch_ms) == (60, 2, [100, 101])


def test_a_batch_that_only_moved_the_watermark_counts_as_none():
    meter = ProgressMeter(names=("a",))
    meter.add(progress(0, (2,), eventTime={"watermark": "1970-01-01T00:00:00.000Z"}), 1.0)
    assert meter.watermark is None
    meter.add(progress(1, (0,), eventTime={"watermark": "2026-03-03T06:00:00.000Z"}), 2.0)
    assert meter.watermark == "2026-03-03T06:00:00.000Z"
    assert len(meter.batch_ms) == 1


def test_the_batch_after_idle_time_counts():
    """While nothing arrives, Spark reports the number of the next batch."""
    meter = ProgressMeter(names=("a",))
    for report in (progress(0, (2,)), progress(1, (0,)), progress(1, (0,)), progress(1, (5,))):
        meter.add(report, 1.0)
    assert (meter.records, len(meter.batch_ms)) == ({"a": 7}, 2)


def test_rates_are_those_of_the_last_seconds():
    meter = ProgressMeter(names=("a",))
    meter.add(progress(0, (1_000_000,), 5_000_000), 0.0)
    for second in range(20, 31):
        meter.add(progress(second, (10,), 50), float(second))
    assert meter.rates() == (10.0, 50.0)


def test_batches_further_apart_than_that_still_give_a_rate():
    meter = ProgressMeter(names=("a",))
    assert meter.rates() == (0.0, 0.0)
    meter.add(progress(0, (10,), 50), 0.0)
    meter.add(progress(1, (200,), 1000), 20.0)
    assert meter.rates() == (10.0, 50.0)


def test_batches_that_are_heard_of_together_count_as_one():
    meter = ProgressMeter(names=("a",))
    meter.add(progress(0, (10,), 50), 1.0)
    for batch in range(1, 4):
        meter.add(progress(batch, (20,), 100), 3.0 + batch / 1e6)
    records, _ = meter.rates()
    assert records == pytest.approx(30.0, rel=1e-3)


def test_a_batch_of_which_nothing_could_be_used_is_all_bad():
    meter = ProgressMeter(names=("a",))
    meter.add(
        progress(0, (7,), observedMetrics={DEMO_METRICS: {"triples": None, "used": None}}), 1.0
    )
    assert (meter.total_records, meter.triples, meter.bad) == (7, 0, 7)


def test_off_a_terminal_a_plain_line_comes_now_and_then(screen):
    written, clock = screen(terminal=False), Clock()
    with Dashboard("title", ["a"], clock=clock) as board:
        board.show([])
        for batch in range(30):
            clock.now += 0.1
            board.show([progress(batch, (10,), 50)])
    lines = written.getvalue().splitlines()
    assert len(lines) == 2
    assert "100 records/s" in lines[1]
    assert "500 triples/s" in lines[1]
    assert "\x1b" not in written.getvalue()


def test_on_a_terminal_everything_is_in_sight_and_the_cursor_comes_back(screen):
    written = screen(terminal=True)
    with (
        pytest.raises(RuntimeError),
        Dashboard("sensors", ["a"], prefixes={"x": "urn:x:"}) as board,
    ):
        board.meter.latest = '<urn:x:a> <urn:x:b> "\x1b[2J" .'
        board.show([progress(0, (10,), 50)])
        raise RuntimeError
    shown = written.getvalue()
    for text in (
        "sensors",
        "records in",
        "triples out",
        "watermark",
        "not yet",
        "x:a x:b",
        "\\x1b",
    ):
        assert text in shown
    assert "\x1b[2J" not in shown
    assert shown.rstrip().endswith("\x1b[?25h")
