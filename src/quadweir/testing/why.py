"""Why an answer holds: the elements, static triples and entailment steps that it rests on.

An answer is explained after the run has given it. The query is evaluated again over the windows'
content at the answer's instant, with the answer's bindings. Then the triple patterns of its
solutions are looked up in the elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import solve, static_dataset
from quadweir.algebra.moments import from_epoch_ms
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
    Pattern,
    Project,
    Reduced,
    Slice,
    TriplePattern,
    Union,
    Values,
    WindowPattern,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.scopes import in_scope
from quadweir.algebra.signatures import Context
from quadweir.algebra.solutions import Solution
from quadweir.entailment.close import static_closure
from quadweir.entailment.needs import needs_of
from quadweir.entailment.schema import Schema
from quadweir.entailment.steps import steps_to
from quadweir.entailment.table import Table
from quadweir.sources.staticfiles import apart_from_streams
from quadweir.sources.streamfiles import Element
from quadweir.terms import IRI, BlankNode, Quad, Resource, Term, Variable
from quadweir.testing.oracle import Oracle
from quadweir.testing.scoping import of_stream

if TYPE_CHECKING:
    from quadweir.testing import Answer

MOST_SOLUTIONS: Final = 20
"""An answer may rest on many solutions, as a count does; this is the most that are explained."""
MOST_ELEMENTS: Final = 20
"""The most elements listed for one triple; the newest come first."""

_Triple = tuple[Term, Term, Term]


@final
@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a pattern is matched: a window or static data, or a named graph of one of them (W11)."""

    window: IRI | None = None
    graph: Resource | None = None


@final
class Reasons:
    """Explains answers.

    Args:
        query: the query as it was parsed.
        feed: all elements of its streams.
        static: its static data.
        schema: the schema that it was answered with.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        feed: Iterable[Element],
        static: Iterable[Quad],
        schema: Schema | None,
    ) -> None:
        self._query = query
        self._schema = schema
        self._table = Table.of(schema, needs_of(query)) if schema is not None else None
        self._oracle = Oracle(query)
        given = list(apart_from_streams(static))
        follows = static_closure(schema, query) if schema is not None else None
        self._closed = set(given if follows is None else follows.of(given))
        self._dataset = static_dataset(query, Dataset.of(self._closed))
        self._sources: dict[Quad, list[Quad]] = {}
        for quad in given:
            self._sources.setdefault(quad, []).insert(0, quad)
            for each in self._table.consequences(quad) if self._table is not None else ():
                self._sources.setdefault(replace(each, graph=quad.graph), []).append(quad)
        self.see(feed)

    def see(self, feed: Iterable[Element]) -> None:
        """Use other elements from now on."""
        self._windows = self._oracle.windows(feed)
        self._at: int | None = None
        self._contents: dict[IRI, list[Element]] = {}
        self._carriers: dict[_Scope, dict[_Triple, list[tuple[Element, Quad]]]] = {}

    def of(self, answer: Answer) -> list[dict[str, Any]]:
        """The triples that an answer rests on, each with its elements."""
        # A removed answer is explained by the content just before.
        self._go_to(answer.t if answer.sign == "+" else answer.t - 1)
        known: Solution = {
            Variable(name): term for name, term in answer.solution if name != "boolean"
        }
        found = dict.fromkeys(self._explain(self._query.pattern, known, _Scope()))
        return [self._told(scope, triple) for scope, triple in found]

    # --- what is there at an instant ---

    def _go_to(self, t: int) -> None:
        if t == self._at:
            return
        self._at = t
        self._contents, self._carriers = {}, {}
        for opened in self._windows:
            name = opened.window.name
            for element in opened.content(t):
                own: dict[Quad, None] = {}
                for carried in element.quads:
                    quad = of_stream(carried, opened.stream)
                    triple = replace(quad, graph=None)
                    follows = self._table.consequences(triple) if self._table is not None else ()
                    for each in (triple, *follows):
                        own[replace(each, graph=quad.graph)] = None
                        key = (each.subject, each.predicate, each.object)
                        for graph in dict.fromkeys((None, quad.graph)):
                            carriers = self._carriers.setdefault(_Scope(name, graph), {})
                            carriers.setdefault(key, []).append((element, triple))
                closed = replace(element, quads=tuple(own))
                self._contents.setdefault(name, []).append(closed)

    # --- what a pattern's solutions are made of ---

    def _explain(
        self, pattern: Pattern, known: Solution, scope: _Scope
    ) -> Iterator[tuple[_Scope, _Triple]]:
        """Find the triples of the solutions of a pattern that agree with what is known."""
        inner = _inside(pattern)
        if isinstance(inner, Group):
            keys = {each: known[each] for each in inner.keys if each in known}
            yield from self._explain(inner.input, keys, scope)
            return
        for solution in islice(self._solutions(inner, known, scope), MOST_SOLUTIONS):
            yield from self._triples(inner, solution, scope)

    def _solutions(self, pattern: Pattern, known: Solution, scope: _Scope) -> Iterator[Solution]:
        here = in_scope(pattern, self._query)
        bound = tuple(each for each in known if each in here)
        if bound:
            row = tuple(known[each] for each in bound)
            given = Values(variables=bound, rows=(row,))  # type: ignore[arg-type]
            pattern = Join(inputs=(given, pattern))
        match scope.graph:
            case IRI():
                pattern = Graph(graph=scope.graph, input=pattern)
            case BlankNode():
                name = Variable("_:graph")
                chosen = Values(variables=(name,), rows=((scope.graph,),))  # type: ignore[arg-type]
                pattern = Join(inputs=(chosen, Graph(graph=name, input=pattern)))
        if scope.window is not None:
            pattern = WindowPattern(window=scope.window, input=pattern)
        assert self._at is not None
        yield from solve(
            replace(self._query, pattern=pattern),
            self._dataset,
            windows=self._contents,
            context=Context(now=from_epoch_ms(self._at)),
        )

    def _triples(
        self, pattern: Pattern, solution: Solution, scope: _Scope
    ) -> Iterator[tuple[_Scope, _Triple]]:
        match pattern:
            case BasicPattern(patterns=patterns):
                for each in patterns:
                    triple = _ground(each, solution) if isinstance(each, TriplePattern) else None
                    if triple is not None:
                        yield scope, triple
            case Join(inputs=inputs):
                for each_input in inputs:
                    yield from self._triples(each_input, solution, scope)
            case Union(inputs=inputs):
                for each_input in inputs:
                    yield from self._if_there(each_input, solution, scope)
            case LeftJoin(left=left, right=right):
                yield from self._triples(left, solution, scope)
                yield from self._if_there(right, solution, scope)
            case Minus(left=source) | Filter(input=source) | Extend(input=source):
                yield from self._triples(source, solution, scope)
            case WindowPattern(window=window, input=source):
                name = solution.get(window) if isinstance(window, Variable) else window
                if isinstance(name, IRI):
                    yield from self._triples(source, solution, _Scope(window=name))
            case Graph(graph=graph, input=source):
                name = solution.get(graph) if isinstance(graph, Variable) else graph
                if isinstance(name, IRI | BlankNode):
                    yield from self._triples(source, solution, replace(scope, graph=name))
            case Project() | Distinct() | Reduced() | OrderBy() | Slice() | Group():
                yield from self._explain(pattern, solution, scope)
            case _:
                return  # VALUES and SERVICE have no triples

    def _if_there(
        self, pattern: Pattern, solution: Solution, scope: _Scope
    ) -> Sequence[tuple[_Scope, _Triple]]:
        """The triples of an optional part, if it has a solution."""
        known = {
            each: solution[each] for each in in_scope(pattern, self._query) if each in solution
        }
        if next(self._solutions(pattern, known, scope), None) is None:
            return ()
        return tuple(self._triples(pattern, solution, scope))

    # --- what carries a triple ---

    def _told(self, scope: _Scope, triple: _Triple) -> dict[str, Any]:
        subject, predicate, end = triple
        assert isinstance(subject, IRI | BlankNode)
        assert isinstance(predicate, IRI)
        quad = Quad(subject, predicate, end)
        entry: dict[str, Any] = {"triple": str(quad)}
        places = [scope] if scope.window is not None else []
        if scope.window is not None and scope.graph is not None:
            entry["graph"] = str(scope.graph)
        if scope == _Scope():
            places += [_Scope(name) for name in self._query.default_graph_windows]
        elements = [self._element(quad, *each) for at in places for each in self._of(at, triple)]
        if elements:
            newest = sorted(elements, key=lambda each: (-each["time"], -each["position"]))
            entry["elements"] = newest[:MOST_ELEMENTS]
            if len(newest) > MOST_ELEMENTS:
                entry["more_elements"] = len(newest) - MOST_ELEMENTS
        if scope.window is None:
            static = self._static(quad, scope.graph)
            if static:
                entry["static"] = static
        return entry

    def _of(self, scope: _Scope, triple: _Triple) -> list[tuple[Element, Quad]]:
        carriers = self._carriers.get(scope, {}).get(triple, [])
        # An element that contains a triple counts as its carrier, even if the triple also follows
        # from it.
        found: dict[tuple[str, int], tuple[Element, Quad]] = {}
        for element, carried in carriers:
            key = (element.stream, element.position)
            is_it = (carried.subject, carried.predicate, carried.object) == triple
            if is_it or key not in found:
                found[key] = (element, carried)
        return list(found.values())

    def _element(self, quad: Quad, element: Element, carried: Quad) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "stream": element.stream,
            "time": element.event_time,
            "position": element.position,
        }
        return entry | self._derived(carried, quad)

    def _derived(self, carried: Quad, quad: Quad) -> dict[str, Any]:
        if carried == quad or self._schema is None:
            return {}
        chain = steps_to(self._schema, carried, quad) or ()
        return {
            "carries": str(carried),
            "steps": [{"rule": step.rule, "axiom": str(step.axiom)} for step in chain],
        }

    def _static(self, quad: Quad, graph: Resource | None) -> list[dict[str, Any]]:
        graphs = (graph,) if graph is not None else (self._query.default_graphs or (None,))
        found = []
        for name in graphs:
            here = replace(quad, graph=name)
            where = {"graph": str(name)} if name is not None else {}
            sources = self._sources.get(here, [])
            if sources[:1] == [here]:
                return [where]
            found += [where | self._derived(replace(each, graph=None), quad) for each in sources]
            if not sources and here in self._closed:
                found.append(where | {"steps": [{"rule": "transitive"}]})
        return found[:MOST_ELEMENTS]


def _inside(pattern: Pattern) -> Pattern:
    """The pattern without ordering, slices, projections and computed group values."""
    while True:
        match pattern:
            case (
                Project(input=source)
                | Distinct(input=source)
                | Reduced(input=source)
                | OrderBy(input=source)
                | Slice(input=source)
            ):
                pattern = source
            case Extend(input=source) | Filter(input=source) if isinstance(_inside(source), Group):
                pattern = source
            case _:
                return pattern


def _ground(pattern: TriplePattern, solution: Solution) -> _Triple | None:
    found = []
    for each in (pattern.subject, pattern.predicate, pattern.object):
        term = solution.get(each) if isinstance(each, Variable) else each
        if term is None:
            return None
        found.append(term)
    return (found[0], found[1], found[2])
