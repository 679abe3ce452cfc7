"""GROUP_CONCAT of the groups of an aggregation.

The result is as long as the group, and is written again whenever the group changes. Writing it takes
the time here, and compiled code would not write faster, so this is plain Python.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping

import numpy as np

from quadweir.algebra.functions import call
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.signatures import Context
from quadweir.kernel.arrays import Ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.sums import KIND, LOW, NUMBER
from quadweir.terms import Literal


class Concatenation:
    """The texts of each group's values, in the order of their spelling."""

    keeps_terms = True

    def __init__(self, separator: str, dictionary: Dictionary) -> None:
        self._separator = separator
        self._dictionary = dictionary
        # Of each group the values in order: spelling and number, each as often as it is there.
        self._members: dict[int, list[tuple[str, int]]] = {}
        self._errors: Counter[int] = Counter()
        # What went before it came, which it may within an instant.
        self._early: Counter[tuple[int, int]] = Counter()
        self._gone: list[int] = []

    def take(self, groups: Ints, sign: Ints, values: Ints, last: Ints, out: Ints) -> None:
        """Take changes in order, and write results where `last` is 1."""
        changes = zip(groups.tolist(), sign.tolist(), values.tolist(), last.tolist(), strict=True)
        for at, (group, change, value, is_last) in enumerate(changes):
            if change and not value:
                self._errors[group] += change
            elif change > 0:
                self._add(group, value)
            elif change < 0:
                self._remove(group, value)
            if is_last:
                text = self._text(group)
                if text is not None:
                    out[at, KIND] = NUMBER
                    out[at, LOW] = self._dictionary.number(Literal(text))

    def _add(self, group: int, value: int) -> None:
        if self._early[group, value]:
            self._early[group, value] -= 1
            return
        insort(self._members.setdefault(group, []), (self._dictionary.spell(value), value))
        self._dictionary.hold(np.array([value]))

    def _remove(self, group: int, value: int) -> None:
        members = self._members.get(group, [])
        entry = (self._dictionary.spell(value), value)
        place = bisect_left(members, entry)
        if place == len(members) or members[place] != entry:
            self._early[group, value] += 1
            return
        del members[place]
        if not members:
            del self._members[group]
        self._gone.append(value)

    def _text(self, group: int) -> str | None:
        """Return the text of a group; None if it is an error.

        Raises:
            LimitError: it is too long to be held.
        """
        if self._errors[group]:
            return None
        try:
            texts = [
                call("STR", (self._dictionary.term(value),), Context())
                for _, value in self._members.get(group, ())
            ]
        except ExpressionError:
            return None
        parts = [text.lexical for text in texts if isinstance(text, Literal)]
        # Counted before it is made: it can be longer than what memory holds.
        count = sum(map(len, parts)) + len(self._separator) * len(parts)
        self._dictionary.texts.spend(count, "GROUP_CONCAT")
        return self._separator.join(parts)

    def settle(self) -> None:
        """Let go of the terms that went."""
        if self._gone:
            self._dictionary.drop(np.array(self._gone, dtype=np.int64))
            self._gone = []
        self._early.clear()
        self._errors = +self._errors

    def arrays(self) -> dict[str, Ints]:
        members = [(group, each[1]) for group, its in self._members.items() for each in its]
        errors = list(self._errors.items())
        return {
            "members": np.array(members, dtype=np.int64).reshape(-1, 2),
            "errors": np.array(errors, dtype=np.int64).reshape(-1, 2),
        }

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._members = {}
        # They were held when the snapshot was taken, and the dictionary remembers that.
        for group, value in np.asarray(arrays["members"]).reshape(-1, 2).tolist():
            insort(self._members.setdefault(group, []), (self._dictionary.spell(value), value))
        self._errors = Counter()
        for group, count in np.asarray(arrays["errors"]).reshape(-1, 2).tolist():
            self._errors[group] = count
        self._early, self._gone = Counter(), []
