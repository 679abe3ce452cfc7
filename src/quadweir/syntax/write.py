"""The way out: algebra to the text of a dialect, with warnings where meaning is lost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from quadweir.algebra.query import ContinuousQuery
from quadweir.errors import UsageError
from quadweir.syntax.reread import check_written
from quadweir.syntax.write_cqels import CqelsWriter
from quadweir.syntax.write_csparql import CsparqlWriter
from quadweir.syntax.write_rspql import RspqlWriter
from quadweir.syntax.write_sparql import TranslationWarning
from quadweir.syntax.write_sparqlstream import SparqlStreamWriter
from quadweir.syntax.write_windows import WindowWriter, WrittenQuery

__all__ = ["TARGETS", "TranslationWarning", "WrittenQuery", "declared_prefixes", "write"]

_WRITERS: Final[dict[str, type[WindowWriter]]] = {
    "rspql": RspqlWriter,
    "csparql": CsparqlWriter,
    "cqels": CqelsWriter,
    "sparqlstream": SparqlStreamWriter,
}
TARGETS: Final = tuple(_WRITERS)
_PREFIX: Final = re.compile(r"\bPREFIX\s+([^\s:<>#]*):\s*<([^<>\s]*)>", re.IGNORECASE)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def write(
    query: ContinuousQuery, dialect: str, *, prefixes: Mapping[str, str] | None = None
) -> WrittenQuery:
    """Write a query in a dialect.

    Args:
        query: The query, as it was parsed.
        dialect: One of `TARGETS`.
        prefixes: Prefixes to write names with; only those that are used are declared.

    Raises:
        UnsupportedError: the dialect has no words for something that cannot be left out, or the
            text, read again, would mean something else.

    >>> from quadweir.syntax.read import parse
    >>> query = parse("SELECT ?s { STREAM <urn:s> [RANGE 5s SLIDE 1s] { ?s <urn:p> 1 } }")
    >>> written = write(query, "rspql")
    >>> print(written.text, end="")
    PREFIX w: <urn:quadweir:window:>
    SELECT ISTREAM ?s
    FROM NAMED WINDOW w:1 ON <urn:s> [RANGE PT5S STEP PT1S]
    WHERE {
      WINDOW w:1 {
        ?s <urn:p> 1 .
      }
    }
    >>> [warning.aspect for warning in written.warnings]
    ['content']
    """
    writer = _WRITERS.get(dialect)
    if writer is None:
        raise UsageError(
            f"no dialect {dialect!r} to write", hint=f"Choose one of {', '.join(TARGETS)}."
        )
    written = writer(query, prefixes).written()
    lost = {warning.aspect for warning in written.warnings}
    check_written(query, written.text, dialect, lost)
    return written


def declared_prefixes(text: str) -> dict[str, str]:
    """Collect the prefixes that a query's text declares, to write it with the same ones.

    >>> declared_prefixes("PREFIX ex: <http://example.org/> ASK { ex:a ex:b ex:c }")
    {'ex': 'http://example.org/'}
    """
    return {
        prefix: namespace for prefix, namespace in _PREFIX.findall(text) if _SCHEME.match(namespace)
    }
