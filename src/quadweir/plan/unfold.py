"""Rewrites property paths as triple patterns, joins and unions, where possible.

Steps that are repeated or skipped (`*`, `+`, `?`) stay paths; see `paths.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from quadweir.algebra.expressions import Constant, In, VariableExpression
from quadweir.algebra.patterns import (
    Alternative,
    BasicPattern,
    Filter,
    Inverse,
    Join,
    Link,
    NegatedSet,
    OneOrMore,
    Path,
    PathPattern,
    Pattern,
    PatternTerm,
    Sequence,
    TriplePattern,
    Union,
    ZeroOrMore,
    ZeroOrOne,
)
from quadweir.terms import IRI, Variable


def is_repeated(path: Path) -> bool:
    """Whether the whole path is repeated or skipped."""
    return isinstance(path, ZeroOrMore | OneOrMore | ZeroOrOne)


def unfold(pattern: PathPattern, fresh: Callable[[], Variable]) -> Pattern:
    """A path pattern without its path; `fresh` makes the variables between its steps.

    >>> either = Alternative(paths=(Link(predicate=IRI("urn:p")), Link(predicate=IRI("urn:q"))))
    >>> path = PathPattern(subject=Variable("x"), path=either, object=Variable("y"))
    >>> type(unfold(path, lambda: Variable("_:1"))).__name__
    'Union'
    """
    return _unfold(pattern.subject, pattern.path, pattern.object, fresh)


def _unfold(
    subject: PatternTerm, path: Path, end: PatternTerm, fresh: Callable[[], Variable]
) -> Pattern:
    match path:
        case Link(predicate=predicate):
            return _triple(subject, predicate, end)
        case Inverse(path=inner):
            return _unfold(end, inner, subject, fresh)
        case Sequence(paths=steps):
            nodes = [subject, *(fresh() for _ in steps[1:]), end]
            return Join(
                inputs=tuple(
                    _unfold(nodes[place], step, nodes[place + 1], fresh)
                    for place, step in enumerate(steps)
                )
            )
        case Alternative(paths=choices):
            return Union(inputs=tuple(_unfold(subject, each, end, fresh) for each in choices))
        case NegatedSet(forward=forward, backward=backward):
            parts = []
            if forward or not backward:
                parts.append(_other(subject, forward, end, fresh()))
            if backward:
                parts.append(_other(end, backward, subject, fresh()))
            return parts[0] if len(parts) == 1 else Union(inputs=tuple(parts))
        case ZeroOrMore() | OneOrMore() | ZeroOrOne():
            return BasicPattern(patterns=(PathPattern(subject=subject, path=path, object=end),))
        case _:
            assert_never(path)


def _triple(subject: PatternTerm, predicate: IRI | Variable, end: PatternTerm) -> BasicPattern:
    return BasicPattern(patterns=(TriplePattern(subject=subject, predicate=predicate, object=end),))


def _other(
    subject: PatternTerm, listed: tuple[IRI, ...], end: PatternTerm, predicate: Variable
) -> Pattern:
    """A step with any predicate that is not listed."""
    step = _triple(subject, predicate, end)
    if not listed:
        return step
    condition = In(
        operand=VariableExpression(variable=predicate),
        choices=tuple(Constant(term=each) for each in listed),
        negated=True,
    )
    return Filter(input=step, condition=condition)
