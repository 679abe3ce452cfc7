"""The multiway window join (paper 001, section 4.1): any number of inputs, one operator.

Algorithm 4: a mapping that comes is joined with what the other buffers hold, and is then inserted
into its own; one that goes takes with it what was made from it. Algorithm 5: after every probe the
next buffer is chosen anew, by the counters of the indexes: the one with the fewest matches for the
values bound so far, among those that share a variable. Algorithm 3: what goes is found through the
leaves, without joining again. What differs from the paper:

- The recursion is a loop with a stack of frames, and the stack outlives the call: when the output
  is full, the function returns, and goes on at the same probe once there is room.
- Buffers are not searched for what a mapping made: every mapping has a list of its results. Where
  all inputs tell at its coming when a mapping goes, a result is in the list of the one that goes
  first and in no other; else it is in the lists of all, linked both ways.
- A combination counts only if its parts share an instant, so that arrivals may be out of order.
- A variable that an input may leave unbound is no part of a key; it is compared where both bind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

import numpy as np
from numba import njit

from quadweir.algebra.solutions import is_time
from quadweir.errors import LimitError
from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, address, ints, load, store
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.relation import (
    ENTER,
    FIRST_VALUE,
    LEAVE,
    CircularTable,
    Delta,
    Operator,
    SlotTable,
    in_order,
)
from quadweir.kernel.ring import (
    COUNT,
    DESCRIPTION,
    ENTRIES,
    ENTRY,
    KEY_WIDTH,
    KEYS,
    MASK,
    RING,
    START,
    USED,
    RingIndex,
    find,
    hash_key,
    insert,
    remove,
)
from quadweir.terms import Variable

MAX_INPUTS: Final = 12

# What describes a buffer, one row for each.
_CELLS: Final = 0
_WIDTH: Final = 1
_ROWS: Final = 2  # number of places less one
_RESULTS: Final = 3  # address: the first result made from each mapping
_COPIES: Final = 4  # 1 if the row of the input is kept in a cell rather than being the place
_BUFFER: Final = 5

# The state that outlives a call.
_EVENT: Final = 0
_DEPTH: Final = 1  # of the frame to go on with; -1 between two events
_MADE: Final = 2  # changes given so far
_FREE: Final = 3  # free rows of the output
_WHICH: Final = 4  # the index that is full
_STATE: Final = 5

# How a call ended.
_DONE: Final = 0
_OUTPUT_FULL: Final = 1
_INDEX_FULL: Final = 2


@njit(cache=True)  # type: ignore[untyped-decorator]
def _choose(
    depth: int,
    chosen: int,
    indexes: Ints,
    columns: Ints,
    key_variables: Ints,
    index_of: Ints,
    shares: Ints,
    frames: Ints,
    bound: Ints,
    key: Ints,
) -> bool:
    """Pick the next buffer and open a frame on its matches; False if some buffer has none.

    Algorithm 5, lines 2 to 8, with exact counts for its estimate.
    """
    inputs = frames.shape[0]
    best, best_count, best_entry, best_shares = -1, 0, 0, 0
    for j in range(inputs):
        if chosen >> j & 1:
            continue
        x = index_of[chosen * inputs + j]
        index = indexes[x]
        width = index[KEY_WIDTH]
        for i in range(width):
            key[i] = bound[depth, key_variables[index[KEYS] + i]]
        entry = find(index, columns, key, hash_key(key, width))
        if entry < 0:
            return False
        count = load(index[ENTRIES], entry * ENTRY + COUNT)
        if count == 0:
            return False
        shared = shares[chosen * inputs + j]
        if best < 0 or shared > best_shares or (shared == best_shares and count < best_count):
            best, best_count, best_entry, best_shares = j, count, entry, shared
    x = index_of[chosen * inputs + best]
    frames[depth, 0] = best
    frames[depth, 1] = load(indexes[x, ENTRIES], best_entry * ENTRY + START)
    frames[depth, 2] = best_count
    frames[depth, 3] = x
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _bind(
    depth: int,
    k: int,
    at: int,
    buffers: Ints,
    bind_first: Ints,
    bind_column: Ints,
    bind_variable: Ints,
    bound: Ints,
) -> bool:
    """Add a mapping's values to those of the frame below; False if they disagree."""
    cells, base = buffers[k, _CELLS], at * buffers[k, _WIDTH]
    for i in range(bound.shape[1]):
        bound[depth + 1, i] = bound[depth, i]
    for i in range(bind_first[k], bind_first[k + 1]):
        value = load(cells, base + bind_column[i])
        if value != 0:
            known = bound[depth + 1, bind_variable[i]]
            if known == 0:
                bound[depth + 1, bind_variable[i]] = value
            elif known != value:
                return False
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _emit(
    state: Ints,
    t: int,
    leave: int,
    places: Ints,
    rows: Ints,
    buffers: Ints,
    cells: Ints,
    free: Ints,
    links: Ints,
    link_width: int,
    out: Ints,
) -> None:
    """Make a result: references to its parts, and a place in the lists of what can end it."""
    inputs = len(places)
    state[_FREE] -= 1
    o = free[state[_FREE]]
    for k in range(inputs):
        row = rows[k]
        if buffers[k, _COPIES]:
            row = load(buffers[k, _CELLS], places[k] * buffers[k, _WIDTH] + FIRST_VALUE)
        cells[o, k] = row
    if link_width == 1:
        first, least = 0, FOREVER + 1
        for k in range(inputs):
            goes = load(buffers[k, _CELLS], places[k] * buffers[k, _WIDTH] + LEAVE)
            if goes < least:
                first, least = k, goes
        links[o, 0] = load(buffers[first, _RESULTS], places[first])
        store(buffers[first, _RESULTS], places[first], o)
    elif link_width > 1:
        for k in range(inputs):
            after = load(buffers[k, _RESULTS], places[k])
            links[o, k] = after
            # The first of a list remembers whose list it is.
            links[o, inputs + k] = -places[k] - 2
            if after >= 0:
                links[after, inputs + k] = o
            store(buffers[k, _RESULTS], places[k], o)
    made = state[_MADE]
    out[0, made] = t
    out[1, made] = 1
    out[2, made] = o
    out[3, made] = leave
    state[_MADE] = made + 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _invalidate(
    state: Ints, t: int, k: int, at: int, buffers: Ints, links: Ints, link_width: int, out: Ints
) -> bool:
    """Take back what a mapping made, through its list. Algorithm 3; False if the output is full."""
    inputs = len(buffers)
    while True:
        o = load(buffers[k, _RESULTS], at)
        if o < 0:
            return True
        made = state[_MADE]
        if made >= out.shape[1]:
            return False
        if link_width == 1:
            store(buffers[k, _RESULTS], at, links[o, 0])
        else:
            for j in range(inputs):
                after, before = links[o, j], links[o, inputs + j]
                if before >= 0:
                    links[before, j] = after
                else:
                    store(buffers[j, _RESULTS], -before - 2, after)
                if after >= 0:
                    links[after, inputs + j] = before
        out[0, made] = t
        out[1, made] = -1
        out[2, made] = o
        out[3, made] = t
        state[_MADE] = made + 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _advance(
    state: Ints,
    events: Ints,
    buffers: Ints,
    indexes: Ints,
    index_first: Ints,
    columns: Ints,
    key_variables: Ints,
    index_of: Ints,
    shares: Ints,
    bind_first: Ints,
    bind_column: Ints,
    bind_variable: Ints,
    frames: Ints,
    bound: Ints,
    key: Ints,
    places: Ints,
    rows: Ints,
    cells: Ints,
    free: Ints,
    links: Ints,
    link_width: int,
    out: Ints,
) -> int:
    """Take events in order: Algorithm 4, and Algorithm 5 as a loop over frames."""
    inputs = len(buffers)
    last = inputs - 2
    while True:
        i = state[_EVENT]
        if state[_DEPTH] < 0:
            if i >= events.shape[1]:
                return _DONE
            k, row = events[2, i], events[3, i]
            at = row & buffers[k, _ROWS]
            if events[1, i] < 0:
                if link_width > 0 and not _invalidate(
                    state, events[0, i], k, at, buffers, links, link_width, out
                ):
                    return _OUTPUT_FULL
                for x in range(index_first[k], index_first[k + 1]):
                    remove(indexes[x], columns, row, key)
                state[_EVENT] += 1
                continue
            for x in range(index_first[k], index_first[k + 1]):
                if indexes[x, USED] * 4 > indexes[x, MASK] * 3:
                    state[_WHICH] = x
                    return _INDEX_FULL
            if link_width > 0:
                store(buffers[k, _RESULTS], at, -1)
            base = at * buffers[k, _WIDTH]
            bound[0, :] = 0
            _bind(0, k, at, buffers, bind_first, bind_column, bind_variable, bound)
            bound[0, :] = bound[1, :]
            places[k] = at
            rows[k] = row
            if _choose(
                0, 1 << k, indexes, columns, key_variables, index_of, shares, frames, bound, key
            ):
                frames[0, 4] = load(buffers[k, _CELLS], base + ENTER)
                frames[0, 5] = load(buffers[k, _CELLS], base + LEAVE)
                frames[0, 6] = 1 << k
                state[_DEPTH] = 0
            else:
                for x in range(index_first[k], index_first[k + 1]):
                    insert(indexes[x], columns, row, key)
                state[_EVENT] += 1
            continue
        depth = state[_DEPTH]
        if frames[depth, 2] == 0:
            state[_DEPTH] = depth - 1
            if depth == 0:
                k, row = events[2, i], events[3, i]
                for x in range(index_first[k], index_first[k + 1]):
                    insert(indexes[x], columns, row, key)
                state[_EVENT] += 1
            continue
        if depth == last and (state[_MADE] >= out.shape[1] or state[_FREE] == 0):
            return _OUTPUT_FULL
        j, row = frames[depth, 0], frames[depth, 1]
        at = row & buffers[j, _ROWS]
        frames[depth, 1] = load(indexes[frames[depth, 3], RING], at)
        frames[depth, 2] -= 1
        base = at * buffers[j, _WIDTH]
        enter = max(frames[depth, 4], load(buffers[j, _CELLS], base + ENTER))
        leave = min(frames[depth, 5], load(buffers[j, _CELLS], base + LEAVE))
        if enter >= leave or not _bind(
            depth, j, at, buffers, bind_first, bind_column, bind_variable, bound
        ):
            continue
        places[j] = at
        rows[j] = row
        if depth == last:
            _emit(state, enter, leave, places, rows, buffers, cells, free, links, link_width, out)
            continue
        chosen = frames[depth, 6] | 1 << j
        if _choose(
            depth + 1,
            chosen,
            indexes,
            columns,
            key_variables,
            index_of,
            shares,
            frames,
            bound,
            key,
        ):
            frames[depth + 1, 4] = enter
            frames[depth + 1, 5] = leave
            frames[depth + 1, 6] = chosen
            state[_DEPTH] = depth + 1


class _Buffer:
    """What a join holds of one input: its rows, or the columns of them that are compared.

    The rows of a leaf are probed where they lie. Of any other input the join keeps the values of
    the shared variables and a reference to the row.
    """

    def __init__(
        self, source: Operator, shared: Sequence[Variable], dictionary: Dictionary
    ) -> None:
        self.source = source
        self.shared = tuple(variable for variable in shared if variable in source.variables)
        self.dictionary = dictionary
        table = getattr(source, "table", None)
        self.table: SlotTable | CircularTable | None = table
        self.in_order = isinstance(table, CircularTable)
        self.cells = table.cells if table is not None else self._fresh(16)
        self.indexes: list[RingIndex] = []
        self.results = np.full(len(self.cells), -1, dtype=np.int64)
        self._dropped: list[Ints] = []
        self._gone: list[Ints] = []
        self.places = {
            variable: (
                FIRST_VALUE + source.variables.index(variable)
                if table is not None
                else FIRST_VALUE + 1 + place
            )
            for place, variable in enumerate(self.shared)
        }

    def _fresh(self, capacity: int) -> np.ndarray:
        cells = np.zeros((capacity, FIRST_VALUE + 1 + len(self.shared)), dtype=np.int64)
        cells[:, FIRST_VALUE] = -1  # no row is here
        return cells

    def take(self, delta: Delta) -> None:
        """Make room for what comes, and copy what has to be copied."""
        if self.table is not None:
            moved = self.table.cells is not self.cells
            if moved:
                self.cells = self.table.cells
                self._move(self._rows_of_table(len(self.results)))
            return
        capacity = self.source.span()
        if capacity != len(self.cells):
            rows = self.cells[:, FIRST_VALUE]
            rows = rows[rows >= 0]
            cells = self._fresh(capacity)
            cells[rows & (capacity - 1)] = self.cells[rows & (len(self.cells) - 1)]
            self.cells = cells
            self._move(rows)
        came = delta.sign > 0
        rows = delta.row[came]
        at = rows & (len(self.cells) - 1)
        values = self.source.columns(self.shared, rows)
        self.dictionary.hold(values.ravel())
        self.cells[at, ENTER] = delta.t[came]
        self.cells[at, LEAVE] = delta.leave[came]
        self.cells[at, FIRST_VALUE] = rows
        self.cells[at, FIRST_VALUE + 1 :] = values
        self._dropped.append(delta.row[~came])
        # A negation may take a row back and give it again within a step: the last word counts.
        last = np.unique(delta.row[::-1], return_index=True)[1]
        self._gone.append(delta.row[::-1][last[delta.sign[::-1][last] < 0]])

    def _rows_of_table(self, old: int) -> Ints:
        if isinstance(self.table, CircularTable):
            return np.arange(self.table.head, self.table.tail, dtype=np.int64)
        return np.arange(min(old, len(self.cells)), dtype=np.int64)

    def _move(self, rows: Ints) -> None:
        capacity = len(self.cells)
        for index in self.indexes:
            index.attach(self.cells, rows)
        if capacity != len(self.results):
            results = np.full(capacity, -1, dtype=np.int64)
            results[rows & (capacity - 1)] = self.results[rows & (len(self.results) - 1)]
            self.results = results

    def describe(self) -> list[int]:
        cells = self.cells
        copies = int(self.table is None)
        return [
            address(cells),
            cells.shape[1],
            len(cells) - 1,
            address(self.results),
            copies,
        ]

    def settle(self) -> None:
        for rows in self._dropped:
            at = rows & (len(self.cells) - 1)
            self.dictionary.drop(self.cells[at, FIRST_VALUE + 1 :].ravel())
        for rows in self._gone:
            self.cells[rows & (len(self.cells) - 1), FIRST_VALUE] = -1
        self._dropped, self._gone = [], []

    def restore(self, copied: Ints | None, *, begun: bool) -> None:
        """Index anew what the input holds, in the order in which it came."""
        rows = ints(0)
        if self.table is None:
            assert copied is not None
            self.cells = self._fresh(self.source.span())
            rows = np.ascontiguousarray(copied[:, FIRST_VALUE])
            self.cells[rows & (len(self.cells) - 1)] = copied
        else:
            self.cells = self.table.cells
            if begun:
                rows = self._rows_of_table(len(self.cells))
        self.results = np.full(len(self.cells), -1, dtype=np.int64)
        self._dropped, self._gone = [], []
        for index in self.indexes:
            index.clear()
            index.attach(self.cells, ints(0))
            index.insert(rows)


@final
class Join(Operator):
    """Every way to put compatible mappings of all inputs together that share an instant.

    Linear: in each input.
    State: an index for each set of variables by which an input is probed; unless `eager`, the
    results, as references to the rows they were made from.
    Forgets: a mapping when its input takes it back, and with it the results made from it.

    An eager join (E1) keeps no results: nobody will ask for them again.
    """

    def __init__(
        self, sources: Sequence[Operator], dictionary: Dictionary, *, eager: bool = False
    ) -> None:
        if len(sources) > MAX_INPUTS:
            raise LimitError(
                f"a join of {len(sources)} patterns",
                hint=f"Up to {MAX_INPUTS} can be joined at once.",
            )
        self.sources = tuple(sources)
        self.eager = eager
        self.variables = tuple(dict.fromkeys(v for each in sources for v in each.variables))
        self.always = frozenset().union(*(each.always for each in sources))
        self.shared = tuple(
            v
            for v in self.variables
            if sum(v in each.variables for each in sources) > 1 and not is_time(v)
        )
        self._buffers = [_Buffer(each, self.shared, dictionary) for each in sources]
        timed = all(getattr(each, "timed", False) for each in sources)
        count = len(sources)
        self._link_width = 0 if eager else 1 if timed else count
        self.output = SlotTable(count)
        self._links = self._fresh_links()
        self._plan()
        self._begun = False
        self._state = ints(_STATE)
        self._frames = np.zeros((count, 7), dtype=np.int64)
        self._bound = np.zeros((count + 1, max(1, len(self.shared))), dtype=np.int64)
        self._key = ints(max(1, len(self.shared)))
        self._places = ints(count)
        self._rows = ints(count)
        self._out = np.zeros((4, 256), dtype=np.int64)
        self.timed = timed

    def _fresh_links(self) -> np.ndarray:
        width = self._link_width * 2 if self._link_width > 1 else max(1, self._link_width)
        capacity = self.output.capacity if self._link_width else 0
        return np.full((capacity, width), -1, dtype=np.int64)

    def _plan(self) -> None:
        """Tabulate, for every set of bound inputs, by which index each other input is probed."""
        count = len(self.sources)
        self._indexes: list[RingIndex] = []
        by_buffer: list[dict[tuple[int, ...], int]] = [{} for _ in range(count)]
        owners: list[int] = []
        index_of = np.zeros((1 << count, count), dtype=np.int64)
        shares = np.zeros((1 << count, count), dtype=np.int64)
        for chosen in range(1, 1 << count):
            bound = [k for k in range(count) if chosen >> k & 1]
            sure = frozenset().union(*(self.sources[k].always for k in bound))
            for j in range(count):
                if chosen >> j & 1:
                    continue
                keys = tuple(
                    place
                    for place, variable in enumerate(self.shared)
                    if variable in sure and variable in self.sources[j].always
                )
                if keys not in by_buffer[j]:
                    by_buffer[j][keys] = len(owners)
                    owners.append(j)
                index_of[chosen, j] = by_buffer[j][keys]
                shares[chosen, j] = bool(keys)
        # The indexes of one buffer stand together.
        order = sorted(range(len(owners)), key=lambda x: owners[x])
        number = {old: new for new, old in enumerate(order)}
        self._index_of = np.array([number[int(x)] for x in index_of.ravel()], dtype=np.int64)
        self._shares = shares.ravel()
        self._index_first = np.searchsorted(
            [owners[x] for x in order], np.arange(count + 1)
        ).astype(np.int64)
        keys_of = {by_buffer[j][keys]: keys for j in range(count) for keys in by_buffer[j]}
        columns: list[int] = []
        variables: list[int] = []
        for old in order:
            buffer = self._buffers[owners[old]]
            own = tuple(buffer.places[self.shared[place]] for place in keys_of[old])
            index = RingIndex(own, linked=not buffer.in_order)
            index.description[KEYS] = len(columns)
            columns += own
            variables += keys_of[old]
            index.attach(buffer.cells, ints(0))
            buffer.indexes.append(index)
            self._indexes.append(index)
        self._columns = np.array(columns or [0], dtype=np.int64)
        for index in self._indexes:
            index.columns = self._columns
        self._key_variables = np.array(variables or [0], dtype=np.int64)
        first, column, variable = [0], [], []
        for buffer in self._buffers:
            for each, place in buffer.places.items():
                column.append(place)
                variable.append(self.shared.index(each))
            first.append(len(column))
        self._bind_first = np.array(first, dtype=np.int64)
        self._bind_column = np.array(column or [0], dtype=np.int64)
        self._bind_variable = np.array(variable or [0], dtype=np.int64)

    def step(self, inputs: list[Delta]) -> Delta:
        self._begun = True
        for buffer, delta in zip(self._buffers, inputs, strict=True):
            buffer.take(delta)
        if self.eager:
            # What has left is out of the way only after what came in this step was joined.
            merged = Delta(*(np.concatenate(parts) for parts in zip(*inputs, strict=True)))
            source = np.repeat(
                np.arange(len(inputs), dtype=np.int64), [len(each.t) for each in inputs]
            )
            order = np.argsort(merged.sign < 0, kind="stable")
            merged, source = merged.pick(order), source[order]
        else:
            merged, source = in_order(inputs)
        if not len(source):
            return merged
        events = np.stack((merged.t, merged.sign, source, merged.row))
        out = self._run(events)
        delta = Delta(out[0], out[1], out[2], out[3])
        self.output.release(delta.row if self.eager else delta.row[delta.sign < 0])
        return delta

    def _run(self, events: np.ndarray) -> np.ndarray:
        state, output = self._state, self.output
        state[_EVENT], state[_DEPTH], state[_MADE] = 0, -1, 0
        state[_FREE] = output.free_count
        while True:
            buffers = np.array([each.describe() for each in self._buffers], dtype=np.int64)
            indexes = np.zeros((len(self._indexes), DESCRIPTION), dtype=np.int64)
            for x, index in enumerate(self._indexes):
                indexes[x] = index.description
            ended = _advance(
                state,
                events,
                buffers,
                indexes,
                self._index_first,
                self._columns,
                self._key_variables,
                self._index_of,
                self._shares,
                self._bind_first,
                self._bind_column,
                self._bind_variable,
                self._frames,
                self._bound,
                self._key,
                self._places,
                self._rows,
                output.cells,
                output.free,
                self._links,
                self._link_width,
                self._out,
            )
            for x, index in enumerate(self._indexes):
                index.description[USED] = indexes[x, USED]
            output.free_count = int(state[_FREE])
            if ended == _DONE:
                return self._out[:, : state[_MADE]].copy()
            if ended == _INDEX_FULL:
                self._indexes[int(state[_WHICH])].grow()
                continue
            if state[_MADE] >= self._out.shape[1]:
                self._out = np.concatenate((self._out, np.zeros_like(self._out)), axis=1)
            if state[_FREE] == 0:
                output.reserve(output.capacity)
                if self._link_width:
                    links = self._fresh_links()
                    links[: len(self._links)] = self._links
                    self._links = links
                state[_FREE] = output.free_count

    def column(self, variable: Variable, rows: Ints) -> Ints:
        found: Ints | None = None
        for k, source in enumerate(self.sources):
            if variable not in source.variables:
                continue
            part = source.column(variable, self.output.cells[rows, k])
            if is_time(variable):
                # Times are inline integers: the later is the greater, and none is 0.
                found = part if found is None else np.maximum(found, part)
                continue
            if variable in source.always:
                return part
            found = part if found is None else np.where(found != 0, found, part)
        return found if found is not None else ints(len(rows))

    def identity(self, rows: Ints) -> np.ndarray:
        parts = self.output.cells[rows]
        return np.hstack([source.identity(parts[:, k]) for k, source in enumerate(self.sources)])

    def span(self) -> int:
        return self.output.capacity

    def settle(self) -> None:
        for buffer in self._buffers:
            buffer.settle()
        self.output.settle()
        if self._out.shape[1] > 1 << 20:
            self._out = np.zeros((4, 256), dtype=np.int64)

    def held(self) -> int:
        return self.output.held

    @property
    def nbytes(self) -> int:
        """The bytes of indexes, results and links; those of the leaves are the leaves'."""
        own = sum(each.cells.nbytes for each in self._buffers if each.table is None)
        results = sum(each.results.nbytes for each in self._buffers) if self._link_width else 0
        indexes = sum(index.nbytes for index in self._indexes)
        return own + results + indexes + self.output.cells.nbytes + self._links.nbytes

    def arrays(self) -> dict[str, Ints]:
        """Give the results and what was copied; indexes and lists follow from them."""
        found: dict[str, Ints] = {"begun": np.array([self._begun], dtype=np.int64)}
        found |= {f"output.{name}": each for name, each in self.output.arrays().items()}
        for k, buffer in enumerate(self._buffers):
            if buffer.table is None:
                found[f"cells.{k}"] = buffer.cells[buffer.cells[:, FIRST_VALUE] >= 0]
        return found

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        def part(prefix: str) -> dict[str, Ints]:
            size = len(prefix) + 1
            return {n[size:]: each for n, each in arrays.items() if n.startswith(prefix + ".")}

        self._begun = bool(arrays["begun"][0])
        self.output.restore(part("output"))
        self._links = self._fresh_links()
        for k, buffer in enumerate(self._buffers):
            buffer.restore(arrays.get(f"cells.{k}"), begun=self._begun)
        if self._link_width:
            self._link_anew()

    def _link_anew(self) -> None:
        """Put every result into the lists of what can end it."""
        results = self.output.rows()
        places = self.output.cells[results] & [len(each.cells) - 1 for each in self._buffers]
        if self._link_width > 1:
            for k, buffer in enumerate(self._buffers):
                _chain(results, places[:, k], buffer.results, self._links, k, len(self._buffers))
            return
        leave = np.column_stack(
            [each.cells[places[:, k], LEAVE] for k, each in enumerate(self._buffers)]
        )
        first = np.argmin(leave, axis=1)
        for k, buffer in enumerate(self._buffers):
            here = first == k
            _chain(results[here], places[here, k], buffer.results, self._links, 0, 0)


def _chain(
    results: Ints,
    places: Ints,
    heads: Ints,
    links: np.ndarray,
    column: int,
    back: int,
) -> None:
    """List the results made from each mapping; linked both ways if `back` says how far off."""
    order = np.argsort(places, kind="stable")
    results, places = results[order], places[order]
    starts = np.append(True, places[1:] != places[:-1]) if len(places) else np.zeros(0, dtype=bool)
    heads[places[starts]] = results[starts]
    after = np.append(np.where(starts[1:], -1, results[1:]), -1)[: len(results)]
    links[results, column] = after
    if back:
        before = np.concatenate(([-1], results[:-1]))[: len(results)]
        # The first of a list remembers whose list it is.
        links[results, back + column] = np.where(starts, -places - 2, before)


__all__ = ["ALWAYS", "MAX_INPUTS", "Join"]
