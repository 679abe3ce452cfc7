"""The syntax of SPARQL 1.2 that Quadweir does not read, so that an error can name it."""

from __future__ import annotations

import re
from typing import Final

_FUNCTIONS: Final = re.compile(
    r"(LANGDIR|HASLANG|HASLANGDIR|STRLANGDIR)\s*\(",
    re.IGNORECASE,
)
_TAG_BEFORE: Final = re.compile(r"@[A-Za-z][A-Za-z0-9-]*\Z")


def newer_syntax(text: str, start: int) -> tuple[str, str] | None:
    """Name what begins at a place that cannot be read, and what to write instead.

    >>> newer_syntax('SELECT * { ?s ?p "salam"@ar--rtl }', 27)[0]
    'the base direction of a language string'
    """
    if text.startswith("--", start) and _TAG_BEFORE.search(text[max(0, start - 60) : start]):
        return "the base direction of a language string", 'Leave it out: "salam"@ar.'
    function = _FUNCTIONS.match(text, start)
    if function is not None:
        return f"the function {function[1].upper()}", "Use LANG(?x)."
    return None
