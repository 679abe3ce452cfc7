"""The canonical form of N-Triples and N-Quads statements as one column expression.

A statement is a line, or a text with a line for each of its terms (`StatementForm`).

Spec: https://www.w3.org/TR/n-quads/#sec-grammar
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir import spelling
from quadweir.sources.statements import (
    BAD_ESCAPE,
    BAD_IRI,
    NO_END,
    NO_LANGUAGE,
    NO_OBJECT,
    NO_PREDICATE,
    NO_QUOTED_TRIPLES,
    NO_SUBJECT,
    ONLY_OBJECTS,
    UNCLOSED,
)
from quadweir.terms import MOST_NESTED, TOO_DEEP

if TYPE_CHECKING:
    from pyspark.sql import Column

MAX_LINE_BYTES: Final = 16 * 2**20
"""A longer line is a dead letter: nobody writes such a statement by hand, and it would have to fit
in memory several times over."""


# Escapes that are canonical wherever they stand in a literal.
_SHORT_ESCAPE: Final = r"\\[tbnrf\x22\x5c]"
# Java recurses for each; a literal with more of them takes the thorough way.
_MAX_PLAIN_ESCAPES: Final = 100


def _canonical(iri: str, lexical: str, between: str, tail: str) -> str:
    resource = f"(?:{iri}|{spelling.ASCII_LABEL})"
    never = f"{spelling.STRING_DATATYPE}|{spelling.LANG_STRING_DATATYPE}".replace(".", "\\.")
    literal = f'"{lexical}"(?:{spelling.LOWER_LANGUAGE}|\\^\\^(?!{never}){iri})?'
    value = f"(?:{iri}|{literal}|{spelling.ASCII_LABEL})"
    return f"^{resource}{between}{iri}{between}{value}{tail.format(resource)}\\z"


_ASCII_LEXICAL: Final = (
    f"{spelling.ASCII_LEXICAL}(?:{_SHORT_ESCAPE}{spelling.ASCII_LEXICAL}){{0,{_MAX_PLAIN_ESCAPES}}}"
)
_LINE_PARTS: Final = (" ", "(?: {0})? \\.")
_TERMS_PARTS: Final = ("\\n", "\\n{0}?")

# For lines that are not canonical; no quote is left inside a literal (see `canonicalise`).
_SPACE: Final = "[ \\t]*+"
_ANY_IRI: Final = "<[^<> \\t\\n\\r\\x22]*+>"
_NAME_START: Final = (
    "A-Za-z0-9_:\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{2FF}\\x{370}-\\x{37D}\\x{37F}-\\x{1FFF}"
    "\\x{200C}\\x{200D}\\x{2070}-\\x{218F}\\x{2C00}-\\x{2FEF}\\x{3001}-\\x{D7FF}"
    "\\x{F900}-\\x{FDCF}\\x{FDF0}-\\x{FFFD}\\x{10000}-\\x{EFFFF}"
)
_NAME: Final = f"{_NAME_START}\\-\\x{{B7}}\\x{{300}}-\\x{{36F}}\\x{{203F}}\\x{{2040}}"
_ANY_LABEL: Final = f"_:[{_NAME_START}][{_NAME}.]*(?<!\\.)"
_ANY_RESOURCE: Final = f"(?:{_ANY_IRI}|{_ANY_LABEL})"
_ANY_QUOTED: Final = '"[^"\\n\\r]*+"'
_SUBJECT: Final = f"^{_SPACE}({_ANY_RESOURCE})"
_PREDICATE: Final = f"{_SUBJECT}{_SPACE}({_ANY_IRI})"
# The beginnings of triple terms, up to their objects, and their ends.
_BEGINNING: Final = f"<<\\({_SPACE}{_ANY_RESOURCE}{_SPACE}{_ANY_IRI}{_SPACE}"
_OPENED: Final = f"((?:{_BEGINNING}){{0,{MOST_NESTED}}}+)"
_CLOSED: Final = f"((?:{_SPACE}\\)>>){{0,{MOST_NESTED}}}+)"
_NOT_DEEPER: Final = f"(?!(?:{_BEGINNING}){{{MOST_NESTED}}}<<)"
_INSIDE: Final = f"{_ANY_IRI}|{_ANY_LABEL}"
_OBJECT: Final = f"{_PREDICATE}{_SPACE}{_OPENED}({_ANY_RESOURCE}|{_ANY_QUOTED})"
# Only a quote, and white space after it, can stand before a language tag or a datatype.
_TAG: Final = f'(?:(?<="[ \\t]{{0,50}})(?:({spelling.LANGUAGE})|\\^\\^{_SPACE}({_ANY_IRI})))?+'
_STATEMENT: Final = (
    f"{_OBJECT}{_SPACE}{_TAG}{_CLOSED}{_SPACE}({_ANY_RESOURCE})?+{_SPACE}\\.{_SPACE}"
    "(?:#[^\\r\\n]*+)?\\z"
)
# Subject, predicate, beginnings, object, language, datatype, ends, graph.
_GROUP_COUNT: Final = 8
_GROUPS: Final = "\n".join(f"${number}" for number in range(1, _GROUP_COUNT + 1))
_TERMS_SUBJECT: Final = f"^({_ANY_RESOURCE})\\n"
_TERMS_PREDICATE: Final = f"{_TERMS_SUBJECT}({_ANY_IRI})\\n"
_TERMS_OBJECT: Final = (
    f"{_TERMS_PREDICATE}{_OPENED}({_ANY_RESOURCE}|{_ANY_QUOTED}){_TAG}{_CLOSED}\\n"
)
_TERMS: Final = f"{_TERMS_OBJECT}({_ANY_RESOURCE})?+\\z"
EMPTY: Final = "^[ \\t]*+(?:#[^\\r\\n]*+)?\\z"
FAILED: Final = "!"
_SHOWN: Final = 100
_NO_SUBJECT: Final = f"!{NO_SUBJECT}"
_NO_PREDICATE: Final = f"!{NO_PREDICATE}"
_NO_QUOTED: Final = f"!{NO_QUOTED_TRIPLES}"
_NO_OBJECT: Final = f"!{NO_OBJECT}"
_NO_END: Final = f"!{UNCLOSED}"


@final
@dataclass(frozen=True, slots=True)
class StatementForm:
    """How the text of a statement is written.

    Attributes:
        plain: recognises what is canonical and ASCII.
        canonical: recognises what is canonical; escapes were made braces.
        statement: takes any apart, into `_GROUP_COUNT` groups.
        reasons: patterns that the beginning has to have, and why it is no statement if it has not.
        last: why it is none, if it has them all.
        put: puts subject, predicate, object and graph, empty if there is none, together again.
        has_lines: whether terms that are none could bring lines of their own.
    """

    plain: str
    canonical: str
    statement: str
    reasons: tuple[tuple[str, str], ...]
    last: str
    put: Callable[[Column, Column, Column, Column], Column]
    has_lines: bool


def _put_line(subject: Column, predicate: Column, value: Column, graph: Column) -> Column:
    return F.concat_ws(" ", subject, predicate, value, F.nullif(graph, F.lit("")), F.lit("."))


OF_LINES: Final = StatementForm(
    _canonical(spelling.ASCII_IRI, _ASCII_LEXICAL, *_LINE_PARTS),
    _canonical(spelling.ANY_IRI, spelling.LEXICAL, *_LINE_PARTS),
    _STATEMENT,
    (
        (f"^{_SPACE}(?!<<\\()", f"!{ONLY_OBJECTS}"),
        (f"^{_SPACE}(?!<<)", _NO_QUOTED),
        (_SUBJECT, _NO_SUBJECT),
        (_PREDICATE, _NO_PREDICATE),
        (f"{_PREDICATE}{_SPACE}{_NOT_DEEPER}", f"!{TOO_DEEP}"),
        (f"{_PREDICATE}{_SPACE}{_OPENED}(?!<<[^(])", _NO_QUOTED),
        (_OBJECT, _NO_OBJECT),
    ),
    f"!{NO_END}",
    _put_line,
    has_lines=False,
)


def _put_terms(*terms: Column) -> Column:
    return F.concat_ws("\n", *terms)


OF_TERMS: Final = StatementForm(
    _canonical(spelling.ASCII_IRI, _ASCII_LEXICAL, *_TERMS_PARTS),
    _canonical(spelling.ANY_IRI, spelling.LEXICAL, *_TERMS_PARTS),
    _TERMS,
    (
        ("^(?:[^\\n]*+\\n){3}[^\\n]*+\\z", "!a line break inside a term"),
        (_TERMS_SUBJECT, _NO_SUBJECT),
        (_TERMS_PREDICATE, _NO_PREDICATE),
        (f"{_TERMS_PREDICATE}{_NOT_DEEPER}", f"!{TOO_DEEP}"),
        (f"{_TERMS_PREDICATE}{_OPENED}(?!<<[^(])", _NO_QUOTED),
        (_TERMS_OBJECT, _NO_OBJECT),
    ),
    "!the graph name is not an IRI or a blank node",
    _put_terms,
    has_lines=True,
)


def is_plain(text: Column, form: StatementForm) -> Column:
    """Tell whether a statement is canonical and ASCII, which most are."""
    # A chain of cases, since Spark computes what stands twice in a conjunction for every line.
    return F.when(text.isNull() | (F.octet_length(text) > MAX_LINE_BYTES), F.lit(False)).otherwise(
        text.rlike(form.plain)
    )


def _is_canonical(text: Column, form: StatementForm) -> Column:
    # Any number of escapes: they become braces, which stand nowhere but in literals.
    braced = F.regexp_replace(text, _SHORT_ESCAPE, "{{")
    return braced.rlike(form.canonical) & ~text.contains("\ufffe") & ~text.contains("\uffff")


def canonicalise(text: Column, form: StatementForm) -> Column:
    """The canonical form of a statement; `!` and the reason if it has none.

    The tree is kept small: every query that reads RDF plans it, few ever run it.
    """
    # Escaped quotes and backslashes are spelled as numbers, so that a quote ends a literal.
    unquoted = F.replace(
        F.replace(text, F.lit("\\\\"), F.lit("\\u005C")), F.lit('\\"'), F.lit("\\u0022")
    )

    def cut(plain: Column) -> Column:
        pieces = F.split(F.regexp_replace(plain, form.statement, _GROUPS), "\n", -1)

        def join(terms: Column) -> Column:
            is_cut = (
                plain.rlike(form.statement) if form.has_lines else F.size(terms) == _GROUP_COUNT
            )
            return F.when(is_cut, _join(terms, form)).otherwise(_why(plain, form))

        return let(pieces, join)

    return (
        F.when(F.octet_length(text) > MAX_LINE_BYTES, f"!longer than {MAX_LINE_BYTES} bytes")
        # Decoding hides bytes that are not UTF-8, so beyond ASCII a pattern is not enough.
        .when(~F.is_valid_utf8(text), "!not valid UTF-8")
        .when(_is_canonical(text, form), text)
        .otherwise(let(unquoted, cut))
    )


def _join(terms: Column, form: StatementForm) -> Column:
    """Spell each term canonically and put the statement together again.

    The subjects and predicates of triple terms come after all the others.
    """
    subject, predicate, opened, value, language, datatype, closed, graph = (
        terms[i] for i in range(_GROUP_COUNT)
    )
    others = F.array(subject, predicate, value, language, datatype, graph)
    inside = F.regexp_extract_all(opened, F.lit(_INSIDE), F.lit(0))
    # A beginning has two terms, and an end two of these brackets.
    ends = F.octet_length(closed) - F.octet_length(F.replace(closed, F.lit(">"), F.lit("")))
    joined = _join_terms(F.concat(others, inside), form)
    return F.when(F.size(inside) != ends, _NO_END).otherwise(joined)


def _join_terms(terms: Column, form: StatementForm) -> Column:
    def assemble(spelled: Column) -> Column:
        wrong = F.filter(
            spelled, lambda term: term.startswith("<") & ~term.rlike(f"^{spelling.ANY_IRI}\\z")
        )
        subject, predicate, value, language, datatype, graph = (spelled[i] for i in range(6))
        tag = F.when(
            (datatype != "") & (datatype != spelling.STRING_DATATYPE),
            F.concat(F.lit("^^"), datatype),
        ).otherwise(F.lower(language))
        return (
            F.when(
                F.size(wrong) > 0,
                F.concat(
                    F.lit(FAILED),
                    F.substring(wrong[0], 1, _SHOWN),
                    F.lit(f" {BAD_IRI}"),
                ),
            )
            .when(datatype == spelling.LANG_STRING_DATATYPE, f"!{NO_LANGUAGE}")
            .otherwise(form.put(subject, predicate, _nested(F.concat(value, tag), spelled), graph))
        )

    return F.when(F.exists(terms, spelling.has_bad_escape), f"!{BAD_ESCAPE}").otherwise(
        let(F.transform(terms, spelling.respell), assemble)
    )


def _nested(value: Column, spelled: Column) -> Column:
    """Put an object into the triple terms whose subjects and predicates follow six other terms."""
    count = F.size(spelled) - 6
    inside = F.transform(
        F.slice(spelled, F.lit(7), count),
        lambda term, place: F.when(place % 2 == 0, F.concat(F.lit("<<( "), term)).otherwise(term),
    )
    ends = F.repeat(F.lit(" )>>"), (count / 2).cast("int"))
    nested = F.concat(F.array_join(inside, " "), F.lit(" "), value, ends)
    return F.when(count > 0, nested).otherwise(value)


def _why(plain: Column, form: StatementForm) -> Column:
    found = F.lit(form.last)
    return reduce(
        lambda rest, each: F.when(~plain.rlike(each[0]), each[1]).otherwise(rest),
        reversed(form.reasons),
        found,
    )


def let(value: Column, body: Callable[[Column], Column]) -> Column:
    """Name a value inside one expression, so that it is computed once however often it is used."""
    return F.transform(F.array(value), body)[0]
