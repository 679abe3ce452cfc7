"""The canonical spelling of terms (`quadweir.terms`) as Spark column expressions.

How a pattern is written decides how fast Java matches it (`docs/design/0005-ntriples-columns.md`).
A class that names its characters one by one becomes a bit set, one with ranges a chain of calls;
a greedy repetition of a positive class has a loop of its own, a possessive one has not. And no
pattern repeats a group without a bound: Java would recurse, and a long literal would end in a
StackOverflowError.
"""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_letters, ascii_lowercase, digits
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quadweir.terms import MOST_NESTED, escape
from quadweir.vocab import RDF, XSD

if TYPE_CHECKING:
    from pyspark.sql import Column


def character_class(characters: str, *, negated: bool = False) -> str:
    r"""A Java character class that names each character.

    >>> character_class("ab")
    '[\\x61\\x62]'
    """
    names = "".join(f"\\x{ord(character):02x}" for character in characters)
    return f"[{'^' if negated else ''}{names}]"


_CONTROLS: Final = "".join(map(chr, range(0x20)))
_C1: Final = "".join(map(chr, range(0x7F, 0xA0)))
_NOT_IN_IRIS: Final = _CONTROLS + ' <>"{}|^`\\' + _C1
_NOT_IN_QUOTES: Final = _CONTROLS + '"\\\x7f'
_ASCII: Final = "".join(map(chr, range(0x20, 0x7F)))


def _without(characters: str, forbidden: str) -> str:
    return "".join(character for character in characters if character not in forbidden)


_SCHEME: Final = (
    f"{character_class(ascii_letters)}{character_class(ascii_letters + digits + '+.-')}*:"
)
ANY_IRI: Final = f"<{_SCHEME}{character_class(_NOT_IN_IRIS, negated=True)}*>"
ASCII_IRI: Final = f"<{_SCHEME}{character_class(_without(_ASCII, _NOT_IN_IRIS))}*>"
# Only the ASCII part of the grammar: other labels take the slow path.
ASCII_LABEL: Final = (
    f"_:{character_class(ascii_letters + digits + '_:')}"
    f"{character_class(ascii_letters + digits + '_:.-')}*(?<!\\.)"
)
LEXICAL: Final = f"{character_class(_NOT_IN_QUOTES, negated=True)}*"
ASCII_LEXICAL: Final = f"{character_class(_without(_ASCII, _NOT_IN_QUOTES))}*"
# No tag has more than nine subtags, and a bound keeps a hostile one from recursing.
LOWER_LANGUAGE: Final = (
    f"@{character_class(ascii_lowercase)}{{1,8}}"
    f"(?:-{character_class(ascii_lowercase + digits)}{{1,8}}){{0,9}}"
)
LANGUAGE: Final = (
    f"@{character_class(ascii_letters)}{{1,8}}"
    f"(?:-{character_class(ascii_letters + digits)}{{1,8}}){{0,9}}"
)

_SPECIAL: Final = "\\x00-\\x1f\\x22\\x5c\\x7f\\x{fffe}\\x{ffff}"
_ESCAPE_SEQUENCE: Final = r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[tbnrf\x22\x27\x5c])"
_NO_CHARACTER: Final = r"\\(?:u[dD][89a-fA-F]|U0000[dD][89a-fA-F]|U(?!00(?:0|10)))"


def escape_lexical(raw: Column) -> Column:
    """Spell the inside of a literal, as `quadweir.terms.escape` does, from its plain value."""
    return F.when(
        raw.rlike(f"[{_SPECIAL}]"),
        _join_tokens(raw, f"[{_SPECIAL}]|[^{_SPECIAL}]++", _spell),
    ).otherwise(raw)


def respell(term: Column) -> Column:
    """Make the escapes of a term in N-Triples canonical; every one in it must be valid.

    In an IRI this leaves a backslash only where a character stands that no IRI can have.
    """
    inside = "\\x00-\\x1f\\x5c\\x7f\\x{fffe}\\x{ffff}"
    tokens = F.regexp_extract_all(
        term, F.lit(f"{_ESCAPE_SEQUENCE}|[{inside}]|[^{inside}]++"), F.lit(0)
    )
    decoded = F.transform(
        tokens,
        lambda token: (
            # Of the quotes only this one stands inside a literal.
            F.when(token.rlike(r"^\\(?:u|U0000)0022\z"), '\\"')
            .when(token.rlike(r"^\\[uU]"), _decode_escape(token))
            .when(token == "\\'", "'")
            .otherwise(token)
        ),
    )
    # What still has two characters and begins with a backslash is a canonical escape.
    spelled = F.transform(
        decoded,
        lambda token: (
            F.when(token.rlike(r"^\\."), token)
            .when(token == "\\", "\\\\")
            .otherwise(_spell_control(token))
        ),
    )
    return F.when(term.rlike(f"[{inside}]"), F.array_join(spelled, "")).otherwise(term)


def has_bad_escape(term: Column) -> Column:
    """Whether some escape is not one of N-Triples, or is not a Unicode character.

    Escaped backslashes and quotes must have been spelled as numbers before.
    """
    unknown = r"\\(?!u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[tbnrf\x27])"
    return term.contains("\\") & term.rlike(f"{unknown}|{_NO_CHARACTER}")


def literal(
    lexical: Column, *, datatype: Column | None = None, language: Column | None = None
) -> Column:
    """Spell a literal from its plain lexical form, and its datatype IRI or language tag."""
    quoted = F.concat(F.lit('"'), escape_lexical(lexical), F.lit('"'))
    if language is not None:
        return F.concat(quoted, F.lit("@"), F.lower(language))
    if datatype is not None:
        return F.when(datatype == XSD.string, quoted).otherwise(
            F.concat(quoted, F.lit("^^<"), datatype, F.lit(">"))
        )
    return quoted


def is_iri(term: Column) -> Column:
    """Whether a term is an IRI; a triple term begins with the same character."""
    return term.startswith("<") & ~term.startswith("<<")


def is_resource(term: Column) -> Column:
    """Whether a term is an IRI or a blank node."""
    return is_iri(term) | term.startswith("_:")


def triple_term(subject: Column, predicate: Column, end: Column) -> Column:
    """Spell a triple term; NULL if RDF does not allow these parts, or if it would nest too
    deeply.
    """
    is_triple = is_resource(subject) & is_iri(predicate) & ~end.rlike(_TOO_DEEP)
    spelled = F.concat(
        F.lit("<<( "), subject, F.lit(" "), predicate, F.lit(" "), end, F.lit(" )>>")
    )
    return F.when(is_triple, spelled)


_TOO_DEEP: Final = f"^(?:<<\\( [^ ]* [^ ]* ){{{MOST_NESTED}}}"


def with_labels(term: Column, prefix: Column) -> Column:
    """Put a prefix, which has no `_:`, before the labels of a term's blank nodes.

    In a triple term they stand after a space and before any literal, which only can be the last part.
    """
    mark = F.concat(F.lit("_:"), prefix)
    head = F.substring_index(term, '"', 1)
    named = F.replace(head, F.lit(" _:"), F.concat(F.lit(" "), mark))
    inside = F.concat(named, F.substr(term, F.length(head) + 1))
    return (
        F.when(term.startswith("_:"), F.concat(mark, F.substr(term, F.lit(3))))
        .when(term.startswith("<<"), inside)
        .otherwise(term)
    )


def after_quotes(term: Column) -> Column:
    """Return what follows the last quotation mark of a literal: language, datatype, or nothing."""
    return F.substring_index(term, '"', -1)


def lexical_form(term: Column) -> Column:
    """Return the text of a literal without its escapes; NULL for other terms.

    Rejected: Spark functions that take a lambda, part by part. Spark compiled them again in every
    small batch, because the variable of a lambda gets a new name each time.
    """
    tail = F.when(term.startswith('"'), after_quotes(term))
    inside = F.substring(term, F.lit(2), F.length(term) - 2 - F.length(tail))
    # The escapes of a canonical spelling are those of JSON.
    text = F.concat(F.lit('{"v":"'), inside, F.lit('"}'))
    read = F.from_json(text, "v string", {"maxStringLen": str(2**31 - 1)})["v"]
    return F.when(inside.contains("\\"), F.coalesce(read, inside)).otherwise(inside)


def plain_value(term: Column) -> Column:
    """Return a term without its delimiters: an IRI, or the text of a literal.

    A blank node keeps its `_:`, and a triple term its spelling.
    """
    text = lexical_form(term)
    return (
        F.when(text.isNotNull(), text)
        .when(is_iri(term), F.substring(term, F.lit(2), F.length(term) - 2))
        .otherwise(term)
    )


STRING_DATATYPE: Final = f"<{XSD.string}>"
LANG_STRING_DATATYPE: Final = f"<{RDF.langString}>"


def _join_tokens(text: Column, pattern: str, each: Callable[[Column], Column]) -> Column:
    tokens = F.regexp_extract_all(text, F.lit(pattern), F.lit(0))
    return F.array_join(F.transform(tokens, each), "")


def _spell(token: Column) -> Column:
    """Spell a character, or a run of characters that need no escape."""
    return F.when(token == '"', '\\"').when(token == "\\", "\\\\").otherwise(_spell_control(token))


def _spell_control(token: Column) -> Column:
    # A list in one string folds into one constant, where a map would be planned entry by entry.
    controls = F.split(F.lit(" ".join(escape(chr(code)) for code in range(0x20))), " ")
    code = F.ascii(token)
    return (
        F.when((code < 0x20) & (token != ""), controls[code])
        .when(code == 0x7F, "\\u007F")
        .when(token == "\ufffe", "\\uFFFE")
        .when(token == "\uffff", "\\uFFFF")
        .otherwise(token)
    )


def _decode_escape(token: Column) -> Column:
    return F.decode(F.unhex(F.lpad(F.substring(token, 3, 8), 8, "0")), "UTF-32")
