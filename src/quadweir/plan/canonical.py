"""The name of a sub-plan, whatever its variables are called and in which order its joins are written.

Two sub-plans with the same name do the same work. They may be of different shapes, under other
operators, in other dialects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from itertools import groupby, permutations, product
from typing import Any, Final, NamedTuple, final

from quadweir.algebra.patterns import Slice
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.solutions import is_time
from quadweir.algebra.traverse import walk
from quadweir.algebra.windows import TimeScope
from quadweir.plan.nodes import (
    Extend,
    Filter,
    Join,
    PlanNode,
    Project,
    StaticRelation,
    Union,
    Window,
)
from quadweir.terms import Variable

MOST_ORDERS: Final = 720
"""Of inputs with the same name, so many orders are tried; with more, equal joins may differ in name."""


class Canonical(NamedTuple):
    """The name of a sub-plan, and its variables in an order that the name decides."""

    name: str
    variables: tuple[Variable, ...]


@final
class Canonicalizer:
    """Names the sub-plans of one query.

    Args:
        open_windows: The places of the windows whose length is not part of the plan.
        eager: Whether answers leave as soon as their parts have arrived: then operators work
        otherwise.
        key: The variable by which rows are sharded: shards of programs with other keys have other
        rows.
    """

    def __init__(
        self, open_windows: Iterable[int], *, eager: bool, key: Variable | None = None
    ) -> None:
        self._open = frozenset(open_windows)
        self._eager = eager
        self._key = key
        self._known: dict[PlanNode, Canonical] = {}
        self._inputs: dict[Join, tuple[PlanNode, ...]] = {}

    def of(self, node: PlanNode) -> Canonical:
        """The name of a node that `RoutePlanner` takes for a part of a core."""
        if node not in self._known:
            self._known[node] = self._found(node)
        return self._known[node]

    def inputs(self, node: Join) -> tuple[PlanNode, ...]:
        """The inputs of a join, in an order that its name decides."""
        self.of(node)
        return self._inputs[node]

    def _found(self, node: PlanNode) -> Canonical:
        match node:
            case Window():
                return self._window(node)
            case StaticRelation():
                return _static(node)
            case Filter(input=source, condition=condition):
                below = self.of(source)
                text = f"filter {below.name} {renamed(condition, _places(below.variables))}"
                return Canonical(self._name(text), below.variables)
            case Extend(input=source, variable=variable, expression=expression):
                below = self.of(source)
                text = f"extend {below.name} {renamed(expression, _places(below.variables))}"
                return Canonical(self._name(text), (*below.variables, variable))
            case Project(input=source):
                below = self.of(source)
                kept = [each for each in below.variables if each in node.variables]
                text = f"project {below.name} {[below.variables.index(each) for each in kept]}"
                return Canonical(self._name(text), tuple(kept))
            case Union(inputs=inputs):
                return self._joined("union", [self.of(each) for each in inputs])
            case Join():
                return self._join(node)
            case _:
                raise TypeError(f"a {node.name} is no part of a core")

    def _name(self, text: str) -> str:
        return hashlib.sha256(f"{self._eager} {text}".encode("utf-8", "surrogatepass")).hexdigest()

    def without_scope(self, node: Window) -> str:
        """Name the matches of a window, whatever its scope."""
        return self._name(self._matches(node))

    def _window(self, node: Window) -> Canonical:
        scope = node.scope
        if node.match.source.window in self._open and isinstance(scope, TimeScope):
            scope = replace(scope, range_ms=1)
        return Canonical(self._name(f"{self._matches(node)} {scope!r}"), node.variables)

    def _matches(self, node: Window) -> str:
        match = node.match
        place = _places(match.variables)
        # The time of a part has a name of its own; the times of variables have theirs.
        times = [place.get(each, "part") for each in match.times]
        found = renamed((match.pattern, match.graph), place)
        source = f"{match.source.stream} {match.source.event_time} {match.carried}"
        return f"window {source} {found} {times} {self._key and place.get(self._key)}"

    def _join(self, node: Join) -> Canonical:
        ordered = sorted(node.inputs, key=lambda each: self.of(each).name)
        alike = [list(group) for _, group in groupby(ordered, key=lambda each: self.of(each).name)]
        orders = 1
        for group in alike:
            for count in range(2, len(group) + 1):
                orders *= count
        tried: Iterable[tuple[PlanNode, ...]] = (tuple(ordered),)
        if orders <= MOST_ORDERS:
            tried = (
                tuple(each for group in chosen for each in group)
                for chosen in product(*(permutations(group) for group in alike))
            )
        found = ((self._joined("join", [self.of(each) for each in one]), one) for one in tried)
        name, self._inputs[node] = min(found, key=lambda each: each[0].name)
        return name

    def _joined(self, kind: str, inputs: list[Canonical]) -> Canonical:
        places: dict[Variable, int] = {}
        parts = []
        for each in inputs:
            own = [places.setdefault(variable, len(places)) for variable in each.variables]
            parts.append(f"{each.name} {own}")
        return Canonical(self._name(f"{kind} {parts}"), tuple(places))


def _static(node: StaticRelation) -> Canonical:
    query = node.query
    places: dict[Variable, int] = {}
    if any(isinstance(each, Slice) for each in walk(query.pattern)):
        # Which rows a LIMIT keeps depends on the order of its columns.
        places = _places(node.variables)
    pattern = renamed(query.pattern, places, fresh=True)
    text = f"static {pattern} {_dataset(query)} {node.key and places.get(node.key)}"
    name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    own = [each for each in places if each in node.variables]
    return Canonical(name, tuple(own))


def _dataset(query: ContinuousQuery) -> str:
    return f"{query.default_graphs} {query.named_graphs} {query.default_graph_windows}"


def _places(variables: Iterable[Variable]) -> dict[Variable, int]:
    return {variable: place for place, variable in enumerate(variables)}


def renamed(value: object, places: dict[Variable, int], *, fresh: bool = False) -> str:
    """Write something down with the places of variables instead of their names.

    Args:
        value: The term, pattern or expression.
        places: The places.
        fresh: Whether a variable without a place gets the next one.
    """

    def put(variable: Variable) -> Variable:
        if fresh:
            places.setdefault(variable, len(places))
        if variable not in places:
            return variable
        return Variable(f"{'time' if is_time(variable) else 'v'}{places[variable]}")

    return repr(_with_variables(value, put))


def _with_variables(value: Any, put: Callable[[Variable], Variable]) -> Any:
    if isinstance(value, Variable):
        return put(value)
    if isinstance(value, tuple):
        return tuple(_with_variables(each, put) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        own = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        return replace(value, **{name: _with_variables(each, put) for name, each in own.items()})
    return value
