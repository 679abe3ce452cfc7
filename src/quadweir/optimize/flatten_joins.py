"""Joins and unions of any length in place of nested ones."""

from __future__ import annotations

from quadweir.algebra.patterns import BasicPattern, Join, Pattern, Union, Values
from quadweir.algebra.scopes import in_scope, visible


def flatten_joins(node: Pattern) -> Pattern:
    """Turn Join(Join(A, B), C) into Join(A, B, C), and put basic patterns together.

    The empty basic pattern has one empty solution, so it drops out of a join. Two basic patterns
    matched in the same graph are one: a blank node of the query is a variable that no other basic
    pattern has.
    """
    match node:
        case Join():
            return _flatten_join(node)
        case Union():
            return _flatten_union(node)
        case _:
            return node


def _flatten_join(node: Join) -> Pattern:
    inputs: list[Pattern] = []
    for each in node.inputs:
        inputs.extend(each.inputs if isinstance(each, Join) else (each,))
    if any(_is_nothing(each) for each in inputs):
        return Values(variables=visible(in_scope(node)), rows=())
    basic = [each for each in inputs if isinstance(each, BasicPattern)]
    if len(basic) > 1 or (basic and not basic[0].patterns):
        triples = tuple(triple for each in basic for triple in each.patterns)
        merged = BasicPattern(patterns=triples, span=basic[0].span)
        first = next(i for i, each in enumerate(inputs) if isinstance(each, BasicPattern))
        inputs = [
            merged if place == first else each
            for place, each in enumerate(inputs)
            if not isinstance(each, BasicPattern) or (place == first and triples)
        ]
    if len(inputs) == len(node.inputs) and all(map(_is, inputs, node.inputs)):
        return node
    if not inputs:
        return BasicPattern(span=node.span)
    return inputs[0] if len(inputs) == 1 else Join(inputs=tuple(inputs), span=node.span)


def _flatten_union(node: Union) -> Pattern:
    inputs: list[Pattern] = []
    for each in node.inputs:
        inputs.extend(each.inputs if isinstance(each, Union) else (each,))
    kept = [each for each in inputs if not _is_nothing(each)]
    if len(kept) == len(node.inputs) and all(map(_is, kept, node.inputs)):
        return node
    if not kept:
        return Values(variables=visible(in_scope(node)), rows=())
    return kept[0] if len(kept) == 1 else Union(inputs=tuple(kept), span=node.span)


def _is(left: object, right: object) -> bool:
    return left is right


def _is_nothing(pattern: Pattern) -> bool:
    return isinstance(pattern, Values) and not pattern.rows
