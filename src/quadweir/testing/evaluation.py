"""One report of the oracle: a store with the content of all windows at t, and the query over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pyoxigraph as ox

from quadweir.algebra.analyze import called_by_iri, compares_derivations
from quadweir.algebra.patterns import Distinct, OrderBy, Pattern, Project, Reduced, Slice
from quadweir.algebra.query import (
    AskForm,
    ConstructForm,
    ContinuousQuery,
    DescribeForm,
    SelectForm,
)
from quadweir.algebra.windows import Content
from quadweir.errors import PlanError
from quadweir.sources.streamfiles import Element
from quadweir.terms import IRI, BlankNode, Literal, Quad, Resource, Term, Variable
from quadweir.testing.contents import OpenWindow
from quadweir.testing.elements import distinct_triples
from quadweir.testing.functions import (
    FUNCTIONS,
    accumulator,
    by_iri,
    from_store,
    is_by_iri,
    opaque,
    opaque_quad,
)
from quadweir.testing.oxigraph_terms import (
    integer_literal,
    milliseconds,
    moment_literal,
)
from quadweir.testing.reasoner import Entail
from quadweir.testing.scoping import of_stream, static_label
from quadweir.testing.sparql import (
    IN,
    LATEST,
    MERGED,
    META,
    NAME,
    NOW,
    STATIC,
    TIME,
    TRIPLE_TIME,
    Translation,
    element_graph,
    translate,
    window_graph,
)
from quadweir.vocab import XSD

_BOOLEAN: Final = Variable("boolean")

OracleSolution: TypeAlias = tuple[tuple[str, Term], ...]
# What ISTREAM and DSTREAM compare: a solution and, where derivations are compared, its elements; or
# a resource and the triples that describe it.
OracleRow: TypeAlias = tuple[OracleSolution, tuple[str | Quad, ...]]


class Evaluation:
    """A store that is brought to the content of all windows at t, and the query over it (A1)."""

    def __init__(
        self,
        query: ContinuousQuery,
        windows: Sequence[OpenWindow],
        static: Sequence[Quad],
        entail: Entail | None,
    ) -> None:
        self._query = query
        self._entail = entail
        self._windows = windows
        self._derivations = compares_derivations(query)
        self._is_ordered = _is_ordered(query.pattern)
        default, named = _dataset(query, static, entail)
        self._merged = frozenset(query.default_graph_windows)
        self._merges_bags = any(
            window.content is Content.BAG for window in query.windows if window.name in self._merged
        )
        self._static_default = {_without_graph(quad) for quad in default}
        self._store = ox.Store()
        for index, opened in enumerate(windows):
            if opened.window.content is Content.GRAPH:
                # A window is there even while it is empty: OPTIONAL inside has a solution then.
                self._store.add_graph(ox.NamedNode(window_graph(index)))
        for quad in default:
            self._store.add(opaque_quad(quad, None))
            if self._merges_bags:
                self._store.add(opaque_quad(quad, STATIC))
                self._store.add(opaque_quad(quad, MERGED))
        self._named: dict[Resource, str] = {}
        for place, (name, quads) in enumerate(named.items()):
            graph = name.value if isinstance(name, IRI) else f"{STATIC}:{place}"
            self._named[name] = graph
            self._store.extend(opaque_quad(quad, graph) for quad in quads)
            self._store.add(_meta(graph, NAME, opaque(name)))
        if self._merges_bags:
            self._store.add(_meta(STATIC, IN, ox.NamedNode(MERGED)))
        self._held: set[ox.Quad] = set()
        self._numbers: dict[tuple[int, int], int] = {}
        # What an element becomes never changes; making it again at every report takes most time.
        self._quads: dict[tuple[int, int], tuple[ox.Quad, ...]] = {}
        self._called = {
            ox.NamedNode(name.value): by_iri(name)
            for name in called_by_iri(query)
            if is_by_iri(name)
        }
        # The names of graphs in elements, by number.
        self._graph_numbers: dict[Resource, int] = {}
        self._translations: dict[frozenset[tuple[int, Resource]], Translation] = {}

    def rows(self, t: int) -> list[OracleRow]:
        """Evaluate at t."""
        wanted = set(self._contents(t))
        for quad in self._held - wanted:
            self._store.remove(quad)
        self._store.extend(wanted - self._held)
        self._held = wanted
        translation = self._translated(t)
        functions: dict[ox.NamedNode, Callable[..., Any]] = {
            **FUNCTIONS,
            ox.NamedNode(LATEST): _latest,
            ox.NamedNode(TRIPLE_TIME): self._triple_time,
            ox.NamedNode(NOW): lambda: moment_literal(t),
            **self._called,
        }
        solutions = self._store.query(
            translation.text,
            custom_functions=functions,
            custom_aggregate_functions={
                ox.NamedNode(name): accumulator(call)
                for name, call in translation.aggregates.items()
            },
        )
        assert isinstance(solutions, ox.QuerySolutions)
        rows = [_row(solution, translation) for solution in solutions]
        if isinstance(self._query.form, AskForm):
            answer = Literal("true" if rows else "false", datatype=IRI(XSD.boolean))
            return [(((_BOOLEAN.name, answer),), ())]
        # Where the query gives no order, the same answers still come in the same order.
        rows = rows if self._is_ordered else sorted(rows, key=str)
        if isinstance(self._query.form, DescribeForm):
            return list(self._described(self._query.form, rows))
        return rows

    def _translated(self, t: int) -> Translation:
        """Write the query as SPARQL over the named graphs that windows have at t (W11)."""
        names = frozenset(
            (index, quad.graph)
            for index, opened in enumerate(self._windows)
            if opened.has_graphs
            for element in opened.content(t)
            for quad in (of_stream(each, opened.stream) for each in element.quads)
            if quad.graph is not None
        )
        if names not in self._translations:
            graphs: dict[int | None, dict[Resource, str]] = {None: self._named}
            for index, name in sorted(names, key=str):
                number = self._graph_numbers[name]
                graphs.setdefault(index, {})[name] = window_graph(index, number)
            self._translations[names] = translate(
                self._query,
                self._windows,
                columns=_columns(self._query),
                graphs=graphs,
                derivations=self._derivations,
            )
        return self._translations[names]

    def _described(self, form: DescribeForm, rows: list[OracleRow]) -> Iterator[OracleRow]:
        """Describe every resource that was asked for, each once (A5)."""
        wanted: dict[Term, None] = {}
        for target in form.targets:
            if isinstance(target, IRI):
                wanted[target] = None
            else:
                for solution, _ in rows:
                    wanted.update((term, None) for name, term in solution if name == target.name)
        for resource in wanted:
            if isinstance(resource, Literal):
                continue
            triples = self._about(opaque(resource), set())
            if triples:
                yield (("resource", resource),), tuple(sorted(triples, key=str))

    def _about(self, node: Any, seen: set[Any]) -> set[Quad]:
        """Gather the triples about a node, and about the blank nodes that these lead to."""
        seen.add(node)
        held = (ox.NamedNode(window_graph(index)) for index in range(len(self._windows)))
        graphs: list[ox.NamedNode | ox.DefaultGraph] = [ox.DefaultGraph(), *held]
        found: set[Quad] = set()
        for graph in graphs:
            for quad in self._store.quads_for_pattern(node, None, None, graph):
                found.add(_triple(quad))
                if isinstance(quad.object, ox.BlankNode) and quad.object not in seen:
                    found |= self._about(quad.object, seen)
        return found

    def _triple_time(self, subject: Any, predicate: Any, end: Any) -> ox.Literal | None:
        """The latest time of the elements in all windows that carry a triple (A1)."""
        if isinstance(subject, ox.Literal) or not isinstance(predicate, ox.NamedNode):
            return None
        times = [
            milliseconds(time.object)
            for quad in self._store.quads_for_pattern(subject, predicate, end, None)
            if isinstance(quad.graph_name, ox.NamedNode)
            for time in self._store.quads_for_pattern(
                quad.graph_name, ox.NamedNode(TIME), None, ox.NamedNode(META)
            )
        ]
        return integer_literal(max(times)) if times else None

    def _contents(self, t: int) -> Iterator[ox.Quad]:
        for index, opened in enumerate(self._windows):
            is_graph = opened.window.content is Content.GRAPH
            if is_graph and self._merges_bags and opened.window.name in self._merged:
                yield _meta(window_graph(index), IN, ox.NamedNode(MERGED))
            for element in opened.content(t):
                key = (index, element.position)
                if key not in self._quads:
                    self._quads[key] = tuple(self._element(index, element))
                yield from self._quads[key]

    def _element(self, index: int, element: Element) -> Iterator[ox.Quad]:
        """The quads that put an element into a window."""
        opened = self._windows[index]
        graph = window_graph(index)
        name = element_graph(self._number(index, element))
        in_default = opened.window.name in self._merged
        is_bag = opened.window.content is Content.BAG
        yield _meta(name, IN, ox.NamedNode(graph))
        yield _meta(name, TIME, integer_literal(element.event_time))
        # A graph window's elements are only looked at for their times.
        if in_default and (is_bag or not self._merges_bags):
            yield _meta(name, IN, ox.NamedNode(MERGED))
        # Windows and their changes go by what elements carry; only matching sees more (N1).
        triples = [of_stream(triple, opened.stream) for triple in distinct_triples(element)]
        if self._entail is not None:
            triples = sorted(self._entail(triples, False), key=str)
        for triple in triples:
            yield opaque_quad(triple, graph)
            yield opaque_quad(triple, name)
            # What static data has too stays when the element goes.
            if in_default and triple not in self._static_default:
                yield opaque_quad(triple, MERGED if self._merges_bags else None)
        if opened.has_graphs:
            yield from self._named_graphs(index, element)

    def _named_graphs(self, index: int, element: Element) -> Iterator[ox.Quad]:
        """The quads of an element's named graphs (W11)."""
        opened = self._windows[index]
        graphs: dict[Resource, dict[Quad, None]] = {}
        for quad in (of_stream(each, opened.stream) for each in element.quads):
            if quad.graph is not None:
                graphs.setdefault(quad.graph, {})[_without_graph(quad)] = None
        for called, own in graphs.items():
            number = self._graph_numbers.setdefault(called, len(self._graph_numbers))
            graph = window_graph(index, number)
            name = element_graph(self._number(index, element), number)
            yield _meta(graph, NAME, opaque(called))
            yield _meta(name, IN, ox.NamedNode(graph))
            yield _meta(name, TIME, integer_literal(element.event_time))
            triples = list(own)
            if self._entail is not None:
                # What follows from a triple is in its graph (N1).
                triples = sorted(self._entail(triples, False), key=str)
            for triple in triples:
                yield opaque_quad(triple, graph)
                yield opaque_quad(triple, name)

    def _number(self, index: int, element: Element) -> int:
        # An element counts once for each window that it is in, also where windows are merged (W8).
        return self._numbers.setdefault((index, element.position), len(self._numbers))


def _entailed(static: Sequence[Quad], entail: Entail) -> list[Quad]:
    """Add to static data what follows from it, graph by graph."""
    graphs: dict[Resource | None, list[Quad]] = {}
    for quad in static:
        graphs.setdefault(quad.graph, []).append(_without_graph(quad))
    return [
        replace(quad, graph=graph)
        for graph, quads in graphs.items()
        for quad in sorted(entail(quads, True), key=str)
    ]


def _is_ordered(pattern: Pattern) -> bool:
    while isinstance(pattern, Slice | Distinct | Reduced | Project):
        pattern = pattern.input
    return isinstance(pattern, OrderBy)


def _columns(query: ContinuousQuery) -> tuple[Variable, ...]:
    match query.form:
        case SelectForm():
            return query.form.variables
        case ConstructForm():
            return query.form.variables
        case DescribeForm():
            return tuple(each for each in query.form.targets if isinstance(each, Variable))
        case _:
            return ()


def _dataset(
    query: ContinuousQuery, static: Sequence[Quad], entail: Entail | None
) -> tuple[list[Quad], dict[Resource, list[Quad]]]:
    """The static dataset (A1).

    It is what FROM and FROM NAMED say. Without them it is all there is, unless windows make up the
    default graph: then there is nothing but those.
    """
    static = [quad.relabelled(static_label) for quad in static]
    if entail is not None:
        static = _entailed(static, entail)
    by_graph: dict[Resource | None, list[Quad]] = {}
    for quad in static:
        by_graph.setdefault(quad.graph, []).append(quad)
    if not (query.default_graphs or query.named_graphs or query.default_graph_windows):
        named = {name: quads for name, quads in by_graph.items() if name is not None}
        return by_graph.get(None, []), named
    for wanted in (*query.default_graphs, *query.named_graphs):
        if wanted not in by_graph:
            raise PlanError(
                f"there is no graph {wanted} in the static data",
                hint="Load the static data under this name.",
                span=query.span,
            )
    default = [quad for name in query.default_graphs for quad in by_graph[name]]
    return default, {name: by_graph[name] for name in query.named_graphs}


def _without_graph(quad: Quad) -> Quad:
    return replace(quad, graph=None)


def _meta(subject: str, predicate: str, value: Any) -> ox.Quad:
    return ox.Quad(ox.NamedNode(subject), ox.NamedNode(predicate), value, ox.NamedNode(META))


def _row(solution: ox.QuerySolution, translation: Translation) -> OracleRow:
    bound = []
    for variable, name in translation.columns:
        term = solution[name]
        if term is not None:
            bound.append((variable.name, from_store(term)))
    return tuple(sorted(bound, key=lambda pair: pair[0])), tuple(
        str(solution[name]) for name in translation.derivation
    )


def _triple(quad: ox.Quad) -> Quad:
    subject, predicate = from_store(quad.subject), from_store(quad.predicate)
    assert isinstance(subject, IRI | BlankNode)
    assert isinstance(predicate, IRI)
    return Quad(subject, predicate, from_store(quad.object))


def _latest(*times: Any) -> ox.Literal | None:
    """The latest of some times; what is not known is false."""
    known = [int(time.value) for time in times if time.datatype.value != XSD.boolean]
    return integer_literal(max(known)) if known else None
