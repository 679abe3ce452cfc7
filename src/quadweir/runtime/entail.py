"""Entailment in column expressions: the triples that a statement stands for, each as a view of it.

A view says of each place of a triple from which column of the statement it comes, or what stands
there. The ways to match a pattern become views with a condition: sets of predicates and classes,
which Spark looks up by hashing. Where what follows is looked up, it is joined to the statements by
broadcast, as an array of triples. No row is made for anything that no pattern matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.entailment.table import Derived, End, Table
from quadweir.entailment.ways import Way, Ways
from quadweir.plan.query import QueryPlan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BY_PREDICATE: Final = "_by_predicate"
_BY_CLASS: Final = "_by_class"
_BY_SUBJECT: Final = "_by_subject"
_KEY: Final = "_key"
# In place of a term: an end of the statement. No term is spelled so.
_ENDS: Final = {End.SUBJECT: "s", End.OBJECT: "o"}
_TURNED: Final = {End.SUBJECT: "o", End.OBJECT: "s"}
_COLUMNS: Final = {End.SUBJECT: rows.SUBJECT, End.OBJECT: rows.OBJECT}


@final
@dataclass(frozen=True, slots=True)
class Part:
    """A place of a triple: a column of the statement, or a fixed spelling."""

    column: str | None
    term: str = ""

    def expression(self) -> Column:
        return F.lit(self.term) if self.column is None else F.col(self.column)


View = tuple[Part, Part, Part]
"""Subject, predicate and object of a triple that a statement stands for."""

ITSELF: Final[View] = (Part(rows.SUBJECT), Part(rows.PREDICATE), Part(rows.OBJECT))


def views(ways: Ways) -> list[tuple[View, Column | None]]:
    """List the triples that statements stand for, each with the condition under which they do."""
    found: list[tuple[View, Column | None]] = [(ITSELF, None)]
    found += [(_view(way.derived), _condition(way)) for way in ways.listed]
    return found


def _view(derived: Derived) -> View:
    return _part(derived.subject), Part(None, str(derived.predicate)), _part(derived.object)


def _part(atom: object) -> Part:
    return Part(_COLUMNS[atom]) if isinstance(atom, End) else Part(None, str(atom))


def _condition(way: Way) -> Column:
    condition = _among(rows.PREDICATE, way.predicates)
    if way.classes is not None:
        condition = condition & _among(rows.SUBJECT if way.turned else rows.OBJECT, way.classes)
    if way.derived.subject is End.OBJECT:
        condition = condition & _is_resource(F.col(rows.OBJECT))
    return condition


def _among(name: str, terms: Iterable[object]) -> Column:
    spelled = sorted(map(str, terms))
    return F.col(name) == spelled[0] if len(spelled) == 1 else F.col(name).isin(spelled)


def _is_resource(term: Column) -> Column:
    return ~term.startswith('"')


# --- what is looked up --------------------------------------------------------------------------


def look_up(statements: DataFrame, plan: QueryPlan) -> DataFrame:
    """Join to each statement what follows from it, if some leaf has to look at all of that."""
    table = plan.table
    if table is None or not any(plan.ways(leaf).looked_up for leaf in plan.leaves):
        return statements
    predicate = F.col(rows.PREDICATE)
    keys = {_BY_PREDICATE: (predicate, _spelled(table.predicates, _ENDS))}
    if table.classes:
        instance = F.when(_among(rows.PREDICATE, table.typing), F.col(rows.OBJECT))
        keys[_BY_CLASS] = (instance, _spelled(table.classes, _ENDS))
    if table.classes and table.turned_typing:
        instance = F.when(_among(rows.PREDICATE, table.turned_typing), F.col(rows.SUBJECT))
        keys[_BY_SUBJECT] = (instance, _spelled(table.classes, _TURNED))
    found = statements
    for name, (key, entries) in keys.items():
        found = _joined(found, name, key, entries)
    return found


def looked_up(table: Table) -> Column:
    """All that follows from a statement, as an array of structs of three terms."""
    names = [_BY_PREDICATE]
    if table.classes:
        names.append(_BY_CLASS)
    if table.classes and table.turned_typing:
        names.append(_BY_SUBJECT)
    nothing = F.array().cast(_ENTRIES)
    every = F.concat(*[F.coalesce(F.col(name), nothing) for name in names])
    filled = F.transform(
        every,
        lambda each: F.struct(
            _filled(each[rows.SUBJECT]).alias(rows.SUBJECT),
            each[rows.PREDICATE].alias(rows.PREDICATE),
            _filled(each[rows.OBJECT]).alias(rows.OBJECT),
        ),
    )
    return F.filter(filled, lambda each: _is_resource(each[rows.SUBJECT]))


_ENTRIES: Final = (
    f"array<struct<{rows.SUBJECT}:string,{rows.PREDICATE}:string,{rows.OBJECT}:string>>"
)


def _filled(term: Column) -> Column:
    subject, end = F.col(rows.SUBJECT), F.col(rows.OBJECT)
    return (
        F.when(term == _ENDS[End.SUBJECT], subject).when(term == _ENDS[End.OBJECT], end)
    ).otherwise(term)


def _spelled(
    found: Mapping[Any, tuple[Derived, ...]],
    ends: Mapping[End, str],
) -> list[tuple[str, list[dict[str, str]]]]:
    def spell(atom: object) -> str:
        return ends[atom] if isinstance(atom, End) else str(atom)

    return [
        (
            str(key),
            [
                {
                    rows.SUBJECT: spell(each.subject),
                    rows.PREDICATE: str(each.predicate),
                    rows.OBJECT: spell(each.object),
                }
                for each in all_of
            ],
        )
        for key, all_of in found.items()
    ]


def _joined(
    frame: DataFrame, name: str, key: Column, entries: list[tuple[str, list[dict[str, str]]]]
) -> DataFrame:
    import pyarrow as pa

    triple = pa.struct([(each, pa.string()) for each in rows.TERMS[:3]])
    keys = pa.array([each for each, _ in entries], pa.string())
    values = pa.array([each for _, each in entries], pa.list_(triple))
    own = f"{_KEY}{name}"
    small = frame.sparkSession.createDataFrame(pa.table({own: keys, name: values}))
    joined = frame.join(F.broadcast(small), key == F.col(own), "left")
    return joined.drop(own)
