"""Text to parse tree: one cached LALR parser per dialect, and its errors in plain words."""

from __future__ import annotations

import re
import threading
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, Final

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_analysis import Shift

from quadweir.errors import NotImplementedYetError, QuerySyntaxError, UnsupportedError
from quadweir.syntax.lexing import LeanContextualLexer
from quadweir.syntax.newer import newer_syntax
from quadweir.syntax.scan import SourceText, last_unclosed

_GRAMMARS: Final = {
    "sparql": ("sparql.lark",),
    "rspql": ("sparql.lark", "windows.lark", "rspql.lark"),
    "csparql": ("sparql.lark", "windows.lark", "csparql.lark"),
    "cqels": ("sparql.lark", "windows.lark", "cqels.lark"),
    "cqels2": ("sparql.lark", "windows.lark", "cqels.lark"),
    "sparqlstream": ("sparql.lark", "windows.lark", "sparqlstream.lark"),
}
_USUAL: Final = ("rspql", "cqels", "csparql")
TITLES: Final = {
    "sparql": "SPARQL",
    "rspql": "RSP-QL",
    "csparql": "C-SPARQL",
    "cqels": "CQELS-QL",
    "cqels2": "CQELS 2",
    "sparqlstream": "SPARQLStream",
}
_PLAIN_WORDS: Final = {
    "VAR": "a variable",
    "IRIREF": "an IRI",
    "PNAME": "an IRI",
    "PNAME_NS": "a prefix and a colon",
    "STRING": "a literal",
    "NUMBER": "a literal",
    "SIGNED_NUMBER": "a literal",
    "BOOLEAN": "a literal",
    "BLANK_NODE_LABEL": "a blank node",
    "LANGTAG": "a language tag",
    "FUNCTION": "a function",
    "AGGREGATE": "an aggregate",
    "OPERATOR": "an operator",
    "STAR": "'*'",
    "PLUS": "'+'",
    "HYPHEN": "'-'",
    "SLASH": "'/'",
    "UNIT": "a unit such as s or ms",
    "AMOUNT": "a duration",
    "ISO_DURATION": "a duration",
    "INTEGER": "a whole number",
    "NAME": "a name",
    "A": "'a'",
    "$END": "the end of the query",
    "LBRACE": "'{'",
    "TRIPLE_TERM": "'<<('",
    "TRIPLE_TERM_END": "')>>'",
    "REIFIED": "'<<'",
    "REIFIED_END": "'>>'",
    "ANNOTATION": "'{|'",
    "ANNOTATION_END": "'|}'",
    "TILDE": "'~'",
    "RBRACE": "'}'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LBRACKET": "'['",
    "LSQB": "'['",
    "RSQB": "']'",
    "DOT": "'.'",
    "SEMICOLON": "';'",
    "COMMA": "','",
    "VBAR": "'|'",
    "INVERSE": "'^'",
    "__ANON_0": "'^^'",
    "CIRCUMFLEX": "'^'",
    "QUESTION": "'?'",
    "BANG": "'!'",
    "AT": "'@'",
    "EQUAL": "'='",
    "EQ": "'='",
}
_UPDATE: Final = frozenset(
    ("INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH")
)
# What CQELS 2 has words for and Quadweir has not, and what to write instead.
_EVENTS: Final = {
    "SEQ": (
        "SEQ, CQELS 2's pattern of events one after the other,",
        "Join STREAM blocks, and compare when their variables were bound: "
        "FILTER(timestamp(?first) < timestamp(?second)).",
    ),
    "PAST": (
        "PAST, a stretch of a stream before an event,",
        "A stretch before now is a window in RSP-QL: [FROM NOW-20s TO NOW-10s].",
    ),
    "FUTURE": (
        "FUTURE, a stretch of a stream after an event,",
        "A window holds what has happened: take one that is long enough for both events, and "
        "compare when they came: FILTER(timestamp(?event) < timestamp(?later)).",
    ),
}
_SHOWN: Final = 8
# `ORDER BY ?v DESC`, as in SQL: SPARQL has the word before, and brackets.
_SQL_ORDER: Final = re.compile(r"([?$]\w+)\s+(ASC|DESC)\s*\Z", re.IGNORECASE)


@cache
def grammar_text(dialect: str) -> str:
    """The whole grammar of a dialect as one text."""
    folder = files("quadweir.syntax")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in _GRAMMARS[dialect])


@cache
def _parser(grammar: str) -> Lark:
    # Building the tables takes some 0.2 s, once for each dialect that a process meets. That is
    # less than importing pyarrow, so they are not kept on disk: Lark's own cache is a pickle in
    # a shared folder, which we would rather not load.
    return Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start="unit",
        maybe_placeholders=False,
        _plugins={"ContextualLexer": LeanContextualLexer},
    )


def parser_for(dialect: str) -> Lark:
    """The parser of a dialect, built on first use."""
    return _parser(grammar_text(dialect))


def build_ahead() -> None:
    """Build the parsers of the usual dialects in a thread, so that the first query need not wait."""

    def build() -> None:
        for dialect in _USUAL:
            parser_for(dialect)

    threading.Thread(target=build, name="quadweir-parsers", daemon=True).start()


def parse_tree(source: SourceText, dialect: str) -> Tree[Token]:
    """Parse a text, or say where and why that is not possible."""
    try:
        return parser_for(dialect).parse(source.text)
    except UnexpectedInput as problem:
        raise _explain(problem, source, dialect) from None


def expected_words(terminals: set[str]) -> str:
    """The tokens that could have come, in plain words.

    >>> expected_words({"VAR", "IRIREF", "PNAME"})
    'a variable or an IRI'
    """
    if "OPERATOR" in terminals:
        terminals = terminals - {"STAR", "PLUS", "HYPHEN", "SLASH"}
    words = sorted({_PLAIN_WORDS.get(name, name) for name in terminals}, key=_by_kind)
    if len(words) > _SHOWN:
        words = [*words[: _SHOWN - 1], f"{len(words) - _SHOWN + 1} other things"]
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _by_kind(word: str) -> tuple[int, str]:
    # Words that a reader knows first, then keywords, then punctuation.
    if word.startswith("a"):
        return 0, word
    if word.startswith("'"):
        return 2, word
    return 1, word


def _explain(problem: UnexpectedInput, source: SourceText, dialect: str) -> Exception:
    text = source.text
    expected: set[str] = set()
    start = end = len(text.rstrip())
    shown = ""
    ended = False
    match problem:
        case UnexpectedToken(token=token):
            expected = _acceptable(problem.state) or set(problem.expected)
            ended = token.type == "$END"
            if not ended:
                start, end = token.start_pos or 0, token.end_pos or len(text)
                shown = str(token)
        case UnexpectedCharacters():
            expected = _acceptable(problem.state) or set(problem.allowed or ())
            start = problem.pos_in_stream or 0
            end = start + max(1, len(_word_at(text, start)))
            shown = text[start:end]
        case UnexpectedEOF():
            expected = set(problem.expected)
            ended = True
        case _:
            start = problem.pos_in_stream or 0
    span = source.span(start, end)
    if "SELECT" in expected and _word_at(text, start) in _UPDATE:
        return UnsupportedError(
            f"{_word_at(text, start)} is SPARQL Update, and Quadweir only answers queries",
            hint="Write a SELECT, CONSTRUCT, ASK or DESCRIBE query.",
            span=span,
        )
    newer = None if ended else newer_syntax(text, start)
    if newer is not None:
        what, instead = newer
        return NotImplementedYetError(
            f"{what} of RDF 1.2 is not supported",
            detail="Of RDF 1.2 and SPARQL 1.2, Quadweir reads triple terms and what belongs to them.",
            hint=instead,
            span=span,
        )
    if not ended and dialect in ("csparql", "cqels", "cqels2"):
        event = _EVENTS.get(_word_at(text, start))
        if event is not None:
            what, instead = event
            return UnsupportedError(
                f"{what} is not supported",
                detail="Quadweir evaluates relations over windows; it has no event patterns.",
                hint=instead,
                span=span,
            )
    what = "the query ends too early" if ended else f"unexpected {_shorten(shown)!r}"
    detail = f"Expected {expected_words(expected)}." if expected else None
    return QuerySyntaxError(
        f"{what} in this {TITLES[dialect]} query",
        detail=detail,
        hint=_hint(source, dialect, start, ended, expected),
        span=span,
    )


def _acceptable(state: Any) -> set[str]:
    """The terminals that could really come next.

    A state of an LALR table also lists what may follow the same words elsewhere, so each candidate
    is tried on a copy of the stack.
    """
    table = state.parse_conf.parse_table.states
    ends = state.parse_conf.parse_table.end_states.values()
    found: set[str] = set()
    for terminal in table[state.state_stack[-1]]:
        if terminal != "$END" and not terminal.isupper():
            continue  # a rule
        stack = list(state.state_stack)
        while (step := table[stack[-1]].get(terminal)) is not None:
            action, argument = step
            if action is Shift:
                found.add(terminal)
                break
            if argument.expansion:
                del stack[-len(argument.expansion) :]
            stack.append(table[stack[-1]][argument.origin.name][1])
            if terminal == "$END" and stack[-1] in ends:
                found.add(terminal)
                break
    return found


def _hint(
    source: SourceText, dialect: str, start: int, ended: bool, expected: set[str]
) -> str | None:
    text = source.text
    ordered = _SQL_ORDER.search(text, max(0, start - 200), start)
    if ordered is not None and expected == {"LPAR"}:
        return f"Write ORDER BY {ordered[2].upper()}({ordered[1]})."
    if ended:
        unclosed = last_unclosed(text)
        if unclosed is not None:
            place = source.span(unclosed.start)
            return (
                f"The {unclosed.text!r} of line {place.line}, column {place.column} is not closed."
            )
        return None
    if "UNIT" in expected or "ISO_DURATION" in expected:
        return "Write durations as PT10S, 10s, 100ms or 1h30m."
    word = _word_at(text, start)
    if text.startswith("<<(", start):
        return "A triple term <<( ... )>> can only be an object; << ... >> stands for its reifier."
    if text[start] in "\"'":
        return "Close the string, and write only the escapes \\t \\b \\n \\r \\f \\\" \\' and \\\\."
    if text[start] == "<":
        return "An IRI holds no spaces, quotes or braces."
    if word == "WINDOW" and dialect != "rspql":
        return "WINDOW belongs to RSP-QL; is the dialect right?"
    if word == "STREAM" and dialect == "rspql":
        return "RSP-QL declares FROM NAMED WINDOW <w> ON STREAM <s> [...] and uses WINDOW <w> { }."
    if word == "STREAM" and dialect == "csparql":
        return "STREAM inside WHERE belongs to CQELS-QL; C-SPARQL has FROM STREAM <s> [...]."
    if word == "RANGE" and dialect == "sparqlstream":
        return "SPARQLStream windows reach back from now: [NOW - 10 S SLIDE 1 S]."
    if word in ("STREAM", "REGISTER", "WINDOW") and dialect == "sparql":
        return "This is a streaming query; name its dialect."
    if (
        word in ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
        and "VAR" in expected
    ):
        return f"Give the aggregate a name: ({word}(...) AS ?{word.lower()})."
    near = get_close_matches(word, [name for name in expected if name.isalpha()], n=1, cutoff=0.75)
    return f"Did you mean {near[0]}?" if near else None


def _word_at(text: str, start: int) -> str:
    end = start
    while end < len(text) and end < start + 40 and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[start:end].upper()


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
