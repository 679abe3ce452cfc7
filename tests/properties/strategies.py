"""Generated questions: one body over windows and static data, written in any dialect.

    @given(questions(kinds=MONOTONIC))
    def test_something(question):
        query = parse(question.text("rspql"))

Every text is a valid query of its dialect. The vocabulary is small, so that patterns meet the
generated `elements()` and `static_triples()` often. `queries(dialect)` gives texts and
`trees(dialect)` parsed queries.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.windowing import ReportOn, Windowing, with_windowing
from quadweir.algebra.windows import (
    AllScope,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    Scope,
    TimeScope,
)
from quadweir.errors import UsageError
from quadweir.syntax import parse
from quadweir.terms import IRI, Literal, Quad
from quadweir.vocab import XSD

NAMESPACE = "http://example.org/"
SUBJECTS = [f"{NAMESPACE}s{n}" for n in range(4)]
PREDICATES = [f"{NAMESPACE}p{n}" for n in range(3)]
STREAMS = [f"{NAMESPACE}stream{n}" for n in range(2)]
GRAPHS = [f"{NAMESPACE}g{n}" for n in range(2)]
VARIABLES = ["?a", "?b", "?c", "?d"]

MONOTONIC = frozenset({"triples", "filter", "union", "bind", "values"})
NEGATION = frozenset({"minus", "exists"})
EVERYTHING = MONOTONIC | NEGATION | {"optional", "subselect", "graph", "named", "path"}
DIALECTS = ("rspql", "csparql", "cqels", "sparqlstream")


# --- the body of a question ---------------------------------------------------------------------


@dataclass(frozen=True)
class Triples:
    """Adjacent triples; in a window, or in the default graph if that is None.

    `graph` is the named graph of the window that they are matched in, `inside` what stands there, with
    the triples in it. Dialects whose windows are the default graph have no words for it.
    """

    lines: tuple[str, ...]
    window: int | None = None
    graph: str | None = None
    inside: str = "{0}"


@dataclass(frozen=True)
class Block:
    """A keyword and its groups: OPTIONAL, MINUS, UNION, GRAPH, FILTER (NOT) EXISTS, a subselect."""

    word: str
    groups: tuple[tuple[Part, ...], ...]
    tail: str = ""  # solution modifiers of a subselect, or the rest of an expression


@dataclass(frozen=True)
class Line:
    """FILTER, BIND or VALUES, as text."""

    text: str


Part = Triples | Block | Line


@dataclass(frozen=True)
class Question:
    """A question; `text(dialect)` writes it as a query."""

    head: str  # SELECT and what it selects, or CONSTRUCT with its template
    tail: str  # solution modifiers
    parts: tuple[Part, ...]
    scopes: tuple[Scope, ...] = ()
    streams: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()  # of FROM NAMED
    default: tuple[str, ...] = ()  # of FROM; in C-SPARQL they are one graph with the windows

    def text(self, dialect: str = "rspql") -> str:
        declared = "".join(f"FROM NAMED <{graph}>\n" for graph in self.graphs)
        declared += "".join(f"FROM <{graph}>\n" for graph in self.default)
        for number, (scope, stream) in enumerate(zip(self.scopes, self.streams, strict=True)):
            window = write_scope(scope, dialect)
            if dialect == "rspql":
                declared += f"FROM NAMED WINDOW :w{number} ON STREAM <{stream}> {window}\n"
            elif dialect == "csparql":
                declared += f"FROM STREAM <{stream}> {window}\n"
            elif dialect == "sparqlstream":
                declared += f"FROM NAMED STREAM <{stream}> {window}\n"
        body = self._group(self.parts, dialect)
        return f"PREFIX : <{NAMESPACE}>\n{self.head}\n{declared}WHERE {body}\n{self.tail}"

    def _group(self, parts: tuple[Part, ...], dialect: str) -> str:
        return "{ " + "\n".join(self._part(part, dialect) for part in parts) + " }"

    def _part(self, part: Part, dialect: str) -> str:
        match part:
            case Line(text=text):
                return text
            case Triples(lines=lines, window=window):
                inside = " .\n".join(lines)
                if window is None or dialect in ("csparql", "sparqlstream", "sparql"):
                    return f"{inside} ."
                if part.graph is not None:
                    inside = f"GRAPH {part.graph} {{ {part.inside.format(inside)} }}"
                if dialect == "rspql":
                    return f"WINDOW :w{window} {{ {inside} }}"
                scope = write_scope(self.scopes[window], "cqels")
                return f"STREAM <{self.streams[window]}> {scope} {{ {inside} }}"
            case Block(word="UNION", groups=groups):
                return " UNION ".join(self._group(group, dialect) for group in groups)
            case Block(word=word, groups=(group,), tail=tail) if word.startswith("SELECT"):
                return f"{{ {word} WHERE {self._group(group, dialect)} {tail} }}"
            case Block(word=word, groups=(group,), tail=tail):
                return f"{word} {self._group(group, dialect)}{tail}"
        raise AssertionError(part)


def write_scope(scope: Scope, dialect: str) -> str:
    """A window in the syntax of a dialect; the caller only passes windows that the dialect has."""
    if dialect == "sparqlstream":
        return _reaching_back(scope)
    word = "SLIDE" if dialect == "cqels" else "STEP"
    match scope:
        case TimeScope(range_ms=length, step_ms=None):
            return f"[RANGE {length}ms]"
        case TimeScope(range_ms=length, step_ms=step) if length == step:
            return f"[RANGE {length}ms TUMBLING]"
        case TimeScope(range_ms=length, step_ms=step):
            return f"[RANGE {length}ms {word} {step}ms]"
        case CountScope(unit=CountUnit.TRIPLES, size=size) if dialect == "csparql":
            return f"[RANGE TRIPLES {size}]"
        case CountScope(unit=unit, size=size, step=None):
            return f"[{unit.value.upper()} {size}]"
        case CountScope(unit=unit, size=size, step=step):
            return f"[{unit.value.upper()} {size} STEP {step}]"
        case NowScope():
            return "[NOW]"
        case AllScope():
            return "[ALL]"
        case PastScope(from_ms=start, to_ms=end, step_ms=step):
            every = "" if step is None else f" STEP {step}ms"
            return f"[FROM NOW-{start}ms TO NOW-{end}ms{every}]"
    raise AssertionError(scope)


def _reaching_back(scope: Scope) -> str:
    match scope:
        case TimeScope(range_ms=length, step_ms=step):
            window = f"NOW - {length} MS"
        case PastScope(from_ms=start, to_ms=end, step_ms=step):
            window = f"NOW - {start} MS TO NOW - {end} MS"
        case NowScope():
            return "[NOW]"
        case _:
            raise AssertionError(scope)
    return f"[{window}]" if step is None else f"[{window} SLIDE {step} MS]"


# --- strategies ---------------------------------------------------------------------------------

lengths = st.sampled_from([1, 3, 5, 10])


@cache
def scopes(dialect: str) -> st.SearchStrategy[Scope]:
    """The windows that a dialect can write; `common` ones can be written in all."""
    stepped = st.builds(lambda a, b: TimeScope(range_ms=a, step_ms=b), lengths, lengths)
    if dialect == "common":
        return stepped
    tumbling_count = st.builds(
        lambda n: CountScope(unit=CountUnit.TRIPLES, size=n, step=n), lengths
    )
    if dialect == "csparql":
        return stepped | tumbling_count
    sliding = st.builds(lambda a: TimeScope(range_ms=a), lengths)
    count = st.builds(lambda n: CountScope(unit=CountUnit.TRIPLES, size=n), lengths)
    if dialect == "cqels":
        return stepped | sliding | count | st.just(NowScope())
    past = st.builds(
        lambda a, b, step: PastScope(from_ms=a + b, to_ms=b, step_ms=step),
        lengths,
        lengths,
        st.none() | lengths,
    )
    if dialect == "sparqlstream":
        return stepped | sliding | past | st.just(NowScope())
    counts = st.builds(
        lambda unit, n, step: CountScope(unit=unit, size=n, step=step),
        st.sampled_from(CountUnit),
        lengths,
        st.none() | lengths,
    )
    return stepped | sliding | counts | past


@st.composite
def windowings(draw: st.DrawFn) -> Windowing:
    """Where windows begin, and when they report (W9, W10)."""
    return Windowing(
        start_ms=draw(st.none() | st.integers(-5, 12)),
        full=draw(st.booleans()),
        report=draw(st.none() | st.sampled_from(ReportOn)),
    )


def windowed(query: ContinuousQuery, asked: Windowing) -> ContinuousQuery:
    """The query with such windows; unchanged if no window allows it."""
    try:
        return with_windowing(query, asked)
    except UsageError:
        return query


variables = st.sampled_from(VARIABLES)
numbers = st.sampled_from(["0", "1", "2", "3", "-1", "1.5", "2e0"])
iris = st.sampled_from([f":s{n}" for n in range(4)])
paths = st.sampled_from([":p0/:p1", "^:p0", ":p0|:p1", ":p0*", ":p1+", ":p2?", "!(:p0|^:p1)"])
predicates = st.sampled_from([f":p{n}" for n in range(3)])


@cache
def triples(*, with_paths: bool = False) -> st.SearchStrategy[str]:
    middle = predicates | variables
    if with_paths:
        middle = predicates | paths
    return st.builds(
        lambda s, p, o: f"{s} {p} {o}", variables | iris, middle, variables | iris | numbers
    )


@cache
def expressions(depth: int = 2) -> st.SearchStrategy[str]:
    """Expressions over the variables, as text; some are errors for some solutions."""
    leaf = variables | numbers | st.sampled_from(['"x"', '"y"@en', "true", ":s0"])
    if depth == 0:
        return leaf
    inner = expressions(depth - 1)
    operator = st.sampled_from(["=", "!=", "<", ">=", "&&", "||", "+", "-", "*", "/"])
    return st.one_of(
        leaf,
        st.builds(lambda a, o, b: f"({a} {o} {b})", inner, operator, inner),
        st.builds(lambda a: f"(! {a})", inner),
        st.builds(lambda a: f"(- {a})", inner),
        st.builds(lambda v: f"BOUND({v})", variables),
        st.builds(lambda a: f"STR({a})", inner),
        st.builds(lambda a, b, c: f"IF({a}, {b}, {c})", inner, inner, inner),
        st.builds(lambda a, b: f"COALESCE({a}, {b})", inner, inner),
        st.builds(lambda a, b, c: f"({a} NOT IN ({b}, {c}))", inner, inner, inner),
    )


@st.composite
def groups(
    draw: st.DrawFn, kinds: Collection[str], windows: int, depth: int, fresh: list[int]
) -> tuple[Part, ...]:
    """The parts of a group; `fresh` counts the variables that BIND has used up."""
    parts: list[Part] = []

    def group() -> tuple[Part, ...]:
        return draw(groups(kinds, windows, depth - 1, fresh))

    def some_triples() -> None:
        if parts and isinstance(parts[-1], Triples):
            return  # adjacent triples are one basic pattern where there are no windows
        if any(isinstance(each, Triples) for each in parts) and all(
            isinstance(each, Triples) or (isinstance(each, Line) and "FILTER" in each.text)
            for each in parts
        ):
            return  # a filter does not separate them
        some = triples(with_paths="path" in kinds)
        lines = draw(st.lists(some, min_size=1, max_size=3))
        window = draw(st.none() | st.integers(0, windows - 1)) if windows else None
        if windows == 1:
            window = 0
        names = st.none() | st.sampled_from([f"<{GRAPHS[0]}>", "?a", "?d"])
        graph = draw(names) if "named" in kinds else None
        parts.append(Triples(tuple(lines), window, graph))

    some_triples()
    deep = depth > 0
    choices = ["triples"]
    choices += [kind for kind in sorted(kinds) if kind in ("filter", "bind", "values")]
    if deep:
        nested = ("optional", "union", "minus", "exists", "subselect", "graph")
        choices += [kind for kind in sorted(kinds) if kind in nested]
    for kind in draw(st.lists(st.sampled_from(choices), max_size=3)):
        match kind:
            case "triples":
                some_triples()
            case "filter":
                parts.append(Line(f"FILTER({draw(expressions())})"))
            case "bind":
                fresh[0] += 1
                parts.append(Line(f"BIND({draw(expressions())} AS ?n{fresh[0]})"))
            case "values":
                rows = draw(st.lists(iris | numbers | st.just("UNDEF"), min_size=1, max_size=2))
                parts.append(Line(f"VALUES {draw(variables)} {{ {' '.join(rows)} }}"))
            case "optional" | "minus":
                parts.append(Block(kind.upper(), (group(),)))
            case "union":
                parts.append(Block("UNION", (group(), group())))
            case "exists":
                word = draw(st.sampled_from(["FILTER EXISTS", "FILTER NOT EXISTS"]))
                parts.append(Block(word, (group(),)))
            case "graph":
                name = draw(st.sampled_from([f"<{GRAPHS[0]}>", f"<{GRAPHS[1]}>", "?a"]))
                parts.append(Block(f"GRAPH {name}", (without_windows(group()),)))
            case "subselect":
                chosen = draw(st.lists(variables, min_size=1, max_size=3, unique=True))
                word = draw(st.sampled_from(["SELECT", "SELECT DISTINCT"]))
                parts.append(Block(f"{word} {' '.join(chosen)}", (group(),)))
    return tuple(parts)


def without_windows(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The same group over one graph."""
    changed: list[Part] = []
    for part in parts:
        match part:
            case Triples(lines=lines):
                changed.append(Triples(lines))
            case Block(word=word, groups=inner):
                changed.append(Block(word, tuple(without_windows(each) for each in inner)))
            case Line():
                changed.append(part)
    return tuple(changed)


some_graphs = st.sampled_from([(), (GRAPHS[0],), (GRAPHS[1],), tuple(GRAPHS)])


@st.composite
def questions(
    draw: st.DrawFn,
    dialect: str = "common",
    *,
    kinds: Collection[str] = EVERYTHING,
    max_windows: int = 2,
    min_windows: int = 0,
    aggregates: bool = True,
    slices: bool = False,
    construct: bool = False,
    depth: int = 2,
) -> Question:
    """A question whose windows `dialect` can write; `common` ones go into all."""
    if dialect == "common":
        kinds = set(kinds) - {"named"}
    windows = draw(st.integers(min_windows, max_windows))
    fresh = [0]
    parts = draw(groups(kinds, windows, depth, fresh))
    some_scopes = tuple(draw(scopes(dialect)) for _ in range(windows))
    # CQELS-QL sees one window where stream and scope are the same, so the streams differ.
    some_streams = tuple(STREAMS[number % len(STREAMS)] for number in range(windows))
    tail = ""
    if construct and draw(st.booleans()):
        template = draw(st.lists(triples(), min_size=1, max_size=2))
        graph = draw(
            st.sampled_from(["", "GRAPH ?a { _:b :p1 ?c }", "GRAPH :g { } GRAPH :g { ?d :p1 1 }"])
        )
        head = f"CONSTRUCT {{ {' . '.join(template)} . {graph} _:b :p0 ?a }}"
    elif aggregates and draw(st.integers(0, 3)) == 0:
        key = draw(variables)
        others = [each for each in VARIABLES if each != key]
        calls = draw(
            st.lists(
                st.builds(
                    lambda name, distinct, v: f"{name}({distinct}{v})",
                    st.sampled_from(["COUNT", "SUM", "MIN", "MAX", "AVG"]),
                    st.sampled_from(["", "DISTINCT "]),
                    st.sampled_from(others),
                )
                | st.just("COUNT(*)"),
                min_size=1,
                max_size=2,
                unique=True,
            )
        )
        columns = " ".join(f"({call} AS ?agg{n})" for n, call in enumerate(calls))
        head = f"SELECT {key} {columns}"
        tail = f"GROUP BY {key}" + draw(st.sampled_from(["", f" HAVING ({calls[0]} > 1)"]))
    else:
        word = draw(st.sampled_from(["SELECT", "SELECT DISTINCT"]))
        chosen = draw(st.lists(variables, min_size=1, max_size=3, unique=True))
        head = f"{word} {' '.join(chosen)}"
    if slices:
        tail += draw(st.sampled_from(["", " ORDER BY ?a DESC(?b)", " ORDER BY ?a LIMIT 2"]))
    return Question(
        head=head,
        tail=tail,
        parts=parts,
        scopes=some_scopes,
        streams=some_streams,
        graphs=draw(some_graphs) if "graph" in kinds else (),
        # Merged with a window, they change the algebra of a C-SPARQL query.
        default=() if dialect == "common" else draw(st.just(()) | some_graphs),
    )


ALLOW = ("FROM",)


def queries(dialect: str, **options: object) -> st.SearchStrategy[str]:
    """Query texts of a dialect (`sparql` for those without windows)."""
    if dialect == "sparql":
        options["max_windows"] = 0
    source = dialect if dialect in DIALECTS else "common"
    return questions(source, **options).map(lambda question: question.text(dialect))  # type: ignore[arg-type]


def trees(dialect: str, **options: object) -> st.SearchStrategy[ContinuousQuery]:
    """Parsed queries of a dialect."""
    return queries(dialect, **options).map(lambda text: parse(text, dialect=dialect, allow=ALLOW))


# --- data ---------------------------------------------------------------------------------------

_objects = st.one_of(
    st.sampled_from(SUBJECTS).map(IRI),
    st.sampled_from(["0", "1", "2", "3"]).map(lambda n: Literal(n, datatype=IRI(XSD.integer))),
)
triple_data = st.builds(
    Quad, st.sampled_from(SUBJECTS).map(IRI), st.sampled_from(PREDICATES).map(IRI), _objects
)


def static_triples(max_size: int = 8) -> st.SearchStrategy[list[Quad]]:
    """Triples of the default graph."""
    return st.lists(triple_data, max_size=max_size, unique=True)


def elements(
    max_size: int = 12, *, until_ms: int = 30
) -> st.SearchStrategy[list[tuple[int, tuple[Quad, ...]]]]:
    """A stream: elements with their event times in order, each of one to three triples."""
    one = st.tuples(
        st.integers(1, until_ms), st.lists(triple_data, min_size=1, max_size=3).map(tuple)
    )
    return st.lists(one, max_size=max_size).map(lambda some: sorted(some, key=lambda each: each[0]))
