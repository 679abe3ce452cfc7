"""What is looked for in the streams, as a row of tests that each statement goes through once.

Leaves that want the same statements, be it under other names, share a test. A statement leaves
matching as one row that says which tests it passed, however many those are.
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

Part: TypeAlias = int | str
"""A term of a statement by its place, or one that is the same for all, by its spelling."""
ITSELF: Final[tuple[Part, ...]] = (0, 1, 2, _GRAPH)
_ENDS: Final = {End.SUBJECT: 0, End.OBJECT: 2}


@final
@dataclass(frozen=True, slots=True)
class MatchTest:
    """A test of statements.

    Attributes:
        stream: the stream they have to be of.
        constants: what subject, predicate, object and graph have to be, None for anything.
        equal: pairs of places that have to hold the same term.
        view: the quad that is tested: the statement itself, or what follows from it by a way.
        way: what has to be true of the statement for that to follow.
        follows: whether it is also tested what was looked up to follow from the statement.
        is_named: whether the statement has to be in a named graph (W11).
        key: the term that says which shard a statement goes to; None for every one.
        leaves: the leaves that want what passes, each with what its variables are bound to.
        elements: the sources that want to hear of every element; then there is nothing to pass.
        conditions: if there are any, one has to be true for what passes to be of use; with each, what
            its variables are bound to.
    """

    stream: str
    constants: tuple[Term | None, ...]
    equal: tuple[tuple[int, int], ...]
    key: Part | None
    view: tuple[Part, ...] = ITSELF
    way: Way | None = None
    follows: bool = False
    is_named: bool = False
    leaves: tuple[tuple[int, tuple[Part, ...]], ...] = ()
    elements: tuple[int, ...] = ()
    conditions: tuple[tuple[tuple[tuple[Variable, Part], ...], Condition], ...] = ()

    @property
    def needed(self) -> frozenset[int]:
        """The places whose terms the leaves bind, or that shards are told by."""
        parts = [part for _, parts in self.leaves for part in parts]
        return frozenset(part for part in (*parts, self.key) if isinstance(part, int))

    def for_shards(self) -> MatchTest:
        """Leave out what only matching looks at."""
        way = self.way
        if way is not None:
            way = replace(way, predicates=frozenset(), classes=None)
        return replace(self, way=way, conditions=())

    def resolved(self, values_of: ValuesOf) -> MatchTest:
        """Look up the values of static relations that conditions speak of, where they are few."""
        known = tuple((bound, each.resolved(values_of)) for bound, each in self.conditions)
        # A condition that is always true makes all of them so.
        return replace(self, conditions=known if all(each for _, each in known) else ())

    def passes(self, terms: Sequence[Term | None]) -> bool:
        """Tell whether a quad of the stream passes, where nothing has to follow from it."""
        if self.is_named and terms[_GRAPH] is None:
            return False
        return all(
            constant is None or constant == term
            for constant, term in zip(self.constants, terms, strict=True)
        ) and all(terms[one] == terms[other] for one, other in self.equal)


def ways_to(leaf: Match, table: Table | None) -> Ways:
    """Tell how statements match a leaf, besides by looking like it."""
    if table is None or leaf.pattern is None or leaf.carried:
        return NO_WAYS
    return ways_of(leaf.pattern, table)


def find_match_tests(
    leaves: Sequence[Match],
    sources: Sequence[Source],
    elements: Sequence[int],
    keys: Mapping[int, Variable],
    conditions: Mapping[int, Sequence[Condition]],
    table: Table | None,
) -> tuple[MatchTest, ...]:
    """List the tests of a query.

    Args:
        leaves: what the shards want to hear of.
        sources: the windows over streams.
        elements: the sources of which every shard hears every element.
        keys: for each leaf that is sharded the variable that it is sharded by.
        conditions: what matches of a leaf have to fulfil one of to be of use, if there is any.
        table: what follows from statements, if there is a schema.
    """
    found: dict[MatchTest, list[tuple[int, tuple[Part, ...]]]] = {}
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
    heard: dict[str, list[int]] = {}
    for place in elements:
        heard.setdefault(sources[place].stream, []).append(place)
    nothing = (None,) * TERMS
    tests += [
        MatchTest(stream, nothing, (), None, elements=tuple(which))
        for stream, which in heard.items()
    ]
    return tuple(tests)


def _view(way: Way) -> tuple[Part, ...]:
    derived = (way.derived.subject, way.derived.predicate, way.derived.object)
    parts = (_ENDS[atom] if isinstance(atom, End) else str(atom) for atom in derived)
    return (*parts, _GRAPH)  # what follows from a statement is in its graph (N1)


def _conditions(
    wanted_by: Sequence[tuple[int, tuple[Part, ...]]],
    leaves: Sequence[Match],
    conditions: Mapping[int, Sequence[Condition]],
) -> tuple[tuple[tuple[tuple[Variable, Part], ...], Condition], ...]:
    """Gather what the leaves of a test say, unless one of them wants everything."""
    if any(leaf not in conditions for leaf, _ in wanted_by):
        return ()
    return tuple(
        (tuple(zip(leaves[leaf].variables, parts, strict=True)), condition)
        for leaf, parts in wanted_by
        for condition in conditions[leaf]
    )


def terms_of(pattern: TriplePattern) -> tuple[PatternTerm, ...]:
    """List subject, predicate and object."""
    return (pattern.subject, pattern.predicate, pattern.object)


def _places(
    terms: Sequence[PatternTerm | None],
) -> tuple[dict[Variable, int], tuple[tuple[int, int], ...]]:
    """Say where each variable stands first, and which places have to hold the same."""
    first: dict[Variable, int] = {}
    equal = []
    for place, term in enumerate(terms):
        if isinstance(term, Variable):
            if term in first:
                equal.append((first[term], place))
            first.setdefault(term, place)
    return first, tuple(equal)
