"""What a query means and how it is answered, as plain data: `quadweir explain` and the service."""

from __future__ import annotations

from typing import Any

from quadweir.algebra.analyze import analyze, duration
from quadweir.algebra.query import (
    AskForm,
    ConstructForm,
    ContinuousQuery,
    DescribeForm,
    SelectForm,
)
from quadweir.algebra.render import render
from quadweir.algebra.streams import ReportPolicy
from quadweir.algebra.windows import CountScope, NowScope, PastScope, Scope, TimeScope
from quadweir.entailment.needs import needs_of
from quadweir.entailment.schema import Schema
from quadweir.entailment.table import Table
from quadweir.optimize.pipeline import optimize
from quadweir.plan.describe import describe
from quadweir.plan.query import plan_query
from quadweir.syntax.parser import TITLES


def planned(query: ContinuousQuery, shards: int | None = None, schema: Schema | None = None) -> str:
    """How a query runs, as far as that is known without its streams and static data."""
    found = plan_query(
        optimize(query).query,
        streams=(),
        table=Table.of(schema, needs_of(query)) if schema is not None else None,
    )
    return describe(found, shards=shards, algebra=False)


def explanation(query: ContinuousQuery, dialect: str, *, steps: bool = False) -> dict[str, Any]:
    """Everything that `explain` shows, as plain data."""
    found = analyze(query)
    optimized = optimize(query)
    facts: dict[str, Any] = {
        "dialect": TITLES.get(dialect, dialect),
        "name": query.name,
        "answers": _answers(query),
        "output": query.output.name if query.windows else None,
        "compares": found.compares if query.windows else None,
        "report": _report(query),
        "windows": [
            {
                "name": window.name.value,
                "stream": str(window.stream),
                "scope": scope_in_words(window.scope),
                "content": window.content.value,
                "event_time": window.event_time.value if window.event_time is not None else None,
                "is_read": window.name in found.windows_read,
                "in_default_graph": window.name in query.default_graph_windows,
                "state": state.text,
                "bounded": state.bounded,
            }
            for window, state in zip(query.windows, found.state, strict=True)
        ],
        "default_graphs": [graph.value for graph in query.default_graphs],
        "named_graphs": [graph.value for graph in query.named_graphs],
        "monotonic": found.monotonic,
        "static": [render(part) for part in optimized.static],
        "algebra": render(query),
        "optimized": render(optimized.query),
        "rules": list(dict.fromkeys(step.rule for step in optimized.steps if step.changed)),
    }
    if steps:
        facts["steps"] = [
            {"phase": step.phase, "rule": step.rule, "algebra": render(step.query)}
            for step in optimized.steps
            if step.changed
        ]
    return facts


def _answers(query: ContinuousQuery) -> str:

    match query.form:
        case SelectForm(variables=variables):
            return "SELECT " + (" ".join(map(str, variables)) or "*")
        case ConstructForm(template=template):
            return f"CONSTRUCT of {len(template)} triple{'' if len(template) == 1 else 's'}"
        case AskForm():
            return "ASK"
        case DescribeForm(targets=targets):
            return "DESCRIBE " + (" ".join(map(str, targets)) or "*")


def _report(query: ContinuousQuery) -> str:

    if not query.windows:
        return "once"
    if query.tick.every_ms is not None:
        text = f"every {duration(query.tick.every_ms)}"
    elif query.report.policy is ReportPolicy.ON_CHANGE:
        text = "on change: whenever an element enters or leaves a window"
    else:
        text = "on close: whenever a window with a step closes"
    silent = ", if some window is not empty" if query.report.non_empty_only else ""
    return text + silent


def scope_in_words(scope: Scope) -> str:
    """The content of a window at an instant t, in words."""
    match scope:
        case TimeScope():
            text = f"the last {duration(scope.range_ms)}"
            step = scope.step_ms
        case PastScope():
            text = f"from {duration(scope.from_ms)} ago to {duration(scope.to_ms)} ago"
            step = scope.step_ms
        case CountScope():
            text = f"the last {scope.size} {scope.unit.value}"
            return text if scope.step is None else f"{text}, evaluated every {scope.step}"
        case NowScope():
            return "the present instant"
        case _:
            return "everything so far"
    if step is None:
        return text
    if isinstance(scope, TimeScope) and scope.while_open:
        return (
            f"the window of {duration(scope.range_ms)} that closes next, one every {duration(step)}"
        )
    first = ", full ones only" if isinstance(scope, TimeScope) and scope.full else ""
    start = f", from {scope.origin_ms} on" if scope.origin_ms else ""
    return f"{text}, evaluated every {duration(step)}{start}{first}"
