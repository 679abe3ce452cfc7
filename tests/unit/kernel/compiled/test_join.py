"""The compiled functions of a join against lists of rows and all combinations of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from changing_rows import Rows
from compiled_twins import compares, ints
from quadweir.kernel import joinprefetch, joinresults, probing
from quadweir.kernel.arrays import FOREVER
from quadweir.kernel.clocks import TimeClock
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.joinrecords import EVENTS_AHEAD, buffer_at, frame_at
from quadweir.kernel.memory import address, words
from quadweir.kernel.multijoin import Join
from quadweir.kernel.relation import Delta, Operator
from quadweir.kernel.ringentries import find_one
from quadweir.kernel.spellings import ZERO
from quadweir.kernel.tables import ENTER, FIRST_VALUE, LEAVE
from quadweir.kernel.timewindow import TimedLeaf
from quadweir.kernel.window import Matches
from quadweir.terms import IRI, Variable

SHAPES = (
    (("a",), ("a",)),
    (("a", "b"), ("b", "c"), ("c", "a")),
    (("a",), ("a", "b"), ("b",), ("c",)),
)
WINDOW = 6

# What takes records and pointers is called through functions that take arrays.


@njit
def call_row_of(joins: Any, k: Any, place: Any, column: Any) -> Any:
    return joinresults.row_of(buffer_at(joins[0].buffers, k), place)[column]


@njit
def call_list_of(joins: Any, k: Any, place: Any) -> Any:
    return joinresults.list_of(buffer_at(joins[0].buffers, k), place)[0]


@njit
def call_number_of(joins: Any, k: Any, place: Any) -> Any:
    return joinresults._number_of(buffer_at(joins[0].buffers, k), place)


@njit
def call_bind_first(joins: Any, k: Any, place: Any, bound: Any) -> None:
    joinprefetch.bind_first(joins[0], k, place, words(bound))


@njit
def call_bind(joins: Any, depth: Any, k: Any, row: Any) -> Any:
    return probing._bind(joins[0], depth, k, words(row))


@njit
def call_insert(joins: Any, k: Any, place: Any) -> None:
    probing._insert(joins[0], k, place)


@njit
def call_remove(joins: Any, k: Any, place: Any) -> None:
    probing._remove(joins[0], k, place)


@njit
def call_full_index(joins: Any, k: Any) -> Any:
    return probing._full_index(joins[0], k)


@njit
def call_choose(joins: Any, depth: Any, chosen: Any) -> Any:
    return probing._choose(joins[0], depth, chosen)


@njit
def call_arrive(joins: Any, t: Any, k: Any, place: Any) -> Any:
    return probing._arrive(joins[0], t, k, place)


@njit
def call_try_next(joins: Any, depth: Any) -> Any:
    return probing._try_next(joins[0], depth)


@njit
def left_in(joins: Any, depth: Any) -> Any:
    return frame_at(joins[0].frames, depth).left


@njit
def call_emit(joins: Any, t: Any, leave: Any) -> None:
    joinresults.emit(joins[0], t, leave)


@njit
def call_change(joins: Any, t: Any, sign: Any, row: Any, leave: Any) -> None:
    joinresults._change(joins[0], t, sign, row, leave)


@njit
def call_invalidate(joins: Any, t: Any, k: Any, place: Any) -> Any:
    return joinresults.invalidate(joins[0], t, k, place)


@njit
def call_look_ahead(joins: Any, event: Any) -> None:
    joinprefetch.look_ahead(joins[0], event)


@njit
def call_request_entries(joins: Any, event: Any) -> None:
    joinprefetch._request_entries(joins[0], event)


@njit
def call_request_matches(joins: Any, event: Any) -> None:
    joinprefetch._request_matches(joins[0], event)


@njit
def call_request_row(joins: Any, k: Any, place: Any) -> None:
    joinprefetch.request_row(buffer_at(joins[0].buffers, k), place)


@njit
def call_request_result(joins: Any, k: Any, place: Any, nth: Any) -> None:
    joinprefetch._request_result(joins[0], k, place, nth)


class Machine:
    """A join whose inputs have arrived and are not yet joined, described to compiled code.

    `rows` has for each input its mappings as (time, values); `places` has where they lie.
    """

    def __init__(self, shape: Any, inputs: list[list[tuple[int, tuple[int, ...]]]], kind: str):
        self.shape, self.rows, self.kind = shape, inputs, kind
        self.dictionary = Dictionary()
        deltas = self._copied() if kind == "copied" else self._probed()
        join = self.join
        for buffer, delta in zip(join._buffers, deltas, strict=True):
            buffer.take(delta)
        self.places = [
            buffer.places_of(delta.row).tolist()
            for buffer, delta in zip(join._buffers, deltas, strict=True)
        ]
        self.numbers = [delta.row.tolist() for delta in deltas]
        for buffer, places, mappings in zip(join._buffers, self.places, inputs, strict=True):
            # What `probing.advance` writes where rows are copied.
            buffer.cells[places, ENTER] = [time for time, _ in mappings]
        t, sign = (np.concatenate([each[n] for each in deltas]) for n in range(2))
        ends = np.cumsum([len(each.t) for each in deltas])
        places = ints([place for each in self.places for place in each])
        self.events = np.empty((4, len(t)), dtype=np.int64)
        probing.merge_by_time(t, sign, places, ends, self.events)
        self.joins = join._describe(self.events)
        join.output.reserve(600)
        self.output = np.zeros((4, 600), dtype=np.int64)
        self.joins["free"] = join.output.free_count
        self.joins["result_cells"] = address(join.output.cells)
        self.joins["free_rows"] = address(join.output.free)
        self.joins["output"] = address(self.output)
        self.joins["room"] = self.output.shape[1]
        self.joins["work"] = 10**9

    def _probed(self) -> list[Delta]:
        clock = TimeClock(0, WINDOW)
        leaves = []
        for names, mappings in zip(self.shape, self.rows, strict=True):
            leaf = TimedLeaf(tuple(map(Variable, names)), clock, self.dictionary)
            time = ints([time for time, _ in mappings])
            values = ints([values for _, values in mappings]).reshape(-1, len(names))
            leaf.hear(Matches(time, time, values + ZERO))
            leaves.append(leaf)
        sources: list[Operator] = [*leaves]
        self.join = Join(sources, self.dictionary, eager=self.kind == "eager")
        return [leaf.advance(5) for leaf in leaves]

    def _copied(self) -> list[Delta]:
        sources: list[Operator] = []
        deltas = []
        for names, mappings in zip(self.shape, self.rows, strict=True):
            source = Rows(names, self.dictionary)
            source.always = frozenset(source.variables)
            changes = [
                (time, 1, n, tuple(IRI(f"urn:{value}") for value in values))
                for n, (time, values) in enumerate(mappings)
            ]
            deltas.append(source.feed(changes))
            sources.append(source)
        self.join = Join(sources, self.dictionary)
        return deltas

    @property
    def made(self) -> list[tuple[int, ...]]:
        """The changes made so far."""
        room, made = int(self.joins["room"][0]), int(self.joins["made"][0])
        columns = self.output.ravel()[: 4 * room].reshape(4, room)
        return [tuple(each) for each in columns[:, :made].T.tolist()]

    def all_rows(self) -> Iterator[tuple[int, int, int]]:
        """Every mapping, as its input, its number there and its place."""
        for k, places in enumerate(self.places):
            for n, place in enumerate(places):
                yield k, n, place

    def bound(self, k: int, n: int) -> dict[str, int]:
        return dict(zip(self.shape[k], self.rows[k][n][1], strict=True))

    def number(self, value: int) -> int:
        """The number of a value, as a term."""
        if self.kind == "copied":
            return self.dictionary.number(IRI(f"urn:{value}"))
        return ZERO + value

    def interval(self, k: int, n: int) -> tuple[int, int]:
        enter = self.rows[k][n][0]
        return enter, FOREVER if self.kind == "copied" else enter + WINDOW

    def compatible(self, chosen: tuple[int, ...]) -> bool:
        bound: dict[str, int] = {}
        return all(
            bound.setdefault(name, value) == value
            for k, n in enumerate(chosen)
            for name, value in self.bound(k, n).items()
        )

    def combinations(self) -> Counter[tuple[int, ...]]:
        """Every result as its time, its end, and the numbers of its parts."""
        found: Counter[tuple[int, ...]] = Counter()
        for chosen in product(*(range(len(each)) for each in self.rows)):
            spans = [self.interval(k, n) for k, n in enumerate(chosen)]
            enter, leave = max(span[0] for span in spans), min(span[1] for span in spans)
            if enter < leave and self.compatible(chosen):
                parts = (self.numbers[k][n] for k, n in enumerate(chosen))
                found[enter, leave, *parts] += 1
        return found

    def results(self) -> Counter[tuple[int, ...]]:
        """The results made so far, like `combinations`."""
        width = len(self.shape)
        return Counter(
            (t, leave, *self.join.output.cells[row, :width].tolist())
            for t, sign, row, leave in self.made
            if sign > 0
        )


@st.composite
def machines(draw: st.DrawFn, least: int = 0) -> Machine:
    shape = draw(st.sampled_from(SHAPES))
    inputs = []
    for variables in shape:
        mapping = st.tuples(st.integers(0, 5), st.tuples(*[st.integers(1, 2)] * len(variables)))
        inputs.append(
            sorted(draw(st.lists(mapping, min_size=least, max_size=5)), key=lambda each: each[0])
        )
    return Machine(shape, inputs, draw(st.sampled_from(["kept", "copied", "eager"])))


@compares(
    "joinresults.row_of", "joinresults.list_of", "joinresults._number_of",
    "joinprefetch.bind_first", "joinprefetch.request_row", "probing._bind",
)  # fmt: skip
@given(machines(), st.data())
def test_mappings_are_read(machine: Machine, data: st.DataObject) -> None:
    join, shared = machine.join, [variable.name for variable in machine.join.shared]
    width = max(1, len(shared))
    for k, n, place in machine.all_rows():
        buffer = join._buffers[k]
        for column in range(buffer.cells.shape[1]):
            assert call_row_of(machine.joins, k, place, column) == buffer.cells[place, column]
        if machine.kind != "eager":
            assert call_list_of(machine.joins, k, place) == buffer.results[place]
        assert call_number_of(machine.joins, k, place) == machine.numbers[k][n]
        call_request_row(machine.joins, k, place)  # changes nothing
        own = machine.bound(k, n)
        first = ints([-9] * width)
        call_bind_first(machine.joins, k, place, first)
        expected = [machine.number(own[name]) if name in own else 0 for name in shared]
        assert first.tolist() == (expected or [0])
        # Binding a row on top of what is bound already.
        known = [data.draw(st.sampled_from([0, machine.number(1)])) for _ in range(width)]
        join._bound[0, :width] = known
        agrees = all(not a or not b or a == b for a, b in zip(known, expected, strict=False))
        assert call_bind(machine.joins, 0, k, buffer.cells[place].copy()) == agrees
        if agrees and shared:
            together = [a or b for a, b in zip(known, expected, strict=True)]
            assert join._bound[1, :width].tolist() == together


def probe(machine: Machine, k: int, x: int, n: int) -> list[int]:
    """What an index of an input finds for the key of its n-th mapping."""
    index = machine.join._buffers[k].indexes[x]
    key = machine.join._buffers[k].cells[machine.places[k][n], index.columns]
    return index.probe(*key.tolist()[: int(index.description["key_width"][0])])


def alike(machine: Machine, k: int, x: int, n: int, there: list[int]) -> list[int]:
    """The places, newest first, of the mappings with the same key as the n-th."""
    index = machine.join._buffers[k].indexes[x]
    width = int(index.description["key_width"][0])
    columns = [
        column - FIRST_VALUE - (machine.kind == "copied") for column in index.columns[:width]
    ]
    names = machine.shape[k]
    if machine.kind == "copied":
        # Copied rows have only the shared variables, in the order of the join.
        names = tuple(v.name for v in machine.join._buffers[k].shared)
    keys = [
        tuple(machine.bound(k, m)[names[c]] for c in columns) for m in range(len(machine.rows[k]))
    ]
    return [machine.places[k][m] for m in reversed(there) if keys[m] == keys[n]]


@compares("probing._insert", "probing._remove", "probing._full_index")
@given(machines())
def test_mappings_go_into_the_indexes_of_their_input(machine: Machine) -> None:
    there: dict[int, list[int]] = {k: [] for k in range(len(machine.shape))}

    def check() -> None:
        for k, n, _ in machine.all_rows():
            for x in range(len(machine.join._buffers[k].indexes)):
                assert probe(machine, k, x, n) == alike(machine, k, x, n, there[k])

    for k, n, place in machine.all_rows():
        call_insert(machine.joins, k, place)
        there[k].append(n)
        check()
    first = 0
    for k, buffer in enumerate(machine.join._buffers):
        assert call_full_index(machine.joins, k) == -1
        buffer.indexes[-1].description["used"] = 12  # of 16
        assert call_full_index(machine.joins, k) == first + len(buffer.indexes) - 1
        buffer.indexes[-1].description["used"] = 11  # less than three quarters
        assert call_full_index(machine.joins, k) == -1
        buffer.indexes[-1].description["used"] = 0
        first += len(buffer.indexes)
    for k, n, place in machine.all_rows():
        call_remove(machine.joins, k, place)
        there[k].remove(n)
        check()


@compares("probing._choose", "joinprefetch._request_entries", "joinprefetch._request_matches")
@given(machines())
def test_the_buffer_with_the_fewest_matches_is_next(machine: Machine) -> None:
    join = machine.join
    for k, _, place in machine.all_rows():
        call_insert(machine.joins, k, place)
    shared = {variable.name for variable in join.shared}
    for event, (_, _, k, place) in enumerate(machine.events.T.tolist()):
        n = machine.places[k].index(place)
        own = machine.bound(k, n)
        call_bind_first(machine.joins, k, place, join._bound[0])
        matches: dict[int, tuple[bool, list[int]]] = {}
        for j, names in enumerate(machine.shape):
            if j != k:
                common = [name for name in names if name in own and name in shared]
                found = [
                    m
                    for m in range(len(machine.rows[j]))
                    if all(machine.bound(j, m)[name] == own[name] for name in common)
                ]
                matches[j] = bool(common), found
        chosen = call_choose(machine.joins, 0, 1 << k)
        assert chosen == all(found for _, found in matches.values())
        if chosen:
            best = min(matches, key=lambda j: (not matches[j][0], len(matches[j][1]), j))
            frame = join._frames[0]
            assert (frame["input"], frame["left"]) == (best, len(matches[best][1]))
            assert frame["next"] == machine.places[best][matches[best][1][-1]]
            assert frame["chosen"] == 1 << k
        # Looking ahead writes the hashes of the keys that this event will look for.
        call_request_entries(machine.joins, event)
        call_request_matches(machine.joins, event)
        hashes = join._hashes.reshape(EVENTS_AHEAD, -1)[event % EVENTS_AHEAD]
        for j, (_, found) in matches.items():
            index = join._indexes[join._index_of.reshape(-1, len(matches) + 1)[1 << k, j]]
            place_of_key = join._key_variables[join._indexes.index(index)]
            width = int(index.description["key_width"][0])
            key = join._bound[0][place_of_key[:width]] if width else ints([0])
            entry = find_one(index.description, np.ascontiguousarray(key))
            assert (entry >= 0) == bool(found)
            if entry >= 0:
                assert index.entries[entry]["hash"] == hashes[j]


@compares(
    "joinresults.emit", "joinresults._change", "joinresults.invalidate",
    "joinprefetch._request_result",
)  # fmt: skip
@given(machines(least=1), st.data())
def test_results_are_listed_with_what_ends_them(machine: Machine, data: st.DataObject) -> None:
    join, inputs = machine.join, len(machine.shape)
    if machine.kind != "eager":
        for k, _, place in machine.all_rows():
            join._buffers[k].results[place] = -1
    call_change(machine.joins, 3, -1, 77, 9)
    expected: list[tuple[int, ...]] = [(3, -1, 77, 9)]
    live: dict[int, set[tuple[int, int]]] = {}  # of each result in whose lists it is
    free = join.output.free[: int(machine.joins["free"][0])].tolist()
    one = st.tuples(*(st.integers(0, len(each) - 1) for each in machine.rows))
    for chosen in data.draw(st.lists(one, max_size=8)):
        parts = [(k, machine.places[k][n]) for k, n in enumerate(chosen)]
        join._places[:] = [place for _, place in parts]
        call_emit(machine.joins, 4, 8)
        row = free.pop()
        expected.append((4, 1, row, 8))
        numbers = [machine.numbers[k][n] for k, n in enumerate(chosen)]
        assert join.output.cells[row, :inputs].tolist() == numbers
        if machine.kind == "copied":
            live[row] = set(parts)
        elif machine.kind == "kept":
            leaves = [int(join._buffers[k].cells[place, LEAVE]) for k, place in parts]
            live[row] = {parts[leaves.index(min(leaves))]}
    assert machine.made == expected
    if machine.kind == "eager":
        return
    for k, _, place in data.draw(st.permutations(list(machine.all_rows()))):
        for nth in range(3):
            call_request_result(machine.joins, k, place, nth)  # changes nothing
        mine = {row for row, lists in live.items() if (k, place) in lists}
        before = len(machine.made)
        assert call_invalidate(machine.joins, 9, k, place)
        gone = machine.made[before:]
        assert sorted(gone) == sorted((9, -1, row, 9) for row in mine)
        live = {row: lists for row, lists in live.items() if row not in mine}
    assert not live
    machine.joins["room"] = machine.joins["made"]
    k, _, place = next(machine.all_rows())
    join._buffers[k].results[place] = 1
    assert not call_invalidate(machine.joins, 9, k, place)  # the output is full


@compares("probing._arrive", "probing._try_next")
@given(machines())
def test_events_one_by_one(machine: Machine) -> None:
    """The loop of `probing.advance` in Python, over arrivals."""
    for t, _, k, place in machine.events.T.tolist():
        depth = 0 if call_arrive(machine.joins, t, k, place) else -1
        while depth >= 0:
            if left_in(machine.joins, depth) == 0:
                depth -= 1
                continue
            before, left = len(machine.made), left_in(machine.joins, depth)
            below = call_try_next(machine.joins, depth)
            assert left_in(machine.joins, depth) == left - 1
            assert below in (depth, depth + 1)
            if len(machine.made) > before:
                assert below == depth == len(machine.shape) - 2
            depth = below
        call_insert(machine.joins, k, place)
    assert machine.results() == machine.combinations()


@compares("probing.advance", "joinprefetch.look_ahead")
@given(machines(), st.booleans(), st.integers(1, 5))
def test_all_events(machine: Machine, far: bool, room: int) -> None:
    machine.joins["far"] = far
    for event in range(machine.events.shape[1]):
        call_look_ahead(machine.joins, event)
    machine.joins["room"] = room
    found: Counter[tuple[int, ...]] = Counter()
    while True:
        ended = probing.advance(machine.joins)
        found += machine.results()
        machine.joins["made"] = 0
        if ended == probing.DONE:
            break
        assert ended == probing.OUTPUT_FULL
    assert found == machine.combinations()
    assert int(machine.joins["event"][0]) == machine.events.shape[1]
