"""A plan in words, for `quadweir explain --plan` and `RegisteredQuery.explain`."""

from __future__ import annotations

from quadweir.algebra.analyze import state_bounds
from quadweir.algebra.patterns import TriplePattern
from quadweir.algebra.render import render, render_expression
from quadweir.entailment.schema import Class
from quadweir.entailment.table import End
from quadweir.entailment.ways import Ways
from quadweir.plan.facts import NOTHING_KNOWN, StaticFacts
from quadweir.plan.nodes import Match
from quadweir.plan.query import QueryPlan
from quadweir.plan.render import render_nodes
from quadweir.terms import IRI


def describe(
    plan: QueryPlan,
    *,
    shards: int | None = None,
    algebra: bool = True,
    facts: StaticFacts = NOTHING_KNOWN,
) -> str:
    """How a query runs: its matches, its sharding and the reason, its nodes and their state.

    Args:
        plan: The plan.
        shards: The number of shards, if known.
        algebra: Whether to begin with the algebra.
        facts: Known facts about static data.
    """
    parts = [
        ["algebra", *_indented(render(plan.query))] if algebra else [],
        _matched(plan),
        *(_stage(plan, place, shards) for place in range(len(plan.stages))),
        _answers(plan),
        _static(plan, facts),
        _state(plan),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _matched(plan: QueryPlan) -> list[str]:
    lines = ["matched before the shuffle"]
    for place, match in enumerate(plan.matches):
        lines.append(f"  {place}  {_match(match, plan)}{_to(place, match, plan)}")
        lines += [f"       {way}" for way in _ways(plan.ways(match))]
        lines += [f"     if {each}" for each in _conditions(place, plan)]
    for place, grid in sorted(plan.elements.items()):
        window = plan.query.windows[plan.sources[place].window]
        which = "all elements" if grid is None else f"the latest element of each {grid.step_ms} ms"
        lines.append(f"  {which} of <{plan.sources[place].stream}>, for {window.name}")
    return lines if len(lines) > 1 else [*lines, "  nothing"]


def _stage(plan: QueryPlan, place: int, shards: int | None) -> list[str]:
    stage = plan.stages[place]
    lines = [f"stage {place + 1}" if len(plan.stages) > 1 else "shards"]
    lines.append(f"  key      {stage.key if stage.key is not None else 'none: one shard'}")
    lines.append(f"  because  {stage.reason}")
    if shards is not None:
        lines.append(f"  count    {stage.shards(shards)}")
    return [*lines, *(f"  {line}" for line in render_nodes(stage.program))]


def _answers(plan: QueryPlan) -> list[str]:
    lines = ["answers"]
    if plan.why_not is not None:
        lines.append(f"  evaluated from scratch at every report: {plan.why_not}")
    else:
        lines.append("  kept up to date as elements come and go")
    if plan.eager:
        lines.append("  leave as soon as their parts have arrived")
    elif plan.query.windows:
        lines.append("  leave once the watermark has passed their instant")
    else:
        lines.append("  leave once")
    return lines


def _static(plan: QueryPlan, facts: StaticFacts) -> list[str]:
    lines = []
    for relation, placed in plan.placed:
        count = facts.counts.get(relation.query)
        rows = f"{count:,} rows, " if count is not None else ""
        lines.append(f"  {' '.join(map(str, relation.variables))}  {rows}{placed.text}")
    return ["static data, probed by joins in shards", *lines] if lines else []


def _state(plan: QueryPlan) -> list[str]:
    bounds = state_bounds(plan.query)
    if not bounds:
        return []
    lines = ["state"]
    for bound in bounds:
        ends = "" if bound.bounded else " (without bound)"
        lines.append(f"  {bound.window}  {bound.text}{ends}")
    for kept in plan.kept:
        times = f"{kept.count} of them: " if kept.count > 1 else ""
        lines.append(f"  {kept.name}  {times}{kept.state}; forgets {kept.forgets}")
    return lines


def _match(leaf: Match, plan: QueryPlan) -> str:
    window = plan.query.windows[leaf.source.window].name
    pattern = "each element" if leaf.pattern is None else _pattern(leaf.pattern)
    if leaf.graph is not None:
        pattern = f"GRAPH {leaf.graph} {{ {pattern} }}"
    return f"{pattern}  in {window} over <{leaf.source.stream}>"


def _pattern(pattern: TriplePattern) -> str:
    return f"{pattern.subject} {pattern.predicate} {pattern.object}"


def _ways(ways: Ways) -> list[str]:
    """The other statements that match a leaf through a schema, in words."""
    if ways.looked_up:
        return ["also by what follows from a statement, looked up by its predicate and class"]
    found = []
    for way in ways.listed:
        sets = [f"predicate {_some(way.predicates)}"]
        if way.classes is not None:
            sets.append(f"{'subject' if way.turned else 'object'} {_some(way.classes)}")
        gives = " ".join(
            map(_atom, (way.derived.subject, way.derived.predicate, way.derived.object))
        )
        found.append(f"also with {' and '.join(sets)}, as {gives}")
    return found


def _some(terms: frozenset[IRI] | frozenset[Class]) -> str:
    shown = sorted(map(str, terms))
    return shown[0] if len(shown) == 1 else f"one of {len(shown):,} such as {shown[0]}"


def _atom(atom: object) -> str:
    return f"({atom.name.lower()})" if isinstance(atom, End) else str(atom)


def _conditions(place: int, plan: QueryPlan) -> list[str]:
    """The conditions that drop matches before the shuffle, in words."""
    found = []
    for test in plan.wanted:
        if place not in [leaf for leaf, _ in test.leaves]:
            continue
        for _, condition in test.conditions:
            parts = [" ".join(render_expression(each).split()) for each in condition.expressions]
            parts += [
                f"{variable} is among {len(values)} values of static data"
                for variable, values in condition.values
            ]
            parts += [f"static data has {variable}" for variable, _ in condition.joined]
            parts += [
                f"{variable} is what a member asks for" for variable, _ in condition.parameters
            ]
            found.append(" and ".join(parts))
    return [" or if ".join(found)] if found else []


def _to(place: int, leaf: Match, plan: QueryPlan) -> str:
    if place in plan.trackers:
        return ", to every shard: its changes bring reports"
    if place in plan.first.replicated:
        return f", to every shard: it has no {plan.first.key}"
    if plan.first.key is None or leaf.pattern is None:
        return ""
    return f", by {plan.first.key}"


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.rstrip().splitlines()]
