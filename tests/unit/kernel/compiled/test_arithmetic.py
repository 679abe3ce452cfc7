"""Compiled arithmetic and hashes against Python's integers and fractions."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import assume, example, given
from hypothesis import strategies as st

from compiled_twins import WORD, compares, integers, ints, signed, word
from quadweir.kernel import exactarithmetic, orderwords, typed, xxhash
from quadweir.kernel.arrays import combine, mix
from quadweir.kernel.memory import address

SCALE = 10**18


def mixed(value: int) -> int:
    x = value % WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % WORD
    return x ^ x >> 31


def halves(value: int) -> tuple[int, int]:
    return value >> 64, signed(value)


def cells_of(value: int) -> list[int]:
    """192 bits in three words."""
    return [signed(value >> 128), signed(value >> 64), signed(value)]


def number_of(cells: np.ndarray) -> int:
    top, high, low = (int(each) for each in cells)
    return (top << 128) + (high % WORD << 64) + low % WORD


def float_of(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def bits_of(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def sum_of(limbs: np.ndarray) -> Fraction:
    return sum(
        (int(limb) * Fraction(2) ** (32 * k - 1088) for k, limb in enumerate(limbs)), Fraction(0)
    )


@compares("arrays.mix", "arrays.combine")
@given(integers(), integers())
def test_hashes_of_keys(hashed: int, value: int) -> None:
    assert int(mix(word(value))) % WORD == mixed(value)
    expected = mixed(hashed * 0x9E3779B97F4A7C15 ^ mixed(value)) or 1
    assert int(combine(word(hashed), word(value))) % WORD == expected


@compares("exactarithmetic.add_wide")
@given(st.integers(-(2**190), 2**190 - 1), st.integers(-(2**126), 2**126), st.sampled_from([1, -1]))
def test_adding_to_192_bits(before: int, value: int, sign: int) -> None:
    cells = ints([[7, *cells_of(before), 7]])
    exactarithmetic.add_wide(cells, 0, 1, *map(word, halves(value)), sign)
    assert number_of(cells[0, 1:4]) == before + sign * value
    assert cells[0, [0, 4]].tolist() == [7, 7]


@compares("exactarithmetic.leading_zeros")
@given(integers(1, 2**64 - 1))
def test_leading_zeros(value: int) -> None:
    assert int(exactarithmetic.leading_zeros(np.uint64(value))) == 64 - value.bit_length()


@compares("exactarithmetic.divide")
@given(integers(0, 2**63 - 1), integers(0, 2**63 - 1), integers(1, 2**63 - 1), st.booleans())
def test_dividing_128_bits(high: int, low: int, divisor: int, large: bool) -> None:
    divisor += 2**63 if large else 0
    high, low = high % divisor, (low * 3) % WORD
    found = exactarithmetic.divide(np.uint64(high), np.uint64(low), np.uint64(divisor))
    assert tuple(map(int, found)) == divmod((high << 64) + low, divisor)


@compares("exactarithmetic.divide_signed")
@given(st.integers(-(2**127) + 1, 2**127 - 1), integers(1))
def test_dividing_towards_zero(value: int, divisor: int) -> None:
    high, low, rest = exactarithmetic.divide_signed(*map(word, halves(value)), word(divisor))
    quotient, remainder = divmod(abs(value), divisor)
    assert (int(high) << 64) + int(low) % WORD == (quotient if value >= 0 else -quotient)
    assert int(rest) == remainder


finite = st.floats(allow_nan=False, allow_infinity=False)


@compares("exactarithmetic.add_float", "exactarithmetic.round_limbs")
@given(st.lists(st.tuples(finite, st.sampled_from([1, -1])), max_size=20))
@example([(1e308, 1), (1e308, 1)])
@example([(5e-324, 1)])
@example([(1.0, 1), (2.0**-53, 1), (2.0**-1074, 1)])
def test_sums_of_floats_are_rounded_once(changes: list[tuple[float, int]]) -> None:
    limbs = np.zeros((2, exactarithmetic.LIMBS), dtype=np.int64)
    exact = Fraction(0)
    for value, sign in changes:
        exactarithmetic.add_float(limbs, 1, word(bits_of(value)), sign)
        exact += sign * Fraction(value)
    assert sum_of(limbs[1]) == exact
    assert float_of(int(exactarithmetic.round_limbs(limbs, 1))) == nearest(exact)
    assert sum_of(limbs[1]) == exact
    assert not limbs[0].any()


@compares("exactarithmetic.add_scaled")
@given(st.integers(-(2**180), 2**180), finite)
@example(1, 0.0)
@example(-(10**18), 1.0)
def test_decimals_added_to_floats(scaled: int, other: float) -> None:
    limbs = np.zeros((1, exactarithmetic.LIMBS), dtype=np.int64)
    exactarithmetic.add_float(limbs, 0, word(bits_of(other)), 1)
    exactarithmetic.add_scaled(limbs, 0, ints([cells_of(scaled)]), 0, 0, SCALE)
    exact = Fraction(other) + Fraction(scaled, SCALE)
    # What goes on below the lowest digit only marks on which side of a tie the sum is.
    assert abs(sum_of(limbs[0]) - exact) <= Fraction(2) ** -1088
    assert float_of(int(exactarithmetic.round_limbs(limbs, np.int64(0)))) == nearest(exact)


@compares("typed.multiplied", "typed.scaled")
@given(integers(-(2**63) + 1), integers(0))
def test_products_of_128_bits(value: int, factor: int) -> None:
    assert tuple(map(int, typed.multiplied(word(value), word(factor)))) == halves(value * factor)
    assert tuple(map(int, typed.scaled(word(value)))) == halves(value * SCALE)


def three_way(left: int | Fraction, right: int | Fraction) -> int:
    return typed.BELOW if left < right else typed.ABOVE if left > right else typed.SAME


@compares("typed._three_way", "typed._order_halves")
@given(integers(), integers(), integers(), integers())
def test_orders_of_integers(a: int, b: int, c: int, d: int) -> None:
    assert typed._three_way(word(a), word(b)) == three_way(a, b)
    for other in ((c, d), (a, d), (a, b)):
        found = typed._order_halves(*map(word, (a, b, *other)))
        assert found == three_way((a << 64) + b % WORD, (other[0] << 64) + other[1] % WORD)


@compares("orderwords.exact_side")
@given(st.integers(-(10**38) + 1, 10**38 - 1))
@example(10**17)
@example(1)
@example(2**53 * 10**18 + 1)
def test_the_side_of_the_nearest_double(scaled: int) -> None:
    assume(scaled != 0)
    exact = Fraction(scaled, SCALE)
    near = Fraction(float(exact))
    found = orderwords.exact_side(word(bits_of(float(exact))), *map(word, halves(scaled)))
    assert found == (exact > near) - (exact < near)


@compares("orderwords.number_words")
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just(typed.DECIMAL), st.integers(-(10**38) + 1, 10**38 - 1)),
            st.tuples(st.just(typed.INTEGER), integers().map(lambda each: each * SCALE)),
            st.tuples(st.just(typed.DOUBLE), st.floats()),
        ),
        min_size=2,
        max_size=8,
    )
)
def test_words_have_the_order_of_numbers(numbers: list[tuple[int, float]]) -> None:
    def exact(kind: int, value: float) -> Fraction | float:
        return value if kind == typed.DOUBLE else Fraction(int(value), SCALE)

    kinds, bits, high, low = [], [], [], []
    for kind, value in numbers:
        kinds.append(kind)
        bits.append(bits_of(float(exact(kind, value))))
        both = (0, 0) if kind == typed.DOUBLE else halves(int(value))
        high.append(both[0])
        low.append(both[1])
    words = np.zeros((len(numbers), 4), dtype=np.int64)
    orderwords.number_words(*map(ints, (kinds, bits, high, low)), words)
    keys = [tuple(row) for row in words.tolist()]
    for (kind_a, a), key_a in zip(numbers, keys, strict=True):
        for (kind_b, b), key_b in zip(numbers, keys, strict=True):
            x, y = exact(kind_a, a), exact(kind_b, b)
            if x != x or y != y:
                assert (key_a < key_b) == (x != x and y == y)
            elif typed.DOUBLE in (kind_a, kind_b):
                # With a double the nearest doubles decide; where they agree the words may not.
                if float(x) != float(y):
                    assert (key_a < key_b) == (float(x) < float(y))
            else:
                assert (key_a < key_b) == (x < y)


# https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md, written by the letter.
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def turned(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) % WORD


def one_round(lane: int, text: int) -> int:
    return turned((lane + text * P2) % WORD, 31) * P1 % WORD


def xxh64(data: bytes, seed: int) -> int:
    left = data
    if len(data) >= 32:
        lanes = [(seed + P1 + P2) % WORD, (seed + P2) % WORD, seed, (seed - P1) % WORD]
        while len(left) >= 32:
            lanes = [
                one_round(lane, int.from_bytes(left[8 * n : 8 * n + 8], "little"))
                for n, lane in enumerate(lanes)
            ]
            left = left[32:]
        found = sum(turned(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            found = ((found ^ one_round(0, lane)) * P1 + P4) % WORD
    else:
        found = seed + P5
    found = (found + len(data)) % WORD
    while len(left) >= 8:
        found ^= one_round(0, int.from_bytes(left[:8], "little"))
        found, left = (turned(found, 27) * P1 + P4) % WORD, left[8:]
    if len(left) >= 4:
        found ^= int.from_bytes(left[:4], "little") * P1 % WORD
        found, left = (turned(found, 23) * P2 + P3) % WORD, left[4:]
    for byte in left:
        found = turned(found ^ byte * P5 % WORD, 11) * P1 % WORD
    found = (found ^ found >> 33) * P2 % WORD
    found = (found ^ found >> 29) * P3 % WORD
    return found ^ found >> 32


@compares("xxhash._turned", "xxhash._round", "xxhash.xxhash64")
@given(st.binary(max_size=100), integers(0, 2**63 - 1), st.integers(1, 63))
def test_xxhash(data: bytes, seed: int, by: int) -> None:
    array = np.frombuffer(data + b"\0", dtype=np.uint8)
    assert int(xxhash.xxhash64(address(array), len(data), seed)) % WORD == xxh64(data, seed)
    assert int(xxhash._turned(np.uint64(seed), by)) == turned(seed, by)
    assert int(xxhash._round(np.uint64(seed), np.uint64(by))) == one_round(seed, by)


@compares("xxhash._number")
@given(st.lists(st.text(max_size=40), max_size=8), st.integers(1, 9))
def test_shards_of_terms(texts: list[str], shards: int) -> None:
    expected = [signed(xxh64(text.encode(), 42)) % shards for text in texts]
    data = np.frombuffer("".join(texts).encode() + b"\0", dtype=np.uint8)
    offsets = ints(np.cumsum([0, *(len(text.encode()) for text in texts)]))
    found = np.zeros(len(texts), dtype=np.int64)
    xxhash._number(address(data), offsets, shards, found)
    assert found.tolist() == expected
    assert xxhash.shard_numbers(pa.array(texts, pa.string()), shards).tolist() == expected
