"""Windows against the contents that the semantics page gives them, instant by instant."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.algebra.windows import (
    AllScope,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    Scope,
    TimeScope,
)
from quadweir.kernel.arrays import FOREVER
from quadweir.kernel.clocks import CountClock, Elements, TimeClock
from quadweir.kernel.countwindow import CountedLeaf
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.spellings import ZERO
from quadweir.kernel.timewindow import TimedLeaf
from quadweir.kernel.window import Matches
from quadweir.terms import Variable

END = 60
SCOPES: tuple[Scope, ...] = (
    TimeScope(range_ms=5),
    TimeScope(range_ms=5, step_ms=3),
    TimeScope(range_ms=2, step_ms=5, origin_ms=1),
    TimeScope(range_ms=10, step_ms=3, origin_ms=2, full=True),
    TimeScope(range_ms=2, step_ms=5, origin_ms=4, full=True),
    TimeScope(range_ms=5, step_ms=5, while_open=True),
    TimeScope(range_ms=10, step_ms=3, origin_ms=2, while_open=True, full=True),
    TimeScope(range_ms=2, step_ms=5, origin_ms=1, while_open=True),
    NowScope(),
    AllScope(),
    PastScope(from_ms=8, to_ms=3),
    PastScope(from_ms=8, to_ms=3, step_ms=4),
)

times = st.lists(st.integers(0, 25), max_size=25)


def content(scope: Scope, elements: list[int], t: int) -> Counter[int]:
    """The places of elements in the content at t (W1 to W3, W5, W6, W9, W10), by the definitions."""
    match scope:
        case TimeScope() | PastScope():
            after, until = (
                (0, scope.range_ms)
                if isinstance(scope, TimeScope)
                else (scope.to_ms, scope.from_ms)
            )
            if scope.step_ms is not None:
                full = isinstance(scope, TimeScope) and scope.full
                first = scope.origin_ms + (until if full else scope.step_ms)
                closes = range(first, 2 * END, scope.step_ms)
                if isinstance(scope, TimeScope) and scope.while_open:
                    # What has come until now of the window that closes next.
                    close = min(each for each in closes if each >= t)
                    return Counter(n for n, s in enumerate(elements) if close - until < s <= t)
                # The content of the last close, if there was one.
                if t < first:
                    return Counter()
                t = max(each for each in closes if each <= t)
            return Counter(n for n, s in enumerate(elements) if t - until < s <= t - after)
        case NowScope():
            return Counter(n for n, s in enumerate(elements) if s == t)
        case _:
            return Counter(n for n, s in enumerate(elements) if s <= t)


def in_steps(leaf: Any, cuts: list[int], before: Any = None) -> dict[int, Counter[int]]:
    """Advance in steps and give the content at each instant at which it changes."""
    found: dict[int, Counter[int]] = {}
    now: Counter[int] = Counter()
    reached = -1
    for through in cuts:
        if before is not None:
            before(through)
        delta = leaf.advance(through)
        assert np.all(delta.t <= through)
        assert np.all(delta.t > reached)
        assert delta.t.tolist() == sorted(delta.t.tolist())
        values = leaf.column(Variable("n"), delta.row) - ZERO
        for t, sign, value in zip(delta.t, delta.sign, values, strict=True):
            now[int(value)] += int(sign)
            found[int(t)] = +now
            assert all(count >= 0 for count in now.values())
        leaf.settle()
        reached = through
    return found


def at(found: dict[int, Counter[int]], t: int) -> Counter[int]:
    earlier = [each for each in found if each <= t]
    return found[max(earlier)] if earlier else Counter()


def matches(elements: list[int], order: list[int]) -> Matches:
    time = np.array([elements[n] for n in order], dtype=np.int64)
    position = np.array(order, dtype=np.int64)
    return Matches(time, position, (position + ZERO).reshape(-1, 1))


@pytest.mark.parametrize("scope", SCOPES, ids=str)
@given(elements=times, cuts=st.sets(st.integers(0, END - 1), max_size=6), data=st.data())
def test_the_content_of_a_timed_window(
    scope: Scope, elements: list[int], cuts: set[int], data: st.DataObject
) -> None:
    leaf = TimedLeaf((Variable("n"),), TimeClock.of(scope), Dictionary())
    # In any order of arrival, as long as nothing is late: all of it before the first step.
    order = data.draw(st.permutations(range(len(elements))))
    cut = data.draw(st.integers(0, len(elements)))
    leaf.hear(matches(elements, order[:cut]))
    leaf.hear(matches(elements, order[cut:]))
    found = in_steps(leaf, [*sorted(cuts), END])
    for t in range(END + 1):
        assert at(found, t) == content(scope, elements, t), t
    if not isinstance(scope, AllScope):
        assert leaf.held() == 0


@given(elements=times, cuts=st.sets(st.integers(0, END - 1), max_size=6))
def test_a_leaf_taken_up_from_a_snapshot_goes_on_as_it_was(
    elements: list[int], cuts: set[int]
) -> None:
    leaf = TimedLeaf((Variable("n"),), TimeClock.of(TimeScope(range_ms=5)), Dictionary())
    leaf.hear(matches(elements, list(range(len(elements)))))
    now: Counter[int] = Counter()
    for through in [*sorted(cuts), END]:
        fresh = TimedLeaf((Variable("n"),), leaf.clock, Dictionary())
        fresh.restore(leaf.arrays())
        leaf = fresh
        delta = leaf.advance(through)
        for sign, value in zip(
            delta.sign, leaf.column(Variable("n"), delta.row) - ZERO, strict=True
        ):
            now[int(value)] += int(sign)
        leaf.settle()
        assert +now == content(TimeScope(range_ms=5), elements, through)


@given(
    elements=times,
    size=st.integers(1, 6),
    step=st.sampled_from([None, 1, 3]),
    cuts=st.sets(st.integers(0, END - 1), max_size=6),
)
def test_the_content_of_a_count_window(
    elements: list[int], size: int, step: int | None, cuts: set[int]
) -> None:
    elements.sort()
    scope = CountScope(unit=CountUnit.ELEMENTS, size=size, step=step)
    clock = CountClock(scope)
    leaf = CountedLeaf((Variable("n"),), clock, Dictionary())
    order = list(range(len(elements)))
    given_matches = matches(elements, order)
    leaf.hear(given_matches)
    clock.hear(Elements(given_matches.time, given_matches.position, np.ones(len(order), np.int64)))
    found = in_steps(leaf, [*sorted(cuts), END], clock.advance)
    looked: Counter[int] = Counter()
    seen = 0
    for t in range(END + 1):
        # An instant's elements come together; with a step, only each step-th of them is looked at.
        count = sum(s <= t for s in elements)
        if count > seen and (step is None or count // step > seen // step):
            looked = Counter(range(max(0, count - size), count))
        seen = count
        assert at(found, t) == looked, t


def test_an_eager_leaf_forgets_what_nobody_can_join_any_more() -> None:
    leaf = TimedLeaf((Variable("n"),), TimeClock(0, 10), Dictionary(), eager=True)
    for start in range(0, 1_000, 100):
        elements = list(range(start, start + 100))
        leaf.hear(matches([0] * start + elements, elements))
        leaf.advance(start + 98)
        leaf.settle()
        assert leaf.held() <= 12
    assert leaf.table.capacity <= 1024


def test_no_element_of_a_window_that_never_ends_goes() -> None:
    enter, leave = TimeClock.of(AllScope()).interval(np.array([3, 4]))
    assert (enter.tolist(), leave.tolist()) == ([3, 4], [FOREVER, FOREVER])
    with pytest.raises(TypeError):
        TimeClock.of(CountScope(unit=CountUnit.TRIPLES, size=1))
