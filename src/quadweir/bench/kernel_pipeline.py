"""The set-up of the kernel's benchmarks: windows and operators that are fed with numbers.

As in paper 001, the input is mappings of integers; terms, matching and answers are left out. Every
stream brings one mapping in each millisecond, so a window of n milliseconds holds n mappings, and
the operators run at every instant.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from quadweir.algebra.windows import CountScope, CountUnit
from quadweir.kernel.arrays import Ints
from quadweir.kernel.clocks import CountClock, Elements, TimeClock
from quadweir.kernel.countwindow import CountedLeaf
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.multijoin import Join
from quadweir.kernel.relation import Delta, Operator
from quadweir.kernel.spellings import ZERO
from quadweir.kernel.timewindow import TimedLeaf
from quadweir.kernel.window import Matches
from quadweir.terms import Variable

CHUNK: Final = 1 << 16


@final
@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured value, and its target: a minimum or a maximum."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.at_least is not None:
            return self.value >= self.at_least
        if self.at_most is not None:
            return self.value <= self.at_most
        return None

    def as_json(self) -> dict[str, object]:
        """The measured values as JSON; fields that do not apply are left out."""
        found: dict[str, object] = {"name": self.name, "value": self.value, "unit": self.unit}
        for key in ("at_least", "at_most"):
            if getattr(self, key) is not None:
                found[key] = getattr(self, key)
                found["met"] = self.met
        return found | ({"note": self.note} if self.note else {})


@final
class Pipeline:
    """Time windows of one size, and operators above them.

    Args:
        window: How many mappings each window holds.
        columns: For each window the names of its variables, and the upper bound of their values.
        above: Makes the operators above the leaves, each with its inputs.
        eager: Whether the leaves pass matches on as they arrive.
        counted: Whether the windows are count windows.
    """

    def __init__(
        self,
        window: int,
        columns: Sequence[dict[str, int]],
        above: Callable[
            [list[Operator], Dictionary], Sequence[tuple[Operator, tuple[Operator, ...]]]
        ],
        *,
        eager: bool = False,
        counted: bool = False,
        seed: int = 1,
    ) -> None:
        self.dictionary = Dictionary()
        self.window = window
        self._columns = columns
        self.leaves: list[TimedLeaf | CountedLeaf] = []
        self._clocks: list[CountClock] = []
        for each in columns:
            variables = tuple(map(Variable, each))
            if counted:
                clock = CountClock(CountScope(size=window, unit=CountUnit.ELEMENTS, step=None))
                self._clocks.append(clock)
                self.leaves.append(CountedLeaf(variables, clock, self.dictionary))
            else:
                clock_of = TimeClock(0, window)
                self.leaves.append(TimedLeaf(variables, clock_of, self.dictionary, eager=eager))
        self.operators = list(above(list(self.leaves), self.dictionary))
        self._random = np.random.default_rng(seed)
        self.now = 0
        self.spent = 0.0
        self.taken = 0
        self.made = 0
        self.values: list[np.ndarray] = []

    @property
    def join(self) -> Join:
        """The join among the operators."""
        return next(each for each, _ in self.operators if isinstance(each, Join))

    def run(self, mappings: int, step: int = CHUNK) -> float:
        """Take about `mappings` mappings in steps of about `step`; return the CPU seconds."""
        before = self.spent
        left = max(1, mappings // len(self.leaves))
        while left > 0:
            size = min(left, max(1, step // len(self.leaves)))
            self._step(size)
            left -= size
        return self.spent - before

    def fill(self, step: int = CHUNK) -> None:
        """Run until the windows are full and the buffers have wrapped around once."""
        while self.now < self.window + step // len(self.leaves):
            self._step(min(self.window, max(1, step // len(self.leaves))))
        self.spent, self.taken, self.made = 0.0, 0, 0

    def _step(self, size: int) -> None:
        instants = np.arange(self.now, self.now + size, dtype=np.int64)
        matches = []
        self.values = []
        for each in self._columns:
            drawn = [self._random.integers(0, below, size) for below in each.values()]
            self.values.append(np.column_stack(drawn))
            matches.append(Matches(instants, instants, self.values[-1] + ZERO))
        self.now += size
        start = time.process_time()
        for leaf, match in zip(self.leaves, matches, strict=True):
            leaf.hear(match)
        for clock in self._clocks:
            clock.hear(Elements(instants, instants, np.ones_like(instants)))
            clock.advance(self.now - 1)
        deltas: dict[int, Delta] = {id(leaf): leaf.advance(self.now - 1) for leaf in self.leaves}
        for operator, inputs in self.operators:
            deltas[id(operator)] = operator.step([deltas[id(each)] for each in inputs])
        last = deltas[id(self.operators[-1][0])] if self.operators else None
        for operator, _ in self.operators:
            operator.settle()
        for leaf in self.leaves:
            leaf.settle()
        self.dictionary.settle()
        self.spent += time.process_time() - start
        self.taken += size * len(self.leaves)
        if last is not None:
            self.made += int(np.count_nonzero(last.sign > 0))


def joined(*, eager: bool = False) -> Callable[..., list[tuple[Operator, tuple[Operator, ...]]]]:
    """A function that builds a join of all leaves."""

    def make(
        leaves: list[Operator], dictionary: Dictionary
    ) -> list[tuple[Operator, tuple[Operator, ...]]]:
        return [(Join(leaves, dictionary, eager=eager), tuple(leaves))]

    return make


def hash_join(windows: Sequence[Ints], values: int) -> int:
    """Join whole windows by their first number; return the number of results.

    This is the best case of an engine that re-evaluates whole windows: one pass builds each table,
    with a place of its own for every key, and one pass probes. Rows come out as places.
    """
    order = np.argsort(windows[0], kind="stable")
    keys = windows[0][order]
    rows: list[Ints] = [order]
    for window in windows[1:]:
        counts = np.bincount(window, minlength=values)
        starts = np.cumsum(counts) - counts
        sorted_rows = np.argsort(window, kind="stable")
        matches = counts[keys]
        ends = np.cumsum(matches)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - matches, matches)
        rows = [np.repeat(each, matches) for each in rows]
        rows.append(sorted_rows[np.repeat(starts[keys], matches) + within])
        keys = np.repeat(keys, matches)
    return len(keys)
