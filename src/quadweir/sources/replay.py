"""Recorded files played as a live source: which record is due when, and the records that are due.

When a record is due follows from the start of the play and the pace alone, never from when somebody
looks; so a play that is taken up again, here or in another process, goes on as if it had never
stopped. `replaysource.py` hands the records to Spark, `quadweir replay` to anybody else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, assert_never, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quadweir.errors import DataError, UsageError
from quadweir.sources import timedlines
from quadweir.sources.declare import Burst, Format, Pace, Rate, Speed
from quadweir.sources.lines import MAX_LINE_BYTES, Fault
from quadweir.sources.plausible import without_jumps
from quadweir.sources.recordfiles import column_time, read_records
from quadweir.sources.streamfiles import (
    FILE_SHIFT,
    DeadLetter,
    Element,
    ElementReader,
    StreamForm,
    list_files,
)
from quadweir.sources.timedlines import FilePart

if TYPE_CHECKING:
    Longs = npt.NDArray[np.int64]

UNITS: Final = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("place", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("time", pa.int64()),
        pa.field("value", pa.string()),
        pa.field("reason", pa.string()),
    ]
)
"""What is played in one piece: an element as timed lines, or a record. A row with a reason is no
usable record; it is played all the same, so that whoever receives it can keep it."""

_BATCH_ROWS: Final = 8192


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The files to play and how they are written.

    Attributes:
        path: a file or a folder.
        format: how they are written.
        pattern: which files of a folder.
        start: timed files: the time of the first.
        step_ms: timed files: from one to the next.
        predicate: timed graphs and files: where each element's time stands.
        column: records: the field with the time; only a play by speed needs it.
        max_line_bytes: longer lines are faults.
        ahead_ms: how far ahead of its neighbours a unit may be (S4); None for any time.
    """

    path: Path
    format: Format
    pattern: str = "*"
    start: int = 0
    step_ms: int | None = None
    predicate: str | None = None
    column: str | None = None
    max_line_bytes: int = MAX_LINE_BYTES
    ahead_ms: int | None = None

    @property
    def is_timed(self) -> bool:
        """Tell whether its records say when they were made."""
        return self.format.is_stream_file or self.column is not None

    def units(self) -> Iterator[pa.RecordBatch]:
        """Everything once, in the order of the files, as batches of `UNITS`.

        Raises:
            SourceError: a file cannot be read.
        """
        units = self._units()
        return units if self.ahead_ms is None else without_jumps(units, self.ahead_ms)

    def _units(self) -> Iterator[pa.RecordBatch]:
        if self.format is Format.TIMED_FILES and self.step_ms is None and self.predicate is None:
            raise UsageError("timed files need a step", hint="Give a step, or a predicate.")
        for index, path in enumerate(list_files(self.path, self.pattern)):
            if self.format is Format.TIMED_LINES:
                yield from _timed_lines(path, index, self.max_line_bytes)
            elif self.format.is_stream_file:
                yield from _in_batches(self._elements(path, index))
            else:
                yield from _in_batches(self._records(path, index))

    def _elements(self, path: Path, index: int) -> Iterator[tuple[Any, ...]]:
        letters: list[DeadLetter] = []
        reader = ElementReader(
            form=StreamForm(self.format),
            stream="",
            start=self.start,
            step_ms=self.step_ms,
            predicate=self.predicate,
            on_bad=letters.append,
            max_line_bytes=self.max_line_bytes,
        )
        place = index << FILE_SHIFT

        def spent() -> Iterator[tuple[Any, ...]]:
            for letter in letters:
                yield (letter.source, letter.place, place, None, letter.record, letter.reason)
            letters.clear()

        for element in reader.read(path, index):
            yield from spent()
            place = element.position
            value = timed_text(element)
            yield (str(path), f"element {place}", place, element.event_time, value, None)
        yield from spent()

    def _records(self, path: Path, index: int) -> Iterator[tuple[Any, ...]]:
        is_csv = self.format is Format.CSV
        for record in read_records(path, is_csv=is_csv, max_line_bytes=self.max_line_bytes):
            place = (str(path), f"line {record.number}", (index << FILE_SHIFT) + record.number)
            if isinstance(record, Fault):
                yield (*place, None, record.excerpt, record.reason)
                continue
            time = None
            if self.column is not None:
                try:
                    time = column_time(record.text, self.column, is_csv=is_csv)
                except DataError as error:
                    yield (*place, None, record.text, error.message)
                    continue
            yield (*place, time, record.text, None)


def timed_text(element: Element) -> str:
    r"""An element as timed lines, joined by line feeds.

    >>> from quadweir.terms import IRI, Quad
    >>> s = IRI("urn:s")
    >>> timed_text(Element("", 5, 0, (Quad(s, s, s), Quad(s, s, s, s))))
    '5 <urn:s> <urn:s> <urn:s> .\n5 <urn:s> <urn:s> <urn:s> <urn:s> .'
    """
    return "\n".join(f"{element.event_time} {quad}" for quad in element.quads)


def _in_batches(table: Iterator[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    while chunk := list(itertools.islice(table, _BATCH_ROWS)):
        columns = zip(*chunk, strict=True)
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, UNITS, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=UNITS)


def _timed_lines(path: Path, index: int, max_line_bytes: int) -> Iterator[pa.RecordBatch]:
    """Lines as they stand, those of one graph together; no term is parsed for that."""
    held: pa.RecordBatch | None = None
    for batch in timedlines.read_texts(FilePart(str(path), index), max_line_bytes=max_line_bytes):
        if batch.num_rows == 0:
            continue
        if held is not None:
            joined = pa.Table.from_batches([held, batch]).combine_chunks()
            batch = joined.to_batches()[0]
        run = batch.column("run").to_numpy()
        # The last element may go on in the next block.
        last = int(np.searchsorted(run, run[-1]))
        held = batch.slice(last)
        if last:
            yield _united(batch.slice(0, last))
    if held is not None:
        yield _united(held)


def _united(batch: pa.RecordBatch) -> pa.RecordBatch:
    values = batch.column("value")
    run = batch.column("run").to_numpy()
    heads = np.flatnonzero(np.concatenate(([True], run[1:] != run[:-1])))
    if len(heads) < len(run):
        texts = values.to_pylist()
        bounds = [*heads.tolist(), len(run)]
        values = pa.array(
            ["\n".join(texts[a:b]) for a, b in itertools.pairwise(bounds)], pa.string()
        )
        batch = batch.take(pa.array(heads))
    place = pc.binary_join_element_wise("line ", batch.column("line").cast(pa.string()), "")
    columns = [
        batch.column("source"),
        place,
        batch.column("run"),
        batch.column("event_time"),
        values,
        batch.column("reason"),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=UNITS)


def due_ms(pace: Pace, numbers: Longs, times: Longs) -> Longs:
    """When units are due, in milliseconds after the start of the play.

    Args:
        pace: how fast.
        numbers: the units' numbers from 0.
        times: their event times less that of the first unit; they must not fall.

    >>> due_ms(Rate(2.0), np.arange(3), np.zeros(3, dtype=np.int64)).tolist()
    [0, 500, 1000]
    """
    match pace:
        case Speed(factor=factor):
            return np.ceil(times / factor).astype(np.int64)
        case Rate(per_second=rate):
            return np.ceil(numbers * 1000 / rate).astype(np.int64)
        case Burst(count=count, every=every):
            return numbers // count * (every // timedelta(milliseconds=1))
        case _:
            assert_never(pace)


class Play:
    """A recording being played: takes what is due, knows when the next is.

    Args:
        recording: the files.
        pace: how fast.
        loop: begin again at the end, with later times.
        limit: stop after so many units.

    Raises:
        UsageError: the pace follows event times, and the recording has none.
    """

    def __init__(
        self, recording: Recording, pace: Pace, *, loop: bool = False, limit: int | None = None
    ) -> None:
        if isinstance(pace, Speed) and not recording.is_timed:
            raise UsageError(
                f"{recording.format} records have no times to play by",
                hint="Name the column of the time, or choose a rate or a burst.",
            )
        self.recording = recording
        self.pace = pace
        self.loop = loop
        self.limit = limit
        self.played = 0
        self._batches = self._passes()
        self._batch: pa.RecordBatch | None = None
        self._due: Longs = np.zeros(0, dtype=np.int64)
        self._at = 0

    @property
    def is_over(self) -> bool:
        """Tell whether nothing is left to play."""
        if self.limit is not None and self.played >= self.limit:
            return True
        return not self._fill()

    def next_due_ms(self) -> int | None:
        """When the next unit is due, in milliseconds after the start; None at the end."""
        return None if self.is_over else int(self._due[self._at])

    def take(
        self, elapsed_ms: int, most: int | None = None
    ) -> Iterator[tuple[pa.RecordBatch, Longs]]:
        """Take the units that are due by now, and when each was due."""
        left = most if most is not None else 2**62
        while left > 0 and not self.is_over:
            assert self._batch is not None
            end = int(np.searchsorted(self._due, elapsed_ms, side="right"))
            if self.limit is not None:
                end = min(end, self._at + self.limit - self.played)
            end = min(end, self._at + left)
            count = end - self._at
            if count <= 0:
                return
            taken = self._batch.slice(self._at, count), self._due[self._at : end]
            self._at = end
            self.played += count
            left -= count
            yield taken

    def skip(self, count: int) -> None:
        """Pass over units that have been played before."""
        for _ in self.take(2**62, count):
            pass

    def _fill(self) -> bool:
        while self._batch is None or self._at >= self._batch.num_rows:
            found = next(self._batches, None)
            if found is None:
                return False
            self._batch, self._due = found
            self._at = 0
        return True

    def _passes(self) -> Iterator[tuple[pa.RecordBatch, Longs]]:
        """The batches of every pass with what they are due at."""
        number = 0
        first: int | None = None
        latest = 0
        shift = files = 0
        for repeat in itertools.count():
            began = number
            for batch in self.recording.units():
                times, known = _times(batch)
                if first is None and known:
                    first = int(times[0])
                # Out of order or not, the play goes forward.
                offsets = times + shift - (first or 0) if known else times
                offsets = np.maximum.accumulate(np.maximum(offsets, latest))
                numbers = np.arange(number, number + batch.num_rows, dtype=np.int64)
                number += batch.num_rows
                latest = int(offsets[-1])
                files = max(files, int(batch.column("position").to_numpy()[-1] >> FILE_SHIFT) + 1)
                played = batch if repeat == 0 else self._again(batch, shift, repeat * files)
                yield played, due_ms(self.pace, numbers, offsets)
            if not self.loop or number == began:
                return
            # The next pass begins one ordinary gap after the end of this one.
            shift = latest + max(1, latest // max(1, number - 1))

    def _again(self, batch: pa.RecordBatch, shift: int, files: int) -> pa.RecordBatch:
        """A batch of a later pass: later positions and, where they are ours to write, times."""
        positions = pa.array(batch.column("position").to_numpy() + (files << FILE_SHIFT))
        times = pc.add(batch.column("time"), shift)
        values = batch.column("value")
        if self.recording.format.is_stream_file:
            texts = zip(values.to_pylist(), times.to_pylist(), strict=True)
            values = pa.array([_retimed(text, time) for text, time in texts], pa.string())
        columns = [batch.column(0), batch.column(1), positions, times, values, batch.column(5)]
        return pa.RecordBatch.from_arrays(columns, schema=UNITS)


def _times(batch: pa.RecordBatch) -> tuple[Longs, bool]:
    """The times of units, what has none having its neighbour's; and whether any has one."""
    times = batch.column("time")
    known = times.null_count < len(times)
    filled = pc.fill_null(pc.fill_null_backward(pc.fill_null_forward(times)), 0)
    return np.asarray(filled.to_numpy(), dtype=np.int64), known


def _retimed(text: str | None, time: int | None) -> str | None:
    if text is None or time is None:
        return text
    cut = (line.split(None, 1) for line in text.split("\n"))
    return "\n".join(f"{time} {parts[1] if len(parts) > 1 else ''}" for parts in cut)


def play_to(
    play: Play,
    send: Callable[[list[str]], None],
    *,
    now_ms: Callable[[], int],
    wait_until: Callable[[int], None],
    tick_ms: int,
    started_ms: int | None = None,
) -> tuple[int, int]:
    """Play to the end, handing over what is due at most once a tick.

    Returns:
        How many units were sent, and how many were left out because they are of no use.
    """
    started = now_ms() if started_ms is None else started_ms
    sent = useless = 0
    while (due := play.next_due_ms()) is not None:
        wait_until(started + due)
        now = now_ms()
        texts: list[str] = []
        for batch, _ in play.take(now - started):
            good = batch.filter(pc.is_null(batch.column("reason")))
            texts.extend(good.column("value").to_pylist())
            useless += batch.num_rows - good.num_rows
        if texts:
            send(texts)
            sent += len(texts)
        if not play.is_over:
            wait_until(now + tick_ms)
    return sent, useless
