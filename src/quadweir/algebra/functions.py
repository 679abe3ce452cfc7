"""Every strict SPARQL function and operator, defined once: name, types, determinism, meaning.

`FUNCTIONS` is the table; `lookup` also finds what users registered by IRI. The evaluator calls through it; the compilers to array code and to Spark
columns look up the same signatures, and either know the name or fall back on the implementation
given here. What is not strict (`&&`, `||`, IF, COALESCE, BOUND, IN, EXISTS) decides itself which
of its parts to look at; it has nodes of its own in `expressions.py`.

Read `signatures.py` first: the types, and how terms become Python values and back.

Spec: https://www.w3.org/TR/sparql11-query/#SparqlOps
"""

from __future__ import annotations

import hashlib
import math
import random
import uuid
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from quadweir.algebra import geo, regex
from quadweir.algebra.casts import CASTS
from quadweir.algebra.moments import (
    Duration,
    DurationKind,
    ExpressionError,
    Moment,
    add_duration,
    from_epoch_ms,
    subtract_moments,
)
from quadweir.algebra.registered import registered
from quadweir.algebra.signatures import (
    Context,
    Determinism,
    Signature,
    Type,
    TypedFunction,
)
from quadweir.algebra.values import (
    EXACT,
    Number,
    NumberKind,
    arithmetic,
    compare,
    equal,
)
from quadweir.terms import IRI, RDF_LANG_STRING, BlankNode, Literal, Term, TripleTerm, triple_of

# A string that one call may make; REPLACE has the same bound.
_TEXT_LIMIT: Final = regex.RESULT_LIMIT


# --- operators --------------------------------------------------------------------------------


def _less(a: Term, b: Term) -> bool:
    return compare(a, b) == -1


def _greater(a: Term, b: Term) -> bool:
    return compare(a, b) == 1


def _at_most(a: Term, b: Term) -> bool:
    return compare(a, b) in (-1, 0)


def _at_least(a: Term, b: Term) -> bool:
    return compare(a, b) in (0, 1)


def _negate(number: Number) -> Number:
    if isinstance(number.value, float):
        return Number(number.kind, -number.value)
    return arithmetic("-", Number.integer(0), number)


def _add_durations(a: Duration, b: Duration) -> Duration:
    months, attoseconds = a.months + b.months, a.attoseconds + b.attoseconds
    if (months < 0 < attoseconds) or (attoseconds < 0 < months):
        raise ExpressionError("months and seconds of a duration have the same sign")
    kind = a.kind if a.kind is b.kind else DurationKind.DURATION
    return Duration(kind, months, attoseconds)


def _scale_duration(duration: Duration, factor: Number) -> Duration:
    return _changed(duration, lambda part: EXACT.multiply(part, _finite(factor)))


def _divide_duration(duration: Duration, divisor: Number) -> Duration:
    if not divisor.value:
        raise ExpressionError("division by zero")
    return _changed(duration, lambda part: EXACT.divide(part, _finite(divisor)))


def _finite(number: Number) -> Decimal:
    if isinstance(number.value, float) and not math.isfinite(number.value):
        raise ExpressionError("a duration is multiplied and divided by finite numbers")
    return Decimal(number.value)


def _changed(duration: Duration, change: Callable[[Decimal], Decimal]) -> Duration:
    # XPath rounds months to the nearest, ties upwards.
    months = EXACT.add(change(Decimal(duration.months)), Decimal("0.5"))
    return Duration(
        duration.kind,
        int(months.to_integral_value(ROUND_FLOOR)),
        int(change(Decimal(duration.attoseconds))),
    )


# --- terms ------------------------------------------------------------------------------------


def _str(term: Term) -> str:
    match term:
        case IRI():
            return term.value
        case Literal():
            return term.lexical
        case BlankNode():
            raise ExpressionError("a blank node has no string form")
        case TripleTerm():
            raise ExpressionError("a triple term has no string form")


def _triple(subject: Term, predicate: Term, end: Term) -> TripleTerm:
    made = triple_of(subject, predicate, end)
    if made is None:
        raise ExpressionError("no triple term has such a subject or predicate, or nests so deeply")
    return made


def _iri(text: str) -> IRI:
    # The parser has resolved what it could against the query's BASE; data has no base.
    iri = IRI(text)
    if not iri.is_valid():
        raise ExpressionError(f"not an absolute IRI: {text[:80]}")
    return iri


def _bnode(context: Context, label: str | None = None) -> BlankNode:
    if label is None:
        return context.fresh_blank_node()
    return context.blank_nodes.setdefault(label, context.fresh_blank_node())


def _strdt(lexical: str, datatype: IRI) -> Literal:
    if datatype == RDF_LANG_STRING:
        raise ExpressionError("a string with a language needs one: use STRLANG")
    return Literal(lexical, datatype)


def _strlang(lexical: str, language: str) -> Literal:
    if not regex.matches(language, "^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$"):
        raise ExpressionError(f'"{language[:40]}" is not a language tag')
    return Literal(lexical, language=language)


def _uuid(context: Context) -> uuid.UUID:
    return uuid.UUID(int=context.random.getrandbits(128), version=4)


def lang_matches(tag: str, language_range: str) -> bool:
    """Match a language tag against a basic range (RFC 4647).

    >>> lang_matches("en-GB", "en"), lang_matches("english", "en"), lang_matches("", "*")
    (True, False, False)
    """
    if language_range == "*":
        return bool(tag)
    tag, language_range = tag.lower(), language_range.lower()
    return tag == language_range or tag.startswith(language_range + "-")


# --- strings ----------------------------------------------------------------------------------


def _like(source: Literal, text: str) -> Literal:
    """Make a string with the language of `source`, which is a string literal."""
    return Literal(text, source.datatype, source.language)


def _check_compatible(first: Literal, second: Literal) -> None:
    # https://www.w3.org/TR/sparql11-query/#func-arg-compatibility
    if second.language is not None and first.language != second.language:
        raise ExpressionError("the arguments' languages differ")


def _substr(source: Literal, start: Number, length: Number | None = None) -> Literal:
    # XPath counts from 1 and takes positions p with start <= p < start + length.
    begin = int(start.value)
    end = len(source.lexical) + 1 if length is None else begin + int(length.value)
    return _like(source, source.lexical[max(begin, 1) - 1 : max(end, 1) - 1])


def _strbefore(source: Literal, part: Literal) -> Literal:
    _check_compatible(source, part)
    place = source.lexical.find(part.lexical)
    return Literal("") if place < 0 else _like(source, source.lexical[:place])


def _strafter(source: Literal, part: Literal) -> Literal:
    _check_compatible(source, part)
    place = source.lexical.find(part.lexical)
    if place < 0:
        return Literal("")
    return _like(source, source.lexical[place + len(part.lexical) :])


def _contains(source: Literal, part: Literal) -> bool:
    _check_compatible(source, part)
    return part.lexical in source.lexical


def _strstarts(source: Literal, part: Literal) -> bool:
    _check_compatible(source, part)
    return source.lexical.startswith(part.lexical)


def _strends(source: Literal, part: Literal) -> bool:
    _check_compatible(source, part)
    return source.lexical.endswith(part.lexical)


def _concat(*parts: Literal) -> Literal:
    if sum(len(part.lexical) for part in parts) > _TEXT_LIMIT:
        raise ExpressionError(f"CONCAT may make {_TEXT_LIMIT} characters")
    text = "".join(part.lexical for part in parts)
    languages = {part.language for part in parts}
    return _like(parts[0], text) if len(languages) == 1 else Literal(text)


def _encode_for_uri(source: Literal) -> str:
    return quote(source.lexical, safe="-_.~", errors="surrogatepass")


def _regex(text: Literal, pattern: str, flags: str = "") -> bool:
    return regex.matches(text.lexical, pattern, flags)


def _replace(text: Literal, pattern: str, replacement: str, flags: str = "") -> Literal:
    return _like(text, regex.replace(text.lexical, pattern, replacement, flags))


def _digest(algorithm: str, text: str) -> str:
    data = text.encode("utf-8", errors="surrogatepass")
    return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()


# --- numbers ----------------------------------------------------------------------------------


def _abs(number: Number) -> Number:
    if isinstance(number.value, float):
        return Number(number.kind, math.fabs(number.value))
    return _negate(number) if number.value < 0 else number


def _rounded(number: Number, mode: str) -> Number:
    value = number.value
    if isinstance(value, int):
        return number
    if isinstance(value, Decimal):
        shifted = EXACT.add(value, Decimal("0.5")) if mode == "round" else value
        rounding = ROUND_CEILING if mode == "ceil" else ROUND_FLOOR
        return Number.decimal(shifted.to_integral_value(rounding))
    if not math.isfinite(value):
        return number
    if mode == "round":
        # Ties go up; adding a half to 0.49999999999999994 would round it to 1 beforehand.
        below = math.floor(value)
        result = float(below if value - below < 0.5 else below + 1)
    else:
        result = float(math.ceil(value) if mode == "ceil" else math.floor(value))
    return Number(number.kind, math.copysign(result, value) if result == 0 else result)


# --- dates ------------------------------------------------------------------------------------


def _timezone(moment: Moment) -> Duration:
    if moment.offset is None:
        raise ExpressionError("the date has no time zone")
    return Duration(DurationKind.DAY_TIME, attoseconds=moment.offset * 60 * 10**18)


def _subtract_duration(moment: Moment, duration: Duration) -> Moment:
    return add_duration(moment, duration.negated())


# --- the table --------------------------------------------------------------------------------

_PER_SOLUTION: Final = Determinism.PER_SOLUTION
_PER_REPORT: Final = Determinism.PER_REPORT
_TERM, _IRI, _LITERAL = Type.TERM, Type.IRI, Type.LITERAL
_STRING, _TEXT, _BOOLEAN = Type.STRING, Type.TEXT, Type.BOOLEAN
_INTEGER, _NUMERIC, _DECIMAL = Type.INTEGER, Type.NUMERIC, Type.DECIMAL
_DURATION = Type.DURATION


def _date_parts() -> list[TypedFunction]:
    # SPARQL asks for dateTime only; XPath has the same functions for dates and times.
    date, time = (Type.DATE_TIME, Type.DATE), (Type.DATE_TIME, Type.TIME)
    zoned = (Type.DATE_TIME, Type.DATE, Type.TIME)

    def over(
        name: str, kinds: tuple[Type, ...], result: Type, meaning: Callable[..., Any]
    ) -> TypedFunction:
        return TypedFunction(name, tuple(Signature((kind,), result, meaning) for kind in kinds))

    return [
        over("YEAR", date, _INTEGER, lambda moment: moment.year),
        over("MONTH", date, _INTEGER, lambda moment: moment.month),
        over("DAY", date, _INTEGER, lambda moment: moment.day),
        over("HOURS", time, _INTEGER, lambda moment: moment.hour),
        over("MINUTES", time, _INTEGER, lambda moment: moment.minute),
        over("SECONDS", time, _DECIMAL, lambda moment: Number.decimal(moment.second)),
        over("TIMEZONE", zoned, Type.DAY_TIME_DURATION, _timezone),
        over("TZ", zoned, _STRING, Moment.zone),
    ]


def _moment_arithmetic(operator: str) -> tuple[Signature, ...]:
    """The signatures of `+` and `-` over dates, times and durations."""
    moments = (Type.DATE_TIME, Type.DATE, Type.TIME)
    if operator == "+":
        return (
            *(Signature((kind, _DURATION), kind, add_duration) for kind in moments),
            *(
                Signature((_DURATION, kind), kind, lambda duration, at: add_duration(at, duration))
                for kind in moments
            ),
            Signature((_DURATION, _DURATION), _DURATION, _add_durations),
        )
    return (
        *(Signature((kind, kind), Type.DAY_TIME_DURATION, subtract_moments) for kind in moments),
        *(Signature((kind, _DURATION), kind, _subtract_duration) for kind in moments),
        Signature((_DURATION, _DURATION), _DURATION, lambda a, b: _add_durations(a, b.negated())),
    )


def _operators() -> list[TypedFunction]:
    numbers = {
        operator: Signature(
            (_NUMERIC, _NUMERIC),
            _NUMERIC,
            partial(arithmetic, operator),
            promotes=True,
        )
        for operator in "+-*/"
    }
    two_terms = (_TERM, _TERM)
    return [
        TypedFunction("=", (Signature(two_terms, _BOOLEAN, equal),)),
        TypedFunction("!=", (Signature(two_terms, _BOOLEAN, lambda a, b: not equal(a, b)),)),
        TypedFunction("<", (Signature(two_terms, _BOOLEAN, _less),)),
        TypedFunction(">", (Signature(two_terms, _BOOLEAN, _greater),)),
        TypedFunction("<=", (Signature(two_terms, _BOOLEAN, _at_most),)),
        TypedFunction(">=", (Signature(two_terms, _BOOLEAN, _at_least),)),
        TypedFunction("!", (Signature((Type.TRUTH,), _BOOLEAN, lambda truth: not truth),)),
        TypedFunction("NEGATE", (Signature((_NUMERIC,), _NUMERIC, _negate, promotes=True),)),
        TypedFunction("+", (numbers["+"], *_moment_arithmetic("+"))),
        TypedFunction("-", (numbers["-"], *_moment_arithmetic("-"))),
        TypedFunction(
            "*",
            (
                numbers["*"],
                Signature((_DURATION, _NUMERIC), _DURATION, _scale_duration),
                Signature((_NUMERIC, _DURATION), _DURATION, lambda a, b: _scale_duration(b, a)),
            ),
        ),
        TypedFunction(
            "/", (numbers["/"], Signature((_DURATION, _NUMERIC), _DURATION, _divide_duration))
        ),
    ]


def _simple(
    name: str, arguments: tuple[Type, ...], result: Type, meaning: Callable[..., Any]
) -> TypedFunction:
    return TypedFunction(name, (Signature(arguments, result, meaning),))


def _on_terms() -> list[TypedFunction]:
    iris = (
        Signature((_IRI,), _IRI, lambda iri: iri),
        Signature((_STRING,), _IRI, _iri),
    )
    return [
        _simple("SAMETERM", (_TERM, _TERM), _BOOLEAN, lambda a, b: a == b),
        _simple("ISIRI", (_TERM,), _BOOLEAN, lambda term: isinstance(term, IRI)),
        _simple("ISURI", (_TERM,), _BOOLEAN, lambda term: isinstance(term, IRI)),
        _simple("ISBLANK", (_TERM,), _BOOLEAN, lambda term: isinstance(term, BlankNode)),
        _simple("ISLITERAL", (_TERM,), _BOOLEAN, lambda term: isinstance(term, Literal)),
        _simple("ISTRIPLE", (_TERM,), _BOOLEAN, lambda term: isinstance(term, TripleTerm)),
        _simple("TRIPLE", (_TERM, _TERM, _TERM), Type.TRIPLE, _triple),
        _simple("SUBJECT", (Type.TRIPLE,), _TERM, lambda triple: triple.subject),
        _simple("PREDICATE", (Type.TRIPLE,), _IRI, lambda triple: triple.predicate),
        _simple("OBJECT", (Type.TRIPLE,), _TERM, lambda triple: triple.object),
        _simple("ISNUMERIC", (_TERM,), _BOOLEAN, Type.NUMERIC.accepts),
        _simple("STR", (_TERM,), _STRING, _str),
        _simple("LANG", (_LITERAL,), _STRING, lambda literal: literal.language or ""),
        _simple("DATATYPE", (_LITERAL,), _IRI, lambda literal: literal.datatype),
        TypedFunction("IRI", iris),
        TypedFunction("URI", iris),
        TypedFunction(
            "BNODE",
            (
                Signature((), Type.BLANK_NODE, _bnode, needs_context=True),
                Signature((_STRING,), Type.BLANK_NODE, _bnode, needs_context=True),
            ),
            _PER_SOLUTION,
        ),
        _simple("STRDT", (_STRING, _IRI), _LITERAL, _strdt),
        _simple("STRLANG", (_STRING, _STRING), _TEXT, _strlang),
        TypedFunction(
            "UUID",
            (Signature((), _IRI, lambda c: IRI(_uuid(c).urn), needs_context=True),),
            _PER_SOLUTION,
        ),
        TypedFunction(
            "STRUUID",
            (Signature((), _STRING, lambda c: str(_uuid(c)), needs_context=True),),
            _PER_SOLUTION,
        ),
    ]


def _on_strings() -> list[TypedFunction]:
    two_texts = (_TEXT, _TEXT)
    return [
        _simple("STRLEN", (_TEXT,), _INTEGER, lambda text: len(text.lexical)),
        TypedFunction(
            "SUBSTR",
            (
                Signature((_TEXT, _INTEGER), _TEXT, _substr),
                Signature((_TEXT, _INTEGER, _INTEGER), _TEXT, _substr),
            ),
        ),
        _simple("UCASE", (_TEXT,), _TEXT, lambda text: _like(text, text.lexical.upper())),
        _simple("LCASE", (_TEXT,), _TEXT, lambda text: _like(text, text.lexical.lower())),
        _simple("STRSTARTS", two_texts, _BOOLEAN, _strstarts),
        _simple("STRENDS", two_texts, _BOOLEAN, _strends),
        _simple("CONTAINS", two_texts, _BOOLEAN, _contains),
        _simple("STRBEFORE", two_texts, _TEXT, _strbefore),
        _simple("STRAFTER", two_texts, _TEXT, _strafter),
        _simple("ENCODE_FOR_URI", (_TEXT,), _STRING, _encode_for_uri),
        TypedFunction("CONCAT", (Signature((_TEXT,), _TEXT, _concat, variadic=True),)),
        _simple("LANGMATCHES", (_STRING, _STRING), _BOOLEAN, lang_matches),
        TypedFunction(
            "REGEX",
            (
                Signature((_TEXT, _STRING), _BOOLEAN, _regex),
                Signature((_TEXT, _STRING, _STRING), _BOOLEAN, _regex),
            ),
        ),
        TypedFunction(
            "REPLACE",
            (
                Signature((_TEXT, _STRING, _STRING), _TEXT, _replace),
                Signature((_TEXT, _STRING, _STRING, _STRING), _TEXT, _replace),
            ),
        ),
        *(
            _simple(name.upper(), (_STRING,), _STRING, partial(_digest, name))
            for name in ("md5", "sha1", "sha256", "sha384", "sha512")
        ),
    ]


def _on_numbers() -> list[TypedFunction]:
    def same_type(name: str, meaning: Callable[..., Any]) -> TypedFunction:
        return TypedFunction(name, (Signature((_NUMERIC,), _NUMERIC, meaning, promotes=True),))

    def random_number(context: Context) -> Number:
        return Number(NumberKind.DOUBLE, context.random.random())

    return [
        same_type("ABS", _abs),
        same_type("CEIL", lambda number: _rounded(number, "ceil")),
        same_type("FLOOR", lambda number: _rounded(number, "floor")),
        same_type("ROUND", lambda number: _rounded(number, "round")),
        TypedFunction(
            "RAND", (Signature((), Type.DOUBLE, random_number, needs_context=True),), _PER_SOLUTION
        ),
    ]


def _on_time() -> list[TypedFunction]:
    return [
        TypedFunction(
            "NOW",
            (Signature((), Type.DATE_TIME, lambda c: c.now, needs_context=True),),
            _PER_REPORT,
        ),
        *_date_parts(),
    ]


FUNCTIONS: Final[Mapping[str | IRI, TypedFunction]] = MappingProxyType(
    {
        function.name: function
        for function in (
            *_operators(),
            *_on_terms(),
            *_on_strings(),
            *_on_numbers(),
            *_on_time(),
            *CASTS,
            *geo.FUNCTIONS,
        )
    }
)

# TIMESTAMP looks at the element that bound its variable, not at the variable's value, or at the
# elements that carry a triple. So it has a type and a determinism but no implementation over terms;
# the caller that holds the elements provides one.
TIMESTAMP: Final = TypedFunction(
    "TIMESTAMP",
    (Signature((_TERM,), _INTEGER, None), Signature((_TERM, _TERM, _TERM), _INTEGER, None)),
)


def lookup(name: str | IRI) -> TypedFunction | None:
    """Find a function or operator: in the table, or among those that users registered by IRI.

    >>> lookup("UCASE").name, lookup(IRI("urn:nobody:knows"))
    ('UCASE', None)
    """
    found = FUNCTIONS.get(name)
    if found is None and isinstance(name, IRI):
        return registered(name)
    return TIMESTAMP if name == TIMESTAMP.name else found


def is_volatile(name: str | IRI) -> bool:
    """Whether a function's value may change although its arguments do not.

    An unknown function is always an error.
    """
    found = lookup(name)
    return found is not None and found.determinism is not Determinism.PURE


def call(name: str | IRI, arguments: tuple[Term, ...], context: Context) -> Term:
    """Call a function or operator by name.

    Raises:
        ExpressionError: the function is not known, or has no value for these arguments.

    >>> from quadweir.algebra.signatures import Context
    >>> call("UCASE", (Literal("salut", language="fr"),), Context()).lexical
    'SALUT'
    """
    function = lookup(name)
    if function is None:
        raise ExpressionError(f"no function {name}")
    return function(arguments, context)


def default_context(now_ms: int = 0, seed: int = 0) -> Context:
    """Make a context with a fixed clock and a seeded source of random numbers."""
    return Context(now=from_epoch_ms(now_ms), random=random.Random(seed))
