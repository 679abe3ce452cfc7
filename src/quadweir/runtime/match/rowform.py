"""The form of rows after matching: a time, a position, bits (`bits.py`), terms, and a hash."""

from __future__ import annotations

from typing import Final

from quadweir.plan.matchtests import Matching

VALUES: Final = ("value0", "value1", "value2", "value3")
HASH: Final = "hash"
"""A hash of the triple."""

END: Final = "urn:quadweir:end"
"""An element of this stream ends all other streams; their windows then become empty (E3)."""


def stream_numbers(matching: Matching) -> tuple[str, ...]:
    """Return the streams that are read, and the one that ends them, in the order of numbers."""
    return (*matching.streams, END)
