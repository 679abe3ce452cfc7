"""Limits on the work of one evaluation: queries and data may come from strangers.

A few patterns can have more solutions than a machine can hold. Every operator counts its solutions,
and stops with an error that names it before memory runs out.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import LimitError

if TYPE_CHECKING:
    from quadweir.spans import Span

VARIABLE: Final = "QUADWEIR_MOST_WORK"
MOST: Final = 10_000_000

# A solution in Python takes as much time and memory as some rows of a kernel operator.
_SOLUTION: Final = 4
# How often an evaluation may visit each of its triples.
_FOR_EACH: Final = 20
# How many characters functions may make for each row that an operator may make.
_CHARACTERS: Final = 20


def most_work() -> int:
    """Return how many rows an operator may make in one step: the environment's choice, or `MOST`."""
    text = os.environ.get(VARIABLE, "")
    return int(text) if text.isascii() and text.isdecimal() and int(text) else MOST


def too_much(what: str, most: int, span: Span | None = None) -> LimitError:
    """Make the error for work beyond the limit; `what` names the operator and what it did."""
    return LimitError(
        f"{what} more than {most:,} times in one step",
        detail="Patterns that share no variable, or paths with many ways, give every combination.",
        hint=f"Join the patterns by a variable, narrow the windows, or raise {VARIABLE} (now {most_work():,}).",
        span=span,
    )


@final
class WorkCounter:
    """Counts the solutions that one evaluation in Python visits.

    Args:
        most: The limit; if it is not given, the environment's choice and `size` decide.
        size: How many triples there are. Work that grows with the data alone is not limited.

    >>> work = WorkCounter(2)
    >>> work.spend(2, "the join gives solutions")
    >>> work.spend(1, "the join gives solutions")
    Traceback (most recent call last):
    quadweir.errors.LimitError: the join gives solutions more than 2 times in one step
    ...
    """

    __slots__ = ("done", "most")

    def __init__(self, most: int | None = None, *, size: int = 0) -> None:
        own = max(most_work() // _SOLUTION, _FOR_EACH * size)
        self.most = own if most is None else most
        self.done = 0

    def spend(self, count: int, what: str, span: Span | None = None) -> None:
        """Count work done.

        Raises:
            LimitError: that is more than the limit.
        """
        self.done += count
        if self.done > self.most:
            raise too_much(what, self.most, span)


@final
class TextCounter:
    """Counts the characters of the texts that functions make in one step.

    Args:
        most: The limit; if it is not given, the environment's choice decides.

    >>> texts = TextCounter(100)
    >>> texts.spend(100, "CONCAT")
    >>> texts.spend(1, "CONCAT")
    Traceback (most recent call last):
    quadweir.errors.LimitError: CONCAT and other functions make texts of more than 100 characters in one step
    ...
    """

    __slots__ = ("done", "most")

    def __init__(self, most: int | None = None) -> None:
        self.most = _CHARACTERS * most_work() if most is None else most
        self.done = 0

    def spend(self, count: int, function: str, span: Span | None = None) -> None:
        """Count the characters of a text that `function` made.

        Raises:
            LimitError: there are more than the limit.
        """
        self.done += count
        if self.done > self.most:
            raise LimitError(
                f"{function} and other functions make texts of more than {self.most:,} characters in one step",
                detail="A chain of CONCAT or REPLACE can double a text again and again; GROUP_CONCAT is as long "
                "as its group.",
                hint=f"Cut the texts with SUBSTR, narrow the windows, or raise {VARIABLE} (now {most_work():,}).",
                span=span,
            )

    def settle(self) -> None:
        """Begin another step."""
        self.done = 0
