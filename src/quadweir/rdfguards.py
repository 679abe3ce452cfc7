"""What pyoxigraph does not survive: triple terms that nest too deeply, and terms that fill the memory.

A prefix of a megabyte that a thousand terms use would be gigabytes. Triple terms that nest deeply
enough overflow the stack of the parser, which ends the process. So texts of strangers are looked at
before and while they are parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyoxigraph as ox

from quadweir.errors import LimitError

MOST_CHARACTERS: Final = 128 * 2**20
"""How long all terms of a text may be together, written out."""
LINE_FORMATS: Final = (ox.RdfFormat.N_QUADS, ox.RdfFormat.N_TRIPLES)
"""The formats in which a statement is a line, with every term written out."""
_MOST_TRIPLE_TERMS: Final = 10_000
_TRIPLE_TERM: Final = b"<<"


def check_triple_terms(text: bytes, form: ox.RdfFormat) -> bool:
    """Refuse what could overflow the stack of the parser, by a rough count that is never too low.

    >>> check_triple_terms(b"<urn:s> <urn:p> <<( <urn:s> <urn:p> 1 )>> .", ox.RdfFormat.TURTLE)
    True

    Returns:
        Whether there may be triple terms.

    Raises:
        LimitError: there are too many; in a format of lines, in one line.
    """
    if _TRIPLE_TERM not in text:
        return False
    if form in LINE_FORMATS:
        most = max(line.count(_TRIPLE_TERM) for line in text.split(b"\n"))
    else:
        most = text.count(_TRIPLE_TERM)
    if most > _MOST_TRIPLE_TERMS:
        raise LimitError(
            f"there are more than {_MOST_TRIPLE_TERMS:,} triple terms", hint="Use less of them."
        )
    return True


def bounded(quads: Iterable[Any], most: int = MOST_CHARACTERS) -> Iterator[Any]:
    """Yield statements until their terms are too long together.

    Raises:
        LimitError: they are.
    """
    size = 0
    for quad in quads:
        size += _length(quad.subject) + _length(quad.predicate) + _length(quad.object)
        size += _length(quad.graph_name)
        if size > most:
            raise LimitError(
                f"the terms have more than {most:,} characters together, written out",
                hint="Shorten the prefixes, or divide the text.",
            )
        yield quad


def _length(term: Any) -> int:
    value = getattr(term, "value", None)
    if value is not None:
        return len(value) + len(getattr(getattr(term, "datatype", None), "value", ""))
    if isinstance(term, ox.Triple):
        return sum(map(_length, term))
    return 0
