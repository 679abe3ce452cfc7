"""Whose answers they are: the index of constants and the router of a template (paper 004).

The index of constants lets those matches in that some member asks for, before anything else is done
with them: a match that no query needs costs one lookup. The router hands each answer to the members
that have the values of its parameters as their constants and, where members differ in the lengths
of their windows, whose windows held all its parts at its instant.

The paper's router goes through a list of windows by size for each answer. Here members with equal
constants stand together, sorted by their first window; those whose window is long enough are found
by halving, so that an answer costs what it is handed on for.
"""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quadweir.kernel.answers import Rows
from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.oneway import OneWay
from quadweir.kernel.spellings import ZERO
from quadweir.plan.program import Program


@final
class Router:
    """Lets in the matches that some member needs, and gives each member its own answers.

    Args:
        program: What the shard runs, for a template.
        width: How many columns of a row are answered; parameters follow, then times.
        dictionary: The shard's dictionary; the members' constants stay in it.
    """

    def __init__(
        self,
        program: Program,
        width: int,
        dictionary: Dictionary,
    ) -> None:
        assert program.template is not None
        self.template = template = program.template
        self._width = width
        self._dictionary = dictionary
        self._places = [
            np.array([place for place, (own, _) in enumerate(program.instants) if own == window])
            for window in template.windows
        ]
        parameters = template.parameters
        self._asked = {
            number: tuple(
                (column, parameters.index(variable))
                for column, variable in enumerate(plan.variables)
                if variable in parameters
            )
            for number, plan in enumerate(program.matches)
            if any(variable in parameters for variable in plan.variables)
        }
        self._spellings = [str(term) for each in template.members for term in each.constants]
        dictionary.keep(self._number())

    def number_anew(self) -> None:
        """Look the constants up in a dictionary that was restored."""
        self._number()

    def _number(self) -> Ints:
        members = self.template.members
        numbers = self._dictionary.numbers(self._spellings)
        keys = numbers.reshape(len(members), len(self.template.parameters))
        self._admits: dict[int, OneWay] = {}
        for leaf, asked in self._asked.items():
            own = np.unique(keys[:, [place for _, place in asked]], axis=0)
            index = OneWay(own.shape[1], capacity=len(own))
            index.add(own, np.ones(len(own), dtype=np.int64))
            self._admits[leaf] = index
        self._index = OneWay(max(1, keys.shape[1]), capacity=len(members))
        if not keys.shape[1]:
            keys = np.zeros((len(members), 1), dtype=np.int64)
        entries = self._index.add(keys, np.ones(len(members), dtype=np.int64))
        ranges = np.array([each.ranges for each in members], dtype=np.int64)
        ranges = ranges.reshape(len(members), len(self.template.windows))
        first = ranges[:, 0] if ranges.shape[1] else ints(len(members))
        order = np.lexsort((first, entries))
        self._members = np.array([each.number for each in members], dtype=np.int64)[order]
        self._ranges = ranges[order]
        # Members of one entry stand together, the shortest window first.
        self._longest = int(first.max()) + 1
        self._sorted = entries[order] * self._longest + first[order]
        self._ends = np.searchsorted(
            entries[order], np.arange(self._index.capacity, dtype=np.int64), side="right"
        )
        return numbers

    # --- in -------------------------------------------------------------------------------------

    def admitted(self, events: Events) -> Events:
        """Leave out the matches that no member asks for."""
        if not self._admits:
            return events
        matches = {}
        for place, columns in events.matches.items():
            kept = self._admitted(place, columns) if place in self._admits else columns
            if len(kept.time):
                matches[place] = kept
        return Events(matches, events.elements, events.seen)

    def _admitted(self, place: int, matches: MatchColumns) -> MatchColumns:
        keys = np.empty((len(matches.time), len(self._asked[place])), dtype=np.int64)
        for number, (column, _) in enumerate(self._asked[place]):
            given = matches.columns[column]
            numbers = given if isinstance(given, np.ndarray) else self._dictionary.encode(given)
            keys[:, number] = numbers
        good = self._admits[place].find(keys) >= 0
        if good.all():
            return matches
        if not good.any():
            return MatchColumns(ints(0), ints(0), [pa.array([], pa.string())] * keys.shape[1])
        mask = pa.array(good)
        return MatchColumns(
            matches.time[good],
            matches.position[good],
            [
                each[good] if isinstance(each, np.ndarray) else each.filter(mask)
                for each in matches.columns
            ],
        )

    # --- out ------------------------------------------------------------------------------------

    def routed(self, rows: Rows) -> Rows:
        """Hand rows on to the members they belong to; each row once for each of them."""
        count = len(self.template.parameters)
        keys = rows.values[:, self._width : self._width + count]
        if not count:
            keys = np.zeros((len(rows.t), 1), dtype=np.int64)
        entries = self._index.find(keys)
        places = np.flatnonzero(entries >= 0)
        entries = entries[places]
        ages = self._ages(rows, places, self._width + count)
        # The first whose window is longer than the age of the oldest part.
        first = np.minimum(ages[:, 0], self._longest - 1) if ages.shape[1] else ints(len(places))
        side: Literal["left", "right"] = "right" if ages.shape[1] else "left"
        starts = np.searchsorted(self._sorted, entries * self._longest + first, side=side)
        times = self._ends[entries] - starts
        taken = np.repeat(np.arange(len(places)), times)
        members = np.arange(len(taken)) - np.repeat(np.cumsum(times) - times - starts, times)
        if ages.shape[1] > 1:
            fits = (ages[taken, 1:] < self._ranges[members, 1:]).all(axis=1)
            taken, members = taken[fits], members[fits]
        taken = places[taken]
        return Rows(
            rows.t[taken],
            rows.sign[taken],
            rows.values[taken, : self._width],
            self._members[members],
        )

    def _ages(self, rows: Rows, places: Ints, start: int) -> NDArray[Any]:
        """Give, for each window that differs, how old the oldest part of a row is at its instant."""
        ages = np.zeros((len(places), len(self._places)), dtype=np.int64)
        for number, own in enumerate(self._places):
            if not len(own):
                continue
            times = rows.values[places][:, start + own]
            # 0 where a row has no such part.
            times = np.where(times == 0, rows.t[places].reshape(-1, 1) + ZERO, times)
            ages[:, number] = rows.t[places] - (times.min(axis=1) - ZERO)
        return ages
