"""The multiway join against all combinations, tried one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from changing_rows import Change, Rows, contents, histories
from compiled_twins import compares
from quadweir.errors import LimitError
from quadweir.kernel import multijoin
from quadweir.kernel.clocks import TimeClock
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.multijoin import MAX_INPUTS, Join
from quadweir.kernel.probing import merge_arrivals_first, merge_by_time
from quadweir.kernel.relation import Delta, Operator
from quadweir.kernel.spellings import ZERO
from quadweir.kernel.timewindow import TimedLeaf
from quadweir.kernel.window import Matches
from quadweir.terms import IRI, Variable

# Chains, stars, triangles, and inputs that share nothing.
SHAPES = (
    (("a",), ("a",)),
    (("a", "b"), ("b", "c"), ("c", "a")),
    (("a", "b"), ("a", "b"), ("b", "d")),
    (("a",), ("a", "b"), ("b",), ("c",)),
)
WINDOW = 6

Mapping = tuple[int, tuple[int, ...]]
Solution = tuple[tuple[str, int], ...]


@pytest.fixture(scope="module", params=["near", "far"], autouse=True)
def distance(request: pytest.FixtureRequest) -> Iterator[None]:
    """All of it once as in small joins, once as in those that ask for memory ahead of time."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "far":
            patch.setattr(multijoin, "_NEAR", 0)
        yield


@st.composite
def feeds(draw: st.DrawFn) -> tuple[tuple[tuple[str, ...], ...], list[list[Mapping]]]:
    """A shape, and for each input mappings in order of time."""
    shape = draw(st.sampled_from(SHAPES))
    inputs = []
    for variables in shape:
        values = st.tuples(*[st.integers(1, 2)] * len(variables))
        mapping = st.tuples(st.integers(0, 12), values)
        inputs.append(sorted(draw(st.lists(mapping, max_size=7)), key=lambda each: each[0]))
    return shape, inputs


def compatible(shape: Any, rows: tuple[Mapping, ...]) -> Solution | None:
    bound: dict[str, int] = {}
    for variables, (_, values) in zip(shape, rows, strict=True):
        for variable, value in zip(variables, values, strict=True):
            if bound.setdefault(variable, value) != value:
                return None
    return tuple(sorted(bound.items()))


def expected(shape: Any, inputs: list[list[Mapping]]) -> Counter[tuple[int, int, Solution]]:
    """Every combination whose mappings share an instant, with when it comes and goes."""
    found: Counter[tuple[int, int, Solution]] = Counter()
    for rows in product(*inputs):
        enter = max(time for time, _ in rows)
        leave = min(time for time, _ in rows) + WINDOW
        solution = compatible(shape, rows)
        if enter < leave and solution is not None:
            found[enter, leave, solution] += 1
    return found


class Joined:
    """Leaves and a join over them, fed in steps."""

    def __init__(self, shape: Any, *, eager: bool) -> None:
        self.dictionary = Dictionary()
        clock = TimeClock(0, WINDOW)
        self.leaves = [
            TimedLeaf(tuple(map(Variable, each)), clock, self.dictionary, eager=eager)
            for each in shape
        ]
        self.join = Join(self.leaves, self.dictionary, eager=eager)

    def step(self, through: int) -> list[tuple[int, int, Solution]]:
        """Go on to an instant; gives changes as (time, sign, solution)."""
        delta = self.join.step([leaf.advance(through) for leaf in self.leaves])
        values = self.join.columns(self.join.variables, delta.row) - ZERO
        names = [variable.name for variable in self.join.variables]
        found = [
            (int(t), int(sign), tuple(sorted(zip(names, map(int, row), strict=True))))
            for t, sign, row in zip(delta.t, delta.sign, values, strict=True)
        ]
        self.join.settle()
        for leaf in self.leaves:
            leaf.settle()
        return found

    def hear(self, inputs: list[list[Mapping]]) -> None:
        for leaf, mappings in zip(self.leaves, inputs, strict=True):
            time = np.array([each for each, _ in mappings], dtype=np.int64)
            values = np.array([each for _, each in mappings], dtype=np.int64)
            leaf.hear(Matches(time, time, values.reshape(len(mappings), leaf.width) + ZERO))

    def restarted(self, shape: Any) -> Joined:
        fresh = Joined(shape, eager=self.join.eager)
        for new, old in zip((*fresh.leaves, fresh.join), (*self.leaves, self.join), strict=True):
            new.restore(old.arrays())
        return fresh


@given(feed=feeds(), cuts=st.sets(st.integers(0, 20), max_size=5), restart=st.booleans())
def test_results_come_and_go_as_their_parts_do(feed: Any, cuts: set[int], restart: bool) -> None:
    shape, inputs = feed
    joined = Joined(shape, eager=False)
    joined.hear(inputs)
    changes = []
    for through in [*sorted(cuts), 40]:
        step = joined.step(through)
        assert [t for t, _, _ in step] == sorted(t for t, _, _ in step)
        changes += step
        if restart:
            joined = joined.restarted(shape)
    model = expected(shape, inputs)
    came = Counter((t, solution) for t, sign, solution in changes if sign > 0)
    went = Counter((t, solution) for t, sign, solution in changes if sign < 0)
    assert came == sum((Counter({(e, s): n}) for (e, _, s), n in model.items()), Counter())
    assert went == sum((Counter({(gone, s): n}) for (_, gone, s), n in model.items()), Counter())
    assert joined.join.held() == 0


@given(feed=feeds(), cuts=st.sets(st.integers(0, 20), max_size=5))
def test_an_eager_join_gives_each_result_once_and_keeps_none(feed: Any, cuts: set[int]) -> None:
    shape, inputs = feed
    joined = Joined(shape, eager=True)
    joined.hear(inputs)
    changes = []
    for through in [*sorted(cuts), 40]:
        changes += joined.step(through)
        assert joined.join.held() == 0
    model = expected(shape, inputs)
    came = Counter((t, solution) for t, sign, solution in changes)
    assert all(sign > 0 for _, sign, _ in changes)
    assert came == sum((Counter({(e, s): n}) for (e, _, s), n in model.items()), Counter())


def test_two_joins_may_have_their_pointers_in_the_rows_of_one_leaf() -> None:
    shape = (("a",), ("a", "b"))
    joined = Joined(shape, eager=False)
    other = Join([joined.leaves[1], *joined.leaves[:1]], joined.dictionary)
    # The tables grow and shrink: 20 mappings at a time, then few.
    inputs = [
        [(n // 20, (1 + n % 7, 1 + n % 3)[: len(names)]) for n in range(300)] for names in shape
    ]
    inputs = [[*each, *((30 + n, each[n][1]) for n in range(9))] for each in inputs]
    joined.hear(inputs)
    for through in (0, 5, 14, 20, 35, 60):
        deltas = [leaf.advance(through) for leaf in joined.leaves]
        one, two = joined.join.step(deltas), other.step(deltas[::-1])
        assert len(one.t) > 0
        assert tuples(joined.join, one) == tuples(other, two)
        for operator in (joined.join, other, *joined.leaves):
            operator.settle()
    assert joined.join.held() == other.held() == 0


def tuples(join: Join, delta: Delta) -> Counter[tuple[int, ...]]:
    """The changes of a join with what they bind."""
    values = join.columns(tuple(map(Variable, "ab")), delta.row)
    return Counter(map(tuple, np.column_stack((delta.t, delta.sign, values)).tolist()))


def test_more_results_than_there_is_room_for() -> None:
    """The output grows in the middle of a probe, and the probe goes on where it was."""
    shape = (("a",), ("a",), ("b",))
    inputs: list[list[Mapping]] = [[(0, (1,))] * 30, [(0, (1,))] * 30, [(1, (n,)) for n in (1, 2)]]
    joined = Joined(shape, eager=False)
    joined.hear(inputs)
    came = [change for change in joined.step(1) if change[1] > 0]
    assert len(came) == joined.join.held() == 30 * 30 * 2
    went = joined.step(40)
    assert len(went) == 1800
    assert {sign for _, sign, _ in went} == {-1}


# --- inputs that do not tell when a row goes, and may leave variables unbound -----------------

TERMS = st.sampled_from([IRI("urn:1"), IRI("urn:2"), None])


def all_pairs(left: list[Any], right: list[Any]) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for (a, b), (c, d) in product(left, right):
        # They share ?b, which either may leave unbound.
        if b is None or c is None or b == c:
            found[a, b if b is not None else c, d] += 1
    return found


@given(
    left=histories(st.tuples(TERMS, TERMS), 20),
    right=histories(st.tuples(TERMS, TERMS), 20),
)
@example(left=[(0, 1, 0, (None, None)), (1, -1, 0, (None, None))], right=[])
def test_unbound_variables_fit_anything(left: list[Change], right: list[Change]) -> None:
    dictionary = Dictionary()
    sides = [Rows(("a", "b"), dictionary), Rows(("b", "d"), dictionary)]
    join = Join(sides, dictionary)
    at_left, at_right = contents(left), contents(right)
    now: Counter[tuple[Any, ...]] = Counter()
    last: list[list[Any]] = [[], []]
    for t in sorted({*at_left, *at_right}):
        deltas = [
            side.feed([change for change in changes if change[0] == t])
            for side, changes in zip(sides, (left, right), strict=True)
        ]
        delta = join.step(deltas)
        for sign, row in zip(
            delta.sign, join.columns(join.variables, delta.row).tolist(), strict=True
        ):
            terms = tuple(dictionary.term(number) if number else None for number in row)
            now[terms] += int(sign)
        last = [at_left.get(t, last[0]), at_right.get(t, last[1])]
        assert +now == all_pairs(last[0], last[1])
        for each in (join, *sides):
            each.settle()
    assert join.held() == 0


# --- the rest ---------------------------------------------------------------------------------


def test_a_join_of_too_many_inputs_is_refused() -> None:
    dictionary = Dictionary()
    rows: list[Operator] = [Rows(("a",), dictionary) for _ in range(MAX_INPUTS + 1)]
    with pytest.raises(LimitError):
        Join(rows, dictionary)


@st.composite
def ordered_deltas(draw: st.DrawFn) -> list[Delta]:
    change = st.tuples(st.integers(0, 5), st.sampled_from([1, -1]))
    found = []
    for place in range(draw(st.integers(1, 3))):
        # What goes stands before what comes, as operators give it.
        changes = sorted(draw(st.lists(change, max_size=8)))
        columns = [[t, s, 100 * place + n, 0] for n, (t, s) in enumerate(changes)]
        array = np.array(columns, dtype=np.int64).reshape(-1, 4)
        found.append(Delta(*(np.ascontiguousarray(each) for each in array.T)))
    return found


@compares("probing.merge_by_time", "probing.merge_arrivals_first")
@given(deltas=ordered_deltas())
def test_merging_keeps_the_order_of_time(deltas: list[Delta]) -> None:
    t, sign, row, _ = (np.concatenate(parts) for parts in zip(*deltas, strict=True))
    ends = np.cumsum([len(each.t) for each in deltas])
    rows = [
        [int(each.t[n]), int(each.sign[n]), place, int(each.row[n])]
        for place, each in enumerate(deltas)
        for n in range(len(each.t))
    ]
    events = np.empty((4, len(t)), dtype=np.int64)
    merge_by_time(t, sign, row, ends, events)
    assert events.T.tolist() == sorted(rows, key=lambda each: each[:3])
    merge_arrivals_first(t, sign, row, ends, events)
    first = [each for each in rows if each[1] > 0] + [each for each in rows if each[1] < 0]
    assert events.T.tolist() == first
