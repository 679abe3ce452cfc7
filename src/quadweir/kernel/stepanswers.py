"""The answers of one step, which a shard takes in several cuts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from quadweir.kernel.answers import Answers, Rows, no_rows
from quadweir.kernel.dictionary import Dictionary
from quadweir.terms import Variable

CutAnswers: TypeAlias = tuple[Rows, tuple[pa.Array, ...]]
"""The answers of a cut: numbers of terms, and a column of spellings for each variable."""


def spelled(rows: Rows, dictionary: Dictionary, *, spell: bool = True) -> CutAnswers:
    """Spell the answers of a cut, while the dictionary still has their terms; or leave that out."""
    columns = range(rows.values.shape[1] if spell else 0)
    return rows, tuple(
        dictionary.decode(np.ascontiguousarray(rows.values[:, column])) for column in columns
    )


def put_together(found: Sequence[CutAnswers], variables: tuple[Variable, ...]) -> Answers:
    """Return the answers of all cuts as one."""
    rows = [each for each, _ in found] or [no_rows(len(variables))]
    columns = tuple(
        pa.concat_arrays([texts[column] for _, texts in found]) for column in range(len(variables))
    )
    queries = [each.query for each in rows if each.query is not None]
    return Answers(
        variables,
        np.concatenate([each.t for each in rows]),
        np.concatenate([each.sign for each in rows]),
        columns,
        np.concatenate(queries) if queries else None,
    )
