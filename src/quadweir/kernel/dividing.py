"""The windows of a query's shards, divided again for another number of shards.

All state of a first stage follows from what its windows hold, when they were looked at last, and when
the last report was (`takeover.take_over`). So only the rows of leaves are divided; joins, groups and reports
are made again from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from quadweir.errors import StateError
from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.dataflow import part
from quadweir.kernel.dictionary import Dictionary, distinct_of
from quadweir.kernel.shard import Shard
from quadweir.kernel.tables import ENTER
from quadweir.kernel.takeover import ADMITTED
from quadweir.kernel.timewindow import TimedLeaf
from quadweir.kernel.window import Leaf
from quadweir.kernel.xxhash import shard_numbers

State: TypeAlias = Mapping[str, NDArray[Any]]
"""What `Shard.arrays` returned."""

_DICTIONARY: Final = "dictionary."


@final
class DividedState:
    """The content of the windows of all shards, to be divided by a key.

    Args:
        shard: a shard of the same program, which knows the leaves.
        states: the state of each shard, in the order of shards; the arrays are used up.
        keys: for each leaf the place of the shard key among its variables, or None if every shard holds
            all of its rows.
        were: the same for the shards of these states; default: as `keys`.

    Raises:
        StateError: the shards have come to different instants.
    """

    def __init__(
        self,
        shard: Shard,
        states: Sequence[dict[str, NDArray[Any]]],
        keys: Sequence[int | None],
        were: Sequence[int | None] | None = None,
    ) -> None:
        self._leaves = [leaf for _, leaf in shard.dataflow.leaves]
        self._keys = keys
        were = keys if were is None else were
        self._terms = Dictionary()
        self._shared = _shared(states)
        self._rows: list[dict[str, NDArray[Any]]] = []
        found: list[list[dict[str, NDArray[Any]]]] = [[] for _ in self._leaves]
        for number, state in enumerate(states):
            terms = Dictionary()
            terms.restore(part(_DICTIONARY, state))
            for place, leaf in enumerate(self._leaves):
                if were[place] is None and number:
                    continue  # all have the same
                rows = part(_prefix(states[0], place), state)
                for numbers in leaf.terms(rows):
                    self._terms.renumber(numbers, terms)
                if len(states) > 1:
                    # A shard may hold rows of others, which it does not use.
                    rows = self._picked(place, rows, were[place], len(states), number)
                found[place].append(rows)
        self._places = [_prefix(states[0], place) for place in range(len(self._leaves))]
        for leaf, parts in zip(self._leaves, found, strict=True):
            self._rows.append(_together(leaf, parts))
        # After a change of the plan, what an eager leaf has yet to answer waits in it.
        waiting = [
            rows["waiting"][:, ENTER]
            for leaf, rows in zip(self._leaves, self._rows, strict=True)
            if isinstance(leaf, TimedLeaf) and leaf.eager
        ]
        later = np.concatenate([ints(0), *waiting])
        if len(later):
            self._shared[ADMITTED] = np.array([later.min() - 1], dtype=np.int64)

    def share(self, number: int, count: int) -> dict[str, NDArray[Any]]:
        """Return the state of one of so many shards, for `take_over`."""
        state = dict(self._shared)
        terms = Dictionary()
        held = [ints(0)]
        for place, leaf in enumerate(self._leaves):
            rows = self._picked(place, self._rows[place], self._keys[place], count, number)
            for numbers in leaf.terms(rows):
                terms.renumber(numbers, self._terms)
                held.append(numbers.ravel())
            state |= {f"{self._places[place]}{name}": each for name, each in rows.items()}
        terms.hold(np.concatenate(held))
        return state | {f"{_DICTIONARY}{name}": each for name, each in terms.arrays().items()}

    def _picked(
        self,
        place: int,
        rows: Mapping[str, NDArray[Any]],
        key: int | None,
        count: int,
        number: int,
    ) -> dict[str, NDArray[Any]]:
        """Return copies of the rows of a leaf that belong to a shard."""
        found = {name: np.array(each) for name, each in rows.items()}
        if key is None or count == 1:
            return found
        for names, first in self._leaves[place].row_arrays():
            values = np.ascontiguousarray(rows[names[0]][:, first + key])
            mine = self._shards(values, count) == number
            for name in names:
                found[name] = rows[name][mine]
        return found

    def _shards(self, values: Ints, count: int) -> Ints:
        """Return the shard of each value, as Spark finds it for streams."""
        codes, distinct = distinct_of(values)
        texts = pc.fill_null(self._terms.decode(distinct), "")
        numbers: Ints = shard_numbers(texts, count)[codes]
        return numbers


def _prefix(state: State, place: int) -> str:
    return f"network.operator.{int(state['leaves'][place])}."


def _together(leaf: Leaf, parts: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    found = dict(parts[0])
    for names, _ in leaf.row_arrays():
        for name in names:
            found[name] = np.concatenate([each[name] for each in parts])
    return found


def _shared(states: Sequence[State]) -> dict[str, NDArray[Any]]:
    """Return what is the same in all shards: times, clocks and when windows close."""
    first = states[0]
    instants = {int(each["shard"][0]) for each in states}
    if len(instants) > 1:
        raise StateError(
            "the shards of the checkpoint have come to different instants",
            detail=", ".join(map(str, sorted(instants))),
            hint="Restore the checkpoint from a backup.",
        )
    times = np.stack([each["shard"] for each in states])
    found = {
        name: each
        for name, each in first.items()
        if name.startswith("network.clock.") or name in ("windows", "leaves", ADMITTED)
    }
    # What was tracked is the same in all shards where it is not counted again.
    found["shard"] = np.array([times[0, 0], times[0, 1], times[:, 2].max(), times[:, 3].max()])
    if "closes" in first:
        closes = np.stack([each["closes"] for each in states])
        # The first close has the earliest element; the rest says how far time has come.
        found["closes"] = np.append(closes[:, 0].min(), closes[:, 1:].max(axis=0))
    return found
