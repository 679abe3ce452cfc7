"""The order of the rules, and the runner that checks, times and records each of them.

Every rule keeps the meaning of the query: `tests/properties/test_optimize.py` evaluates generated
queries before and after.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Final, TypeAlias, final

from quadweir.algebra.analyze import (
    check_windows,
    compares_derivations,
    static_parts,
    windows_read,
)
from quadweir.algebra.expressions import Expression
from quadweir.algebra.patterns import Extend, Pattern, Project
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.scopes import in_scope, visible
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.traverse import rewrite_expressions, rewrite_patterns, walk
from quadweir.errors import InternalError
from quadweir.optimize.factor_unions import factor_unions
from quadweir.optimize.flatten_joins import flatten_joins
from quadweir.optimize.fold_constants import fold_constants
from quadweir.optimize.gather_static import gather_static
from quadweir.optimize.merge_filters import merge_filters
from quadweir.optimize.merge_scopes import merge_scopes
from quadweir.optimize.order_joins import NO_HINTS, Hints, order_joins
from quadweir.optimize.prune_projections import prune_projections
from quadweir.optimize.push_filters import push_filters

Rule: TypeAlias = Callable[[ContinuousQuery], ContinuousQuery]


class UnsettledWarning(UserWarning):
    """A phase was stopped while its rules still found something to do.

    Tests turn warnings into errors; in production the query is right, only less well optimised.
    """


@final
@dataclass(frozen=True, slots=True)
class Step:
    """One run of one rule, for `explain`."""

    phase: str
    rule: str
    changed: bool
    milliseconds: float
    query: ContinuousQuery


@final
@dataclass(frozen=True, slots=True)
class Optimized:
    """An optimized query, the steps that led to it, and its static parts."""

    query: ContinuousQuery
    steps: tuple[Step, ...]
    static: tuple[Pattern, ...]


@final
@dataclass(frozen=True, slots=True)
class Phase:
    """Rules that run together, at most `rounds` times, until none changes anything."""

    name: str
    rounds: int
    rules: tuple[Rule, ...]


once: Final = 1


def until_stable(*, limit: int) -> int:
    """Run the rules of a phase until nothing changes, at most `rounds` times."""
    return limit


def on_patterns(rule: Callable[[Pattern], Pattern]) -> Rule:
    """Run a rule for single patterns on all patterns of a query, including those inside EXISTS."""

    @wraps(rule)
    def run(query: ContinuousQuery) -> ContinuousQuery:
        return rewrite_patterns(query, rule)

    return run


def on_expressions(rule: Callable[[Expression], Expression]) -> Rule:
    """Run a rule for single expressions on all expressions of a query."""

    @wraps(rule)
    def run(query: ContinuousQuery) -> ContinuousQuery:
        return rewrite_expressions(query, rule)

    return run


def phases(hints: Hints = NO_HINTS) -> tuple[Phase, ...]:
    """The whole order."""
    ordered = wraps(order_joins)(partial(order_joins, hints=hints))
    return (
        Phase(
            "simplify",
            until_stable(limit=50),
            (
                on_expressions(fold_constants),
                on_patterns(merge_filters),
                on_patterns(flatten_joins),
            ),
        ),
        # After simplify: equal parts are found only once nesting no longer hides them.
        Phase(
            "share",
            until_stable(limit=50),
            (on_patterns(factor_unions), merge_scopes, on_patterns(flatten_joins)),
        ),
        # After share: filters pushed into the branches of a union would make them differ.
        Phase(
            "push",
            until_stable(limit=50),
            (push_filters, on_patterns(merge_filters), on_patterns(flatten_joins)),
        ),
        # After push: a filter that has moved down no longer needs its variables further up.
        Phase("prune", until_stable(limit=10), (prune_projections, on_patterns(flatten_joins))),
        # After every flattening, which would take the gathered joins apart again.
        Phase("static", once, (gather_static,)),
        Phase("order", once, (ordered,)),
    )


def optimize(query: ContinuousQuery, *, hints: Hints = NO_HINTS) -> Optimized:
    """Rewrite a query to one of the same meaning that costs less.

    Args:
        query: The query as it was parsed.
        hints: Known sizes of predicates, windows and graphs.

    Returns:
        The query, the steps that led to it, and its static parts.

    Raises:
        InternalError: a rule broke the tree, which is a bug of ours.
    """
    steps: list[Step] = []
    for phase in phases(hints):
        query = _run(phase, query, steps)
    return Optimized(query, tuple(steps), static_parts(query))


def _run(phase: Phase, query: ContinuousQuery, steps: list[Step]) -> ContinuousQuery:
    for _ in range(phase.rounds):
        before_round = query
        for rule in phase.rules:
            started = time.perf_counter()
            after = rule(query)
            elapsed = (time.perf_counter() - started) * 1000
            name = getattr(rule, "__name__", repr(rule))
            if after is not query:
                _check(query, after, name)
                after = query if _compares_otherwise(query, after) else after
            steps.append(Step(phase.name, name, after is not query, elapsed, after))
            query = after
        if query is before_round:
            return query
    if phase.rounds > 1:
        warnings.warn(
            f'phase "{phase.name}" did not settle in {phase.rounds} rounds',
            UnsettledWarning,
            stacklevel=3,
        )
    return query


def _compares_otherwise(before: ContinuousQuery, after: ContinuousQuery) -> bool:
    """Whether ISTREAM or DSTREAM would compare something else after a rule (A2).

    The original query decides what is compared. An unused BIND(NOW() AS ?x), or an EXISTS over a
    window next to a condition that is always true, changes no solution, so a rule may drop it. But
    without it the pattern may become monotonic, and answers would come that are not new for the
    original query. Such a rare query stays unchanged; it is only less well optimised.
    """
    return (
        before.output is not OutputOperator.RSTREAM
        and compares_derivations(before) is not compares_derivations(after)
        # Without a window nothing ever changes.
        and bool(windows_read(after.pattern, after))
    )


def _check(before: ContinuousQuery, after: ContinuousQuery, rule: str) -> None:
    """Raise if a rule broke the tree: scope, windows or the shape of the answer."""

    def refuse(what: str) -> None:
        raise InternalError(
            f"the rule {rule} {what}", hint="Please report this with the query that led to it."
        )

    if before.form != after.form or before.windows != after.windows:
        refuse("changed the form or the windows of the query")
    kept = visible(in_scope(before.pattern, before))
    if isinstance(before.pattern, Project) and visible(in_scope(after.pattern, after)) != kept:
        refuse("changed the variables of the answer")
    check_windows(after)
    for node in walk(after.pattern):
        if isinstance(node, Extend) and node.variable in in_scope(node.input, after):
            refuse(f"binds {node.variable} twice")
