"""Numbers for terms: equal for equal terms, the same until forgotten, and no leak."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quadweir.algebra.values import EXACT, Number, value_of
from quadweir.errors import InternalError
from quadweir.kernel import typed
from quadweir.kernel.dictionary import Dictionary, distinct_of
from quadweir.kernel.spellings import INLINE_LIMIT, IS_BLANK, IS_IRI, IS_LANGUAGE, IS_STRING, ZERO
from quadweir.terms import IRI, BlankNode, Literal, Term, parse_term
from quadweir.vocab import XSD
from terms_strategy import BLANK_NODES, IRIS, LITERALS


def literal(lexical: str, datatype: str = "integer") -> Literal:
    return Literal(lexical, IRI(XSD[datatype]))


def array(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


INTEGERS = st.builds(
    literal,
    st.integers(-(2**64), 2**64).map(str)
    | st.integers(-20, 20).map(str)
    | st.sampled_from(["-0", "00", "+1", "01", "-01", "", "-", " 1", "1 ", "1.0", "１", "9" * 19])
    | st.sampled_from([str(sign * (2**61 + by)) for sign in (1, -1) for by in (-1, 0, 1)]),
    st.sampled_from(["integer", "integer", "int", "integers"]),
)
TERMS = st.one_of(IRIS, BLANK_NODES, LITERALS, INTEGERS)


# --- there and back -------------------------------------------------------------------------------


@given(st.lists(TERMS, max_size=30))
@example([literal("-9223372036854775808"), literal("9223372036854775808"), literal("9" * 19)])
def test_equal_terms_have_equal_numbers_whatever_way_they_came(terms: list[Term]) -> None:
    dictionary = Dictionary()
    spellings = [str(each) for each in terms]
    numbers = dictionary.numbers(spellings).tolist()
    assert [dictionary.number(each) for each in terms] == numbers
    plain = pa.array(spellings, pa.string())
    for column in (
        plain,
        plain.cast(pa.large_string()),
        plain.cast(pa.binary()),
        plain.dictionary_encode(),
        pa.chunked_array([plain[:1], plain[1:]]),
        pa.chunked_array([plain[:2].dictionary_encode(), plain[2:].dictionary_encode()]),
    ):
        assert dictionary.encode(column).tolist() == numbers
    assert len(set(numbers)) == len(set(terms))
    assert all(each > 0 for each in numbers)
    assert dictionary.decode(array(*numbers)).to_pylist() == spellings
    assert [dictionary.spell(each) for each in numbers] == spellings
    assert [dictionary.term(each) for each in numbers] == terms
    assert len(dictionary) == len({each for each in numbers if each < INLINE_LIMIT})


@given(st.integers())
@example(2**61 - 1)
@example(-(2**61) + 1)
@example(2**61)
@example(-(2**61))
@example(0)
def test_small_integers_are_their_own_numbers(value: int) -> None:
    dictionary = Dictionary()
    number = dictionary.number(literal(str(value)))
    if abs(value) < 2**61:
        assert number == ZERO + value
        assert len(dictionary) == 0
    else:
        assert number == 1
    assert dictionary.term(number) == literal(str(value))


@given(st.lists(st.none() | TERMS.map(str), max_size=20), st.data())
def test_null_is_zero_both_ways(spellings: list[str | None], data: st.DataObject) -> None:
    dictionary = Dictionary()
    begin = data.draw(st.integers(0, len(spellings)))
    column = pa.array(spellings, pa.string())[begin:]
    for each in (column, column.dictionary_encode(), column.cast(pa.large_string())):
        numbers = dictionary.encode(each)
        assert [number == 0 for number in numbers.tolist()] == [
            spelling is None for spelling in spellings[begin:]
        ]
        assert dictionary.decode(numbers).to_pylist() == spellings[begin:]


def test_empty_columns_and_columns_of_nulls() -> None:
    dictionary = Dictionary()
    for column in (pa.array([], pa.string()), pa.chunked_array([], pa.string()), pa.nulls(0)):
        assert dictionary.encode(column).tolist() == []
    assert dictionary.encode(pa.nulls(3)).tolist() == [0, 0, 0]
    assert dictionary.encode(pa.nulls(2, pa.string())).tolist() == [0, 0]
    assert dictionary.decode(array()).to_pylist() == []
    assert dictionary.decode(array(0)).to_pylist() == [None]


def test_a_column_of_numbers_is_no_column_of_terms() -> None:
    with pytest.raises(InternalError):
        Dictionary().encode(pa.array([1, 2]))


def test_a_number_that_nobody_gave_out_has_no_term() -> None:
    dictionary = Dictionary()
    for number in (0, 1, 99):
        with pytest.raises(InternalError):
            dictionary.spell(number)
    with pytest.raises(InternalError):
        dictionary.decode(array(5))


def test_terms_that_differ_in_one_byte_anywhere_are_told_apart() -> None:
    # Of all lengths around whole words, on which hashing, comparing and copying step.
    spellings = [
        f"<urn:{'a' * at}b{'a' * (length - at - 1)}>"
        for length in range(1, 20)
        for at in range(length)
    ]
    dictionary = Dictionary()
    numbers = dictionary.numbers(spellings)
    assert numbers.tolist() == list(range(1, len(spellings) + 1))
    assert dictionary.decode(numbers).to_pylist() == spellings


# --- against a model ------------------------------------------------------------------------------

POOL = [f"<urn:{'x' * (n % 11)}{n}>" for n in range(150)] + [str(literal(str(n))) for n in range(5)]
picks = st.lists(st.sampled_from(POOL), max_size=60)


class Forgetting(RuleBasedStateMachine):
    """A dictionary and plain Python ones that hold the same."""

    def __init__(self) -> None:
        super().__init__()
        self.dictionary = Dictionary()
        self.known: dict[str, int] = {}
        self.holders: Counter[str] = Counter()
        self.kept: set[str] = set()

    @rule(spellings=picks, as_column=st.booleans())
    def meet(self, spellings: list[str], as_column: bool) -> None:
        if as_column:
            numbers = self.dictionary.encode(pa.array(spellings, pa.string()).dictionary_encode())
        else:
            numbers = self.dictionary.numbers(spellings)
        for spelling, number in zip(spellings, numbers.tolist(), strict=True):
            assert self.known.setdefault(spelling, number) == number
        assert len(set(self.known.values())) == len(self.known)

    @rule(spellings=picks)
    def hold(self, spellings: list[str]) -> None:
        self.meet(spellings, False)
        self.dictionary.hold(array(0, *(self.known[each] for each in spellings)))
        self.holders.update(spellings)

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        held = sorted(self.holders.elements())
        spellings = data.draw(st.sets(st.integers(0, len(held) - 1)))
        gone = [held[each] for each in sorted(spellings)]
        self.dictionary.drop(array(*(self.known[each] for each in gone), 0))
        self.holders -= Counter(gone)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def keep(self, data: st.DataObject) -> None:
        spelling = data.draw(st.sampled_from(sorted(self.known)))
        self.dictionary.keep(array(self.known[spelling]))
        self.kept.add(spelling)

    @rule()
    def settle(self) -> None:
        self.dictionary.settle()
        stay = self.kept | set(self.holders)
        self.known = {each: number for each, number in self.known.items() if each in stay}

    @rule()
    def snapshot(self) -> None:
        arrays = {name: each.copy() for name, each in self.dictionary.arrays().items()}
        self.dictionary = Dictionary()
        self.dictionary.restore(arrays)
        self.meet(list(self.known), False)

    @invariant()
    def says_what_it_was_told(self) -> None:
        entries = [each for each in self.known.values() if each < INLINE_LIMIT]
        assert len(self.dictionary) == len(entries)
        numbers = array(*self.known.values())
        assert self.dictionary.decode(numbers).to_pylist() == list(self.known)


TestForgetting = Forgetting.TestCase
TestForgetting.settings = settings(
    max_examples=settings.default.max_examples // 3, stateful_step_count=30
)


def test_what_is_dropped_by_one_who_had_none_is_noticed() -> None:
    dictionary = Dictionary()
    numbers = dictionary.numbers(["<urn:a>"])
    with pytest.raises(InternalError):
        dictionary.drop(numbers)
    dictionary.settle()
    with pytest.raises(InternalError):
        dictionary.hold(numbers)


def test_a_long_stream_of_new_terms_takes_no_more_room_than_a_short_one() -> None:
    dictionary = Dictionary()
    fixed = dictionary.numbers([f"<urn:fixed:{n}>" for n in range(50)])
    dictionary.hold(fixed)
    before: list[np.ndarray] = []
    sizes = []
    for step in range(60):
        numbers = dictionary.numbers([f"<urn:{'long' * 20}:{step}:{n}>" for n in range(100)])
        dictionary.hold(numbers)
        before.append(numbers)
        if len(before) > 3:
            dictionary.drop(before.pop(0))
        dictionary.settle()
        sizes.append(dictionary.size)
        assert len(dictionary) == 50 + 100 * len(before)
    assert sizes[-1] == max(sizes) == sizes[10]
    # Each entry takes its 90 bytes, 64 more, and 48 of tables; all with room to double.
    assert dictionary.size < 2 * 2 * 450 * (90 + 64 + 48)
    assert dictionary.decode(fixed).to_pylist() == [f"<urn:fixed:{n}>" for n in range(50)]


# --- what terms are worth -------------------------------------------------------------------------

NUMBERS = st.one_of(
    INTEGERS,
    st.builds(
        literal,
        st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**21), max_value=10**21)
        .filter(lambda each: each == 0 or abs(each) > Decimal("1e-25"))
        .map(lambda each: format(each, "f"))
        | st.sampled_from(["1.", ".5", "+1.5", "-.0", "1e5", "", "--1", "1.2.3", "0" * 30 + "1"])
        | st.from_regex(r"[+-]?[0-9]{1,22}\.[0-9]{1,22}", fullmatch=True),
        st.sampled_from(["decimal", "decimal", "double", "float", "dateTime"]),
    ),
    st.builds(
        literal,
        st.floats().map(repr)
        | st.sampled_from(["INF", "-INF", "NaN", "inf", "1e400", "+1E-3", "1_0"]),
        st.sampled_from(["double", "float"]),
    ),
    st.builds(literal, st.sampled_from(["true", "1", "0", "no"]), st.just("boolean")),
)


@given(st.lists(NUMBERS | TERMS, max_size=30))
@example([literal("-9223372036854775808", "long"), literal("-9223372036854775808.5", "decimal")])
def test_typed_arrays_say_what_the_values_are(terms: list[Term]) -> None:
    dictionary = Dictionary()
    numbers = np.append(dictionary.numbers([str(each) for each in terms]), 0)
    found = dictionary.typed(numbers)
    assert found.kind[-1] == typed.UNBOUND
    for place, term in enumerate(terms):
        kind = int(found.kind[place])
        value = value_of(term) if isinstance(term, Literal) else None
        exact = typed.whole(found.high[place], found.low[place])
        match term, value:
            case (_, Number()):
                assert kind == typed.INTEGER + value.kind
                if value.is_nan():
                    assert np.isnan(found.approximate[place])
                else:
                    assert found.approximate[place] == float(value.value)
                is_exact = kind in (typed.INTEGER, typed.DECIMAL)
                assert exact == (
                    int(Decimal(value.value).scaleb(18, context=EXACT)) if is_exact else 0
                )
                assert found.integer[place] == (value.value if kind == typed.INTEGER else 0)
            case (_, bool()):
                assert (kind, found.integer[place]) == (typed.BOOLEAN, value)
            case (IRI(), _):
                assert kind == IS_IRI
            case (BlankNode(), _):
                assert kind == IS_BLANK
            case (Literal(language=str()), _):
                assert kind == IS_LANGUAGE
            case (_, str()):
                assert kind == IS_STRING
            case (_, None):
                assert kind == typed.OTHER
            case _:
                assert kind in (typed.DATE_TIME, typed.MOMENT)


def test_a_number_used_again_is_worth_what_its_new_term_is() -> None:
    dictionary = Dictionary()
    old = dictionary.number(literal("1.5", "decimal"))
    assert dictionary.typed(array(old)).kind.tolist() == [typed.DECIMAL]
    dictionary.settle()
    new = dictionary.number(literal("2.5", "double"))
    assert new == old
    assert dictionary.typed(array(new)).kind.tolist() == [typed.DOUBLE]
    assert dictionary.typed(array(new)).approximate.tolist() == [2.5]
    assert dictionary.term(new) == parse_term(f'"2.5"^^<{XSD.double}>')


@given(st.integers(-(2**63), 2**63 - 1))
@example(-(2**63))
def test_scaling_keeps_all_128_bits(value: int) -> None:
    for scaled in (typed.scaled, typed.scaled.py_func):
        with np.errstate(over="ignore"):
            assert typed.whole(*map(int, scaled(np.int64(value)))) == value * 10**18


@given(st.lists(st.integers(0, 5), max_size=20))
def test_distinct_numbers_and_their_places(values: list[int]) -> None:
    codes, distinct = distinct_of(array(*values))
    assert distinct[codes].tolist() == values
    assert distinct.tolist() == list(dict.fromkeys(values))
