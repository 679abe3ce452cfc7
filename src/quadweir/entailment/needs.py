"""The predicates and classes that a query's patterns use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from quadweir.algebra.expressions import Constant, FunctionCall
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import (
    BasicPattern,
    Graph,
    Link,
    NegatedSet,
    PathPattern,
    TriplePattern,
    WindowPattern,
    is_nullable,
)
from quadweir.algebra.query import ContinuousQuery, DescribeForm
from quadweir.algebra.traverse import children, walk
from quadweir.entailment.schema import TYPE, Class
from quadweir.terms import IRI, Variable


@final
@dataclass(frozen=True, slots=True)
class SchemaNeeds:
    """The predicates other than `rdf:type`, and the classes, that are used; None means all.

    >>> SchemaNeeds(frozenset({IRI("urn:p")}), frozenset()).predicate(IRI("urn:q"))
    False
    """

    predicates: frozenset[IRI] | None
    classes: frozenset[Class] | None

    def predicate(self, each: IRI) -> bool:
        return self.predicates is None or each in self.predicates

    def a_class(self, each: object) -> bool:
        return self.classes is None or each in self.classes

    def some_class(self) -> bool:
        """Whether any pattern asks for instances of classes."""
        return self.classes is None or bool(self.classes)

    def with_predicates(self, more: Iterable[IRI]) -> SchemaNeeds:
        """Add predicates."""
        if self.predicates is None:
            return self
        return SchemaNeeds(self.predicates | frozenset(more), self.classes)


EVERYTHING: Final = SchemaNeeds(None, None)


def needs_of(query: ContinuousQuery) -> SchemaNeeds:
    """The needs of all patterns of a query, over windows and static data."""
    if isinstance(query.form, DescribeForm):
        return EVERYTHING
    return _gathered(walk(query.pattern))


def needs_of_windows(query: ContinuousQuery) -> SchemaNeeds:
    """The needs of the patterns that are matched in windows."""
    if isinstance(query.form, DescribeForm):
        return EVERYTHING
    merged = bool(query.default_graph_windows)
    return _gathered(_matched(query.pattern, windows=True, here=merged))


def needs_of_static(query: ContinuousQuery) -> SchemaNeeds:
    """The needs of the patterns that are matched in static data."""
    if isinstance(query.form, DescribeForm):
        return EVERYTHING
    return _gathered(_matched(query.pattern, windows=False, here=True))


def _matched(node: Node, *, windows: bool, here: bool, is_block: bool = False) -> Iterable[Node]:
    """The patterns that are matched in windows, or in static data; a pattern at the top level may
    be matched in both, as one graph.

    GRAPH looks into static data, or in a WINDOW block into its named graphs (W11).
    """
    match node:
        case WindowPattern():
            here, is_block = windows, True
        case Graph() if not is_block:
            here = not windows
        case BasicPattern():
            if here:
                yield from walk(node)
            return
        case FunctionCall():
            yield node
        case _:
            pass
    for child in children(node):
        yield from _matched(child, windows=windows, here=here, is_block=is_block)


def _gathered(nodes: Iterable[Node]) -> SchemaNeeds:
    predicates: set[IRI] = set()
    classes: set[Class] = set()
    all_predicates = all_classes = False
    for node in nodes:
        match node:
            case TriplePattern(predicate=predicate, object=end):
                asked: tuple[object, object] = (predicate, end)
            case Link(predicate=predicate):
                asked = (predicate, None)
            case NegatedSet():
                asked = (None, None)
            case BasicPattern(patterns=patterns) if _asks_for_nodes(patterns):
                asked = (None, None)
            case FunctionCall(function="TIMESTAMP", arguments=(_, predicate_of, end_of)):
                asked = tuple(  # type: ignore[assignment]
                    each.term if isinstance(each, Constant) else None
                    for each in (predicate_of, end_of)
                )
            case _:
                continue
        match asked:
            case (IRI() as predicate, IRI() as wanted) if predicate == TYPE:
                classes.add(wanted)
            case (IRI() as predicate, _) if predicate == TYPE:
                all_classes = True
            case (IRI() as predicate, _):
                predicates.add(predicate)
            case _:
                all_predicates = all_classes = True
    return SchemaNeeds(
        None if all_predicates else frozenset(predicates),
        None if all_classes else frozenset(classes),
    )


def _asks_for_nodes(patterns: Iterable[TriplePattern | PathPattern]) -> bool:
    """Whether a path without steps finds nodes of the graph that no triple pattern finds.

    Such a path leads from every node to itself. So a derived statement matters even if no pattern
    matches it: its subject and object are nodes.
    """
    patterns = tuple(patterns)
    found = {
        term
        for each in patterns
        if isinstance(each, TriplePattern)
        for term in (each.subject, each.object)
    }
    return any(
        isinstance(each, PathPattern)
        and is_nullable(each.path)
        and all(
            isinstance(end, Variable) and end not in found for end in (each.subject, each.object)
        )
        for each in patterns
    )
