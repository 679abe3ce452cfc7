"""Walk, fold and rewrite trees without naming every class.

A node's children are those of its fields that are nodes or tuples of nodes, in the order of
declaration. An `Exists` has a pattern inside an expression, so every pass here crosses from
patterns to expressions and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar, cast, get_args

from quadweir.algebra.expressions import Expression
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import Path, Pattern

_Result = TypeVar("_Result")
AnyNode = TypeVar("AnyNode", bound=Node)

PATTERN_CLASSES: tuple[type, ...] = get_args(Pattern)
EXPRESSION_CLASSES: tuple[type, ...] = get_args(Expression)
PATH_CLASSES: tuple[type, ...] = get_args(Path)


_FIELD_NAMES: dict[type, tuple[str, ...]] = {}


def _field_names(kind: type[Node]) -> tuple[str, ...]:
    # No class carries its children's names by hand: a forgotten one would be a silent gap.
    names = _FIELD_NAMES.get(kind)
    if names is None:
        names = tuple(field.name for field in fields(kind) if field.name != "span")
        _FIELD_NAMES[kind] = names
    return names


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below.

    >>> from quadweir.algebra.patterns import BasicPattern, Distinct
    >>> children(Distinct(input=BasicPattern()))
    (BasicPattern(patterns=()),)
    """
    found: list[Node] = []
    for name in _field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif type(value) is tuple:
            found.extend(part for part in value if isinstance(part, Node))
    return tuple(found)


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, parents first, left to right.

    >>> from quadweir.algebra.patterns import BasicPattern, Distinct
    >>> [type(each).__name__ for each in walk(Distinct(input=BasicPattern()))]
    ['Distinct', 'BasicPattern']
    """
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))


def depth(node: Node) -> int:
    """Count the levels of a tree, without recursion.

    >>> from quadweir.algebra.patterns import BasicPattern, Distinct
    >>> depth(Distinct(input=BasicPattern()))
    2
    """
    deepest = 0
    stack = [(node, 1)]
    while stack:
        current, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in children(current))
    return deepest


def fold(node: Node, combine: Callable[[Node, tuple[_Result, ...]], _Result]) -> _Result:
    """Compute a value bottom-up from each node and its children's values.

    >>> from quadweir.algebra.patterns import BasicPattern, Distinct
    >>> fold(Distinct(input=BasicPattern()), lambda node, below: 1 + sum(below))
    2
    """
    return combine(node, tuple(fold(child, combine) for child in children(node)))


def with_children(node: AnyNode, change: Callable[[Node], Node]) -> AnyNode:
    """Replace each child by `change(child)`; the same object comes back if none changed."""
    changes: dict[str, Any] = {}
    for name in _field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            new = change(value)
            if new is not value:
                changes[name] = new
        elif type(value) is tuple and any(isinstance(part, Node) for part in value):
            parts = tuple(change(part) if isinstance(part, Node) else part for part in value)
            if any(new is not old for new, old in zip(parts, value, strict=True)):
                changes[name] = parts
    return replace(node, **changes) if changes else node


def rewrite(node: AnyNode, rule: Callable[[Node], Node]) -> AnyNode:
    """Apply a rule to every node, children before parents.

    A rule that finds nothing returns the object it was given; then so does `rewrite`.

    >>> from quadweir.algebra.patterns import BasicPattern, Distinct
    >>> twice = Distinct(input=Distinct(input=BasicPattern()))
    >>> def once(node: Node) -> Node:
    ...     match node:
    ...         case Distinct(input=Distinct() as inner):
    ...             return inner
    ...     return node
    >>> rewrite(twice, once)
    Distinct(input=BasicPattern(patterns=()))
    >>> rewrite(twice.input, once) is twice.input
    True
    """
    below = with_children(node, lambda child: rewrite(child, rule))
    return cast(AnyNode, rule(below))


def rewrite_patterns(node: AnyNode, rule: Callable[[Pattern], Pattern]) -> AnyNode:
    """Apply a rule to every pattern of a tree, those inside EXISTS too, children first."""

    def apply(each: Node) -> Node:
        return rule(cast(Pattern, each)) if isinstance(each, PATTERN_CLASSES) else each

    return rewrite(node, apply)


def rewrite_expressions(node: AnyNode, rule: Callable[[Expression], Expression]) -> AnyNode:
    """Apply a rule to every expression of a tree, children first."""

    def apply(each: Node) -> Node:
        return rule(cast(Expression, each)) if isinstance(each, EXPRESSION_CLASSES) else each

    return rewrite(node, apply)
