"""The properties of a query that are known without running it: scopes, windows, monotonicity,
state.

Nothing here evaluates anything. The oracle, the planner and `quadweir explain` all ask this module,
so that "monotonic" or "static" means one thing everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never, cast, final

from quadweir.algebra.emptiness import is_closure, needs_triple
from quadweir.algebra.expressions import AggregateCall, Exists, FunctionCall
from quadweir.algebra.functions import is_volatile
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import (
    Aggregation,
    BasicPattern,
    Distinct,
    Graph,
    Group,
    LeftJoin,
    Minus,
    PathPattern,
    Pattern,
    Service,
    Slice,
    Union,
    WindowPattern,
)
from quadweir.algebra.query import AskForm, ContinuousQuery, DescribeForm
from quadweir.algebra.scopes import always_bound, in_scope, visible, windows_of
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.traverse import PATTERN_CLASSES, children, walk
from quadweir.algebra.windows import (
    AllScope,
    Content,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    TimeScope,
    Window,
)
from quadweir.errors import PlanError, UnboundedStateError
from quadweir.spans import Span
from quadweir.terms import IRI, Variable

# --- walking ----------------------------------------------------------------------------------


def subpatterns(node: Node) -> Iterator[Pattern]:
    """Walk the patterns of a tree, parents first, including those inside EXISTS."""
    return (cast(Pattern, each) for each in walk(node) if isinstance(each, PATTERN_CLASSES))


def called_by_iri(query: ContinuousQuery) -> tuple[IRI, ...]:
    """The functions that a query calls by IRI, including casts, each once."""
    calls = (each.function for each in walk(query) if isinstance(each, FunctionCall))
    return tuple(dict.fromkeys(name for name in calls if isinstance(name, IRI)))


def inputs(pattern: Pattern) -> tuple[Pattern, ...]:
    """The direct parts of a pattern, without those inside its expressions."""
    return tuple(
        cast(Pattern, each) for each in children(pattern) if isinstance(each, PATTERN_CLASSES)
    )


def exists_in(pattern: Pattern) -> Iterator[Exists]:
    """The EXISTS in the expressions of a pattern itself, not of its parts."""
    for child in children(pattern):
        if not isinstance(child, PATTERN_CLASSES):
            yield from _exists(child)


def _exists(node: Node) -> Iterator[Exists]:
    if isinstance(node, Exists):
        yield node
        return
    for child in children(node):
        yield from _exists(child)


# --- windows ----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class _Around:
    """The data that a pattern matches: the content of windows, or of one WINDOW block.

    Without a block, they are those that make up the default graph.
    """

    windows: frozenset[IRI]
    is_block: bool = False

    @staticmethod
    def all_of(query: ContinuousQuery) -> _Around:
        """The data that the pattern of a query matches."""
        return _Around(frozenset(query.default_graph_windows))

    def inside(self, pattern: Pattern, query: ContinuousQuery) -> _Around:
        """The data that the parts of a pattern match."""
        match pattern:
            case WindowPattern(window=name):
                return _Around(frozenset(w.name for w in windows_of(name, query)), True)
            case Graph() if not self.is_block:
                return _Around(frozenset())  # a graph of static data
            case Service():
                return _Around(frozenset())
            case _:
                return self

    def is_named_graph(self, pattern: Pattern) -> bool:
        """Whether a pattern looks into the named graphs of windows (W11)."""
        return self.is_block and isinstance(pattern, Graph)


def windows_read(pattern: Pattern, query: ContinuousQuery) -> frozenset[IRI]:
    """The names of the windows that a pattern reads outside of any WINDOW and GRAPH."""
    return frozenset(_windows_read(pattern, query, _Around.all_of(query)))


def _windows_read(pattern: Pattern, query: ContinuousQuery, around: _Around) -> Iterator[IRI]:
    if _at_pattern_asks_for_triple_times(pattern):
        yield from (window.name for window in query.windows)
    if around.is_named_graph(pattern) or (isinstance(pattern, BasicPattern) and pattern.patterns):
        # Even an empty pattern says which graphs there are.
        yield from around.windows
    for each, where in _parts(pattern, query, around):
        yield from _windows_read(each, query, where)


def _parts(
    pattern: Pattern, query: ContinuousQuery, around: _Around
) -> Iterator[tuple[Pattern, _Around]]:
    """The patterns inside a pattern, including those of EXISTS, each with the data it matches."""
    inside = around.inside(pattern, query)
    for exists in exists_in(pattern):
        yield exists.pattern, inside
    for each in inputs(pattern):
        yield each, inside


def windows_with_graphs(query: ContinuousQuery) -> frozenset[IRI]:
    """The names of the windows whose named graphs the query uses (W11)."""
    found: set[IRI] = set()
    waiting = [(query.pattern, _Around.all_of(query))]
    while waiting:
        pattern, around = waiting.pop()
        if around.is_named_graph(pattern):
            found |= around.windows
        waiting += _parts(pattern, query, around)
    return frozenset(found)


def is_static(pattern: Pattern, query: ContinuousQuery) -> bool:
    """Whether a pattern outside of any WINDOW reads no window, so that it never changes."""
    return not windows_read(pattern, query) and not _is_volatile(pattern)


def static_parts(query: ContinuousQuery) -> tuple[Pattern, ...]:
    """The largest parts that read static data and no window; each is evaluated once."""
    if not query.windows:
        return (query.pattern,)
    return tuple(_static_parts(query.pattern, query))


def _static_parts(pattern: Pattern, query: ContinuousQuery) -> Iterator[Pattern]:
    if is_static(pattern, query):
        if _reads_data(pattern):
            yield pattern
        return
    if isinstance(pattern, WindowPattern):
        return
    for part in exists_in(pattern):
        yield from _static_parts(part.pattern, query)
    for each_input in inputs(pattern):
        yield from _static_parts(each_input, query)


def _reads_data(pattern: Pattern) -> bool:
    return any(
        isinstance(each, Graph | Service)
        or (isinstance(each, BasicPattern) and bool(each.patterns))
        for each in subpatterns(pattern)
    )


def asks_for_triple_times(node: Node) -> bool:
    """Whether a tree asks for `timestamp(s, p, o)`, whose value rests on all windows.

    It can change while the elements that made a solution stay: when another one brings the same
    triple, or takes it along as it leaves.
    """
    return any(_is_triple_time(each) for each in walk(node))


def _is_triple_time(node: Node) -> bool:
    return (
        isinstance(node, FunctionCall) and node.function == "TIMESTAMP" and len(node.arguments) == 3
    )


def _at_pattern_asks_for_triple_times(pattern: Pattern) -> bool:
    """Whether it is in an expression of the pattern itself, not of its parts."""
    return any(_asks_outside_patterns(child) for child in children(pattern))


def _asks_outside_patterns(node: Node) -> bool:
    if isinstance(node, PATTERN_CLASSES):
        return False
    return _is_triple_time(node) or any(map(_asks_outside_patterns, children(node)))


def _is_volatile(node: Node) -> bool:
    return any(isinstance(each, FunctionCall) and is_volatile(each.function) for each in walk(node))


# --- what is compared (A2) ---------------------------------------------------------------------


def is_monotonic(pattern: Pattern, query: ContinuousQuery) -> bool:
    """Whether one more element can only add solutions.

    OPTIONAL, MINUS and EXISTS whose right side reads no window count as monotonic: what they add
    or take away never changes while the elements of a solution stay.
    """
    return _is_monotonic(pattern, query, _Around.all_of(query))


def _is_monotonic(pattern: Pattern, query: ContinuousQuery, around: _Around) -> bool:
    def changes(part: Pattern, where: _Around) -> bool:
        return any(True for _ in _windows_read(part, query, where))

    if not changes(pattern, around):
        return True
    if _at_pattern_asks_for_triple_times(pattern):
        return False
    inside = around.inside(pattern, query)
    if any(changes(each.pattern, inside) for each in exists_in(pattern)):
        return False
    match pattern:
        case LeftJoin() | Minus():
            return not changes(pattern.right, inside) and _is_monotonic(pattern.left, query, inside)
        case Group() | Distinct() | Slice():
            return False
        case _:
            return all(_is_monotonic(each, query, inside) for each in inputs(pattern))


def compares_derivations(query: ContinuousQuery) -> bool:
    """Whether ISTREAM and DSTREAM compare derivations rather than solutions (A2).

    They do if all windows that are read are bags, the pattern is monotonic, no value in it
    changes by itself, and every match has elements to name: a path with `*`, `+` or `?` has not,
    nor has a GRAPH of a window in which nothing has to be matched.
    """
    if isinstance(query.form, AskForm | DescribeForm):
        return False
    read = windows_read(query.pattern, query)
    if not read or any(query.window(name).content is not Content.BAG for name in read):
        return False
    if _is_volatile(query.pattern):
        return False
    return is_monotonic(query.pattern, query) and _has_elements(query.pattern, query)


def _has_elements(pattern: Pattern, query: ContinuousQuery) -> bool:
    """Whether every match in a window is that of a triple, which elements carry."""
    waiting = [(pattern, _Around.all_of(query))]
    while waiting:
        each, around = waiting.pop()
        if isinstance(each, BasicPattern):
            if any(isinstance(p, PathPattern) and is_closure(p.path) for p in each.patterns):
                return False
        elif isinstance(each, Graph) and around.is_block and not needs_triple(each.input):
            return False
        waiting += _parts(each, query, around)
    return True


def aggregations(query: ContinuousQuery) -> tuple[Aggregation, ...]:
    """The aggregates of a query and of its subqueries."""
    return tuple(
        aggregation
        for each in subpatterns(query.pattern)
        if isinstance(each, Group)
        for aggregation in each.aggregates
    )


# --- state ------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StateBound:
    """What a query has to remember of one window; `bounded` is False if that never ends."""

    window: IRI
    text: str
    bounded: bool
    span: Span | None = None


def state_bounds(query: ContinuousQuery) -> tuple[StateBound, ...]:
    """For each window, what the query has to remember of its stream."""
    return tuple(_state_bound(window, query) for window in query.windows)


def refuse_unbounded(query: ContinuousQuery, *, allowed: frozenset[IRI] = frozenset()) -> None:
    """Refuse a query that would have to remember everything it has ever seen (W5).

    Args:
        query: The query.
        allowed: Names of windows, or IRIs of streams, whose state may grow without bound.

    Raises:
        UnboundedStateError: with the place of the first such window.
    """
    for window, bound in zip(query.windows, state_bounds(query), strict=True):
        if bound.bounded or window.name in allowed or window.stream in allowed:
            continue
        raise kept_whole(window)


def kept_whole(window: Window, why: str = "") -> UnboundedStateError:
    """The error for a window whose whole stream would be remembered."""
    stream = f"?{window.stream.name}" if isinstance(window.stream, Variable) else window.stream
    return UnboundedStateError(
        f"stream {stream} is kept whole by an ALL window",
        detail=f"The query would keep every element it has ever seen.{why}",
        hint="Give the window a RANGE or a count, or allow unbounded state for it by name.",
        span=window.scope.span or window.span,
    )


def _state_bound(window: Window, query: ContinuousQuery) -> StateBound:
    scope = window.scope
    span = scope.span or window.span
    match scope:
        case TimeScope():
            text = f"the elements of the last {duration(scope.range_ms)}"
            if scope.step_ms is not None and not scope.while_open:
                # Between two closes the elements of the next content gather while the last
                # content still counts.
                text += f", and of up to one step ({duration(scope.step_ms)}) more"
        case PastScope():
            text = f"the elements of the last {duration(scope.from_ms)}"
            if scope.step_ms is not None:
                text += f", and of up to one step ({duration(scope.step_ms)}) more"
        case CountScope():
            one, many = (
                ("triple", "triples")
                if scope.unit is CountUnit.TRIPLES
                else ("element", "elements")
            )
            text = f"the last {scope.size} {many if scope.size != 1 else one}"
            if scope.step is not None:
                text += f", and up to {scope.step} more"
        case NowScope():
            text = "the elements of one instant"
        case AllScope():
            if _stateless(query) or _counts_only(query):
                text = "nothing but running totals" if aggregations(query) else "nothing"
                text += ": each element is answered as it comes"
                return StateBound(window=window.name, text=text, bounded=True, span=span)
            return StateBound(
                window=window.name, text="every element ever seen", bounded=False, span=span
            )
        case _:
            assert_never(scope)
    text += ", and those within the allowed delay"
    return StateBound(window=window.name, text=text, bounded=True, span=span)


def _stateless(query: ContinuousQuery) -> bool:
    """Whether each answer rests on one element alone and is never retracted or compared."""
    return (
        query.output is OutputOperator.ISTREAM
        and compares_derivations(query)
        and _leaves(query.pattern, query, _Around.all_of(query)) <= 1
    )


def _counts_only(query: ContinuousQuery) -> bool:
    """Whether the only thing to remember is one row of running totals."""
    if len(query.windows) != 1 or asks_for_triple_times(query.pattern):
        return False
    if isinstance(query.form, DescribeForm):
        return False  # descriptions are made of what the window holds
    groups = [each for each in subpatterns(query.pattern) if isinstance(each, Group)]
    if len(groups) != 1 or groups[0].keys:
        return False
    group = groups[0]
    return (
        all(_is_total(each.call) for each in group.aggregates)
        and is_monotonic(group.input, query)
        and _has_elements(group.input, query)
        # In a graph, a triple that comes again must be known again.
        and query.windows[0].content is Content.BAG
        and _leaves(group.input, query, _Around.all_of(query)) <= 1
    )


def _is_total(call: AggregateCall) -> bool:
    return not call.distinct and call.function != "GROUP_CONCAT"


def _leaves(pattern: Pattern, query: ContinuousQuery, around: _Around) -> int:
    """Count the most stream triples that one solution rests on."""
    if isinstance(pattern, BasicPattern):
        return len(pattern.patterns) if around.windows else 0
    inside = around.inside(pattern, query)
    counts = [_leaves(each, query, inside) for each in inputs(pattern)]
    return max(counts) if isinstance(pattern, Union) else sum(counts)


def duration(ms: int) -> str:
    """Spell a duration in the largest units that fit.

    >>> duration(90_000), duration(1_500), duration(0)
    ('1 min 30 s', '1 s 500 ms', '0 ms')
    """
    parts = []
    for name, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        count, ms = divmod(ms, size)
        if count:
            parts.append(f"{count} {name}")
    if ms or not parts:
        parts.append(f"{ms} ms")
    return " ".join(parts)


# --- the whole --------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """All of the above for one query."""

    variables: tuple[Variable, ...]
    always_bound: tuple[Variable, ...]
    windows_read: tuple[IRI, ...]
    windows_unused: tuple[IRI, ...]
    aggregates: tuple[Aggregation, ...]
    static: tuple[Pattern, ...]
    monotonic: bool
    compares: str  # "derivations" or "solutions"
    state: tuple[StateBound, ...]


def analyze(query: ContinuousQuery) -> Analysis:
    """The analysis of a query.

    Raises:
        PlanError: if the query names a window that it does not declare.
    """
    check_windows(query)
    read = windows_read(query.pattern, query)
    if isinstance(query.form, DescribeForm):
        read = frozenset(window.name for window in query.windows)
    return Analysis(
        variables=visible(in_scope(query.pattern, query)),
        always_bound=visible(always_bound(query.pattern, query)),
        windows_read=tuple(window.name for window in query.windows if window.name in read),
        windows_unused=tuple(window.name for window in query.windows if window.name not in read),
        aggregates=aggregations(query),
        static=static_parts(query),
        monotonic=is_monotonic(query.pattern, query),
        compares="derivations" if compares_derivations(query) else "solutions",
        state=state_bounds(query),
    )


def check_windows(query: ContinuousQuery) -> None:
    """Refuse a query that names a window which it does not declare."""
    declared = {window.name for window in query.windows}
    for each in subpatterns(query.pattern):
        if not isinstance(each, WindowPattern):
            continue
        if isinstance(each.window, IRI) and each.window not in declared:
            raise PlanError(
                f"window {each.window} is not declared",
                detail="Declared are " + (", ".join(map(str, sorted(declared))) or "none") + ".",
                hint="Declare it with FROM NAMED WINDOW, or correct its name.",
                span=each.span,
            )
        if isinstance(each.window, Variable) and not windows_of(each.window, query):
            raise PlanError(
                f"{each.window} can stand for no window, since none is declared",
                hint="Declare one with FROM NAMED WINDOW.",
                span=each.span,
            )
