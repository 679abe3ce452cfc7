"""Order the inputs of a join so that intermediate results stay small.

Without statistics, the fixed terms of a pattern decide: a fixed subject is more selective than a
fixed object, and that more than a fixed predicate. `Hints` replace the guesses by known or declared
sizes of predicates, graphs and windows. The next input always shares a variable with those
before it, if one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar, assert_never, final

from quadweir.algebra.patterns import (
    BasicPattern,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    OrderBy,
    PathPattern,
    Pattern,
    Project,
    Reduced,
    Service,
    Slice,
    TriplePattern,
    Union,
    Values,
    WindowPattern,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.scopes import in_scope
from quadweir.algebra.traverse import rewrite_patterns
from quadweir.optimize.conditions import conjuncts, variables_of
from quadweir.terms import IRI, Variable
from quadweir.vocab import RDF

_GUESS: Final = 1000.0  # triples of an unknown predicate
_ALL_PREDICATES: Final = 20.0
_FIXED_SUBJECT: Final = 1 / 200
_FIXED_OBJECT: Final = 1 / 50
_FIXED_CLASS: Final = 1 / 5  # rdf:type has few objects
_FILTER: Final = 1 / 3
_CLOSURE: Final = 20.0
_GREEDY_LIMIT: Final = 300  # the search is quadratic; a longer join is only sorted

_Part = TypeVar("_Part")


@final
@dataclass(frozen=True, slots=True)
class Hints:
    """Known sizes: triples for each predicate, and a factor for a window or graph.

    >>> Hints(predicates={IRI("urn:p"): 5}).predicates[IRI("urn:p")]
    5
    """

    predicates: Mapping[IRI, float] = field(default_factory=dict)
    scopes: Mapping[IRI, float] = field(default_factory=dict)


NO_HINTS: Final = Hints()


def order_joins(query: ContinuousQuery, hints: Hints = NO_HINTS) -> ContinuousQuery:
    """Sort the inputs of every join, and the triples of every basic pattern."""

    def order(node: Pattern) -> Pattern:
        match node:
            case Join(inputs=inputs):
                sizes = [estimate(each, hints) for each in inputs]
                names = [in_scope(each, query) for each in inputs]
                ordered = _greedy(inputs, sizes, names)
                return node if _same(ordered, inputs) else replace(node, inputs=ordered)
            case BasicPattern(patterns=patterns):
                sizes = [_estimate_triple(each, hints) for each in patterns]
                names = [variables_of(each, query) for each in patterns]
                chosen = _greedy(patterns, sizes, names)
                return node if _same(chosen, patterns) else replace(node, patterns=chosen)
            case _:
                return node

    return rewrite_patterns(query, order)


def _same(left: Sequence[object], right: Sequence[object]) -> bool:
    return all(a is b for a, b in zip(left, right, strict=True))


def _greedy(
    parts: Sequence[_Part], sizes: Sequence[float], names: Sequence[frozenset[Variable]]
) -> tuple[_Part, ...]:
    """Take the smallest first, then always the smallest connected one."""
    if len(parts) > _GREEDY_LIMIT:
        return tuple(parts[each] for each in sorted(range(len(parts)), key=lambda i: sizes[i]))
    waiting = list(range(len(parts)))
    known: frozenset[Variable] = frozenset()
    order: list[int] = []
    while waiting:
        # The place breaks ties, so that the order is stable and the rule settles.
        best = min(
            waiting,
            key=lambda each: (bool(order) and not names[each] & known, sizes[each], each),
        )
        waiting.remove(best)
        order.append(best)
        known |= names[best]
    return tuple(parts[each] for each in order)


def estimate(pattern: Pattern, hints: Hints = NO_HINTS) -> float:
    """The estimated number of a pattern's solutions.

    >>> from quadweir.terms import Literal
    >>> x, p = Variable("x"), IRI("urn:p")
    >>> fixed = TriplePattern(subject=x, predicate=p, object=Literal("1"))
    >>> loose = TriplePattern(subject=x, predicate=p, object=Variable("y"))
    >>> estimate(BasicPattern(patterns=(fixed,))) < estimate(BasicPattern(patterns=(loose,)))
    True
    """
    match pattern:
        case BasicPattern(patterns=patterns):
            # A join along a chain of keys stays as large as its smallest member.
            return min((_estimate_triple(each, hints) for each in patterns), default=1.0)
        case Values(rows=rows):
            return float(len(rows))
        case Join(inputs=inputs):
            return min(estimate(each, hints) for each in inputs)
        case Union(inputs=inputs):
            return sum(estimate(each, hints) for each in inputs)
        case LeftJoin(left=left) | Minus(left=left):
            return estimate(left, hints)
        case Filter(input=source, condition=condition):
            return float(estimate(source, hints) * _FILTER ** min(len(conjuncts(condition)), 5))
        case Graph(graph=name, input=source) | WindowPattern(window=name, input=source):
            factor = hints.scopes.get(name, 1.0) if isinstance(name, IRI) else 2.0
            return factor * estimate(source, hints)
        case Service(input=source):
            return 10 * estimate(source, hints)
        case Group(input=source, keys=keys):
            return estimate(source, hints) / 2 if keys else 1.0
        case Slice(input=source, limit=limit):
            size = estimate(source, hints)
            return size if limit is None else min(size, float(limit))
        case Extend() | Project() | Distinct() | Reduced() | OrderBy():
            return estimate(pattern.input, hints)
        case _:
            assert_never(pattern)


def _estimate_triple(pattern: TriplePattern | PathPattern, hints: Hints) -> float:
    size = _GUESS
    if isinstance(pattern, PathPattern):
        size *= _CLOSURE
    elif isinstance(pattern.predicate, Variable):
        size *= _ALL_PREDICATES
    else:
        size = hints.predicates.get(pattern.predicate, _GUESS)
    if not isinstance(pattern.subject, Variable):
        size *= _FIXED_SUBJECT
    if not isinstance(pattern.object, Variable):
        is_class = isinstance(pattern, TriplePattern) and pattern.predicate == IRI(RDF.type)
        size *= _FIXED_CLASS if is_class else _FIXED_OBJECT
    return size
