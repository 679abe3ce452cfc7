"""Durations as people write them, in milliseconds."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from quadweir.errors import QuerySyntaxError

_UNITS: Final = {
    "n": Fraction(1, 1_000_000),
    "u": Fraction(1, 1_000),
    "ms": Fraction(1),
    "s": Fraction(1_000),
    "m": Fraction(60_000),
    "h": Fraction(3_600_000),
    "d": Fraction(86_400_000),
    "w": Fraction(604_800_000),
}
_ISO: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([YMWDHS])")
# A window that outlives the calendar is a slip; ten thousand years also keep every later sum
# far inside 64 bits.
LONGEST_MS: Final = 10_000 * 366 * 86_400_000


def unit_ms(word: str) -> Fraction:
    """A unit's milliseconds.

    >>> unit_ms("Minutes"), unit_ms("ms")
    (Fraction(60000, 1), Fraction(1, 1))
    """
    word = word.lower()
    if word.startswith(("ms", "milli")):
        return _UNITS["ms"]
    if word.startswith("micro"):
        return _UNITS["u"]
    return _UNITS[word[0]]


@lru_cache(maxsize=1024)
def compound_ms(parts: tuple[tuple[str, str], ...]) -> int:
    """Add up amounts and units.

    >>> compound_ms((("1", "h"), ("30", "m")))
    5400000
    """
    return _whole(sum((Fraction(amount) * unit_ms(unit) for amount, unit in parts), Fraction()))


@lru_cache(maxsize=1024)
def iso_ms(text: str) -> int:
    """Read an ISO 8601 duration of fixed length.

    >>> iso_ms("PT1M0.5S"), iso_ms("P1D")
    (60500, 86400000)
    """
    date, _, time = text.upper()[1:].partition("T")
    total = Fraction()
    for amount, unit in _ISO.findall(date):
        if unit in "YM":
            raise QuerySyntaxError(
                f"{text} has no fixed length", hint="Write months and years as days: P30D."
            )
        total += Fraction(amount) * unit_ms(unit)
    for amount, unit in _ISO.findall(time):
        total += Fraction(amount) * unit_ms(unit)
    return _whole(total)


def _whole(total: Fraction) -> int:
    if total.denominator != 1:
        raise QuerySyntaxError(
            "a duration is not a whole number of milliseconds",
            hint="Event times have millisecond precision; write 1ms or more.",
        )
    if total > LONGEST_MS:
        raise QuerySyntaxError("a duration is longer than ten thousand years")
    return int(total)
