"""Literals have the same value in the engine and in the oracle, which share no code for it.

Nor does the oracle rely on Oxigraph for it, but for strings, rounding, and sums of dates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from hypothesis import example, given
from hypothesis import strategies as st

from odd_numbers import ODD_NUMBERS
from quadweir.algebra import values
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import Solutions, evaluate
from quadweir.algebra.moments import ExpressionError
from quadweir.syntax import parse
from quadweir.terms import IRI, BlankNode, Literal, Quad, Term
from quadweir.testing import Oracle, literals
from quadweir.vocab import XSD

Found = TypeVar("Found")

_DIGITS = st.text("0123456789", min_size=1, max_size=24)
_SIGNS = st.sampled_from(["", "", "-", "+"])
_WHOLE = st.builds(lambda sign, digits: sign + digits, _SIGNS, _DIGITS)
_POINTED = st.builds(
    lambda sign, digits, place: sign + digits[:place] + "." + digits[place:],
    _SIGNS,
    _DIGITS,
    st.integers(0, 24),
)
_SCIENTIFIC = st.builds(
    lambda number, power: f"{number}e{power}",
    _WHOLE | _POINTED,
    st.integers(-350, 350) | st.integers(-3, 3),
)
_ZONES = st.sampled_from(["", "", "Z", "+00:00", "-00:30", "+05:30", "+14:00", "-14:00", "+15:00"])
_YEARS = st.sampled_from(["2024", "2023", "1972", "0000", "-0001", "10000", "123456"])
_MONTHS, _DAYS = (
    st.sampled_from(["01", "02", "12", "13", "00"]),
    st.sampled_from(["01", "28", "29", "31"]),
)
_CLOCKS = st.sampled_from(
    ["00:00:00", "23:59:59.999", "12:00:00.0", "24:00:00", "24:00:01", "09:30:00.5", "10:60:00"]
)
_LENGTHS = st.builds(
    lambda sign, years, months, days, hours, seconds: (
        sign + "P" + years + months + days + ("T" + hours + seconds if hours or seconds else "")
    ),
    st.sampled_from(["", "-"]),
    *(
        st.sampled_from(["", *choices])
        for choices in (["1Y", "0Y"], ["12M", "1M"], ["30D", "31D", "1D"], ["24H"], ["0S", "1.50S"])
    ),
)


def _typed(texts: st.SearchStrategy[str], *kinds: str) -> st.SearchStrategy[Literal]:
    return st.builds(
        lambda text, kind: Literal(text, IRI(XSD[kind])), texts, st.sampled_from(kinds)
    )


LITERALS = st.one_of(
    st.sampled_from(ODD_NUMBERS),
    _typed(
        _WHOLE, "integer", "int", "byte", "unsignedLong", "negativeInteger", "decimal", "double"
    ),
    _typed(_POINTED, "decimal", "double", "float", "integer"),
    _typed(_SCIENTIFIC, "double", "float", "decimal"),
    _typed(st.sampled_from(["true", "false", "1", "0", "TRUE", ""]), "boolean", "string"),
    _typed(st.builds("{}-{}-{}{}".format, _YEARS, _MONTHS, _DAYS, _ZONES), "date"),
    _typed(st.builds("{}-{}-{}T{}{}".format, _YEARS, _MONTHS, _DAYS, _CLOCKS, _ZONES), "dateTime"),
    _typed(st.builds("{}{}".format, _CLOCKS, _ZONES), "time"),
    _typed(st.builds("{}{}".format, _YEARS, _ZONES), "gYear"),
    _typed(st.builds("{}-{}{}".format, _YEARS, _MONTHS, _ZONES), "gYearMonth"),
    _typed(st.builds("--{}{}".format, _MONTHS, _ZONES), "gMonth"),
    _typed(st.builds("--{}-{}{}".format, _MONTHS, _DAYS, _ZONES), "gMonthDay"),
    _typed(st.builds("---{}{}".format, _DAYS, _ZONES), "gDay"),
    _typed(_LENGTHS, "duration", "dayTimeDuration", "yearMonthDuration"),
    st.builds(Literal, st.sampled_from(["", "a", "b", "\U0001f600", "\uffff"])),
    st.builds(Literal, st.sampled_from("ab"), language=st.sampled_from(["en", "de"])),
    st.builds(Literal, st.sampled_from("a1"), st.just(IRI("urn:unknown"))),
)
TERMS = LITERALS | st.sampled_from([IRI("urn:a"), IRI("urn:b"), BlankNode("a"), BlankNode("b")])


def found(ask: Callable[[], Found]) -> Found | None:
    """Ask the engine; None is an error, as it is to the oracle."""
    try:
        return ask()
    except ExpressionError:
        return None


@given(LITERALS)
def test_the_same_literals_have_a_value_and_the_same_truth(literal: Literal) -> None:
    assert (values.value_of(literal) is None) == (literals.read(literal) is None)
    assert found(lambda: values.effective_boolean_value(literal)) == literals.truth(literal)


@example(Literal("2006-08-23Z", IRI(XSD.date)), Literal("2006-08-23", IRI(XSD.date)))
@example(Literal("xyz", language="en"), Literal("xyz", IRI("urn:unknown")))
@given(TERMS, TERMS)
def test_terms_compare_the_same(left: Term, right: Term) -> None:
    assert found(lambda: values.equal(left, right)) == literals.equal(left, right)
    try:
        order = values.compare(left, right)
    except ExpressionError:
        assert literals.less(left, right) is None
        assert literals.at_most(left, right) is None
    else:
        assert literals.less(left, right) == (order is not None and order < 0)
        assert literals.at_most(left, right) == (order is not None and order <= 0)


@given(TERMS, TERMS)
def test_terms_have_the_same_order(left: Term, right: Term) -> None:
    a, b = values.order_key(left), values.order_key(right)
    one, other = literals.order_key(left), literals.order_key(right)
    assert (a < b, a == b) == (one < other, one == other)


@given(st.sampled_from("+-*/"), LITERALS, LITERALS)
def test_numbers_add_up_to_the_same(operator: str, left: Literal, right: Literal) -> None:
    a, b = values.value_of(left), values.value_of(right)
    one, other = literals.read(left), literals.read(right)
    if not isinstance(a, values.Number) or not isinstance(b, values.Number):
        assert not isinstance(one, literals.OracleNumber) or not isinstance(
            other, literals.OracleNumber
        )
        return
    assert isinstance(one, literals.OracleNumber)
    assert isinstance(other, literals.OracleNumber)
    expected = literals.calculate(operator, one, other)
    given_by_engine = found(lambda: values.literal_of(values.arithmetic(operator, a, b)))
    assert given_by_engine == (None if expected is None else literals.spell(expected))


_CASTS = [
    f"xsd:{name}(?b)"
    for name in (
        *("string", "boolean", "integer", "decimal", "double", "float", "long", "unsignedByte"),
        *("dateTime", "date", "time", "duration", "dayTimeDuration", "yearMonthDuration"),
    )
]
_FUNCTIONS = [
    f"{name}(?b)"
    for name in (
        *("ABS", "ROUND", "CEIL", "FLOOR", "isNumeric", "STR", "LANG", "DATATYPE", "STRLEN"),
        *("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TZ", "TIMEZONE"),
    )
]
_OPERATORS = [f"?b {operator} ?c" for operator in ("+", "-", "*", "/", "=", "!=", "<", ">=")]
_OTHERS = [
    "-?b",
    "!?b",
    "?b && ?c",
    "?b || ?c",
    "?b IN (?c, 1)",
    "IF(?b, ?c, 0)",
    "COALESCE(?b + ?c, ?b)",
    "sameTerm(?b, ?c)",
    "STRDT(STR(?b), DATATYPE(?c))",
    "xsd:string(?b * ?c)",
]


@given(
    st.sampled_from([*_CASTS, *_FUNCTIONS, *_OPERATORS, *_OPERATORS, *_OTHERS]),
    st.lists(LITERALS, min_size=4, max_size=8),
)
def test_expressions_have_the_same_value(expression: str, terms: list[Literal]) -> None:
    static = [Quad(IRI(f"urn:{n}"), IRI("urn:p"), term) for n, term in enumerate(terms)]
    pattern = f"?x <urn:p> ?b . ?y <urn:p> ?c BIND({expression} AS ?found)"
    text = f"PREFIX xsd: <{XSD['']}> SELECT ?b ?c ?found {{ {pattern} }}"
    query = parse(text, dialect="cqels")
    solutions = evaluate(query, Dataset.of(static))
    assert isinstance(solutions, Solutions)
    engine = Counter(tuple(sorted((v.name, t) for v, t in row.items())) for row in solutions.rows)
    oracle = Counter(answer.solution for answer in Oracle(query, static=static).answers([]))
    assert engine == oracle


_AGGREGATES = [
    f"({name}({distinct}?b) AS ?v{number}{len(distinct)})"
    for number, name in enumerate(("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"))
    for distinct in ("", "DISTINCT ")
]


@given(st.lists(st.sampled_from(ODD_NUMBERS), max_size=6), st.lists(LITERALS, max_size=1))
def test_aggregates_have_the_same_value(numbers: list[Literal], more: list[Literal]) -> None:
    static = [Quad(IRI(f"urn:{n}"), IRI("urn:p"), term) for n, term in enumerate([*numbers, *more])]
    query = parse(f"SELECT {' '.join(_AGGREGATES)} {{ ?x <urn:p> ?b }}", dialect="cqels")
    solutions = evaluate(query, Dataset.of(static))
    assert isinstance(solutions, Solutions)
    (row,) = solutions.rows
    (answer,) = Oracle(query, static=static).answers([])
    assert tuple(sorted((v.name, term) for v, term in row.items())) == answer.solution
