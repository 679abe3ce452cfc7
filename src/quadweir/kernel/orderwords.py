"""Words that keep the order of values: MIN, MAX and SAMPLE compare four integers.

Of numbers the words are the nearest double, and where that is not exact the side and the exact
value; of other terms their kind and how their text begins. They are computed once for each value.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit

from quadweir.algebra.values import order_key
from quadweir.kernel.arrays import Ints
from quadweir.kernel.exactarithmetic import INFINITY, MANTISSA
from quadweir.kernel.typed import DECIMAL, DOUBLE, INTEGER, scaled
from quadweir.terms import IRI, Literal, Term, TripleTerm

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_PREFIX: Final = 16


@njit(cache=True)  # type: ignore[untyped-decorator]
def exact_side(bits: int, high: int, low: int) -> int:
    """Return whether a number times 10**18 is below (-1), at (0) or above (1) its nearest double."""
    mantissa = (bits & MANTISSA) | (MANTISSA + 1)
    shift = ((bits >> 52) & 0x7FF) - 1075
    a, b = scaled(-mantissa if bits < 0 else mantissa)
    # Both are nearly the same, so shifting one to the place of the other stays within 128 bits.
    c: Any = high
    d: Any = low
    if shift >= 64:
        a, b = b << (shift - 64), np.int64(0)
    elif shift > 0:
        a = (a << shift) | np.int64(np.uint64(b) >> np.uint64(64 - shift))
        b = b << shift
    elif shift <= -64:
        c, d = d << (-shift - 64), np.int64(0)
    elif shift < 0:
        c = (c << -shift) | np.int64(np.uint64(d) >> np.uint64(64 + shift))
        d = d << -shift
    if c != a:
        return -1 if c < a else 1
    if d == b:
        return 0
    return -1 if np.uint64(d) < np.uint64(b) else 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def number_words(kind: Ints, bits: Ints, high: Ints, low: Ints, words: Ints) -> None:
    """Write the words of the numbers among the values; NaN comes first, as in ORDER BY."""
    for at in range(len(kind)):
        if kind[at] < INTEGER or kind[at] > DOUBLE:
            continue
        double = bits[at]
        if double & INFINITY == INFINITY and double & MANTISSA != 0:
            words[at, 0] = _LEAST + 1
            continue
        if double == _LEAST:
            double = 0  # there is but one zero
        words[at, 0] = double if double >= 0 else double ^ _MOST
        if kind[at] <= DECIMAL and double != 0:
            side = exact_side(double, high[at], low[at])
            if side != 0:
                words[at, 1] = side
                words[at, 2] = high[at]
                words[at, 3] = low[at] ^ _LEAST


def text_words(texts: bytes, width: int) -> Ints:
    """Read bytes as words that have the same order."""
    unsigned = np.frombuffer(texts, dtype=">u8").astype(np.uint64) ^ np.uint64(1 << 63)
    return unsigned.view(np.int64).reshape(-1, width)


_TRIPLE_KIND: Final = 7


def term_words(term: Term) -> Ints:
    """Return the words of a term that is no number: what it is, and how its text begins."""
    key = order_key(term)
    if isinstance(term, Literal):
        text = key[2] if isinstance(key[2], str) and key[1] != 4 else ""
        major, kind = _MOST, int(key[1])
    elif isinstance(term, TripleTerm):
        # After all literals, whose kinds are fewer.
        text, major, kind = "", _MOST, _TRIPLE_KIND
    else:
        text = term.value if isinstance(term, IRI) else term.label
        major, kind = _LEAST, int(isinstance(term, IRI))
    prefix = text.encode("utf-8", "surrogatepass")[:_PREFIX].ljust(_PREFIX, b"\0")
    return np.array([major, kind, *text_words(prefix, 2)[0].tolist()], dtype=np.int64)
