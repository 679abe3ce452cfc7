"""The members of a template in a shard: what they ask for, and which answers are whose (paper 004).

The index of constants lets those matches in that some member asks for, before anything else is done
with them: a match that no query needs costs one lookup. The router hands each answer to the members
that have the values of its parameters as their constants and whose windows held all its parts at its
instant.

Answers that are final once they arrive (E1) are routed by their parts' ages. Other answers were
routed to a class of members below (`route.py`), and here go to the members of the class.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from quadweir.errors import InternalError
from quadweir.kernel.answers import Rows
from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints
from quadweir.kernel.askedmatches import AskedMatches
from quadweir.kernel.classes import Classes
from quadweir.kernel.clocks import TimeClock
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.fan import Fan
from quadweir.kernel.oneway import OneWay
from quadweir.kernel.route import Route
from quadweir.kernel.spellings import ZERO
from quadweir.kernel.targets import TargetRows, Targets
from quadweir.kernel.window import HasLength
from quadweir.plan.nodes import CLASS
from quadweir.plan.program import Program
from quadweir.plan.template import TemplateMember


@final
class Router:
    """Lets in the matches that some member needs, and gives each member its own answers.

    State: members come with the shard; the numbers of classes are saved.
    Forgets: what was held for a member, when it leaves.

    Args:
        program: What the shard runs, for a template.
        width: How many columns of a row are answered; parameters follow, then times or a class.
        dictionary: The shard's dictionary; it holds the members' constants.
        leaves: What holds the matches of windows, with the places of the windows.
        routes: Those of them that route rows to classes.
    """

    def __init__(
        self,
        program: Program,
        width: int,
        dictionary: Dictionary,
        leaves: Sequence[tuple[int, HasLength]],
        routes: Sequence[Route | Fan],
    ) -> None:
        assert program.template is not None
        self._template = template = program.template
        self._width = width
        self._dictionary = dictionary
        self._leaves = tuple(leaves)
        self._routes = tuple(routes)
        self._has_classes = CLASS in program.report.columns
        self._times = [
            np.array([place for place, (own, _) in enumerate(program.instants) if own == window])
            for window in template.windows
        ]
        self._has_times = bool(program.instants)
        count = len(template.parameters)
        self._targets = Targets(1, count + self._has_classes, len(template.windows))
        self._classes = Classes(len(template.windows))
        self._query = program.query
        self._can_merge = self._has_classes and not any(each.parameters for each in routes)
        # How many members have each class together with the constants that a route looks at.
        self._places = [
            np.array([template.parameters.index(each) for each in route.parameters], dtype=np.int64)
            for route in routes
        ]
        self._users = [OneWay(len(each) + 1) for each in self._places]
        self._asked = AskedMatches(program, everything=not self._has_classes)
        self.since = FOREVER
        """No member sees elements up to this instant."""

    # --- members ---

    def __len__(self) -> int:
        return len(self._targets)

    def numbers(self) -> list[int]:
        """The numbers of all members."""
        found: list[int] = self._targets.rows().ids[:, 0].tolist()
        return found

    @property
    def nbytes(self) -> int:
        """The bytes that members take here, without the spellings of their constants."""
        indexes = self._asked.nbytes + sum(each.nbytes for each in self._users)
        routes = sum(each.nbytes for each in self._routes)
        return indexes + routes + self._classes.nbytes + self._targets.nbytes

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self._classes)

    def change(self, added: Sequence[TemplateMember], removed: Collection[int]) -> bool:
        """Let members come and go; one that is replaced is in both.

        Returns:
            Whether members that came see rows that are there already.
        """
        gone = None
        if removed:
            numbers = np.fromiter(removed, dtype=np.int64, count=len(removed)).reshape(-1, 1)
            try:
                gone, keys = self._targets.remove(numbers)
            except KeyError as error:
                raise InternalError(f"there is no member {error}") from error
        if added:
            self._add(self._read(added))
        if gone is not None:
            self._remove(gone, keys)
        self._dictionary.settle()
        self._set_lengths()
        return any(each.catches_up for each in self._routes)

    def _read(self, added: Sequence[TemplateMember]) -> TargetRows:
        template = self._template
        if any(
            len(each.constants) != len(template.parameters)
            or len(each.ranges) != len(template.windows)
            for each in added
        ):
            raise InternalError("a member of another template")
        since = np.array([each.since for each in added], dtype=np.int64)
        if template.one_since and (
            (since != since[0]).any() or (len(self) and since[0] != self.since)
        ):
            raise InternalError("members of this template must join at one instant")
        spellings = [str(term) for each in added for term in each.constants]
        constants = self._dictionary.numbers(spellings).reshape(len(added), -1)
        ranges = np.array([each.ranges for each in added], dtype=np.int64)
        ids = np.array([each.number for each in added], dtype=np.int64)
        return TargetRows(
            ids.reshape(-1, 1),
            constants.reshape(len(added), len(template.parameters)),
            ranges.reshape(len(added), len(template.windows)),
            since,
        )

    def _add(self, rows: TargetRows, classes: Ints | None = None) -> None:
        """Add members; `rows.keys` are their constants."""
        constants = rows.keys
        self._asked.come(constants)
        if self._has_classes:
            if classes is None:
                classes = self._classes.come(rows.ranges, rows.since)
            rows = rows._replace(keys=np.column_stack((constants, classes + ZERO)))
            for route, own_places, users in self._by_route():
                own = np.column_stack((constants[:, own_places], classes))
                _, became = users.transitions(own, np.ones(len(own), dtype=np.int64))
                new = became > 0
                route.come(own[new, :-1], own[new, -1], rows.ranges[new], rows.since[new])
        held = self._targets.add(rows)
        self._dictionary.hold(held[:, : constants.shape[1]].ravel())

    def _remove(self, rows: TargetRows, keys: Ints) -> None:
        """Forget what was kept for members that `_targets` does not have any more."""
        constants = rows.keys[:, : len(self._template.parameters)]
        self._asked.go(constants)
        if self._has_classes:
            self._classes.go(rows.ranges, rows.since)
            classes = rows.keys[:, -1] - ZERO
            less = np.full(len(constants), -1, dtype=np.int64)
            for route, own_places, users in self._by_route():
                own = np.column_stack((constants[:, own_places], classes))
                _, became = users.transitions(own, less)
                users.pack()
                route.go(own[became < 0, :-1], own[became < 0, -1])
        self._dictionary.drop(keys[:, : constants.shape[1]].ravel())

    def merge_classes(self, last: int) -> None:
        """Make one class of those that have the same content by now.

        Where routes look at constants, a class has only rows with those of its own members, and
        others cannot join it.

        Args:
            last: The last report; nothing before it counts any more.
        """
        if not self._can_merge or len(self._classes) < 2:
            return
        merged = self._classes.merge(lambda ranges, since: self._are_over(ranges, since, last))
        if not merged:
            return
        rows = self._targets.rows()
        of = rows.keys[:, -1] - ZERO
        moved = rows.pick(np.isin(of, list(merged)))
        self._targets.remove(moved.ids)
        keys = moved.keys.copy()
        keys[:, -1] = [merged[each - ZERO] + ZERO for each in keys[:, -1].tolist()]
        self._targets.add(moved._replace(keys=keys))
        ones = np.ones(len(keys), dtype=np.int64)
        for route, _, users in self._by_route():
            users.add(keys[:, -1:] - ZERO, ones)
            users.add(moved.keys[:, -1:] - ZERO, -ones)
            gone = np.array(list(merged), dtype=np.int64)
            route.go(np.zeros((len(gone), 0), dtype=np.int64), gone)

    def _are_over(self, ranges: Ints, since: Ints, last: int) -> NDArray[np.bool_]:
        over = np.ones(len(since), dtype=bool)
        for place, each in enumerate(self._query.windows):
            clock = TimeClock.of(each.scope)
            if place in self._template.windows:
                leave = clock.leaves(since, ranges[:, self._template.windows.index(place)])
            else:
                leave = clock.interval(since)[1]
            over &= leave <= last
        return over

    def _by_route(self) -> Iterator[tuple[Route | Fan, Ints, OneWay]]:
        return zip(self._routes, self._places, self._users, strict=True)

    def _set_lengths(self) -> None:
        """Let every open window be as long as the longest that a member has."""
        self.since = self._targets.earliest()
        longest = self._targets.longest()
        for place, window in enumerate(self._template.windows):
            for own, leaf in self._leaves:
                if own == window:
                    leaf.set_length(int(longest[place]) or 1)

    def longest(self) -> dict[int, int]:
        """The length of each open window, by its place in the query."""
        found = zip(self._template.windows, self._targets.longest().tolist(), strict=True)
        return {window: length or 1 for window, length in found}

    # --- in -------------------------------------------------------------------------------------

    def admitted(self, events: Events) -> Events:
        """Leave out what no member sees, and the matches that no member asks for."""
        if self.since > ALWAYS:
            events = events.later(self.since)
        return self._asked.admitted(events, self._targets, self._dictionary)

    def are_wanted(self, place: int, matches: MatchColumns) -> NDArray[np.bool_] | None:
        """Which matches some member asks for; None for all.

        Args:
            place: The place of what they match among the matches of the program.
            matches: The matches.
        """
        return self._asked.are_wanted(place, matches, self._targets, self._dictionary)

    # --- out ------------------------------------------------------------------------------------

    def routed(self, rows: Rows) -> Rows:
        """Hand rows on to the members they belong to; each row once for each of them."""
        start = self._width + len(self._template.parameters)
        end = start + 1 if self._has_classes else start
        keys = rows.values[:, self._width : end]
        ages, oldest = self._ages(rows, start)
        taken, slots = self._targets.find(keys, ages, oldest)
        return Rows(
            rows.t[taken],
            rows.sign[taken],
            rows.values[taken, : self._width],
            self._targets.ids(slots)[:, 0],
        )

    def _ages(self, rows: Rows, start: int) -> tuple[Ints, Ints]:
        """Give, for each open window, how old the oldest part of a row is at its instant.

        The second array has the times of the oldest parts.
        """
        count = len(rows.t)
        ages = np.zeros((count, len(self._template.windows)), dtype=np.int64)
        if not self._has_times:
            # A class was found by its windows; and the only part of a row is as old as the row.
            return ages, rows.t
        times = rows.values[:, start:]
        # 0 where a row has no such part.
        times = np.where(times == 0, rows.t.reshape(-1, 1), times - ZERO)
        for place, own in enumerate(self._times):
            if len(own):
                ages[:, place] = rows.t - times[:, own].min(axis=1)
        return ages, times.min(axis=1)

    # --- state ----------------------------------------------------------------------------------

    def held(self) -> Ints:
        """The numbers of the terms that are held for members."""
        keys = self._targets.keys()[:, : len(self._template.parameters)]
        return np.ascontiguousarray(keys).ravel()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the numbers of classes, which rows in the state refer to."""
        return dict(self._classes.arrays()) if self._has_classes else {}

    def read(self) -> tuple[TargetRows, list[str]]:
        """Return the members, with their constants spelled out; for `number_again`."""
        rows = self._targets.rows()
        constants = rows.keys[:, : len(self._template.parameters)]
        return rows, self._dictionary.spellings(np.ascontiguousarray(constants).ravel())

    def number_again(
        self, members: tuple[TargetRows, list[str]], arrays: Mapping[str, NDArray[Any]]
    ) -> None:
        """Look the constants up in a dictionary that was restored, and take the saved classes.

        Args:
            members: What `read` returned before that.
            arrays: What `arrays` returned in another shard.
        """
        rows, spellings = members
        template = self._template
        constants = self._dictionary.numbers(spellings).reshape(
            len(rows.ids), len(template.parameters)
        )
        self._targets = Targets(
            1, len(template.parameters) + self._has_classes, len(template.windows)
        )
        self._asked.forget()
        self._users = [OneWay(len(each) + 1) for each in self._places]
        for route in self._routes:
            route.forget_classes()
        self._restore(rows._replace(keys=constants), arrays)

    def restore(
        self, members: Sequence[TemplateMember], arrays: Mapping[str, NDArray[Any]]
    ) -> None:
        """Take the first members, and the saved classes.

        Args:
            members: The members.
            arrays: What `arrays` returned in another shard; empty if it had no such template.
        """
        if members:
            self._restore(self._read(members), arrays)
        self._set_lengths()

    def _restore(self, rows: TargetRows, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Add members, whose keys are constants."""
        classes = None
        if self._has_classes and arrays:
            classes, gone = self._classes.restore(arrays, rows.ranges, rows.since)
            for route in self._routes:
                if isinstance(route, Fan):
                    # What these had is still in the state above.
                    none = np.zeros((len(gone.numbers), 0), dtype=np.int64)
                    route.come(none, *gone)
                    route.go(none, gone.numbers)
        self._add(rows, classes)
        self._dictionary.settle()

    def lengthen(self) -> None:
        """Set the lengths of windows again, after they were restored."""
        self._set_lengths()
