"""Broken queries: for any text, the parser raises only our own errors."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from properties.strategies import queries
from quadweir.algebra.render import render
from quadweir.errors import QuadweirError
from quadweir.syntax import DIALECTS, parse
from rendered_trees import read_query

TOKEN = re.compile(r"<[^<>\s]*>|\"[^\"]*\"|[?$:@]?\w+|\s+|.", re.DOTALL)
POOL = [
    "SELECT",
    "CONSTRUCT",
    "ASK",
    "DESCRIBE",
    "WHERE",
    "FROM",
    "NAMED",
    "WINDOW",
    "STREAM",
    "ON",
    "REGISTER",
    "QUERY",
    "ISTREAM",
    "AS",
    "RANGE",
    "STEP",
    "SLIDE",
    "TUMBLING",
    "TRIPLES",
    "ELEMENTS",
    "COUNT",
    "NOW",
    "ALL",
    "TO",
    "COMPUTED",
    "EVERY",
    "FILTER",
    "OPTIONAL",
    "UNION",
    "MINUS",
    "GRAPH",
    "SERVICE",
    "BIND",
    "VALUES",
    "UNDEF",
    "EXISTS",
    "NOT",
    "IN",
    "GROUP",
    "BY",
    "HAVING",
    "ORDER",
    "ASC",
    "DESC",
    "LIMIT",
    "OFFSET",
    "DISTINCT",
    "REDUCED",
    "BASE",
    "PREFIX",
    "a",
    "true",
    "SUM",
    "AVG",
    "GROUP_CONCAT",
    "SEPARATOR",
    "timestamp",
    "BOUND",
    "IF",
    "COALESCE",
    "REGEX",
    "NOW",
    "STRLEN",
    "LOAD",
    "INSERT",
    "?a",
    "?b",
    "$c",
    "_:b1",
    ":p0",
    "<http://x/>",
    "<rel>",
    "x:y",
    "1",
    "-1",
    "1.5",
    "2e0",
    "5s",
    "100ms",
    "PT10S",
    "P1Y",
    '"s"',
    "'q'",
    '"""',
    "'''",
    "@en",
    "^^",
    "^",
    "!",
    "|",
    "||",
    "&&",
    "/",
    "*",
    "+",
    "-",
    "=",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ".",
    ";",
    ",",
    "?",
    "$",
    ":",
    "_:",
    "#",
    "\\",
    "\\u0041",
    "\\uD800",
    "\\U00110000",
    "é",
    "·",
    "\ud7ff",
    "\x00",
    "%",
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(
        st.sampled_from([each for each in DIALECTS if each != "cqels2"]).flatmap(
            lambda dialect: queries(dialect)
        )
    )
    tokens = TOKEN.findall(text)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(0, len(tokens) - 1)))
        match draw(st.sampled_from(["delete", "insert", "replace", "double", "swap", "cut"])):
            case "delete":
                del tokens[place : place + 1]
            case "insert":
                tokens.insert(place, f" {draw(st.sampled_from(POOL))} ")
            case "replace":
                tokens[place : place + 1] = [draw(st.sampled_from(POOL))]
            case "double":
                tokens[place:place] = tokens[place : place + 5]
            case "swap":
                other = draw(st.integers(0, max(0, len(tokens) - 1)))
                if tokens:
                    tokens[place], tokens[other] = tokens[other], tokens[place]
            case "cut":
                del tokens[place:]
    return "".join(tokens)


def check(text: str, dialect: str | None) -> None:
    try:
        query = parse(text, dialect=dialect)
    except QuadweirError as problem:
        assert problem.message
        assert problem.code != "QW-INTERNAL"
        assert "Traceback" not in str(problem)
        if problem.span is not None:
            assert 1 <= problem.span.line <= text.count("\n") + 1
            line = text.split("\n")[problem.span.line - 1]
            assert 1 <= problem.span.column <= len(line) + 1
    else:
        assert read_query(render(query)) == query


@settings(max_examples=150)
@given(mutated(), st.sampled_from([None, *DIALECTS]))
def test_mutated_queries_only_raise_our_errors(text: str, dialect: str | None) -> None:
    check(text, dialect)


@settings(max_examples=120)
@given(st.lists(st.sampled_from(POOL), max_size=25), st.sampled_from([None, *DIALECTS]))
def test_word_salad_only_raises_our_errors(words: list[str], dialect: str | None) -> None:
    check(" ".join(words), dialect)


@settings(max_examples=100)
@given(st.text(max_size=60), st.sampled_from([None, *DIALECTS]))
def test_any_text_only_raises_our_errors(text: str, dialect: str | None) -> None:
    check(text, dialect)
