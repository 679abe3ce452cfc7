"""Which output makes the answers of a query, by its form, its modifiers and its output operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quadweir.algebra.analyze import compares_derivations
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import solve
from quadweir.algebra.patterns import Pattern, Values
from quadweir.algebra.query import AskForm, ConstructForm, ContinuousQuery, SelectForm
from quadweir.algebra.scopes import in_scope
from quadweir.algebra.solutions import Bag
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.values import FALSE, TRUE
from quadweir.kernel.answers import Differences, Eager, Everything, Output, Whole
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.relation import Operator
from quadweir.kernel.shapes import NotIncrementalError, alone
from quadweir.terms import Variable


def output_of(
    query: ContinuousQuery,
    root: Operator,
    modifiers: Sequence[Pattern],
    inner: Pattern,
    columns: tuple[Variable, ...],
    dictionary: Dictionary,
    *,
    eager: bool,
) -> Output:
    """Choose what turns solutions that are kept up to date into answers.

    Args:
        query: the query.
        root: the operator whose rows are the solutions.
        modifiers: ORDER BY, LIMIT and the like, the innermost first; what they are applied to is
            `inner`.
        inner: the pattern that `root` keeps up to date.
        columns: the variables of an answer.
        dictionary: the numbers of terms.
        eager: whether answers leave as soon as their parts are there.

    Raises:
        NotIncrementalError: the query has to be evaluated anew at every report.
    """
    if isinstance(query.form, AskForm) and not modifiers:
        return Whole(
            (root, ()), lambda _t, found: _asked(found, dictionary), 1, query.output, dictionary
        )
    if modifiers:
        if not isinstance(query.form, SelectForm | ConstructForm):
            raise NotIncrementalError("LIMIT or OFFSET under ASK")
        kept = tuple(sorted(in_scope(inner, query)))
        return Whole(
            (root, kept),
            lambda _t, found: _modified(query, modifiers, kept, found, columns, dictionary),
            len(columns),
            query.output,
            dictionary,
        )
    if eager:
        return Eager(root, columns)
    if query.output is OutputOperator.RSTREAM:
        return Everything(root, columns, dictionary)
    return Differences(
        root,
        columns,
        dictionary,
        derivations=compares_derivations(query),
        goes=query.output is OutputOperator.DSTREAM,
    )


def _asked(found: np.ndarray, dictionary: Dictionary) -> np.ndarray:
    answer = TRUE if len(found) else FALSE
    return np.array([[dictionary.number(answer)]], dtype=np.int64)


def _modified(
    query: ContinuousQuery,
    modifiers: Sequence[Pattern],
    kept: tuple[Variable, ...],
    found: np.ndarray,
    columns: tuple[Variable, ...],
    dictionary: Dictionary,
) -> np.ndarray:
    """Apply ORDER BY, LIMIT and the like to the solutions of one report (A4)."""
    terms = {int(each): dictionary.term(int(each)) for each in np.unique(found) if each}
    rows = tuple(tuple(terms.get(int(each)) for each in row) for row in found)
    pattern: Pattern = Values(variables=kept, rows=rows)  # type: ignore[arg-type]
    for modifier in modifiers:
        pattern = replace(modifier, input=pattern)  # type: ignore[arg-type]
    bag: Bag = solve(alone(query, pattern), Dataset())
    result = np.zeros((len(bag), len(columns)), dtype=np.int64)
    for place, solution in enumerate(bag):
        for column, variable in enumerate(columns):
            if variable in solution:
                result[place, column] = dictionary.number(solution[variable])
    return result
