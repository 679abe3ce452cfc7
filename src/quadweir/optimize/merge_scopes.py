"""Match patterns of the same window or graph together."""

from __future__ import annotations

from dataclasses import replace

from quadweir.algebra.expressions import Expression
from quadweir.algebra.patterns import Graph, Join, LeftJoin, Pattern, WindowPattern
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.scopes import in_scope
from quadweir.algebra.traverse import rewrite_patterns
from quadweir.optimize.conditions import has_exists, stream_variables, variables_of
from quadweir.terms import IRI


def merge_scopes(query: ContinuousQuery) -> ContinuousQuery:
    """Turn Join(Window(w, P), Window(w, Q)) into Window(w, Join(P, Q)); so for OPTIONAL, and graphs.

    At an instant a window has one content, so one block can match what two blocks match.
    A window over a stream variable binds it in both, and the join keeps to one stream. (MINUS
    would not: bound outside, the stream is a variable that both sides share, and inside it is not.)
    """

    def merge(node: Pattern) -> Pattern:
        match node:
            case Join():
                return _merge_join(node)
            case LeftJoin():
                return _merge_left_join(node, query)
            case _:
                return node

    return rewrite_patterns(query, merge)


def _merge_left_join(node: LeftJoin, query: ContinuousQuery) -> Pattern:
    if node.condition is not None and has_exists(node.condition):
        return node  # it would then be evaluated in the window instead of around it
    match node.left, node.right:
        case (
            WindowPattern(window=IRI() as window, input=left),
            WindowPattern(window=same, input=right),
        ) if window == same and not _reads_stream(right, node.condition, query):
            inner = replace(node, left=left, right=right)
            return WindowPattern(window=window, input=inner, span=node.span)
        case (
            Graph(graph=IRI() as graph, input=left),
            Graph(graph=same, input=right),
        ) if graph == same:
            inner = replace(node, left=left, right=right)
            return Graph(graph=graph, input=inner, span=node.span)
        case _:
            return node


def _reads_stream(right: Pattern, condition: Expression | None, query: ContinuousQuery) -> bool:
    """Whether the optional part or its condition uses a stream variable.

    The window binds the variable after its pattern is matched. Inside, the optional part would be
    chosen without it: a partner from another stream would take the solution with it when it goes.
    """
    seen = in_scope(right, query)
    if condition is not None:
        seen |= variables_of(condition, query)
    return not seen.isdisjoint(stream_variables(query))


def _merge_join(node: Join) -> Pattern:
    groups: dict[tuple[type, IRI], list[Pattern]] = {}
    order: list[Pattern | tuple[type, IRI]] = []
    for each in node.inputs:
        key: tuple[type, IRI] | None = None
        if isinstance(each, WindowPattern) and isinstance(each.window, IRI):
            key = (WindowPattern, each.window)
        elif isinstance(each, Graph) and isinstance(each.graph, IRI):
            key = (Graph, each.graph)
        if key is None:
            order.append(each)
        elif key in groups:
            groups[key].append(each)
        else:
            groups[key] = [each]
            order.append(key)
    if all(len(group) == 1 for group in groups.values()):
        return node
    inputs = [_together(groups[each]) if isinstance(each, tuple) else each for each in order]
    return inputs[0] if len(inputs) == 1 else Join(inputs=tuple(inputs), span=node.span)


def _together(group: list[Pattern]) -> Pattern:
    first = group[0]
    if len(group) == 1:
        return first
    inputs = tuple(each.input for each in group if isinstance(each, WindowPattern | Graph))
    joined = Join(inputs=inputs)
    if isinstance(first, WindowPattern):
        return WindowPattern(window=first.window, input=joined, span=first.span)
    assert isinstance(first, Graph)
    return Graph(graph=first.graph, input=joined, span=first.span)
