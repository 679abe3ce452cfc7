"""Negation and existence against recomputation, at every instant."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changing_rows import Change, Follower, Row, Rows, contents, histories
from quadweir.kernel.arrays import Ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.keynegation import KeyNegation
from quadweir.kernel.negation import FixedNegation, Negation
from quadweir.kernel.relation import Delta, Operator, no_change
from quadweir.kernel.stateless import Static
from quadweir.kernel.staticrelations import FixedRelation
from quadweir.terms import IRI, Variable

NAME = st.sampled_from([IRI("urn:a"), IRI("urn:b"), IRI("urn:c")])
LEFT = histories(st.tuples(NAME, NAME, NAME))
RIGHT = histories(st.tuples(NAME, NAME))
KEYS = (Variable("x"), Variable("y"))


def _expected(left: list[Change], right: list[Change], negated: bool) -> dict[int, Counter[Row]]:
    lefts, rights = contents(left), contents(right)
    found, now_left, now_right = {}, list[Row](), list[Row]()
    for t in sorted(lefts.keys() | rights.keys()):
        now_left, now_right = lefts.get(t, now_left), rights.get(t, now_right)
        keys = set(now_right)
        found[t] = Counter(row for row in now_left if (row[:2] in keys) != negated)
    return found


def _between(changes: list[Change], low: int, high: int) -> list[Change]:
    return [change for change in changes if low < change[0] <= high]


class _Pairs(Operator):
    """Pairs of rows of equal key, in the order in which a join would give them."""

    def __init__(self) -> None:
        self.variables = ()
        self.always = frozenset()
        self.left_rows: list[int] = []
        self._live: dict[tuple[int, int], int] = {}
        self.left: dict[int, Row] = {}
        self.right: dict[int, Row] = {}

    def feed(self, changes: list[tuple[int, Change]], left: Rows, flip: bool) -> Delta:
        """Join the changes of the left (0) and the right (1) side."""
        t, sign, row = [], [], []
        known = dict(left.row_of)
        for side, (when, which, name, values) in changes:
            mine, other = (self.left, self.right) if side == 0 else (self.right, self.left)
            partners = [each for each, its in other.items() if its[:2] == values[:2]]
            for partner in partners:
                pair = (name, partner) if side == 0 else (partner, name)
                if which > 0:
                    self._live[pair] = len(self.left_rows)
                    self.left_rows.append(known[pair[0]])
                t.append(when)
                sign.append(which)
                row.append(self._live[pair] if which > 0 else self._live.pop(pair))
            if which > 0:
                mine[name] = values
            else:
                del mine[name]
        if flip:  # within an instant the order does not matter
            order = np.lexsort((np.array(sign), np.array(t)))
            t, sign, row = ([each[i] for i in order] for each in (t, sign, row))
        parts = (np.array(each, dtype=np.int64) for each in (t, sign, row, row))
        return Delta(*parts)

    def left_row(self, rows: Ints) -> Ints:
        return np.array(self.left_rows, dtype=np.int64)[rows]

    def step(self, inputs: list[Delta]) -> Delta:
        return inputs[0]

    def column(self, variable: Variable, rows: Ints) -> Ints:
        raise AssertionError


@given(
    left=LEFT,
    right=RIGHT,
    negated=st.booleans(),
    size=st.sampled_from([1, 2, 100]),
    restart=st.booleans(),
)
def test_keys(
    left: list[Change], right: list[Change], negated: bool, size: int, restart: bool
) -> None:
    dictionary = Dictionary()

    def make() -> tuple[Rows, Rows, KeyNegation]:
        lefts, rights = Rows(["x", "y", "z"], dictionary), Rows(["x", "y"], dictionary)
        operator = KeyNegation(lefts, rights, KEYS, negated=negated, dictionary=dictionary)
        return lefts, rights, operator

    lefts, rights, operator = make()
    expected = _expected(left, right, negated)
    follower = Follower(expected, Counter(), repeats=True)
    instants = sorted(expected)
    for start in range(0, len(instants), size):
        low = instants[start - 1] if start else -1
        high = instants[start : start + size][-1]
        inputs = [lefts.feed(_between(left, low, high)), rights.feed(_between(right, low, high))]
        follower.take(operator, operator.step(inputs), dictionary)
        assert follower.now == expected[high]
        for each in (operator, lefts, rights, dictionary):
            each.settle()
        if restart:
            stored = [each.arrays() for each in (dictionary, lefts, rights, operator)]
            names = lefts.row_of, rights.row_of
            dictionary = Dictionary()
            lefts, rights, operator = make()
            lefts.row_of, rights.row_of = names
            for each, arrays in zip((dictionary, lefts, rights, operator), stored, strict=True):
                each.restore(arrays)
    assert operator.held() == 0
    assert len(dictionary) == 0


@given(
    left=LEFT,
    right=RIGHT,
    negated=st.booleans(),
    size=st.sampled_from([1, 2, 100]),
    flip=st.booleans(),
)
def test_pairs(
    left: list[Change], right: list[Change], negated: bool, size: int, flip: bool
) -> None:
    dictionary = Dictionary()
    lefts, pairs = Rows(["x", "y", "z"], dictionary), _Pairs()

    def make() -> Negation:
        return Negation(lefts, pairs, pairs.left_row, negated=negated)

    operator = make()
    expected = _expected(left, right, negated)
    follower = Follower(expected, Counter(), repeats=True)
    instants = sorted(expected)
    for start in range(0, len(instants), size):
        low = instants[start - 1] if start else -1
        high = instants[start : start + size][-1]
        part = _between(left, low, high)
        changes = [(0, each) for each in part] + [(1, each) for each in _between(right, low, high)]
        before = dict(lefts.row_of)
        delta = lefts.feed(part)
        # Pairs name rows that came and went in this very step too.
        rows = {name: int(row) for (_, _, name, _), row in zip(part, delta.row, strict=True)}
        after, lefts.row_of = lefts.row_of, before | rows
        paired = pairs.feed(sorted(changes, key=lambda each: each[1][0]), lefts, flip)
        lefts.row_of = after
        follower.take(operator, operator.step([delta, paired]), dictionary)
        assert follower.now == expected[high]
        operator.settle()
        lefts.settle()
        dictionary.settle()
        stored = operator.arrays()
        operator = make()
        operator.restore(stored)
    assert operator.held() == 0


@pytest.mark.parametrize("negated", [True, False])
def test_nothing_of_the_left_side_is_remembered_where_the_right_side_is_fixed(
    negated: bool,
) -> None:
    a, b = IRI("urn:a"), IRI("urn:b")
    dictionary = Dictionary()
    left, x = Rows(["x"], dictionary), Variable("x")
    right = Static(FixedRelation.of_bag((x,), [{x: a}, {x: a}]), dictionary, {})
    made, mapped = (FixedNegation(left, right, (x,), negated) for _ in range(2))
    made.lay_out({})
    mapped.lay_out({name: array.copy() for name, array in made.layout().items()})
    delta = left.feed([(1, 1, 0, (a,)), (1, 1, 1, (b,)), (2, -1, 0, (a,)), (3, 1, 2, (b,))])
    for operator in (made, mapped):
        found = operator.step([delta, no_change()])
        assert found.row.tolist() == delta.row[[1, 3] if negated else [0, 2]].tolist()
        assert found.sign.tolist() == ([1, 1] if negated else [1, -1])
        assert operator.held() == 0
        assert not operator.arrays()
        assert not operator.reads(1)

    pairs = _Pairs()
    pairs.left_rows = [int(delta.row[1])]
    general = Negation(left, pairs, pairs.left_row, negated=negated, stateless=True)
    one = np.array([1], dtype=np.int64)
    made = general.step([delta, Delta(one, one, one - 1, one)])
    assert made.row.tolist() == delta.row[[0, 3] if negated else [1]].tolist()
    assert general.held() == 0
