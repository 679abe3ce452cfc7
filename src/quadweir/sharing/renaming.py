"""Names of variables that do not depend on how a query calls them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from quadweir.algebra.analyze import subpatterns
from quadweir.algebra.patterns import Slice, is_hidden
from quadweir.algebra.query import ContinuousQuery, SelectForm
from quadweir.terms import Variable

_NAMES: dict[type, tuple[str, ...]] = {}


def with_plain_variables(query: ContinuousQuery) -> ContinuousQuery:
    """Name variables by their order: first those of the answers, then as they come.

    Queries that differ in these names only become equal. Which rows a LIMIT keeps may depend on
    names, so a query that has one keeps them.

    >>> from quadweir.syntax import parse
    >>> text = "SELECT ?b WHERE { STREAM <urn:s> [NOW] { ?a <urn:p> ?b } }"
    >>> str(with_plain_variables(parse(text, dialect="cqels")).form.variables[0])
    '?v0'
    """
    if any(isinstance(each, Slice) for each in subpatterns(query.pattern)):
        return query
    names: dict[Variable, Variable] = {}

    def put(variable: Variable) -> Variable:
        if is_hidden(variable):
            return variable
        return names.setdefault(variable, Variable(f"v{len(names)}"))

    if isinstance(query.form, SelectForm):
        for each in query.form.variables:
            put(each)
    renamed: ContinuousQuery = _renamed(query, put)
    return renamed


def _renamed(value: Any, put: Callable[[Variable], Variable]) -> Any:
    """Return a value with other variables; the same object comes back if it has none."""
    kind = type(value)
    if kind is Variable:
        return put(value)
    if kind is tuple:
        parts = tuple(_renamed(each, put) for each in value)
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    changes = {}
    for name in fields_of(kind):
        old = getattr(value, name)
        new = _renamed(old, put)
        if new is not old:
            changes[name] = new
    return replace(value, **changes) if changes else value


def fields_of(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass that say what it means; none for other types."""
    names = _NAMES.get(kind)
    if names is None:
        found = fields(kind) if is_dataclass(kind) else ()
        names = tuple(each.name for each in found if each.name != "span" and each.init)
        _NAMES[kind] = names
    return names
