"""Algebra to operators: which leaves a query needs and what is made of them.

Every operator of the algebra has an incremental one. What has none (a value that changes by itself,
LIMIT in a subquery, an EXISTS that is no join) makes `build` raise `NotIncrementalError`; the whole
query is then evaluated anew at its reports (`recompute.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never, final

from quadweir.algebra.analyze import (
    windows_read,
)
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import solve
from quadweir.algebra.expressions import (
    Call,
    Exists,
    Expression,
    VariableExpression,
)
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
    Path,
    PathPattern,
    Pattern,
    PatternTerm,
    Project,
    Reduced,
    Service,
    Slice,
    TriplePattern,
    Union,
    Values,
    WindowPattern,
)
from quadweir.algebra.query import ContinuousQuery, SelectForm
from quadweir.algebra.scopes import always_bound, in_scope, windows_of
from quadweir.algebra.solutions import Bag, is_time, time_variable
from quadweir.algebra.traverse import walk
from quadweir.algebra.windows import Content, CountScope
from quadweir.kernel import distinct, multijoin, paths, stateless
from quadweir.kernel.aggregate import Aggregate
from quadweir.kernel.clocks import CountClock, TimeClock
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.fixed import FixedRelation, Share, StaticSource
from quadweir.kernel.layout import NO_LAYOUT, Arrays
from quadweir.kernel.network import LeafPlan, Network, Source, part
from quadweir.kernel.relation import Operator
from quadweir.kernel.shapes import (
    NotIncrementalError,
    conjuncts,
    has_exists,
    is_plain,
    is_volatile,
    needs_content,
    waits,
)
from quadweir.kernel.unfold import is_repeated, unfold
from quadweir.kernel.window import CountedLeaf, TimedLeaf
from quadweir.kernel.wiring import Wiring, check_expression
from quadweir.sharing import Template, bind
from quadweir.terms import IRI, Term, Variable


def static_dataset(query: ContinuousQuery, dataset: Dataset) -> Dataset:
    """Give the static data that a query sees (A1)."""
    if query.default_graphs or query.named_graphs or query.default_graph_windows:
        return dataset.restricted(query.default_graphs, query.named_graphs)
    return dataset


@final
@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a pattern stands: the windows whose content it matches, and whether static data too."""

    sources: tuple[Source, ...]
    static: bool


@final
class Builder:
    """Makes the network of one query.

    Args:
        query: The query; best optimised.
        static: The static data as the query sees it.
        dictionary: The shard's dictionary.
        streams: The streams there are, for windows over a stream variable.
        eager: Whether answers leave as soon as their parts have arrived (E1).
        template: What the query is a template of, if it has parameters or the longest windows.
        layout: What `Network.layout` gave for the same query and static data.
        share: What this shard has of static data, if not all.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        static: StaticSource,
        dictionary: Dictionary,
        streams: Sequence[str],
        *,
        eager: bool,
        template: Template | None = None,
        layout: Arrays = NO_LAYOUT,
        share: Share | None = None,
    ) -> None:
        self.query = query
        self.template = template
        self._layout = layout
        self._share = share
        # Where the times of the leaves are kept that members of a template may be too short for.
        self.instants: list[tuple[int, Variable]] = []
        self.static = static
        self.dictionary = dictionary
        self.streams = streams
        self.eager = eager
        self.network = Network()
        self._wiring = Wiring(self.network, dictionary, eager)
        self._leaves: dict[LeafPlan, Operator] = {}
        self._hidden = 0
        self._timed: frozenset[Variable] = frozenset()

    # --- entry points ---

    def build(self, pattern: Pattern) -> Operator:
        """Add the operators of a pattern that stands outside of any WINDOW."""
        self._timed = self._timed_variables()
        merged = self.query.default_graph_windows
        sources = tuple(
            source
            for number, window in enumerate(self.query.windows)
            if window.name in merged
            for source in self.sources_of(number)
        )
        return self._build(pattern, _Scope(sources, static=True))

    def content(self, source: Source) -> Operator:
        """Add what tells when the content of a window changes (R1).

        In a bag every element counts, in a graph every triple that an element carries.
        """
        if self.query.windows[source.window].content is Content.BAG:
            return self._leaf(LeafPlan(source, None, ()))
        return self._graph([self.triples(source, carried=True)])

    def triples(self, source: Source, *, timed: bool = False, carried: bool = False) -> Operator:
        """Add the leaf that holds all triples of a window, with their times if asked for."""
        names = tuple(Variable(f"_:{place}") for place in ("subject", "predicate", "object"))
        pattern = TriplePattern(subject=names[0], predicate=names[1], object=names[2])
        return self._leaf(LeafPlan(source, pattern, names, names[:1] if timed else (), carried))

    def clock(self, source: Source) -> None:
        """Make sure that a count window has its clock, whatever reads it."""
        scope = self.query.windows[source.window].scope
        if isinstance(scope, CountScope):
            self.network.clocks.setdefault(source, CountClock(scope))

    def sources_of(self, number: int) -> tuple[Source, ...]:
        """List the streams that a window is over."""
        window = self.query.windows[number]
        over = self.streams if isinstance(window.stream, Variable) else (window.stream.value,)
        return tuple(Source(number, stream, window.event_time) for stream in over)

    # --- leaves ---

    def _timed_variables(self) -> frozenset[Variable]:
        found = set()
        for node in walk(self.query.pattern):
            if isinstance(node, Call) and node.function == "TIMESTAMP":
                match node.arguments:
                    case (VariableExpression(variable=variable),):
                        found.add(variable)
                    case _:
                        raise NotIncrementalError("timestamp() of a triple")
        if found and any(window.content is Content.GRAPH for window in self.query.windows):
            raise NotIncrementalError("timestamp() over graphs, where times move on")
        return frozenset(found)

    def _leaf(self, plan: LeafPlan) -> Operator:
        if plan in self._leaves:
            return self._leaves[plan]
        scope = self.query.windows[plan.source.window].scope
        variables = (*plan.variables, *map(time_variable, plan.times))
        if isinstance(scope, CountScope):
            clock = self.network.clocks.setdefault(plan.source, CountClock(scope))
            leaf: CountedLeaf | TimedLeaf = CountedLeaf(variables, clock, self.dictionary)
        else:
            leaf = TimedLeaf(variables, TimeClock.of(scope), self.dictionary, eager=self.eager)
        self._leaves[plan] = self.network.add_leaf(plan, leaf)
        return leaf

    def _matches(self, pattern: TriplePattern, scope: _Scope) -> Operator:
        """The matches of a triple pattern in the windows of a scope, and in static data."""
        variables = _variables(pattern.subject, pattern.predicate, pattern.object)
        times = tuple(v for v in variables if v in self._timed)
        bags: list[Operator] = []
        graphs: list[Operator] = []
        for source in scope.sources:
            leaf = self._leaf(LeafPlan(source, pattern, variables, (*times, *self._own(source))))
            is_bag = self.query.windows[source.window].content is Content.BAG
            (bags if is_bag else graphs).append(leaf)
        parts = [*bags, self._graph(graphs)] if graphs else bags
        if scope.static:
            fixed = self._static(BasicPattern(patterns=(pattern,)))
            # Without a match in static data, windows alone are as quick as if there were none.
            if fixed.total or not parts:
                if graphs:
                    parts[-1] = self._wiring.exists(parts[-1], fixed, (), negated=True)
                parts.append(fixed)
        return self._wiring.union(parts)

    def _own(self, source: Source) -> tuple[Variable, ...]:
        """Name the time of a leaf's elements where a result has to be told by it."""
        if self.template is None or source.window not in self.template.windows:
            return ()
        name = Variable(f"leaf {len(self.instants)}")
        self.instants.append((source.window, time_variable(name)))
        return (name,)

    def _graph(self, leaves: list[Operator]) -> Operator:
        """A triple is there once, as long as some element carries it (W8).

        The values of a pattern's variables tell its triples apart, so that leaves with reference
        counts are the distinct rows of all leaves. What static data has too is left out of them: so
        nothing has to be remembered of static rows.
        """
        source = self._wiring.union(leaves)
        return self.network.add(
            distinct.Distinct(source, source.variables, self.dictionary), (source,)
        )

    # --- static data ---

    def _static(self, pattern: Pattern) -> stateless.Static:
        query = replace(
            self.query,
            pattern=pattern,
            # What a subquery selects decides which of equals its LIMIT keeps, not what the whole
            # query does (A4).
            form=SelectForm(variables=_selected(pattern, self.query)),
            windows=(),
            default_graphs=(),
            named_graphs=(),
            default_graph_windows=(),
        )
        variables = tuple(sorted(in_scope(pattern, self.query)))
        asked = self._solutions(query)
        if asked is None:
            relation = self.static.relation(query, variables)
            return self._fixed(relation, always_bound(pattern, self.query))
        return self._table(asked, variables)

    def _solutions(self, query: ContinuousQuery) -> Bag | None:
        """Solve a pattern for the constants of a template's members alone; None if it has none."""
        known = in_scope(query.pattern, query)
        asked = [
            each for each in (self.template.parameters if self.template else ()) if each in known
        ]
        if self.template is None or not asked:
            return None
        found: Bag = []
        for values in self.template.constants(asked):
            bound: dict[Variable, Term] = dict(zip(asked, values, strict=True))
            own = replace(query, pattern=bind(query.pattern, dict(zip(asked, values, strict=True))))
            found += [solution | bound for solution in solve(own, self.static.dataset())]
        return found

    def _table(self, bag: Bag, variables: Iterable[Variable]) -> stateless.Static:
        return self._fixed(FixedRelation.of_bag(tuple(variables), bag), frozenset())

    def _fixed(self, relation: FixedRelation, certain: frozenset[Variable]) -> stateless.Static:
        place, share = len(self.network.operators), self._share
        given = part(f"operator.{place}.", self._layout)
        # An attempt that is given up may have another relation at this place.
        if share is not None and (
            place not in share.places or share.variable not in relation.variables
        ):
            share = None
        fixed = stateless.Static(relation, self.dictionary, given, share, certain=certain)
        return self.network.add(fixed, ())

    def _is_static(self, pattern: Pattern, scope: _Scope) -> bool:
        if any(is_volatile(node) for node in walk(pattern)):
            return False
        if not scope.static:
            name = self.query.windows[scope.sources[0].window].name
            return not windows_read(WindowPattern(window=name, input=pattern), self.query)
        return not windows_read(pattern, self.query)

    # --- patterns ---

    def _build(self, pattern: Pattern, scope: _Scope) -> Operator:
        if self._is_static(pattern, scope):
            return self._static(pattern)
        match pattern:
            case BasicPattern(patterns=patterns):
                parts = [self._pattern(each, scope) for each in patterns]
                return self._join(parts)
            case Join():
                return self._join_of(pattern, scope)
            case LeftJoin(left=first, right=second, condition=condition):
                sides = self._build(first, scope), self._build(second, scope)
                return self._wiring.left_join(*sides, condition)
            case Union(inputs=inputs):
                return self._wiring.union([self._build(each, scope) for each in inputs])
            case Minus(left=first, right=second):
                return self._wiring.minus(self._build(first, scope), self._build(second, scope))
            case Filter():
                return self._filter(pattern, scope)
            case Extend(input=source, variable=variable, expression=expression):
                check_expression(expression)
                below = self._build(source, scope)
                extended = stateless.Extend(below, variable, expression, self.dictionary)
                return self.network.add(extended, (below,))
            case WindowPattern():
                return self._window(pattern)
            case Group(input=source, keys=keys, aggregates=aggregates):
                for each in aggregates:
                    if each.call.argument is not None:
                        check_expression(each.call.argument)
                below = self._build(source, scope)
                grouped = Aggregate(below, keys, aggregates, self.dictionary)
                return self.network.add(grouped, (below,))
            case Project(input=source, variables=variables):
                below = self._build(source, scope)
                return self.network.add(stateless.Project(below, variables), (below,))
            case Distinct(input=source):
                below = self._build(source, scope)
                if any(map(is_time, below.variables)):
                    raise NotIncrementalError("timestamp() above DISTINCT")
                kept = distinct.Distinct(below, below.variables, self.dictionary)
                return self.network.add(kept, (below,))
            case Reduced(input=source) | OrderBy(input=source):
                # Below the outermost SELECT, an order without LIMIT is of no account.
                return self._build(source, scope)
            case Slice():
                raise NotIncrementalError("LIMIT or OFFSET in a subquery")
            case Graph():
                raise NotIncrementalError("a window inside GRAPH")
            case Service():
                raise NotIncrementalError("SERVICE")
            case Values():
                return self._static(pattern)
            case _:
                assert_never(pattern)

    def _window(self, pattern: WindowPattern) -> Operator:
        parts: list[Operator] = []
        for window in windows_of(pattern.window, self.query):
            number = self.query.windows.index(window)
            names = {}
            if isinstance(pattern.window, Variable):
                names[pattern.window] = window.name
            for source in self.sources_of(number):
                bound: dict[Variable, Term] = dict(names)
                if isinstance(window.stream, Variable):
                    if not needs_content(pattern.input, inside=True):
                        raise NotIncrementalError("a pattern that matches an empty window")
                    stream = IRI(source.stream)
                    if bound.setdefault(window.stream, stream) != stream:
                        continue
                inner = self._build(pattern.input, _Scope((source,), static=False))
                if bound:
                    inner = self._join([self._table([bound], sorted(bound)), inner])
                parts.append(inner)
        if not parts:
            return self._table([], sorted(in_scope(pattern, self.query)))
        return self._wiring.union(parts)

    # --- joins ---

    def _join_of(self, pattern: Join, scope: _Scope) -> Operator:
        """Join all inputs at once, those of windows and of joins inside included.

        Only a join of leaves can be eager. Then filters over joined inputs wait until all is
        joined; they see no more than they would have, since what they mention is bound below them.
        """
        parts: list[Operator] = []
        conditions: list[Expression] = []
        waiting: list[tuple[Pattern, _Scope]] = [(each, scope) for each in pattern.inputs]
        while waiting:
            each, where = waiting.pop(0)
            if self._is_static(each, where):
                parts.append(self._static(each))
                continue
            match each:
                case Join(inputs=inputs):
                    waiting[:0] = [(one, where) for one in inputs]
                case BasicPattern(patterns=patterns):
                    for one in patterns:
                        if isinstance(one, PathPattern) and not is_repeated(one.path):
                            waiting.insert(0, (unfold(one, self._fresh), where))
                        else:
                            parts.append(self._pattern(one, where))
                case WindowPattern(window=IRI() as name, input=source) if isinstance(
                    self.query.window(name).stream, IRI
                ):
                    number = self.query.windows.index(self.query.window(name))
                    waiting.insert(0, (source, _Scope(self.sources_of(number), static=False)))
                case Filter(input=source, condition=condition) if self.eager and waits(
                    condition, source, self.query
                ):
                    conditions.append(condition)
                    waiting.insert(0, (source, where))
                case _:
                    parts.append(self._build(each, where))
        joined = self._join(parts)
        for condition in conditions:
            joined = self._wiring.filtered(joined, condition)
        return joined

    def _join(self, parts: list[Operator]) -> Operator:
        # The one empty solution adds nothing.
        parts = [
            part
            for part in parts
            if not (isinstance(part, stateless.Static) and not part.variables and part.held() == 1)
        ]
        if not parts:
            return self._table([{}], ())
        while len(parts) > multijoin.MAX_INPUTS:
            first, parts = parts[: multijoin.MAX_INPUTS], parts[multijoin.MAX_INPUTS :]
            parts.insert(0, self._join(first))
        if len(parts) == 1:
            return parts[0]
        if len(set(map(id, parts))) < len(parts):
            # The same pattern twice: the second is another view of the same rows.
            parts = [
                self._wiring.again(part) if part in parts[:place] else part
                for place, part in enumerate(parts)
            ]
        return self._wiring.join(parts)

    # --- paths ---

    def _pattern(self, pattern: TriplePattern | PathPattern, scope: _Scope) -> Operator:
        if isinstance(pattern, TriplePattern):
            return self._matches(pattern, scope)
        if is_repeated(pattern.path):
            return self._closure(pattern.subject, pattern.path, pattern.object, scope)
        return self._build(unfold(pattern, self._fresh), scope)

    def _fresh(self) -> Variable:
        self._hidden += 1
        return Variable(f"_:path {self._hidden}")

    def _closure(
        self, subject: PatternTerm, path: Path, end: PatternTerm, scope: _Scope
    ) -> Operator:
        names = tuple(Variable(f"_:{place}") for place in ("subject", "predicate", "object"))
        parts: list[Operator] = [self.triples(source) for source in scope.sources]
        if scope.static:
            pattern = TriplePattern(subject=names[0], predicate=names[1], object=names[2])
            fixed = self._static(BasicPattern(patterns=(pattern,)))
            parts.append(fixed)
        # The graph of a bag: a path does not count the elements it runs through.
        graph = self._graph(parts)
        triple = (names[0], names[1], names[2])
        closure = paths.Closure(graph, triple, path, (subject, end), self.dictionary)
        return self.network.add(closure, (graph,))

    # --- filters ---

    def _filter(self, pattern: Filter, scope: _Scope) -> Operator:
        tests = conjuncts(pattern.condition)
        plain = [each for each in tests if not isinstance(each, Exists)]
        found = self._build(pattern.input, scope)
        for test in plain:
            found = self._wiring.filtered(found, test)
        for each in tests:
            if isinstance(each, Exists):
                found = self._exists(found, each, scope)
        return found

    def _exists(self, left: Operator, test: Exists, scope: _Scope) -> Operator:
        """EXISTS as a join whose pairs are only counted.

        Putting a solution's values into a pattern is joining with it as long as nothing in the
        pattern can tell a bound variable from one that is bound later.
        """
        inner, conditions = test.pattern, []
        while isinstance(inner, Filter) and not has_exists(inner.condition):
            conditions.append(inner.condition)
            inner = inner.input
        if not is_plain(inner, self.query):
            raise NotIncrementalError("an EXISTS that is no join")
        right = self._build(inner, scope)
        return self._wiring.exists(left, right, conditions, negated=test.negated)


def _selected(pattern: Pattern, query: ContinuousQuery) -> tuple[Variable, ...]:
    """Name what a subquery selects, in its order; of any other pattern, all its variables."""
    inner = pattern
    while isinstance(inner, Slice | Distinct | Reduced):
        inner = inner.input
    return inner.variables if isinstance(inner, Project) else tuple(sorted(in_scope(inner, query)))


def _variables(*terms: object) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(term for term in terms if isinstance(term, Variable)))
