"""The recompute-everything oracle: what the right answers are.

At every report instant each window is materialised from the whole stream and the query evaluated
from scratch by pyoxigraph. No evaluation code is shared with the engine: where both agree, it is
not because both are wrong in the same way. The rules are those of `docs/semantics.md`, by number.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, final

import pyoxigraph as ox

from quadweir.algebra.analyze import check_windows, compares_derivations
from quadweir.algebra.expressions import AggregateCall
from quadweir.algebra.patterns import Distinct, OrderBy, Pattern, Project, Reduced, Slice
from quadweir.algebra.query import (
    AskForm,
    ConstructForm,
    ContinuousQuery,
    DescribeForm,
    SelectForm,
)
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.windows import Content
from quadweir.errors import DataError, PlanError
from quadweir.sources.streamfiles import Element
from quadweir.syntax.read import parse
from quadweir.terms import IRI, BlankNode, Literal, Quad, Resource, Term, Variable
from quadweir.testing.answers import Answer
from quadweir.testing.contents import OpenWindow, report_instants
from quadweir.testing.elements import (
    distinct_triples,
    event_time,
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
from quadweir.testing.watermark import Arrival, Watermark
from quadweir.vocab import XSD

_BOOLEAN: Final = Variable("boolean")

Solution: TypeAlias = tuple[tuple[str, Term], ...]
# What ISTREAM and DSTREAM compare: a solution and, where derivations are compared, its elements; or
# a resource and the triples that describe it.
Row: TypeAlias = tuple[Solution, tuple[str | Quad, ...]]
# A stream and the predicate that its event times are read from; None is the envelope's (S2).
_Source: TypeAlias = tuple[str, IRI | None]


@final
@dataclass(slots=True)
class Run:
    """What a bounded replay gave.

    Attributes:
        answers: in the order of their report instants and, within one, of ORDER BY.
        reports: every report instant, those without answers too.
        late: elements that came after the watermark had passed them (S4).
        dead: elements whose event time could not be read (S2, P5), and why.
    """

    answers: list[Answer] = field(default_factory=list)
    reports: list[int] = field(default_factory=list)
    late: list[Element] = field(default_factory=list)
    dead: list[tuple[Element, str]] = field(default_factory=list)


class Oracle:
    """Answers a continuous query over recorded streams, slowly and obviously.

    >>> from quadweir.testing import MemoryStream
    >>> text = "SELECT ?x { STREAM <urn:s> [RANGE 10ms TUMBLING] { ?x <urn:p> ?y } }"
    >>> stream = MemoryStream("urn:s")
    >>> stream.add(5, "<urn:a> <urn:p> 1 .")
    >>> for answer in Oracle(text).answers(stream):
    ...     print(answer)
    10 + ?x = <urn:a>

    Args:
        query: The query, as it was parsed, or its text.
        static: Static data; quads without a graph are its default graph.
        delay_ms: The allowed delay (S4). None means that no element is late, whatever the order.
        idle_ms: After which time without an arrival a stream no longer holds the watermark back
            (S4), for all streams or for each by its IRI; one that has none never falls idle. The
            feed then says when its elements arrive.
        max_reports: How many report instants there may be before the oracle gives up.
        entail: What gives the triples that follow from those of an element, or of a static graph,
            and these (N1); `Reasoner` for a schema.
    """

    def __init__(
        self,
        query: ContinuousQuery | str,
        *,
        static: Iterable[Quad] = (),
        delay_ms: int | None = None,
        idle_ms: int | Mapping[str, int] | None = None,
        max_reports: int = 100_000,
        entail: Entail | None = None,
    ) -> None:
        if isinstance(query, str):
            query = parse(query, allow=("FROM",))
        check_windows(query)
        self.query = query
        self.static = tuple(static)
        self.delay_ms = delay_ms
        self.idle_ms = idle_ms
        self.max_reports = max_reports
        self.entail = entail

    def answers(self, feed: Iterable[Element | Arrival]) -> list[Answer]:
        """Give the answers over a bounded feed; see `run`."""
        return self.run(feed).answers

    def run(self, feed: Iterable[Element | Arrival]) -> Run:
        """Replay a bounded feed and drain it (E3).

        Args:
            feed: The elements of all streams in the order in which they arrive, as an `Arrival`
                each if streams can fall idle. The order and the times of arrival matter only if
                there is an allowed delay, and then only for which elements are late.

        Raises:
            LimitError: if the query reports more than `max_reports` times.
            ValueError: streams can fall idle, and an element has no time of arrival, or one
                before that of the element before it.
        """
        run = Run()
        windows = self._open(tuple(feed), run)
        evaluation = _Evaluation(self.query, windows, self.static, self.entail)
        if not self.query.windows:
            # A plain SPARQL query: one report.
            run.reports = [0]
            run.answers = list(self._out(0, evaluation.rows(0), []))
            return run
        before: list[Row] = []
        for t in report_instants(self.query, windows, limit=self.max_reports):
            run.reports.append(t)
            now = evaluation.rows(t)
            run.answers += self._out(t, now, before)
            before = now
        return run

    def sample(
        self,
        feed: Iterable[Element],
        begin: int,
        end: int,
        *,
        most: int,
        dice: random.Random,
    ) -> dict[int, list[Answer]]:
        """Give the answers of some of the reports between two instants, both included.

        Args:
            feed: The elements that these reports, and those before them, can see.
            begin: The first instant.
            end: The last instant.
            most: How many reports to compute at most.
            dice: Chooses them.
        """
        windows = self._open(tuple(feed), Run())
        evaluation = _Evaluation(self.query, windows, self.static, self.entail)
        before: dict[int, int | None] = {}
        last = None
        for t in report_instants(self.query, windows, limit=self.max_reports):
            if begin <= t <= end:
                before[t] = last
            last = t
        chosen = sorted(dice.sample(sorted(before), min(most, len(before))))
        return {
            t: list(self._out(t, evaluation.rows(t), self._rows_before(evaluation, before[t])))
            for t in chosen
        }

    def _rows_before(self, evaluation: _Evaluation, t: int | None) -> list[Row]:
        is_compared = self.query.output is not OutputOperator.RSTREAM
        return evaluation.rows(t) if t is not None and is_compared else []

    def windows(self, feed: Iterable[Element]) -> list[OpenWindow]:
        """Give the windows of the query with their elements, without those that are late."""
        return self._open(tuple(feed), Run())

    # --- streams to windows -----------------------------------------------------------------------

    def _open(self, feed: Sequence[Element | Arrival], run: Run) -> list[OpenWindow]:
        """Give every window its elements, timed as it wants them (S2), without the late ones (S4)."""
        streams = sorted({element.stream for element, _ in map(_parts, feed)})
        wanted: list[_Source] = []
        for window in self.query.windows:
            over = streams if isinstance(window.stream, Variable) else [window.stream.value]
            wanted += [(stream, window.event_time) for stream in over]
        accepted = self._accept(feed, dict.fromkeys(wanted), run)
        opened = []
        for window in self.query.windows:
            over = streams if isinstance(window.stream, Variable) else [window.stream.value]
            for stream in over:
                elements = accepted[(stream, window.event_time)]
                ordered = sorted(elements, key=lambda each: (each.event_time, each.position))
                opened.append(OpenWindow(window, IRI(stream), tuple(ordered)))
        return opened

    def _accept(
        self, feed: Sequence[Element | Arrival], sources: Iterable[_Source], run: Run
    ) -> dict[_Source, list[Element]]:
        """Walk the feed as it arrives; a stream read with two event times counts as two (S4)."""
        accepted: dict[_Source, list[Element]] = {each: [] for each in sources}
        watermark: Watermark[_Source] | None = None
        if self.delay_ms is not None:
            watermark = Watermark(
                accepted, delay_ms=self.delay_ms, idle_ms=self._idle_times(accepted)
            )
        for each in feed:
            element, arrived = _parts(each)
            if self.idle_ms is None:
                arrived = None
            elif arrived is None:
                raise ValueError("streams fall idle by times of arrival, and an element has none")
            for source in accepted:
                if source[0] != element.stream:
                    continue
                try:
                    time = event_time(element, source[1])
                except DataError as error:
                    run.dead.append((element, error.message))
                    continue
                if watermark is not None and watermark.is_late(source, time, arrived):
                    run.late.append(element)
                    continue
                accepted[source].append(replace(element, event_time=time))
        return accepted

    def _idle_times(self, sources: Iterable[_Source]) -> dict[_Source, int]:
        match self.idle_ms:
            case None:
                return {}
            case int(same):
                return dict.fromkeys(sources, same)
            case times:
                return {source: times[source[0]] for source in sources if source[0] in times}

    # --- relations to streams ---------------------------------------------------------------------

    def _out(self, t: int, now: list[Row], before: list[Row]) -> Iterator[Answer]:
        """Apply the output operator (A2): multiset differences, in the order of the solutions."""
        match self.query.output:
            case OutputOperator.RSTREAM:
                sign, rows = "+", now
            case OutputOperator.ISTREAM:
                sign, rows = "+", _minus(now, before)
            case OutputOperator.DSTREAM:
                sign, rows = "-", _minus(before, now)
        for number, (solution, more) in enumerate(rows):
            match self.query.form:
                case ConstructForm() as form:
                    graph = _fill(form, dict(solution), f"{t}-{number}")
                    if graph:
                        yield Answer(t, sign, graph=graph)
                case DescribeForm():
                    triples = frozenset(each for each in more if isinstance(each, Quad))
                    yield Answer(t, sign, graph=triples)
                case _:
                    yield Answer(t, sign, solution)


def _parts(fed: Element | Arrival) -> tuple[Element, int | None]:
    return (fed.element, fed.at_ms) if isinstance(fed, Arrival) else (fed, None)


def _minus(rows: list[Row], others: list[Row]) -> list[Row]:
    left = Counter(rows) - Counter(others)
    kept = []
    for row in rows:
        if left[row] > 0:
            left[row] -= 1
            kept.append(row)
    return kept


def _fill(form: ConstructForm, solution: Mapping[str, Term], number: str) -> frozenset[Quad]:
    """Fill in a template; blank nodes are new for each solution (S3), bad triples are left out."""

    def value(term: IRI | Literal | BlankNode | Variable) -> Term | None:
        match term:
            case Variable():
                return solution.get(term.name)
            case BlankNode():
                return BlankNode(f"c{number}-{term.label}")
            case _:
                return term

    found = set()
    for triple in form.template:
        subject, predicate = value(triple.subject), value(triple.predicate)
        end = value(triple.object)
        if isinstance(subject, IRI | BlankNode) and isinstance(predicate, IRI) and end is not None:
            found.add(Quad(subject, predicate, end))
    return frozenset(found)


# --- relations ------------------------------------------------------------------------------------


class _Evaluation:
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
        for scoped in triples:
            yield to_oxigraph_quad(scoped, graph)
            yield to_oxigraph_quad(scoped, name)
            if in_default and self._merges_bags:
                yield to_oxigraph_quad(scoped, MERGED)
            elif in_default and scoped not in self._static_default:
                yield to_oxigraph_quad(scoped, None)

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
    static = [_scoped(quad, _static_label) for quad in static]
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


# --- terms ----------------------------------------------------------------------------------------


def blank_label(stream: str, label: str) -> str:
    """Name a blank node by its stream and its label there (S3).

    >>> blank_label("urn:s", "b0")
    'se2219d44-b0'
    """
    return f"s{hashlib.sha256(stream.encode()).hexdigest()[:8]}-{label}"


def _static_label(label: str) -> str:
    return f"g-{label}"


def of_stream(quad: Quad, stream: IRI) -> Quad:
    """Name the blank nodes of a triple by its stream (S3)."""
    return _scoped(quad, lambda label: blank_label(stream.value, label))


def _scoped(quad: Quad, rename: Callable[[str], str]) -> Quad:
    subject, end = quad.subject, quad.object
    if isinstance(subject, BlankNode):
        subject = BlankNode(rename(subject.label))
    if isinstance(end, BlankNode):
        end = BlankNode(rename(end.label))
    return Quad(subject, quad.predicate, end, quad.graph)


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
