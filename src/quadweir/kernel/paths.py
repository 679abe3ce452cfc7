"""Property paths that repeat or skip steps, over a graph that changes.

A path such as `:p+` has each pair of ends once. At every instant at which the graph changes, the
pairs are found again, and what differs goes on: a pair may stay although an edge of the way to it
has gone. All other paths are unfolded into joins and unions of triple patterns, which are kept up
to date without looking at the graph again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np

from quadweir.algebra.dataset import Occurrence, TripleSource
from quadweir.algebra.paths import connected
from quadweir.algebra.patterns import Path, PatternTerm
from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.relation import Delta, Operator, no_change
from quadweir.kernel.tables import SlotTable
from quadweir.terms import Term, Variable


@final
class Closure(Operator):
    """The pairs of nodes that a path connects in a graph.

    Linear: no, a pair goes only when the last way has gone.
    State: the triples of the graph, and the pairs.
    Forgets: a triple when the graph does, a pair when no way connects it.

    `source` has the triples, each once, as subject, predicate and object. An end is a variable
    or a fixed term.
    """

    def __init__(
        self,
        source: Operator,
        triple: tuple[Variable, Variable, Variable],
        path: Path,
        ends: tuple[PatternTerm, PatternTerm],
        dictionary: Dictionary,
    ) -> None:
        self.source = source
        self._triple = triple
        self._path = path
        self._ends = ends
        self._dictionary = dictionary
        self.variables = tuple(dict.fromkeys(end for end in ends if isinstance(end, Variable)))
        self.always = frozenset(self.variables)
        self._held: set[tuple[int, int, int]] = set()
        self._pairs: dict[tuple[int, ...], int] = {}
        self._rows = SlotTable(len(self.variables))
        self._started = False

    def step(self, inputs: list[Delta]) -> Delta:
        (delta,) = inputs
        triples = self.source.columns(self._triple, delta.row)
        changes: list[tuple[int, int, int]] = []
        if not self._started:
            # A path of no steps connects a fixed term with itself, in any graph.
            self._started = True
            self._compare(ALWAYS, changes)
        start = 0
        for end in np.flatnonzero(np.append(delta.t[1:] != delta.t[:-1], True))[: len(delta.t)]:
            for sign, triple in zip(
                delta.sign[start : end + 1], triples[start : end + 1], strict=True
            ):
                key = (int(triple[0]), int(triple[1]), int(triple[2]))
                (self._held.add if sign > 0 else self._held.discard)(key)
                numbers = np.array(key, dtype=np.int64)
                (self._dictionary.hold if sign > 0 else self._dictionary.drop)(numbers)
            self._compare(int(delta.t[end]), changes)
            start = int(end) + 1
        if not changes:
            return no_change()
        t, sign, row = (np.array(each, dtype=np.int64) for each in zip(*changes, strict=True))
        return Delta(t, sign, row, np.full(len(t), FOREVER, dtype=np.int64))

    def _compare(self, t: int, changes: list[tuple[int, int, int]]) -> None:
        """Find the pairs again and note what came and what went."""
        now = set(self._connected())
        gone = [pair for pair in self._pairs if pair not in now]
        if gone:
            rows = np.array([self._pairs.pop(pair) for pair in gone], dtype=np.int64)
            changes += [(t, -1, int(row)) for row in rows]
            self._rows.release(rows)
        came = [pair for pair in now if pair not in self._pairs]
        if came:
            rows = self._rows.take(len(came))
            values = np.array(came, dtype=np.int64).reshape(len(came), len(self.variables))
            self._rows.cells[rows] = values
            self._dictionary.hold(values.ravel())
            self._pairs.update(zip(came, (int(row) for row in rows), strict=True))
            changes += [(t, 1, int(row)) for row in rows]

    def _connected(self) -> list[tuple[int, ...]]:
        term = self._dictionary.term
        graph = TripleSource(Occurrence(term(s), term(p), term(o), None) for s, p, o in self._held)
        start, last = (None if isinstance(end, Variable) else end for end in self._ends)
        found = []
        for pair in connected(graph, self._path, start, last):
            bound: dict[Variable, Term] = {}
            if all(
                not isinstance(end, Variable) or bound.setdefault(end, node) == node
                for end, node in zip(self._ends, pair, strict=True)
            ):
                found.append(tuple(self._dictionary.number(bound[v]) for v in self.variables))
        return found

    def column(self, variable: Variable, rows: Ints) -> Ints:
        if variable not in self.variables:
            return ints(len(rows))
        found: Ints = self._rows.cells[rows, self.variables.index(variable)]
        return found

    def span(self) -> int:
        return self._rows.capacity

    def settle(self) -> None:
        rows = self._rows.settle()
        self._dictionary.drop(self._rows.cells[rows].ravel())

    def held(self) -> int:
        return len(self._held) + len(self._pairs)

    def arrays(self) -> dict[str, Ints]:
        pairs = np.array(list(self._pairs.values()), dtype=np.int64)
        held = np.array(sorted(self._held), dtype=np.int64).reshape(-1, 3)
        started = np.array([self._started], dtype=np.int64)
        return {**self._rows.arrays(), "pairs": pairs, "held": held, "started": started}

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._rows.restore(arrays)
        self._started = bool(arrays["started"][0])
        self._held = {(int(s), int(p), int(o)) for s, p, o in arrays["held"]}
        self._pairs = {
            tuple(int(each) for each in self._rows.cells[row]): int(row) for row in arrays["pairs"]
        }
