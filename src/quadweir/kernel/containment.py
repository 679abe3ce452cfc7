"""One step of a dataflow that several templates share, in which each may fail alone.

What reads an operator that failed is skipped. So a template that fails stops only what it reads
itself; what others read was computed without it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import final

from quadweir.kernel.dataflow import Dataflow
from quadweir.kernel.relation import Delta, Operator, no_change


@final
class Containment:
    """The work of one step.

    Args:
        dataflow: The operators.
        readers: The templates that each of them works for.

    Attributes:
        failed: The templates that failed, and why.
    """

    def __init__(self, dataflow: Dataflow, readers: Mapping[Operator, Sequence[str]]) -> None:
        self._dataflow = dataflow
        self._readers = readers
        self._broken: set[Operator] = set()
        self._spent: defaultdict[Operator, int] = defaultdict(int)
        self._own: defaultdict[str, int] = defaultdict(int)
        self.failed: dict[str, Exception] = {}

    def advance(self, through: int, admitted: int) -> list[Delta]:
        """Go on to an instant; see `Dataflow.advance`."""
        deltas: list[Delta] = []
        by_place = [operator for operator, _ in self._dataflow.operators]
        for operator, inputs in self._dataflow.operators:
            found = no_change()
            began = time.perf_counter_ns()
            if operator in self._broken or any(by_place[each] in self._broken for each in inputs):
                self._broken.add(operator)
            else:
                try:
                    found = operator.run([deltas[each] for each in inputs], through, admitted)
                except Exception as error:
                    self._fail(operator, error)
            deltas.append(found)
            self._spent[operator] += time.perf_counter_ns() - began
        return deltas

    def _fail(self, operator: Operator, error: Exception) -> None:
        self._broken.add(operator)
        for name in self._readers[operator]:
            self.failed.setdefault(name, error)

    @contextmanager
    def of(self, name: str) -> Iterator[bool]:
        """Do what only one template needs, unless it failed: then the value is false."""
        began = time.perf_counter_ns()
        try:
            yield name not in self.failed
        except Exception as error:
            self.failed[name] = error
        self._own[name] += time.perf_counter_ns() - began

    def settle(self) -> None:
        """Forget what went."""
        for operator, _ in self._dataflow.operators:
            if operator not in self._broken:
                operator.settle()

    def shared(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return the microseconds of each template; it pays for what is common by its weight."""
        found = {name: float(self._own[name]) for name in weights}
        for operator, spent in self._spent.items():
            paying = [name for name in self._readers[operator] if name in weights]
            whole = sum(weights[name] for name in paying)
            for name in paying:
                found[name] += spent * weights[name] / whole
        return {name: each / 1000 for name, each in found.items()}
