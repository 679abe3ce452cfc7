"""The stages of a query: the program of each, and how rows reach its shards.

A query has one stage, or several in a row. Each stage but the last sends its changes to the next,
which may be sharded by another variable (`nodes.Exchange`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from quadweir.algebra.scopes import mentioned
from quadweir.algebra.solutions import is_time
from quadweir.plan.nodes import (
    Distinct,
    Exchange,
    Extend,
    Filter,
    Group,
    PlanNode,
    Project,
    StaticRelation,
    rewrite,
    walk,
)
from quadweir.plan.program import Program
from quadweir.plan.shardkey import IN_ONE_SHARD, Placed, ShardKey
from quadweir.terms import Variable


@final
@dataclass(frozen=True)
class Stage:
    """One stage of a query.

    Attributes:
        program: The program of each shard.
        key: The variable by which its rows are sharded; None for one shard.
        reason: Why.
        replicated: The places of matches that go to every shard although there is a key.
    """

    program: Program
    key: Variable | None
    reason: str
    replicated: frozenset[int] = frozenset()

    def shards(self, most: int) -> int:
        """How many of the available shards it can use."""
        return most if self.key is not None else 1

    @property
    def layout(self) -> str:
        """The sharding of its rows, in short."""
        if self.key is None:
            return IN_ONE_SHARD
        everywhere = ", ".join(map(str, sorted(self.replicated)))
        also = f", matches {everywhere} in every shard" if everywhere else ""
        return f"by {self.key}{also}"


def stages_of(
    program: Program, key: ShardKey, placed: Mapping[StaticRelation, Placed]
) -> tuple[Stage, ...]:
    """Split a query into stages, and mark the static relations that are divided among shards."""

    def divide(node: PlanNode) -> PlanNode:
        if isinstance(node, StaticRelation) and placed[node].is_divided:
            return replace(node, key=key.variable)
        return node

    root = rewrite(program.root, divide)
    divided = replace(program, report=replace(program.report, input=root))
    if key.cut is None:
        return (Stage(divided, key.variable, key.reason, key.replicated),)
    cut = rewrite(key.cut, divide)
    exchange = Exchange(cut, _sent(divided, cut), key.second)

    first, second = divided.stages(exchange, _above(root, cut, exchange))
    return (
        Stage(first, key.variable, key.reason, key.replicated),
        Stage(second, key.second, key.second_reason),
    )


def _above(node: PlanNode, cut: PlanNode, exchange: Exchange) -> PlanNode:
    """Replace a node by an exchange; all nodes above it have one input."""
    if node == cut:
        return exchange
    assert isinstance(node, Filter | Extend | Project | Group | Distinct)
    return replace(node, input=_above(node.input, cut, exchange))


def _sent(program: Program, cut: PlanNode) -> tuple[Variable, ...]:
    """The columns to send to the next stage: those that nodes above may use."""
    report = program.report
    above = set(walk(program.root)) - set(walk(cut))
    variables = tuple(each for each in cut.variables if not is_time(each))
    used = {*report.columns, *report.modified}
    for node in above:
        match node:
            case Distinct():
                return variables
            case Filter(condition=expression) | Extend(expression=expression):
                used |= mentioned(expression)
            case Group(keys=keys, aggregates=aggregates):
                calls = [each.call for each in aggregates]
                if any(call.distinct and call.argument is None for call in calls):
                    # COUNT(DISTINCT *) compares whole solutions.
                    return variables
                used |= {*keys}
                used |= {v for call in calls if call.argument for v in mentioned(call.argument)}
            case Project(kept=kept):
                used |= {*kept}
            case _:
                pass
    return tuple(each for each in variables if each in used)
