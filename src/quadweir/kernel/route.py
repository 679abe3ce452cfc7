"""The router inside a dataflow: a row of a shared core becomes one for each class that admits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

import numpy as np

from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints
from quadweir.kernel.clocks import TimeClock
from quadweir.kernel.relation import Delta, Operator, in_order, no_change
from quadweir.kernel.spellings import ZERO
from quadweir.kernel.tables import SlotTable
from quadweir.kernel.targets import TargetRows, Targets
from quadweir.plan.nodes import CLASS
from quadweir.terms import Variable

# Columns of a row: that of the core, the class, and when it goes.
_SOURCE: Final = 0
_CLASS: Final = 1
_LEAVE: Final = 2
_WIDTH: Final = 3
# So many sorted runs of rows that wait to go are not merged.
_RUNS: Final = 12


@final
class Route(Operator):
    """One row for each class of members whose windows admit a row of the core (paper 004).

    Linear: yes.
    State: for each row the row of the core, its class, and when it goes. A class that comes has the
        rows that are there, if they are later than its instant.
    Forgets: a row when its first part leaves the windows of its class.

    Args:
        source: The core, over the longest windows.
        parts: For each open window, its clock and the variables of the times of parts in it.
        fixed: The variables of the times of parts in other windows.
        parameters: The parameters that every row binds.
        variables: What its rows bind.
    """

    def __init__(
        self,
        source: Operator,
        parts: Sequence[tuple[TimeClock, tuple[Variable, ...]]],
        fixed: tuple[Variable, ...],
        parameters: tuple[Variable, ...],
        variables: tuple[Variable, ...],
    ) -> None:
        self.source = source
        self.variables = variables
        self.always = (source.always & frozenset(variables)) | {CLASS}
        self.timed = True
        self.parameters = parameters
        self._parts = tuple(parts)
        self._fixed = fixed
        # Whom a row may go to: the classes of members with its parameters' values.
        self._targets = self._no_targets()
        self._rows = SlotTable(_WIDTH)
        # Rows that wait to go: runs, each sorted by when they go.
        self._waiting: list[Ints] = []
        # No row of the core has an oldest part that is later; None if that is not known.
        self._latest: int | None = ALWAYS
        # Classes that came since the last step, and rows that are there and that they may have.
        self._catching_up: list[tuple[Delta, Targets]] = []

    # --- classes ---

    def come(self, keys: Ints, classes: Ints, ranges: Ints, since: Ints) -> None:
        """Take new classes, each with a combination of the parameters' values."""
        rows = TargetRows(np.column_stack((keys, classes)), keys, ranges, since)
        self._targets.add(rows)
        if len(since):
            self._catch_up(rows)

    def _catch_up(self, rows: TargetRows) -> None:
        """Give classes the rows that are there and later than their instants."""
        earliest = int(rows.since.min())
        if self._latest is not None and earliest >= self._latest:
            return
        there = self.source.present()
        oldest = self._oldest(there.row).min(axis=1)
        self._latest = int(oldest.max(initial=ALWAYS))
        there = there.pick(np.flatnonzero(oldest > earliest))
        if len(there.t):
            targets = self._no_targets()
            targets.add(rows)
            self._catching_up.append((there, targets))

    @property
    def catches_up(self) -> bool:
        """Whether classes that came may have rows that are there already."""
        return bool(self._catching_up)

    def go(self, keys: Ints, classes: Ints) -> None:
        """Give no more rows to classes; what they have leaves with time."""
        self._targets.remove(np.column_stack((keys, classes)))

    @property
    def nbytes(self) -> int:
        """The bytes that classes take."""
        return self._targets.nbytes

    def forget_classes(self) -> None:
        """Give rows to nobody, until classes come."""
        self._targets = self._no_targets()

    def _no_targets(self) -> Targets:
        return Targets(len(self.parameters) + 1, len(self.parameters), len(self._parts))

    # --- changes ---

    def run(self, inputs: list[Delta], through: int, admitted: int) -> Delta:
        (delta,) = inputs
        parts = []
        for there, targets in self._catching_up:
            now = np.full(len(there.t), through, dtype=np.int64)
            parts.append(self._routed(there._replace(t=now), targets))
        self._catching_up = []
        came = np.flatnonzero(delta.sign > 0)
        if len(came):
            parts.append(self._routed(delta.pick(came), self._targets))
        gone = self._leaving(min(through, FOREVER - 1))
        if len(gone):
            leave = np.ascontiguousarray(self._rows.cells[gone, _LEAVE])
            parts.append(Delta(leave, -np.ones_like(gone), gone, leave))
            self._rows.release(gone)
        if not parts:
            return no_change()
        return in_order(parts)[0] if len(parts) > 1 else parts[0]

    def _oldest(self, rows: Ints) -> Ints:
        """Return the time of the oldest part in each open window, and that in all others."""
        found = np.full((len(rows), len(self._parts) + 1), FOREVER, dtype=np.int64)
        for place, (_, times) in enumerate((*self._parts, (None, self._fixed))):
            for variable in times:
                time = self.source.column(variable, rows)
                # 0 where a row has no such part.
                time = np.where(time == 0, FOREVER, time - ZERO)
                found[:, place] = np.minimum(found[:, place], time)
        return found

    def _routed(self, delta: Delta, targets: Targets) -> Delta:
        """Give a row of the core to each target that admits it."""
        oldest = self._oldest(delta.row)
        first = oldest.min(axis=1)
        if self._latest is not None:
            self._latest = max(self._latest, int(first.max()))
        # A length of a window with steps may be less than the age at the close: exactness is below.
        slack = np.array([clock.step_ms or 0 for clock, _ in self._parts], dtype=np.int64)
        ages = delta.t.reshape(-1, 1) - oldest[:, : len(self._parts)] - slack
        keys = self.source.columns(self.parameters, delta.row)
        taken, slots = targets.find(keys, ages, first)
        leave = delta.leave[taken]
        for place, (clock, _) in enumerate(self._parts):
            own_first = oldest[taken, place]
            own = clock.leaves(own_first, targets.length(slots, place))
            leave = np.where(own_first < FOREVER, np.minimum(leave, own), leave)
        stays = leave > delta.t[taken]
        if not stays.all():
            taken, slots, leave = taken[stays], slots[stays], leave[stays]
        rows = self._rows.take(len(taken))
        cells = self._rows.cells
        cells[rows, _SOURCE] = delta.row[taken]
        cells[rows, _CLASS] = targets.ids(slots)[:, -1]
        cells[rows, _LEAVE] = leave
        self._waiting.append(rows[np.argsort(leave, kind="stable")])
        return Delta(delta.t[taken], np.ones_like(rows), rows, leave)

    def _leaving(self, through: int) -> Ints:
        """Take out the rows that go until an instant, in order of when they do."""
        cells = self._rows.cells
        gone, waiting = [], []
        for run in self._waiting:
            cut = int(np.searchsorted(cells[run, _LEAVE], through, side="right"))
            if cut:
                gone.append(run[:cut])
            if cut < len(run):
                waiting.append(run[cut:])
        # Runs of like size are merged, so that each row is moved a few times only.
        waiting.sort(key=len, reverse=True)
        while len(waiting) > _RUNS and len(waiting[-1]) + len(waiting[-2]) > 0:
            together = np.concatenate((waiting.pop(), waiting.pop()))
            order = np.argsort(cells[together, _LEAVE], kind="stable")
            waiting.append(together[order])
            waiting.sort(key=len, reverse=True)
        self._waiting = waiting
        if not gone:
            return ints(0)
        found = np.concatenate(gone)
        return found[np.argsort(cells[found, _LEAVE], kind="stable")] if len(gone) > 1 else found

    # --- rows ---

    def column(self, variable: Variable, rows: Ints) -> Ints:
        cells = self._rows.cells
        if variable == CLASS:
            return cells[rows, _CLASS] + ZERO
        return self.source.column(variable, np.ascontiguousarray(cells[rows, _SOURCE]))

    def identity(self, rows: Ints) -> np.ndarray:
        cells = self._rows.cells[rows]
        own = np.ascontiguousarray(cells[:, _SOURCE])
        return np.column_stack((self.source.identity(own), cells[:, _CLASS]))

    def span(self) -> int:
        return self._rows.capacity

    def settle(self) -> None:
        self._rows.settle()

    def held(self) -> int:
        return self._rows.held

    def arrays(self) -> dict[str, Ints]:
        return self._rows.arrays()

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._rows.restore(arrays)
        self._latest = None
        rows = self._rows.rows()
        order = np.argsort(self._rows.cells[rows, _LEAVE], kind="stable")
        self._waiting = [rows[order]]
