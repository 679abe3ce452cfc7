"""Walking, folding and rewriting cross patterns and expressions, and leave equals alone."""

from __future__ import annotations

from quadweir.algebra.expressions import Constant, Expression, VariableExpression
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import BasicPattern, Distinct, Pattern, TriplePattern
from quadweir.algebra.traverse import (
    children,
    depth,
    fold,
    rewrite,
    rewrite_expressions,
    rewrite_patterns,
    walk,
)
from quadweir.terms import Literal, Variable
from trees import asked

QUERY = asked(
    "SELECT DISTINCT ?a (SUM(?b) AS ?n) { { ?a :p ?b } UNION { ?a :q ?b . ?b :r* ?c }"
    " OPTIONAL { ?a :r ?c FILTER(?c > 1) } FILTER(?b IN (1, ?a) && EXISTS { ?a :z ?q }) }"
    " GROUP BY ?a ORDER BY ?n"
)


def test_walk_sees_every_node_once_parents_first() -> None:
    seen = list(walk(QUERY))
    assert seen[0] is QUERY
    assert len({id(node) for node in seen}) == len(seen)
    place = {id(node): index for index, node in enumerate(seen)}
    for node in seen:
        for child in children(node):
            assert place[id(child)] > place[id(node)]
    # The pattern inside EXISTS is one of them.
    objects = [node.object for node in seen if isinstance(node, TriplePattern)]
    assert Variable("q") in objects


def test_fold_counts_as_walk_does() -> None:
    assert fold(QUERY, lambda _, below: 1 + sum(below)) == len(list(walk(QUERY)))
    assert fold(QUERY, lambda _, below: 1 + max(below, default=0)) == depth(QUERY)


def test_a_rule_that_finds_nothing_gives_the_same_object() -> None:
    assert rewrite(QUERY, lambda node: node) is QUERY
    assert rewrite_patterns(QUERY, lambda node: node) is QUERY
    assert rewrite_expressions(QUERY, lambda node: node) is QUERY


def test_untouched_parts_are_shared() -> None:
    def drop(pattern: Pattern) -> Pattern:
        return pattern.input if isinstance(pattern, Distinct) else pattern

    assert isinstance(QUERY.pattern, Distinct)
    changed = rewrite_patterns(QUERY, drop)
    assert changed.pattern is QUERY.pattern.input


def test_expressions_are_rewritten_everywhere() -> None:
    one = Constant(term=Literal("one"))

    def replace(expression: Expression) -> Expression:
        return one if isinstance(expression, VariableExpression) else expression

    changed = rewrite_expressions(QUERY, replace)
    assert not any(isinstance(node, VariableExpression) for node in walk(changed))


def test_patterns_inside_exists_are_rewritten() -> None:
    def empty(node: Node) -> Node:
        return BasicPattern() if isinstance(node, BasicPattern) else node

    assert not any(isinstance(node, TriplePattern) for node in walk(rewrite(QUERY, empty)))
