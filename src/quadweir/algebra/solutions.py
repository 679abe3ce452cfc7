"""Bags of solutions, and the operators that combine two of them.

A solution maps variables to terms; a variable that is not in it is unbound. A bag is a list that
contains equal solutions as often as they count.

If a query calls `timestamp(?x)`, a solution also carries, under a special name, the time at which
an element last bound each variable. Such a time never makes two solutions incompatible; the later
one stays.

Spec: https://www.w3.org/TR/sparql11-query/#sparqlAlgebraEval
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from quadweir.algebra.values import Number, literal_of
from quadweir.terms import Literal, Term, Variable

Solution: TypeAlias = dict[Variable, Term]
Bag: TypeAlias = list[Solution]

_TIME_PREFIX: Final = "_:time of "


def time_variable(variable: Variable) -> Variable:
    """The special name under which a solution keeps the time of a variable."""
    return Variable(_TIME_PREFIX + variable.name)


def is_time(variable: Variable) -> bool:
    """Whether a variable is such a special name."""
    return variable.name.startswith(_TIME_PREFIX)


def time_term(milliseconds: int) -> Literal:
    """Spell an event time as `timestamp()` returns it."""
    return literal_of(Number.integer(milliseconds))


def compatible(left: Solution, right: Solution) -> bool:
    """Whether two solutions agree on every variable that both bind.

    >>> x, y = Variable("x"), Variable("y")
    >>> compatible({x: Literal("a")}, {y: Literal("b")})
    True
    """
    if len(right) < len(left):
        left, right = right, left
    return all(
        right.get(variable, term) == term or is_time(variable) for variable, term in left.items()
    )


def merge(left: Solution, right: Solution) -> Solution:
    """Put two compatible solutions together."""
    merged = left | right
    for variable, term in left.items():
        if is_time(variable) and _milliseconds(term) > _milliseconds(merged[variable]):
            merged[variable] = term
    return merged


def _milliseconds(time: Term) -> int:
    assert isinstance(time, Literal)
    return int(time.lexical)


Spend: TypeAlias = Callable[[int], None]
"""Called with the number of solutions that an operator is about to visit; raises if that is too
much work."""


def _partners(bag: Bag, others: Bag, spend: Spend) -> Iterator[tuple[Solution, Iterable[Solution]]]:
    """Each solution of `bag` with all those of `others` it is compatible with."""
    # Variables that are bound everywhere on both sides make a hash join; the rest is checked.
    shared = [variable for variable in _always(bag) & _always(others) if not is_time(variable)]
    buckets: dict[tuple[Term, ...], Bag] = {}
    for other in others:
        buckets.setdefault(tuple(other[variable] for variable in shared), []).append(other)
    for solution in bag:
        bucket = buckets.get(tuple(solution[variable] for variable in shared), ())
        spend(1 + len(bucket))
        yield solution, (other for other in bucket if compatible(solution, other))


def _always(bag: Bag) -> set[Variable]:
    if not bag:
        return set()
    return set(bag[0]).intersection(*bag[1:])


def join(left: Bag, right: Bag, spend: Spend) -> Bag:
    """Every way to put a left and a right solution together."""
    return [merge(a, b) for a, partners in _partners(left, right, spend) for b in partners]


def left_join(left: Bag, right: Bag, condition: Callable[[Solution], bool], spend: Spend) -> Bag:
    """The join where the condition holds, and each left solution that found no such partner."""
    result: Bag = []
    for solution, partners in _partners(left, right, spend):
        joined = [both for other in partners if condition(both := merge(solution, other))]
        result.extend(joined or [solution])
    return result


def minus(left: Bag, right: Bag, spend: Spend) -> Bag:
    """The left solutions that share a variable, and agree, with no right one."""
    return [
        solution
        for solution, partners in _partners(left, right, spend)
        if not any(_share(solution, other) for other in partners)
    ]


def _share(left: Solution, right: Solution) -> bool:
    return any(variable in right and not is_time(variable) for variable in left)


def distinct(bag: Bag) -> Bag:
    """Each solution once, at the place where it came first."""
    first: dict[frozenset[tuple[Variable, Term]], Solution] = {}
    for solution in bag:
        first.setdefault(key_of(solution), solution)
    return list(first.values())


def key_of(solution: Solution) -> frozenset[tuple[Variable, Term]]:
    """A hashable form of a solution, equal for equal solutions."""
    return frozenset(item for item in solution.items() if not is_time(item[0]))
