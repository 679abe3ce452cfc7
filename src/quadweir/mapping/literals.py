"""Literals from plain text, as Spark column expressions that stay small.

A plan holds one of these expressions for each literal of a mapping. So the expression for texts
that need escapes must be small: otherwise Spark would spend more time on the plan of a small file
than on the file. It uses Spark's own JSON writer, whose escapes are those of canonical N-Triples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quadweir.spelling import character_class
from quadweir.terms import escape
from quadweir.vocab import XSD

if TYPE_CHECKING:
    from pyspark.sql import Column

_QUOTED: Final = '"\\'
_SPECIAL: Final = (
    character_class("".join(map(chr, range(0x20))) + '"\\\x7f') + "|\\x{fffe}|\\x{ffff}"
)
_NO_ESCAPES: Final = f"^{character_class(''.join(chr(at) for at in range(0x20, 0x7F) if chr(at) not in _QUOTED))}*\\z"
_NOT_IN_JSON: Final = "\x7f\ufffe\uffff"
_NUMBER: Final = r"^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|Infinity)\z"
_INSIDE: Final = r'(?s)^\{"a":"(.*)"\}\z'


def escape_text(text: Column) -> Column:
    """Spell the inside of a literal, as `quadweir.terms.escape` does."""
    json = F.to_json(F.struct(text.alias("a")))
    # Not `substr`, which needs the length, and so the whole expression once more.
    spelt = F.regexp_extract(json, _INSIDE, 1)
    for character in _NOT_IN_JSON:
        spelt = F.replace(spelt, F.lit(character), F.lit(escape(character)))
    # The first pattern is the one that Java matches fastest, and few texts go on to the second.
    return F.when(text.rlike(_NO_ESCAPES), text).otherwise(
        F.when(text.rlike(_SPECIAL), spelt).otherwise(text)
    )


def literal(
    text: Column,
    *,
    datatype: Column | str | None = None,
    language: Column | str | None = None,
    is_escaped: bool = False,
) -> Column:
    """Spell a literal from plain (or escaped) text, and its datatype's IRI or its language tag."""
    start, inside = F.lit('"'), text if is_escaped else escape_text(text)
    if datatype is not None and language is None:
        if not isinstance(datatype, str):
            inside = F.when(datatype == XSD.double, double_inside(text)).otherwise(inside)
        elif datatype == XSD.double:
            inside = double_inside(text)
    if language is not None and not isinstance(language, str):
        return F.concat(start, inside, F.lit('"@'), F.lower(language))
    if language is not None or datatype is None or isinstance(datatype, str):
        fixed = datatype if isinstance(datatype, str) else None
        return F.concat(start, inside, F.lit(after(fixed, language)))
    suffix = F.when(datatype == XSD.string, F.lit('"')).otherwise(
        F.concat(F.lit('"^^<'), datatype, F.lit(">"))
    )
    return F.concat(start, inside, suffix)


def after(datatype: str | None, language: str | None) -> str:
    """The suffix of a literal: its datatype or language.

    >>> after(None, "NL")
    '"@nl'
    """
    if language is not None:
        return f'"@{language.lower()}'
    return '"' if datatype in (None, XSD.string) else f'"^^<{datatype}>'


def double_inside(text: Column) -> Column:
    """Spell the inside of an xsd:double: a number in its canonical form, other text as it is."""
    return F.when(
        text.rlike(_NUMBER), canonical_double(text.try_cast("double").cast("string"))
    ).otherwise(escape_text(text))


def canonical_double(text: Column) -> Column:
    """Respell a double from Java's form to the canonical one of XML Schema: 91.7 to 9.17E1.

    Spec: https://www.w3.org/TR/xmlschema11-2/#f-doubleCanmap
    """
    # 0.05 becomes 5.0E-2, and 120.5 becomes 1.205E2; 1.0E10 is canonical already.
    small = F.concat(
        F.regexp_replace(text, r"^(-?)0\.0*([1-9])([0-9]*)$", r"$1$2.$30E-"),
        F.length(F.regexp_extract(text, r"\.(0*)", 1)) + 1,
    )
    large = F.concat(
        F.regexp_replace(text, r"^(-?[0-9])([0-9]*)\.([0-9]+)$", r"$1.$2$30E"),
        F.length(F.regexp_extract(text, r"^-?[0-9]([0-9]*)", 1)),
    )
    spelt = F.when(text.rlike(r"^-?0\."), small).otherwise(large)
    return (
        F.when(text.contains("E"), text)
        .when(text.rlike("^-?0.0$"), F.concat(text, F.lit("E0")))
        .when(text.contains("N"), text)
        .when(text.contains("I"), F.replace(text, F.lit("Infinity"), F.lit("INF")))
        .otherwise(F.regexp_replace(spelt, r"(\.[0-9]+?)0*E", "$1E"))
    )
