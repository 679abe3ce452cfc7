"""Entailment as column expressions: which statements imply others that a query can match.

The ways to match a pattern become conditions on sets of predicates and classes. Spark looks them up
by hash, and no rows are added. If a pattern has to look at every consequence, the consequences are
joined to the statements by broadcast, and become more rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.entailment.table import Derived, End, Table
from quadweir.entailment.ways import Way
from quadweir.plan.matchtests import Matching
from quadweir.runtime.spark.javacalls import JavaCalls
from quadweir.runtime.wire.deadletters import LETTER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BY_PREDICATE: Final = "_by_predicate"
_BY_CLASS: Final = "_by_class"
_BY_SUBJECT: Final = "_by_subject"
_KEY: Final = "_key"
_MANY: Final = 64
"""From this many terms on, a Java set is made instead of a list in the plan."""
# These stand for an end of the statement; no term is spelled like them.
_ENDS: Final = {End.SUBJECT: "s", End.OBJECT: "o"}
_TURNED: Final = {End.SUBJECT: "o", End.OBJECT: "s"}
_SET: Final = "java.util.HashSet"
CARRIED: Final = "_carried"
"""Whether a row is part of an element, and not a consequence of it."""


def follows(way: Way) -> Column:
    """Return whether a consequence follows from a statement in this way."""
    condition = _among(rows.PREDICATE, way.predicates)
    if way.classes is not None:
        condition = condition & _among(rows.SUBJECT if way.turned else rows.OBJECT, way.classes)
    if way.derived.subject is End.OBJECT:
        condition = condition & _is_resource(F.col(rows.OBJECT))
    return condition


def _among(name: str, terms: Iterable[object]) -> Column:
    spelled = sorted(map(str, terms))
    if len(spelled) == 1:
        return F.col(name) == spelled[0]
    return F.col(name).isin(spelled) if len(spelled) < _MANY else _in_set(name, spelled)


def _in_set(name: str, spelled: Sequence[str]) -> Column:
    """Return whether a column has one of many texts, none of which has a line feed.

    Spark itself makes a set from a long list, but as part of the plan, which every batch prints,
    compares and sends to every task.
    """
    from pyspark.sql import SparkSession

    java = JavaCalls(SparkSession.active())
    jvm = java.jvm
    values = jvm.java.util.HashSet(java.texts(spelled))
    return java.call(java.broadcast(values, _SET), "contains", "boolean", F.col(name))


def _is_resource(term: Column) -> Column:
    return ~term.startswith('"') & ~term.startswith("<<")


# --- consequences by lookup ---


def with_consequences(statements: DataFrame, matching: Matching) -> DataFrame:
    """Return the statements with their consequences as more rows, if a pattern has to look at all.

    The column `CARRIED` says whether a row is part of an element.
    """
    table = matching.table
    if table is None or not matching.looks_up:
        return statements.withColumn(CARRIED, F.expr("true"))
    names = rows.TERMS[:3]

    def row(terms: Column | None) -> Column:
        found = [F.col(name) if terms is None else terms[name].alias(name) for name in names]
        return F.struct(*found, F.lit(terms is None).alias(CARRIED))

    every = F.concat(F.array(row(None)), F.transform(_looked_up(table), row))
    letters = [name for name in (LETTER,) if name in statements.columns]
    found = _look_up(statements, table).select(*rows.ELEMENT, rows.GRAPH, *letters, F.inline(every))
    # A dead letter has no consequences.
    return found.where(F.col(CARRIED) | F.col(LETTER).isNull()) if letters else found


def closed(quads: DataFrame, table: Table) -> DataFrame:
    """Return the quads with their consequences, in the same graph; a triple may occur twice."""
    every = F.concat(F.array(F.struct(*rows.TERMS[:3])), _looked_up(table))
    return _look_up(quads, table).select(rows.GRAPH, F.inline(every)).select(*rows.TERMS)


def _look_up(statements: DataFrame, table: Table) -> DataFrame:
    """Join its consequences to each statement."""
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


def _looked_up(table: Table) -> Column:
    """Return the consequences of a statement, as an array of structs of three terms."""
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
