"""What there is to know of a match besides its time and its terms, as bits of one integer or of few.

Every column costs a match as much on its way to Python as a short term does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np

from quadweir.kernel.arrays import Ints
from quadweir.plan.matchtests import MatchTest, Part

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

BITS: Final = 62
"""So many bits of a column are used."""
WORD: Final = "passed"
"""How the columns are called, with a number."""

Field: TypeAlias = str | tuple[str, Part]
REPORTS_TIME: Final[Field] = "told"
"""Whether a row is no statement and tells how far time has come."""
STREAM: Final[Field] = "stream"
"""The number of the stream."""


def shard_by(key: Part) -> Field:
    """The shard that a term sends a row to, where a test that goes by it was passed."""
    return ("shard", key)


def word_of(test: int) -> tuple[str, int]:
    """Tell in which column, and at which bit of it, stands whether a test was passed.

    >>> word_of(0), word_of(63)
    (('passed0', 0), ('passed1', 1))
    """
    return f"{WORD}{test // BITS}", test % BITS


@final
@dataclass(frozen=True)
class MatchBits:
    """Where everything stands: the bits of tests first, then the fields.

    Attributes:
        places: for each field its word, the place of its lowest bit in it, and its width.
    """

    places: Mapping[Field, tuple[int, int, int]]

    @staticmethod
    def of(tests: Sequence[MatchTest], *, streams: int, shards: int) -> MatchBits:
        """Find room for what is said of a match: of so many streams, and for so many shards."""
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
        """The columns."""
        last = max(word for word, _, _ in self.places.values())
        return tuple(f"{WORD}{number}" for number in range(last + 1))

    @property
    def used(self) -> int:
        """How many bits there are to all of them."""
        return max(word * BITS + shift + width for word, shift, width in self.places.values())

    def masks(self, wanted: Iterable[bool]) -> dict[str, int]:
        """Give the bits of the tests that are wanted, for each column that has some.

        >>> MatchBits({REPORTS_TIME: (0, 3, 1), STREAM: (1, 0, 2)}).masks([True, False, True])
        {'passed0': 5}
        """
        found: dict[str, int] = {}
        for test, is_wanted in enumerate(wanted):
            if is_wanted:
                name, bit = word_of(test)
                found[name] = found.get(name, 0) | 1 << bit
        return found

    def read(self, field: Field, words: pa.RecordBatch | pa.Table) -> Ints:
        """Read a field of all rows."""
        word, shift, width = self.places[field]
        column: Ints = words.column(f"{WORD}{word}").to_numpy()
        return (column >> shift) & ((1 << width) - 1)

    def is_(self, field: Field, value: int, words: pa.RecordBatch | pa.Table) -> np.ndarray:
        """Tell of all rows whether a field has a value."""
        word, shift, width = self.places[field]
        column: Ints = words.column(f"{WORD}{word}").to_numpy()
        found: np.ndarray = (column & (((1 << width) - 1) << shift)) == value << shift
        return found

    def written(self, passed: Sequence[Column], fields: Mapping[Field, Column]) -> list[Column]:
        """Write the tests that each row passed, a number for each word, and its fields."""
        from pyspark.sql import functions as F

        words: dict[int, Column] = dict(enumerate(passed))
        for field, (word, shift, _) in self.places.items():
            moved = F.shiftleft(fields[field].cast("bigint"), shift)
            words[word] = words[word].bitwiseOR(moved) if word in words else moved
        return [words[number].alias(name) for number, name in enumerate(self.names)]
