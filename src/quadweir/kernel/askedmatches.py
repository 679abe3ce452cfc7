"""The matches that the members of a template ask for: those with constants that some member has."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from quadweir.kernel.arrays import Ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.oneway import OneWay
from quadweir.kernel.targets import Targets
from quadweir.plan.program import Program
from quadweir.plan.pushdown import find_asked


@final
class AskedMatches:
    """Tells the matches that some member asks for from those that none does.

    State: how many members have each combination of constants that matches are tested for.
    Forgets: the constants of a member, when it leaves.

    Args:
        program: What the shard runs, for a template.
        everything: Whether the router knows all parameters together, so that no index of these is
            needed here.
    """

    def __init__(self, program: Program, *, everything: bool) -> None:
        assert program.template is not None
        parameters = program.template.parameters
        self._asked = {
            leaf: [
                (
                    [program.matches[leaf].variables.index(variable) for variable, _ in pairs],
                    tuple(parameters.index(parameter) for _, parameter in pairs),
                )
                for pairs in alternatives
            ]
            for leaf, alternatives in find_asked(program).items()
        }
        # Whether some member has a combination of constants, for each set of parameters that a
        # match is tested for; the router knows about all of them.
        known = tuple(range(len(parameters))) if everything else None
        self._wanted = {
            places: OneWay(len(places))
            for alternatives in self._asked.values()
            for _, places in alternatives
            if places != known
        }

    @property
    def nbytes(self) -> int:
        """The bytes that the constants of members take here."""
        return sum(each.nbytes for each in self._wanted.values())

    def come(self, constants: Ints) -> None:
        """Take the constants of members, one row for each of them."""
        for places, index in self._wanted.items():
            index.add(constants[:, places], np.ones(len(constants), dtype=np.int64))

    def go(self, constants: Ints) -> None:
        """Forget the constants of members."""
        less = np.full(len(constants), -1, dtype=np.int64)
        for places, index in self._wanted.items():
            index.add(constants[:, places], less)
            index.pack()

    def forget(self) -> None:
        """Forget the constants of all members."""
        self._wanted = {places: OneWay(len(places)) for places in self._wanted}

    def admitted(self, events: Events, targets: Targets, dictionary: Dictionary) -> Events:
        """Leave out the matches that no member asks for; see `are_wanted`."""
        if not self._asked:
            return events
        matches = {}
        for place, columns in events.matches.items():
            good = self.are_wanted(place, columns, targets, dictionary)
            kept = columns if good is None else columns.pick(good)
            if len(kept.time):
                matches[place] = kept
        return Events(matches, events.elements, events.seen)

    def are_wanted(
        self, place: int, matches: MatchColumns, targets: Targets, dictionary: Dictionary
    ) -> NDArray[np.bool_] | None:
        """Which matches some member asks for; None for all.

        Args:
            place: The place of what they match among the matches of the program.
            matches: The matches.
            targets: The members by all their constants.
            dictionary: The shard's dictionary; it holds the members' constants.
        """
        if place not in self._asked:
            return None
        numbers: dict[int, Ints] = {}
        good = np.zeros(len(matches.time), dtype=bool)
        for columns, places in self._asked[place]:
            for column in columns:
                if column not in numbers:
                    given = matches.columns[column]
                    is_encoded = isinstance(given, np.ndarray)
                    numbers[column] = given if is_encoded else dictionary.encode(given)
            keys = np.column_stack([numbers[column] for column in columns])
            index = self._wanted.get(places)
            good |= targets.are_wanted(keys) if index is None else index.find(keys) >= 0
        return good
