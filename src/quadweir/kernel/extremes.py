"""MIN, MAX and SAMPLE of the groups of an aggregation, under expiry.

Each group has a heap of its distinct values with a counter each. A value whose counter is 0 stays
in the heap until it comes to the top, or until most of what is there has gone. Nothing is ever
searched for, and no window is read again.

Values are compared by four words that keep their order (`orderwords.py`). Where two values share
all four, a label distinguishes them; labels come from comparing the values in full.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from quadweir.algebra.values import order_key
from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.heaps import KNOWN, LABEL, WORDS, extreme_pass, heap_pass, register_pass
from quadweir.kernel.oneway import (
    COUNT,
    FIRST_KEY,
    OneWay,
    find_entries,
    part,
    prefixed,
)
from quadweir.kernel.orderwords import number_words, term_words, text_words
from quadweir.kernel.sums import grown
from quadweir.kernel.typed import DOUBLE, INTEGER

_GAP: Final = 2**40


class Extreme:
    """The least or the greatest value of each group; SAMPLE is the least by spelling.

    An error among the values makes MIN and MAX an error. SAMPLE ignores it.
    """

    keeps_terms = True

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
            words = text_words(texts, 4)
        else:
            typed = self._dictionary.typed(numbers)
            number_words(typed.kind, typed.approximate.view(np.int64), typed.high, typed.low, words)
            others = np.flatnonzero((typed.kind < INTEGER) | (typed.kind > DOUBLE))
            for place in others.tolist():
                words[place] = term_words(self._dictionary.term(int(numbers[place])))
        cells[entries, WORDS:LABEL] = words ^ self._flip
        cells[entries, LABEL] = self._ties.add(numbers, words) ^ self._flip

    def _unregister(self, entries: Ints) -> None:
        """Forget the values that are in no heap any more."""
        if not len(entries):
            return
        cells = self._values.cells
        entries = np.unique(entries)
        entries = entries[(cells[entries, COUNT] == 0) & (cells[entries, KNOWN] == 1)]
        cells[entries, KNOWN] = 0
        numbers = cells[entries, FIRST_KEY]
        self._ties.remove(numbers, cells[entries, WORDS:LABEL] ^ self._flip)
        self._gone.append(numbers)

    def sort_key(self, number: int) -> Any:
        """Return what values that share their words are compared by."""
        if self._by_spelling:
            return self._dictionary.spell(number)
        return order_key(self._dictionary.term(number)), self._dictionary.spell(number)

    def relabel(self, labels: dict[int, int]) -> None:
        """Change the labels of values; their order stays."""
        entries = ints(len(labels))
        numbers = np.array(list(labels), dtype=np.int64).reshape(-1, 1)
        find_entries(self._values.entries, self._values.hashed(numbers), entries)
        self._values.cells[entries, LABEL] = np.array(list(labels.values())) ^ self._flip

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
            cells[:, WORDS:LABEL] ^ self._flip,
            cells[:, LABEL] ^ self._flip,
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
        """Return labels to new values."""
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
