"""Functions that take a pattern, in Python.

Patterns come from mappings and from records, neither of which is trusted. Spark would stop the
whole run at an invalid pattern, and Java's matcher can take hours for a valid one. RE2 reports
invalid patterns, and matches in time linear in the text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import re2

from quadweir.mapping.vocabulary import GREL

_MEMORY: Final = 8 * 2**20


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """Prepare a pattern of RE2.

    Raises:
        ValueError: the pattern is not valid.
    """
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0] if error.args else ""
        why = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        raise ValueError(f"'{pattern[:200]}' is not a regular expression: {why}") from None


def find(text: str | None, pattern: str | None) -> list[str] | None:
    """Every match of the pattern.

    >>> find("a1b22", "[0-9]+")
    ['1', '22']
    """
    if text is None or pattern is None:
        return None
    return [found.group(0) for found in compiled(pattern).finditer(text)]


def match(text: str | None, pattern: str | None) -> list[str] | None:
    """The groups of the pattern (the text, if it has none) if it covers the whole text.

    >>> match("2024-05", "([0-9]+)-([0-9]+)"), match("x", "y")
    (['2024', '05'], None)
    """
    if text is None or pattern is None:
        return None
    found = compiled(pattern).fullmatch(text)
    if found is None:
        return None
    return [group or "" for group in found.groups()] or [text]


BY_PATTERN: Final[dict[str, Callable[..., Any]]] = {
    GREL.string_find: find,
    GREL.string_match: match,
}
"""The code of each function that takes a pattern, by its IRI."""
