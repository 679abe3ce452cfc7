"""Expressions over columns give what they give one solution at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quadweir.algebra.expressions import (
    ARITHMETIC,
    COMPARISONS,
    And,
    Arithmetic,
    Bound,
    Coalesce,
    Compare,
    Constant,
    Exists,
    Expression,
    FunctionCall,
    If,
    In,
    Negate,
    Not,
    Or,
    VariableExpression,
)
from quadweir.algebra.functions import default_context
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.patterns import BasicPattern
from quadweir.algebra.scalar import evaluate_expression, holds
from quadweir.algebra.solutions import Solution, time_term, time_variable
from quadweir.errors import InternalError
from quadweir.kernel import distinctcalls
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.expressions import Vectorized
from quadweir.terms import IRI, BlankNode, Literal, Term, Variable
from quadweir.vocab import XSD
from terms_strategy import BLANK_NODES, IRIS, LITERALS

A, B, C = Variable("a"), Variable("b"), Variable("c")


def literal(lexical: str, datatype: str) -> Literal:
    return Literal(lexical, IRI(XSD[datatype]))


EDGES = [
    0,
    1,
    -1,
    5,
    2**53,
    2**53 + 1,
    2**61 - 1,
    2**61,
    -(2**61),
    2**62,
    2**63 - 1,
    -(2**63),
    2**63,
]
integers = st.builds(
    literal,
    st.sampled_from(EDGES).map(str)
    | st.integers(-9, 9).map(str)
    | st.sampled_from(["007", "+5", "-0", "x"]),
    st.sampled_from(["integer", "integer", "long", "byte", "nonNegativeInteger"]),
)
decimals = st.builds(
    literal,
    st.sampled_from(["0", "0.0", "5.0", "1.5", "-1.50", "0.1", "x", "9007199254740993", "-0.0"])
    | st.sampled_from(
        ["9007199254740993.000000000000000001", "99999999999999999999.5", "1" + "0" * 20]
    )
    | st.sampled_from(["9223372036854775807.1", "-9223372036854775808", "0.0000000000000000001"])
    | st.decimals(-100, 100, places=2).map(str),
    st.just("decimal"),
)
floats = st.builds(
    literal,
    st.sampled_from(
        ["0", "-0", "NaN", "INF", "-INF", "1e0", "5", "0.1", "1e300", "9007199254740993", "x"]
    )
    | st.sampled_from(["16777217", "16777216", "3.5e38", "1e-320"])
    | st.floats(-100, 100).map(repr),
    st.sampled_from(["double", "float"]),
)
others = st.sampled_from(
    [
        literal("true", "boolean"),
        literal("1", "boolean"),
        literal("false", "boolean"),
        literal("maybe", "boolean"),
        literal("2020-01-01T00:00:00Z", "dateTime"),
        literal("2020-01-01T01:00:00+01:00", "dateTime"),
        literal("2020-01-01T00:00:00", "dateTime"),
        literal("2020-01-09T00:00:00.000000000000000001Z", "dateTime"),
        literal("-2020-01-09T00:00:00Z", "dateTime"),
        literal("999999999-01-09T00:00:00Z", "dateTime"),
        literal("2020-01-01", "date"),
        literal("2020-01-01Z", "date"),
        literal("10:00:00Z", "time"),
        literal("PT60M", "dayTimeDuration"),
        literal("PT1H", "duration"),
        literal("P1M", "duration"),
        literal("P30D", "duration"),
        literal("a", "hexBinary"),
        Literal(""),
        Literal("a"),
        Literal("b"),
        Literal("a", language="en"),
        Literal("b", language="en"),
        Literal("a", language="fr"),
        Literal("a", IRI("urn:type")),
        Literal("b", IRI("urn:type")),
        IRI("urn:a"),
        IRI("urn:b"),
        BlankNode("a"),
        BlankNode("b"),
    ]
)
values = integers | decimals | floats | others
terms = values | IRIS | BLANK_NODES | LITERALS
variables = st.sampled_from([A, B, C])
reads = st.builds(lambda each: VariableExpression(variable=each), variables)
constants = st.builds(
    lambda term: Constant(term=term), values.filter(lambda term: not isinstance(term, BlankNode))
)
FUNCTIONS_OF_ONE = ["STR", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "ABS", "STRLEN"]
FUNCTIONS_OF_TWO = ["SAMETERM", "STRSTARTS", "CONCAT", "STRDT", "ISIRI", "NOSUCH"]


def extend(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    some = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(lambda parts: And(parts=parts), some),
        st.builds(lambda parts: Or(parts=parts), some),
        st.builds(lambda part: Not(operand=part), inner),
        st.builds(lambda part: Negate(operand=part), inner),
        st.builds(
            lambda op, a, b: Compare(operator=op, left=a, right=b),
            st.sampled_from(COMPARISONS),
            inner,
            inner,
        ),
        st.builds(
            lambda op, a, b: Arithmetic(operator=op, left=a, right=b),
            st.sampled_from(ARITHMETIC),
            inner,
            inner,
        ),
        st.builds(
            lambda a, choices, no: In(operand=a, choices=tuple(choices), negated=no),
            inner,
            st.lists(inner, max_size=3) | st.lists(constants, min_size=9, max_size=10),
            st.booleans(),
        ),
        st.builds(lambda a, b, c: If(condition=a, then=b, otherwise=c), inner, inner, inner),
        st.builds(lambda parts: Coalesce(arguments=parts), some),
        st.builds(lambda each: Bound(variable=each), variables),
        st.builds(
            lambda name, part: FunctionCall(function=name, arguments=(part,)),
            st.sampled_from(FUNCTIONS_OF_ONE) | st.just(IRI(XSD.decimal)),
            inner,
        ),
        st.builds(
            lambda name, a, b: FunctionCall(function=name, arguments=(a, b)),
            st.sampled_from(FUNCTIONS_OF_TWO),
            inner,
            inner,
        ),
        st.builds(
            lambda part: FunctionCall(function="TIMESTAMP", arguments=(part,)), reads | inner
        ),
    )


expressions = st.recursive(reads | constants, extend, max_leaves=6)
solutions = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            A: terms,
            B: terms,
            C: terms,
            time_variable(A): st.integers(-5, 2**42).map(time_term),
        },
    ),
    max_size=12,
)


def expected(expression: Expression, solution: Solution) -> Term | None:
    try:
        return evaluate_expression(expression, solution, default_context(), no_exists)
    except ExpressionError:
        return None


def no_exists(pattern: object, solution: object) -> bool:
    raise AssertionError


def columns(dictionary: Dictionary, rows: list[Solution]) -> dict[Variable, np.ndarray]:
    names = {each for row in rows for each in row}
    return {
        name: dictionary.numbers([str(row[name]) if name in row else "" for row in rows])
        for name in names
    }


def check(expression: Expression, rows: list[Solution]) -> None:
    dictionary = Dictionary()
    vectorized = Vectorized(expression, dictionary)
    given_columns = columns(dictionary, rows)
    numbers = vectorized.values(given_columns, len(rows))
    found = [dictionary.term(each) if each else None for each in numbers.tolist()]
    assert found == [expected(expression, row) for row in rows]
    truth = vectorized.truth(given_columns, len(rows)).tolist()
    assert truth == [holds(expression, row, default_context(), no_exists) for row in rows]


@given(expressions, solutions)
def test_columns_give_what_single_solutions_give(
    expression: Expression, rows: list[Solution]
) -> None:
    check(expression, rows)


ONE = literal("1", "integer")


@given(st.lists(st.tuples(terms, terms), max_size=40))
@example([(literal("NaN", "double"),) * 2])
@example([(Literal("a", IRI("urn:t")),) * 2])
@example([(literal("5", "integer"), literal("5.000", "decimal"))])
@example([(literal(str(2**53 + 1), "integer"), literal(f"{2**53}.5", "decimal"))])
@example([(literal(str(2**53 + 1), "integer"), literal(str(2**53), "double"))])
@example([(literal("16777217", "integer"), literal("16777216", "float"))])
@example(
    [(literal("2020-01-01T00:00:00", "dateTime"), literal("2020-01-01T00:00:00Z", "dateTime"))]
)
def test_any_two_terms_compare_as_single_ones_do(pairs: list[tuple[Term, Term]]) -> None:
    rows: list[Solution] = [{A: left, B: right} for left, right in pairs]
    left, right = VariableExpression(variable=A), VariableExpression(variable=B)
    for operator in COMPARISONS:
        check(Compare(operator=operator, left=left, right=right), rows)


@given(st.lists(st.tuples(integers, integers), max_size=40))
def test_integers_are_added_and_multiplied_up_to_64_bits(pairs: list[tuple[Term, Term]]) -> None:
    rows: list[Solution] = [{A: left, B: right} for left, right in pairs]
    left, right = VariableExpression(variable=A), VariableExpression(variable=B)
    for operator in ARITHMETIC:
        check(Arithmetic(operator=operator, left=left, right=right), rows)


def test_parts_of_a_conjunction_see_only_the_rows_that_are_open() -> None:
    left, right = VariableExpression(variable=A), VariableExpression(variable=B)
    above = Compare(operator=">", left=left, right=Constant(term=literal("8", "integer")))
    starts = FunctionCall(function="STRSTARTS", arguments=(right, Constant(term=Literal("x"))))
    texts: list[Term] = [Literal("xa"), Literal("a"), IRI("urn:x")]
    rows: list[Solution] = [
        {A: literal(str(n), "integer"), B: text} for n in range(10) for text in texts
    ]
    rows += [{B: text} for text in texts]
    check(And(parts=(above, starts)), rows)
    check(Or(parts=(Not(operand=above), starts)), rows)


def test_constants_are_found_again_after_a_restore() -> None:
    expression = Compare(
        operator="=", left=VariableExpression(variable=A), right=Constant(term=IRI("urn:a"))
    )
    dictionary = Dictionary()
    vectorized = Vectorized(expression, dictionary)
    numbers = dictionary.numbers(["<urn:x>", "<urn:a>"])
    assert vectorized.truth({A: numbers}, 2).tolist() == [False, True]
    other = Dictionary()
    numbers = other.numbers(["<urn:a>", "<urn:y>", "<urn:z>", "<urn:w>"])
    other.hold(numbers)
    dictionary.restore(other.arrays())
    assert vectorized.truth({A: numbers}, 4).tolist() == [True, False, False, False]


def test_constants_outlive_the_step() -> None:
    constant = Constant(term=Literal("kept"))
    dictionary = Dictionary()
    vectorized = Vectorized(constant, dictionary)
    (number,) = vectorized.values({}, 1).tolist()
    dictionary.settle()
    assert dictionary.spell(number) == '"kept"'


@pytest.mark.parametrize(
    "part",
    [
        Exists(pattern=BasicPattern()),
        *(FunctionCall(function=name, arguments=()) for name in ("NOW", "RAND")),
    ],
)
def test_what_changes_by_itself_is_refused(part: Expression) -> None:
    with pytest.raises(InternalError):
        Vectorized(Not(operand=part), Dictionary())


def test_variables_are_those_read_and_times_by_their_own_names() -> None:
    time = FunctionCall(function="TIMESTAMP", arguments=(VariableExpression(variable=A),))
    expression = Compare(operator="<", left=time, right=VariableExpression(variable=B))
    assert Vectorized(expression, Dictionary()).variables == (time_variable(A), B)


def test_results_are_remembered_by_term_and_not_by_number() -> None:
    length = FunctionCall(function="STRLEN", arguments=(VariableExpression(variable=A),))
    dictionary = Dictionary()
    vectorized = Vectorized(length, dictionary)
    vectorized.values({}, 0)  # so that the constants have their numbers
    seen = []
    for text in ("a", "abc", "a"):
        numbers = dictionary.numbers([f'"{text}"'])
        seen.append(numbers.tolist())
        found = vectorized.values({A: numbers}, 1).tolist()
        assert [dictionary.term(each) for each in found] == [literal(str(len(text)), "integer")]
        dictionary.settle()
    assert seen[0] == seen[1] == seen[2]


def test_only_so_many_results_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinctcalls, "_MOST_REMEMBERED", 10)
    monkeypatch.setattr(distinctcalls, "_SHORT", 100)
    dictionary = Dictionary()
    calls = distinctcalls.DistinctCalls(dictionary)
    numbers = dictionary.numbers([f'"{"x" * size}"' for size in range(200)])

    def length(terms: list[Term]) -> int:
        (term,) = terms
        assert isinstance(term, Literal)
        return len(term.lexical)

    assert calls.integers("length", (numbers,), length, -1).tolist() == list(range(200))
    assert 0 < len(calls.memory) <= 10
    assert all(len(str(key[1])) <= 100 for key in calls.memory)


def test_columns_of_another_length_are_noticed() -> None:
    dictionary = Dictionary()
    vectorized = Vectorized(VariableExpression(variable=A), dictionary)
    with pytest.raises(InternalError):
        vectorized.values({A: dictionary.numbers(["<urn:a>"])}, 2)
