"""All facts about a match except its time and its terms, as bits of one integer or of a few.

On the way to Python, each column costs as much as a short term does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np

from quadweir.kernel.arrays import Ints
from quadweir.plan.matchtests import MatchTest, StatementTerm

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

BITS: Final = 62
"""How many bits of a column are used."""
WORD: Final = "passed"
"""The name of the columns, before a number."""

Field: TypeAlias = str | tuple[str, StatementTerm]
REPORTS_TIME: Final[Field] = "reports_time"
"""Whether a row is no statement, but reports how far time has come."""
STREAM: Final[Field] = "stream"
"""The number of the stream."""


def shard_by(key: StatementTerm) -> Field:
    """Return the field for the shard of a row, by a key of the tests."""
    return ("shard", key)


def word_of(test: int) -> tuple[str, int]:
    """Return the column, and the bit of it, that says whether a test was passed.

    >>> word_of(0), word_of(63)
    (('passed0', 0), ('passed1', 1))
    """
    return f"{WORD}{test // BITS}", test % BITS


@final
@dataclass(frozen=True)
class MatchBits:
    """The layout of the bits: first those of the tests, then the fields.

    Attributes:
        places: for each field its word, the place of its lowest bit in it, and its width.
    """

    places: Mapping[Field, tuple[int, int, int]]

    @staticmethod
    def of(tests: Sequence[MatchTest], *, streams: int, shards: int) -> MatchBits:
        """Return a layout for these tests and for these numbers of streams and shards."""
        keys = {each.key for each in tests if each.key is not None and shards > 1}
        widths = {REPORTS_TIME: 1, STREAM: (streams - 1).bit_length()}
        widths |= {shard_by(key): (shards - 1).bit_length() for key in sorted(keys, key=str)}
        at = len(tests)
        places = {}
        for field, width in widths.items():
            if at % BITS + width > BITS:
                at += BITS - at % BITS
            places[field] = (at // BITS, at % BITS, width)
            at += width
        return MatchBits(places)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        last = max(word for word, _, _ in self.places.values())
        return tuple(f"{WORD}{number}" for number in range(last + 1))

    @property
    def used(self) -> int:
        """How many bits are used in all."""
        return max(word * BITS + shift + width for word, shift, width in self.places.values())

    def masks(self, chosen: Iterable[bool]) -> dict[str, int]:
        """Return the bits of the chosen tests, for each column that has any.

        >>> MatchBits({REPORTS_TIME: (0, 3, 1), STREAM: (1, 0, 2)}).masks([True, False, True])
        {'passed0': 5}
        """
        found: dict[str, int] = {}
        for test, is_chosen in enumerate(chosen):
            if is_chosen:
                name, bit = word_of(test)
                found[name] = found.get(name, 0) | 1 << bit
        return found

    def read(self, field: Field, words: pa.RecordBatch | pa.Table) -> Ints:
        """Return the values of a field in all rows."""
        word, shift, width = self.places[field]
        column: Ints = words.column(f"{WORD}{word}").to_numpy()
        return (column >> shift) & ((1 << width) - 1)

    def is_(self, field: Field, value: int, words: pa.RecordBatch | pa.Table) -> np.ndarray:
        """Return for each row whether a field has a value."""
        word, shift, width = self.places[field]
        column: Ints = words.column(f"{WORD}{word}").to_numpy()
        found: np.ndarray = (column & (((1 << width) - 1) << shift)) == value << shift
        return found

    def written(self, passed: Sequence[Column], fields: Mapping[Field, Column]) -> list[Column]:
        """Return the columns.

        Args:
            passed: the bits of the tests that a row passed, for each word.
            fields: the values of the fields.
        """
        from pyspark.sql import functions as F

        words: dict[int, Column] = dict(enumerate(passed))
        for field, (word, shift, _) in self.places.items():
            moved = F.shiftleft(fields[field].cast("bigint"), shift)
            words[word] = words[word].bitwiseOR(moved) if word in words else moved
        return [words[number].alias(name) for number, name in enumerate(self.names)]
