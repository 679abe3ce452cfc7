"""Scales of charts: values to places, and the ticks between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, final

_UNITS: Final = ((1e9, " G"), (1e6, " M"), (1e4, " k"))
_TICKS: Final = 6


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` on the stretch from `start` to `end`, by themselves or by logarithm."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """Give the place of a value; one outside goes to the nearer end.

        >>> Scale(0, 10, 100, 200).at(5), Scale(1, 100, 0, 10, is_log=True).at(10)
        (150.0, 5.0)
        """
        inside = min(max(value, self.low), self.high)
        if self.is_log:
            share = math.log(inside / self.low) / math.log(self.high / self.low)
        else:
            share = (inside - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Give round values, both ends among them if they are round.

        >>> Scale(0, 10, 0, 1).ticks()
        [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        >>> Scale(1, 1000, 0, 1, is_log=True).ticks()
        [1.0, 10.0, 100.0, 1000.0]
        """
        if not self.is_log:
            step = round_step((self.high - self.low) / (_TICKS - 1))
            first = math.ceil(self.low / step - 1e-9)
            last = math.floor(self.high / step + 1e-9)
            return [float(f"{number * step:.12g}") for number in range(first, last + 1)]
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        every = max(1, len(decades) // _TICKS)
        factors = (1.0, 2.0, 5.0) if len(decades) <= 3 else (1.0,)
        values = [factor * 10.0**power for power in decades[::every] for factor in factors]
        slack = 1 + 1e-9
        return [each for each in values if self.low / slack <= each <= self.high * slack]


def fit(values: Iterable[float], start: float, end: float, *, is_log: bool, zero: bool) -> Scale:
    """Make the scale on which all values have a place: to round ends, from zero on if asked.

    >>> fit([3, 97], 0, 1, is_log=False, zero=True).high
    100.0
    >>> fit([], 0, 1, is_log=True, zero=False).high
    10.0
    """
    found = [each for each in values if math.isfinite(each) and (each > 0 or not is_log)]
    low, high = (min(found), max(found)) if found else (1.0, 10.0) if is_log else (0.0, 1.0)
    if is_log:
        low, high = _log_end(low, up=False), _log_end(high, up=True)
        return Scale(low, high if high > low else low * 10, start, end, is_log=True)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high == low:
        high = low + (abs(low) or 1.0)
    step = round_step((high - low) / (_TICKS - 1))
    ends = (math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step)
    return Scale(float(f"{ends[0]:.12g}"), float(f"{ends[1]:.12g}"), start, end)


def round_step(least: float) -> float:
    """Give the next step of 1, 2 or 5 times a power of ten.

    >>> round_step(3), round_step(0.07), round_step(100)
    (5.0, 0.1, 100.0)
    """
    power = 10.0 ** math.floor(math.log10(least))
    for factor in (1, 2, 5):
        if factor * power >= least * (1 - 1e-9):
            return float(factor * power)
    return 10 * power


def labels(ticks: Sequence[float]) -> list[str]:
    """Spell ticks shortly, all in one unit unless they span decades.

    >>> labels([0, 20_000, 40_000])
    ['0', '20 k', '40 k']
    >>> labels([0, 0.25, 0.5])
    ['0', '0.25', '0.5']
    """
    most = max((abs(each) for each in ticks), default=0.0)
    spread = most / min((abs(each) for each in ticks if each), default=1.0)
    if spread > 100:
        return [_short(each, abs(each)) for each in ticks]
    return [_short(each, most) for each in ticks]


def _short(value: float, size: float) -> str:
    for least, unit in _UNITS:
        if size >= least:
            by = 1e3 if unit == " k" else least
            return f"{value / by:.6g}{unit}" if value else "0"
    return f"{value:,.6g}"


def _log_end(value: float, *, up: bool) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    steps = (1.0, 2.0, 5.0, 10.0)
    if up:
        return next(each * power for each in steps if each * power >= value * (1 - 1e-9))
    return next(each * power for each in reversed(steps) if each * power <= value * (1 + 1e-9))
