"""The root of every algebra node: where in the query text it came from."""

from __future__ import annotations

from dataclasses import dataclass, field

from quadweir.errors import InternalError
from quadweir.spans import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One piece of a query's meaning.

    `span` is left out of equality and hashing, so the same pattern in two queries is equal.
    """

    span: Span | None = field(default=None, compare=False, repr=False)


def require(condition: bool, message: str) -> None:
    """Refuse to make a malformed node; only a bug of ours can get here.

    >>> require(1 < 2, "numbers are out of order")
    """
    if not condition:
        raise InternalError(
            f"a malformed query tree: {message}",
            hint="Please report this with the query that led to it.",
        )
