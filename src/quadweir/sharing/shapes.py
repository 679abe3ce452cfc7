"""Shapes: what queries have in common that can be answered together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

from quadweir.algebra.query import ConstructForm, ContinuousQuery, SelectForm
from quadweir.terms import Ground, Variable


@final
@dataclass(frozen=True)
class Shape:
    """What the queries of one template have in common.

    Attributes:
        query: The query.
        parameters: The variables in place of constants.
        windows: The places of the open windows.
        one_since: Whether all members must have joined at the same instant.
        reason: Why no more is shared; empty if all is.
    """

    query: ContinuousQuery
    parameters: tuple[Variable, ...] = ()
    windows: tuple[int, ...] = ()
    one_since: bool = True
    reason: str = ""


class Shaped(NamedTuple):
    """A query as a shape, and what is its own."""

    shape: Shape
    constants: tuple[Ground, ...]
    ranges: tuple[int, ...]


@final
@dataclass
class Shapes:
    """Finds the shapes of queries over the same streams."""

    streams: Sequence[str] = ()

    def of(self, query: ContinuousQuery) -> Shaped:
        """The shape of an optimised query. Its name does not matter."""
        form = query.form
        if isinstance(form, ConstructForm):
            form = SelectForm(variables=form.variables)
        return Shaped(Shape(replace(query, name=None, form=form)), (), ())
