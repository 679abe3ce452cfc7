"""The nodes of a plan as an indented tree, for `explain --plan` and for comparing plans."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import assert_never

from quadweir.algebra.expressions import Expression
from quadweir.algebra.patterns import Aggregation, TriplePattern
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.render import render, render_aggregate, render_expression, render_path
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
    Match,
    PlanNode,
    Project,
    Recompute,
    Report,
    Route,
    StaticRelation,
    Union,
    Window,
)
from quadweir.plan.program import Program
from quadweir.terms import Variable


def render_nodes(program: Program) -> list[str]:
    """The tree of a stage, one node a line; matches, static relations and exchanges are its leaves.

    A node that occurs several times is written each time; it runs once.
    """
    numbers = {window: place for place, window in enumerate(program.windows)}
    lines: list[str] = []

    def put(node: PlanNode, depth: int) -> None:
        lines.append("  " * depth + _line(node, numbers, program))
        if isinstance(node, Exchange):
            return
        for each in node.inputs:
            put(each, depth + 1)

    sent = program.sent
    if sent is not None:
        to = f"by {sent.key}" if sent.key is not None else "to one shard"
        lines.append(f"send {_names(sent.variables)} {to}")
    else:
        lines.append(_report(program.report))
    put(program.root, 1)
    for each in program.tracked:
        put(each, 1)
    return lines


def digest_of(program: Program) -> str:
    """The name of a stage: two stages with the same name run the same nodes."""
    lines = [render(program.query), *program.streams, *render_nodes(program)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def render_window(node: Window, query: ContinuousQuery) -> str:
    """Name a window and what is matched in it, for messages."""
    return f"the window {query.windows[node.match.source.window].name} of {_matched(node.match)}"


def _matched(match: Match) -> str:
    pattern = "each element" if match.pattern is None else _triple(match.pattern)
    return pattern if match.graph is None else f"GRAPH {match.graph} {{ {pattern} }}"


def _line(node: PlanNode, numbers: dict[Window, int], program: Program) -> str:
    match node:
        case Window(match=match):
            name = program.query.windows[match.source.window].name
            return f"window {name} of match {numbers[node]}: {_matched(match)}"
        case StaticRelation(query=query, key=key):
            by = f" by {key}" if key is not None else ""
            return f"static {_names(node.variables)}{by}: {_on_one_line(render(query.pattern))}"
        case Exchange():
            return f"receive {_names(node.variables)}"
        case Filter(condition=condition):
            return f"filter {_expression(condition)}"
        case Extend(variable=variable, expression=expression):
            return f"extend {variable} = {_expression(expression)}"
        case Project():
            return f"project {_names(node.variables)}"
        case Distinct():
            return f"distinct {_names(node.variables)}"
        case Group(keys=keys, aggregates=aggregates):
            return f"group by {_names(keys)}: {', '.join(map(_aggregation, aggregates))}"
        case Closure(path=path, ends=(start, end)):
            return f"path {_on_one_line(render_path(path))} from {start} to {end}"
        case Route(parameters=parameters):
            by = f" by {_names(parameters)}" if parameters else ""
            return f"route to classes of members{by}"
        case Union():
            return "union"
        case Join():
            return f"join {_names(node.variables)}"
        case LeftJoin(condition=condition):
            also = f" if {_expression(condition)}" if condition is not None else ""
            return f"left join{also}"
        case AntiJoin(keys=keys, conditions=conditions, negated=negated):
            kind = "anti join" if negated else "semi join"
            by = f" by {_names(keys)}" if keys is not None else ""
            also = "".join(f" if {_expression(each)}" for each in conditions)
            return f"{kind}{by}{also}"
        case Recompute(reason=reason):
            return f"recompute at every report: {reason}"
        case _:
            assert_never(node)


def _report(report: Report) -> str:
    when = "on close" if report.on_close else "on change"
    return f"report {_names(report.columns)} {when}: {report.mode.value}"


def _aggregation(aggregation: Aggregation) -> str:
    return f"{aggregation.variable} = {_on_one_line(render_aggregate(aggregation.call))}"


def _expression(expression: Expression) -> str:
    return _on_one_line(render_expression(expression))


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _triple(pattern: TriplePattern) -> str:
    return f"{pattern.subject} {pattern.predicate} {pattern.object}"


def _names(variables: Iterable[Variable]) -> str:
    return f"({' '.join(map(str, variables))})"
