"""Operators that several programs share: one for each sub-plan, whatever its variables are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from quadweir.kernel.dataflow import Dataflow
from quadweir.kernel.dictionary import DictionaryScope
from quadweir.kernel.relation import Operator
from quadweir.terms import Variable


@dataclass
class _Common:
    """An operator with what belongs to it.

    Attributes:
        operator: What does the work.
        variables: Its variables, in the order that the name of the sub-plan decides.
        own: The operators that nothing else uses: itself, views and static relations it reads.
        below: The names of the common operators that it reads.
        scope: The terms that it holds.
        users: How many programs and common operators read it.
    """

    operator: Operator
    variables: tuple[Variable, ...]
    own: list[Operator]
    below: tuple[str, ...]
    scope: DictionaryScope
    users: int = 0


@final
class CommonOperators:
    """The common operators of a dataflow, by the names of their sub-plans."""

    def __init__(self) -> None:
        self.dataflow = Dataflow()
        self._common: dict[str, _Common] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._common

    def __len__(self) -> int:
        return len(self._common)

    def operator(self, name: str) -> Operator:
        """Return an operator."""
        return self._common[name].operator

    def named(self) -> Iterator[tuple[str, list[Operator], DictionaryScope]]:
        """All common operators, each with what belongs to it and the terms that it holds."""
        for name, each in self._common.items():
            yield name, each.own, each.scope

    def add(
        self,
        name: str,
        operator: Operator,
        variables: tuple[Variable, ...],
        first: int,
        below: Sequence[str],
        scope: DictionaryScope,
    ) -> None:
        """Take a new operator.

        Args:
            name: The name of its sub-plan.
            operator: The operator.
            variables: Its variables in the order that the name decides.
            first: The place of the first operator in the dataflow that was made for it.
            below: The names of the common operators that it reads.
            scope: The terms that it holds.
        """
        taken = {id(each) for common in self._common.values() for each in common.own}
        own = [each for each, _ in self.dataflow.operators[first:] if id(each) not in taken]
        self._common[name] = _Common(operator, variables, own, tuple(below), scope)

    def use(self, name: str) -> tuple[Operator, tuple[Variable, ...]]:
        """Return an operator to one more user, with its variables in the order of the name."""
        common = self._common[name]
        common.users += 1
        return common.operator, common.variables

    def mark(self) -> dict[str, int]:
        """Return how many users each operator has, for `undo`."""
        return {name: each.users for name, each in self._common.items()}

    def undo(self, mark: Mapping[str, int]) -> None:
        """Go back to what there was at a mark."""
        for name in [each for each in self._common if each not in mark]:
            self._common.pop(name).scope.let_go()
        for name, users in mark.items():
            self._common[name].users = users

    def release(self, names: Sequence[str]) -> None:
        """Let go of operators; those without users go."""
        for name in names:
            common = self._common[name]
            common.users -= 1
            if not common.users:
                del self._common[name]
                common.scope.let_go()
                self.release(common.below)

    def operators(self) -> set[Operator]:
        """All operators that belong to common ones."""
        return {each for common in self._common.values() for each in common.own}
