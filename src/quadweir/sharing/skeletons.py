"""What queries have in common before anything is done with them, so that it is done only once.

A *skeleton* is a query as it was parsed, with places for variables, for the IRIs that may become
parameters, and for window lengths. To optimise a query and to find its shape takes longer than to
parse it. Queries with equal skeletons have the same shape, if it has parameters and open windows in
these places; where it has not, the skeleton is of no use, and each query is looked at itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, final

from quadweir.algebra.expressions import Compare, Constant, VariableExpression
from quadweir.algebra.patterns import PathPattern, Slice, TriplePattern, is_hidden
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.windows import TimeScope
from quadweir.sharing.renaming import fields_of
from quadweir.sharing.shapes import Shaped, columns_of, is_open
from quadweir.terms import IRI, Ground, Variable
from quadweir.vocab import RDF

MOST: Final = 10_000
"""So many skeletons are remembered."""
_TYPE: Final = IRI(RDF.type)


@final
@dataclass(slots=True)
class Skeleton:
    """A query without what may differ.

    Attributes:
        key: what is left; equal for queries with the same skeleton.
        constants: the IRIs in its places, each once, in the order in which they come.
        ranges: the lengths of the windows that may be open, by their places in the query.
        is_sliced: whether it has a LIMIT: then names of variables may make a difference.
    """

    key: Hashable = None
    is_sliced: bool = False
    constants: list[Ground] = field(default_factory=list)
    ranges: dict[int, int] = field(default_factory=dict)
    _variables: dict[Variable, int] = field(default_factory=dict)
    _places: dict[Ground, int] = field(default_factory=dict)

    @staticmethod
    def of(query: ContinuousQuery) -> Skeleton:
        """Return the skeleton of a query; its name does not matter."""
        found = Skeleton()
        # Variables of the answers come first: shapes have columns in their order.
        found.key = (
            found._key(columns_of(query)),
            found._key(query.pattern),
            tuple(found._window(place, each) for place, each in enumerate(query.windows)),
            *(
                found._key(getattr(query, name))
                for name in fields_of(ContinuousQuery)
                if name not in ("form", "pattern", "windows", "name")
            ),
        )
        return found

    def _window(self, place: int, window: Any) -> Hashable:
        scope = window.scope
        if not is_open(scope):
            return self._key(window)
        self.ranges[place] = scope.range_ms
        others = [name for name in fields_of(TimeScope) if name != "range_ms"]
        return (
            tuple(self._key(getattr(scope, name)) for name in others),
            *(self._key(getattr(window, n)) for n in fields_of(type(window)) if n != "scope"),
        )

    def _key(self, value: Any) -> Hashable:
        kind = type(value)
        if kind is Variable:
            if is_hidden(value):
                hidden: Variable = value
                return hidden
            place: int = self._variables.setdefault(value, len(self._variables))
            return place
        if kind is tuple:
            return tuple(map(self._key, value))
        if kind is TriplePattern:
            is_class = value.predicate == _TYPE
            return (
                self._end(value.subject),
                self._key(value.predicate),
                self._key(value.object) if is_class else self._end(value.object),
            )
        if kind is PathPattern:
            return ("path", self._end(value.subject), value.path, self._end(value.object))
        if kind is Compare and value.operator == "=":
            sides = (value.left, value.right)
            if {type(each) for each in sides} == {VariableExpression, Constant}:
                parts = (
                    self._end(each.term) if isinstance(each, Constant) else self._key(each)
                    for each in sides
                )
                return ("=", *parts)
        self.is_sliced |= kind is Slice
        names = fields_of(kind)
        if not names or kind is IRI:
            found: Hashable = value
            return found
        return (kind, *(self._key(getattr(value, name)) for name in names))

    def _end(self, term: Any) -> Hashable:
        if not isinstance(term, IRI):
            return self._key(term)
        place = self._places.setdefault(term, len(self.constants))
        if place == len(self.constants):
            self.constants.append(term)
        return ("constant", place)


@final
class KnownShapes:
    """The shapes of queries by their skeletons."""

    def __init__(self) -> None:
        # Where to take the constants from: places among those of the skeleton.
        self._known: dict[Hashable, tuple[Any, tuple[int, ...]] | None] = {}

    def of(self, query: ContinuousQuery, find: Callable[[], Shaped]) -> Shaped:
        """Return the shape of a query.

        Args:
            query: the query, as it was parsed.
            find: finds the shape.
        """
        skeleton = Skeleton.of(query)
        if skeleton.is_sliced:
            return find()
        if (known := self._known.get(skeleton.key)) is not None:
            shape, places = known
            constants = tuple(skeleton.constants[place] for place in places)
            return Shaped(shape, constants, tuple(skeleton.ranges[each] for each in shape.windows))
        found = find()
        if skeleton.key not in self._known:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[skeleton.key] = _places(skeleton, found)
        return found


def _places(skeleton: Skeleton, found: Shaped) -> tuple[Any, tuple[int, ...]] | None:
    """Return where the constants of a shape are from; None if it depends on what may differ."""
    shape = found.shape
    if {*skeleton.ranges} != {*shape.windows} or {*skeleton.constants} != {*found.constants}:
        return None
    if not {*skeleton.constants}.isdisjoint(_terms(shape.query)):
        return None
    return shape, tuple(map(skeleton.constants.index, found.constants))


def _terms(value: Any) -> set[IRI]:
    """Return the IRIs in a query."""
    if isinstance(value, IRI):
        return {value}
    parts = (
        value if isinstance(value, tuple) else [getattr(value, n) for n in fields_of(type(value))]
    )
    return set().union(*map(_terms, parts))
