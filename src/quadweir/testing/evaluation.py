"""One report of the oracle: a store with the content of all windows at t, and the query over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pyoxigraph as ox

from quadweir.algebra.analyze import compares_derivations
from quadweir.algebra.expressions import AggregateCall
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
from quadweir.terms import IRI, Literal, Quad, Resource, Term, Variable
from quadweir.testing.contents import OpenWindow
from quadweir.testing.elements import (
    distinct_triples,
    from_oxigraph,
    from_oxigraph_quad,
)
from quadweir.testing.oxigraph_terms import (
    integer_literal,
    milliseconds,
    moment_literal,
    to_oxigraph,
    to_oxigraph_quad,
)
from quadweir.testing.reasoner import Entail
from quadweir.testing.scoping import of_stream, scoped, static_label
from quadweir.testing.sparql import (
    ERROR,
    IN,
    LATEST,
    MERGED,
    META,
    NOW,
    SPELLING,
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

Solution: TypeAlias = tuple[tuple[str, Term], ...]
# What ISTREAM and DSTREAM compare: a solution and, where derivations are compared, its elements; or
# a resource and the triples that describe it.
Row: TypeAlias = tuple[Solution, tuple[str | Quad, ...]]


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
            self._store.add(to_oxigraph_quad(quad, None))
            if self._merges_bags:
                self._store.add(to_oxigraph_quad(quad, STATIC))
                self._store.add(to_oxigraph_quad(quad, MERGED))
        for graph, quads in named.items():
            self._store.extend(to_oxigraph_quad(quad, graph.value) for quad in quads)
        if self._merges_bags:
            self._store.add(_meta(STATIC, IN, ox.NamedNode(MERGED)))
        self._held: set[ox.Quad] = set()
        self._numbers: dict[tuple[str, IRI | None, int], int] = {}
        # What an element becomes never changes; making it again at every report takes most time.
        self._quads: dict[tuple[int, int], tuple[ox.Quad, ...]] = {}
        self._translation = translate(
            query,
            windows,
            columns=_columns(query),
            named_graphs=tuple(named),
            derivations=self._derivations,
        )

    def rows(self, t: int) -> list[Row]:
        """Evaluate at t."""
        wanted = set(self._contents(t))
        for quad in self._held - wanted:
            self._store.remove(quad)
        self._store.extend(wanted - self._held)
        self._held = wanted
        translation = self._translation
        functions: dict[ox.NamedNode, Callable[..., Any]] = {
            ox.NamedNode(SPELLING): _spelling,
            ox.NamedNode(LATEST): _latest,
            ox.NamedNode(TRIPLE_TIME): self._triple_time,
            ox.NamedNode(NOW): lambda: moment_literal(t),
        }
        solutions = self._store.query(
            translation.text,
            custom_functions=functions,
            custom_aggregate_functions={
                ox.NamedNode(name): _aggregate(call)
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

    def _described(self, form: DescribeForm, rows: list[Row]) -> Iterator[Row]:
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
            triples = self._about(to_oxigraph(resource), set())
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
                found.add(replace(from_oxigraph_quad(quad), graph=None))
                if isinstance(quad.object, ox.BlankNode) and quad.object not in seen:
                    found |= self._about(quad.object, seen)
        return found

    def _triple_time(self, subject: Any, predicate: Any, end: Any) -> ox.Literal | None:
        """Give the latest time of the elements in all windows that carry a triple (A1)."""
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
        """Say in quads that an element is in a window."""
        opened = self._windows[index]
        graph = window_graph(index)
        name = element_graph(self._number(opened, element))
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
            yield to_oxigraph_quad(triple, graph)
            yield to_oxigraph_quad(triple, name)
            if in_default and self._merges_bags:
                yield to_oxigraph_quad(triple, MERGED)
            elif in_default and triple not in self._static_default:
                yield to_oxigraph_quad(triple, None)

    def _number(self, opened: OpenWindow, element: Element) -> int:
        # The same element has one number in all windows that time it the same way.
        key = (element.stream, opened.window.event_time, element.position)
        return self._numbers.setdefault(key, len(self._numbers))


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
            found = {
                term
                for triple in query.form.template
                for term in (triple.subject, triple.predicate, triple.object)
                if isinstance(term, Variable)
            }
            return tuple(sorted(found))
        case DescribeForm():
            return tuple(each for each in query.form.targets if isinstance(each, Variable))
        case _:
            return ()


def _dataset(
    query: ContinuousQuery, static: Sequence[Quad], entail: Entail | None
) -> tuple[list[Quad], dict[IRI, list[Quad]]]:
    """Give the static dataset (A1).

    It is what FROM and FROM NAMED say. Without them it is all there is, unless windows make up the
    default graph: then there is nothing but those.
    """
    static = [scoped(quad, static_label) for quad in static]
    if entail is not None:
        static = _entailed(static, entail)
    by_graph: dict[Resource | None, list[Quad]] = {}
    for quad in static:
        by_graph.setdefault(quad.graph, []).append(quad)
    if not (query.default_graphs or query.named_graphs or query.default_graph_windows):
        named = {name: quads for name, quads in by_graph.items() if isinstance(name, IRI)}
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


def _meta(subject: str, predicate: str, value: ox.NamedNode | ox.Literal) -> ox.Quad:
    return ox.Quad(ox.NamedNode(subject), ox.NamedNode(predicate), value, ox.NamedNode(META))


def _row(solution: ox.QuerySolution, translation: Translation) -> Row:
    bound = []
    for variable, name in translation.columns:
        term = solution[name]
        if term is not None:
            bound.append((variable.name, from_oxigraph(term)))
    return tuple(sorted(bound, key=lambda pair: pair[0])), tuple(
        str(solution[name]) for name in translation.derivation
    )


# --- functions that SPARQL leaves open ------------------------------------------------------------


def _spelling(term: Any) -> ox.Literal:
    return ox.Literal(str(from_oxigraph(term)))


def _latest(*times: Any) -> ox.Literal | None:
    """Give the latest of some times; what is not known is false."""
    known = [int(time.value) for time in times if time.datatype.value != XSD.boolean]
    return integer_literal(max(known)) if known else None


def _aggregate(call: AggregateCall) -> Callable[[], Any]:
    """Make an accumulator for SAMPLE (the least spelling) or GROUP_CONCAT (in order of spelling)."""

    class Accumulator:
        def __init__(self) -> None:
            self.terms: list[Any] = []

        def accumulate(self, term: Any) -> None:
            self.terms.append(term)

        def finish(self) -> Any:
            spelt = [(str(from_oxigraph(term)), term) for term in self.terms]
            if call.distinct:
                spelt = list(dict(spelt).items())
            ordered = [term for _, term in sorted(spelt, key=lambda pair: pair[0])]
            if call.function == "SAMPLE":
                return ordered[0] if ordered else None
            # A value that is an error or has no text leaves the whole without a value.
            if any(isinstance(term, ox.BlankNode) or term.value == ERROR for term in ordered):
                return None
            return ox.Literal((call.separator or "").join(term.value for term in ordered))

    return Accumulator
