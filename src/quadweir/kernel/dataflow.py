"""The operators of one query, in the order in which changes run through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

from numpy.typing import NDArray

from quadweir.kernel.arrays import FOREVER
from quadweir.kernel.clocks import CountClock
from quadweir.kernel.fan import Fan
from quadweir.kernel.relation import Delta, Operator, no_change
from quadweir.kernel.route import Route
from quadweir.kernel.window import Leaf
from quadweir.plan.nodes import Match, Source

_Op = TypeVar("_Op", bound=Operator)


@final
@dataclass
class Dataflow:
    """Leaves, clocks and operators; every operator comes after its inputs."""

    leaves: list[tuple[Match, Leaf]] = field(default_factory=list)
    clocks: dict[Source, CountClock] = field(default_factory=dict)
    operators: list[tuple[Operator, tuple[int, ...]]] = field(default_factory=list)
    _places: dict[int, int] = field(default_factory=dict)

    def add_leaf(self, match: Match, leaf: Leaf) -> Leaf:
        self.leaves.append((match, leaf))
        return self.add(leaf, ())

    def add(self, operator: _Op, inputs: Sequence[Operator]) -> _Op:
        """Put an operator at the end, after its inputs."""
        self._places[id(operator)] = len(self.operators)
        places = tuple(self._places[id(each)] for each in inputs)
        self.operators.append((operator, places))
        return operator

    def keep(self, kept: set[Operator]) -> None:
        """Take out all operators but some; these read no others."""
        by_place = [operator for operator, _ in self.operators]
        left = [
            (operator, [by_place[place] for place in inputs])
            for operator, inputs in self.operators
            if operator in kept
        ]
        self.operators, self._places = [], {}
        for operator, inputs in left:
            self.add(operator, inputs)
        self.leaves = [each for each in self.leaves if each[1] in kept]

    def inputs(self, operator: Operator) -> list[Operator]:
        """Return the operators that one reads."""
        return [self.operators[place][0] for place in self.operators[self.place(operator)][1]]

    def advance(self, through: int, admitted: int = FOREVER) -> list[Delta]:
        """Go on to an instant and return the changes of every operator, in the order of operators.

        Eager leaves take what has arrived up to the instant `admitted`.
        """
        for clock in self.clocks.values():
            clock.advance(through)
        deltas: list[Delta] = []
        for operator, inputs in self.operators:
            deltas.append(operator.run([deltas[place] for place in inputs], through, admitted))
        return deltas

    def begin(self, new: set[Operator]) -> None:
        """Give new operators the rows that are there, between two steps.

        What they make of these is older than all members that read it.
        """
        found: dict[Operator, Delta] = {}
        for operator, _ in self.operators:
            if operator not in new:
                continue
            found[operator] = no_change()
            if isinstance(operator, Route | Fan):
                continue  # they look at rows that come, and nothing later than `since` is there
            inputs = [
                found[each] if each in new else each.present() for each in self.inputs(operator)
            ]
            if any(len(each.t) for each in inputs):
                found[operator] = operator.step(inputs)
        for operator in new:
            operator.settle()

    def take_fixed(self, root: Operator, first: int = 0) -> None:
        """Let operators take the fixed rows of inputs that only they read, before the first step.

        If these rows came as changes, every shard would process all of them when it is made, and
        every snapshot would contain them.

        Args:
            root: The operator whose changes are answers.
            first: The place of the first operator that is new.
        """
        readers = Counter(each for _, inputs in self.operators for each in inputs)
        for operator, inputs in self.operators[first:]:
            operator.take_fixed(
                k
                for k, each in enumerate(inputs)
                if readers[each] == 1 and self.operators[each][0] is not root
            )

    def lay_out(self, given: Mapping[str, NDArray[Any]], first: int = 0) -> None:
        """Prepare what does not depend on streams, or take what `layout` returned elsewhere.

        Args:
            given: That.
            first: The place of the first operator that is new.
        """
        for number, (operator, _) in enumerate(self.operators[first:], first):
            operator.lay_out(part(f"operator.{number}.", given))

    def layout(self) -> dict[str, NDArray[Any]]:
        """Return what does not depend on streams as arrays."""
        return {
            f"operator.{number}.{name}": array
            for number, (operator, _) in enumerate(self.operators)
            for name, array in operator.layout().items()
        }

    def leave_out_fixed(self, root: Operator | None) -> None:
        """Do not report fixed relations as changes that no operator reads; the root is read."""
        read = {
            each
            for operator, inputs in self.operators
            for place, each in enumerate(inputs)
            if operator.reads(place)
        }
        for place, (operator, _) in enumerate(self.operators):
            if operator.fixed and place not in read and operator is not root:
                operator.leave_out_fixed()

    def place(self, operator: Operator) -> int:
        return self._places[id(operator)]

    def settle(self) -> None:
        for operator, _ in self.operators:
            operator.settle()

    def held(self) -> int:
        """How many mappings are remembered, results included."""
        return sum(operator.held() for operator, _ in self.operators)

    def arrays(self) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {}
        for number, (operator, _) in enumerate(self.operators):
            for name, array in operator.arrays().items():
                found[f"operator.{number}.{name}"] = array
        for number, clock in enumerate(self.clocks.values()):
            for name, array in clock.arrays().items():
                found[f"clock.{number}.{name}"] = array
        return found

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        for number, clock in enumerate(self.clocks.values()):
            clock.restore(part(f"clock.{number}.", arrays))
        for number, (operator, _) in enumerate(self.operators):
            operator.restore(part(f"operator.{number}.", arrays))


def part(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Pick the arrays whose names start with a prefix, under the rest of their names."""
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
