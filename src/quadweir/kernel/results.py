"""Spelling the results of aggregates, once they are read."""

from __future__ import annotations

import numpy as np

from quadweir.algebra.values import Number, NumberKind, literal_of
from quadweir.kernel.arrays import Ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.typed import DECIMAL, DOUBLE, INTEGER, whole
from quadweir.vocab import XSD


def spell_results(results: Ints, dictionary: Dictionary) -> Ints:
    """Return the numbers of results that are not terms yet, each distinct one spelled once."""
    distinct, places = np.unique(results, axis=0, return_inverse=True)
    texts = [_spell(*each) for each in distinct.tolist()]
    return dictionary.numbers(texts)[places.ravel()]


def _spell(kind: int, high: int, low: int) -> str:
    if kind == DECIMAL:
        scaled = whole(high, low)
        before, behind = divmod(abs(scaled), 10**18)
        digits = f"{before}.{behind:018d}".rstrip("0").rstrip(".")
        return f'"{"-" if scaled < 0 else ""}{digits}"^^<{XSD.decimal}>'
    if kind == INTEGER:
        return str(literal_of(Number.integer(low)))
    value = float(np.int64(low).view(np.float64))
    return str(literal_of(Number(NumberKind.DOUBLE if kind == DOUBLE else NumberKind.FLOAT, value)))
