"""Event times in bytes, compiled: what `times.parse_time` reads, without making a text of them.

What is no time here is looked at again by `times.parse_time`, which says why.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quadweir.times import MOST_DIGITS

Bytes: TypeAlias = NDArray[np.uint8]

NO_TIME: Final = -(2**62)
_MOST_FRACTION: Final = 12
_WHOLE_SECONDS: Final = 19
_ZONE: Final = 6
_DAYS: Final = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int64)
_PLUS, _MINUS, _DOT, _ZERO, _NINE, _COLON, _T, _Z = 43, 45, 46, 48, 57, 58, 84, 90


@njit(cache=True)  # type: ignore[untyped-decorator]
def has_extra_zero(data: Bytes, at: int, end: int) -> bool:
    """Tell whether a whole number would be spelled without its first zero, or its minus."""
    minus = data[at] == _MINUS
    return bool(data[at + minus] == _ZERO and end - at > 1)


@njit(cache=True)  # type: ignore[untyped-decorator]
def milliseconds(data: Bytes, at: int, end: int) -> int:
    """The time of a whole number of milliseconds; `NO_TIME` if it is none."""
    minus = data[at] == _MINUS
    at += minus
    if end == at or end - at > MOST_DIGITS:
        return NO_TIME
    value: int = _number(data, at, end)
    if value < 0:
        return NO_TIME
    return -value if minus else value


@njit(cache=True)  # type: ignore[untyped-decorator]
def _number(data: Bytes, at: int, end: int) -> int:
    """The value of digits; -1 if something else is among them."""
    value = 0
    for place in range(at, end):
        digit: int = np.int64(data[place]) - _ZERO  # type: ignore[assignment]
        if digit < 0 or digit > 9:
            return -1
        value = 10 * value + digit
    return value


@njit(cache=True)  # type: ignore[untyped-decorator]
def instant(data: Bytes, at: int, end: int) -> int:
    """The time of an ISO 8601 instant as `times.parse_time` reads it; `NO_TIME` if it is none."""
    if end - at < _WHOLE_SECONDS or end - at > _WHOLE_SECONDS + 1 + _MOST_FRACTION + _ZONE:
        return NO_TIME
    if data[at + 4] != _MINUS or data[at + 7] != _MINUS or data[at + 10] != _T:
        return NO_TIME
    if data[at + 13] != _COLON or data[at + 16] != _COLON:
        return NO_TIME
    year, month = _number(data, at, at + 4), _number(data, at + 5, at + 7)
    day, hour = _number(data, at + 8, at + 10), _number(data, at + 11, at + 13)
    minute, second = _number(data, at + 14, at + 16), _number(data, at + 17, at + 19)
    if year < 1 or month < 1 or month > 12 or day < 1:
        return NO_TIME
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS[month - 1] + (leap and month == 2):
        return NO_TIME
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return NO_TIME
    place = at + _WHOLE_SECONDS
    fraction = 0
    if place < end and data[place] == _DOT:
        first = place + 1
        place = first
        while place < end and data[place] >= _ZERO and data[place] <= _NINE:
            place += 1
        if place == first or place - first > _MOST_FRACTION:
            return NO_TIME
        for digit in range(3):
            held = _number(data, first + digit, min(first + digit + 1, place))
            fraction = 10 * fraction + held
    offset = 0
    if place < end:
        if data[place] == _Z:
            place += 1
        elif end - place == _ZONE and data[place + 3] == _COLON:
            hours, minutes = _number(data, place + 1, place + 3), _number(data, place + 4, end)
            if hours < 0 or minutes < 0 or minutes > 59 or 60 * hours + minutes > 14 * 60:
                return NO_TIME
            if data[place] == _PLUS:
                offset = 60 * hours + minutes
            elif data[place] == _MINUS:
                offset = -(60 * hours + minutes)
            else:
                return NO_TIME
            place = end
    if place != end:
        return NO_TIME
    days: int = _days_since_1970(year, month, day)
    seconds: int = 60 * (60 * (24 * days + hour) + minute - offset) + second
    return 1000 * seconds + fraction


@njit(cache=True)  # type: ignore[untyped-decorator]
def _days_since_1970(year: int, month: int, day: int) -> int:
    # A year that begins in March has its leap day at the end.
    if month <= 2:
        year -= 1
    era = year // 400
    in_era = year - 400 * era
    in_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return 146_097 * era + 365 * in_era + in_era // 4 - in_era // 100 + in_year - 719_468
