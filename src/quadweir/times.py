"""Event times and durations as text: milliseconds since 1970 or ISO 8601; `10s`, `500ms`.

One spelling rule serves the pure reader, the Spark readers and the declarations, so that a line
means the same wherever it is read (semantics S2).
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from quadweir.errors import DataError, UsageError

# Fifteen digits reach beyond the year 30000 and leave room for adding window lengths in 64 bits.
MOST_DIGITS: Final = 15
MILLISECONDS: Final = f"-?[0-9]{{1,{MOST_DIGITS}}}"
# Extended format only: the basic one (20240101T000000) looks like a number.
# A zone that is left out is UTC; offsets go as far as XML Schema's, fourteen hours.
INSTANT: Final = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,12})?"
    r"(?:Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
)
ZONE: Final = r"(?:Z|[+-][0-9]{2}:[0-9]{2})$"

_MILLISECONDS: Final = re.compile(MILLISECONDS)
_INSTANT: Final = re.compile(INSTANT)
_FRACTION: Final = re.compile(r"\.([0-9]+)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_SECONDS: Final = range(10**9, 10**10)

DURATION: Final = r"^(0|[1-9][0-9]{0,8})(ms|s|m|h|d)$"
_DURATION: Final = re.compile(DURATION)
_SPARK: Final = re.compile(
    r"(0|[1-9][0-9]{0,8}) ?(milli|millisecond|sec|second|min|minute|hour|day)s?"
)
_ISO: Final = re.compile(
    r"P(?=[0-9T])(?:([0-9]{1,9})D)?"
    r"(?:T(?=[0-9])(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})(?:\.([0-9]{1,3}))?S)?)?"
)
_UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_time(text: str) -> int:
    """Read an event time; parts of a millisecond are dropped.

    >>> parse_time("1700000000000")
    1700000000000
    >>> parse_time("1970-01-01T01:00:00.25+01:00")
    250

    Raises:
        DataError: the text is neither a whole number nor an ISO 8601 instant.
    """
    if _MILLISECONDS.fullmatch(text):
        return int(text)
    if not _INSTANT.fullmatch(text):
        raise DataError(f"not an event time: {text[:40]}")
    try:
        # Older than 1970 included, a fraction only ever moves forward from its whole second; so
        # cutting digits after the microsecond and flooring the rest agree with Spark's casts.
        moment = datetime.fromisoformat(_FRACTION.sub(lambda m: f".{m[1][:6]:0<6}", text))
    except ValueError:
        raise DataError(f"no such date or time: {text[:40]}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MILLISECOND


def format_time(event_time: int) -> str:
    """Spell an event time as ISO 8601 in UTC.

    >>> format_time(1500)
    '1970-01-01T00:00:01.500Z'

    Raises:
        DataError: the time lies outside the years 1 to 9999, which is all that ISO 8601 can say.
    """
    try:
        moment = _EPOCH + event_time * _MILLISECOND
    except OverflowError:
        raise DataError(f"the time {event_time} has no ISO 8601 spelling") from None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def doubt_of_time(event_time: int | None) -> str | None:
    """Say so if the first event time of a stream is probably meant in seconds; else give None.

    Seconds since 1970 of the years 2001 to 2286, taken as milliseconds, all lie between 12 January
    and 26 April 1970.

    >>> doubt_of_time(1_700_000_000)
    'event times begin at 1970-01-20T16:13:20.000Z: they look like seconds, and are read as milliseconds since 1970'
    >>> doubt_of_time(1_700_000_000_000), doubt_of_time(5_000), doubt_of_time(None)
    (None, None, None)
    """
    if event_time is None or event_time not in _SECONDS:
        return None
    return (
        f"event times begin at {format_time(event_time)}: they look like seconds, and are read as "
        "milliseconds since 1970"
    )


def parse_duration(text: str) -> timedelta:
    """Read a whole number with a unit: ms, s, m, h or d.

    >>> parse_duration("10s")
    datetime.timedelta(seconds=10)

    Raises:
        DataError: the text is not such a duration.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise DataError(f"not a duration: {text[:40]}", hint='Write "10s", "500ms" or "2h".')
    return timedelta(milliseconds=int(match[1]) * _UNIT_MS[match[2]])


DurationLike: TypeAlias = timedelta | str
"""A duration as callers of the Python API may give it."""


def as_duration(given: DurationLike) -> timedelta:
    """Return the duration that a caller gives: a timedelta, `"10s"`, `"10 seconds"` or `"PT10S"`.

    >>> as_duration("10s") == as_duration("10 seconds") == as_duration("PT10S")
    True

    Raises:
        UsageError: it is none of them, or negative.
    """
    found: timedelta | None = None
    if isinstance(given, timedelta):
        found = given
    elif isinstance(given, str):
        text = given.strip()
        if (named := _SPARK.fullmatch(text)) is not None:
            unit = "ms" if named[2].startswith("milli") else named[2][0]
            text = f"{named[1]}{unit}"
        if (iso := _ISO.fullmatch(text)) is not None:
            days, hours, minutes, seconds = (int(each or 0) for each in iso.groups()[:4])
            found = timedelta(
                days=days,
                hours=hours,
                minutes=minutes,
                seconds=seconds,
                milliseconds=int((iso[5] or "").ljust(3, "0")),
            )
        else:
            with suppress(DataError):
                found = parse_duration(text)
    if found is None or found < timedelta(0):
        raise UsageError(
            f"not a duration: {str(given)[:40]}",
            hint='Write "10s", "500ms", "10 seconds" or "PT10S", or give a timedelta.',
        )
    return found


def as_instant(given: datetime | int | str) -> int:
    """Return the instant that a caller gives, in milliseconds; without a time zone, it is in UTC.

    >>> as_instant("1970-01-01T00:00:01Z"), as_instant(datetime(1970, 1, 1, 0, 0, 1))
    (1000, 1000)

    Raises:
        UsageError: it is not an instant.
    """
    if isinstance(given, datetime):
        moment = given if given.tzinfo is not None else given.replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MILLISECOND
    try:
        return parse_time(given) if isinstance(given, str) else int(given)
    except DataError as error:
        raise UsageError(error.message, hint="Write it as 2026-03-03T08:00:00Z.") from None


def format_duration(duration: timedelta) -> str:
    """Spell a duration in the largest unit that divides it.

    >>> format_duration(timedelta(seconds=90)), format_duration(timedelta(0))
    ('90s', '0s')
    """
    milliseconds = duration // _MILLISECOND
    if milliseconds == 0:
        return "0s"
    for unit in ("d", "h", "m", "s"):
        if milliseconds % _UNIT_MS[unit] == 0:
            return f"{milliseconds // _UNIT_MS[unit]}{unit}"
    return f"{milliseconds}ms"
