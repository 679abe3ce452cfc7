"""Algebra to plan nodes: the matches that a query needs, and the nodes above them.

Nearly every operator of the algebra has an incremental node. An operator without one (a value that
changes by itself, LIMIT in a subquery, an EXISTS that is not a join) is recorded as an obstacle,
and the query is then evaluated from scratch at its reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final, assert_never, final

from quadweir.algebra import patterns as algebra
from quadweir.algebra.analyze import windows_read, windows_with_graphs
from quadweir.algebra.emptiness import needs_content, needs_triple
from quadweir.algebra.expressions import Exists, Expression, FunctionCall, VariableExpression
from quadweir.algebra.patterns import (
    BasicPattern,
    Path,
    PathPattern,
    Pattern,
    PatternTerm,
    TriplePattern,
    Values,
    WindowPattern,
)
from quadweir.algebra.query import ContinuousQuery, SelectForm
from quadweir.algebra.scopes import always_bound, in_scope, windows_of
from quadweir.algebra.solutions import is_time, time_variable
from quadweir.algebra.traverse import walk as walk_algebra
from quadweir.algebra.windows import Content
from quadweir.errors import LimitError
from quadweir.plan.facts import StaticFacts
from quadweir.plan.nodes import (
    GRAPH_NAME,
    MAX_INPUTS,
    AntiJoin,
    Closure,
    Distinct,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Match,
    PlanNode,
    Project,
    Source,
    StaticRelation,
    Union,
    Window,
    keeps_its_rows,
    shared_variables,
)
from quadweir.plan.shapes import (
    conjuncts,
    has_exists,
    is_plain,
    is_volatile,
    reports_on_close,
    waits,
)
from quadweir.plan.unfold import is_repeated, unfold
from quadweir.terms import IRI, Variable

MOST_JOINED: Final = 256
"""How many patterns a query may join; LSBench's largest query joins nine."""
_TRIPLE: Final = (Variable("_:subject"), Variable("_:predicate"), Variable("_:object"))


@final
@dataclass(frozen=True, slots=True)
class _Place:
    """The data that a pattern matches: windows, and whether static data too.

    `graph` is the named graph of the window that it matches (W11), if not the whole window. If it
    is a variable, every row binds it.
    """

    sources: tuple[Source, ...]
    static: bool
    graph: IRI | Variable | None = None


@final
class IncrementalPlanner:
    """Makes the nodes of one query.

    Args:
        query: The query, preferably optimised.
        streams: All streams, for windows over a stream variable.
        facts: Known facts about static data.
        eager: Whether answers leave as soon as their parts have arrived (E1).
        timed: Whether rows carry the times of their parts, for members of a template.

    Attributes:
        obstacles: Why the query cannot be kept up to date, one reason for each part that has no
            incremental node; empty if it can. With obstacles, the nodes are not used.
        instants: The variables for the times of parts, each with the place of its window.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        streams: Sequence[str],
        facts: StaticFacts,
        *,
        eager: bool,
        timed: bool = False,
    ) -> None:
        self.query = query
        self.streams = streams
        self.facts = facts
        self.eager = eager
        self.obstacles: list[str] = []
        self.instants: dict[tuple[int, Variable], None] = {}
        self._has_times = timed
        self._parts: Counter[int] = Counter()
        self._hidden = 0
        self._timed: frozenset[Variable] = frozenset()
        self._with_graphs = windows_with_graphs(query)

    # --- entry points ---

    def plan(self, pattern: Pattern) -> PlanNode:
        """The node of a pattern outside of any WINDOW."""
        self._timed = self._timed_variables()
        merged = self.query.default_graph_windows
        sources = tuple(
            source
            for number, window in enumerate(self.query.windows)
            if window.name in merged
            for source in self.sources_of(number)
        )
        return self._node(pattern, _Place(sources, static=True))

    def content(self, source: Source) -> list[PlanNode]:
        """The node that changes whenever the content of a window changes (R1).

        In a bag every element counts, in a graph every triple that an element carries, and every
        quad if the query looks into named graphs (W11). At given instants it only matters whether
        there is any element, in a graph too.
        """
        is_bag = self.query.windows[source.window].content is Content.BAG
        if is_bag or reports_on_close(self.query):
            return [self._window(Match(source, None, ()))]
        found: list[PlanNode] = [Distinct(self.triples(source, carried=True))]
        if self.has_graphs(source):
            found.append(Distinct(self.triples(source, carried=True, graph=GRAPH_NAME)))
        return found

    def has_graphs(self, source: Source) -> bool:
        """Whether the query uses the named graphs of a window (W11)."""
        return self.query.windows[source.window].name in self._with_graphs

    def triples(
        self,
        source: Source,
        *,
        timed: bool = False,
        carried: bool = False,
        graph: IRI | Variable | None = None,
        routed: bool = False,
    ) -> Window:
        """All triples of a window, with their times if `timed`, and as parts of rows if `routed`."""
        pattern = TriplePattern(subject=_TRIPLE[0], predicate=_TRIPLE[1], object=_TRIPLE[2])
        names = (*_TRIPLE, *_variables(graph))
        times = _TRIPLE[:1] if timed else self._own_time(source) if routed else ()
        return self._window(Match(source, pattern, names, times, carried, graph))

    def sources_of(self, number: int) -> tuple[Source, ...]:
        """The streams of a window."""
        window = self.query.windows[number]
        over = self.streams if isinstance(window.stream, Variable) else (window.stream.value,)
        return tuple(Source(number, stream, window.event_time) for stream in over)

    # --- matches ---

    def _timed_variables(self) -> frozenset[Variable]:
        found = set()
        for node in walk_algebra(self.query.pattern):
            if isinstance(node, FunctionCall) and node.function == "TIMESTAMP":
                match node.arguments:
                    case (VariableExpression(variable=variable),):
                        found.add(variable)
                    case _:
                        self.obstacles.append("timestamp() of a triple")
        if found and any(window.content is Content.GRAPH for window in self.query.windows):
            self.obstacles.append("timestamp() over graphs, where times move on")
        return frozenset(found)

    def _window(self, match: Match) -> Window:
        return Window(match, self.query.windows[match.source.window].scope)

    def _matches(self, pattern: TriplePattern, place: _Place) -> PlanNode:
        """The matches of a triple pattern in the windows of a place, and in static data."""
        variables = _variables(pattern.subject, pattern.predicate, pattern.object)
        times = tuple(v for v in variables if v in self._timed)
        variables = tuple(dict.fromkeys((*variables, *_variables(place.graph))))
        bags: list[PlanNode] = []
        graphs: list[PlanNode] = []
        for source in place.sources:
            timed = (*times, *self._own_time(source))
            window = self._window(Match(source, pattern, variables, timed, graph=place.graph))
            is_bag = self.query.windows[source.window].content is Content.BAG
            (bags if is_bag else graphs).append(window)
        # A triple counts once while some element carries it (W8). The values of a pattern's
        # variables identify its triples.
        parts = [*bags, Distinct(_union(graphs))] if graphs else bags
        # Without a match in static data, the windows alone are enough, and as fast as without
        # static data.
        fixed = (
            self._static(BasicPattern(patterns=(pattern,))) if self._may_be_static(place) else None
        )
        if fixed is not None and (not parts or self.facts.may_match(fixed.query)):
            if graphs:
                # So no state is needed for static rows.
                parts[-1] = AntiJoin(parts[-1], fixed)
            parts.append(fixed)
        return _union(parts)

    def _own_time(self, source: Source) -> tuple[Variable, ...]:
        """A variable for the time of a match's element, if rows carry the times of their parts."""
        if not self._has_times:
            return ()
        name = Variable(f"part {source.window}.{self._parts[source.window]}")
        self._parts[source.window] += 1
        self.instants[source.window, time_variable(name)] = None
        return (name,)

    def _branches(self, patterns: Iterable[Pattern], place: _Place) -> list[PlanNode]:
        """The nodes of the branches of a union.

        A row has the parts of one branch, so those of different branches have the same names: then
        equal matches in two branches are one.
        """
        before, after = self._parts, self._parts
        found = []
        for each in patterns:
            self._parts = before.copy()
            found.append(self._node(each, place))
            after = after | self._parts
        self._parts = after
        return found

    # --- static data ---

    def _static(self, pattern: Pattern) -> StaticRelation:
        query = replace(
            self.query,
            name=None,
            pattern=pattern,
            # The columns of a subquery, not those of the whole query, decide which of two equals
            # its LIMIT keeps (A4).
            form=SelectForm(variables=_selected(pattern, self.query)),
            windows=(),
            default_graphs=(),
            named_graphs=(),
            default_graph_windows=(),
        )
        known = tuple(sorted(in_scope(pattern, self.query)))
        return StaticRelation(query, known, always_bound(pattern, self.query))

    def _table(self, variables: Iterable[Variable], *rows: dict[Variable, IRI]) -> StaticRelation:
        """A relation of rows from the query text."""
        names = tuple(variables)
        return self._static(
            Values(variables=names, rows=tuple(tuple(row[each] for each in names) for row in rows))
        )

    def _may_be_static(self, place: _Place) -> bool:
        """Whether a place has a static default graph.

        Where windows are merged into it, it has no static data but what FROM names (A1).
        """
        return place.static and bool(
            not self.query.default_graph_windows or self.query.default_graphs
        )

    def _is_static(self, pattern: Pattern, place: _Place) -> bool:
        if any(is_volatile(node) for node in walk_algebra(pattern)):
            return False
        if not place.static:
            name = self.query.windows[place.sources[0].window].name
            return not windows_read(WindowPattern(window=name, input=pattern), self.query)
        return not windows_read(pattern, self.query)

    # --- patterns ---

    def _node(self, pattern: Pattern, place: _Place) -> PlanNode:
        found = self._solved(pattern, place)
        if isinstance(place.graph, Variable) and place.graph not in found.always:
            # It matches no triple, so it has its solutions in each graph.
            found = self._join([found, self._names(place)])
        return found

    def _solved(self, pattern: Pattern, place: _Place) -> PlanNode:
        if self._is_static(pattern, place):
            return self._static(pattern)
        match pattern:
            case BasicPattern(patterns=patterns):
                return self._join([self._pattern(each, place) for each in patterns])
            case algebra.Join():
                return self._join_of(pattern, place)
            case algebra.LeftJoin(left=first, right=second, condition=condition):
                left, right = self._node(first, place), self._node(second, place)
                if condition is not None:
                    self._check(condition)
                self._check_pairs(left, right)
                return LeftJoin(left, right, condition)
            case algebra.Union(inputs=inputs):
                return _union(self._branches(inputs, place))
            case algebra.Minus(left=first, right=second):
                return self._minus(
                    pattern, self._node(first, place), self._node(second, place), place
                )
            case algebra.Filter():
                return self._filter(pattern, place)
            case algebra.Extend(input=source, variable=variable, expression=expression):
                self._check(expression)
                return Extend(self._node(source, place), variable, expression)
            case WindowPattern():
                return self._window_pattern(pattern)
            case algebra.Group(input=source, keys=keys, aggregates=aggregates):
                for each in aggregates:
                    if each.call.argument is not None:
                        self._check(each.call.argument)
                if isinstance(place.graph, Variable):
                    if not keys:
                        self.obstacles.append("a group without keys inside GRAPH ?g")
                    keys = (*keys, place.graph)
                return Group(self._node(source, place), keys, aggregates)
            case algebra.Project(input=source, variables=variables):
                return Project(self._node(source, place), (*variables, *_variables(place.graph)))
            case algebra.Distinct(input=source):
                below = self._node(source, place)
                if any(map(is_time, below.variables)):
                    self.obstacles.append("timestamp() above DISTINCT")
                return Distinct(below)
            case algebra.Reduced(input=source) | algebra.OrderBy(input=source):
                # Below the outermost SELECT, an order without LIMIT changes nothing.
                return self._node(source, place)
            case algebra.Slice(input=source):
                self.obstacles.append("LIMIT or OFFSET in a subquery")
                return self._node(source, place)
            case algebra.Graph():
                return self._window_graph(pattern, place)
            case algebra.Service():
                self.obstacles.append("SERVICE")
                return self._table(sorted(in_scope(pattern, self.query)))
            case Values():
                return self._static(pattern)
            case _:
                assert_never(pattern)

    def _window_pattern(self, pattern: WindowPattern) -> PlanNode:
        parts: list[PlanNode] = []
        for window in windows_of(pattern.window, self.query):
            number = self.query.windows.index(window)
            names = {}
            if isinstance(pattern.window, Variable):
                names[pattern.window] = window.name
            for source in self.sources_of(number):
                bound = dict(names)
                if isinstance(window.stream, Variable):
                    if not needs_content(pattern.input, inside=True):
                        self.obstacles.append("a pattern that matches an empty window")
                    stream = IRI(source.stream)
                    if bound.setdefault(window.stream, stream) != stream:
                        continue
                inner = self._node(pattern.input, _Place((source,), static=False))
                if bound:
                    inner = self._join([self._table(sorted(bound), bound), inner])
                parts.append(inner)
        if not parts:
            return self._table(sorted(in_scope(pattern, self.query)))
        return _union(parts)

    # --- named graphs of windows (W11) ---

    def _window_graph(self, pattern: algebra.Graph, place: _Place) -> PlanNode:
        inside = self._inside_graph(pattern, place)
        if inside is None:
            return self._table(sorted(in_scope(pattern, self.query)))
        found = self._node(pattern.input, inside)
        if self._may_be_without_graph(pattern, is_bound=pattern.graph in found.always):
            # While there is no such graph, there is no solution.
            found = self._join([found, self._names(inside)])
        return found

    def _inside_graph(self, pattern: algebra.Graph, place: _Place) -> _Place | None:
        """The data of a GRAPH block's pattern; None if it has no incremental node.

        The name of the graph becomes one more column of every match. A join by it looks into one
        graph at a time, if nothing inside uses the variable before it is bound.
        """
        if place.static:
            self.obstacles.append("a window inside GRAPH")
            return None
        name = pattern.graph
        if (
            isinstance(name, Variable)
            and _is_named(name, pattern.input)
            and not is_plain(pattern.input, self.query)
        ):
            self.obstacles.append("GRAPH ?g with ?g inside of it")
        return replace(place, graph=name)

    def _may_be_without_graph(self, pattern: algebra.Graph, *, is_bound: bool) -> bool:
        """Whether the block's pattern could have solutions while there is no such graph."""
        return not needs_triple(pattern.input) and (
            not is_bound or _is_named(pattern.graph, pattern.input)
        )

    def _names(self, place: _Place) -> PlanNode:
        """The names of the graphs in the data, each once while it exists."""
        (source,) = place.sources
        quads = self.triples(source, graph=place.graph, routed=True)
        return Distinct(Project(quads, _variables(place.graph)))

    # --- joins ---

    def _join_of(self, pattern: algebra.Join, place: _Place) -> PlanNode:
        """Join all inputs at once, including those of nested windows and joins.

        Only a join of matches can be eager. Then filters over joined inputs wait until all is
        joined. They see the same values, since their variables are bound below them.
        """
        parts: list[PlanNode] = []
        conditions: list[Expression] = []
        for each in pattern.inputs:
            self._gather(each, place, parts, conditions)
        joined = self._join(parts)
        for condition in conditions:
            joined = self._filtered(joined, condition)
        return joined

    def _gather(
        self,
        pattern: Pattern,
        place: _Place,
        parts: list[PlanNode],
        conditions: list[Expression],
    ) -> None:
        """Add the inputs of a pattern to a join, and the filters that wait."""
        if self._is_static(pattern, place):
            parts.append(self._static(pattern))
            return
        match pattern:
            case algebra.Join(inputs=inputs):
                for each in inputs:
                    self._gather(each, place, parts, conditions)
            case BasicPattern(patterns=patterns):
                for one in patterns:
                    if isinstance(one, PathPattern) and not is_repeated(one.path):
                        self._gather(unfold(one, self._fresh), place, parts, conditions)
                    else:
                        parts.append(self._pattern(one, place))
            case algebra.Graph(graph=name, input=source) if not place.static:
                inside, before = self._inside_graph(pattern, place), len(parts)
                assert inside is not None
                self._gather(source, inside, parts, conditions)
                is_bound = any(name in each.always for each in parts[before:])
                if self._may_be_without_graph(pattern, is_bound=is_bound):
                    parts.append(self._names(inside))
            case WindowPattern(window=IRI() as name, input=source) if isinstance(
                self.query.window(name).stream, IRI
            ):
                number = self.query.windows.index(self.query.window(name))
                inside = _Place(self.sources_of(number), static=False)
                self._gather(source, inside, parts, conditions)
            case algebra.Filter(input=source, condition=condition) if self.eager and waits(
                condition, source, self.query
            ):
                conditions.append(condition)
                self._gather(source, place, parts, conditions)
            case _:
                parts.append(self._node(pattern, place))

    def _join(self, parts: list[PlanNode]) -> PlanNode:
        if len(parts) > MOST_JOINED:
            raise LimitError(
                f"the query joins {len(parts):,} patterns, and the limit is {MOST_JOINED}",
                detail="Each step of a path is a pattern.",
                hint="Split the query: a CONSTRUCT query can be the stream of another one.",
            )
        # The empty solution adds nothing.
        parts = [part for part in parts if not _is_unit(part)]
        if not parts:
            return self._table((), {})
        while len(parts) > MAX_INPUTS:
            first, parts = parts[:MAX_INPUTS], parts[MAX_INPUTS:]
            parts.insert(0, self._join(first))
        if len(parts) == 1:
            return parts[0]
        self._check_pairs(*parts)
        return Join(tuple(parts))

    def _check_pairs(self, *parts: PlanNode) -> None:
        """Record an obstacle where rows of an eager join could not be read again."""
        if self.eager and not all(map(keeps_its_rows, parts)):
            self.obstacles.append("a join of joins cannot be eager")

    # --- paths ---

    def _pattern(self, pattern: TriplePattern | PathPattern, place: _Place) -> PlanNode:
        if isinstance(pattern, TriplePattern):
            return self._matches(pattern, place)
        if is_repeated(pattern.path):
            return self._closure(pattern.subject, pattern.path, pattern.object, place)
        return self._node(unfold(pattern, self._fresh), place)

    def _fresh(self) -> Variable:
        self._hidden += 1
        return Variable(f"_:path {self._hidden}")

    def _closure(
        self, subject: PatternTerm, path: Path, end: PatternTerm, place: _Place
    ) -> PlanNode:
        if isinstance(place.graph, Variable):
            self.obstacles.append("a path that repeats or skips steps inside GRAPH ?g")
        parts: list[PlanNode] = [
            self.triples(source, graph=place.graph) for source in place.sources
        ]
        if place.static:
            first, second, third = _TRIPLE
            pattern = TriplePattern(subject=first, predicate=second, object=third)
            parts.append(self._static(BasicPattern(patterns=(pattern,))))
        # The graph of a bag: a path does not count the elements along it.
        return Closure(Distinct(_union(parts)), _TRIPLE, path, (subject, end))

    # --- filters, MINUS, EXISTS ---

    def _filtered(self, source: PlanNode, condition: Expression) -> PlanNode:
        self._check(condition)
        return Filter(source, condition)

    def _filter(self, pattern: algebra.Filter, place: _Place) -> PlanNode:
        tests = conjuncts(pattern.condition)
        found = self._node(pattern.input, place)
        for test in tests:
            if not isinstance(test, Exists):
                found = self._filtered(found, test)
        for test in tests:
            if isinstance(test, Exists):
                found = self._exists(found, test, place)
        return found

    def _minus(
        self, pattern: algebra.Minus, left: PlanNode, right: PlanNode, place: _Place
    ) -> PlanNode:
        shared = shared_variables(left, right)
        if isinstance(place.graph, Variable):
            # MINUS compares the variables of both sides, and the graph's name is not bound inside.
            inside = in_scope(pattern.left, self.query) & in_scope(pattern.right, self.query)
            if not inside:
                return left
            if not inside & left.always & right.always:
                self.obstacles.append("MINUS inside GRAPH ?g that may share no variable")
        if not shared:
            return left
        found = AntiJoin(left, right, shares=tuple(sorted(shared)))
        if found.keys is None:
            self._check_pairs(left, right)
        return found

    def _exists(self, left: PlanNode, test: Exists, place: _Place) -> PlanNode:
        """EXISTS as a join that only counts its pairs.

        Substituting a solution's values into a pattern equals joining with it, if nothing in the
        pattern depends on when a variable is bound.
        """
        inner, conditions = test.pattern, []
        while isinstance(inner, algebra.Filter) and not has_exists(inner.condition):
            self._check(inner.condition)
            conditions.append(inner.condition)
            inner = inner.input
        if not is_plain(inner, self.query):
            self.obstacles.append("an EXISTS that is not a join")
            return left
        right = self._node(inner, place)
        found = AntiJoin(left, right, tuple(conditions), negated=test.negated)
        if found.keys is None:
            self._check_pairs(left, right)
        return found

    def _check(self, expression: Expression) -> None:
        """Record expressions that can only be computed from scratch at every report."""
        for node in walk_algebra(expression):
            if isinstance(node, Exists):
                self.obstacles.append("EXISTS inside another expression")
            if is_volatile(node):
                self.obstacles.append("a value that changes by itself")


def _union(parts: list[PlanNode]) -> PlanNode:
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def _is_unit(node: PlanNode) -> bool:
    """Whether a node is the empty solution."""
    if not isinstance(node, StaticRelation) or node.variables:
        return False
    pattern = node.query.pattern
    return (isinstance(pattern, Values) and len(pattern.rows) == 1) or (
        isinstance(pattern, BasicPattern) and not pattern.patterns
    )


def _selected(pattern: Pattern, query: ContinuousQuery) -> tuple[Variable, ...]:
    """The variables of a subquery, in its order; of any other pattern, all its variables."""
    inner = pattern
    while isinstance(inner, algebra.Slice | algebra.Distinct | algebra.Reduced):
        inner = inner.input
    if isinstance(inner, algebra.Project):
        return inner.variables
    return tuple(sorted(in_scope(inner, query)))


def _is_named(name: IRI | Variable, pattern: Pattern) -> bool:
    """Whether a variable occurs anywhere in a pattern."""
    return any(
        value == name or (isinstance(value, tuple) and name in value)
        for node in walk_algebra(pattern)
        for value in (getattr(node, each.name) for each in fields(node))
    )


def _variables(*terms: object) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(term for term in terms if isinstance(term, Variable)))
