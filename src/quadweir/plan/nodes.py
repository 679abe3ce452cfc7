"""The nodes of a plan: what runs, as data that can be printed, compared and shared.

A plan is a tree. Its leaves are matches of triple patterns in streams and relations over static data;
its root is a `Report`. Two nodes that are equal do the same work, so a kernel runs them once. Every node
states what its rows bind, what it remembers and when it forgets it.

Nodes know neither Spark nor the kernel: `kernel/build.py` lowers them to operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import ClassVar, Final, TypeAlias, assert_never, final

from quadweir.algebra.expressions import Constant, Expression, VariableExpression
from quadweir.algebra.patterns import Aggregation, Path, Pattern, PatternTerm, TriplePattern
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.scopes import bound_by
from quadweir.algebra.solutions import is_time, time_variable
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.windows import AllScope, Scope
from quadweir.terms import IRI, Variable

MAX_INPUTS: Final = 12
"""The most inputs of a join: it tabulates every subset of them."""


GRAPH_NAME: Final = Variable("_:graph")
"""The variable of the graph's name, in windows that hold all triples of a stream."""
CLASS: Final = Variable("_:class")
"""The variable of the class of members that a row belongs to, above a `Route`."""


class BaseNode:
    """The base of all plan nodes: their name and their state.

    Each node also has `inputs`, the nodes whose rows it reads; `variables`, which its rows may
    bind; and `always`, which every row binds.
    """

    name: ClassVar[str]
    """Its name in `explain`."""
    remembers: ClassVar[str] = ""
    """Its state between two steps; empty if it has none."""
    forgets: ClassVar[str] = ""
    """When it forgets its state."""


# --- leaves -------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Source:
    """A window over one stream: the source of matches.

    `window` is the place of the window in the query. A window over a stream variable has a source
    for each stream.
    """

    window: int
    stream: str
    event_time: IRI | None


@final
@dataclass(frozen=True, slots=True)
class Match:
    """The matches of a pattern in a stream; every element, if there is no pattern.

    A match is given by the values of `variables`. Those of `times` are bound to the event time of the
    element, as an integer. Matches are `carried` if only the triples of elements count, without
    those that a schema derives. With a `graph`, only triples in that named graph count; if it is a
    variable, triples in any named graph count, and it is bound to the graph's name (W11). Without a
    `graph`, all triples count.
    """

    source: Source
    pattern: TriplePattern | None
    variables: tuple[Variable, ...]
    times: tuple[Variable, ...] = ()
    carried: bool = False
    graph: IRI | Variable | None = None


@final
@dataclass(frozen=True)
class Window(BaseNode):
    """The matches in the scope of a window.

    Spec: W1 to W8 of the semantics page.
    """

    match: Match
    scope: Scope

    name = "window"
    remembers = "the matches in it"
    forgets = "a match when it leaves the window"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return ()

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        return (*self.match.variables, *map(time_variable, self.match.times))

    @cached_property
    def always(self) -> frozenset[Variable]:
        return frozenset(self.variables)

    @property
    def is_endless(self) -> bool:
        """Whether nothing ever leaves it."""
        return isinstance(self.scope, AllScope)


@final
@dataclass(frozen=True)
class StaticRelation(BaseNode):
    """The solutions of a sub-pattern over static data, or of VALUES.

    Attributes:
        query: A query without windows; its solutions are the rows.
        variables: What the rows may bind.
        always: What every row binds, by the form of the pattern.
        key: If set, each shard holds only the rows whose value of this variable belongs to it.
    """

    query: ContinuousQuery
    variables: tuple[Variable, ...]
    always: frozenset[Variable]
    key: Variable | None = None

    name = "static relation"
    remembers = "its rows"
    forgets = "nothing; it is as large as the data it was made from"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return ()


@final
@dataclass(frozen=True)
class Exchange(BaseNode):
    """The changes of a node, sent from the shards of one stage to those of the next.

    Attributes:
        input: What the stage before computes.
        variables: The columns that are sent.
        key: What the rows are sharded by in the next stage; None if that has one shard.
    """

    input: PlanNode
    variables: tuple[Variable, ...]
    key: Variable | None

    name = "exchange"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return (self.input,)

    @cached_property
    def always(self) -> frozenset[Variable]:
        return self.input.always & frozenset(self.variables)


# --- one input ----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Filter(BaseNode):
    """The rows for which a condition is true."""

    input: PlanNode
    condition: Expression

    name = "filter"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return (self.input,)

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.input.variables

    @property
    def always(self) -> frozenset[Variable]:
        bound = bound_by(self.condition) & frozenset(self.variables)
        return self.input.always | bound


@final
@dataclass(frozen=True)
class Extend(BaseNode):
    """One more column, computed from the others."""

    input: PlanNode
    variable: Variable
    expression: Expression

    name = "extend"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return (self.input,)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        return (*self.input.variables, self.variable)

    @cached_property
    def always(self) -> frozenset[Variable]:
        match self.expression:
            case Constant():
                return self.input.always | {self.variable}
            case VariableExpression(variable=other) if other in self.input.always:
                return self.input.always | {self.variable}
            case _:
                return self.input.always


@final
@dataclass(frozen=True)
class Project(BaseNode):
    """Some of the columns, and all times."""

    input: PlanNode
    kept: tuple[Variable, ...]

    name = "project"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return (self.input,)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        below = self.input.variables
        return (*(v for v in self.kept if v in below), *(v for v in below if is_time(v)))

    @cached_property
    def always(self) -> frozenset[Variable]:
        return self.input.always & frozenset(self.variables)


@final
@dataclass(frozen=True)
class Distinct(BaseNode):
    """Each row once, as long as some row of the input is equal to it."""

    input: PlanNode

    name = "distinct rows"
    remembers = "each row with a count"
    forgets = "a row when its last equal goes"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return (self.input,)

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.input.variables

    @property
    def always(self) -> frozenset[Variable]:
        return self.input.always


@final
@dataclass(frozen=True)
class Group(BaseNode):
    """One row for each combination of the keys' values: the keys, and the values of aggregates."""

    input: PlanNode
    keys: tuple[Variable, ...]
    aggregates: tuple[Aggregation, ...]

    name = "group"
    remembers = "the values of each group"
    forgets = "a group when its last row goes"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return (self.input,)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        return (*self.keys, *(each.variable for each in self.aggregates))

    @cached_property
    def always(self) -> frozenset[Variable]:
        counts = (each.variable for each in self.aggregates if each.call.function == "COUNT")
        return (self.input.always & frozenset(self.keys)) | frozenset(counts)

    @property
    def is_total(self) -> bool:
        """Whether its state is only counts and sums over all rows."""
        return not self.keys and all(
            each.call.function in ("COUNT", "SUM", "AVG") and not each.call.distinct
            for each in self.aggregates
        )


@final
@dataclass(frozen=True)
class Closure(BaseNode):
    """The pairs of nodes that a repeated or skipped path connects in a graph.

    Attributes:
        input: The triples of the graph, each once.
        triple: The variables that hold subject, predicate and object there.
        path: The path.
        ends: Where it begins and ends.
    """

    input: PlanNode
    triple: tuple[Variable, Variable, Variable]
    path: Path
    ends: tuple[PatternTerm, PatternTerm]

    name = "path"
    remembers = "the edges, and the pairs of nodes they lead to"
    forgets = "an edge when it goes"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return (self.input,)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(dict.fromkeys(end for end in self.ends if isinstance(end, Variable)))

    @cached_property
    def always(self) -> frozenset[Variable]:
        return frozenset(self.variables)


@final
@dataclass(frozen=True)
class Route(BaseNode):
    """One row for each class of members whose windows admit a row of the input (paper 004).

    A class is all members of a template with the same window lengths that joined at the same
    instant. A row comes for a class when its latest part comes. It goes when its first part leaves
    that class's window.

    Attributes:
        input: Rows over the longest windows.
        times: For each match below, the place of its window and the variable of its time.
        parameters: The parameters of the template that every row binds.
    """

    input: PlanNode
    times: tuple[tuple[int, Variable], ...]
    parameters: tuple[Variable, ...]

    name = "route"
    remembers = "each row with its class"
    forgets = "a row when it leaves the windows of its class"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return (self.input,)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        hidden = {variable for _, variable in self.times}
        return (*(each for each in self.input.variables if each not in hidden), CLASS)

    @cached_property
    def always(self) -> frozenset[Variable]:
        return (self.input.always & frozenset(self.variables)) | {CLASS}


# --- several inputs -----------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Union(BaseNode):
    """The rows of all inputs."""

    inputs: tuple[PlanNode, ...]

    name = "union"

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        return _all_variables(self.inputs)

    @cached_property
    def always(self) -> frozenset[Variable]:
        first, *rest = (each.always for each in self.inputs)
        return first.intersection(*rest)


@final
@dataclass(frozen=True)
class Join(BaseNode):
    """Every way to put compatible rows of all inputs together that share an instant."""

    inputs: tuple[PlanNode, ...]

    name = "join"
    remembers = "where the rows of its inputs are, and its results"
    forgets = "a result when a part of it goes"

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        return _all_variables(self.inputs)

    @cached_property
    def always(self) -> frozenset[Variable]:
        return frozenset().union(*(each.always for each in self.inputs))


@final
@dataclass(frozen=True)
class LeftJoin(BaseNode):
    """The pairs of both sides for which the condition is true, and the left rows that are in none."""

    left: PlanNode
    right: PlanNode
    condition: Expression | None

    name = "left join"
    remembers = "the pairs, and a counter for each left row"
    forgets = "a pair when a side of it goes, a left row when it goes"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return (self.left, self.right)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        return _all_variables(self.inputs)

    @property
    def always(self) -> frozenset[Variable]:
        return self.left.always


@final
@dataclass(frozen=True)
class AntiJoin(BaseNode):
    """The left rows without a partner on the right; if `negated` is False, those with one.

    Attributes:
        left: The rows to choose from.
        right: The rows that may be partners.
        conditions: What has to be true of a pair of compatible rows for it to count.
        shares: If there are any, a pair counts only if both sides bind one of these (MINUS).
        negated: False for a semi-join.
    """

    left: PlanNode
    right: PlanNode
    conditions: tuple[Expression, ...] = ()
    shares: tuple[Variable, ...] = ()
    negated: bool = True

    name = "anti join"
    remembers = "a counter for each left row, or the left rows by key"
    forgets = "a left row when it goes, a key with its last row"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return (self.left, self.right)

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.left.variables

    @property
    def always(self) -> frozenset[Variable]:
        return self.left.always

    @cached_property
    def keys(self) -> tuple[Variable, ...] | None:
        """The variables by which both sides are compared; None if pairs must be inspected.

        Keys are enough if no condition uses a pair, and both sides always bind their shared
        variables.
        """
        shared = shared_variables(self.left, self.right)
        if self.conditions or not shared <= self.left.always & self.right.always:
            return None
        return tuple(each for each in self.left.variables if each in shared)


# --- the root -----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Recompute(BaseNode):
    """The solutions of a query, evaluated from scratch at every report.

    Attributes:
        query: The query.
        windows: The triples of its windows, with their times.
        variables: The columns of an answer.
        reason: Why it is not kept up to date.
    """

    query: ContinuousQuery
    windows: tuple[Window, ...]
    variables: tuple[Variable, ...]
    reason: str

    name = "recompute"
    remembers = "the triples in the windows"
    forgets = "a triple when its window does"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return self.windows

    @property
    def always(self) -> frozenset[Variable]:
        return frozenset()


class Mode(Enum):
    """When and how answers are made of solutions."""

    EAGER = "as soon as their parts have arrived"
    DIFFERENCES = "what a report has more or less than the one before"
    EVERYTHING = "all solutions of each report"
    WHOLE = "each report as a whole"


@final
@dataclass(frozen=True)
class Report(BaseNode):
    """The answers of a query.

    Attributes:
        input: Its solutions.
        mode: How answers are made of them.
        output: RSTREAM, ISTREAM or DSTREAM.
        columns: The variables of an answer; of a template also its parameters and times.
        modifiers: ORDER BY, LIMIT and the operators above them, the innermost first.
        modified: The variables that modifiers use.
        derivations: Whether reports are compared by the derivations of solutions (A2).
        tracked: The nodes that change with the content of each window, if reports depend on that.
        on_close: Whether it reports at close instants rather than when something changes (R2).
    """

    input: PlanNode
    mode: Mode
    output: OutputOperator
    columns: tuple[Variable, ...]
    modifiers: tuple[Pattern, ...] = ()
    modified: tuple[Variable, ...] = ()
    derivations: bool = False
    tracked: tuple[PlanNode, ...] = ()
    on_close: bool = False

    name = "report"
    remembers = "the report before, where two are compared"
    forgets = "it at the next report"

    @property
    def inputs(self) -> tuple[PlanNode, ...]:
        return (self.input, *self.tracked)

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.columns

    @property
    def always(self) -> frozenset[Variable]:
        return self.input.always & frozenset(self.columns)

    @property
    def compares_values(self) -> bool:
        """Whether reports are compared by their solutions, rather than by derivations."""
        return self.mode is Mode.DIFFERENCES and not self.derivations

    @property
    def tells_reports(self) -> bool:
        """Whether the report instants are known before the solutions are."""
        return self.on_close or bool(self.tracked)


PlanNode: TypeAlias = (
    Window
    | StaticRelation
    | Exchange
    | Filter
    | Extend
    | Project
    | Distinct
    | Group
    | Closure
    | Route
    | Union
    | Join
    | LeftJoin
    | AntiJoin
    | Recompute
)


def walk(*roots: PlanNode | Report) -> Iterator[PlanNode | Report]:
    """All nodes at and below the given ones, each once and after its inputs.

    Nodes below an exchange belong to another stage and are left out.
    """
    seen: set[PlanNode | Report] = set()

    def below(node: PlanNode | Report) -> Iterator[PlanNode | Report]:
        if node in seen:
            return
        if not isinstance(node, Exchange):
            for each in node.inputs:
                yield from below(each)
        seen.add(node)
        yield node

    for root in roots:
        yield from below(root)


def shared_variables(left: PlanNode, right: PlanNode) -> frozenset[Variable]:
    """The variables that both may bind, without times."""
    return frozenset(v for v in left.variables if v in right.variables and not is_time(v))


def keeps_its_rows(node: PlanNode) -> bool:
    """Whether the rows of an eager node can be read as long as they can be joined."""
    match node:
        case StaticRelation() | Window():
            return True
        case Filter(input=source) | Extend(input=source) | Project(input=source):
            return keeps_its_rows(source)
        case Union(inputs=inputs):
            return all(map(keeps_its_rows, inputs))
        case _:
            return False


def _all_variables(nodes: tuple[PlanNode, ...]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(variable for each in nodes for variable in each.variables))


def rewrite(node: PlanNode, change: Callable[[PlanNode], PlanNode]) -> PlanNode:
    """Rewrite nodes from the leaves up; a node with unchanged inputs is the same object."""
    match node:
        case (
            Filter()
            | Extend()
            | Project()
            | Distinct()
            | Group()
            | Closure()
            | Route()
            | Exchange()
        ):
            below = rewrite(node.input, change)
            node = node if below is node.input else replace(node, input=below)
        case Union() | Join():
            inputs = tuple(rewrite(each, change) for each in node.inputs)
            same = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
            node = node if same else replace(node, inputs=inputs)
        case LeftJoin() | AntiJoin():
            left, right = rewrite(node.left, change), rewrite(node.right, change)
            same = left is node.left and right is node.right
            node = node if same else replace(node, left=left, right=right)
        case Window() | StaticRelation() | Recompute():
            pass
        case _:
            assert_never(node)
    return change(node)
