"""A relation whose changes the stage before computed."""

from __future__ import annotations

from typing import final

import numpy as np

from quadweir.kernel.arrays import FOREVER, Ints, ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.events import Changes
from quadweir.kernel.relation import Delta, Operator, no_change
from quadweir.terms import Variable


@final
class ReceivedChanges(Operator):
    """The changes that the stage before sent, as if its operator were here.

    Only operators that read the values of changes may follow it: a row exists for one step, and
    one that goes does not have the number of the one that came.

    Linear: yes.
    State: none between steps.
    Forgets: the changes of a step with the step.
    """

    def __init__(
        self, sent: tuple[Variable, ...], always: frozenset[Variable], dictionary: Dictionary
    ) -> None:
        self.sent = sent
        self.variables = sent
        self.always = always
        self._dictionary = dictionary
        self._values = np.zeros((0, len(sent)), dtype=np.int64)
        self._waiting: Changes | None = None

    def hear(self, changes: Changes) -> None:
        """Take the changes of the next step."""
        self._waiting = changes

    def step(self, inputs: list[Delta]) -> Delta:
        changes, self._waiting = self._waiting, None
        if changes is None:
            return no_change()
        count = len(changes.t)
        self._values = np.empty((count, len(self.sent)), dtype=np.int64)
        for place, column in enumerate(changes.columns):
            self._values[:, place] = self._dictionary.encode(column)
        rows = np.arange(count, dtype=np.int64)
        return Delta(changes.t, changes.sign, rows, np.full(count, FOREVER, dtype=np.int64))

    def column(self, variable: Variable, rows: Ints) -> Ints:
        if variable not in self.sent:
            return ints(len(rows))
        found: Ints = self._values[rows, self.sent.index(variable)]
        return found

    def settle(self) -> None:
        self._values = self._values[:0]
