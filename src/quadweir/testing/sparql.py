"""A query's pattern as SPARQL text over a store that holds the windows' contents as named graphs.

The store (`oracle.py` fills it) has, in addition to the static data:

- for each open window k a graph `W:k`, the merge of its elements;
- for each element i that is in some window a graph `E:i`;
- a graph `meta` that says which elements are in which windows and when they happened.

Where a query looks into the named graphs of a window (W11), each of these is like a window of its own:
`W:k:n` has the quads of W:k with the n-th name, and `E:i:n` those of the element.

A pattern over graph content is matched in `W:k`. Over bag content every triple pattern is matched
in `GRAPH ?e { }` with a variable of its own that ranges over the window's elements: two elements
that carry the same triple give two solutions, and the values of those variables are the derivation
(W8, A2).

Property paths: sequences, inverses, alternatives and negated sets are unfolded into triple
patterns, so over bags they count elements like any other pattern. Where a path repeats or skips
steps (`*`, `+`, `?`), SPARQL counts each pair of ends once; such a part is matched in the merge
`W:k`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never, final

from quadweir.algebra.expressions import (
    AggregateCall,
    Exists,
    FunctionCall,
    VariableExpression,
)
from quadweir.algebra.patterns import (
    Alternative,
    BasicPattern,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Inverse,
    Join,
    LeftJoin,
    Link,
    Minus,
    NegatedSet,
    OneOrMore,
    OrderBy,
    OrderKey,
    Path,
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
    ZeroOrMore,
    ZeroOrOne,
    is_hidden,
    is_nullable,
)
from quadweir.algebra.patterns import (
    Sequence as PathSequence,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.scopes import in_scope, windows_of
from quadweir.algebra.traverse import walk
from quadweir.algebra.windows import Content
from quadweir.errors import UnsupportedError
from quadweir.terms import IRI, Literal, Resource, Variable
from quadweir.testing.contents import OpenWindow
from quadweir.testing.expressions import OpaqueExpressions
from quadweir.testing.functions import BASE, ERROR, ORDER, SAME_TERM, SPELLING, TERM

META: Final = f"{BASE}meta"
IN: Final = f"{BASE}in"
TIME: Final = f"{BASE}time"
# The pseudo-window of a default graph that is merged from bags, and static data as its element.
MERGED: Final = f"{BASE}merged"
STATIC: Final = f"{BASE}static"
LATEST: Final = f"{BASE}latest"
TRIPLE_TIME: Final = f"{BASE}triple-time"
NOW: Final = f"{BASE}now"
# Says in `meta` what a graph of the store is called in the query.
NAME: Final = f"{BASE}name"
NO_GRAPH: Final = f"{BASE}no-graph"


def window_graph(index: int, number: int | None = None) -> str:
    """Name the graph that holds the merged content of the open window with this index.

    With a number, only what it has in the named graph of this number.
    """
    return f"{BASE}window:{index}" + ("" if number is None else f":{number}")


def element_graph(index: int, number: int | None = None) -> str:
    """Name the graph that holds the element with this index, or a named graph of it."""
    return f"{BASE}element:{index}" + ("" if number is None else f":{number}")


Graphs: TypeAlias = Mapping[Resource, str]
"""Named graphs, and what they are called in the store."""


@final
@dataclass(frozen=True, slots=True)
class Active:
    """The data of plain patterns: the graph around them, or the elements of a bag.

    `times` names the window in which TIMESTAMP looks for elements, None outside of windows; so
    does `window`, the place of the open window whose named graphs GRAPH looks into.
    """

    bag: str | None = None
    times: str | None = None
    window: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Translation:
    """SPARQL text and how to read its results.

    `columns` pairs the query's variables with those in the text; `derivation` names the variables
    whose values say which elements made a solution. `aggregates` are those that the text calls by
    an IRI.
    """

    text: str
    columns: tuple[tuple[Variable, str], ...]
    derivation: tuple[str, ...]
    aggregates: dict[str, AggregateCall]


def translate(
    query: ContinuousQuery,
    windows: Sequence[OpenWindow],
    *,
    columns: Sequence[Variable],
    graphs: Mapping[int | None, Graphs],
    derivations: bool,
) -> Translation:
    """Write the pattern of a query as a SELECT of these columns, and of derivations if wanted.

    `graphs` are the named graphs of each open window, by its place, and of static data.
    """
    writer = _Writer(query, windows, graphs, derivations=derivations)
    return writer.top(columns)


class _Writer(OpaqueExpressions):
    def __init__(
        self,
        query: ContinuousQuery,
        windows: Sequence[OpenWindow],
        graphs: Mapping[int | None, Graphs],
        *,
        derivations: bool,
    ) -> None:
        super().__init__()
        self._query = query
        self._windows = windows
        self._graphs = graphs
        self._derivations = derivations
        self._hidden: dict[Variable, str] = {}
        self._fresh = 0
        self._in_exists = False
        self._elements: list[str] = []
        self._aggregates: dict[str, AggregateCall] = {}
        self._timed: dict[Variable, list[str]] = {}
        for node in walk(query.pattern):
            if isinstance(node, FunctionCall) and node.function == "TIMESTAMP":
                match node.arguments:
                    case (VariableExpression(variable=variable),):
                        self._timed.setdefault(variable, [])
        self._active = self._outermost()

    def top(self, columns: Sequence[Variable]) -> Translation:
        text = self._select(self._query.pattern, tuple(columns))
        return Translation(
            text=text,
            columns=tuple((column, self.variable(column)[1:]) for column in columns),
            derivation=tuple(name[1:] for name in self._elements) if self._derivations else (),
            aggregates=self._aggregates,
        )

    def _outermost(self) -> Active:
        merged = [self._query.window(name) for name in self._query.default_graph_windows]
        if any(window.content is Content.BAG for window in merged):
            return Active(bag=MERGED, times=MERGED)
        return Active(times=MERGED if merged else None)

    # --- names and terms ------------------------------------------------------------------------

    def variable(self, variable: Variable) -> str:
        # Prefixes keep the query's names, hidden names and ours apart.
        if is_hidden(variable):
            return self._hidden.setdefault(variable, f"?h_{len(self._hidden)}")
        return f"?v_{variable.name}"

    def _new(self, kind: str) -> str:
        self._fresh += 1
        return f"?{kind}_{self._fresh}"

    # --- expressions ----------------------------------------------------------------------------

    def exists(self, exists: Exists) -> str:
        # An EXISTS says whether, not how: its elements are no part of a derivation.
        before, outside = len(self._elements), self._in_exists
        self._in_exists = True
        text = self._group(exists.pattern)
        self._in_exists = outside
        del self._elements[before:]
        return f"{'NOT ' if exists.negated else ''}EXISTS {text}"

    def call(self, call: FunctionCall) -> str:
        if call.function == "NOW":
            return f"<{NOW}>()"
        if call.function == "TIMESTAMP" and len(call.arguments) == 3:
            return self._on_terms(TRIPLE_TIME, call.arguments)
        if call.function == "TIMESTAMP":
            (argument,) = call.arguments
            # HAVING may ask for the time of a computed value, which no element ever bound.
            times = []
            if isinstance(argument, VariableExpression):
                times = self._timed[argument.variable]
            return f"<{LATEST}>({', '.join(f'COALESCE({time}, false)' for time in times)})"
        return super().call(call)

    def aggregate(self, call: AggregateCall) -> str:
        """Write an aggregate; all but the number of solutions are computed by `functions.py`."""
        if call.argument is None:
            return f"<{TERM}>({super().aggregate(call)})"
        name = f"{BASE}aggregate:{len(self._aggregates)}"
        self._aggregates[name] = call
        return f"<{name}>(COALESCE({self.as_term(call.argument)}, <{ERROR}>))"

    # --- patterns -------------------------------------------------------------------------------

    def _group(self, pattern: Pattern) -> str:
        """Write a pattern as a group of its own, braces included."""
        match pattern:
            case BasicPattern():
                return self._basic(pattern)
            case Values():
                return "{ " + self._values(pattern) + " }"
            case Join():
                return "{ " + " ".join(self._group(each) for each in pattern.inputs) + " }"
            case Union():
                return "{ " + " UNION ".join(self._group(each) for each in pattern.inputs) + " }"
            case LeftJoin():
                left, right = self._group(pattern.left), self._group(pattern.right)
                condition = ""
                if pattern.condition is not None:
                    condition = f" FILTER({self.as_condition(pattern.condition)})"
                return f"{{ {left} OPTIONAL {{ {right}{condition} }} }}"
            case Minus():
                return f"{{ {self._group(pattern.left)} MINUS {self._group(pattern.right)} }}"
            case Filter():
                inner = self._group(pattern.input)
                return f"{{ {inner} FILTER({self.as_condition(pattern.condition)}) }}"
            case Extend():
                inner = self._group(pattern.input)
                name = self.variable(pattern.variable)
                value = self.as_term(pattern.expression)
                if self._in_exists:
                    # Oxigraph's BIND would put another value in place of one from outside.
                    own = self._new("own")
                    same = f"COALESCE(<{SAME_TERM}>({name}, {own}), true)"
                    inner, value = f"{{ {inner} BIND({value} AS {own}) FILTER({same}) }}", own
                return f"{{ {inner} BIND({value} AS {name}) }}"
            case Graph():
                return self._graph(pattern)
            case WindowPattern():
                return self._window(pattern)
            case Service():
                raise UnsupportedError("the oracle asks no other endpoint", span=pattern.span)
            case Group():
                return f"{{ {self._grouped(pattern)} }}"
            case Project() | Distinct() | Reduced() | OrderBy() | Slice():
                return f"{{ {self._select(pattern)} }}"
            case _:
                assert_never(pattern)

    def _inside(self, active: Active, pattern: Pattern) -> str:
        before, self._active = self._active, active
        try:
            return self._group(pattern)
        finally:
            self._active = before

    def _graph(self, pattern: Graph) -> str:
        # The store holds graphs of ours too, and pyoxigraph lets a subquery inside look at any of
        # them, and takes a graph that is not there for an empty one: so each is tried by name.
        window = self._active.window
        chosen = [
            graph
            for name, graph in self._graphs.get(window, {}).items()
            if isinstance(pattern.graph, Variable) or name == pattern.graph
        ]
        fresh, before = self._fresh, len(self._elements)
        branches = []
        for graph in chosen or [NO_GRAPH]:
            # Which graphs a window has changes from report to report. All are tried with the same
            # variables, so that a derivation is the same at every report.
            self._fresh = fresh
            del self._elements[before:]
            if self._active.bag is not None and window is not None:
                active = Active(bag=graph, times=graph, window=window)
                inner = self._inside(active, pattern.input)
            else:
                active = Active(times=None if window is None else graph, window=window)
                inner = f"GRAPH <{graph}> {self._inside(active, pattern.input)}"
            if isinstance(pattern.graph, Variable):
                # It may be a blank node, which VALUES cannot say.
                name = self.variable(pattern.graph)
                inner += f" GRAPH <{META}> {{ <{graph}> <{NAME}> {name} }}"
            branches.append(inner.join("{}"))
        return " UNION ".join(branches).join("{}") if chosen else "{ VALUES ?none { } }"

    def _window(self, pattern: WindowPattern) -> str:
        names = {window.name for window in windows_of(pattern.window, self._query)}
        branches = []
        for index, opened in enumerate(self._windows):
            if opened.window.name not in names:
                continue
            graph = window_graph(index)
            if opened.window.content is Content.BAG:
                active = Active(bag=graph, times=graph, window=index)
                inner = self._inside(active, pattern.input)
            else:
                inner = self._inside(Active(times=graph, window=index), pattern.input)
                inner = f"{{ GRAPH <{graph}> {inner} }}"
            bound = []
            if isinstance(pattern.window, Variable):
                bound.append((self.variable(pattern.window), opened.window.name))
            if isinstance(opened.window.stream, Variable):
                bound.append((self.variable(opened.window.stream), opened.stream))
            values = " ".join(f"VALUES {name} {{ {iri} }}" for name, iri in bound)
            branches.append(f"{{ {inner} {values} }}")
        # No stream, no window: a pattern over it has no solution.
        return " UNION ".join(branches).join("{}") if branches else "{ VALUES ?none { } }"

    def _values(self, pattern: Values) -> str:
        names = " ".join(map(self.variable, pattern.variables))
        rows = " ".join(
            "(" + " ".join("UNDEF" if term is None else self.term(term) for term in row) + ")"
            for row in pattern.rows
        )
        return f"VALUES ({names}) {{ {rows} }}"

    # --- triples --------------------------------------------------------------------------------

    def _basic(self, pattern: BasicPattern) -> str:
        parts = []
        for each in pattern.patterns:
            if isinstance(each, TriplePattern):
                parts.append(self._triple(each))
            else:
                parts.append(self._path(each.subject, each.path, each.object))
        return "{ " + " ".join(parts) + " }"

    def _triple(self, triple: TriplePattern) -> str:
        subject = self.term(triple.subject)
        none = ""
        if isinstance(triple.subject, Literal):
            # SPARQL's grammar has no place for it; RDF has no such triple.
            subject, none = self._new("n"), " VALUES ?none { }"
        text = f"{subject} {self.term(triple.predicate)} {self.term(triple.object)}"
        variables = {
            term
            for term in (triple.subject, triple.predicate, triple.object)
            if isinstance(term, Variable)
        }
        matched = self._match(text)
        timed = sorted(variables & self._timed.keys())
        if timed and self._active.times is not None:
            matched += f" {self._time(text, variables, timed)}"
        return matched + none

    def _match(self, text: str) -> str:
        if self._active.bag is None:
            return f"{text} ."
        element = self._new("e")
        self._elements.append(element)
        return (
            f"GRAPH {element} {{ {text} }} "
            f"GRAPH <{META}> {{ {element} <{IN}> <{self._active.bag}> }}"
        )

    def _time(self, text: str, variables: set[Variable], timed: list[Variable]) -> str:
        """Look up when a triple that matched happened: in a bag its element's time, else the latest."""
        time = self._new("t")
        for variable in timed:
            self._timed[variable].append(time)
        if self._active.bag is not None:
            return f"OPTIONAL {{ GRAPH <{META}> {{ {self._elements[-1]} <{TIME}> {time} }} }}"
        element, each = self._new("e"), self._new("t")
        names = " ".join(sorted(map(self.variable, variables)))
        return (
            f"OPTIONAL {{ SELECT {names} (MAX({each}) AS {time}) WHERE {{ "
            f"GRAPH {element} {{ {text} }} GRAPH <{META}> {{ "
            f"{element} <{IN}> <{self._active.times}> ; <{TIME}> {each} }} }} GROUP BY {names} }}"
        )

    def _path(self, subject: PatternTerm, path: Path, end: PatternTerm) -> str:
        match path:
            case Link():
                return self._triple(
                    TriplePattern(subject=subject, predicate=path.predicate, object=end)
                )
            case Inverse():
                return self._path(end, path.path, subject)
            case PathSequence():
                middles = [Variable(f"_:oracle{self._fresh}.{i}") for i in range(len(path.paths))]
                self._fresh += 1
                ends: list[PatternTerm] = [subject, *middles[1:], end]
                return " ".join(
                    self._path(ends[i], step, ends[i + 1]) for i, step in enumerate(path.paths)
                )
            case Alternative():
                branches = (f"{{ {self._path(subject, each, end)} }}" for each in path.paths)
                return "{ " + " UNION ".join(branches) + " }"
            case NegatedSet():
                return self._negated_set(subject, path, end)
            case ZeroOrMore() | OneOrMore() | ZeroOrOne():
                return self._closure(subject, path, end)
            case _:
                assert_never(path)

    def _closure(self, subject: PatternTerm, path: Path, end: PatternTerm) -> str:
        matched = self._in_merge(f"{self.term(subject)} {self._path_text(path)} {self.term(end)}")
        fixed = [term for term in (subject, end) if not isinstance(term, Variable)]
        if not fixed or not is_nullable(path):
            return matched
        # By the specification a path of no steps leads from a term to itself, whether or not the
        # graph has it; pyoxigraph finds it only if the graph has it.
        if len(fixed) == 2:
            return "" if subject == end else matched
        other = end if isinstance(end, Variable) else subject
        assert isinstance(other, Variable)
        term = self.term(fixed[0])
        names = [self._new("n") for _ in range(4)]
        known = [f"{{ {self._in_merge(f'{names[0]} {names[1]} {term}')} }}"]
        if not isinstance(fixed[0], Literal):
            known.append(f"{{ {self._in_merge(f'{term} {names[2]} {names[3]}')} }}")
        itself = (
            f"VALUES {self.variable(other)} {{ {term} }} "
            f"FILTER NOT EXISTS {{ {' UNION '.join(known)} }}"
        )
        return f"{{ {{ {matched} }} UNION {{ {itself} }} }}"

    def _in_merge(self, text: str) -> str:
        """Match in the merge of the bag around, or in the graph around."""
        merge = self._active.bag
        return f"{text} ." if merge is None else f"GRAPH <{merge}> {{ {text} }}"

    def _negated_set(self, subject: PatternTerm, path: NegatedSet, end: PatternTerm) -> str:
        branches = []
        both: list[tuple[PatternTerm, PatternTerm, tuple[IRI, ...]]] = []
        if path.forward or not path.backward:
            both.append((subject, end, path.forward))
        if path.backward:
            both.append((end, subject, path.backward))
        for start, stop, forbidden in both:
            predicate = Variable(f"_:oracle{self._fresh}")
            self._fresh += 1
            triple = self._triple(TriplePattern(subject=start, predicate=predicate, object=stop))
            named = ", ".join(map(str, forbidden))
            branches.append(f"{{ {triple} FILTER({self.variable(predicate)} NOT IN ({named})) }}")
        return "{ " + " UNION ".join(branches) + " }"

    def _path_text(self, path: Path) -> str:
        match path:
            case Link():
                return str(path.predicate)
            case Inverse():
                return f"^({self._path_text(path.path)})"
            case PathSequence():
                return "(" + "/".join(map(self._path_text, path.paths)) + ")"
            case Alternative():
                return "(" + "|".join(map(self._path_text, path.paths)) + ")"
            case ZeroOrMore():
                return f"({self._path_text(path.path)})*"
            case OneOrMore():
                return f"({self._path_text(path.path)})+"
            case ZeroOrOne():
                return f"({self._path_text(path.path)})?"
            case NegatedSet():
                parts = [*map(str, path.forward), *(f"^{iri}" for iri in path.backward)]
                return "!(" + "|".join(parts) + ")"
            case _:
                assert_never(path)

    # --- selections -----------------------------------------------------------------------------

    def _grouped(self, pattern: Group) -> str:
        before = len(self._elements)
        inner = self._group(pattern.input)
        del self._elements[before:]
        if any(each.call.argument is None and each.call.distinct for each in pattern.aggregates):
            # DISTINCT * counts solutions, in which our own variables and blank nodes are not.
            names = {v for v in in_scope(pattern.input, self._query) if not is_hidden(v)}
            kept = " ".join(sorted(map(self.variable, names | set(pattern.keys))))
            inner = f"{{ SELECT {kept} WHERE {inner} }}" if kept else inner
        keys = " ".join(map(self.variable, pattern.keys))
        parts = [keys] if keys else []
        parts += [
            f"({self.aggregate(each.call)} AS {self.variable(each.variable)})"
            for each in pattern.aggregates
        ]
        by = f" GROUP BY {keys}" if keys else ""
        return f"SELECT {' '.join(parts) or self._nothing()} WHERE {inner}{by}"

    def _nothing(self) -> str:
        """Select no variable: SPARQL wants one, and no two of the same name in each other."""
        return f"(1 AS {self._new('one')})"

    def _select(self, pattern: Pattern, columns: tuple[Variable, ...] | None = None) -> str:
        """Write a stack of Slice, Distinct, Project and OrderBy as one SELECT.

        Ties under LIMIT and OFFSET are broken by the canonical spelling of the columns, so that the
        answer depends on the input alone (P1); SPARQL leaves it open.
        """
        limits = order = ""
        distinct = sliced = False
        rest = pattern
        if isinstance(rest, Slice):
            sliced = True
            limits = f" OFFSET {rest.offset}" if rest.offset else ""
            limits += f" LIMIT {rest.limit}" if rest.limit is not None else ""
            rest = rest.input
        if isinstance(rest, Distinct | Reduced):
            # REDUCED may drop duplicates or keep them; like Quadweir, this keeps them.
            distinct = isinstance(rest, Distinct)
            rest = rest.input
        if isinstance(rest, Project):
            columns = rest.variables if columns is None else columns
            rest = rest.input
        elif columns is None or distinct:
            inside = in_scope(rest, self._query)
            visible = sorted(v for v in inside if not (distinct and is_hidden(v)))
            columns = tuple(visible) if columns is None else columns
        keys: tuple[OrderKey, ...] = ()
        if isinstance(rest, OrderBy):
            keys = rest.keys
            rest = rest.input
        before = len(self._elements)
        inner = self._group(rest)
        if not self._derivations:
            del self._elements[before:]
        names = [self.variable(column) for column in columns]
        if keys or sliced:
            parts = [
                f"{'DESC' if key.descending else 'ASC'}"
                f'(COALESCE(<{ORDER}>({self.as_term(key.expression)}), ""))'
                for key in keys
            ]
            parts += [f"<{SPELLING}>({name})" for name in names]
            order = f" ORDER BY {' '.join(parts)}" if parts else ""
        selected = names + (self._elements[before:] if self._derivations else [])
        return (
            f"SELECT {'DISTINCT ' if distinct else ''}{' '.join(selected) or self._nothing()} "
            f"WHERE {inner}{order}{limits}"
        )
