"""The tests that select statements from the streams; each statement is tested once.

Leaves that match the same statements share a test, also if their variables have other names.
Matching turns a statement into one row that says which tests it passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

from quadweir.algebra.patterns import PatternTerm, TriplePattern
from quadweir.entailment.table import End, Table
from quadweir.entailment.ways import NO_WAYS, Way, Ways, ways_of
from quadweir.plan.nodes import Match, Source
from quadweir.plan.pushdown import Condition, ValuesOf
from quadweir.terms import Term, Variable

TERMS: Final = 4
"""A statement has a subject, a predicate, an object and a graph, counted from 0."""
_GRAPH: Final = 3

StatementTerm: TypeAlias = int | str
"""A term of a statement: its place, or the spelling of a constant."""
ITSELF: Final[tuple[StatementTerm, ...]] = (0, 1, 2, _GRAPH)
_ENDS: Final = {End.SUBJECT: 0, End.OBJECT: 2}


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """Instants. At which time between two of them an element comes makes no difference.

    Attributes:
        step_ms: the time from one instant to the next.
        origin_ms: one of the instants. An element at an instant belongs to the time before it (W1).
    """

    step_ms: int
    origin_ms: int


@final
@dataclass(frozen=True, slots=True)
class MatchTest:
    """A test of statements.

    Attributes:
        stream: the stream of the statements.
        constants: the required subject, predicate, object and graph; None for any.
        equal: pairs of places that must hold the same term.
        view: the quad that is tested: the statement itself, or its consequence by a way.
        way: the way of entailment, if the consequence is tested.
        follows: whether the looked-up consequences of the statement are tested too.
        is_named: whether the statement must be in a named graph (W11).
        key: the term that decides the shard of a statement; None for every shard.
        leaves: the leaves that take the passing statements, each with the terms of its variables.
        elements: the sources that take every element; then there is nothing to test.
        grid: for elements, if all that counts is whether there are any between two instants of a
        grid. The latest one is enough then.
        conditions: if there are any, a statement is needed only if one of them is true; each has
        the terms of its variables.
    """

    stream: str
    constants: tuple[Term | None, ...]
    equal: tuple[tuple[int, int], ...]
    key: StatementTerm | None
    view: tuple[StatementTerm, ...] = ITSELF
    way: Way | None = None
    follows: bool = False
    is_named: bool = False
    leaves: tuple[tuple[int, tuple[StatementTerm, ...]], ...] = ()
    elements: tuple[int, ...] = ()
    grid: Grid | None = None
    conditions: tuple[tuple[tuple[tuple[Variable, StatementTerm], ...], Condition], ...] = ()

    @property
    def needed(self) -> frozenset[int]:
        """The places whose terms the leaves bind, or that decide the shard."""
        parts = [part for _, parts in self.leaves for part in parts]
        return frozenset(part for part in (*parts, self.key) if isinstance(part, int))

    def for_shards(self) -> MatchTest:
        """The test without the parts that only matching uses."""
        way = self.way
        if way is not None:
            way = replace(way, predicates=frozenset(), classes=None)
        return replace(self, way=way, conditions=())

    def resolved(self, values_of: ValuesOf) -> MatchTest:
        """The test with the values of static relations in its conditions, where they are few."""
        known = tuple((bound, each.resolved(values_of)) for bound, each in self.conditions)
        # If one condition is always true, none is needed.
        return replace(self, conditions=known if all(each for _, each in known) else ())


@final
@dataclass(frozen=True)
class Matching:
    """What the statements of some streams are tested for, by one query or by many.

    Attributes:
        streams: the streams, sorted.
        wanted: the tests.
        exact_times: whether answers depend on the last time of all elements of a batch.
        table: the consequences of statements; None without a schema.
    """

    streams: tuple[str, ...]
    wanted: tuple[MatchTest, ...]
    exact_times: bool
    table: Table | None = None

    @property
    def looks_up(self) -> bool:
        """Whether the consequences of a statement have to be tested one by one."""
        return self.table is not None and any(each.follows for each in self.wanted)


def ways_to(leaf: Match, table: Table | None) -> Ways:
    """The ways to match a leaf, except the direct one."""
    if table is None or leaf.pattern is None or leaf.carried:
        return NO_WAYS
    return ways_of(leaf.pattern, table)


def find_match_tests(
    leaves: Sequence[Match],
    sources: Sequence[Source],
    elements: Mapping[int, Grid | None],
    keys: Mapping[int, Variable],
    conditions: Mapping[int, Sequence[Condition]],
    table: Table | None,
) -> tuple[MatchTest, ...]:
    """The tests of a query.

    Args:
        leaves: the matches that the shards need.
        sources: the windows over streams.
        elements: the sources whose elements go to every shard, each with its grid if the latest
            element between two instants is enough.
        keys: the variable by which each sharded leaf is sharded.
        conditions: for each leaf, the conditions of which a needed match fulfils at least one.
        table: the consequences of statements, if there is a schema.
    """
    found: dict[MatchTest, list[tuple[int, tuple[StatementTerm, ...]]]] = {}
    for number, leaf in enumerate(leaves):
        if leaf.pattern is None:
            continue
        terms = (*terms_of(leaf.pattern), leaf.graph)
        places, equal = _places(terms)
        constants = tuple(None if isinstance(term, Variable) else term for term in terms)
        ways = ways_to(leaf, table)
        for view, way in ((ITSELF, None), *((_view(way), way) for way in ways.listed)):
            test = MatchTest(
                leaf.source.stream,
                constants,
                equal,
                view[places[keys[number]]] if number in keys else None,
                view,
                way,
                ways.looked_up,
                leaf.graph is not None,
            )
            bound = tuple(view[places[variable]] for variable in leaf.variables)
            found.setdefault(test, []).append((number, bound))
    tests = [
        replace(test, leaves=tuple(which), conditions=_conditions(which, leaves, conditions))
        for test, which in found.items()
    ]
    heard: dict[tuple[str, Grid | None], list[int]] = {}
    for place, grid in sorted(elements.items()):
        heard.setdefault((sources[place].stream, grid), []).append(place)
    nothing = (None,) * TERMS
    tests += [
        MatchTest(stream, nothing, (), None, elements=tuple(which), grid=grid)
        for (stream, grid), which in heard.items()
    ]
    return tuple(tests)


def _view(way: Way) -> tuple[StatementTerm, ...]:
    derived = (way.derived.subject, way.derived.predicate, way.derived.object)
    parts = (_ENDS[atom] if isinstance(atom, End) else str(atom) for atom in derived)
    return (*parts, _GRAPH)  # what follows from a statement is in its graph (N1)


def _conditions(
    wanted_by: Sequence[tuple[int, tuple[StatementTerm, ...]]],
    leaves: Sequence[Match],
    conditions: Mapping[int, Sequence[Condition]],
) -> tuple[tuple[tuple[tuple[Variable, StatementTerm], ...], Condition], ...]:
    """The conditions of a test's leaves; empty if one of them needs every match."""
    if any(leaf not in conditions for leaf, _ in wanted_by):
        return ()
    return tuple(
        (tuple(zip(leaves[leaf].variables, parts, strict=True)), condition)
        for leaf, parts in wanted_by
        for condition in conditions[leaf]
    )


def terms_of(pattern: TriplePattern) -> tuple[PatternTerm, ...]:
    """Subject, predicate and object."""
    return (pattern.subject, pattern.predicate, pattern.object)


def _places(
    terms: Sequence[PatternTerm | None],
) -> tuple[dict[Variable, int], tuple[tuple[int, int], ...]]:
    """The first place of each variable, and the pairs of places that must hold the same term."""
    first: dict[Variable, int] = {}
    equal = []
    for place, term in enumerate(terms):
        if isinstance(term, Variable):
            if term in first:
                equal.append((first[term], place))
            first.setdefault(term, place)
    return first, tuple(equal)
