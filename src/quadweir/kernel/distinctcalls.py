"""Functions of terms over whole columns: computed once for each distinct combination of terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, cast

import numpy as np

from quadweir.algebra.moments import ExpressionError
from quadweir.kernel.arrays import Ints
from quadweir.kernel.dictionary import Dictionary, distinct_of, parsed
from quadweir.spans import Span
from quadweir.terms import IRI, Term

# How many results an expression remembers, and how many letters the terms of one may have.
_MOST_REMEMBERED: Final = 16_384
_SHORT: Final = 1_000
_Result = TypeVar("_Result")


class DistinctCalls:
    """Calls functions of terms, and remembers results by name and spellings.

    Most steps see terms of the step before.

    State: up to 16,384 results of short terms.
    Forgets: all results when there are more.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self.memory: dict[tuple[object, ...], object] = {}

    def terms(
        self,
        name: str | IRI | int,
        numbers: tuple[Ints, ...],
        make: Callable[[list[Term]], Term],
        *,
        called: str,
        span: Span | None = None,
        unbound: bool = False,
    ) -> Ints:
        """Return the numbers of the terms that `make` returns, 0 for an error.

        Args:
            name: What the results are remembered by, with the spellings.
            numbers: The arguments, a column each.
            make: Called for each distinct combination of terms.
            called: What errors call it.
            span: Its place in the query.
            unbound: Whether it is called with the terms that are bound, if some are not.

        Raises:
            LimitError: the terms are too long to be held.
        """

        def made(terms: list[Term]) -> str:
            text = str(make(terms))
            self._dictionary.texts.spend(len(text), called, span)
            return text

        codes, results = self._results(name, numbers, made, "", unbound=unbound)
        return self._dictionary.numbers(results)[codes]

    def integers(
        self,
        name: str,
        numbers: tuple[Ints, ...],
        one: Callable[[list[Term]], int],
        error: int,
    ) -> Ints:
        """Return what `one` returns for each distinct combination of terms, or `error`."""
        codes, results = self._results(name, numbers, one, error)
        return np.array(results, dtype=np.int64)[codes]

    def _results(
        self,
        name: str | IRI | int,
        numbers: tuple[Ints, ...],
        one: Callable[[list[Term]], _Result],
        error: _Result,
        *,
        unbound: bool = False,
    ) -> tuple[Ints, list[_Result]]:
        """Return which result each row has, and a result for each distinct combination."""
        codes, combinations = _distinct_rows(numbers)
        spelled = [self._dictionary.spellings(each) for each in combinations]
        results = []
        for row in zip(*spelled, strict=True):
            if not unbound and "" in row:
                results.append(error)
                continue
            key = (name, *row)
            if key in self.memory:
                results.append(cast(_Result, self.memory[key]))
                continue
            try:
                found = one([parsed(each) for each in row if each])
            except ExpressionError:
                found = error
            self._remember(key, found)
            results.append(found)
        return codes, results

    def _remember(self, key: tuple[object, ...], found: object) -> None:
        letters = sum(len(each) for each in (*key, found) if isinstance(each, str))
        if letters <= _SHORT:
            if len(self.memory) >= _MOST_REMEMBERED:
                self.memory.clear()
            self.memory[key] = found


def _distinct_rows(numbers: tuple[Ints, ...]) -> tuple[Ints, list[Ints]]:
    """Return the place of each row among the distinct combinations, and these column by column."""
    codes, distinct = distinct_of(numbers[0])
    combinations = [distinct]
    for column in numbers[1:]:
        more, distinct = distinct_of(column)
        codes, both = distinct_of(codes * len(distinct) + more)
        before, now = np.divmod(both, max(len(distinct), 1))
        combinations = [each[before] for each in combinations]
        combinations.append(distinct[now])
    return codes, combinations
