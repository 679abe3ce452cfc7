"""Compiled grouping, sums, extremes, DISTINCT and negation against plain models of them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiled_twins import compares, integers, ints, signed, word
from quadweir.kernel import (
    distinct,
    exactarithmetic,
    grouprows,
    heaps,
    keynegation,
    negation,
    sums,
    typed,
)
from quadweir.kernel.arrays import power_of_two
from quadweir.kernel.oneway import COUNT, FIRST_KEY, Keys, OneWay, add_entry
from quadweir.kernel.spellings import INLINE_LIMIT, ZERO

SCALE = 10**18


@st.composite
def histories(draw: st.DrawFn, items: int = 5) -> list[tuple[int, int, int]]:
    """Changes in order of time as (t, sign, item); nothing goes that is not there."""
    changes, there, now = [], Counter[int](), 0
    for item, step in draw(st.lists(st.tuples(st.integers(0, items - 1), st.integers(0, 2)))):
        now += step // 2
        sign = -1 if there[item] and draw(st.booleans()) else 1
        there[item] += sign
        changes.append((now, sign, item))
    return changes


def by_instant(changes: list[tuple[int, int, int]]) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for t, sign, item in changes:
        found[t].append((sign, item))
    return found


def columns(changes: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = ints(changes).reshape(-1, 3)
    t, sign, item = (np.ascontiguousarray(table[:, place]) for place in range(3))
    return t, sign, item


# --- GROUP BY ---------------------------------------------------------------------------------------


@compares("grouprows.group_pass")
@given(histories(), st.integers(0, 5))
def test_groups_of_changes(changes: list[tuple[int, int, int]], before: int) -> None:
    t, sign, item = columns(changes)
    index = OneWay(1, extra=2, capacity=64)
    groups, last, alive = (ints([0] * len(t)) for _ in range(3))
    keys = index.hashed(item.reshape(-1, 1))
    shown = grouprows.group_pass(t, sign, keys, index.entries, before, groups, last, alive)
    counts: Counter[int] = Counter()
    entries: dict[int, int] = {}
    for at, (now, change, key) in enumerate(changes):
        counts[key] += change
        assert groups[at] == entries.setdefault(key, len(entries))
        later = [each for each in changes[at + 1 :] if each[0] == now and each[2] == key]
        assert last[at] == (not later)
        assert alive[at] == (counts[key] > 0)
    assert shown == last.sum()
    for key, entry in entries.items():
        assert index.cells[entry, COUNT] == counts[key]


@compares("grouprows.emit_pass")
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 1), st.integers(0, 2)),
        max_size=40,
    )
)
def test_rows_of_groups_are_replaced(changes: list[tuple[int, int, int, int]]) -> None:
    count = len(changes)
    t = ints(range(count))
    groups, last, alive, value = (ints([each[n] for each in changes]) for n in range(4))
    cells = np.zeros((4, FIRST_KEY + 1 + 2), dtype=np.int64)
    cells[:, FIRST_KEY] = [10, 11, 12, 13]
    rows = np.full((count, 3), 7, dtype=np.int64)
    fresh, out = ints(range(count)), np.zeros((4, 2 * count), dtype=np.int64)
    made, taken = grouprows.emit_pass(
        t, groups, last, alive, value.reshape(-1, 1), 1, cells, rows, fresh, out
    )
    shown: dict[int, tuple[int, int]] = {}
    expected: list[tuple[int, int, int, int]] = []
    used = 0
    for at, (group, is_last, is_alive, result) in enumerate(changes):
        old = shown.get(group)
        if not is_last or (is_alive and old is not None and old[1] == result):
            continue
        if old is not None:
            expected.append((at, -1, old[0], 1 - is_alive))
            del shown[group]
        if is_alive:
            expected.append((at, 1, used, int(old is None)))
            assert rows[used].tolist() == [10 + group, result, 0]
            shown[group] = (used, result)
            used += 1
    assert (made, taken) == (len(expected), used)
    assert [tuple(each) for each in out[:, :made].T.tolist()] == expected


@compares("sums.count_pass")
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(0, 1))))
def test_counts(changes: list[tuple[int, int, int]]) -> None:
    groups, sign, last = columns(changes)
    state, out = ints([0] * 4), np.zeros((len(changes), sums.RESULT_WIDTH), dtype=np.int64)
    sums.count_pass(groups, sign, last, state, out)
    counts: Counter[int] = Counter()
    for at, (group, change, is_last) in enumerate(changes):
        counts[group] += change
        expected = [sums.NUMBER, 0, ZERO + counts[group]] if is_last else [0, 0, 0]
        assert out[at].tolist() == expected


def integer_result(value: int) -> list[int]:
    if abs(value) < INLINE_LIMIT:
        return [sums.NUMBER, 0, ZERO + value]
    return [typed.INTEGER, 0, value]


@compares("sums._put_integer")
@given(integers())
def test_integers_as_results(value: int) -> None:
    out = np.zeros((2, sums.RESULT_WIDTH), dtype=np.int64)
    sums._put_integer(out, 1, word(value))
    assert out.tolist() == [[0, 0, 0], integer_result(value)]


def towards_zero(value: int, divisor: int) -> int:
    return value // divisor if value >= 0 else -(-value // divisor)


def exact_result(total: int, values: int, decimals: int, *, average: bool) -> list[int]:
    """The sum or average of numbers whose sum times 10**18 is `total`."""
    if decimals == 0:
        if not -(2**63) <= total // SCALE < 2**63:
            return [0, 0, 0]
        if not average:
            return integer_result(total // SCALE)
    elif abs(total) >= 10**38:
        return [0, 0, 0]
    found = towards_zero(total, values) if average else total
    return [typed.DECIMAL, signed(found >> 64), signed(found)]


def wide_cells(value: int) -> list[int]:
    return [signed(value >> 128), signed(value >> 64), signed(value)]


@compares("sums._put_exact")
@given(
    st.one_of(st.integers(-(10**39), 10**39), st.integers(-(2**150), 2**150)),
    st.integers(1, 1000),
    st.booleans(),
    st.booleans(),
)
def test_exact_sums_as_results(total: int, values: int, is_integer: bool, average: bool) -> None:
    total = total // SCALE * SCALE if is_integer else total
    state = np.zeros((1, sums._STATE), dtype=np.int64)
    state[0, sums._VALUES], state[0, sums._DECIMALS] = values, 0 if is_integer else 1
    state[0, sums._EXACT : sums._EXACT + 3] = wide_cells(total)
    out = np.zeros((1, sums.RESULT_WIDTH), dtype=np.int64)
    sums._put_exact(state, 0, int(average), out, 0)
    expected = exact_result(total, values, 0 if is_integer else 1, average=average)
    assert out[0].tolist() == expected


# The values of an aggregate: a kind, and a number (of decimals times 10**18).
values = st.one_of(
    st.tuples(st.just(typed.INTEGER), integers()),
    st.tuples(st.just(typed.DECIMAL), st.integers(-(10**37), 10**37)),
    st.tuples(st.just(typed.DOUBLE), st.floats()),
    st.tuples(st.just(typed.FLOAT), st.floats(width=32)),
    st.tuples(st.just(typed.OTHER), st.just(0)),
)


def single(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def sum_of(held: list[tuple[int, Any]], *, average: bool) -> list[int]:
    """SUM or AVG of values as the cells of a result."""
    kinds = [kind for kind, _ in held]
    if typed.OTHER in kinds:
        return [0, 0, 0]
    if not held:
        return integer_result(0)
    exact = sum(
        value * (SCALE if kind == typed.INTEGER else 1)
        for kind, value in held
        if kind in (typed.INTEGER, typed.DECIMAL)
    )
    floats = [value for kind, value in held if kind in (typed.FLOAT, typed.DOUBLE)]
    if not floats:
        return exact_result(exact, len(held), kinds.count(typed.DECIMAL), average=average)
    special = {value for value in floats if math.isinf(value)}
    if any(map(math.isnan, floats)) or len(special) == 2:
        found = math.nan
    elif special:
        (found,) = special
    else:
        found = nearest(Fraction(exact, SCALE) + sum(map(Fraction, floats), Fraction(0)))
    kind = typed.DOUBLE if typed.DOUBLE in kinds else typed.FLOAT
    if kind == typed.FLOAT:
        found = single(found)
    if average:
        found /= len(held) if kind == typed.DOUBLE else single(len(held))
        found = single(found) if kind == typed.FLOAT else found
    bits = (
        exactarithmetic.NOT_A_NUMBER if math.isnan(found) else int(np.float64(found).view(np.int64))
    )
    return [kind, 0, bits]


@compares("sums._put_floating")
@given(
    st.lists(
        st.tuples(st.sampled_from([typed.FLOAT, typed.DOUBLE]), st.floats(width=32)), min_size=1
    ),
    st.integers(-(10**30), 10**30),
    st.booleans(),
)
def test_floating_sums_as_results(
    floats: list[tuple[int, float]], decimal: int, average: bool
) -> None:
    state = np.zeros((1, sums._STATE), dtype=np.int64)
    limbs, scratch = (np.zeros((1, exactarithmetic.LIMBS), dtype=np.int64) for _ in range(2))
    state[0, [sums._VALUES, sums._DECIMALS, sums._WIDE]] = len(floats) + 1, 1, 1
    state[0, sums._EXACT : sums._EXACT + 3] = wide_cells(decimal)
    for kind, value in floats:
        state[0, sums._FLOATS if kind == typed.FLOAT else sums._DOUBLES] += 1
        if math.isnan(value):
            state[0, sums._NANS] += 1
        elif math.isinf(value):
            state[0, sums._POSITIVE if value > 0 else sums._NEGATIVE] += 1
        else:
            exactarithmetic.add_float(limbs, 0, np.float64(value).view(np.int64), 1)
    out = np.zeros((1, sums.RESULT_WIDTH), dtype=np.int64)
    sums._put_floating(state, 0, int(average), limbs, scratch, scratch.view(np.float64), out, 0)
    expected = sum_of([(typed.DECIMAL, decimal), *floats], average=average)
    assert one_zero(out[0].tolist()) == one_zero(expected)


def one_zero(result: list[int]) -> list[int]:
    """A result in which the negative zero is the other one: sums have one zero."""
    is_float = result[0] in (typed.FLOAT, typed.DOUBLE)
    return [*result[:2], 0] if is_float and result[2] == -(2**63) else result


@compares("sums.sum_pass")
@given(st.lists(st.tuples(st.integers(0, 1), values), max_size=16), st.data(), st.booleans())
def test_sums(
    given_values: list[tuple[int, tuple[int, Any]]], data: st.DataObject, average: bool
) -> None:
    # Values come, and some of them go again.
    changes = [(group, 1, value) for group, value in given_values]
    gone = data.draw(st.lists(st.sampled_from(changes), unique_by=id)) if changes else []
    changes += [(group, -1, value) for group, _, value in gone]
    count = len(changes)
    groups, sign = ints([each[0] for each in changes]), ints([each[1] for each in changes])
    kind = ints([each[2][0] for each in changes])
    bits, high, low = (ints([0] * count) for _ in range(3))
    for at, (_, _, (what, value)) in enumerate(changes):
        if what in (typed.FLOAT, typed.DOUBLE):
            bits[at] = np.float64(value).view(np.int64)
        elif what != typed.OTHER:
            scaled = value * SCALE if what == typed.INTEGER else value
            high[at], low[at] = signed(scaled >> 64), signed(scaled)
    limbs, scratch = (np.zeros((4, exactarithmetic.LIMBS), dtype=np.int64) for _ in range(2))
    state = np.zeros((2, sums._STATE), dtype=np.int64)
    out = np.zeros((count, sums.RESULT_WIDTH), dtype=np.int64)
    sums.sum_pass(
        groups, sign, kind, bits, high, low, ints([1] * count), int(average), state,
        limbs, ints(range(4)), ints([4]), scratch, scratch.view(np.float64), out,
    )  # fmt: skip
    held: list[list[tuple[int, Any]]] = [[], []]
    for at, (group, change, value) in enumerate(changes):
        if change > 0:
            held[group].append(value)
        else:
            place = next(n for n, each in enumerate(held[group]) if each is value)
            del held[group][place]
        expected = sum_of(held[group], average=average)
        assert one_zero(out[at].tolist()) == one_zero(expected)


# --- MIN, MAX, SAMPLE -------------------------------------------------------------------------------


class Heaps:
    """Values 1 to 6 in an order of their own, and the heaps of three groups."""

    def __init__(self, words: list[tuple[int, ...]]) -> None:
        self.values = OneWay(1, extra=6, capacity=8)
        numbers = ints(range(1, len(words) + 1)).reshape(-1, 1)
        self.entries = self.values.add(numbers, ints([1] * len(words)))
        for number, each in enumerate(words):
            self.values.cells[self.entries[number], heaps.WORDS : heaps.LABEL + 1] = each
        self.values.cells[:, COUNT] = 0  # it says how many heaps a value is in
        self.order = dict(enumerate(words, 1))
        self.pairs = OneWay(2, extra=5, capacity=64)
        self.state = np.zeros((3, 2), dtype=np.int64)

    def key(self, pair: int) -> tuple[int, ...]:
        return self.order[int(self.pairs.cells[pair, FIRST_KEY + 1])]

    def add(self, group: int, number: int) -> int:
        """Make a heap of one pair; the pair plus one."""
        keys = self.pairs.hashed(ints([[group, number]]))
        pair = int(add_entry(self.pairs.entries, keys, 0))
        cells, value = self.pairs.cells, int(self.entries[number - 1])
        cells[pair, [COUNT, heaps._TALLY, heaps._VALUE]] = 1, 1, value
        cells[pair, [heaps._CHILD, heaps._NEXT]] = 0
        cells[pair, heaps._MAJOR] = self.values.cells[value, heaps.WORDS]
        self.values.cells[value, COUNT] += 1
        return pair + 1

    def pairs_below(self, top: int) -> list[int]:
        """The pairs of a heap; no child is below its parent."""
        if top == 0:
            return []
        found, child = [top - 1], int(self.pairs.cells[top - 1, heaps._CHILD])
        while child:
            assert self.key(top - 1) <= self.key(child - 1)
            found += self.pairs_below(child)
            child = int(self.pairs.cells[child - 1, heaps._NEXT])
        return found


orders = st.lists(
    st.tuples(*[st.integers(0, 1)] * 4, st.integers(-9, 9)), min_size=6, max_size=6, unique=True
)


@compares("heaps._below", "heaps._meld")
@given(orders, st.permutations(range(1, 7)), st.integers(0, 6))
def test_heaps_are_joined(words: list[tuple[int, ...]], numbers: list[int], first: int) -> None:
    model = Heaps(words)
    tops = [0, 0]
    pairs, held = model.pairs.cells, model.values.cells
    for place, number in enumerate(numbers):
        top = model.add(0, number)
        side = int(place >= first)
        tops[side] = int(heaps._meld(pairs, held, tops[side], top))
    top = int(heaps._meld(pairs, held, *tops))
    found = model.pairs_below(top)
    assert sorted(model.key(pair) for pair in found) == sorted(words)
    for a in found:
        for b in found:
            assert heaps._below(pairs, held, a, b) == (model.key(a) < model.key(b))


@compares("heaps._without", "heaps.heap_pass")
@given(orders, st.sets(st.integers(1, 6)), st.booleans())
def test_what_went_leaves_the_heap(
    words: list[tuple[int, ...]], gone: set[int], at_once: bool
) -> None:
    model = Heaps(words)
    top = 0
    for number in range(1, 7):
        top = int(heaps._meld(model.pairs.cells, model.values.cells, top, model.add(0, number)))
    for pair in model.pairs_below(top):
        if int(model.pairs.cells[pair, FIRST_KEY + 1]) in gone:
            model.pairs.cells[pair, heaps._TALLY] = 0
    popped = ints([0] * 8)
    if at_once:
        model.state[0, heaps._TOP] = top
        count = heaps.heap_pass(model.state, model.pairs.cells, model.values.cells, popped)
        top = int(model.state[0, heaps._TOP])
        left = set(range(1, 7)) - gone
    else:
        top, count = heaps._without(model.pairs.cells, model.values.cells, top, popped, np.int64(0))
        # Only what is above all that stays has to go.
        left = {int(model.pairs.cells[pair, FIRST_KEY + 1]) for pair in model.pairs_below(top)}
        assert left >= set(range(1, 7)) - gone
    assert {model.key(pair) for pair in model.pairs_below(top)} == {words[n - 1] for n in left}
    if top:
        staying = [words[n - 1] for n in set(range(1, 7)) - gone]
        assert model.key(top - 1) == min(staying)
    expected = {int(model.entries[number - 1]) for number in set(range(1, 7)) - left}
    assert set(popped[:count].tolist()) == expected
    for number in range(1, 7):
        assert model.values.cells[model.entries[number - 1], COUNT] == (number in left)


@compares("heaps.extreme_pass")
@given(orders, histories(items=18), st.data())
def test_the_least_of_each_group(
    words: list[tuple[int, ...]], changes: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    model = Heaps(words)
    _, sign, item = columns(changes)
    # An item is a group and a value, of which 0 is an error.
    groups, numbers = item // 6, item % 6
    last = ints([data.draw(st.integers(0, 1)) for _ in changes])
    model.pairs.reserve(len(changes))
    out = np.zeros((len(changes), sums.RESULT_WIDTH), dtype=np.int64)
    popped = ints([0] * (len(changes) + 1))
    heaps.extreme_pass(
        groups, sign, model.pairs.hashed(np.column_stack((groups, numbers))),
        ints([0 if n == 0 else model.entries[n - 1] for n in numbers]), last, model.state,
        model.pairs.entries, model.values.cells, popped, out,
    )  # fmt: skip
    held: Counter[tuple[int, int]] = Counter()
    for at in range(len(changes)):
        group = int(groups[at])
        held[group, int(numbers[at])] += int(sign[at])
        there = [n for (g, n), count in held.items() if g == group and n and count > 0]
        expected = [0, 0, 0]
        if last[at] and there and held[group, 0] == 0:
            expected = [sums.NUMBER, 0, min(there, key=lambda n: words[n - 1])]
        assert out[at].tolist() == expected


@compares("heaps.register_pass")
@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from([1, -1])), max_size=30))
def test_new_values_are_gathered_once(changes: list[tuple[int, int]]) -> None:
    index = OneWay(1, extra=6, capacity=64)
    numbers, sign = (ints([each[n] for each in changes]) for n in range(2))
    entries, new = (ints([-1] * len(changes)) for _ in range(2))
    keys = index.hashed(numbers.reshape(-1, 1))
    count = heaps.register_pass(keys, sign, index.entries, entries, new)
    known: dict[int, int] = {}
    for at, (number, change) in enumerate(changes):
        if number and change > 0:
            assert entries[at] == known.setdefault(number, len(known))
        else:
            assert entries[at] == -1
    assert new[:count].tolist() == list(known.values())
    assert index.cells[new[:count], heaps.KNOWN].all()


# --- DISTINCT and negation --------------------------------------------------------------------------


@compares("distinct._pass")
@given(histories())
def test_distinct_rows(changes: list[tuple[int, int, int]]) -> None:
    t, sign, item = columns(changes)
    index = OneWay(1, extra=2, capacity=64)
    index.reserve(len(changes))
    rows = np.zeros((len(changes), 1), dtype=np.int64)
    out = np.zeros((len(changes), 3), dtype=np.int64)
    made, taken = distinct._pass(
        t, sign, index.hashed(item.reshape(-1, 1)), index.entries, ints(range(len(changes))), rows,
        ints([0] * len(changes)), out,
    )  # fmt: skip
    counts: Counter[int] = Counter()
    shown: dict[int, int] = {}
    expected, used = [], 0
    for now, instant in by_instant(changes).items():
        for change, key in instant:
            counts[key] += change
        for key in dict.fromkeys(key for _, key in instant):
            if counts[key] > 0 and key not in shown:
                assert rows[used, 0] == key
                shown[key] = used
                expected.append([now, 1, used])
                used += 1
            elif counts[key] == 0 and key in shown:
                expected.append([now, -1, shown.pop(key)])
    assert (made, taken) == (len(expected), used)
    assert out[:made].tolist() == expected


@compares("negation._pass_pairs")
@given(histories(items=8), st.booleans())
def test_left_rows_by_their_pairs(changes: list[tuple[int, int, int]], negated: bool) -> None:
    t, sign, item = columns(changes)
    # Items below 4 are left rows, the others pairs of the same rows.
    source, rows = item // 4, item % 4
    index = OneWay(1, extra=4, capacity=64)
    index.reserve(len(changes))
    out = np.zeros((len(changes), 3), dtype=np.int64)
    made = negation._pass_pairs(
        t, sign, source, index.hashed(rows.reshape(-1, 1)), int(negated), index.entries,
        ints([0] * len(changes)), out,
    )  # fmt: skip
    counts: Counter[tuple[int, int]] = Counter()
    shown: set[int] = set()
    expected = []
    for now, instant in by_instant(changes).items():
        for change, each in instant:
            counts[divmod(each, 4)] += change
        for row in dict.fromkeys(each % 4 for _, each in instant):
            show = counts[0, row] > 0 and (counts[1, row] == 0) == negated
            if show != (row in shown):
                expected.append([now, 1 if show else -1, row])
                shown ^= {row}
    assert out[:made].tolist() == expected


@compares("keynegation._link", "keynegation._unlink", "keynegation._write")
@given(st.lists(st.integers(0, 7), max_size=30))
def test_rings_of_left_rows(turned: list[int]) -> None:
    cells = np.zeros((8, FIRST_KEY + 7), dtype=np.int64)
    cells[:, keynegation._KEY] = np.arange(8) % 3
    keys = np.zeros((3, FIRST_KEY + 4), dtype=np.int64)
    head = FIRST_KEY + 2
    model: list[list[int]] = [[], [], []]
    out, made = np.zeros((len(turned), 3), dtype=np.int64), 0
    for node in turned:
        ring = model[node % 3]
        made = keynegation._write(out, made, made + 5, 1 if node in ring else -1, node)
        if node in ring:
            keynegation._unlink(cells, keys, node, head)
            ring.remove(node)
        else:
            keynegation._link(cells, keys, node, head)
            ring.insert(0, node)
        for key in range(3):
            found, at = [], int(keys[key, head])
            while at:
                found.append(at - 1)
                at = int(cells[at - 1, keynegation._NEXT])
            assert found == model[key]
            for before, after in pairwise(found):
                assert cells[after, keynegation._BEFORE] == before + 1
    assert out[:, 0].tolist() == list(range(5, 5 + len(turned)))
    assert out[:, 2].tolist() == turned


@compares("keynegation._pass_keys")
@given(histories(items=9), st.booleans(), st.booleans())
def test_left_rows_by_keys(
    changes: list[tuple[int, int, int]], negated: bool, little_room: bool
) -> None:
    # Items below 6 are left rows, with the key that they have modulo 3; the others are right keys.
    # A left row is there once at most.
    there: set[int] = set()
    kept = []
    for t, sign, item in changes:
        if item < 6:
            if (item in there) != (sign < 0):
                continue
            there ^= {item}
        kept.append((t, sign, item))
    t, sign, item = columns(kept)
    source = ints(item >= 6)
    by_row = OneWay(1, extra=6, capacity=power_of_two(64))
    by_key = OneWay(1, extra=3, capacity=64)
    by_row.reserve(len(kept))
    by_key.reserve(len(kept))
    rows: Keys = by_row.hashed(item.reshape(-1, 1))
    keys: Keys = by_key.hashed((item % 3).reshape(-1, 1))
    found: Counter[tuple[int, int]] = Counter()
    done, touched, arrived = 0, ints([0] * len(kept)), ints([0] * len(kept))
    while done < len(kept):
        out = np.zeros((12 if little_room else 1000, 3), dtype=np.int64)
        made, done = keynegation._pass_keys(
            t, sign, source, rows, keys, int(negated), by_row.entries, by_key.entries,
            touched, arrived, done, 6, out,
        )  # fmt: skip
        for now, change, row in out[:made].tolist():
            found[now, row] += change
    left: set[int] = set()
    right: Counter[int] = Counter()
    shown: set[int] = set()
    expected: Counter[tuple[int, int]] = Counter()
    for now, instant in by_instant(kept).items():
        for change, each in instant:
            if each < 6:
                left ^= {each}
            else:
                right[each % 3] += change
        visible = {row for row in left if (right[row % 3] > 0) != negated}
        for row in visible ^ shown:
            expected[now, row] = 1 if row in visible else -1
        shown = visible
    assert {key: count for key, count in found.items() if count} == expected
