"""Plan nodes to operators: one operator for each node, or the few that a node is made of.

What runs was decided before (`quadweir.plan`); here it is only lowered. Nodes that are equal share an
operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never, final

import numpy as np

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import solve
from quadweir.algebra.expressions import Expression
from quadweir.algebra.patterns import Values
from quadweir.algebra.windows import CountScope
from quadweir.kernel import distinct, keynegation, multijoin, negation, paths, route, stateless
from quadweir.kernel.aggregate import Aggregate
from quadweir.kernel.arrays import Ints
from quadweir.kernel.clocks import CountClock, TimeClock
from quadweir.kernel.commonoperators import CommonOperators
from quadweir.kernel.countwindow import CountedLeaf
from quadweir.kernel.dataflow import Dataflow, part
from quadweir.kernel.dictionary import Dictionary, DictionaryScope
from quadweir.kernel.exchange import ReceivedChanges
from quadweir.kernel.fan import Fan
from quadweir.kernel.layout import Arrays
from quadweir.kernel.relation import Operator
from quadweir.kernel.staticrelations import FixedRelation, ShardShare, StaticSource
from quadweir.kernel.timewindow import TimedLeaf
from quadweir.plan.bounds import find_retained
from quadweir.plan.canonical import Canonicalizer
from quadweir.plan.common import core_of
from quadweir.plan.facts import StaticFacts
from quadweir.plan.nodes import (
    AntiJoin,
    Closure,
    Distinct,
    Exchange,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    PlanNode,
    Project,
    Recompute,
    Route,
    StaticRelation,
    Union,
    Window,
    walk,
)
from quadweir.plan.program import Program
from quadweir.plan.routes import is_read_at_once
from quadweir.terms import Variable


@final
class Builder:
    """Makes the dataflow of one stage of a query.

    Args:
        program: The nodes.
        static: The static data as the query sees it.
        dictionary: The shard's dictionary.
        layout: What `Dataflow.layout` returned for the same program and static data.
        share: What this shard has of static relations that are divided.
        common: The operators that several programs share, if they do.
        scope: The terms that operators hold that are not common.
        key: The variable by which rows are sharded; only common operators depend on it.
    """

    def __init__(
        self,
        program: Program,
        static: StaticSource,
        dictionary: Dictionary,
        *,
        layout: Arrays,
        share: ShardShare | None,
        common: CommonOperators | None = None,
        scope: DictionaryScope | None = None,
        key: Variable | None = None,
    ) -> None:
        self.dataflow = Dataflow() if common is None else common.dataflow
        self.received: ReceivedChanges | None = None
        """What takes the changes of the stage before, if there is one."""
        self._program = program
        self._static = static
        self._whole = dictionary
        self._dictionary = dictionary if scope is None else scope
        self._layout = layout
        self._share = share
        self._operators: dict[PlanNode, Operator] = {}
        self._retained = find_retained(program)
        self._open = program.template.windows if program.template is not None else ()
        self.routes: list[route.Route | Fan] = []
        """What hands rows to classes of the members of a template."""
        self.used: list[str] = []
        """The names of the common operators that the program reads."""
        self._common = common
        self._canonical = Canonicalizer(self._open, eager=program.eager, key=key)
        self._core = core_of(program) if common is not None else frozenset()

    def build(self) -> Dataflow:
        """Lower all nodes, each after its inputs."""
        if self._common is not None:
            for node in (self._program.root, *self._program.tracked):
                self._lower_all(node)
            return self.dataflow
        for node in self._program.nodes:
            self._operators[node] = self._lower(node)
        if self._program.report.on_close and self._program.received is None:
            # The clocks of count windows tell when they close, whether anything matches or not.
            for source in self._program.sources:
                scope = self._program.query.windows[source.window].scope
                if isinstance(scope, CountScope):
                    self.dataflow.clocks.setdefault(source, CountClock(scope))
        return self.dataflow

    def operator(self, node: PlanNode) -> Operator:
        """Return what a node was lowered to."""
        return self._operators[node]

    def leaf(self, window: Window) -> Operator:
        """Return what holds the matches of a window."""
        if window in self._core and self._common is not None:
            return self._common.operator(self._canonical.of(window).name)
        return self._operators[window]

    # --- operators that several programs share ---

    def _lower_all(self, node: PlanNode) -> Operator:
        """Lower a node and all below it, and use common operators where there are any."""
        if node not in self._operators:
            if node in self._core and not isinstance(node, StaticRelation):
                self._operators[node] = self._common_operator(node, self.used)
            else:
                for each in node.inputs:
                    self._lower_all(each)
                self._operators[node] = self._lower(node)
        return self._operators[node]

    def _common_operator(self, node: PlanNode, used: list[str]) -> Operator:
        """Return the operator of a node of a core, a new one if there is none.

        Args:
            node: The node.
            used: Takes the name of the operator.
        """
        common = self._common
        assert common is not None
        name, variables = self._canonical.of(node)
        if name not in common:
            below: list[str] = []
            first = len(self.dataflow.operators)
            before, scope = self._dictionary, DictionaryScope(self._whole)
            self._dictionary = scope
            self._lower_inputs(node, below)
            operator = self._lower(node)
            self._dictionary = before
            for each in node.inputs:
                if isinstance(each, StaticRelation):
                    del self._operators[each]
            common.add(name, operator, variables, first, below, scope)
        used.append(name)
        operator, theirs = common.use(name)
        leaf = operator
        if isinstance(leaf, TimedLeaf) and isinstance(node, Window):
            leaf.retain |= node in self._retained
        if theirs == variables:
            return operator
        names = dict(zip(theirs, variables, strict=True))
        return self.dataflow.add(stateless.Rename(operator, names), (operator,))

    def _inputs(self, node: PlanNode) -> tuple[PlanNode, ...]:
        """Return the inputs of a node; those of a common join are in the order of its name.

        Whichever template comes first makes the operator, and the state of a join refers to its inputs
        by their places.
        """
        if isinstance(node, Join) and node in self._core:
            return self._canonical.inputs(node)
        return node.inputs

    def _lower_inputs(self, node: PlanNode, used: list[str]) -> None:
        for each in self._inputs(node):
            if isinstance(each, StaticRelation):
                # It belongs to the operator that reads it, which indexes it.
                self._operators[each] = self._lower(each)
            elif isinstance(node, Join) and _has_join(each):
                # A join that begins later would have to begin with the results of this one.
                self._lower_inputs(each, used)
                self._operators[each] = self._lower(each)
            else:
                self._operators[each] = self._common_operator(each, used)

    # --- nodes ---

    def _lower(self, node: PlanNode) -> Operator:
        add, dictionary = self.dataflow.add, self._dictionary
        below = [self._operators[each] for each in self._inputs(node)] if _has_inputs(node) else []
        match node:
            case Window():
                return self._window(node)
            case StaticRelation():
                return self._relation(node)
            case Exchange():
                self.received = add(ReceivedChanges(node.variables, node.always, dictionary), ())
                return self.received
            case Filter(condition=condition):
                return self._filtered(below[0], condition)
            case Extend(variable=variable, expression=expression):
                return add(stateless.Extend(below[0], variable, expression, dictionary), below)
            case Project(kept=kept):
                if node in self._core:
                    kept = self._canonical.of(node).variables
                return add(stateless.Project(below[0], kept), below)
            case Distinct(variables=variables):
                return add(distinct.Distinct(below[0], variables, dictionary), below)
            case Group(keys=keys, aggregates=aggregates):
                return add(Aggregate(below[0], keys, aggregates, dictionary), below)
            case Closure(triple=triple, path=path, ends=ends):
                return add(paths.Closure(below[0], triple, path, ends, dictionary), below)
            case Route():
                return self._route(node, below[0])
            case Union():
                return add(stateless.Union(below), below)
            case Join():
                return self._join(below)
            case LeftJoin(condition=condition):
                left, right = below
                joined = self._join([left, right])
                pairs = joined if condition is None else self._filtered(joined, condition)
                unpaired = self._counted(left, joined, pairs, negated=True)
                return add(stateless.Union([pairs, unpaired]), [pairs, unpaired])
            case AntiJoin():
                return self._anti_join(node, *below)
            case Recompute():
                # The answers are made of its windows; it has no rows of its own.
                return below[0] if below else add(stateless.Union([]), [])
            case _:
                assert_never(node)

    def _window(self, node: Window) -> Operator:
        scope, match = node.scope, node.match
        if isinstance(scope, CountScope):
            clock = self.dataflow.clocks.setdefault(match.source, CountClock(scope))
            return self.dataflow.add_leaf(
                match, CountedLeaf(node.variables, clock, self._dictionary)
            )
        clock_of = TimeClock.of(scope)
        leaf = TimedLeaf(node.variables, clock_of, self._dictionary, eager=self._program.eager)
        leaf.retain = node in self._retained
        leaf.is_open = match.source.window in self._open
        return self.dataflow.add_leaf(match, leaf)

    def _route(self, node: Route, source: Operator) -> Operator:
        query = self._program.query
        parts = [
            (
                TimeClock.of(query.windows[window].scope),
                tuple(variable for place, variable in node.times if place == window),
            )
            for window in self._open
        ]
        fixed = tuple(variable for place, variable in node.times if place not in self._open)
        windows = [place for place, (_, times) in enumerate(parts) if times]
        operator: route.Route | Fan
        if (
            len(windows) == 1
            and not fixed
            and not node.parameters
            and is_read_at_once(node, self._program)
        ):
            clock, times = parts[windows[0]]
            operator = Fan(source, clock, windows[0], times, node.variables)
        else:
            operator = route.Route(source, parts, fixed, node.parameters, node.variables)
        self.routes.append(operator)
        return self.dataflow.add(operator, (source,))

    def _relation(self, node: StaticRelation) -> Operator:
        place = len(self.dataflow.operators)
        relation = relation_of(node, self._static)
        if node in self._core:
            relation = relation.in_order(self._canonical.of(node).variables)
        fixed = stateless.Static(
            relation,
            self._dictionary,
            part(f"operator.{place}.", self._layout),
            (node.key, self._share) if node.key is not None and self._share is not None else None,
        )
        return self.dataflow.add(fixed, ())

    def _filtered(self, source: Operator, condition: Expression) -> Operator:
        return self.dataflow.add(stateless.Filter(source, condition, self._dictionary), (source,))

    def _join(self, parts: Sequence[Operator]) -> multijoin.Join:
        # The same rows twice: the second time they are another view of them.
        rows = [each.source if isinstance(each, stateless.Rename) else each for each in parts]
        views = [
            self.dataflow.add(stateless.Project(each, each.variables), (each,))
            if rows[place] in rows[:place]
            else each
            for place, each in enumerate(parts)
        ]
        join = multijoin.Join(views, self._dictionary, eager=self._program.eager)
        return self.dataflow.add(join, views)

    # --- OPTIONAL, MINUS, EXISTS ---

    def _anti_join(self, node: AntiJoin, left: Operator, right: Operator) -> Operator:
        if node.keys is not None:
            compared: Operator
            if right.fixed:
                compared = negation.FixedNegation(left, right, node.keys, node.negated)
            else:
                compared = keynegation.KeyNegation(
                    left, right, node.keys, node.negated, self._dictionary
                )
            return self.dataflow.add(compared, (left, right))
        joined = self._join([left, right])
        pairs: Operator = joined
        if node.shares:
            pairs = self._sharing(joined, left, right, node.shares)
        for condition in node.conditions:
            pairs = self._filtered(pairs, condition)
        return self._counted(left, joined, pairs, negated=node.negated)

    def _sharing(
        self,
        joined: multijoin.Join,
        left: Operator,
        right: Operator,
        variables: tuple[Variable, ...],
    ) -> Operator:
        """Keep the pairs of which both sides bind one of the variables."""

        def agree(found: Ints) -> np.ndarray:
            # Each side in an array of its own: compiled code has one form for all that read rows.
            lefts, rights = np.ascontiguousarray(joined.parts(found).T)
            result = np.zeros(len(found), dtype=bool)
            for variable in variables:
                result |= (left.column(variable, lefts) != 0) & (
                    right.column(variable, rights) != 0
                )
            return result

        return self.dataflow.add(stateless.RowFilter(joined, agree), (joined,))

    def _counted(
        self, left: Operator, joined: multijoin.Join, pairs: Operator, *, negated: bool
    ) -> Operator:
        """Count the pairs of each left row; `pairs` are what is left of those of `joined`."""

        def left_rows(rows: Ints) -> Ints:
            found: Ints = joined.parts(rows)[:, 0]
            return found

        counted = negation.Negation(
            left, pairs, left_rows, negated=negated, stateless=self._program.eager
        )
        return self.dataflow.add(counted, (left, pairs))


def relation_of(node: StaticRelation, static: StaticSource) -> FixedRelation:
    """Return the rows of a static relation, those of all shards."""
    if isinstance(node.query.pattern, Values):
        return FixedRelation.of_bag(node.variables, solve(node.query, Dataset()))
    return static.relation(node.query, node.variables)


def facts_of(program: Program, static: StaticSource) -> StaticFacts:
    """Count the solutions that the static relations of a program have."""
    return StaticFacts({each.query: relation_of(each, static).count for each in program.static})


def has_layout(program: Program) -> bool:
    """Return whether shards of a program can share what they make of static data."""
    return bool(program.static) and program.why_not is None


def _has_join(node: PlanNode) -> bool:
    return any(isinstance(each, Join) for each in walk(node))


def _has_inputs(node: PlanNode) -> bool:
    """What an exchange reads was computed in the stage before."""
    return not isinstance(node, Exchange)
