"""A plan in words, for `quadweir explain --plan` and `RegisteredQuery.explain`."""

from __future__ import annotations

from quadweir.algebra.analyze import state_bounds
from quadweir.algebra.patterns import TriplePattern
from quadweir.algebra.render import render, render_expression
from quadweir.entailment.schema import Class
from quadweir.entailment.table import End
from quadweir.entailment.ways import Ways
from quadweir.kernel.network import LeafPlan
from quadweir.plan.query import QueryPlan
from quadweir.terms import IRI


def describe(plan: QueryPlan, *, shards: int | None = None, algebra: bool = True) -> str:
    """Say how a query is run: what is matched, how rows are sharded and why, what is kept.

    Args:
        plan: the plan.
        shards: how many shards there are to be, if that is known.
        algebra: begin with the algebra.
    """
    lines = ["algebra", *_indented(render(plan.query)), ""] if algebra else []
    lines.append("matched before the shuffle")
    for place, leaf in enumerate(plan.leaves):
        lines.append(f"  {place}  {_leaf(leaf, plan)}{_to(place, leaf, plan)}")
        lines += [f"       {way}" for way in _ways(plan.ways(leaf))]
        lines += [f"     if {each}" for each in _conditions(place, plan)]
    for place in sorted(plan.elements):
        window = plan.query.windows[plan.sources[place].window]
        lines.append(f"  all elements of <{plan.sources[place].stream}>, for {window.name}")
    if not plan.leaves and not plan.elements:
        lines.append("  nothing")
    lines += ["", "shards"]
    variable = plan.key.variable
    lines.append(f"  key      {variable if variable is not None else 'none: one shard'}")
    lines.append(f"  because  {plan.key.reason}")
    if shards is not None:
        lines.append(f"  count    {shards_used(plan, shards)}")
    if plan.key.cut is not None:
        second = plan.key.second
        lines += ["", "second stage"]
        lines.append(f"  gets     changes of {' '.join(map(str, plan.sent)) or 'rows'}")
        lines.append(f"  key      {second if second is not None else 'none: one shard'}")
        lines.append(f"  because  {plan.key.second_reason}")
        if shards is not None:
            lines.append(f"  count    {second_shards(plan, shards)}")
    lines += ["", "answers"]
    if plan.why_not is not None:
        lines.append(f"  evaluated anew at every report: {plan.why_not}")
    else:
        lines.append("  kept up to date as elements come and go")
    lines.append(
        "  leave as soon as their parts have arrived"
        if plan.eager
        else "  leave once the watermark has passed their instant"
        if plan.query.windows
        else "  leave once"
    )
    if plan.fixed:
        lines += ["", "static data, probed by joins in shards"]
    for fixed in plan.fixed:
        text = f"  {' '.join(map(str, fixed.variables))}  {fixed.rows:,} rows, {fixed.placed}"
        if fixed.asked:
            few = " ".join(map(str, fixed.asked))
            text += f"; over files the few values of {few} are looked for before the shuffle"
        lines.append(text)
    bounds = state_bounds(plan.query)
    if bounds:
        lines += ["", "state"]
    for bound in bounds:
        ends = "" if bound.bounded else " (without bound)"
        lines.append(f"  {bound.window}  {bound.text}{ends}")
    for kept in plan.kept if bounds else ():
        times = f"{kept.count} of them: " if kept.count > 1 else ""
        lines.append(f"  {kept.name}  {times}{kept.state}; forgets {kept.forgets}")
    return "\n".join(lines) + "\n"


def shards_used(plan: QueryPlan, shards: int) -> int:
    """How many of the shards that there may be the plan can use."""
    return shards if plan.key.variable is not None else 1


def second_shards(plan: QueryPlan, shards: int) -> int:
    """How many of the shards that there may be the second stage of a plan can use."""
    return shards if plan.key.second is not None else 1


def _leaf(leaf: LeafPlan, plan: QueryPlan) -> str:
    window = plan.query.windows[leaf.source.window].name
    pattern = "each element" if leaf.pattern is None else _pattern(leaf.pattern)
    return f"{pattern}  in {window} over <{leaf.source.stream}>"


def _pattern(pattern: TriplePattern) -> str:
    return f"{pattern.subject} {pattern.predicate} {pattern.object}"


def _ways(ways: Ways) -> list[str]:
    """Say which other statements match a leaf, by what a schema derives from them."""
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
    """Say which matches are left out before the shuffle, where types allow."""
    found = []
    for test in plan.wanted:
        if place not in [leaf for leaf, _ in test.leaves]:
            continue
        for _, condition in test.conditions:
            parts = [" ".join(render_expression(each).split()) for each in condition.expressions]
            parts += [
                f"{variable} is among {len(values)} values of static data (over files)"
                for variable, values in condition.values
            ]
            found.append(" and ".join(parts))
    return [" or if ".join(found)] if found else []


def _to(place: int, leaf: LeafPlan, plan: QueryPlan) -> str:
    if place in plan.trackers:
        return ", to every shard: its changes bring reports"
    if place in plan.key.replicated:
        return f", to every shard: it has no {plan.key.variable}"
    if plan.key.variable is None or leaf.pattern is None:
        return ""
    return f", by {plan.key.variable}"


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.rstrip().splitlines()]
