"""Ways to escape and unescape texts, as Spark column expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F


def _replaced(*pairs: tuple[str, str]) -> Callable[[Column], Column]:
    def build(text: Column) -> Column:
        for old, new in pairs:
            text = F.replace(text, F.lit(old), F.lit(new))
        return text

    return build


def _csv(text: Column) -> Column:
    quoted = F.concat(F.lit('"'), F.replace(text, F.lit('"'), F.lit('""')), F.lit('"'))
    return F.when(text.rlike('[",\r\n]'), quoted).otherwise(text)


def _uncsv(text: Column) -> Column:
    inner = F.substring(text, F.lit(2), F.length(text) - 2)
    return F.when(
        (F.length(text) >= 2) & F.startswith(text, F.lit('"')) & F.endswith(text, F.lit('"')),
        F.replace(inner, F.lit('""'), F.lit('"')),
    ).otherwise(text)


# The ampersand goes first when escaping and last when unescaping, or it would be done twice.
_XML: Final = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"))
_JAVASCRIPT: Final = (
    ("\\", "\\\\"),
    ('"', '\\"'),
    ("'", "\\'"),
    ("\n", "\\n"),
    ("\r", "\\r"),
    ("\t", "\\t"),
    ("/", "\\/"),
)
ESCAPES: Final[dict[str, Callable[[Column], Column]]] = {
    "html": _replaced(*_XML),
    "xml": _replaced(*_XML, ("'", "&apos;")),
    "url": F.url_encode,
    "csv": _csv,
    "javascript": _replaced(*_JAVASCRIPT),
}
UNESCAPES: Final[dict[str, Callable[[Column], Column]]] = {
    "html": _replaced(*((new, old) for old, new in reversed((*_XML, ("'", "&#39;"))))),
    "xml": _replaced(*((new, old) for old, new in reversed((*_XML, ("'", "&apos;"))))),
    "url": F.try_url_decode,
    "csv": _uncsv,
}
