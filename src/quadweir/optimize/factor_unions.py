"""Match common parts of a union's branches once."""

from __future__ import annotations

from quadweir.algebra.patterns import (
    BasicPattern,
    Graph,
    Join,
    PathPattern,
    Pattern,
    TriplePattern,
    Union,
    WindowPattern,
)
from quadweir.optimize.conditions import is_volatile
from quadweir.terms import IRI


def factor_unions(node: Pattern) -> Pattern:
    """Turn Union(Join(A, B), Join(A, C)) into Join(A, Union(B, C)).

    Join distributes over union in bags too: each solution of A is joined with those of B and of C.
    If all branches are in the same window or graph, that is factored out first.
    """
    if not isinstance(node, Union):
        return node
    shared_scope = _same_scope(node)
    if shared_scope is not None:
        return shared_scope
    branches = [_factors(each) for each in node.inputs]
    common = _common(branches)
    # A branch that is only the common part would leave the empty pattern in the union. That is
    # correct but saves little. Equal branches must keep their number.
    if not common or any(len(branch) == len(common) for branch in branches):
        return node
    rest = []
    for branch in branches:
        left = list(branch)
        for part in common:
            left.remove(part)
        rest.append(_joined(left))
    return Join(inputs=(*_regroup(common), Union(inputs=tuple(rest))), span=node.span)


def _same_scope(node: Union) -> Pattern | None:
    first = node.inputs[0]
    match first:
        case WindowPattern(window=IRI() as window):
            same = [e for e in node.inputs if isinstance(e, WindowPattern) and e.window == window]
            if len(same) == len(node.inputs):
                inner = Union(inputs=tuple(each.input for each in same))
                return WindowPattern(window=window, input=inner, span=node.span)
        case Graph(graph=IRI() as graph):
            inside = [e for e in node.inputs if isinstance(e, Graph) and e.graph == graph]
            if len(inside) == len(node.inputs):
                inner = Union(inputs=tuple(each.input for each in inside))
                return Graph(graph=graph, input=inner, span=node.span)
    return None


def _factors(pattern: Pattern) -> list[Pattern | TriplePattern | PathPattern]:
    """The parts that a branch is a join of; a basic pattern is a join of its triples."""
    match pattern:
        case Join(inputs=inputs):
            return [part for each in inputs for part in _factors(each)]
        case BasicPattern(patterns=patterns):
            return list(patterns)
        case _:
            return [pattern]


def _common(
    branches: list[list[Pattern | TriplePattern | PathPattern]],
) -> list[Pattern | TriplePattern | PathPattern]:
    """The parts that every branch has, each with its least number of occurrences."""
    common = []
    others = [list(branch) for branch in branches[1:]]
    for part in branches[0]:
        if all(part in other for other in others) and not is_volatile(part):
            common.append(part)
            for other in others:
                other.remove(part)
    return common


def _regroup(parts: list[Pattern | TriplePattern | PathPattern]) -> tuple[Pattern, ...]:
    triples = tuple(each for each in parts if isinstance(each, TriplePattern | PathPattern))
    patterns = [each for each in parts if not isinstance(each, TriplePattern | PathPattern)]
    return (*((BasicPattern(patterns=triples),) if triples else ()), *patterns)


def _joined(parts: list[Pattern | TriplePattern | PathPattern]) -> Pattern:
    inputs = _regroup(parts)
    return inputs[0] if len(inputs) == 1 else Join(inputs=inputs)
