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
    from quadweir.plan.explanation import explanation, planned

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


def _spark_plan(query: ContinuousQuery, shards: int | None, schema: Schema | None) -> str:
    """Spark's own plan over empty streams: it depends on the query alone."""
    from quadweir import rows
    from quadweir.runtime.match.feeds import Feed
    from quadweir.runtime.planned import PlannedQuery
    from quadweir.runtime.query import RegisteredQuery
    from quadweir.runtime.spark.session import build
    from quadweir.terms import IRI

    session = build(app_name="quadweir-explain", shards=shards)
    try:
        empty = session.createDataFrame([], rows.STATEMENT_SCHEMA)
        streams = [each.stream.value for each in query.windows if isinstance(each.stream, IRI)]
        feeds = {iri: Feed(iri, lambda _time, _spool: empty) for iri in streams}
        every = [window.name.value for window in query.windows]
        planned = PlannedQuery(
            session, query, feeds, shards=shards, allow_unbounded=every, schema=schema
        )
        return RegisteredQuery(planned).spark_plan()
    finally:
        session.stop()


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
