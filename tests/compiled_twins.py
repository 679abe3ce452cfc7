"""What tests of compiled functions share: the mark that says which function a test compares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

Test = TypeVar("Test", bound=Callable[..., Any])

WORD = 2**64


def compares(*functions: str) -> Callable[[Test], Test]:
    """Mark a test that compares compiled functions with a plain-Python version of their meaning.

    Args:
        functions: Their names, as `quadweir.kernel.warm.dispatchers` lists them.
    """
    assert functions

    def mark(test: Test) -> Test:
        return test

    return mark


def signed(value: int) -> int:
    """Read the lowest 64 bits of an integer as a signed number."""
    value %= WORD
    return value - WORD if value >= WORD // 2 else value


def word(value: int) -> np.int64:
    """Pass an integer of 64 bits to compiled code."""
    return np.int64(signed(value))


def ints(values: Any) -> np.ndarray:
    """Make an array of the one type that the kernel uses."""
    return np.array(values, dtype=np.int64)


def integers(low: int = -(2**63), high: int = 2**63 - 1) -> st.SearchStrategy[int]:
    """Integers of 64 bits, with the bounds of all sizes among them."""
    edges = [each for n in range(64) for each in (2**n, 2**n - 1, -(2**n))]
    near = [each for each in (*edges, 0, low, high) if low <= each <= high]
    return st.one_of(st.integers(low, high), st.sampled_from(near))
