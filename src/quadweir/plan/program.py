"""The program of a query's shards, before the sharding is decided.

`program_of` decides from the algebra, the streams and facts about static data whether answers are
eager, periodic or recomputed, and which windows are tracked for changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

from quadweir.algebra.analyze import check_windows, compares_derivations
from quadweir.algebra.emptiness import needs_content
from quadweir.algebra.query import (
    AskForm,
    ConstructForm,
    ContinuousQuery,
    DescribeForm,
    SelectForm,
)
from quadweir.algebra.scopes import in_scope
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.windows import CountScope, PastScope
from quadweir.errors import UnsupportedError
from quadweir.plan.facts import NOTHING_KNOWN, StaticFacts
from quadweir.plan.incremental import IncrementalPlanner
from quadweir.plan.nodes import (
    CLASS,
    GRAPH_NAME,
    AntiJoin,
    Distinct,
    Exchange,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Match,
    Mode,
    PlanNode,
    Project,
    Recompute,
    Report,
    Source,
    StaticRelation,
    Window,
    walk,
)
from quadweir.plan.routes import CannotRouteError, RoutePlanner
from quadweir.plan.shapes import answer_variables, is_eager, modifiers_of, reports_on_close
from quadweir.plan.template import QueryTemplate
from quadweir.terms import Variable


@final
@dataclass(frozen=True)
class Program:
    """The nodes of one query, or of one stage of it.

    Attributes:
        query: The query, preferably optimised.
        streams: All streams.
        report: The node that makes answers from the solutions.
        sources: The windows over streams, in the order in which shards know them.
        eager: Whether answers leave as soon as their parts have arrived (E1).
        why_not: Why the query is evaluated from scratch at its reports, if it is.
        template: The template, if the query stands for many.
        instants: For an eager template, the place of the window and the variable of the time of
        each part; none if a row has one part, whose time is that of the answer.
        not_shared: Why members of a template cannot join at any instant, each with windows of its
        own length; empty if they can.
        sent: What this stage sends to the next; None in the last stage.
        next_is_silent: Whether no solutions here mean no answers, in later stages, too.
    """

    query: ContinuousQuery
    streams: tuple[str, ...]
    report: Report
    sources: tuple[Source, ...]
    eager: bool = False
    why_not: str | None = None
    template: QueryTemplate | None = None
    instants: tuple[tuple[int, Variable], ...] = ()
    not_shared: str = ""
    sent: Exchange | None = None
    next_is_silent: bool = True

    @property
    def root(self) -> PlanNode:
        """The root of this stage: the solutions, or the rows for the next stage."""
        return self.report.input if self.sent is None else self.sent.input

    @cached_property
    def nodes(self) -> tuple[PlanNode, ...]:
        """All nodes of this stage, each after its inputs; those that only track changes come
        last.
        """
        found = [each for each in walk(self.root, *self.tracked) if not isinstance(each, Report)]
        return tuple(found)

    @property
    def tracked(self) -> tuple[PlanNode, ...]:
        """The nodes that change with the content of windows; only the first stage has windows."""
        return self.report.tracked if self.received is None else ()

    @cached_property
    def received(self) -> Exchange | None:
        """The input from the stage before; None in the first stage."""
        found = [each for each in walk(self.root) if isinstance(each, Exchange)]
        return found[0] if found else None

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """The windows over matches, in the order in which shards know them."""
        return tuple(each for each in self.nodes if isinstance(each, Window))

    @property
    def matches(self) -> tuple[Match, ...]:
        """The matches in streams, in the order of windows."""
        return tuple(each.match for each in self.windows)

    @cached_property
    def trackers(self) -> frozenset[int]:
        """The places of matches that only track changes."""
        used = set(walk(self.root))
        return frozenset(n for n, each in enumerate(self.windows) if each not in used)

    @property
    def static(self) -> tuple[StaticRelation, ...]:
        """The static relations."""
        return tuple(each for each in self.nodes if isinstance(each, StaticRelation))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The output columns of this stage."""
        return answer_variables(self.query) if self.sent is None else self.sent.variables

    def stages(self, exchange: Exchange, above: PlanNode) -> tuple[Program, Program]:
        """Split it into two stages: `above` is the root of the second stage, and reads
        `exchange`.
        """
        first = replace(self, sent=exchange, next_is_silent=_needs(above, exchange))
        return first, replace(self, report=replace(self.report, input=above), sources=())


def _needs(node: PlanNode, exchange: Exchange) -> bool:
    """Return whether a node has no rows if an exchange below it has none."""
    match node:
        case Exchange():
            return node is exchange
        case Group(input=source, keys=keys):
            return bool(keys) and _needs(source, exchange)
        case Filter(input=source) | Extend(input=source) | Project(input=source):
            return _needs(source, exchange)
        case Distinct(input=source):
            return _needs(source, exchange)
        case Join():
            return any(_needs(each, exchange) for each in node.inputs)
        case LeftJoin() | AntiJoin():
            return _needs(node.inputs[0], exchange)
        case _:
            return False


def program_of(
    query: ContinuousQuery,
    *,
    streams: Sequence[str] = (),
    facts: StaticFacts = NOTHING_KNOWN,
    template: QueryTemplate | None = None,
    incremental: bool = True,
) -> Program:
    """The program of a query.

    Args:
        query: The query, preferably optimised.
        streams: All streams; only windows over a stream variable need them.
        facts: Known facts about static data.
        template: The template, if the query is one; answers then name their queries.
        incremental: False to evaluate the query from scratch at every report; for comparison.

    Raises:
        UnsupportedError: the query is a DESCRIBE.
        PlanError: its windows do not fit together.
    """
    check_windows(query)
    if isinstance(query.form, DescribeForm):
        raise UnsupportedError(
            "DESCRIBE is not kept up to date over windows",
            hint="Use CONSTRUCT and say which triples are wanted.",
            span=query.span,
        )
    reason = "asked for"
    if incremental:
        can_be_eager = is_eager(query) and needs_content(query.pattern)
        for eager in (True, False) if can_be_eager else (False,):
            timed = template is not None and not template.one_since
            planner = IncrementalPlanner(query, streams, facts, eager=eager, timed=timed)
            found = _incremental(planner, template)
            if planner.obstacles:
                continue
            if eager and timed and not _parts_meet(found):
                planner = IncrementalPlanner(query, streams, facts, eager=True)
                found = _incremental(planner, template)
            return found
        reason = planner.obstacles[0]
    planner = IncrementalPlanner(query, streams, facts, eager=False)
    return _recomputed(planner, reason, template)


def _parts_meet(program: Program) -> bool:
    """Whether an answer may have several parts, or another time than its one part."""
    return any(
        isinstance(node, Join | LeftJoin | AntiJoin)
        and sum(any(isinstance(below, Window) for below in walk(each)) for each in node.inputs) > 1
        for node in program.nodes
    ) or any(isinstance(each.scope, PastScope) for each in program.windows)


def _incremental(planner: IncrementalPlanner, template: QueryTemplate | None) -> Program:
    query = planner.query
    # An order without LIMIT matters only if reports are given as a whole.
    modifiers, inner = modifiers_of(query.pattern, orders=query.output is OutputOperator.RSTREAM)
    root = planner.plan(inner)
    mode = Mode.DIFFERENCES
    if isinstance(query.form, AskForm) or modifiers:
        mode = Mode.WHOLE
        if modifiers and not isinstance(query.form, SelectForm | ConstructForm):
            planner.obstacles.append("LIMIT or OFFSET under ASK")
    elif planner.eager:
        mode = Mode.EAGER
    elif query.output is OutputOperator.RSTREAM:
        mode = Mode.EVERYTHING
    is_reported_whole = (
        query.output is OutputOperator.RSTREAM
        or isinstance(query.form, AskForm)
        or not needs_content(query.pattern)
    )
    not_shared = ""
    if template is not None and not template.one_since and not planner.eager:
        not_shared = _why_not_shared(query, mode)
        if not not_shared:
            try:
                routes = RoutePlanner(tuple(planner.instants), template.parameters)
                root = routes.root(root)
            except CannotRouteError as error:
                not_shared = str(error)
    # A router needs more columns than the answers have.
    columns = (
        *answer_variables(query),
        *(template.parameters if template is not None else ()),
        *(variable for _, variable in planner.instants if planner.eager),
        *((CLASS,) if CLASS in root.variables else ()),
    )
    found = _program(planner, root, mode, columns, track=is_reported_whole)
    found = replace(
        found,
        template=template,
        instants=tuple(planner.instants) if planner.eager else (),
        not_shared=not_shared,
    )
    if not modifiers:
        return found
    modified = tuple(sorted(in_scope(inner, query)))
    report = replace(found.report, modifiers=tuple(modifiers), modified=modified)
    return replace(found, report=report)


def _why_not_shared(query: ContinuousQuery, mode: Mode) -> str:
    """Why members with other windows report at other instants, or nothing."""
    if mode is Mode.WHOLE:
        return "ASK, ORDER BY and LIMIT look at each report as a whole"
    if not needs_content(query.pattern) and not reports_on_close(query):
        return "it has answers while its windows are empty"
    if any(isinstance(each.scope, CountScope) for each in query.windows):
        return "its count windows begin with the elements that it sees"
    if mode is Mode.EVERYTHING and not reports_on_close(query):
        return "RSTREAM without a step reports whenever its own windows change"
    if mode is Mode.DIFFERENCES and query.report.non_empty_only:
        return "it reports only while its own windows have content"
    return ""


def _recomputed(
    planner: IncrementalPlanner, reason: str, template: QueryTemplate | None
) -> Program:
    query = planner.query
    sources = _sources(planner)
    windows = (
        *(planner.triples(source, timed=True) for source in sources),
        *(
            planner.triples(source, timed=True, graph=GRAPH_NAME)
            for source in sources
            if planner.has_graphs(source)
        ),
    )
    columns = answer_variables(query)
    root = Recompute(query, windows, columns, reason)
    return replace(
        _program(planner, root, Mode.WHOLE, columns, track=True),
        eager=False,
        why_not=reason,
        template=template,
    )


def _program(
    planner: IncrementalPlanner,
    root: PlanNode,
    mode: Mode,
    columns: tuple[Variable, ...],
    *,
    track: bool,
) -> Program:
    query = planner.query
    sources = _sources(planner)
    on_close = reports_on_close(query)
    is_tracked = query.report.non_empty_only or (track and not on_close)
    report = Report(
        root,
        mode,
        query.output,
        columns,
        derivations=compares_derivations(query),
        tracked=tuple(each for source in sources if is_tracked for each in planner.content(source)),
        on_close=on_close,
    )
    return Program(
        query,
        tuple(planner.streams),
        report,
        sources,
        eager=planner.eager,
    )


def _sources(planner: IncrementalPlanner) -> tuple[Source, ...]:
    return tuple(
        source
        for number in range(len(planner.query.windows))
        for source in planner.sources_of(number)
    )
