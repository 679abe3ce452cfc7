"""Makes trees comparable that differ only in the numbers of their hidden variables."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from quadweir.algebra.node import Node
from quadweir.algebra.query import ContinuousQuery
from quadweir.terms import Variable


def same_names(query: ContinuousQuery) -> ContinuousQuery:
    """Number hidden variables by first appearance: their numbers have no meaning."""
    names: dict[Variable, Variable] = {}

    def rename(value: Any) -> Any:
        if isinstance(value, Variable) and value.name.startswith("_:"):
            return names.setdefault(value, Variable(f"_:{len(names)}"))
        if isinstance(value, Node):
            inside = (each.name for each in fields(value) if each.name != "span")
            return replace(value, **{name: rename(getattr(value, name)) for name in inside})
        if type(value) is tuple:
            return tuple(map(rename, value))
        return value

    renamed: ContinuousQuery = rename(query)
    return renamed
