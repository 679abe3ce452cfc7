"""Blobs of matches to the events of a shard, without late and repeated statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final, final

import numpy as np
import pyarrow as pa

from quadweir import rows
from quadweir.kernel.arrays import FOREVER, Ints
from quadweir.kernel.clocks import Elements
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.oneway import OneWay
from quadweir.kernel.shard import Shard
from quadweir.kernel.sharedshard import SharedShard
from quadweir.plan.matchtests import MatchTest
from quadweir.runtime.match.bits import word_of
from quadweir.runtime.match.rowform import HASH, VALUES
from quadweir.runtime.wire.deadletters import late_letter
from quadweir.runtime.wire.pack import ELEMENT_COLUMNS, SHARD, Spans, read_spans

# Elements in runs longer than this are compared by hashing.
_NEAR: Final = 4
_MOST_RUNS: Final = 256


@final
@dataclass
class Late:
    """The late matches of some blobs: how many, and their dead letters if they are wanted."""

    matches: int = 0
    letters: list[str] = field(default_factory=list)


@final
@dataclass(frozen=True)
class ArrivedRows:
    """The rows of some blobs, before anyone asks which of them are late.

    Attributes:
        table: the rows; None if there are none.
        spans: the event times of each stream that each blob carries.
        is_first: whether the blobs are those of the first shard.
    """

    table: pa.Table | None
    spans: tuple[Spans, ...]
    is_first: bool

    @staticmethod
    def of(blobs: Iterable[bytes]) -> ArrivedRows:
        tables, spans, is_first = [], [], True
        for blob in blobs:
            reader = pa.ipc.open_stream(blob)
            is_first = reader.schema.metadata[SHARD] == b"0"
            spans.append(read_spans(reader.schema))
            table = reader.read_all()
            if table.num_rows:
                tables.append(table.replace_schema_metadata())
        return ArrivedRows(pa.concat_tables(tables) if tables else None, tuple(spans), is_first)

    def passing(self, masks: Mapping[str, int]) -> ArrivedRows:
        """Return only the rows that have one of these bits."""
        if self.table is None:
            return self
        some = reduce(
            np.bitwise_or,
            (self.table.column(name).to_numpy() & mask for name, mask in masks.items()),
            np.zeros(self.table.num_rows, dtype=np.int64),
        )
        kept = self.table.filter(pa.array(some != 0)) if not some.all() else self.table
        return ArrivedRows(kept if kept.num_rows else None, self.spans, self.is_first)

    def later_than(self, instant: int) -> ArrivedRows:
        """Return only what is later than an instant."""
        spans = tuple(
            {
                stream: (max(first, instant + 1), last)
                for stream, (first, last) in each.items()
                if last > instant
            }
            for each in self.spans
        )
        table = self.table
        if table is not None:
            is_later = table.column(rows.EVENT_TIME).to_numpy() > instant
            table = table if is_later.all() else table.filter(pa.array(is_later))
        has_rows = table is not None and table.num_rows
        return ArrivedRows(table if has_rows else None, spans, self.is_first)


@final
class Unpacker:
    """Turns rows into the events of a shard.

    Args:
        shard: the shard.
        wanted: the tests that matched the rows.
        numbers: the number of each test in the bits of a row; default: their order.
        letters: whether to write dead letters about late statements.
    """

    def __init__(
        self,
        shard: Shard | SharedShard,
        wanted: Sequence[MatchTest],
        *,
        numbers: Sequence[int] | None = None,
        letters: bool = False,
    ) -> None:
        self._shard = shard
        self._wanted = tuple(wanted)
        self._numbers = tuple(range(len(self._wanted)) if numbers is None else numbers)
        self._letters = letters
        self._waiting: pa.Table | None = None
        self._sources: dict[str, list[int]] = defaultdict(list)
        for place, source in enumerate(shard.sources):
            self._sources[source.stream].append(place)
        self._bare = [
            (place, shard.sources.index(leaf.source))
            for place, leaf in enumerate(shard.leaves)
            if leaf.pattern is None
        ]

    def events(
        self, blobs: Iterable[bytes], *, after: int, until: int = FOREVER
    ) -> tuple[Events, Late]:
        """Read blobs; elements not later than `after` are late, and left out.

        A triple that an element carries twice counts once (W8). That is known only when all rows of an
        instant are there: rows later than `until` wait for the next call.
        """
        return self.events_of(ArrivedRows.of(blobs), after=after, until=until)

    def events_of(
        self, arrived: ArrivedRows, *, after: int, until: int = FOREVER
    ) -> tuple[Events, Late]:
        """Return the events of rows, as `events` does."""
        seen: dict[int, tuple[int, int]] = {}
        for spans in arrived.spans:
            for stream, (first, last) in spans.items():
                if last <= after:
                    continue
                for place in self._sources[stream]:
                    known = seen.get(place, (first, last))
                    seen[place] = (max(min(first, known[0]), after + 1), max(last, known[1]))
        tables = [each for each in (self._waiting, arrived.table) if each is not None]
        self._waiting = None
        if not tables:
            return Events(seen=seen), Late()
        table = pa.concat_tables(tables)
        if until < FOREVER:
            is_later = table.column(rows.EVENT_TIME).to_numpy() > until
            if is_later.any():
                self._waiting = table.filter(pa.array(is_later))
                table = table.filter(pa.array(~is_later))
        matches, elements, late = self._by_leaf(table, after, arrived.is_first)
        return Events(matches, elements, seen), late

    def _by_leaf(
        self, table: pa.Table, after: int, is_first: bool
    ) -> tuple[dict[int, MatchColumns], dict[int, Elements], Late]:
        """Return the matches of each leaf."""
        at, position = (table.column(name).to_numpy() for name in ELEMENT_COLUMNS)
        values = [
            self._shard.dictionary.encode(table.column(name))
            if name in table.column_names
            else None
            for name in VALUES
        ]
        matches: dict[int, MatchColumns] = {}
        elements: dict[int, Elements] = {}
        late = Late()
        for number, test in zip(self._numbers, self._wanted, strict=True):
            name, bit = word_of(number)
            mine = (table.column(name).to_numpy() >> bit) & 1 != 0
            chosen = np.flatnonzero(mine) if not mine.all() else slice(None)
            times, positions = at[chosen], position[chosen]
            if not len(times):
                continue
            cells = {place: values[place][chosen] for place in test.needed}  # type: ignore[index]
            triples = list(cells.values())
            if test.elements and test.grid is None:
                # An element has no terms: its triples are distinguished by a hash.
                triples = [table.column(HASH).to_numpy()[chosen]]
            kept = _once(times, positions, triples)
            is_late = times <= after
            if is_late.any():
                # If every shard gets the row, one of them counts it.
                if not test.elements and (test.key is not None or is_first):
                    lost = np.flatnonzero(is_late if kept is None else is_late & kept)
                    late.matches += len(lost)
                    if self._letters:
                        places = np.flatnonzero(mine)[lost]
                        late.letters += _letters(table.take(pa.array(places)), test, after)
                kept = ~is_late if kept is None else ~is_late & kept
            if kept is not None:
                times, positions = times[kept], positions[kept]
                cells = {place: each[kept] for place, each in cells.items()}
            if not len(times):
                continue
            if test.elements:
                elements.update(dict.fromkeys(test.elements, _elements(times, positions)))
            for leaf, parts in test.leaves:
                columns = [
                    cells[part] if isinstance(part, int) else self._everywhere(part, len(times))
                    for part in parts
                ]
                match = MatchColumns(times, positions, columns)
                matches[leaf] = _both(matches[leaf], match) if leaf in matches else match
        for leaf, source in self._bare:
            if source in elements:
                heard = elements[source]
                matches[leaf] = MatchColumns(heard.time, heard.position, [])
        return matches, elements, late

    def _everywhere(self, spelling: str, count: int) -> Ints:
        """Return the number of a term, once for each row."""
        return np.repeat(self._shard.dictionary.numbers((spelling,)), count)


def _letters(table: pa.Table, test: MatchTest, watermark: int) -> list[str]:
    """Return the dead letters of late statements that passed a test."""
    at, position = (table.column(name).to_pylist() for name in ELEMENT_COLUMNS)
    terms = []
    for place, constant in enumerate(test.constants if test.is_named else test.constants[:3]):
        spelled = None if constant is None else str(constant)
        if (test.way is None and spelled is not None) or VALUES[place] not in table.column_names:
            terms.append([spelled] * table.num_rows)
        else:
            terms.append(table.column(VALUES[place]).to_pylist())
    return [
        late_letter(test.stream, time, place, each, watermark)
        for time, place, each in zip(at, position, zip(*terms, strict=True), strict=True)
    ]


def _both(one: MatchColumns, other: MatchColumns) -> MatchColumns:
    """Merge the matches of two tests; a triple that an element derives twice counts once (N1)."""
    pairs = zip(
        (one.time, one.position, *one.columns),
        (other.time, other.position, *other.columns),
        strict=True,
    )
    times, positions, *columns = (np.concatenate(each) for each in pairs)
    kept = _once(times, positions, columns)
    if kept is not None:
        times, positions, *columns = (each[kept] for each in (times, positions, *columns))
    return MatchColumns(times, positions, columns)


def _elements(times: Ints, positions: Ints) -> Elements:
    """Count the triples of each element."""
    order = np.lexsort((positions, times))
    times, positions = times[order], positions[order]
    is_first = np.append(True, (times[1:] != times[:-1]) | (positions[1:] != positions[:-1]))
    starts = np.flatnonzero(is_first)
    return Elements(times[starts], positions[starts], np.diff(np.append(starts, len(times))))


def _once(times: Ints, positions: Ints, columns: Sequence[Ints]) -> np.ndarray | None:
    """Return which rows to keep so that none is repeated; None to keep all.

    Rows of one element usually lie together. Then it is enough to compare neighbours.
    """
    if _lies_together(positions):
        same = (positions[1:] == positions[:-1]) & (times[1:] == times[:-1])
        if not same.any():
            return None
        if not _in_row(same, _NEAR):
            again = np.zeros(len(times), dtype=bool)
            for step in range(1, _NEAR):
                equal = positions[step:] == positions[:-step]
                for column in (times, *columns):
                    equal &= column[step:] == column[:-step]
                again[step:] |= equal
            return ~again if again.any() else None
    cells = np.column_stack((times, positions, *columns))
    index = OneWay(cells.shape[1], capacity=len(cells))
    _, became = index.transitions(cells, np.ones(len(cells), dtype=np.int64))
    return None if became.all() else became > 0


def _lies_together(positions: Ints) -> bool:
    """Return whether equal positions must be neighbours: a few rising runs that do not overlap."""
    falls = np.flatnonzero(positions[1:] < positions[:-1])
    if len(falls) > _MOST_RUNS:
        return False
    first = positions[np.append(0, falls + 1)]
    last = positions[np.append(falls, len(positions) - 1)]
    order = np.argsort(first)
    return bool((first[order][1:] > last[order][:-1]).all())


def _in_row(flags: np.ndarray, count: int) -> bool:
    """Return whether so many consecutive flags are set."""
    size = max(0, len(flags) - count + 1)
    found = np.logical_and.reduce([flags[at : at + size] for at in range(count)])
    return bool(found.any())
