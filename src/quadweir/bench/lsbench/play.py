"""Plays the files of a network live: all streams together at an even rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from quadweir.bench.lsbench.parameters import STREAMS

_TIME_DIGITS: Final = 13


def due_lines(folder: Path, rate: float, started_ms: int) -> Iterator[tuple[int, str, str]]:
    """The lines of all streams in the order of time: when each is due, its stream, its text.

    A line is due as soon as all lines before it were sent at that rate; the lines of one event are
    due together. The due time is the event time.
    """
    due = before = -1
    last = ""
    for place, (stream, time, statement) in enumerate(_in_order(folder)):
        if time != before or stream != last:
            due = started_ms + int(place * 1000 / rate)
            before, last = time, stream
        yield due, stream, f"{due} {statement}"


def _in_order(folder: Path) -> Iterator[tuple[str, int, str]]:
    """All lines, day by day: the streams of a day are read together and put in order."""
    for first in sorted((folder / STREAMS[0]).glob("*.stream")):
        lines: list[tuple[int, int, str]] = []
        for number, stream in enumerate(STREAMS):
            with (folder / stream / first.name).open(encoding="utf-8") as file:
                for line in file:
                    lines.append((int(line[:_TIME_DIGITS]), number, line[_TIME_DIGITS + 1 : -1]))
        # Stable: the lines of an event stay as they are.
        lines.sort(key=lambda line: line[:2])
        for time, number, statement in lines:
            yield STREAMS[number], time, statement


def play(
    folder: Path,
    rate: float,
    senders: Mapping[str, Callable[[list[str]], None]],
    *,
    now_ms: Callable[[], int],
    wait_until: Callable[[int], None],
    tick_ms: int,
) -> int:
    """Play a network to the end, sending the due lines once a tick; return the number of lines."""
    sent = 0
    waiting: dict[str, list[str]] = {stream: [] for stream in STREAMS}
    started = now_ms()
    tick = started
    for due, stream, text in due_lines(folder, rate, started):
        while due > tick:
            sent += _send(waiting, senders)
            tick = max(tick + tick_ms, now_ms())
            wait_until(tick)
        waiting[stream].append(text)
    return sent + _send(waiting, senders)


def _send(waiting: dict[str, list[str]], senders: Mapping[str, Callable[[list[str]], None]]) -> int:
    count = 0
    for stream, lines in waiting.items():
        if lines:
            senders[stream](lines)
            count += len(lines)
            waiting[stream] = []
    return count
