"""Operators above operators: joins, filters, and what OPTIONAL, MINUS and EXISTS are made of.

`build.py` reads a pattern and builds its sides; here sides are put together, added to the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from quadweir.algebra.expressions import Exists, Expression
from quadweir.algebra.solutions import is_time
from quadweir.algebra.traverse import walk
from quadweir.kernel import multijoin, negation, stateless
from quadweir.kernel.arrays import Ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.network import Network
from quadweir.kernel.relation import Operator
from quadweir.kernel.shapes import NotIncrementalError, is_volatile
from quadweir.kernel.window import TimedLeaf
from quadweir.terms import Variable


@final
@dataclass(frozen=True, slots=True)
class Wiring:
    """Adds operators to a network.

    Attributes:
        network: What operators are added to.
        dictionary: The shard's dictionary.
        eager: Whether answers leave as soon as their parts have arrived (E1).
    """

    network: Network
    dictionary: Dictionary
    eager: bool

    # --- joins and filters ---

    def join(self, parts: Sequence[Operator]) -> multijoin.Join:
        """Join two or more, no two of them the same operator."""
        if self.eager and not all(map(_keeps_its_rows, parts)):
            raise NotIncrementalError("a join of joins cannot be eager")
        return self.network.add(multijoin.Join(parts, self.dictionary, eager=self.eager), parts)

    def union(self, parts: list[Operator]) -> Operator:
        """Put the rows of all parts together."""
        return parts[0] if len(parts) == 1 else self.network.add(stateless.Union(parts), parts)

    def again(self, part: Operator) -> Operator:
        """Give another view of the same rows, for a join with themselves."""
        return self.network.add(stateless.Project(part, part.variables), (part,))

    def filtered(self, source: Operator, condition: Expression) -> Operator:
        """Keep the rows for which a condition is true."""
        check_expression(condition)
        return self.network.add(stateless.Filter(source, condition, self.dictionary), (source,))

    # --- OPTIONAL, MINUS, EXISTS ---

    def left_join(self, left: Operator, right: Operator, condition: Expression | None) -> Operator:
        """OPTIONAL: the pairs of both sides, and the left rows that are in none."""
        joined = self._pairs(left, right)
        pairs: Operator = joined if condition is None else self.filtered(joined, condition)
        return self.union([pairs, self._counted(left, joined, pairs, negated=True)])

    def minus(self, left: Operator, right: Operator) -> Operator:
        """The left rows to which no right row is compatible that binds one of their variables."""
        shared = _shared(left, right)
        if not shared:
            return left
        if shared <= left.always & right.always:
            return self._by_key(left, right, negated=True)
        joined = self._pairs(left, right)

        def agree(found: Ints) -> np.ndarray:
            """Tell which pairs have a variable that both sides bind."""
            sides = joined.parts(found)
            result = np.zeros(len(found), dtype=bool)
            for variable in shared:
                result |= (left.column(variable, sides[:, 0]) != 0) & (
                    right.column(variable, sides[:, 1]) != 0
                )
            return result

        pairs = self.network.add(stateless.RowFilter(joined, agree), (joined,))
        return self._counted(left, joined, pairs, negated=True)

    def exists(
        self, left: Operator, right: Operator, conditions: Sequence[Expression], *, negated: bool
    ) -> Operator:
        """The left rows that are in a pair for which all conditions are true, or in none."""
        if not conditions and _shared(left, right) <= left.always & right.always:
            return self._by_key(left, right, negated=negated)
        joined = self._pairs(left, right)
        pairs: Operator = joined
        for condition in conditions:
            pairs = self.filtered(pairs, condition)
        return self._counted(left, joined, pairs, negated=negated)

    def _pairs(self, left: Operator, right: Operator) -> multijoin.Join:
        return self.join([left, self.again(right) if right is left else right])

    def _counted(
        self, left: Operator, joined: multijoin.Join, pairs: Operator, *, negated: bool
    ) -> Operator:
        """Count the pairs of each left row; `pairs` are what is left of those of `joined`."""

        def left_rows(rows: Ints) -> Ints:
            found: Ints = joined.parts(rows)[:, 0]
            return found

        counted = negation.Negation(
            left,
            pairs,
            left_rows,
            negated=negated,
            stateless=self.eager,
        )
        return self.network.add(counted, (left, pairs))

    def _by_key(self, left: Operator, right: Operator, *, negated: bool) -> Operator:
        """Compare keys where that is enough: both sides always bind what they share."""
        shared = _shared(left, right)
        keys = tuple(each for each in left.variables if each in shared)
        compared: Operator
        if right.fixed:
            compared = negation.FixedNegation(left, right, keys, negated)
        else:
            compared = negation.KeyNegation(left, right, keys, negated, self.dictionary)
        return self.network.add(compared, (left, right))


def check_expression(expression: Expression) -> None:
    """Refuse what can only be computed anew at every report."""
    for node in walk(expression):
        if isinstance(node, Exists):
            raise NotIncrementalError("EXISTS inside another expression")
        if is_volatile(node):
            raise NotIncrementalError("a value that changes by itself")


def _shared(left: Operator, right: Operator) -> frozenset[Variable]:
    return frozenset(v for v in left.variables if v in right.variables and not is_time(v))


def _keeps_its_rows(operator: Operator) -> bool:
    """Tell whether an eager operator's rows can be read as long as they can be joined with."""
    match operator:
        case stateless.Static() | TimedLeaf():
            return True
        case (
            stateless.Filter(source=source)
            | stateless.Extend(source=source)
            | stateless.Project(source=source)
        ):
            return _keeps_its_rows(source)
        case stateless.Union(sources=sources):
            return all(map(_keeps_its_rows, sources))
        case _:
            return False
