"""The answers of a query over static data and the contents of its windows, exactly as specified.

One function for each node, bags as lists, no optimisation: the optimiser and the incremental kernel
are checked against this module. It evaluates one instant only; the caller decides which elements
are in a window at that instant.

Spec: https://www.w3.org/TR/sparql11-query/#sparqlAlgebraEval
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never, final

from quadweir.algebra.aggregates import evaluate_aggregate
from quadweir.algebra.analyze import asks_for_triple_times
from quadweir.algebra.dataset import (
    Dataset,
    Occurrence,
    StreamElement,
    TripleSource,
    merge_sources,
    window_graphs,
    window_source,
)
from quadweir.algebra.expressions import Expression, FunctionCall, VariableExpression
from quadweir.algebra.forms import construct, describe
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.paths import connected
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
    OrderKey,
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
from quadweir.algebra.query import (
    AskForm,
    ConstructForm,
    ContinuousQuery,
    DescribeForm,
    SelectForm,
)
from quadweir.algebra.scalar import ExistsTest, evaluate_expression, holds
from quadweir.algebra.scopes import in_scope, windows_of
from quadweir.algebra.signatures import Context
from quadweir.algebra.solutions import (
    Bag,
    Solution,
    Spend,
    compatible,
    distinct,
    join,
    left_join,
    merge,
    minus,
    time_term,
    time_variable,
)
from quadweir.algebra.traverse import walk
from quadweir.algebra.values import order_key
from quadweir.algebra.windows import Content, Window
from quadweir.algebra.work import TextCounter, WorkCounter
from quadweir.errors import UnsupportedError
from quadweir.terms import IRI, Literal, Quad, Resource, Term, Variable

WindowContents: TypeAlias = Mapping[IRI, Sequence[StreamElement]]


@final
@dataclass(frozen=True, slots=True)
class Solutions:
    """The answer of a SELECT: a bag of solutions, in order if the query asked for one."""

    variables: tuple[Variable, ...]
    rows: tuple[Solution, ...]


Evaluated: TypeAlias = Solutions | bool | frozenset[Quad]


def evaluate(
    query: ContinuousQuery,
    dataset: Dataset | None = None,
    *,
    windows: WindowContents | None = None,
    context: Context | None = None,
) -> Evaluated:
    """Answer a query at one instant.

    Args:
        query: The query.
        dataset: The static data; FROM and FROM NAMED pick from its named graphs.
        windows: For each declared window the elements in its scope; one that is left out is
            empty. The elements of a window over a stream variable have their streams.
        context: The report instant and the source of random numbers.

    Returns:
        Solutions for SELECT, a truth value for ASK, triples for CONSTRUCT and DESCRIBE.

    Raises:
        PlanError: FROM names a graph that is not there.
        UnsupportedError: the query asks another endpoint.
    """
    evaluator, bag = _solve(query, static_dataset(query, dataset), windows, context)
    match query.form:
        case SelectForm(variables=variables):
            return Solutions(variables, tuple(_only(row, variables) for row in bag))
        case AskForm():
            return bool(bag)
        case ConstructForm(template=template):
            return frozenset(construct(template, bag, evaluator.context))
        case DescribeForm(targets=targets):
            described = describe(targets, bag, evaluator.described_graph())
            return frozenset().union(*described.values())
        case _:
            assert_never(query.form)


def solve(
    query: ContinuousQuery,
    dataset: Dataset | None = None,
    *,
    windows: WindowContents | None = None,
    graphs: WindowContents | None = None,
    context: Context | None = None,
) -> Bag:
    """The bag of solutions of a query's pattern, before its form is applied.

    Unlike `evaluate`, it takes the static data as the query sees it (`static_dataset`), so that
    repeated calls select the graphs once. `graphs` are the elements of the windows' named graphs
    (W11), if they differ from those in `windows`.
    """
    return _solve(query, dataset, windows, context, graphs)[1]


def static_dataset(query: ContinuousQuery, dataset: Dataset | None) -> Dataset:
    """The static data that a query sees (A1).

    Raises:
        PlanError: FROM names a graph that is not there.
    """
    data = dataset if dataset is not None else Dataset()
    if query.default_graphs or query.named_graphs or query.default_graph_windows:
        return data.restricted(query.default_graphs, query.named_graphs)
    return data


def _solve(
    query: ContinuousQuery,
    dataset: Dataset | None,
    windows: WindowContents | None,
    context: Context | None,
    graphs: WindowContents | None = None,
) -> tuple[_Evaluator, Bag]:
    data = dataset if dataset is not None else Dataset()
    context = context or Context()
    if asks_for_triple_times(query.pattern):
        context.triple_times = _triple_times(query, windows or {})
    held = windows or {}
    evaluator = _Evaluator(
        query,
        data,
        held,
        held if graphs is None else graphs,
        context,
        timed=_timed_variables(query),
    )
    scope = _Scope(evaluator.default_graph())
    return evaluator, evaluator.modified(query.pattern, scope, _selected(query))


def _selected(query: ContinuousQuery) -> tuple[Variable, ...]:
    """The variables that answers are made of, in the order in which they break ties (A4)."""
    match query.form:
        case SelectForm(variables=variables):
            return variables
        case ConstructForm() as form:
            return form.variables
        case DescribeForm(targets=targets):
            return tuple(target for target in targets if isinstance(target, Variable))
        case AskForm():
            return ()


def _only(solution: Solution, variables: Iterable[Variable]) -> Solution:
    return {variable: solution[variable] for variable in variables if variable in solution}


def _timed_variables(query: ContinuousQuery) -> frozenset[Variable]:
    """The variables whose times the query asks for."""
    found: set[Variable] = set()
    for node in walk(query.pattern):
        if isinstance(node, FunctionCall) and node.function == "TIMESTAMP":
            match node.arguments:
                case (VariableExpression(variable=variable),):
                    found.add(variable)
    return frozenset(found)


def _triple_times(
    query: ContinuousQuery, windows: WindowContents
) -> dict[tuple[Term, Term, Term], int]:
    """When each triple was last carried by an element that some window of the query holds."""
    latest: dict[tuple[Term, Term, Term], int] = {}
    for window in query.windows:
        for element in windows.get(window.name, ()):
            for quad in element.quads:
                triple = (quad.subject, quad.predicate, quad.object)
                latest[triple] = max(element.event_time, latest.get(triple, element.event_time))
    return latest


@final
@dataclass(frozen=True, slots=True)
class _Part:
    """A window, or its part over one stream."""

    window: Window
    stream: IRI | None


@final
@dataclass(frozen=True, slots=True)
class _Scope:
    """The context of a pattern: its graph or window, and the values from EXISTS.

    `part` is the window whose named graphs GRAPH looks into; None stands for static data.
    """

    source: TripleSource
    given: Solution = field(default_factory=dict)
    part: _Part | None = None


@final
class _Evaluator:
    def __init__(
        self,
        query: ContinuousQuery,
        data: Dataset,
        windows: WindowContents,
        graphs: WindowContents,
        context: Context,
        *,
        timed: frozenset[Variable],
    ) -> None:
        self.query = query
        self.data = data
        self.windows = windows
        self.graphs = graphs
        self.context = context
        self.timed = timed
        held = sum(len(elements) for elements in windows.values())
        self.work = WorkCounter(size=data.size() + held)
        self.texts = TextCounter()
        self._sources: dict[_Part, TripleSource] = {}
        self._named: dict[_Part, Mapping[Resource, TripleSource]] = {}

    # --- what patterns are matched in ---

    def default_graph(self) -> TripleSource:
        """The default graph, with the windows that are merged into it (A1)."""
        if not self.query.default_graph_windows:
            return self.data.default
        parts = [(self.data.default, Content.GRAPH)]
        for name in self.query.default_graph_windows:
            window = self.query.window(name)
            parts.append((self.window(_Part(window, None)), window.content))
        return merge_sources(parts)

    def described_graph(self) -> TripleSource:
        """The data of DESCRIBE: the default graph and the contents of all windows, as one graph
        (A5).
        """
        held = [(self.window(_Part(each, None)), Content.GRAPH) for each in self.query.windows]
        return merge_sources([(self.default_graph(), Content.GRAPH), *held])

    def window(self, part: _Part) -> TripleSource:
        """The content of a window, or of its part over one stream."""
        if part not in self._sources:
            elements = _elements(self.windows, part)
            self._sources[part] = window_source(elements, part.window.content)
        return self._sources[part]

    def named(self, part: _Part | None) -> Mapping[Resource, TripleSource]:
        """The named graphs of a window (W11), or of static data."""
        if part is None:
            return self.data.named
        if part not in self._named:
            elements = _elements(self.graphs, part)
            self._named[part] = window_graphs(elements, part.window.content)
        return self._named[part]

    def window_parts(self, window: Window) -> Iterator[tuple[_Part, Solution]]:
        """The data of a window pattern, with the stream variable's value."""
        if isinstance(window.stream, IRI):
            yield _Part(window, None), {}
            return
        elements = self.windows.get(window.name, ())
        for stream in dict.fromkeys(IRI(element.stream) for element in elements):
            yield _Part(window, stream), {window.stream: stream}

    # --- expressions ---

    def value(self, expression: Expression, solution: Solution, scope: _Scope) -> Term:
        seen = scope.given | solution if scope.given else solution
        found = evaluate_expression(expression, seen, self.context, self._exists(scope))
        if isinstance(expression, FunctionCall) and isinstance(found, Literal):
            self.texts.spend(len(found.lexical), str(expression.function), expression.span)
        return found

    def holds(self, condition: Expression, solution: Solution, scope: _Scope) -> bool:
        seen = scope.given | solution if scope.given else solution
        return holds(condition, seen, self.context, self._exists(scope))

    def _exists(self, scope: _Scope) -> ExistsTest:
        def exists(pattern: Pattern, solution: Solution) -> bool:
            inner = replace(scope, given=solution)
            return any(compatible(found, solution) for found in self.solve(pattern, inner))

        return exists

    # --- patterns ---

    def solve(self, pattern: Pattern, scope: _Scope) -> Bag:
        """The bag of a pattern's solutions."""
        match pattern:
            case BasicPattern():
                return self.basic(pattern, scope)
            case Values():
                return self.values(pattern, scope)
            case Join(inputs=inputs):
                bag = self.solve(inputs[0], scope)
                for each in inputs[1:]:
                    bag = join(bag, self.solve(each, scope), self.spend("a join", pattern))
                return bag
            case LeftJoin(left=left, right=right, condition=condition):
                return left_join(
                    self.solve(left, scope),
                    self.solve(right, scope),
                    lambda both: condition is None or self.holds(condition, both, scope),
                    self.spend("OPTIONAL", pattern),
                )
            case Union(inputs=inputs):
                return [solution for each in inputs for solution in self.solve(each, scope)]
            case Minus(left=left, right=right):
                both = self.solve(left, scope), self.solve(right, scope)
                return minus(*both, self.spend("MINUS", pattern))
            case Filter(input=source, condition=condition):
                found = self.solve(source, scope)
                return [each for each in found if self.holds(condition, each, scope)]
            case Extend():
                return self.extend(pattern, scope)
            case Graph():
                return self.graph(pattern, scope)
            case WindowPattern():
                return self.window_pattern(pattern, scope)
            case Service(silent=silent):
                if silent:
                    return [{}]
                raise UnsupportedError(
                    "SERVICE asks another endpoint, which static evaluation does not do",
                    span=pattern.span,
                )
            case Group():
                return self.group(pattern, scope)
            case Slice() | Distinct() | Reduced() | Project() | OrderBy():
                return self.modified(pattern, scope)
            case _:
                assert_never(pattern)

    def spend(self, what: str, pattern: Pattern) -> Spend:
        """Count the work of an operator, which errors call `what`."""

        def spend(count: int) -> None:
            self.work.spend(count, f"{what} looks at solutions", pattern.span)

        return spend

    def basic(self, pattern: BasicPattern, scope: _Scope) -> Bag:
        """Match triple and path patterns, those with the most known ends first."""
        bag: Bag = [{}]
        waiting = list(pattern.patterns)
        known = set(scope.given)
        while waiting and bag:
            waiting.sort(key=lambda each: _open_ends(each, known))
            chosen = waiting.pop(0)
            known.update(_variables(chosen))
            bag = [
                extended
                for solution in bag
                for extended in self.counted(self.match_one(chosen, solution, scope), chosen)
            ]
        return bag if not waiting else []

    def counted(
        self, found: Iterator[Solution], pattern: TriplePattern | PathPattern
    ) -> Iterator[Solution]:
        for each in found:
            self.work.spend(1, "a pattern gives solutions", pattern.span)
            yield each

    def match_one(
        self, pattern: TriplePattern | PathPattern, solution: Solution, scope: _Scope
    ) -> Iterator[Solution]:
        """Extend a solution by every match of one triple or path pattern."""

        def known(term: PatternTerm) -> Term | None:
            if isinstance(term, Variable):
                return solution.get(term, scope.given.get(term))
            return term

        subject, object_ = known(pattern.subject), known(pattern.object)
        if isinstance(pattern, PathPattern):
            ends = (pattern.subject, pattern.object)
            if all(isinstance(end, Variable) and end not in scope.given for end in ends):
                # Between two variables a path stays among the nodes of the graph, whatever the
                # variables were bound to by the patterns matched before.
                nodes = scope.source.nodes()
                if any(end is not None and end not in nodes for end in (subject, object_)):
                    return
            for pair in connected(scope.source, pattern.path, subject, object_, self.work):
                extended = _bind(solution, ends, pair)
                if extended is not None:
                    yield extended
            return
        places = (pattern.subject, pattern.predicate, pattern.object)
        for occurrence in scope.source.match(subject, known(pattern.predicate), object_):
            extended = _bind(solution, places, occurrence[:3])
            if extended is not None:
                yield self.with_times(extended, places, occurrence)

    def with_times(
        self, solution: Solution, places: Iterable[PatternTerm], occurrence: Occurrence
    ) -> Solution:
        """Note when an element bound the variables whose times the query asks for."""
        time = occurrence.time
        if time is None or not self.timed:
            return solution
        times: Solution = {
            time_variable(place): time_term(time)
            for place in places
            if isinstance(place, Variable) and place in self.timed
        }
        return merge(solution, times) if times else solution

    def values(self, pattern: Values, scope: _Scope) -> Bag:
        rows: Bag = [
            {v: term for v, term in zip(pattern.variables, row, strict=True) if term is not None}
            for row in pattern.rows
        ]
        return [row for row in rows if compatible(row, scope.given)]

    def extend(self, pattern: Extend, scope: _Scope) -> Bag:
        """Bind a chain of new variables, solution by solution.

        All of the chain sees the same solution, so BNODE("a") gives them the same node.
        """
        chain = [pattern]
        while isinstance(chain[-1].input, Extend):
            chain.append(chain[-1].input)
        bag: Bag = []
        for solution in self.solve(chain[-1].input, scope):
            self.context.blank_nodes.clear()
            extended = dict(solution)
            for each in reversed(chain):
                try:
                    extended[each.variable] = self.value(each.expression, extended, scope)
                except ExpressionError:
                    continue
            bag.append(extended)
        return bag

    def graph(self, pattern: Graph, scope: _Scope) -> Bag:
        named = self.named(scope.part)
        if isinstance(pattern.graph, IRI):
            if pattern.graph not in named:
                return []  # an empty graph has the empty solution, one that is not there none
            return self.solve(pattern.input, replace(scope, source=named[pattern.graph]))
        bag: Bag = []
        for name, source in named.items():
            inside = replace(scope, source=source)
            bag += self.within(pattern.input, inside, {pattern.graph: name})
        return bag

    def window_pattern(self, pattern: WindowPattern, scope: _Scope) -> Bag:
        bag: Bag = []
        for window in windows_of(pattern.window, self.query):
            name: Solution = {}
            if isinstance(pattern.window, Variable):
                name = {pattern.window: window.name}
            for part, stream in self.window_parts(window):
                if compatible(name, stream):
                    inside = replace(scope, source=self.window(part), part=part)
                    bag += self.within(pattern.input, inside, name | stream)
        return bag

    def within(self, pattern: Pattern, inside: _Scope, names: Solution) -> Bag:
        """Match a pattern in another graph, and bind the variables that name it."""
        if not compatible(names, inside.given):
            return []
        found = self.solve(pattern, inside)
        return join([names], found, self.spend("a graph or window", pattern))

    def group(self, pattern: Group, scope: _Scope) -> Bag:
        groups: dict[tuple[Term | None, ...], Bag] = {}
        if not pattern.keys:
            groups[()] = []
        for solution in self.solve(pattern.input, scope):
            key = tuple(solution.get(variable) for variable in pattern.keys)
            groups.setdefault(key, []).append(solution)
        bag: Bag = []
        for key, members in groups.items():
            row = {v: t for v, t in zip(pattern.keys, key, strict=True) if t is not None}
            for each in pattern.aggregates:
                try:
                    row[each.variable] = evaluate_aggregate(
                        each.call,
                        members,
                        lambda e, solution: self.value(e, solution, scope),
                        self.texts,
                    )
                except ExpressionError:
                    continue
            bag.append(row)
        return bag

    def modified(
        self, pattern: Pattern, scope: _Scope, selected: tuple[Variable, ...] | None = None
    ) -> Bag:
        """Apply the solution modifiers of one SELECT, the innermost first.

        Where there is an order or a cut, solutions that ORDER BY leaves equal go by the spelling
        of the selected variables (A4).
        """
        slice_ = projection = order = None
        is_distinct = False
        rest = pattern
        if isinstance(rest, Slice):
            slice_, rest = rest, rest.input
        if isinstance(rest, Distinct | Reduced):
            is_distinct, rest = isinstance(rest, Distinct), rest.input
        if isinstance(rest, Project):
            projection, rest = rest, rest.input
            selected = projection.variables if selected is None else selected
            # A variable that a subquery does not give out is not the one outside (EXISTS).
            scope = replace(scope, given=_only(scope.given, projection.variables))
        if isinstance(rest, OrderBy):
            order, rest = rest, rest.input
        bag = self.solve(rest, scope)
        if order is not None or slice_ is not None:
            if selected is None:
                selected = tuple(sorted(in_scope(rest, self.query)))
            bag = self.order_by(bag, order.keys if order else (), selected, scope)
        if projection is not None:
            bag = [_only(solution, projection.variables) for solution in bag]
        if is_distinct:
            bag = distinct(bag)
        if slice_ is not None:
            bag = bag[slice_.offset :][: slice_.limit]
        return bag

    def order_by(
        self, bag: Bag, keys: tuple[OrderKey, ...], ties: tuple[Variable, ...], scope: _Scope
    ) -> Bag:
        def key(expression: Expression, solution: Solution) -> tuple[object, ...]:
            try:
                return order_key(self.value(expression, solution, scope))
            except ExpressionError:
                return order_key(None)

        def spelling(solution: Solution) -> tuple[str, ...]:
            # No term is spelt as the empty text, so unbound comes first.
            return tuple(str(solution[each]) if each in solution else "" for each in ties)

        ordered = sorted(bag, key=spelling)
        # Python's sort is stable, so the last key is sorted by first.
        for each in reversed(keys):
            ordered.sort(key=lambda s, e=each.expression: key(e, s), reverse=each.descending)  # type: ignore[misc]
        return ordered


def _elements(contents: WindowContents, part: _Part) -> list[StreamElement]:
    found = contents.get(part.window.name, ())
    if part.stream is None:
        return list(found)
    return [each for each in found if each.stream == part.stream.value]


# --- basic patterns ---------------------------------------------------------------------------


def _variables(pattern: TriplePattern | PathPattern) -> set[Variable]:
    terms: tuple[PatternTerm, ...] = (pattern.subject, pattern.object)
    if isinstance(pattern, TriplePattern):
        terms += (pattern.predicate,)
    return {term for term in terms if isinstance(term, Variable)}


def _open_ends(pattern: TriplePattern | PathPattern, known: set[Variable]) -> int:
    unknown = _variables(pattern) - known
    return len(unknown) * 2 + isinstance(pattern, PathPattern)


def _bind(
    solution: Solution, places: tuple[PatternTerm, ...], terms: tuple[Term, ...]
) -> Solution | None:
    """Bind the variables at these places; None if one would need two values."""
    extended = dict(solution)
    for place, term in zip(places, terms, strict=True):
        if isinstance(place, Variable) and extended.setdefault(place, term) != term:
            return None
    return extended
