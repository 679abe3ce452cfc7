r"""IRIs and blank node labels from untrusted values, as Spark column expressions.

For every value the result is one term of N-Triples or NULL: percent-encoding leaves
only unreserved characters, unsafe IRIs spell what N-Triples forbids as `\u` escapes, and blank
node labels are hexadecimal where they are not plain.
"""

from __future__ import annotations

from string import ascii_letters, digits
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quadweir.spelling import character_class

if TYPE_CHECKING:
    from pyspark.sql import Column

_FORBIDDEN: Final = (
    "".join(map(chr, range(0x20))) + ' <>"{}|^`\\' + "".join(map(chr, range(0x7F, 0xA0)))
)
_IRI_CHARACTER: Final = character_class(_FORBIDDEN, negated=True)
_PLAIN_LABEL: Final = (
    f"^{character_class(ascii_letters)}{character_class(ascii_letters + digits)}*\\z"
)
_SCHEME: Final = (
    f"^{character_class(ascii_letters)}{character_class(ascii_letters + digits + '+.-')}*+:"
)
_ABSOLUTE: Final = f"{_SCHEME}{_IRI_CHARACTER}*+\\z"
_ALLOWED: Final = f"^{_IRI_CHARACTER}*+\\z"
# Escapes of ASCII characters and of C1 controls (C2 80 to C2 9F) stay escapes.
_ASCII_ESCAPE: Final = r"%(?=[0-7])|%(?=C2%[89])|(?<=%C2)%(?=[89])"


def percent_encode(value: Column, *, ascii_only: bool) -> Column:
    """Encode all but unreserved characters; with `ascii_only`, those beyond ASCII too.

    Spec: https://kg-construct.github.io/rml-core/spec/docs/#dfn-iri-safe
    """
    # `url_encode` writes forms, not paths: a space becomes +, * stays, ~ does not. It is faster
    # than a pattern that finds the values that need it, and looking for a byte is faster than both.
    form = F.url_encode(value)
    spaced = F.replace(form, F.lit("+"), F.lit("%20"))
    full = F.replace(F.replace(spaced, F.lit("*"), F.lit("%2A")), F.lit("%7E"), F.lit("~"))
    if ascii_only:
        is_odd = value.contains("*") | value.contains("~")
    else:
        # Escaping the escapes of ASCII once more makes decoding restore only the others.
        full = F.url_decode(F.regexp_replace(full, _ASCII_ESCAPE, "%25"))
        is_odd = (
            (F.length(value) != F.octet_length(value)) | value.contains("*") | value.contains("~")
        )
    return F.when(is_odd, full).when(value.contains(" "), spaced).otherwise(form)


def encode_beyond_ascii(value: Column) -> Column:
    """Percent-encode only the characters beyond ASCII, as URIs require."""
    return F.when(F.length(value) == F.octet_length(value), value).otherwise(
        F.url_decode(F.regexp_replace(F.url_encode(value), "%(?=[89A-F])", "%25"))
    )


def is_absolute(value: Column) -> Column:
    """Whether a text begins with a scheme."""
    return value.rlike(_SCHEME)


def checked_iri(value: Column, base: str | None) -> Column:
    """The IRI without brackets, resolved against `base` if relative; NULL if it is not valid."""
    relative = F.when(
        value.rlike(_ALLOWED) & ~is_absolute(value),
        F.concat(F.lit(base), value) if base is not None else F.lit(None),
    )
    return F.when(value.rlike(_ABSOLUTE), value).otherwise(relative)


def unsafe_iri(value: Column, base: str | None) -> Column:
    r"""The IRI without brackets and checks; what N-Triples forbids is spelt as a `\u` escape."""
    tokens = F.regexp_extract_all(value, F.lit(f"{_IRI_CHARACTER}++|[^\\x00]|\\x00"), F.lit(0))
    spelt = F.array_join(
        F.transform(
            tokens,
            lambda token: F.when(token.rlike(_ALLOWED), token).otherwise(
                F.format_string("\\u%04X", F.ascii(token))
            ),
        ),
        "",
    )
    iri = F.when(value.rlike(_ALLOWED), value).otherwise(spelt)
    if base is None:
        return iri
    return F.when(is_absolute(value), iri).otherwise(F.concat(F.lit(base), iri))


def blank_label(value: Column) -> Column:
    """A label for a value: equal values have equal labels, and different ones different."""
    return F.when(value.rlike(_PLAIN_LABEL), value).otherwise(
        F.concat(F.lit("x_"), F.lower(F.hex(F.encode(value, "UTF-8"))))
    )
