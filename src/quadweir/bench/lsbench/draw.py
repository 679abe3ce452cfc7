"""Random numbers that depend only on the seed and on their purpose.

A number is a hash of the seed, a purpose and keys, for example a user and a week. No generator
state ties a draw to earlier draws, and whole arrays are drawn at once.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Words = npt.NDArray[np.uint64]
    Floats = npt.NDArray[np.float64]

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


def _mix(words: Words) -> Words:
    """The finaliser of SplitMix64: each bit of the input changes half of the output's."""
    with np.errstate(over="ignore"):
        words = words + _GOLDEN
        words = (words ^ (words >> np.uint64(30))) * _FIRST
        words = (words ^ (words >> np.uint64(27))) * _SECOND
        return words ^ (words >> np.uint64(31))


@final
class Dice:
    """The random numbers of one seed.

    >>> dice = Dice(1)
    >>> bool(dice.unit("a", np.arange(3))[1] == dice.unit("a", np.array([1]))[0])
    True
    """

    def __init__(self, seed: int) -> None:
        self._seed = _mix(np.array([seed % 2**64], dtype=np.uint64))

    def words(self, purpose: str, *keys: Ints | int) -> Words:
        """64 random bits for each of the keys, which are arrays of one length or single numbers."""
        found = _mix(self._seed ^ np.uint64(zlib.crc32(purpose.encode())))
        for key in keys:
            found = _mix(found ^ np.atleast_1d(np.asarray(key, dtype=np.int64)).astype(np.uint64))
        return found

    def unit(self, purpose: str, *keys: Ints | int) -> Floats:
        """Numbers that are uniform in [0, 1)."""
        return (self.words(purpose, *keys) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, limit: Ints | int, purpose: str, *keys: Ints | int) -> Ints:
        """Whole numbers that are uniform in [0, limit)."""
        return np.floor(self.unit(purpose, *keys) * limit).astype(np.int64)

    def exponential(self, mean: float, purpose: str, *keys: Ints | int) -> Floats:
        """Numbers that fall off exponentially."""
        return -mean * np.log1p(-self.unit(purpose, *keys))

    def normal(self, spread: float, purpose: str, *keys: Ints | int) -> Floats:
        """Numbers with the normal distribution around 0."""
        radius = np.sqrt(-2.0 * np.log1p(-self.unit(purpose, 0, *keys)))
        return np.asarray(spread * radius * np.cos(2 * np.pi * self.unit(purpose, 1, *keys)))

    def skewed(self, limit: int, purpose: str, *keys: Ints | int) -> Ints:
        """Ranks in [0, limit) of which the k-th is drawn with a weight of 1 / (k + 1)."""
        bounds = np.cumsum(1.0 / np.arange(1, limit + 1))
        return np.searchsorted(bounds / bounds[-1], self.unit(purpose, *keys), side="right")


def power_law(units: Floats, least: int, most: int, exponent: float) -> Ints:
    """Whole numbers between `least` and `most`, n with a weight of n to the minus `exponent`.

    >>> power_law(np.array([0.0, 0.999999]), 5, 40, 2.0).tolist()
    [5, 40]
    """
    numbers = np.arange(least, most + 1)
    bounds = np.cumsum(numbers ** -float(exponent))
    return numbers[np.searchsorted(bounds / bounds[-1], units, side="right")]


def repeat_each(counts: Ints) -> tuple[Ints, Ints]:
    """For each count n: its place, n times; and the numbers 0 to n - 1.

    >>> [part.tolist() for part in repeat_each(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    owners = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    return owners, np.arange(len(owners)) - starts[owners]
