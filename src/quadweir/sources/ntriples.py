"""N-Triples and N-Quads lines to quad rows, wholly as column expressions.

Most lines in the world are already canonical: one pattern recognises them, and cuts at spaces do
the rest. A line that is not goes the thorough way: escapes are neutralised so that quotes and
brackets can be trusted, the line is cut into terms, each term is checked and spelled canonically,
and what does not parse gets a reason.

Spec: https://www.w3.org/TR/n-quads/#sec-grammar
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quadweir import rows, spelling

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MAX_LINE_BYTES: Final = 16 * 2**20
"""A longer line is a dead letter: nobody writes such a statement by hand, and it would have to fit
in memory several times over."""


def _canonical(iri: str, lexical: str) -> str:
    resource = f"(?:{iri}|{spelling.ASCII_LABEL})"
    never = f"{spelling.STRING_DATATYPE}|{spelling.LANG_STRING_DATATYPE}".replace(".", "\\.")
    literal = f'"{lexical}"(?:{spelling.LOWER_LANGUAGE}|\\^\\^(?!{never}){iri})?'
    return f"^{resource} {iri} (?:{iri}|{literal}|{spelling.ASCII_LABEL})(?: {resource})? \\.\\z"


_CANONICAL_ASCII: Final = _canonical(spelling.ASCII_IRI, spelling.ASCII_LEXICAL)
_CANONICAL: Final = _canonical(spelling.IRI, spelling.LEXICAL)

# The thorough way works on the neutralised line, in which no backslash is left that matters.
_SPACE: Final = "[ \\t]*+"
_ANY_IRI: Final = "<[^<> \\t\\x22]*+>"
_NAME_START: Final = (
    "A-Za-z0-9_:\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{2FF}\\x{370}-\\x{37D}\\x{37F}-\\x{1FFF}"
    "\\x{200C}\\x{200D}\\x{2070}-\\x{218F}\\x{2C00}-\\x{2FEF}\\x{3001}-\\x{D7FF}"
    "\\x{F900}-\\x{FDCF}\\x{FDF0}-\\x{FFFD}\\x{10000}-\\x{EFFFF}"
)
_NAME: Final = f"{_NAME_START}\\-\\x{{B7}}\\x{{300}}-\\x{{36F}}\\x{{203F}}\\x{{2040}}"
_ANY_LABEL: Final = f"_:[{_NAME_START}][{_NAME}.]*(?<!\\.)"
_ANY_RESOURCE: Final = f"(?:{_ANY_IRI}|{_ANY_LABEL})"
_ANY_QUOTED: Final = '"[^"\\n\\r]*+"'
_ANY_TAG: Final = f"(?:{spelling.LANGUAGE}|\\^\\^{_SPACE}{_ANY_IRI})"
# Groups: space, subject, space, predicate, space, object or quoted, space, tag, space, graph.
_CUT: Final = (
    f"^({_SPACE})({_ANY_RESOURCE})({_SPACE})({_ANY_IRI})({_SPACE})"
    f'({_ANY_RESOURCE}|{_ANY_QUOTED})({_SPACE})((?:(?<="[ \\t]{{0,50}}){_ANY_TAG})?+)({_SPACE})'
    f"((?:{_ANY_RESOURCE})?+){_SPACE}\\.{_SPACE}(?:#.*+)?\\z"
)
_EMPTY: Final = "^[ \\t]*+(?:#.*+)?\\z"


def parse_lines(frame: DataFrame, line: Column) -> DataFrame:
    """Add the four terms of each line, and the reason where there are none.

    A line that is empty or a comment has neither terms nor a reason.

    Args:
        frame: any DataFrame, streaming or not.
        line: the text of one line, without its end.

    Returns:
        `frame` with the columns of `rows.QUAD_SCHEMA` and `rows.REASON`.
    """
    kept = [F.col(name) for name in frame.columns]
    # Each select names what later ones use more than once: Spark computes it once, and only the
    # last one, which the thorough way keeps out of generated code, pays for that.
    short = F.when(F.octet_length(line) <= MAX_LINE_BYTES, line)
    staged = frame.select(*kept, short.alias(_TEXT)).select(
        *kept, _TEXT, _is_canonical(F.col(_TEXT)).alias(_FAST), F.split(_TEXT, " ", 3).alias(_PARTS)
    )
    last = F.col(_PARTS)[2]
    staged = staged.select(
        *kept,
        _TEXT,
        _FAST,
        F.col(_PARTS)[0].alias(rows.SUBJECT),
        F.col(_PARTS)[1].alias(rows.PREDICATE),
        F.when(F.col(_FAST), F.left(last, F.length(last) - 2)).alias(_REST),
    )
    rest = F.col(_REST)
    # Neither a datatype, a language tag nor a graph name can hold a quote or a space.
    tail = F.when(rest.startswith('"'), F.substring_index(rest, '"', -1)).otherwise(rest)
    staged = staged.select(
        *kept, _TEXT, _FAST, rows.SUBJECT, rows.PREDICATE, _REST, tail.alias(_TAIL)
    )
    tail = F.col(_TAIL)
    graph = F.when(tail.contains(" "), F.substring_index(tail, " ", -1))
    staged = staged.select(
        *kept, _TEXT, _FAST, rows.SUBJECT, rows.PREDICATE, _REST, graph.alias(rows.GRAPH)
    )
    graph = F.col(rows.GRAPH)
    obj = F.when(graph.isNull(), rest).otherwise(F.left(rest, F.length(rest) - F.length(graph) - 1))
    fast = staged.select(
        *kept, _TEXT, _FAST, rows.SUBJECT, rows.PREDICATE, obj.alias(rows.OBJECT), rows.GRAPH
    )
    slow = F.when(~F.col(_FAST), _parse_thoroughly(F.col(_TEXT)))
    both = fast.withColumn(_SLOW, slow)
    return both.select(
        *kept,
        *[
            F.when(F.col(_FAST), F.col(name)).otherwise(F.col(_SLOW)[name]).alias(name)
            for name in rows.TERMS
        ],
        F.coalesce(
            F.when(F.octet_length(line) > MAX_LINE_BYTES, F.lit(_TOO_LONG)),
            F.col(_SLOW)[rows.REASON],
        ).alias(rows.REASON),
    )


_TOO_LONG: Final = f"longer than {MAX_LINE_BYTES} bytes"

# Names that no source can have, since they are taken off again before the frame is returned.
_TEXT: Final = "_nt_text"
_FAST: Final = "_nt_fast"
_PARTS: Final = "_nt_parts"
_REST: Final = "_nt_rest"
_TAIL: Final = "_nt_tail"
_SLOW: Final = "_nt_slow"


def _is_canonical(line: Column) -> Column:
    # Decoding hides bytes that are not UTF-8, so beyond ASCII the pattern alone is not enough.
    sound = F.is_valid_utf8(line) & ~line.contains("\ufffe") & ~line.contains("\uffff")
    beyond_ascii = (F.octet_length(line) != F.length(line)) & line.rlike(_CANONICAL) & sound
    return F.coalesce(line.rlike(_CANONICAL_ASCII) | beyond_ascii, F.lit(False))


def _parse_thoroughly(line: Column) -> Column:
    def failed(why: str) -> Column:
        return _failure(F.lit(why))

    def neutral(plain: Column) -> Column:
        # In `plain` an escape is two letters, so a quote is a quote and a bracket a bracket.
        pieces = F.split(F.regexp_replace(plain, _CUT, _GROUPS), "\n", -1)
        return (
            F.when(plain.rlike(_CUT), _let(pieces, lambda cut: _assemble(line, cut)))
            .when(~plain.rlike(_SUBJECT), failed("the subject is not an IRI or a blank node"))
            .when(~plain.rlike(_PREDICATE), failed("the predicate is not an IRI"))
            .when(
                ~plain.rlike(_OBJECT),
                failed("the object is not an IRI, a blank node or a closed literal"),
            )
            .otherwise(failed("after the object only a graph name and a full stop can follow"))
        )

    return (
        F.when(line.isNull() | line.rlike(_EMPTY), _failure(F.lit(None).cast("string")))
        .when(~F.is_valid_utf8(line), failed("not valid UTF-8"))
        .otherwise(_let(F.regexp_replace(line, "\\\\[\\s\\S]", "xx"), neutral))
    )


_GROUPS: Final = "\n".join(f"${number}" for number in range(1, 11))
_SUBJECT: Final = f"^{_SPACE}{_ANY_RESOURCE}"
_PREDICATE: Final = f"{_SUBJECT}{_SPACE}{_ANY_IRI}"
_OBJECT: Final = f"{_PREDICATE}{_SPACE}(?:{_ANY_RESOURCE}|{_ANY_QUOTED})"


def _assemble(line: Column, pieces: Column) -> Column:
    """Cut the real line where the neutralised one was cut, and make each term canonical."""
    starts = [F.lit(1)]
    for index in range(9):
        starts.append(starts[-1] + F.length(pieces[index]))

    def piece(index: int) -> Column:
        return F.substring(line, starts[index], F.length(pieces[index]))

    def assemble(parts: Column) -> Column:
        subject, predicate, body, tag, graph = (parts[index] for index in range(5))
        quoted = body.startswith('"')
        datatype = F.regexp_replace(tag, "^\\^\\^[ \\t]*+", "")
        typed = tag.startswith("^^")
        problem = F.coalesce(
            _iri_problem(subject, "subject"),
            _iri_problem(predicate, "predicate"),
            F.when(~quoted, _iri_problem(body, "object")),
            F.when(
                quoted & spelling.has_bad_escape(body),
                F.lit("the literal has an escape that N-Triples does not know"),
            ),
            F.when(typed, _iri_problem(datatype, "datatype")),
            F.when(
                typed & (spelling.unescape_iri(datatype) == spelling.LANG_STRING_DATATYPE),
                F.lit("rdf:langString needs a language tag"),
            ),
            F.when(graph != "", _iri_problem(graph, "graph name")),
        )
        return _let(
            problem,
            lambda why: F.when(
                why.isNull(),
                _result(
                    spelling.unescape_iri(subject),
                    spelling.unescape_iri(predicate),
                    F.when(
                        quoted,
                        F.concat(
                            F.lit('"'),
                            spelling.respell_lexical(
                                F.substring(body, F.lit(2), F.length(body) - 2)
                            ),
                            F.lit('"'),
                            _canonical_tag(tag, datatype),
                        ),
                    ).otherwise(spelling.unescape_iri(body)),
                    F.when(graph != "", spelling.unescape_iri(graph)),
                    F.lit(None).cast("string"),
                ),
            ).otherwise(_failure(why)),
        )

    return _let(F.array(*[piece(index) for index in (1, 3, 5, 7, 9)]), assemble)


def _canonical_tag(tag: Column, datatype: Column) -> Column:
    name = spelling.unescape_iri(datatype)
    return (
        F.when(tag == "", F.lit(""))
        .when(tag.startswith("@"), F.lower(tag))
        .when(name == spelling.STRING_DATATYPE, F.lit(""))
        .otherwise(F.concat(F.lit("^^"), name))
    )


def _iri_problem(term: Column, role: str) -> Column:
    return F.when(
        term.startswith("<"),
        F.when(
            spelling.has_bad_escape(term, numeric_only=True),
            F.lit(f"the {role} has an escape that an IRI cannot have"),
        ).when(
            ~spelling.unescape_iri(term).rlike(f"^{spelling.IRI}\\z"),
            F.lit(f"the {role} is not an absolute IRI, or has a character that IRIs cannot have"),
        ),
    )


def _result(subject: Column, predicate: Column, obj: Column, graph: Column, why: Column) -> Column:
    names = (*rows.TERMS, rows.REASON)
    columns = (subject, predicate, obj, graph, why)
    return F.struct(*[column.alias(name) for name, column in zip(names, columns, strict=True)])


def _failure(why: Column) -> Column:
    nothing = F.lit(None).cast("string")
    return _result(nothing, nothing, nothing, nothing, why)


def _let(value: Column, body: Callable[[Column], Column]) -> Column:
    """Name a value inside one expression, so that it is computed once however often it is used."""
    return F.transform(F.array(value), body)[0]


def line_of(quad: Sequence[Column]) -> Column:
    """One N-Quads line for the terms subject, predicate, object and graph; the graph may be NULL."""
    return F.concat(F.concat_ws(" ", *quad), F.lit(" ."))
