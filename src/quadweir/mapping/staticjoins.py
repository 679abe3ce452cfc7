"""Joins with at least one bounded side, by Spark's own join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.mapping.elements import PARENT, apart_by_graph, pair_element
from quadweir.mapping.joinframes import OBJECT
from quadweir.mapping.quads import Entry, explode, made_once
from quadweir.mapping.values import Terms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from quadweir.mapping.groups import SourceGroup

_GUARD: Final = "_quadweir_guard"


@final
@dataclass(slots=True, kw_only=True)
class StaticJoin:
    """Triples whose objects are the subjects of another triples map."""

    child: SourceGroup
    parent: SourceGroup
    found: Terms
    keys: list[tuple[Terms, Terms]]
    guard: Column | None
    entries: list[Entry]
    how: str
    reporting: tuple[SourceGroup, ...] = ()

    def tagged(self, with_target: bool) -> DataFrame:
        """The quads of all pairs."""
        element = self.element
        found = explode(self.terms(element), self.entries, with_target, element)
        return self.apart(found.where(F.col(rows.EVENT_TIME).isNotNull()) if element else found)

    @property
    def element(self) -> tuple[str, ...]:
        """The columns that identify a quad's element."""
        return rows.ELEMENT if self.child.is_timed or self.parent.is_timed else ()

    def apart(self, quads: DataFrame) -> DataFrame:
        """Set a position for each graph of one pair's quads."""
        is_apart = self.element and self.child.has_several_graphs
        return apart_by_graph(quads) if is_apart else quads

    def terms(self, element: Sequence[str] = ()) -> DataFrame:
        """The terms of each pair of joined records.

        A pair belongs to the element of the record that has a time. If both have one, the pair is a
        new element.
        """
        mine, theirs = (bool(element) and one.is_timed for one in (self.child, self.parent))
        joined = self._joined(mine, theirs)
        if mine and theirs:
            return pair_element(joined)
        return joined.withColumnsRenamed({PARENT + name: name for name in element})

    def _joined(self, with_child: bool, with_parent: bool) -> DataFrame:
        theirs = [F.col(name).alias(PARENT + name) for name in rows.ELEMENT] if with_parent else []
        left = self.child.frame.select(
            *(rows.ELEMENT if with_child else ()),
            *[column.alias(name) for name, column in self.child.columns.items()],
            *[made_once(mine.column).alias(f"child{n}") for n, (mine, _) in enumerate(self.keys)],
            *([made_once(self.guard).alias(_GUARD)] if self.guard is not None else []),
        )
        if self.guard is not None:
            left = left.where(_GUARD).drop(_GUARD)
        right = self.parent.frame.select(
            *theirs,
            *[column.alias(name) for name, column in self.parent.columns.items()],
            *[
                made_once(their.column).alias(f"parent{n}")
                for n, (_, their) in enumerate(self.keys)
            ],
        )
        right = right.select(
            *(PARENT + name for name in rows.ELEMENT if with_parent),
            (F.explode(self.found.column) if self.found.many else self.found.column).alias(OBJECT),
            *[f"parent{number}" for number in range(len(self.keys))],
        )
        for number, (mine, their) in enumerate(self.keys):
            if mine.many:
                left = left.withColumn(f"child{number}", F.explode(f"child{number}"))
            if their.many:
                right = right.withColumn(f"parent{number}", F.explode(f"parent{number}"))
        if not self.keys:
            return left.crossJoin(right)
        on = reduce(
            lambda one, other: one & other,
            [F.col(f"child{n}") == F.col(f"parent{n}") for n in range(len(self.keys))],
        )
        return left.join(right, on)
