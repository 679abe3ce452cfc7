"""The compiled part of dictionaries, and of values of terms, against dictionaries of Python."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiled_twins import WORD, compares, integers, ints, signed, word
from quadweir.kernel import interning, numerals, spellings, typed
from quadweir.kernel.memory import address
from quadweir.kernel.spellings import INLINE_LIMIT, INTEGER_SUFFIX, ZERO

XSD = "http://www.w3.org/2001/XMLSchema#"
SCALE = 10**18


def mixed(value: int) -> int:
    x = value % WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % WORD
    return x ^ x >> 31


def hash_of(data: bytes, seed: int) -> int:
    found = seed ^ len(data)
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        found = (found ^ int.from_bytes(data[at : at + 8], "little")) * 0x9FB21C651E98DF25 % WORD
        found ^= found >> 32
    rest = int.from_bytes(data[whole:], "big")
    return mixed((found ^ rest) * 0x9FB21C651E98DF25 % WORD) >> 32


def inline_of(spelling: str) -> int:
    found = re.fullmatch(rf'"(0|-?[1-9][0-9]*){re.escape(INTEGER_SUFFIX)}', spelling, re.ASCII)
    if found is None or abs(int(found[1])) >= INLINE_LIMIT:
        return 0
    return ZERO + int(found[1])


def kind_of(spelling: str) -> int:
    if spelling.startswith("<<"):
        return spellings.IS_TRIPLE
    if spelling.startswith("<"):
        return spellings.IS_IRI
    if spelling.startswith("_"):
        return spellings.IS_BLANK
    if spelling.endswith('"'):
        return spellings.IS_STRING
    return spellings.UNKNOWN if spelling.endswith(">") else spellings.IS_LANGUAGE


def data_of(*texts: bytes) -> np.ndarray:
    """Bytes with room after them, since eight are read at a time."""
    return np.frombuffer(b"".join(texts) + bytes(16), dtype=np.uint8).copy()


numeric_texts = st.one_of(
    integers().map(str),
    st.integers(-(10**22), 10**22).map(str),
    st.from_regex(r"[+-]?[0-9]{0,22}\.?[0-9]{0,22}", fullmatch=True),
    st.from_regex(r"[+-]?[0-9]{1,5}(\.[0-9]{0,5})?[eE][+-]?[0-9]{1,3}", fullmatch=True),
    st.sampled_from(["", "INF", "NaN", "-", "1e", "00", "-0", "0", "1.5.5", "9" * 70]),
)
types = st.sampled_from(["integer", "decimal", "double", "float", "byte", "unsignedInt", "string"])
numbers = st.builds(lambda text, kind: f'"{text}"^^<{XSD}{kind}>', numeric_texts, types)
terms = st.one_of(
    numbers,
    st.text(max_size=20).map(lambda text: f"<urn:{text}>"),
    st.sampled_from(["_:b1", '"a"', '"a"@en', "<<( <urn:a> <urn:b> <urn:c> )>>", '""']),
    st.text(max_size=30).map(lambda text: f'"{text}"'),
)


@compares("spellings.hash_bytes", "spellings.inline_number", "spellings.first_kind")
@given(terms, integers(0, 2**62))
def test_what_a_spelling_shows(spelling: str, seed: int) -> None:
    encoded = spelling.encode("utf-8", "surrogatepass")
    before = b"x" * 40  # an integer is recognised from its end
    data = data_of(before, encoded)
    place, length = address(data) + len(before), len(encoded)
    assert spellings.hash_bytes(place, length, seed) == hash_of(encoded, seed)
    assert spellings.inline_number(place, length) == inline_of(spelling)
    assert spellings.first_kind(place, length) == kind_of(spelling)


@compares("spellings.same_bytes", "spellings.copy_bytes")
@given(st.binary(max_size=40), st.binary(max_size=40), st.integers(0, 40))
def test_bytes_are_compared_and_copied(left: bytes, right: bytes, same: int) -> None:
    right = left[:same] + right
    length = min(len(left), len(right))
    one, other = data_of(left), data_of(right)
    found = spellings.same_bytes(address(one), address(other), length)
    assert found == (left[:length] == right[:length])
    target = np.full(60, 7, dtype=np.uint8)
    spellings.copy_bytes(address(one), address(target) + 3, len(left))
    assert target.tobytes() == b"\7" * 3 + left + b"\7" * (57 - len(left))


class Terms:
    """The arrays of a dictionary, with room for few terms and bytes."""

    def __init__(self, slots: int, room: int, *, large: bool = False, table: int = 128) -> None:
        self.terms = np.zeros(slots, interning.TERM)
        self.kinds, self.free = ints([0] * slots), ints([0] * slots)
        self.pending = ints([0] * slots)
        # Beyond this size a table is prefetched.
        self.table = ints([0] * (1 << 16 if large else table))
        self.counters = np.zeros(1, interning.COUNTERS)
        self.counters["fresh"] = 1
        self.store = np.zeros(room + 16, dtype=np.uint8)
        self.room = room

    def spelling(self, slot: int) -> bytes:
        start = int(self.terms["start"][slot])
        return self.store[start : start + int(self.terms["length"][slot])].tobytes()

    def intern(self, texts: list[bytes], seed: int, begin: int = 0) -> tuple[int, np.ndarray]:
        lengths = ints([len(text) for text in texts])
        data = data_of(b"x" * 40, *texts)
        numbers = ints([-7] * len(texts))
        done = interning.intern(
            address(data) + 40, np.cumsum(lengths) - lengths, lengths, begin, numbers,
            self.terms, self.kinds, self.table, self.free, self.pending, self.counters,
            address(self.store), self.room, seed,
        )  # fmt: skip
        return done, numbers

    def found_in_table(self) -> dict[int, int]:
        """Slots by hash, as searching the table from the home of each finds them."""
        mask, found = len(self.table) - 1, {}
        for place, entry in enumerate(self.table.tolist()):
            if entry:
                tag, slot = entry >> 32 & 0xFFFFFFFF, entry & 0xFFFFFFFF
                between = (tag & mask) + np.arange((place - tag) & mask)
                assert self.table[between & mask].all()
                found[slot] = tag
        return found


@compares("interning._look_ahead", "interning._look_nearer")
@given(st.lists(terms, min_size=20, max_size=30), integers(0, 2**62))
def test_looking_ahead_hashes_spellings(texts: list[str], seed: int) -> None:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    lengths, data = ints([len(each) for each in encoded]), data_of(*encoded)
    arrays = Terms(64, 4000)
    arrays.intern(encoded[:9], seed)
    tags, starts = ints([0] * 16), np.cumsum(lengths) - lengths
    before = arrays.terms.copy(), arrays.table.copy()
    for i in range(len(texts) + 3):  # beyond the last there is nothing to hash
        interning._look_ahead(address(data), starts, lengths, i, tags, arrays.table, seed)
        if i < len(texts):
            assert tags[i % 16] == hash_of(encoded[i], seed)
        interning._look_nearer(i, tags, arrays.terms, arrays.table, address(arrays.store))
    last = {i % 16: hash_of(each, seed) for i, each in enumerate(encoded)}
    assert tags.tolist() == [last[place] for place in range(16)]
    assert (arrays.terms == before[0]).all()
    assert (arrays.table == before[1]).all()


@compares("interning.intern")
@given(st.lists(terms, max_size=30), integers(0, 2**62), st.booleans(), st.integers(0, 300))
def test_spellings_get_numbers(texts: list[str], seed: int, large: bool, room: int) -> None:
    encoded = [text.encode("utf-8", "surrogatepass") for text in [*texts, "", *texts]]
    arrays = Terms(20, room, large=large)
    # The model: a number for each spelling until slots or bytes run out.
    known: dict[bytes, int] = {}
    expected: list[int] = []
    used = 0
    for text, data in zip([*texts, "", *texts], encoded, strict=True):
        number = inline_of(text) if data else 0
        if data and not number:
            number = known.get(data, 0)
            if not number:
                if len(known) == 19 or used + len(data) > room:
                    break
                number = known[data] = len(known) + 1
                used += len(data)
        expected.append(number)
    done, numbers = arrays.intern(encoded, seed)
    assert done == len(expected)
    assert numbers[:done].tolist() == expected
    assert {arrays.spelling(slot): slot for slot in known.values()} == known
    assert arrays.found_in_table() == {slot: hash_of(data, seed) for data, slot in known.items()}
    for data, slot in known.items():
        assert arrays.kinds[slot] == kind_of(data.decode("utf-8", "surrogatepass"))
    assert arrays.counters[0].tolist() == (len(known) + 1, 0, len(known), used, used)
    assert arrays.pending[: len(known)].tolist() == list(known.values())


@compares("interning.count", "interning.forget", "interning.fill_table")
@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from([1, -1])), max_size=60),
    integers(0, 2**62),
    st.booleans(),
)
def test_terms_without_holders_are_forgotten(
    changes: list[tuple[int, int]], seed: int, large: bool
) -> None:
    texts = [f"<urn:{number}>".encode() for number in range(1, 11)]
    # Hardly more places than terms, so that entries are not where their hashes lead.
    arrays = Terms(1 << 16 if large else 16, 200, large=large, table=16)
    arrays.intern(texts, seed)
    holders = dict.fromkeys(range(1, 11), 0)
    for number, sign in changes:
        good = number == 0 or (number in holders and holders[number] + sign >= 0)
        if number in holders and good:
            holders[number] += sign
        found = interning.count(
            ints([number, ZERO + 5]), sign, 0, arrays.terms, arrays.pending, arrays.counters
        )
        assert found == good
    interning.forget(arrays.terms, arrays.table, arrays.free, arrays.pending, arrays.counters)
    held = {number for number, count in holders.items() if count}
    assert set(arrays.found_in_table()) == held
    assert set(np.flatnonzero(arrays.terms["length"]).tolist()) == held
    free = arrays.free[: int(arrays.counters["free"][0])]
    assert sorted(free.tolist()) == sorted(set(holders) - held)
    assert int(arrays.counters["live"][0]) == sum(len(texts[number - 1]) for number in held)
    before = arrays.found_in_table()
    arrays.table = ints([0] * 16)
    interning.fill_table(arrays.terms, 11, arrays.table)
    assert arrays.found_in_table() == before


@compares("interning.adopt", "interning.gather")
@given(
    st.dictionaries(st.integers(1, 14), st.binary(min_size=1, max_size=20), max_size=10),
    integers(0, 2**62),
    st.booleans(),
)
def test_entries_are_saved_and_brought_back(
    wanted: dict[int, bytes], seed: int, large: bool
) -> None:
    arrays = Terms(1 << 16 if large else 16, 300, large=large)
    slots, texts = ints(list(wanted)), list(wanted.values())
    lengths, data = ints([len(text) for text in texts]), data_of(*texts)
    for _ in range(2):  # what is there stays as it is
        interning.adopt(
            address(data), slots, lengths, slots * 2, arrays.terms, arrays.kinds, arrays.table,
            arrays.counters, address(arrays.store), seed,
        )  # fmt: skip
    assert {slot: arrays.spelling(slot) for slot in wanted} == wanted
    assert arrays.found_in_table() == {slot: hash_of(text, seed) for slot, text in wanted.items()}
    assert arrays.terms["count"][slots].tolist() == (slots * 2).tolist()
    ends, target = ints([0] * (len(texts) + 1)), np.zeros(400, dtype=np.uint8)
    interning.gather(slots, arrays.terms, address(arrays.store), ends, address(target))
    assert ends.tolist() == np.cumsum([0, *map(len, texts)]).tolist()
    assert target[: ends[-1]].tobytes() == b"".join(texts)


NUMERAL = re.compile(r"[+-]?([0-9]*)(\.?)([0-9]*)(?:[eE]([+-]?)([0-9]{1,4}))?\"", re.ASCII)


@compares("numerals._scan")
@given(numeric_texts)
def test_numerals_are_scanned(text: str) -> None:
    data = data_of(text.encode(), b'"')
    place = address(data)
    mantissa, digits, behind, point, power, powers, end = numerals._scan(place)
    found = NUMERAL.fullmatch(f'{text}"')
    if found is None or not found[1] + found[3] or len(text.split("e")[0].split("E")[0]) > 64:
        assert end == 0
        return
    significant = (found[1] + found[3]).lstrip("0")
    assert end == place + len(text)
    assert (digits, behind, point) == (len(significant), len(found[3]), bool(found[2]))
    assert mantissa == int(significant[:18] or "0")
    assert power == int((found[4] or "") + (found[5] or "0"))
    assert powers == len(found[5] or "")


def value_of(spelling: str) -> tuple[int, Any] | None:
    """The kind and value of a numeric literal as the schema specification has it."""
    found = re.fullmatch(rf'"([^"]*)"\^\^<{re.escape(XSD)}(\w+)>', spelling)
    if found is None:
        return None
    text, kind = found.groups()
    bounds = {"integer": (-(10**30), 10**30), "byte": (-128, 127), "unsignedInt": (0, 2**32 - 1)}
    if kind in bounds:
        if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII) is None:
            return typed.OTHER, None
        low, high = bounds[kind]
        return (typed.INTEGER, int(text)) if low <= int(text) <= high else (typed.OTHER, None)
    if kind == "decimal":
        if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", text, re.ASCII) is None:
            return typed.OTHER, None
        return typed.DECIMAL, Fraction(Decimal(text))
    if kind in ("double", "float"):
        if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) is None:
            return typed.OTHER, None
        return (typed.DOUBLE, float(text)) if kind == "double" else (typed.FLOAT, float(text))
    return None


@compares("numerals._type_at")
@given(st.one_of(numbers, terms))
def test_numeric_types_are_recognised_by_the_end_of_a_literal(text: str) -> None:
    tail = '"' + text.rpartition('"')[2]
    encoded = tail.encode("utf-8", "surrogatepass")
    data = data_of(encoded)
    found = numerals._type_at(address(data), len(encoded), numerals.TAIL_PLACE, numerals.TAILS)
    known = [ending for ending, *_ in numerals._tails()]
    assert found == (known.index(encoded) if encoded in known else -1)


@compares("numerals.read_numbers")
@given(st.lists(numbers, max_size=12))
def test_numbers_are_read_or_left(texts: list[str]) -> None:
    arrays = Terms(16, 4000)
    encoded = [text.encode() for text in texts]
    slots = ints(range(1, len(texts) + 1))
    lengths = ints([len(each) for each in encoded])
    data = data_of(*encoded)
    interning.adopt(
        address(data), slots, lengths, slots, arrays.terms, arrays.kinds, arrays.table,
        arrays.counters, address(arrays.store), 1,
    )  # fmt: skip
    floats, left = np.zeros(16), ints([0] * len(texts))
    count = numerals.read_numbers(
        slots, arrays.terms, arrays.kinds, floats, address(arrays.store),
        numerals.TAIL_PLACE, numerals.TAILS, left,
    )  # fmt: skip
    not_read = {code // 2: code % 2 for code in left[:count].tolist()}
    for slot, text in zip(slots.tolist(), texts, strict=True):
        known = value_of(text)
        if slot in not_read:
            # Only what is long, out of range or malformed is left; a long double is marked.
            lexical = text.split('"')[1]
            assert (
                known is None or known[0] == typed.OTHER or len(lexical) > 15 or "e" in text.lower()
            )
            if not_read[slot] == numerals.LONG:
                assert known is not None
                assert known[0] in (typed.DOUBLE, typed.FLOAT)
            continue
        assert known is not None
        kind, value = known
        high, low = int(arrays.terms["high"][slot]), int(arrays.terms["low"][slot])
        if kind == typed.INTEGER or (kind == typed.OTHER and arrays.kinds[slot] == typed.OTHER):
            assert arrays.kinds[slot] == kind
            if kind == typed.INTEGER:
                assert (low, floats[slot]) == (value, float(value))
        elif kind == typed.DECIMAL:
            assert arrays.kinds[slot] == kind
            assert Fraction((high << 64) + low % WORD, SCALE) == value
            assert floats[slot] == float(value)
        else:
            assert arrays.kinds[slot] == kind
            single = float(np.float32(value)) if kind == typed.FLOAT else value
            assert floats[slot] == single


# --- values ---------------------------------------------------------------------------------------

# An entry: its kind, and its value.
entries = st.one_of(
    st.tuples(st.just(typed.INTEGER), integers()),
    st.tuples(st.just(typed.DECIMAL), st.integers(-(10**38) + 1, 10**38 - 1)),
    st.tuples(st.sampled_from([typed.FLOAT, typed.DOUBLE]), st.floats(width=32)),
    st.tuples(st.just(typed.DOUBLE), st.floats()),
    st.tuples(st.just(typed.BOOLEAN), st.integers(0, 1)),
    st.tuples(st.just(typed.DATE_TIME), st.integers(-(2**127), 2**127 - 1)),
    st.tuples(
        st.sampled_from(
            [typed.MOMENT, typed.DURATION, typed.OTHER, spellings.IS_IRI, spellings.IS_BLANK]
        ),
        st.just(0),
    ),
    st.tuples(
        st.sampled_from([spellings.IS_STRING, spellings.IS_LANGUAGE, spellings.IS_TRIPLE]),
        st.just(0),
    ),
)
inline = integers(-INLINE_LIMIT + 1, INLINE_LIMIT - 1)


class Values:
    """Entries as the arrays of a dictionary; entry n has the number n + 1."""

    def __init__(self, found: list[tuple[int, Any]]) -> None:
        self.found = found
        self.terms = np.zeros(len(found) + 1, interning.TERM)
        self.kinds, self.floats = ints([0] * (len(found) + 1)), np.full(len(found) + 1, math.nan)
        for number, (kind, value) in enumerate(found, 1):
            self.kinds[number] = kind
            # A string of one letter; every other one is empty.
            self.terms["length"][number] = 2 + number % 2
            if kind in (typed.INTEGER, typed.BOOLEAN):
                self.terms["low"][number] = value
                self.floats[number] = float(value)
            elif kind in (typed.DECIMAL, typed.DATE_TIME):
                self.terms["high"][number] = value >> 64
                self.terms["low"][number] = signed(value)
                self.floats[number] = float(Fraction(value, SCALE))
            elif kind in (typed.FLOAT, typed.DOUBLE):
                self.floats[number] = value

    def kind(self, number: int) -> int:
        return typed.INTEGER if number >= INLINE_LIMIT else int(self.kinds[number])

    def value(self, number: int) -> Any:
        """The exact value of a number."""
        if number >= INLINE_LIMIT:
            return number - ZERO
        kind, value = self.found[number - 1]
        return Fraction(value, SCALE) if kind == typed.DECIMAL else value


@compares("typed.unknown")
@given(st.lists(st.integers(0, 9), max_size=30), st.sets(st.integers(1, 9)))
def test_unknown_kinds_are_gathered_once(numbers: list[int], known: set[int]) -> None:
    kinds = ints([typed.OTHER if each in known else spellings.UNKNOWN for each in range(10)])
    found = ints([0] * len(numbers))
    count = typed.unknown(ints([*numbers, ZERO]), kinds, np.append(found, 0))
    expected = list(dict.fromkeys(each for each in numbers if each and each not in known))
    assert count == len(expected)
    kinds = ints([typed.OTHER if each in known else spellings.UNKNOWN for each in range(10)])
    typed.unknown(ints(numbers), kinds, found)
    assert found[:count].tolist() == expected


@compares("typed.read_typed")
@given(st.lists(entries, min_size=1, max_size=8), st.lists(inline, max_size=4))
def test_values_are_read(found: list[tuple[int, Any]], more: list[int]) -> None:
    values = Values(found)
    numbers = [0, *range(1, len(found) + 1), *(ZERO + each for each in more)]
    count = len(numbers)
    read = typed.Typed(*(np.zeros(count, dtype=each) for each in (int, float, int, int, int)))
    typed.read_typed(ints(numbers), values.terms, values.kinds, values.floats, *read)
    for at, number in enumerate(numbers):
        kind = typed.UNBOUND if number == 0 else values.kind(number)
        assert read.kind[at] == kind
        is_exact = kind in (typed.INTEGER, typed.DECIMAL)
        exact = int(values.value(number) * SCALE) if is_exact else 0
        assert (int(read.high[at]) << 64) + int(read.low[at]) % WORD == exact
        counted = kind in (typed.INTEGER, typed.BOOLEAN)
        assert read.integer[at] == (values.value(number) if counted else 0)
        is_number = typed.INTEGER <= kind <= typed.DOUBLE
        near = float(values.value(number)) if is_number else math.nan
        assert read.approximate[at] == near or (near != near and math.isnan(read.approximate[at]))


def order_of(values: Values, a: int, b: int) -> int:
    """Compare two terms by the rules of SPARQL, as far as kinds and numbers show it."""
    if a == 0 or b == 0:
        return typed.ERROR
    kind_a, kind_b = values.kind(a), values.kind(b)
    if kind_a == kind_b == spellings.IS_TRIPLE:
        return typed.ASK
    resources = (spellings.IS_IRI, spellings.IS_BLANK, spellings.IS_TRIPLE)
    if kind_a in resources or kind_b in resources:
        return typed.ALIKE if a == b else typed.APART
    if all(typed.INTEGER <= each <= typed.DOUBLE for each in (kind_a, kind_b)):
        x, y = values.value(a), values.value(b)
        widest = max(kind_a, kind_b)
        if widest > typed.DECIMAL:
            x, y = float(x), float(y)
            if widest == typed.FLOAT:
                with np.errstate(over="ignore"):
                    x, y = float(np.float32(x)), float(np.float32(y))
        if x != x or y != y:
            return typed.NOT_A_NUMBER
        return typed.BELOW if x < y else typed.ABOVE if x > y else typed.SAME
    if a == b:
        return typed.ALIKE if kind_a == typed.OTHER else typed.SAME
    if (kind_a == spellings.IS_LANGUAGE) != (kind_b == spellings.IS_LANGUAGE):
        return typed.APART
    if typed.OTHER in (kind_a, kind_b):
        return typed.ERROR
    if kind_a != kind_b:
        return typed.ASK if {kind_a, kind_b} == {typed.DATE_TIME, typed.MOMENT} else typed.APART
    if kind_a in (spellings.IS_STRING, spellings.IS_LANGUAGE):
        return typed.TEXTS
    if kind_a in (typed.BOOLEAN, typed.DATE_TIME):
        x, y = values.value(a), values.value(b)
        return typed.BELOW if x < y else typed.ABOVE if x > y else typed.SAME
    return typed.ASK


@compares("typed.order", "typed._order_numbers", "typed._order_literals")
@given(st.lists(entries, min_size=1, max_size=6), st.lists(inline, max_size=3))
def test_terms_are_ordered(found: list[tuple[int, Any]], more: list[int]) -> None:
    values = Values(found)
    numbers = [0, *range(1, len(found) + 1), *(ZERO + each for each in more)]
    pairs = [(a, b) for a in numbers for b in numbers]
    left, right = (ints([pair[side] for pair in pairs]) for side in range(2))
    codes = ints([0] * len(pairs))
    assert typed.order(left, right, values.terms, values.kinds, values.floats, codes)
    assert codes.tolist() == [order_of(values, a, b) for a, b in pairs]
    for a, b in pairs:
        if a == 0 or b == 0 or min(a, b) >= INLINE_LIMIT:
            continue
        kinds = values.kind(a), values.kind(b)
        if all(typed.INTEGER <= each <= typed.DOUBLE for each in kinds):
            order = typed._order_numbers(
                word(a), kinds[0], word(b), kinds[1], values.terms, values.floats
            )
            assert order == order_of(values, a, b)
        elif min(kinds) > spellings.IS_BLANK and max(kinds) < spellings.IS_TRIPLE:
            order = typed._order_literals(word(a), kinds[0], word(b), kinds[1], values.terms)
            assert order == order_of(values, a, b)
    values.kinds[1] = spellings.UNKNOWN
    assert not typed.order(left, right, values.terms, values.kinds, values.floats, codes)


@compares("typed.truths")
@given(st.lists(entries, min_size=1, max_size=8), st.lists(inline, max_size=4))
def test_effective_boolean_values(found: list[tuple[int, Any]], more: list[int]) -> None:
    values = Values(found)

    def truth(number: int) -> int:
        if number == 0:
            return typed.NEITHER
        kind = values.kind(number)
        if kind in (typed.INTEGER, typed.DECIMAL, typed.FLOAT, typed.DOUBLE, typed.BOOLEAN):
            value = values.value(number)
            return typed.TRUE if value == value and value != 0 else typed.FALSE
        if kind == spellings.IS_STRING:
            return typed.TRUE if number % 2 else typed.FALSE
        return typed.ASK_TRUTH if kind == typed.OTHER else typed.NEITHER

    numbers = [0, *range(1, len(found) + 1), *(ZERO + each for each in more)]
    codes = ints([0] * len(numbers))
    assert typed.truths(ints(numbers), values.terms, values.kinds, values.floats, codes)
    assert codes.tolist() == [truth(number) for number in numbers]
    values.kinds[1] = spellings.UNKNOWN
    assert not typed.truths(ints(numbers), values.terms, values.kinds, values.floats, codes)


@compares("typed.calculate")
@given(
    st.lists(
        st.tuples(*[st.one_of(inline.map(lambda n: n + ZERO), st.integers(0, 9))] * 2), max_size=20
    )
)
def test_arithmetic_of_inline_integers(pairs: list[tuple[int, int]]) -> None:
    left, right = (ints([pair[side] for pair in pairs]) for side in range(2))
    operations = (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y)
    for code, operation in enumerate(operations):
        found = ints([0] * len(pairs))
        asked = typed.calculate(code, left, right, found)
        for (a, b), number in zip(pairs, found.tolist(), strict=True):
            if a == 0 or b == 0:
                assert number == 0
            elif min(a, b) < INLINE_LIMIT:
                assert number == -1
            else:
                value = operation(a - ZERO, b - ZERO)
                if abs(value) < 2**59:
                    assert number == ZERO + value
                else:
                    # Large products may be left to exact arithmetic.
                    assert number in ({-1, ZERO + value} if abs(value) < INLINE_LIMIT else {-1})
        assert asked == found.tolist().count(-1)


@compares("interning.account")
@given(
    st.lists(st.integers(-3, 12) | st.integers(INLINE_LIMIT - 1, INLINE_LIMIT + 3), max_size=20),
    st.sampled_from([1, -1]),
    st.integers(1, 12),
)
def test_holders_of_terms_are_counted(numbers: list[int], sign: int, room: int) -> None:
    held, expected, place = ints([0] * room), [0] * room, len(numbers)
    for at, number in enumerate(numbers):
        if 0 < number < INLINE_LIMIT:
            if number >= room:
                place = at
                break
            expected[number] += sign
    assert interning.account(ints(numbers), sign, held) == place
    assert held.tolist() == expected
