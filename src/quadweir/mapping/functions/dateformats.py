"""Recognises date formats without Spark.

Formats are those of Java and Spark: letters stand for fields, quoted text and all other characters
for themselves. Spark stops a whole run at an unknown format, so only known formats reach it.

Facts: https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html
"""

from __future__ import annotations

import re
from typing import Final

_FIELDS: Final = (
    *("y{1,6}", "u{1,6}", "G{1,4}", "D{1,3}", "M{1,4}", "L{1,4}", "d{1,2}", "a"),
    *("h{1,2}", "K{1,2}", "k{1,2}", "H{1,2}", "m{1,2}", "s{1,2}", "S{1,9}"),
    *("VV", "z{1,4}", "O", "OOOO", "X{1,5}", "x{1,5}", "Z{1,5}"),
)
# A field ends where its letter ends: HHH is not two hours.
_FIELD: Final = "|".join(f"{field}(?!{field[0]})" for field in _FIELDS)
_PIECE: Final = rf"(?:{_FIELD}|'[^']*'|[^A-Za-z'\[\]{{}}#])"
DATE_FORMAT: Final = rf"^(?:{_PIECE}|\[{_PIECE}*\])+$"
"""The pattern of date formats, for Java and Python. Optional parts in brackets do not nest."""
UNQUOTED_YEAR: Final = r"u(?=(?:[^']*'[^']*')*[^']*$)"
"""The letter u outside of quotes: java.time's year of no era, which Spark calls y."""


def is_date_format(text: str) -> bool:
    """Whether a text is a date format.

    >>> is_date_format("dd MMM yyyy 'um' HH:mm"), is_date_format("HHH"), is_date_format("'open")
    (True, False, False)
    """
    return re.match(DATE_FORMAT, text) is not None
