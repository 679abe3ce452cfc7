"""Event times that elements state themselves, as the value of a predicate (S2)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from quadweir.errors import DataError
from quadweir.terms import Literal, Term
from quadweir.vocab import XSD

_INTEGERS: Final = frozenset({XSD.integer, XSD.long, XSD.int, XSD.unsignedLong, XSD.unsignedInt})
_DATE_TIME: Final = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?P<fraction>\.\d+)?"
    r"(?P<zone>Z|[+-]\d\d:\d\d)?"
)


def read_time(term: Term) -> int:
    """Read a literal as milliseconds since 1970.

    >>> read_time(Literal("2013-01-01 15:11:48")), read_time(Literal("1970-01-01T01:00:00+01:00"))
    (1357053108000, 0)

    Raises:
        DataError: it is no time.
    """
    if isinstance(term, Literal):
        lexical = term.lexical.strip()
        if re.fullmatch(r"[+-]?\d{1,18}", lexical) and term.datatype.value in _INTEGERS:
            return int(lexical)
        match = _DATE_TIME.fullmatch(lexical)
        if match is not None and term.datatype.value in (XSD.dateTime, XSD.string):
            zone = (match["zone"] or "Z").replace("Z", "+00:00")
            try:
                moment = datetime.fromisoformat(f"{match['date']}T{match['time']}{zone}")
            except ValueError:
                raise DataError(f"not a time: {term}") from None
            seconds = moment - datetime(1970, 1, 1, tzinfo=UTC)
            whole = (seconds.days * 86_400 + seconds.seconds) * 1000
            return whole + int(f"{match['fraction'] or '.'}000"[1:4])
    raise DataError(f"not a time: {term}")
