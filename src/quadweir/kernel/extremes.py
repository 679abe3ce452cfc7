"""MIN, MAX and SAMPLE of the groups of an aggregation, under expiry.

Each group has a heap of its distinct values with a counter each. A value whose counter is 0 stays
in the heap until it comes to the top, or until most of what is there has gone: so nothing is ever
searched for, and no window is looked through again.

Values are compared by four words that keep their order, computed once when a value is new: of
numbers the nearest double, and where that is not exact the side and the exact value; of texts what
kind they are and how they begin. Where two values share all four, a label tells them apart, which
is given by comparing them in full.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numba import njit

from quadweir.algebra.values import order_key
from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.oneway import (
    COUNT,
    FIRST_KEY,
    Entries,
    Keys,
    OneWay,
    add_entry,
    find_entries,
    part,
    prefixed,
)
from quadweir.kernel.sums import KIND, LOW, NUMBER, grown
from quadweir.kernel.typed import DECIMAL, DOUBLE, INTEGER, scaled
from quadweir.kernel.wide import INFINITY, MANTISSA
from quadweir.terms import IRI, Literal, Term, TripleTerm

# A value, by its number: four words and a label, and whether these are good. Its counter says how
# many heaps it is in.
_WORDS: Final = FIRST_KEY + 1
_LABEL: Final = _WORDS + 4
_KNOWN: Final = _WORDS + 5

# A value in a group: how often it is there, its entry among the values, its first child and next
# sibling in the heap plus one, and the first of its words. Its counter is 1 while it is in the heap.
_TALLY: Final = FIRST_KEY + 2
_VALUE: Final = _TALLY + 1
_CHILD: Final = _TALLY + 2
_NEXT: Final = _TALLY + 3
_MAJOR: Final = _TALLY + 4

# A group: the top of its heap plus one, and how many errors are in it.
_TOP: Final = 0
_ERRORS: Final = 1

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_GAP: Final = 2**40
_PREFIX: Final = 16


@njit(cache=True)  # type: ignore[untyped-decorator]
def exact_side(bits: int, high: int, low: int) -> int:
    """Tell whether a number times 10**18 is below (-1), at (0) or above (1) its nearest double."""
    mantissa = (bits & MANTISSA) | (MANTISSA + 1)
    shift = ((bits >> 52) & 0x7FF) - 1075
    a, b = scaled(-mantissa if bits < 0 else mantissa)
    # Both are nearly the same, so shifting one to the place of the other stays within 128 bits.
    c: Any = high
    d: Any = low
    if shift >= 64:
        a, b = b << (shift - 64), np.int64(0)
    elif shift > 0:
        a = (a << shift) | np.int64(np.uint64(b) >> np.uint64(64 - shift))
        b = b << shift
    elif shift <= -64:
        c, d = d << (-shift - 64), np.int64(0)
    elif shift < 0:
        c = (c << -shift) | np.int64(np.uint64(d) >> np.uint64(64 + shift))
        d = d << -shift
    if c != a:
        return -1 if c < a else 1
    if d == b:
        return 0
    return -1 if np.uint64(d) < np.uint64(b) else 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def number_words(kind: Ints, bits: Ints, high: Ints, low: Ints, words: Ints) -> None:
    """Write the words of the numbers among the values; NaN comes first, as in ORDER BY."""
    for at in range(len(kind)):
        if kind[at] < INTEGER or kind[at] > DOUBLE:
            continue
        double = bits[at]
        if double & INFINITY == INFINITY and double & MANTISSA != 0:
            words[at, 0] = _LEAST + 1
            continue
        if double == _LEAST:
            double = 0  # there is but one zero
        words[at, 0] = double if double >= 0 else double ^ _MOST
        if kind[at] <= DECIMAL and double != 0:
            side = exact_side(double, high[at], low[at])
            if side != 0:
                words[at, 1] = side
                words[at, 2] = high[at]
                words[at, 3] = low[at] ^ _LEAST


@njit(cache=True)  # type: ignore[untyped-decorator]
def _below(pairs: Ints, values: Ints, a: int, b: int) -> bool:
    if pairs[a, _MAJOR] != pairs[b, _MAJOR]:
        return pairs[a, _MAJOR] < pairs[b, _MAJOR]
    x, y = pairs[a, _VALUE], pairs[b, _VALUE]
    for place in range(_WORDS + 1, _LABEL + 1):
        if values[x, place] != values[y, place]:
            return values[x, place] < values[y, place]
    return False


@njit(cache=True)  # type: ignore[untyped-decorator]
def _meld(pairs: Ints, values: Ints, a: int, b: int) -> int:
    """Join two heaps, given by their tops plus one; 0 is an empty heap."""
    if a == 0:
        return b
    if b == 0:
        return a
    if _below(pairs, values, b - 1, a - 1):
        a, b = b, a
    pairs[b - 1, _NEXT] = pairs[a - 1, _CHILD]
    pairs[a - 1, _CHILD] = b
    return a


@njit(cache=True)  # type: ignore[untyped-decorator]
def _without(pairs: Ints, values: Ints, top: int, popped: Ints, count: int) -> tuple[int, int]:
    """Take values that went off the top of a heap: its new top, and the values that left it."""
    while top > 0 and pairs[top - 1, _TALLY] <= 0:
        # Children that went as well make room for theirs.
        rest = top
        pairs[top - 1, _NEXT] = 0
        merged = 0
        waiting = 0
        while rest > 0:
            node = rest - 1
            rest = pairs[node, _NEXT]
            if pairs[node, _TALLY] <= 0:
                value = pairs[node, _VALUE]
                values[value, COUNT] -= 1
                pairs[node, COUNT] = 0
                popped[count] = value
                count += 1
                child = pairs[node, _CHILD]
                pairs[node, _CHILD] = 0
                if child > 0:
                    end = child - 1
                    while pairs[end, _NEXT] > 0:
                        end = pairs[end, _NEXT] - 1
                    pairs[end, _NEXT] = rest
                    rest = child
                continue
            pairs[node, _NEXT] = 0
            # The two passes of a pairing heap: first two by two, then all into one.
            if waiting == 0:
                waiting = node + 1
            else:
                both = _meld(pairs, values, waiting, node + 1)
                waiting = 0
                pairs[both - 1, _NEXT] = merged
                merged = both
        top = waiting
        while merged > 0:
            after = pairs[merged - 1, _NEXT]
            pairs[merged - 1, _NEXT] = 0
            top = _meld(pairs, values, top, merged)
            merged = after
    return top, count


@njit(cache=True)  # type: ignore[untyped-decorator]
def extreme_pass(
    groups: Ints,
    sign: Ints,
    keys: Keys,
    entries: Ints,
    last: Ints,
    state: Ints,
    index: Entries,
    values: Ints,
    popped: Ints,
    out: Ints,
) -> int:
    """Keep the heaps of groups; the top of each goes out wherever `last` says so.

    `keys` are pairs of group and number, for `index`; `entries` are those of the numbers among the
    values.
    """
    pairs = index.cells
    count = np.int64(0)
    for at in range(len(groups)):
        group = groups[at]
        if keys.values[at, 1] == 0:
            state[group, _ERRORS] += sign[at]
        else:
            pair = add_entry(index, keys, at)
            pairs[pair, _TALLY] += sign[at]
            if pairs[pair, _TALLY] > 0 and pairs[pair, COUNT] == 0:
                value = entries[at]
                pairs[pair, COUNT] = 1
                pairs[pair, _VALUE] = value
                pairs[pair, _CHILD] = 0
                pairs[pair, _NEXT] = 0
                pairs[pair, _MAJOR] = values[value, _WORDS]
                values[value, COUNT] += 1
                state[group, _TOP] = _meld(pairs, values, state[group, _TOP], pair + 1)
        if last[at] == 1:
            top = state[group, _TOP]
            if top > 0 and pairs[top - 1, _TALLY] <= 0:
                top, count = _without(pairs, values, top, popped, count)
                state[group, _TOP] = top
            if top > 0 and state[group, _ERRORS] == 0:
                out[at, KIND] = NUMBER
                out[at, LOW] = pairs[top - 1, FIRST_KEY + 1]
    return int(count)


@njit(cache=True)  # type: ignore[untyped-decorator]
def register_pass(
    numbers: Keys,
    sign: Ints,
    index: Entries,
    entries: Ints,
    new: Ints,
) -> int:
    """Find the entries of values that come, and gather those whose words are not known yet."""
    values = index.cells
    count = 0
    for at in range(len(sign)):
        if sign[at] <= 0 or numbers.values[at, 0] == 0:
            continue
        entry = add_entry(index, numbers, at)
        entries[at] = entry
        if values[entry, _KNOWN] == 0:
            values[entry, _KNOWN] = 1
            new[count] = entry
            count += 1
    return count


@njit(cache=True)  # type: ignore[untyped-decorator]
def heap_pass(state: Ints, pairs: Ints, values: Ints, gone: Ints) -> int:
    """Build all heaps anew from the values that are there; the others leave them."""
    for group in range(len(state)):
        state[group, _TOP] = 0
    count = 0
    for pair in range(len(pairs)):
        if pairs[pair, COUNT] == 0:
            continue
        pairs[pair, _CHILD] = 0
        pairs[pair, _NEXT] = 0
        if pairs[pair, _TALLY] > 0:
            group = pairs[pair, FIRST_KEY]
            state[group, _TOP] = _meld(pairs, values, state[group, _TOP], pair + 1)
        else:
            pairs[pair, COUNT] = 0
            values[pairs[pair, _VALUE], COUNT] -= 1
            gone[count] = pairs[pair, _VALUE]
            count += 1
    return count


class Extreme:
    """The least or the greatest value of each group; SAMPLE is the least by spelling.

    An error among the values makes MIN and MAX an error. SAMPLE ignores it.
    """

    def __init__(self, function: str, dictionary: Dictionary) -> None:
        self._by_spelling = function == "SAMPLE"
        # The order is turned around by turning all bits around.
        self._flip = -1 if function == "MAX" else 0
        self._dictionary = dictionary
        self._values = OneWay(1, extra=6)
        self._pairs = OneWay(2, extra=5)
        self._state: Ints = np.zeros((0, 2), dtype=np.int64)
        self._ties = _Ties(self)
        self._gone: list[Ints] = []

    def take(
        self, groups: Ints, sign: Ints, numbers: Ints, last: Ints, size: int, out: Ints
    ) -> None:
        """Take changes of `size` groups in order, and write results where `last` is 1."""
        self._state = grown(self._state, size)
        if self._by_spelling:
            sign = np.where(numbers == 0, 0, sign)
        count = len(groups)
        if self._pairs.used[0] < count:
            self._purge()
        self._pairs.reserve(count)
        self._values.reserve(count)
        values, pairs = self._values, self._pairs
        entries, new = ints(count), ints(count)
        hashed = values.hashed(numbers.reshape(-1, 1))
        known = register_pass(hashed, sign, values.entries, entries, new)
        new = new[:known]
        self._register(new)
        popped = np.empty(pairs.size + count, dtype=np.int64)  # no more can leave the heaps
        left = extreme_pass(
            groups,
            sign,
            pairs.hashed(np.column_stack((groups, numbers))),
            entries,
            last,
            self._state,
            pairs.entries,
            values.cells,
            popped,
            out,
        )
        self._unregister(np.concatenate((popped[:left], new)))

    def _purge(self) -> None:
        """Take what went out of the heaps, where it has not come to the top."""
        gone = np.empty(self._pairs.size, dtype=np.int64)
        count = heap_pass(self._state, self._pairs.cells, self._values.cells, gone)
        self._unregister(gone[:count])

    def _register(self, entries: Ints) -> None:
        """Compute the words of new values."""
        if not len(entries):
            return
        cells = self._values.cells
        numbers = cells[entries, FIRST_KEY]
        self._dictionary.hold(numbers)
        words: Ints = np.zeros((len(entries), 4), dtype=np.int64)
        if self._by_spelling:
            texts = b"".join(
                self._dictionary.spell(each).encode("utf-8", "surrogatepass")[:32].ljust(32, b"\0")
                for each in numbers.tolist()
            )
            words = _ordered(texts, 4)
        else:
            typed = self._dictionary.typed(numbers)
            number_words(typed.kind, typed.approximate.view(np.int64), typed.high, typed.low, words)
            others = np.flatnonzero((typed.kind < INTEGER) | (typed.kind > DOUBLE))
            for place in others.tolist():
                words[place] = _term_words(self._dictionary.term(int(numbers[place])))
        cells[entries, _WORDS:_LABEL] = words ^ self._flip
        cells[entries, _LABEL] = self._ties.add(numbers, words) ^ self._flip

    def _unregister(self, entries: Ints) -> None:
        """Forget the values that are in no heap any more."""
        if not len(entries):
            return
        cells = self._values.cells
        entries = np.unique(entries)
        entries = entries[(cells[entries, COUNT] == 0) & (cells[entries, _KNOWN] == 1)]
        cells[entries, _KNOWN] = 0
        numbers = cells[entries, FIRST_KEY]
        self._ties.remove(numbers, cells[entries, _WORDS:_LABEL] ^ self._flip)
        self._gone.append(numbers)

    def sort_key(self, number: int) -> Any:
        """Give what values that share their words are compared by."""
        if self._by_spelling:
            return self._dictionary.spell(number)
        return order_key(self._dictionary.term(number)), self._dictionary.spell(number)

    def relabel(self, labels: dict[int, int]) -> None:
        """Change the labels of values; their order stays."""
        entries = ints(len(labels))
        numbers = np.array(list(labels), dtype=np.int64).reshape(-1, 1)
        find_entries(self._values.entries, self._values.hashed(numbers), entries)
        self._values.cells[entries, _LABEL] = np.array(list(labels.values())) ^ self._flip

    def settle(self) -> None:
        """Let go of the terms that went."""
        for numbers in self._gone:
            self._dictionary.drop(numbers)
        self._gone = []

    def arrays(self) -> dict[str, Ints]:
        return (
            {"state": self._state}
            | prefixed("values", self._values.arrays())
            | prefixed("pairs", self._pairs.arrays())
        )

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._state = np.array(arrays["state"], dtype=np.int64).reshape(-1, 2)
        self._values.restore(part("values", arrays))
        self._pairs.restore(part("pairs", arrays))
        self._gone = []
        cells = self._values.cells[self._values.live()]
        self._ties.restore(
            cells[:, FIRST_KEY],
            cells[:, _WORDS:_LABEL] ^ self._flip,
            cells[:, _LABEL] ^ self._flip,
        )


class _Ties:
    """Labels for values that share their words; for nearly all there is nothing to tell apart."""

    def __init__(self, owner: Extreme) -> None:
        self._owner = owner
        self._index = OneWay(4, extra=1)  # one value of those words
        # Where there were several: those, in order.
        self._classes: dict[bytes, list[tuple[Any, int]]] = {}
        self._labels: dict[int, int] = {}

    def add(self, numbers: Ints, words: Ints) -> Ints:
        """Give labels to new values."""
        entries, became = self._index.transitions(words, np.ones(len(words), dtype=np.int64))
        first = became > 0
        self._index.cells[entries[first], self._index.first_extra] = numbers[first]
        labels = ints(len(numbers))
        late = np.flatnonzero(~first).tolist()
        for place in late:
            self._insert(
                int(numbers[place]),
                words[place].tobytes(),
                int(self._index.cells[entries[place], self._index.first_extra]),
            )
        # Only now, since one that comes may move others that came with it.
        for place in range(len(numbers)) if late else ():
            labels[place] = self._labels.get(int(numbers[place]), 0)
        return labels

    def _insert(self, number: int, words: bytes, first: int) -> None:
        members = self._classes.get(words)
        if members is None:
            members = self._classes[words] = [(self._owner.sort_key(first), first)]
            self._labels[first] = 0
        entry = (self._owner.sort_key(number), number)
        place = bisect_left(members, entry)
        members.insert(place, entry)
        low = self._labels[members[place - 1][1]] if place else None
        high = self._labels[members[place + 1][1]] if place + 1 < len(members) else None
        if low is None:
            assert high is not None
            label = high - _GAP
        elif high is None:
            label = low + _GAP
        else:
            label = (low + high) // 2
        self._labels[number] = label
        if label == low or abs(label) > 2**61:
            again = {each: at * _GAP for at, (_, each) in enumerate(members)}
            self._labels.update(again)
            self._owner.relabel(again)

    def remove(self, numbers: Ints, words: Ints) -> None:
        """Forget values."""
        self._index.add(words, -np.ones(len(words), dtype=np.int64))
        if not self._labels:
            return
        for place, number in enumerate(numbers.tolist()):
            if self._labels.pop(number, None) is None:
                continue
            key = words[place].tobytes()
            members = [each for each in self._classes[key] if each[1] != number]
            if members:
                self._classes[key] = members
            else:
                del self._classes[key]

    def restore(self, numbers: Ints, words: Ints, labels: Ints) -> None:
        """Find out which values share their words."""
        self._index = OneWay(4, extra=1)
        self._classes, self._labels = {}, {}
        entries, became = self._index.transitions(words, np.ones(len(words), dtype=np.int64))
        first = became > 0
        self._index.cells[entries[first], self._index.first_extra] = numbers[first]
        shared = np.flatnonzero(self._index.cells[entries, COUNT] > 1)
        for place in shared[np.argsort(labels[shared])].tolist():
            number = int(numbers[place])
            self._labels[number] = int(labels[place])
            members = self._classes.setdefault(words[place].tobytes(), [])
            members.append((self._owner.sort_key(number), number))


def _ordered(texts: bytes, width: int) -> Ints:
    """Read bytes as words that have the same order."""
    unsigned = np.frombuffer(texts, dtype=">u8").astype(np.uint64) ^ np.uint64(1 << 63)
    return unsigned.view(np.int64).reshape(-1, width)


_TRIPLE_KIND: Final = 7


def _term_words(term: Term) -> Ints:
    """Give the words of a term that is no number: what it is, and how its text begins."""
    key = order_key(term)
    if isinstance(term, Literal):
        text = key[2] if isinstance(key[2], str) and key[1] != 4 else ""
        major, kind = _MOST, int(key[1])
    elif isinstance(term, TripleTerm):
        # After all literals, whose kinds are fewer.
        text, major, kind = "", _MOST, _TRIPLE_KIND
    else:
        text = term.value if isinstance(term, IRI) else term.label
        major, kind = _LEAST, int(isinstance(term, IRI))
    prefix = text.encode("utf-8", "surrogatepass")[:_PREFIX].ljust(_PREFIX, b"\0")
    return np.array([major, kind, *_ordered(prefix, 2)[0].tolist()], dtype=np.int64)
