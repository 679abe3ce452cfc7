"""Terms of a record put together to quads: one generator for all of them.

Spec: https://kg-construct.github.io/rml-core/spec/docs/#generated-rdf-dataset
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.mapping.values import Terms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TARGET: Final = "target"
"""The column that numbers a quad's logical target; NULL for the run's own output."""


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A triple that every record yields, as the names of its terms' columns."""

    subject: Terms
    predicate: Terms
    object: Terms
    graph: Terms | None
    targets: tuple[int | None, ...] = (None,)


def explode(
    frame: DataFrame, entries: Sequence[Entry], with_target: bool, carry: Sequence[str] = ()
) -> DataFrame:
    """Turn a row of terms into a row for each of its quads."""
    quads = quad_array(entries, with_target)
    assert quads is not None
    exploded = frame.select(*carry, F.explode(quads).alias("quad")).select(*carry, "quad.*")
    return exploded.where(is_whole())


def is_whole() -> Column:
    """Tell a quad from an entry that lacks a term."""
    return (
        F.col(rows.SUBJECT).isNotNull()
        & F.col(rows.PREDICATE).isNotNull()
        & F.col(rows.OBJECT).isNotNull()
    )


def quad_array(
    entries: Sequence[Entry], with_target: bool, *, tagged: bool = False
) -> Column | None:
    """The quads of a row of terms as an array; with `tagged`, each with a reason that is NULL."""
    single: list[Column] = []
    several: list[Column] = []
    for entry in entries:
        for target in entry.targets if with_target else (None,):
            parts = (entry.subject, entry.predicate, entry.object, entry.graph)
            if any(part is not None and part.many for part in parts):
                several.append(_product(parts, target, with_target, tagged))
            else:
                graph = entry.graph.column if entry.graph is not None else None
                single.append(
                    _quad(
                        entry.subject.column,
                        entry.predicate.column,
                        entry.object.column,
                        graph,
                        target,
                        with_target,
                        tagged,
                    )
                )
    arrays = ([F.array(*single)] if single else []) + several
    if not arrays:
        return None
    return arrays[0] if len(arrays) == 1 else F.concat(*arrays)


def letter(reason: Column, with_target: bool) -> Column:
    """A dead letter in the form of a tagged quad."""
    fields = [F.lit(None).cast("string").alias(name) for name in rows.TERMS]
    if with_target:
        fields.append(F.lit(None).cast("int").alias(TARGET))
    return F.struct(*fields, reason.alias(rows.REASON))


def _quad(
    subject: Column,
    predicate: Column,
    obj: Column,
    graph: Column | None,
    target: int | None,
    with_target: bool,
    tagged: bool,
) -> Column:
    # A quad whose graph is missing is none; its subject says so, since a NULL graph is a graph.
    subject = subject if graph is None else F.when(graph.isNotNull(), subject)
    named = graph if graph is not None else F.lit(None).cast("string")
    fields = [
        subject.alias(rows.SUBJECT),
        predicate.alias(rows.PREDICATE),
        obj.alias(rows.OBJECT),
        named.alias(rows.GRAPH),
    ]
    if with_target:
        fields.append(F.lit(target).cast("int").alias(TARGET))
    if tagged:
        fields.append(F.lit(None).cast("string").alias(rows.REASON))
    return F.struct(*fields)


def _product(
    parts: tuple[Terms, Terms, Terms, Terms | None],
    target: int | None,
    with_target: bool,
    tagged: bool,
) -> Column:
    """The quads of every combination of several terms, as an array that is never NULL."""
    varied = [number for number, part in enumerate(parts) if part is not None and part.many]

    def level(position: int, fixed: dict[int, Column]) -> Column:
        if position == len(varied):
            columns = [
                fixed.get(number, part.column if part is not None else None)
                for number, part in enumerate(parts)
            ]
            subject, predicate, obj, graph = columns
            assert subject is not None and predicate is not None and obj is not None
            return F.array(_quad(subject, predicate, obj, graph, target, with_target, tagged))
        number = varied[position]
        part = parts[number]
        assert part is not None
        return F.flatten(
            F.transform(part.to_array(), lambda one: level(position + 1, {**fixed, number: one}))
        )

    return level(0, {})
