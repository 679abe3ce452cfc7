"""Dates, times and durations of XML Schema: reading, spelling, comparing, adding.

Python's `datetime` stops at the year 9999, knows no date with a time zone and no time-zone-less
comparison, so the values are kept as their parts, and all arithmetic is on whole attoseconds
(10^-18 s, the same 18 digits after the point that `xsd:decimal` has here): exact, with no rounding.

Spec: https://www.w3.org/TR/xmlschema11-2/#theSevenPropertyModel
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from typing import Final, final

from quadweir.vocab import XSD

ATTOSECONDS: Final = 10**18
_MINUTE: Final = 60 * ATTOSECONDS
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
# A value without a time zone may lie this far to either side of where UTC would put it.
_ZONE_SLACK: Final = 14 * _HOUR
_YEAR_LIMIT: Final = 10**9
_DAY_LIMIT: Final = 10**12


class ExpressionError(Exception):
    """A SPARQL expression has no value: a type error, an unbound variable, a division by zero.

    It never reaches the user; FILTER takes it for false and BIND leaves its variable unbound.
    """


class MomentKind(Enum):
    """The eight XML Schema types that name a place on the calendar; the value is the IRI."""

    DATE_TIME = XSD.dateTime
    DATE = XSD.date
    TIME = XSD.time
    YEAR = XSD.gYear
    YEAR_MONTH = XSD.gYearMonth
    MONTH = XSD.gMonth
    MONTH_DAY = XSD.gMonthDay
    DAY = XSD.gDay


class DurationKind(Enum):
    """The three duration types; the value is the IRI."""

    DURATION = XSD.duration
    DAY_TIME = XSD.dayTimeDuration
    YEAR_MONTH = XSD.yearMonthDuration


_YEAR = r"(?P<year>-?(?:[1-9][0-9]{3,8}|0[0-9]{3}))"
_MONTH = r"(?P<month>0[1-9]|1[0-2])"
_DAY_OF_MONTH = r"(?P<day>0[1-9]|[12][0-9]|3[01])"
_CLOCK = (
    r"(?P<hour>[01][0-9]|2[0-4]):(?P<minute>[0-5][0-9])"
    r":(?P<second>[0-5][0-9])(?:\.(?P<fraction>[0-9]{1,18})0*)?"
)
_ZONE = r"(?P<zone>Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
_SHAPES: Final = {
    MomentKind.DATE_TIME: re.compile(f"{_YEAR}-{_MONTH}-{_DAY_OF_MONTH}T{_CLOCK}{_ZONE}", re.A),
    MomentKind.DATE: re.compile(f"{_YEAR}-{_MONTH}-{_DAY_OF_MONTH}{_ZONE}", re.A),
    MomentKind.TIME: re.compile(f"{_CLOCK}{_ZONE}", re.A),
    MomentKind.YEAR: re.compile(f"{_YEAR}{_ZONE}", re.A),
    MomentKind.YEAR_MONTH: re.compile(f"{_YEAR}-{_MONTH}{_ZONE}", re.A),
    MomentKind.MONTH: re.compile(f"--{_MONTH}{_ZONE}", re.A),
    MomentKind.MONTH_DAY: re.compile(f"--{_MONTH}-{_DAY_OF_MONTH}{_ZONE}", re.A),
    MomentKind.DAY: re.compile(f"---{_DAY_OF_MONTH}{_ZONE}", re.A),
}
_DURATION: Final = re.compile(
    r"(?P<sign>-)?P(?=[0-9T])(?:(?P<years>[0-9]{1,18})Y)?(?:(?P<months>[0-9]{1,18})M)?"
    r"(?:(?P<days>[0-9]{1,18})D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]{1,18})H)?(?:(?P<minutes>[0-9]{1,18})M)?"
    r"(?:(?P<seconds>[0-9]{1,18})(?:\.(?P<fraction>[0-9]{1,18})0*)?S)?)?",
    re.A,
)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Count the days from 1970-01-01 in the proleptic Gregorian calendar.

    >>> days_from_civil(1970, 1, 1), days_from_civil(2000, 3, 1)
    (0, 11017)
    """
    # Years start in March, so that the leap day comes last; eras of 400 years have equal length.
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Undo `days_from_civil`.

    >>> civil_from_days(11017)
    (2000, 3, 1)
    """
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def days_in_month(year: int, month: int) -> int:
    """Count the days of a month.

    >>> days_in_month(2024, 2), days_in_month(1900, 2)
    (29, 28)
    """
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@final
@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time: whole months and attoseconds, of the same sign.

    One of 10^9 years or 10^12 days is an error.

    >>> read_duration("PT90M", DurationKind.DAY_TIME).lexical()
    'PT1H30M'
    """

    kind: DurationKind
    months: int = 0
    attoseconds: int = 0

    def __post_init__(self) -> None:
        if abs(self.months) >= 12 * _YEAR_LIMIT or abs(self.attoseconds) >= _DAY_LIMIT * _DAY:
            raise ExpressionError("the duration is out of range")

    def lexical(self) -> str:
        """Spell it canonically."""
        negative = self.months < 0 or self.attoseconds < 0
        years, months = divmod(abs(self.months), 12)
        days, rest = divmod(abs(self.attoseconds), _DAY)
        hours, rest = divmod(rest, _HOUR)
        minutes, rest = divmod(rest, _MINUTE)
        date = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (days, "D")) if n)
        clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
        if rest:
            clock += f"{_seconds_text(rest)}S"
        if not date and not clock:
            return "P0M" if self.kind is DurationKind.YEAR_MONTH else "PT0S"
        return f"{'-' if negative else ''}P{date}{'T' + clock if clock else ''}"

    def negated(self) -> Duration:
        """The same length, backwards."""
        return replace(self, months=-self.months, attoseconds=-self.attoseconds)


@final
@dataclass(frozen=True, slots=True)
class Moment:
    """A place on the calendar; parts that the kind does not have hold the defaults XSD gives them.

    `offset` is the time zone in minutes, None for a value without one.

    >>> read_moment("2020-02-30", MomentKind.DATE) is None
    True
    """

    kind: MomentKind
    year: int = 1972
    month: int = 12
    day: int = 31
    day_time: int = 0
    offset: int | None = None

    @property
    def hour(self) -> int:
        return self.day_time // _HOUR

    @property
    def minute(self) -> int:
        return self.day_time % _HOUR // _MINUTE

    @property
    def second(self) -> Decimal:
        return Decimal(_seconds_text(self.day_time % _MINUTE))

    def local(self) -> int:
        """Attoseconds from the epoch, had the value no time zone."""
        return days_from_civil(self.year, self.month, self.day) * _DAY + self.day_time

    def timeline(self) -> int:
        """Attoseconds from the epoch; a value without a time zone counts as UTC."""
        return self.local() - (self.offset or 0) * _MINUTE

    def lexical(self) -> str:
        """Spell it canonically, keeping the time zone as it was given."""
        year = f"{'-' if self.year < 0 else ''}{abs(self.year):04d}"
        date = f"{self.month:02d}-{self.day:02d}"
        clock = f"{self.hour:02d}:{self.minute:02d}:{_seconds_text(self.day_time % _MINUTE, 2)}"
        spelled = {
            MomentKind.DATE_TIME: f"{year}-{date}T{clock}",
            MomentKind.DATE: f"{year}-{date}",
            MomentKind.TIME: clock,
            MomentKind.YEAR: year,
            MomentKind.YEAR_MONTH: f"{year}-{self.month:02d}",
            MomentKind.MONTH: f"--{self.month:02d}",
            MomentKind.MONTH_DAY: f"--{date}",
            MomentKind.DAY: f"---{self.day:02d}",
        }[self.kind]
        return spelled + self.zone()

    def zone(self) -> str:
        """Spell the time zone: `Z`, an offset, or nothing."""
        if self.offset is None:
            return ""
        if self.offset == 0:
            return "Z"
        hours, minutes = divmod(abs(self.offset), 60)
        return f"{'-' if self.offset < 0 else '+'}{hours:02d}:{minutes:02d}"

    def as_kind(self, kind: MomentKind) -> Moment:
        """Keep only the parts that `kind` has, as a cast does."""
        blank = Moment(kind)
        has = _PARTS[kind]
        return Moment(
            kind,
            year=self.year if "year" in has else blank.year,
            month=self.month if "month" in has else blank.month,
            day=self.day if "day" in has else (1 if kind is MomentKind.YEAR_MONTH else blank.day),
            day_time=self.day_time if "clock" in has else 0,
            offset=self.offset,
        )


_PARTS: Final = {
    MomentKind.DATE_TIME: {"year", "month", "day", "clock"},
    MomentKind.DATE: {"year", "month", "day"},
    MomentKind.TIME: {"clock"},
    MomentKind.YEAR: {"year"},
    MomentKind.YEAR_MONTH: {"year", "month"},
    MomentKind.MONTH: {"month"},
    MomentKind.MONTH_DAY: {"month", "day"},
    MomentKind.DAY: {"day"},
}


def _seconds_text(attoseconds: int, width: int = 1) -> str:
    whole, fraction = divmod(attoseconds, ATTOSECONDS)
    tail = f"{fraction:018d}".rstrip("0")
    return f"{whole:0{width}d}" + (f".{tail}" if tail else "")


def read_moment(lexical: str, kind: MomentKind) -> Moment | None:
    """Read a lexical form; None if it is not one of this kind.

    >>> read_moment("2020-01-01T24:00:00Z", MomentKind.DATE_TIME).lexical()
    '2020-01-02T00:00:00Z'
    """
    match = _SHAPES[kind].fullmatch(lexical)
    if match is None:
        return None
    found = match.groupdict()
    blank = Moment(kind)
    year = int(found["year"]) if found.get("year") else blank.year
    month = int(found["month"]) if found.get("month") else blank.month
    if found.get("day"):
        day = int(found["day"])
    else:
        day = 1 if kind is MomentKind.YEAR_MONTH else blank.day
    if day > days_in_month(year, month):
        return None
    day_time = 0
    if found.get("hour"):
        fraction = int((found["fraction"] or "0").ljust(18, "0"))
        hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"])
        if hour == 24 and (minute or second or fraction):
            return None
        day_time = hour * _HOUR + minute * _MINUTE + second * ATTOSECONDS + fraction
    if day_time == _DAY:
        day_time = 0
        if kind is MomentKind.DATE_TIME:
            year, month, day = civil_from_days(days_from_civil(year, month, day) + 1)
    zone = found["zone"]
    offset: int | None = None
    if zone == "Z":
        offset = 0
    elif zone:
        offset = int(zone[1:3]) * 60 + int(zone[4:6])
        offset = -offset if zone[0] == "-" else offset
    return Moment(kind, year, month, day, day_time, offset)


def read_duration(lexical: str, kind: DurationKind) -> Duration | None:
    """Read a lexical form; None if it is not one of this kind."""
    match = _DURATION.fullmatch(lexical)
    if match is None:
        return None
    found = match.groupdict()
    has_months = found["years"] is not None or found["months"] is not None
    has_time = any(found[part] is not None for part in ("days", "hours", "minutes", "seconds"))
    if (kind is DurationKind.DAY_TIME and has_months) or (
        kind is DurationKind.YEAR_MONTH and (has_time or not has_months)
    ):
        return None
    part = {name: int(found[name] or 0) for name in ("years", "months", "days", "hours", "minutes")}
    attoseconds = (
        part["days"] * _DAY
        + part["hours"] * _HOUR
        + part["minutes"] * _MINUTE
        + int(found["seconds"] or 0) * ATTOSECONDS
        + int((found["fraction"] or "0").ljust(18, "0"))
    )
    sign = -1 if found["sign"] else 1
    try:
        return Duration(kind, sign * (part["years"] * 12 + part["months"]), sign * attoseconds)
    except ExpressionError:
        return None


def from_epoch_ms(milliseconds: int) -> Moment:
    """Make the `xsd:dateTime`, in UTC, of an event time.

    >>> from_epoch_ms(1_500).lexical()
    '1970-01-01T00:00:01.5Z'
    """
    return _from_local(milliseconds * (ATTOSECONDS // 1000), MomentKind.DATE_TIME, 0)


def _from_local(attoseconds: int, kind: MomentKind, offset: int | None) -> Moment:
    days, day_time = divmod(attoseconds, _DAY)
    year, month, day = civil_from_days(days)
    if abs(year) >= _YEAR_LIMIT:
        raise ExpressionError("the date is out of range")
    return Moment(kind, year, month, day, day_time, offset)


def add_duration(moment: Moment, duration: Duration) -> Moment:
    """Add months first, staying inside the month, then the rest.

    Spec: https://www.w3.org/TR/xpath-functions/#func-add-dayTimeDuration-to-dateTime

    >>> month_end = read_moment("2020-01-31", MomentKind.DATE)
    >>> add_duration(month_end, read_duration("P1M", DurationKind.YEAR_MONTH)).lexical()
    '2020-02-29'
    """
    if moment.kind is MomentKind.TIME:
        if duration.months:
            raise ExpressionError("a time of day has no months")
        return replace(moment, day_time=(moment.day_time + duration.attoseconds) % _DAY)
    if moment.kind not in (MomentKind.DATE_TIME, MomentKind.DATE):
        raise ExpressionError("a duration can be added to a date or time only")
    months = moment.year * 12 + moment.month - 1 + duration.months
    year, month = months // 12, months % 12 + 1
    day = min(moment.day, days_in_month(year, month))
    shifted = replace(moment, year=year, month=month, day=day)
    result = _from_local(shifted.local() + duration.attoseconds, moment.kind, moment.offset)
    return result.as_kind(moment.kind)


def subtract_moments(left: Moment, right: Moment) -> Duration:
    """The time from `right` to `left`, as a dayTimeDuration."""
    if left.kind is not right.kind:
        raise ExpressionError("dates and times of different kinds have no difference")
    if (left.offset is None) != (right.offset is None):
        raise ExpressionError("only one of the two has a time zone")
    return Duration(DurationKind.DAY_TIME, attoseconds=left.timeline() - right.timeline())


def compare_moments(left: Moment, right: Moment) -> int | None:
    """Order two moments of a kind: -1, 0, 1, or None where only one has a time zone and it matters.

    The implicit time zone that XPath would use belongs to the machine; answers must not depend on
    it, so XML Schema's partial order is used instead.
    """
    if left.kind is not right.kind:
        return None
    difference = left.timeline() - right.timeline()
    if (left.offset is None) != (right.offset is None) and abs(difference) <= _ZONE_SLACK:
        return None
    return (difference > 0) - (difference < 0)


# https://www.w3.org/TR/xmlschema11-2/#facet-duration: four starts that tell any two durations apart
_REFERENCES: Final = ((1696, 9), (1697, 2), (1903, 3), (1903, 7))


def duration_lengths(duration: Duration) -> tuple[int, ...]:
    """The attoseconds that a duration takes from each of XML Schema's four reference months.

    >>> [length // _DAY for length in duration_lengths(Duration(DurationKind.DURATION, months=1))]
    [30, 28, 31, 31]
    """
    lengths = []
    for year, month in _REFERENCES:
        years, months = divmod(month - 1 + duration.months, 12)
        end = days_from_civil(year + years, months + 1, 1)
        lengths.append((end - days_from_civil(year, month, 1)) * _DAY + duration.attoseconds)
    return tuple(lengths)


def compare_durations(left: Duration, right: Duration) -> int | None:
    """Order two durations: -1, 0, 1, or None where it depends on the month they start in."""
    if (left.months, left.attoseconds) == (right.months, right.attoseconds):
        return 0
    pairs = zip(duration_lengths(left), duration_lengths(right), strict=True)
    signs = {(a > b) - (a < b) for a, b in pairs}
    return signs.pop() if len(signs) == 1 else None
