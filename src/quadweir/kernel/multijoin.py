"""The multiway window join (paper 001, section 4.1): any number of inputs, one operator.

Algorithm 4: a mapping that comes is joined with what the other buffers hold, and is then inserted
into its own; one that goes takes with it what was made from it. Algorithm 5: after every probe the
next buffer is chosen by the counters of the indexes: the one with the fewest matches for the
values bound so far, among those that share a variable. Algorithm 3: what goes is found through the
leaves, without joining again. What differs from the paper:

- The recursion is a loop with a stack of frames, and the stack outlives the call: when the output
  is full, the function returns, and goes on at the same probe once there is room.
- Buffers are not searched for what a mapping made: every mapping has a list of its results. Where
  every mapping that comes says when it goes, a result is in the list of the one that goes
  first and in no other; else it is in the lists of all, linked both ways.
- A combination counts only if its parts share an instant, so that arrivals may be out of order.
- A variable that an input may leave unbound is no part of a key; it is compared where both bind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final

import numpy as np

from quadweir.algebra.solutions import is_time
from quadweir.algebra.work import most_work, too_much
from quadweir.errors import LimitError
from quadweir.kernel import probing
from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.joinbuffer import Buffer
from quadweir.kernel.joinplan import plan_probes
from quadweir.kernel.joinrecords import BUFFER, EVENTS_AHEAD, FRAME, JOIN, JoinRecord
from quadweir.kernel.memory import address
from quadweir.kernel.oneway import part, prefixed
from quadweir.kernel.relation import Delta, Operator, no_change
from quadweir.kernel.ring import RingIndex
from quadweir.kernel.ringentries import INDEX
from quadweir.kernel.tables import LEAVE, SlotTable
from quadweir.terms import Variable

MAX_INPUTS: Final = 12

# Indexes beyond so many bytes are asked for ahead of time.
_NEAR: Final = 1 << 19
# How many combinations a step may try for each row that it may make: a try takes no memory.
_TRIES: Final = 100


@final
class Join(Operator):
    """Every way to put compatible mappings of all inputs together that share an instant.

    Linear: in each input.
    State: an index for each set of variables by which an input is probed; unless `eager`, the
    results, as references to the rows they were made from.
    Forgets: a mapping when its input takes it back, and with it the results made from it.

    An eager join (E1) keeps no results: nothing reads them again.
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
        self._buffers = [Buffer(each, self.shared, dictionary, keeps=not eager) for each in sources]
        # What is there from the start is indexed before anything comes, and brings no results by
        # itself: so one input at least has to come.
        fixed = [place for place, each in enumerate(sources) if each.fixed]
        self._fixed = frozenset(fixed if len(fixed) < len(sources) else fixed[1:])
        timed = all(each.timed for each in sources)
        count = len(sources)
        self._lists = 0 if eager else 1 if timed else count
        # References to the parts; then, for each list that a result stands in, the next in it, and
        # where there are several also the one before.
        width = count * (1 + 2 * (self._lists > 1)) + (self._lists == 1)
        self.output = SlotTable(width)
        self._plan()
        self._begun = False
        self._frames = np.zeros(count, FRAME)
        # One more, to look ahead with.
        self._bound = np.zeros((count + 1, max(1, len(self.shared))), dtype=np.int64)
        self._key = ints(max(1, len(self.shared)))
        self._places = ints(count)
        self._hashes = ints(EVENTS_AHEAD * count)
        self._out = np.zeros((4, 256), dtype=np.int64)
        self.timed = timed

    def _plan(self) -> None:
        """Make the indexes, and say which columns bind which shared variables."""
        plan = plan_probes([each.always for each in self.sources], self.shared)
        self._index_of, self._has_key = plan.index_of, plan.has_key
        self._first_index = plan.first_index
        self._indexes: list[RingIndex] = []
        self._descriptions = np.zeros(len(plan.keys), INDEX)
        self._key_variables: list[Ints] = []
        room = [
            buffer.widen(plan.owners.count(k) * (1 if buffer.in_order else 2))
            for k, buffer in enumerate(self._buffers)
        ]
        for number, (owner, key) in enumerate(zip(plan.owners, plan.keys, strict=True)):
            buffer = self._buffers[owner]
            description = self._descriptions[number : number + 1]
            index = RingIndex(
                tuple(buffer.places[self.shared[place]] for place in key),
                ring=room[owner],
                linked=not buffer.in_order,
                description=description,
            )
            room[owner] += len(index.pointers)
            self._key_variables.append(np.array(key or (0,), dtype=np.int64))
            description["variables"] = address(self._key_variables[-1])
            index.attach(buffer.cells)
            buffer.indexes.append(index)
            self._indexes.append(index)
        first, column, variable = [0], [], []
        for buffer in self._buffers:
            for each, place in buffer.places.items():
                column.append(place)
                variable.append(self.shared.index(each))
            first.append(len(column))
        self._first_binding = np.array(first, dtype=np.int64)
        self._bound_column = np.array(column or [0], dtype=np.int64)
        self._bound_variable = np.array(variable or [0], dtype=np.int64)

    def take_fixed(self, places: Iterable[int]) -> None:
        totals = {k: self.sources[k].fixed_total() for k in places if not self.sources[k].fixed}
        found = {k: total for k, total in totals.items() if total}
        if len(found) + len(self._fixed) == len(self.sources) and found:
            # Results are made when a row comes, so one input has to report its rows.
            del found[min(found, key=lambda k: found[k])]
        for k in found:
            self.sources[k].leave_out_fixed()
            self._buffers[k].partly_fixed = True

    def lay_out(self, given: Mapping[str, Ints]) -> None:
        for k, buffer in enumerate(self._buffers):
            if k in self._fixed:
                names = [f"entries.{k}.{number}" for number in range(len(buffer.indexes))]
                seeds = given.get(f"seeds.{k}", ints(0)).tolist()
                buffer.lay_out([given[name] for name in names if name in given], seeds)
            elif buffer.partly_fixed:
                buffer.lay_out_part(part(f"part.{k}", given))

    def layout(self) -> dict[str, Ints]:
        found = {
            f"entries.{k}.{number}": index.words
            for k in sorted(self._fixed)
            for number, index in enumerate(self._buffers[k].indexes)
        }
        found |= {f"seeds.{k}": self._buffers[k].seeds for k in sorted(self._fixed)}
        for k, buffer in enumerate(self._buffers):
            if buffer.partly_fixed:
                found |= prefixed(f"part.{k}", buffer.layout_part())
        return found

    def reads(self, place: int) -> bool:
        return place not in self._fixed

    def step(self, inputs: list[Delta]) -> Delta:
        self._begun = True
        inputs = [each if self.reads(k) else no_change() for k, each in enumerate(inputs)]
        for k, (buffer, delta) in enumerate(zip(self._buffers, inputs, strict=True)):
            if buffer.take(delta) and self._lists > 1:
                self._move_heads(k)
        count = sum(len(each.t) for each in inputs)
        if not count:
            return no_change()
        t = np.concatenate([each.t for each in inputs])
        sign = np.concatenate([each.sign for each in inputs])
        places = np.concatenate(
            [each.places_of(delta.row) for each, delta in zip(self._buffers, inputs, strict=True)]
        )
        ends = np.cumsum([len(each.t) for each in inputs], dtype=np.int64)
        events = np.empty((4, count), dtype=np.int64)
        # An eager join drops what has left only after what came in this step was joined.
        merge = probing.merge_arrivals_first if self.eager else probing.merge_by_time
        merge(t, sign, places, ends, events)
        delta = Delta(*self._run(events))
        self.output.release(delta.row if self.eager else delta.row[delta.sign < 0])
        return delta

    def _describe(self, events: np.ndarray) -> JoinRecord:
        """Describe the join to compiled code, for a run over events from the first."""
        self._described = np.zeros(len(self._buffers), BUFFER)
        for buffer, record in zip(self._buffers, self._described, strict=True):
            buffer.describe(record)
        join = np.zeros(1, JOIN)
        join["inputs"] = len(self.sources)
        join["shared"] = self._bound.shape[1]
        join["lists"] = self._lists
        join["result_width"] = self.output.width
        join["count"] = events.shape[1]
        join["depth"] = -1
        places = {
            "buffers": self._described,
            "indexes": self._descriptions,
            "first_index": self._first_index,
            "index_of": self._index_of,
            "has_key": self._has_key,
            "first_binding": self._first_binding,
            "bound_column": self._bound_column,
            "bound_variable": self._bound_variable,
            "frames": self._frames,
            "bound": self._bound,
            "key": self._key,
            "places": self._places,
            "hashes": self._hashes,
            "events": events,
        }
        for name, array in places.items():
            join[name] = address(array)
        return join

    def _run(self, events: np.ndarray) -> np.ndarray:
        output = self.output
        join = self._describe(events)
        join["free"] = output.free_count
        # A row with many parts takes more memory than one with few.
        most = max(1, 4 * most_work() // max(4, output.width))
        join["work"] = _TRIES * most
        while True:
            join["result_cells"] = address(output.cells)
            join["free_rows"] = address(output.free)
            join["output"] = address(self._out)
            join["room"] = self._out.shape[1]
            join["far"] = sum(index.nbytes for index in self._indexes) > _NEAR
            ended = probing.advance(join)
            output.free_count = int(join["free"][0])
            made = int(join["made"][0])
            if ended == probing.DONE:
                return self._out[:, :made].copy()
            if ended == probing.INDEX_FULL:
                self._indexes[int(join["full_index"][0])].grow()
                continue
            if ended == probing.TOO_MUCH:
                raise too_much(f"{self._title()} tries combinations", _TRIES * most)
            if made > most:
                raise too_much(f"{self._title()} gives rows", most)
            if made >= self._out.shape[1]:
                self._out = np.concatenate((self._out, np.zeros_like(self._out)), axis=1)
            if output.free_count == 0:
                output.reserve(output.capacity)
                join["free"] = output.free_count

    def _title(self) -> str:
        count = len(self.sources)
        # The variables between the steps of a path have names that the user did not write.
        named = sorted(v for v in self.variables if not v.name.startswith("_:") and not is_time(v))
        return f"the join of {count} patterns over {' '.join(map(str, named)) or 'no variable'}"

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

    def parts(self, rows: Ints) -> np.ndarray:
        """Return the rows of the inputs that each row was made from."""
        found: np.ndarray = self.output.cells[rows, : len(self.sources)]
        return found

    def identity(self, rows: Ints) -> np.ndarray:
        parts = self.parts(rows)
        return np.hstack([source.identity(parts[:, k]) for k, source in enumerate(self.sources)])

    def span(self) -> int:
        return self.output.capacity

    def present(self) -> Delta:
        rows = self.output.rows()
        parts = self.parts(rows)
        leave = np.full(len(rows), FOREVER, dtype=np.int64)
        if self.timed:
            for k, buffer in enumerate(self._buffers):
                own = buffer.cells[buffer.places_of(np.ascontiguousarray(parts[:, k])), LEAVE]
                leave = np.minimum(leave, own)
        return Delta(np.full(len(rows), ALWAYS, dtype=np.int64), np.ones_like(rows), rows, leave)

    def settle(self) -> None:
        for buffer in self._buffers:
            buffer.settle()
        self.output.settle()
        if self._out.shape[1] > 1 << 20:
            self._out = np.zeros((4, 256), dtype=np.int64)

    def held(self) -> int:
        return self.output.held

    @property
    def indexes(self) -> tuple[RingIndex, ...]:
        return tuple(self._indexes)

    @property
    def links_of_a_result(self) -> int:
        """How many pointers a result has to others."""
        return self.output.width - len(self.sources)

    @property
    def nbytes(self) -> int:
        """The bytes of indexes and results; those of the leaves, pointers included, are theirs."""
        own = sum(each.cells.nbytes for each in self._buffers if each.table is None)
        indexes = sum(index.nbytes for index in self._indexes)
        kept = self.output.cells.nbytes + self.output.free.nbytes
        return own + indexes + kept + self._out.nbytes

    def arrays(self) -> dict[str, Ints]:
        """Return the results and what was copied; indexes and lists follow from them."""
        found: dict[str, Ints] = {"begun": np.array([self._begun], dtype=np.int64)}
        rows = self.output.rows()
        found |= {"output.rows": rows, "output.cells": self.parts(rows)}
        for k, buffer in enumerate(self._buffers):
            if buffer.table is None:
                found[f"cells.{k}"] = buffer.copied()
        return found

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._begun = bool(arrays["begun"][0])
        self.output.restore(part("output", arrays))
        for k, buffer in enumerate(self._buffers):
            buffer.restore(arrays.get(f"cells.{k}"), begun=self._begun)
        if self._lists:
            self._link_again()

    def _move_heads(self, k: int) -> None:
        """Let the first of each list know the new place of the mapping whose list it is."""
        heads = self._buffers[k].results
        places = np.flatnonzero(heads >= 0)
        self.output.cells[heads[places], 2 * len(self._buffers) + k] = -places - 2

    def _link_again(self) -> None:
        """Put every result into the lists of what can end it."""
        results = self.output.rows()
        parts = self.parts(results)
        places = np.column_stack(
            [each.places_of(parts[:, k]) for k, each in enumerate(self._buffers)]
        )
        links = self.output.cells[:, len(self._buffers) :]
        if self._lists > 1:
            for k, buffer in enumerate(self._buffers):
                _chain(results, places[:, k], buffer.results, links[:, k:], len(self._buffers))
            return
        leave = np.column_stack(
            [each.cells[places[:, k], LEAVE] for k, each in enumerate(self._buffers)]
        )
        first = np.argmin(leave, axis=1)
        for k, buffer in enumerate(self._buffers):
            here = first == k
            _chain(results[here], places[here, k], buffer.results, links, 0)


def _chain(
    results: Ints,
    places: Ints,
    heads: Ints,
    links: np.ndarray,
    back: int,
) -> None:
    """List the results made from each mapping; linked both ways if `back` says how far off."""
    order = np.argsort(places, kind="stable")
    results, places = results[order], places[order]
    starts = np.append(True, places[1:] != places[:-1]) if len(places) else np.zeros(0, dtype=bool)
    heads[places[starts]] = results[starts]
    after = np.append(np.where(starts[1:], -1, results[1:]), -1)[: len(results)]
    links[results, 0] = after
    if back:
        before = np.concatenate(([-1], results[:-1]))[: len(results)]
        # The first of a list remembers whose list it is.
        links[results, back] = np.where(starts, -places - 2, before)


__all__ = ["ALWAYS", "MAX_INPUTS", "Join"]
