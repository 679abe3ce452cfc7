"""`quadweir explain`: show what a query means and how it will be answered."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadweir.commands.output import print_json
from quadweir.commands.querytext import (
    BaseOption,
    ContentOption,
    DialectOption,
    FullWindowsOption,
    QueryArgument,
    ReportOption,
    StartOption,
    read_query,
    read_text,
    windowing_of,
)
from quadweir.commands.schemas import SchemaOption, schema_of, tell_of
from quadweir.errors import SourceError, UsageError

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery
    from quadweir.algebra.windows import Scope
    from quadweir.entailment.schema import Schema


def explain(
    query: QueryArgument,
    dialect: DialectOption = None,
    content: ContentOption = None,
    base: BaseOption = None,
    start: StartOption = None,
    full_windows: FullWindowsOption = False,
    report: ReportOption = None,
    steps: Annotated[
        bool, typer.Option("--steps", help="Also show the tree after every rule that changed it.")
    ] = False,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Also show how it runs: what is matched, how it is sharded and why."
        ),
    ] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="With --plan: also show Spark's own plan.")
    ] = False,
    shards: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="With --plan: the number of shards.")
    ] = None,
    schema: SchemaOption = None,
    entailment: Annotated[
        bool,
        typer.Option(
            "--entailment",
            help="With --schema: also show the epsilon network of the schema, full and reduced.",
        ),
    ] = False,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", help="With --entailment: draw both, too."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show what a query means: dialect, windows, reports, algebra, static parts, state, plan.

    Nothing is run or fetched.
    """
    from quadweir.algebra.warn import warnings_of
    from quadweir.entailment.close import refuse_transitive

    if spark and not plan:
        raise UsageError("--spark goes with --plan", hint="Add --plan.")
    if entailment and not schema:
        raise UsageError("--entailment goes with --schema", hint="Add --schema FILE.")
    if svg is not None and not entailment:
        raise UsageError("--svg goes with --entailment", hint="Add --entailment.")
    text, source = read_text(query)
    read = read_query(
        text,
        source,
        dialect=dialect,
        content=content,
        base=base,
        allow=("FROM", "SERVICE"),
        windowing=windowing_of(start, full_windows, report),
    )
    tell_of(warnings_of(read))
    facts = explanation(read, dialect or _detected(text), steps=steps)
    axioms = schema_of(schema or ())
    if axioms is not None:
        refuse_transitive(axioms, read)
    if entailment and axioms is not None:
        facts["entailment"] = _epsilon_networks(axioms, read, svg)
    if plan:
        facts["plan"] = planned(read, shards, axioms)
    if spark:
        facts["spark"] = _spark_plan(read, shards, axioms)
    if as_json:
        print_json(facts)
    else:
        print(as_text(facts), end="")


def _detected(text: str) -> str:
    from quadweir.syntax.scan import detect

    return detect(text)


def _epsilon_networks(schema: Schema, query: ContinuousQuery, svg: Path | None) -> str:
    """Describe the epsilon networks of a schema, and draw them to a file if one is given."""
    from quadweir.entailment.draw import epsilon_svg, epsilon_text
    from quadweir.entailment.epsilon import EpsilonNetwork
    from quadweir.entailment.needs import needs_of
    from quadweir.entailment.table import Table

    full = EpsilonNetwork.full(schema)
    reduced = EpsilonNetwork.reduced(Table.of(schema, needs_of(query)))
    if svg is not None:
        drawing = epsilon_svg(full, reduced)
        try:
            svg.write_text(drawing, encoding="utf-8")
        except OSError as error:
            raise SourceError(f"cannot write {svg}: {error.strerror}") from None
    return epsilon_text(full, reduced)


def planned(query: ContinuousQuery, shards: int | None = None, schema: Schema | None = None) -> str:
    """How a query runs, as far as that is known without its streams and static data."""
    from quadweir.entailment.needs import needs_of
    from quadweir.entailment.table import Table
    from quadweir.optimize.pipeline import optimize
    from quadweir.plan.describe import describe
    from quadweir.plan.query import plan_query

    found = plan_query(
        optimize(query).query,
        streams=(),
        table=Table.of(schema, needs_of(query)) if schema is not None else None,
    )
    return describe(found, shards=shards, algebra=False)


def _spark_plan(query: ContinuousQuery, shards: int | None, schema: Schema | None) -> str:
    """Spark's own plan over empty streams: it depends on the query alone."""
    from quadweir import rows
    from quadweir.runtime.match.feeds import Feed
    from quadweir.runtime.query import RegisteredQuery
    from quadweir.runtime.spark.session import build
    from quadweir.terms import IRI

    session = build(app_name="quadweir-explain", shards=shards)
    try:
        empty = session.createDataFrame([], rows.STATEMENT_SCHEMA)
        streams = [each.stream.value for each in query.windows if isinstance(each.stream, IRI)]
        feeds = {iri: Feed(iri, lambda _time, _spool: empty) for iri in streams}
        every = [window.name.value for window in query.windows]
        registered = RegisteredQuery(
            session, query, feeds, shards=shards, allow_unbounded=every, schema=schema
        )
        return registered.spark_plan()
    finally:
        session.stop()


def explanation(query: ContinuousQuery, dialect: str, *, steps: bool = False) -> dict[str, Any]:
    """Everything that `explain` shows, as plain data."""
    from quadweir.algebra.analyze import analyze
    from quadweir.algebra.render import render
    from quadweir.optimize.pipeline import optimize
    from quadweir.syntax.parser import TITLES

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
    from quadweir.algebra.query import AskForm, ConstructForm, DescribeForm, SelectForm

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
    from quadweir.algebra.analyze import duration
    from quadweir.algebra.streams import ReportPolicy

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
    from quadweir.algebra.analyze import duration
    from quadweir.algebra.windows import CountScope, NowScope, PastScope, TimeScope

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


def as_text(facts: dict[str, Any]) -> str:
    """Format the facts for people."""
    lines = [f"dialect   {facts['dialect']}"]
    if facts["name"] is not None:
        lines.append(f"name      {facts['name']}")
    lines.append(f"answers   {facts['answers']}")
    if facts["output"] is not None:
        lines.append(f"output    {facts['output']}; {facts['compares']} are compared")
    lines.append(f"report    {facts['report']}")
    for key, title in (("default_graphs", "from"), ("named_graphs", "named")):
        if facts[key]:
            lines.append(f"{title:<9} {', '.join(facts[key])}")
    for window in facts["windows"]:
        lines += ["", f"window    <{window['name']}> over {window['stream']}"]
        lines.append(f"  scope   {window['scope']}")
        lines.append(f"  content {window['content']}")
        if window["event_time"] is not None:
            lines.append(f"  time    the value of <{window['event_time']}>")
        if window["in_default_graph"]:
            lines.append("  merged  into the default graph")
        if not window["is_read"]:
            lines.append("  unread  by any pattern; it still brings reports")
        refused = "" if window["bounded"] else " (refused unless allowed by name)"
        lines.append(f"  state   {window['state']}{refused}")
    for part in facts["static"]:
        lines += ["", "static", textwrap.indent(part.rstrip(), "  ")]
    lines += ["", "algebra", textwrap.indent(facts["algebra"].rstrip(), "  ")]
    for step in facts.get("steps", ()):
        lines += ["", f"after {step['phase']}: {step['rule']}"]
        lines.append(textwrap.indent(step["algebra"].rstrip(), "  "))
    if facts["rules"]:
        lines += ["", f"optimized ({', '.join(facts['rules'])})"]
        lines.append(textwrap.indent(facts["optimized"].rstrip(), "  "))
    else:
        lines += ["", "optimized (the same: no rule found anything to do)"]
    if "entailment" in facts:
        lines += ["", "entailment", textwrap.indent(facts["entailment"].rstrip(), "  ")]
    if "plan" in facts:
        lines += ["", facts["plan"].rstrip()]
    if "spark" in facts:
        lines += ["", "Spark", textwrap.indent(facts["spark"].rstrip(), "  ")]
    return "\n".join(lines) + "\n"
