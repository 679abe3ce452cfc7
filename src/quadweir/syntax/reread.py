"""Reads every written text again, to check that it keeps the meaning.

Losses that the writer has warned about are left out of the comparison. So is the way in which
windows are written: a block around several patterns, or one around each.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace
from typing import Any, Final

from quadweir.algebra.node import Node
from quadweir.algebra.patterns import (
    BasicPattern,
    Graph,
    Join,
    Pattern,
    Service,
    WindowPattern,
    is_hidden,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.traverse import rewrite_patterns, walk
from quadweir.algebra.windows import Window
from quadweir.errors import QuadweirError, UnsupportedError
from quadweir.syntax.parser import TITLES
from quadweir.syntax.read import parse
from quadweir.terms import IRI, Variable

# Under these warnings the patterns themselves are written in another way.
_REWRITTEN: Final = frozenset(("merged-default-graph", "window-variable"))
_OTHER_SCOPE: Final = frozenset(("step", "count-unit", "origin"))


def check_written(
    query: ContinuousQuery, text: str, dialect: str, lost: Collection[str]
) -> ContinuousQuery:
    """Read a text that was written for a query, and refuse it if it means something else.

    Args:
        query: what was to be written.
        text: what was written.
        dialect: the dialect of the text.
        lost: the aspects that the writer has warned about.

    Raises:
        UnsupportedError: the text cannot be read, or means something else.
    """
    title = TITLES[dialect]
    try:
        again = parse(text, dialect=dialect, allow=("FROM", "SERVICE"))
    except QuadweirError as problem:
        raise UnsupportedError(
            f"this query cannot be written in {title}: {problem.message}",
            detail=f"The text would be:\n{text}",
            hint="Write it in another dialect, or rewrite the part that is named.",
        ) from None
    if not _REWRITTEN & set(lost) and _meaning(query, query, lost) != _meaning(again, query, lost):
        raise UnsupportedError(
            f"this query cannot be written in {title}: the text would mean something else",
            detail=f"The text would be:\n{text}",
            hint="Write it in another dialect. Please report this with the query.",
        )
    return again


def _meaning(query: ContinuousQuery, original: ContinuousQuery, lost: Collection[str]) -> object:
    """The parts that must be equal: form, dataset and pattern, with normalised names."""
    keys = {window.name: _key(window, lost) for window in query.windows}
    pattern = rewrite_patterns(query.pattern, lambda each: _spread(each, keys))
    known = {value for node in walk(original) for value in _variables(node)}
    return _rename(
        (query.form, pattern, query.default_graphs, query.named_graphs),
        {variable for variable in known if not is_hidden(variable)},
        {},
    )


def _key(window: Window, lost: Collection[str]) -> IRI:
    """Name a window by what it holds, so that the names in the texts do not matter."""
    scope = "" if _OTHER_SCOPE & set(lost) else str(window.scope)
    return IRI(f"urn:window:{window.stream}{scope}")


def _spread(pattern: Pattern, keys: dict[IRI, IRI]) -> Pattern:
    """Put a window's name on each basic pattern of its block, and join in one level."""
    match pattern:
        case WindowPattern(window=IRI() as name, input=inner):
            named = WindowPattern(window=keys.get(name, name), input=inner)
            blocks = any(isinstance(each, Graph | Service) for each in walk(inner))
            return named if blocks else _to_leaves(named)
        case Join():
            parts: list[Pattern] = []
            for each in pattern.inputs:
                parts.extend(each.inputs if isinstance(each, Join) else (each,))
            return replace(pattern, inputs=tuple(parts))
        case _:
            return pattern


def _to_leaves(block: WindowPattern) -> Pattern:
    def leaf(each: Pattern) -> Pattern:
        if isinstance(each, BasicPattern) and each.patterns:
            return WindowPattern(window=block.window, input=each)
        return each

    return rewrite_patterns(block.input, leaf)


def _variables(node: Node) -> list[Variable]:
    found: list[Variable] = []
    for field in fields(node):
        value = getattr(node, field.name)
        for each in value if type(value) is tuple else (value,):
            if isinstance(each, Variable):
                found.append(each)
    return found


def _rename(value: Any, visible: set[Variable], names: dict[Variable, Variable]) -> Any:
    """Number the variables that the query's author did not name, by first appearance."""
    if isinstance(value, Variable) and value not in visible:
        return names.setdefault(value, Variable(f"_:{len(names)}"))
    if isinstance(value, Node):
        inside = (each.name for each in fields(value) if each.name != "span")
        return replace(
            value, **{name: _rename(getattr(value, name), visible, names) for name in inside}
        )
    if type(value) is tuple:
        return tuple(_rename(each, visible, names) for each in value)
    return value
