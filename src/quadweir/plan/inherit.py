"""Which state of one plan another plan can continue with, and what it loses.

State is compared leaf by leaf. A leaf holds the matches of a pattern in a window; whatever stands
above is made from these once more. So a new projection, filter, HAVING or report loses nothing, and
neither does a group or a join over windows that were there already.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import NamedTuple, final

from quadweir.algebra.expressions import Compare, Constant, Expression
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.render import render_expression
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.windows import CountScope, Scope, TimeScope
from quadweir.plan.bounds import find_retained
from quadweir.plan.canonical import Canonicalizer, renamed
from quadweir.plan.nodes import Exchange, Group, Source, Window, rewrite, walk
from quadweir.plan.program import Program
from quadweir.plan.pushdown import Condition, find_conditions
from quadweir.plan.query import QueryPlan
from quadweir.plan.render import render_window
from quadweir.terms import Literal, Variable
from quadweir.vocab import XSD


class InheritedLeaf(NamedTuple):
    """Where the matches of a leaf come from.

    Attributes:
        place: the place of the old leaf among the windows of its program.
        length_ms: how long matches stay from now on; None if as long as before.
    """

    place: int
    length_ms: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Inheritance:
    """What a plan continues with of the state of another.

    Attributes:
        leaves: for each window of the program, the leaf that it takes over; None if it begins empty.
        sources: for each source of the program, the old source with the same stream and scope.
        losses: what is not there that would be there if the query had always run, in words.
    """

    leaves: tuple[InheritedLeaf | None, ...]
    sources: Mapping[Source, Source]
    losses: tuple[str, ...]


def inherit(then: QueryPlan, now: QueryPlan) -> Inheritance:
    """Compare the first stages of two plans; later stages are made from the first once more.

    Args:
        then: the plan whose state there is.
        now: the plan that is to continue.
    """
    old, new = _whole(then), _whole(now)
    leaves, losses, incomplete = [], [], set()
    old_leaves, new_leaves = (
        list(_leaves(program, find_retained(plan.first.program)))
        for program, plan in ((old, then), (new, now))
    )
    for leaf in new_leaves:
        found = next((each for each in old_leaves if each.is_like(leaf)), None)
        lost = _lost(leaf, found, new.query)
        leaves.append(None if found is None else _taken(leaf, found))
        if lost:
            incomplete.add(leaf.window)
            losses.append(lost)
    for node in new.nodes:
        if isinstance(node, Group) and not incomplete.isdisjoint(walk(node)):
            keys = " ".join(map(str, node.keys)) or "nothing"
            losses.append(f"the groups by {keys} are made of what these windows have")
    sources = {
        source: other
        for source in new.sources
        for other in old.sources
        if _of_source(source, new.query) == _of_source(other, old.query)
    }
    if _compares(new) and not _reports_alike(old, new):
        output = new.query.output.name
        losses.append(f"the report before is not known: the first {output} compares with none")
    return Inheritance(tuple(leaves), sources, tuple(dict.fromkeys(losses)))


def _whole(plan: QueryPlan) -> Program:
    """Return the program that was divided into stages."""
    first, last = plan.first.program, plan.stages[-1].program
    root = rewrite(last.root, lambda node: node.input if isinstance(node, Exchange) else node)
    return replace(first, sent=None, report=replace(last.report, input=root))


# --- leaves -----------------------------------------------------------------------------------


class _Leaf(NamedTuple):
    """A leaf with all that decides whether another can take its matches."""

    place: int
    window: Window
    name: str
    """Names stream, pattern and times, whatever variables are called; not the scope."""
    retained: bool
    needed: bool
    conditions: tuple[frozenset[str], ...]
    """What is dropped before it: a match is there if it fulfils all of one of these."""
    bounds: Mapping[str, tuple[str, Decimal]]
    """Those of the conditions that compare with a number, as operand with operator, and number."""
    said: str

    def is_like(self, other: _Leaf) -> bool:
        mine, theirs = self.window.scope, other.window.scope
        return self.name == other.name and (mine == theirs or (_slides(mine) and _slides(theirs)))


def _slides(scope: Scope) -> bool:
    return isinstance(scope, TimeScope) and scope.step_ms is None


def _leaves(program: Program, retained: Container[Window]) -> Iterator[_Leaf]:
    conditions = find_conditions(program)
    names = Canonicalizer((), eager=False)
    for place, window in enumerate(program.windows):
        match = window.match
        places = {variable: number for number, variable in enumerate(match.variables)}
        bounds: dict[str, tuple[str, Decimal]] = {}
        yield _Leaf(
            place,
            window,
            names.without_scope(window),
            window in retained,
            window in retained or not program.eager,
            tuple(_parts(each, places, names, bounds) for each in conditions.get(place, ())),
            bounds,
            ", ".join(
                render_expression(expression)
                for each in conditions.get(place, ())
                for expression in each.expressions
            ),
        )


def _parts(
    condition: Condition,
    places: dict[Variable, int],
    names: Canonicalizer,
    bounds: dict[str, tuple[str, Decimal]],
) -> frozenset[str]:
    found = []
    for expression in condition.expressions:
        text = renamed(expression, places)
        found.append(text)
        bound = _bound(expression, places)
        if bound is not None:
            bounds[text] = bound
    for variable, relation in condition.joined:
        name, variables = names.of(relation)
        found.append(f"{places[variable]} joined with {variables.index(variable)} of {name}")
    return frozenset(found)


def _bound(expression: Expression, places: dict[Variable, int]) -> tuple[str, Decimal] | None:
    """Return operand with operator, and number, of a comparison such as `?v > 30`."""
    match expression:
        case Compare(operator="<" | "<=" | ">" | ">=" as operator, left=left, right=right):
            if isinstance(right, Constant) and isinstance(right.term, Literal):
                number = _number(right.term)
                if number is not None:
                    return f"{operator} {renamed(left, places)}", number
    return None


def _number(literal: Literal) -> Decimal | None:
    if literal.datatype.value not in (XSD.integer, XSD.decimal):
        return None
    try:
        return Decimal(literal.lexical)
    except InvalidOperation:
        return None


def _taken(leaf: _Leaf, found: _Leaf) -> InheritedLeaf:
    scope = leaf.window.scope
    if scope == found.window.scope:
        return InheritedLeaf(found.place)
    assert isinstance(scope, TimeScope)
    return InheritedLeaf(found.place, scope.range_ms)


def _lost(leaf: _Leaf, found: _Leaf | None, query: ContinuousQuery) -> str:
    """Say what a leaf lacks; nothing if it has all that it would have."""
    if not leaf.needed:
        return ""
    said = render_window(leaf.window, query)
    scope = leaf.window.scope
    whole = _until_whole(scope)
    if found is None:
        return f"{said} begins empty: the checkpoint has no such matches; {whole}"
    if not found.retained:
        return f"{said} begins empty: the old query kept no matches, only totals; {whole}"
    if isinstance(scope, TimeScope) and scope != found.window.scope:
        before = found.window.scope
        assert isinstance(before, TimeScope)
        if scope.range_ms > before.range_ms:
            return f"{said} begins with the last {_seconds(before.range_ms)}; {whole}"
    if found.conditions and not _implied(leaf, found):
        dropped = f"all but {found.said}" if found.said else "some of them"
        return f"{said} lacks matches: the old query dropped {dropped}; {whole}"
    return ""


def _implied(leaf: _Leaf, found: _Leaf) -> bool:
    """Whether all that the new leaf may get was let through to the old one."""
    return bool(leaf.conditions) and all(
        any(all(_follows(part, new, leaf, found) for part in old) for old in found.conditions)
        for new in leaf.conditions
    )


def _follows(part: str, given: frozenset[str], leaf: _Leaf, found: _Leaf) -> bool:
    if part in given:
        return True
    if part not in found.bounds:
        return False
    operand, least = found.bounds[part]
    for each in given & leaf.bounds.keys():
        other, value = leaf.bounds[each]
        if other == operand and (value >= least if operand.startswith(">") else value <= least):
            return True
    return False


def _until_whole(scope: Scope) -> str:
    match scope:
        case TimeScope(range_ms=length):
            return f"it is complete after {_seconds(length)}"
        case CountScope(size=size, unit=unit):
            return f"it is complete after {size} {unit.value}"
        case _:
            return "what came before stays lost"


def _seconds(length_ms: int) -> str:
    return f"{length_ms / 1000:g} s"


# --- reports ----------------------------------------------------------------------------------


def _of_source(source: Source, query: ContinuousQuery) -> tuple[object, ...]:
    return source.stream, source.event_time, query.windows[source.window].scope


def _compares(program: Program) -> bool:
    """Whether its next report is compared with the one before, and that is not made once more."""
    return (
        program.query.output is not OutputOperator.RSTREAM
        and not program.eager
        and program.report.tells_reports
    )


def _reports_alike(old: Program, new: Program) -> bool:
    """Whether the last report of one would have been the last report of the other."""

    def of(program: Program) -> tuple[object, ...]:
        query, report = program.query, program.report
        sources: Iterable[object] = {_of_source(each, query) for each in program.sources}
        return report.tells_reports, report.on_close, query.report, query.tick, sources

    return of(old) == of(new)
