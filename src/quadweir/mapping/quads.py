"""Builds quads from the terms of a record, with one generator for all of them.

Spec: https://kg-construct.github.io/rml-core/spec/docs/#generated-rdf-dataset
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final, TypeAlias, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.mapping.values import Terms, has_several, put_together

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Parts: TypeAlias = tuple[Terms, Terms, Terms, Terms | None]
LinePiece: TypeAlias = "str | Column"
"""A piece of a line: a fixed text or a column."""
TARGET: Final = "target"
"""The column that numbers a quad's logical target; NULL for the run's own output."""
_END: Final = "_quadweir_end"
_OFTEN: Final = 3
"""How many lines must have a common end for it to be built separately."""


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A triple that every record yields, as the names of its terms' columns."""

    subject: Terms
    predicate: Terms
    object: Terms
    graph: Terms | None
    targets: tuple[int | None, ...] = (None,)

    @property
    def parts(self) -> Parts:
        """Subject, predicate, object and graph; no graph is the default graph."""
        return self.subject, self.predicate, self.object, self.graph

    @property
    def terms(self) -> tuple[Terms, ...]:
        """The terms, without a missing graph."""
        return tuple(part for part in self.parts if part is not None)


def explode(
    frame: DataFrame, entries: Sequence[Entry], with_target: bool, carry: Sequence[str] = ()
) -> DataFrame:
    """Turn a row of terms into a row for each of its quads."""
    if _is_one(entries, with_target):
        subject, *others = _terms(entries[0].parts)
        exploded = frame.select(*carry, made_once(subject).alias(rows.SUBJECT), *others)
    else:
        quads = quad_array(entries, with_target)
        assert quads is not None
        exploded = frame.select(*carry, F.explode(quads).alias("quad")).select(*carry, "quad.*")
    return exploded.where(is_whole())


def _is_one(entries: Sequence[Entry], with_target: bool) -> bool:
    """Whether every row of terms makes at most one quad, so that no explode is needed."""
    return (
        not with_target
        and len(entries) == 1
        and not any(one.many or one.several is not None for one in entries[0].terms)
    )


def explode_lines(
    frame: DataFrame, entries: Sequence[Entry], with_target: bool, carry: Sequence[str] = ()
) -> DataFrame:
    """Turn a row of terms into a row for each of its quads, spelt as a line of N-Quads.

    A line is built once. Rows of four terms would be split and joined again.
    """
    if with_target:
        found = _array(entries, with_target, _targeted_line)
        exploded = frame.select(*carry, F.explode(found).alias("quad")).select(*carry, "quad.*")
    elif _is_one(entries, with_target):
        exploded = frame.select(*carry, made_once(_line(entries[0].parts, None)).alias(rows.LINE))
    else:
        found = _array(entries, with_target, _line)
        exploded = frame.select(*carry, F.explode(found).alias(rows.LINE))
    return exploded.where(F.col(rows.LINE).isNotNull())


def join_lines(
    entries: Sequence[Entry], is_usable: Column | None
) -> tuple[dict[str, Column], Column]:
    """The lines of N-Quads of all quads of a record as one text, which is empty if there are none.

    A row for each line would be copied once more, and so would each term.

    Args:
        entries: the quads; each of their terms has pieces.
        is_usable: whether the record can be used at all; None if all can.

    Returns:
        Columns to add first, by their names, and the text.
    """
    lines, ends = _share_ends([_pieces(entry) for entry in entries])
    columns = {id(one): one for line in lines for one in line if not isinstance(one, str)}
    conditions = [one.isNotNull() for one in columns.values()]
    text = _concat([piece for line in lines for piece in ("\n", *line)][1:])
    # A record with several terms in a place has no single term there; its lines are added
    # separately.
    more = [one for one in map(_several_lines, entries) if one is not None]
    if is_usable is not None:
        conditions.append(is_usable)
    if conditions:
        # `concat_ws` leaves out the lines that are NULL.
        some = (
            F.concat_ws("\n", *map(_concat, lines), *more)
            if len(lines) + len(more) > 1
            else F.lit("")
        )
        if is_usable is not None:
            some = F.when(is_usable, some).otherwise("")
        text = F.when(reduce(and_, conditions), text).otherwise(some)
    return ends, made_once(text)


def _several_lines(entry: Entry) -> Column | None:
    """The lines of a quad for a record with several terms in some place; NULL for any other."""
    is_several = has_several(entry.terms)
    if is_several is None:
        return None
    subject, predicate, obj, graph = entry.parts
    # Terms with pieces have no column of their own, only columns for the pieces.
    parts = _of_pieces(subject), _of_pieces(predicate), _of_pieces(obj)
    graph = _of_pieces(graph) if graph is not None else None
    lines = F.array_join(F.array_compact(_product((*parts, graph), None, _line)), "\n")
    return F.when(is_several, F.nullif(lines, F.lit("")))


def _of_pieces(terms: Terms) -> Terms:
    return replace(terms, column=_concat(terms.pieces))


def made_once(column: Column) -> Column:
    """Keep filters on a column above the expression that computes it.

    Spark would move filters below it, even its own, and compute the column twice. The condition is
    never true, but the optimizer does not know that.
    """
    return F.when(F.spark_partition_id() < 0, F.lit(None)).otherwise(column)


def _pieces(entry: Entry) -> tuple[list[LinePiece], list[LinePiece]]:
    """The pieces of a quad's line: its subject, and the rest."""
    rest: list[LinePiece] = []
    for part in entry.terms[1:]:
        rest += [" ", *part.pieces]
    return list(entry.subject.pieces), [*rest, " ."]


def _share_ends(
    lines: Sequence[tuple[list[LinePiece], list[LinePiece]]],
) -> tuple[list[list[LinePiece]], dict[str, Column]]:
    """Build the common ends of lines once; return the shorter lines, and those ends.

    Triples maps over one source often differ only in the start of their subjects. In a long
    concatenation, every piece costs about as much as a hundred bytes.
    """
    found: Counter[tuple[object, ...]] = Counter()
    for subject, rest in lines:
        found.update({_key(end) for _, end in _cuts(subject, rest)})
    ends: dict[tuple[object, ...], tuple[str, list[LinePiece], Column]] = {}
    short: list[list[LinePiece]] = []
    for subject, rest in lines:
        line = _merged([*subject, *rest])
        for start, end in _cuts(subject, rest):
            key = _key(end)
            if found[key] >= _OFTEN and len(end) > 1:
                name = f"{_END}{len(ends)}"
                line = [*start, ends.setdefault(key, (name, end, F.col(name)))[2]]
                break
        short.append(line)
    return short, {name: _concat(end) for name, end, _ in ends.values()}


def _cuts(
    subject: list[LinePiece], rest: list[LinePiece]
) -> Iterator[tuple[list[LinePiece], list[LinePiece]]]:
    """The two ways to split a line: before its first column, and after its subject."""
    line = _merged([*subject, *rest])
    first = 0 if line and not isinstance(line[0], str) else 1
    yield line[:first], line[first:]
    yield _merged(subject), _merged(rest)


def _key(pieces: Sequence[LinePiece]) -> tuple[object, ...]:
    return tuple(piece if isinstance(piece, str) else id(piece) for piece in pieces)


def _concat(pieces: Sequence[LinePiece]) -> Column:
    return put_together(*_merged(pieces)).column


def _merged(pieces: Sequence[LinePiece]) -> list[LinePiece]:
    """Merge adjacent fixed texts."""
    merged: list[LinePiece] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def is_whole(quad: Column | None = None) -> Column:
    """Whether an entry is a quad and lacks no term; without an argument, for rows."""
    needed = rows.TERMS[:3]
    terms = [F.col(name) if quad is None else quad[name] for name in needed]
    return reduce(and_, [one.isNotNull() for one in terms])


def quad_array(
    entries: Sequence[Entry], with_target: bool, *, tagged: bool = False
) -> Column | None:
    """The quads of a row of terms as an array; with `tagged`, each with a reason that is NULL."""
    if not entries:
        return None

    def build(parts: Parts, target: int | None) -> Column:
        return _quad(parts, target, with_target, tagged)

    return _array(entries, with_target, build)


def _array(
    entries: Sequence[Entry], with_target: bool, build: Callable[[Parts, int | None], Column]
) -> Column:
    """The results of `build` for each combination of an entry's terms, as one array."""
    single: list[Column] = []
    several: list[Column] = []
    for entry in entries:
        for target in entry.targets if with_target else (None,):
            if any(part.many for part in entry.terms):
                several.append(_product(entry.parts, target, build))
                continue
            single.append(build(entry.parts, target))
            is_several = has_several(entry.terms)
            if is_several is not None:
                every = _product(entry.parts, target, build)
                several.append(F.when(is_several, every).otherwise(F.array()))
    arrays = ([F.array(*single)] if single else []) + several
    return arrays[0] if len(arrays) == 1 else F.concat(*arrays)


def letter(reason: Column, with_target: bool) -> Column:
    """A dead letter in the form of a tagged quad."""
    fields = [F.lit(None).cast("string").alias(name) for name in rows.TERMS]
    if with_target:
        fields.append(F.lit(None).cast("int").alias(TARGET))
    return F.struct(*fields, reason.alias(rows.REASON))


def _line(parts: Parts, _: int | None) -> Column:
    """A line of N-Quads; NULL if a term is missing."""
    pieces: list[LinePiece] = []
    for number, part in enumerate(part for part in parts if part is not None):
        pieces += [" "] if number else []
        pieces.append(part.column if part.constant is None else part.constant)
    return _concat([*pieces, " ."])


def _targeted_line(parts: Parts, target: int | None) -> Column:
    return F.struct(_line(parts, target).alias(rows.LINE), F.lit(target).cast("int").alias(TARGET))


def _quad(parts: Parts, target: int | None, with_target: bool, tagged: bool) -> Column:
    named = _terms(parts)
    if with_target:
        named.append(F.lit(target).cast("int").alias(TARGET))
    if tagged:
        named.append(F.lit(None).cast("string").alias(rows.REASON))
    return F.struct(*named)


def _terms(parts: Parts) -> list[Column]:
    """The four columns of a quad."""
    subject, graph = parts[0].column, parts[3]
    # If the graph's term is missing, the quad is dropped: its subject becomes NULL, because a NULL
    # graph means the default graph.
    fields = [
        (subject if graph is None else F.when(graph.column.isNotNull(), subject)),
        parts[1].column,
        parts[2].column,
        graph.column if graph is not None else F.lit(None).cast("string"),
    ]
    return [column.alias(name) for column, name in zip(fields, rows.TERMS, strict=True)]


def _product(
    parts: Parts, target: int | None, build: Callable[[Parts, int | None], Column]
) -> Column:
    """The results of `build` for every combination of several terms, as an array that is never
    NULL.
    """
    subject, predicate, obj, graph = parts
    graph = graph.as_many() if graph is not None else None
    parts = (subject.as_many(), predicate.as_many(), obj.as_many(), graph)
    varied = [number for number, part in enumerate(parts) if part is not None and part.many]

    def level(position: int, chosen: list[Terms | None]) -> Column:
        if position == len(varied):
            subject, predicate, obj, graph = chosen
            assert subject is not None and predicate is not None and obj is not None
            return F.array(build((subject, predicate, obj, graph), target))
        number = varied[position]
        part = parts[number]
        assert part is not None

        def each(one: Column) -> Column:
            return level(position + 1, [*chosen[:number], Terms(one), *chosen[number + 1 :]])

        return F.flatten(F.transform(part.to_array(), each))

    return level(0, list(parts))


def all_reasons(reason: str, problems: Sequence[str]) -> Column:
    """The reasons why a record cannot be used (a column), or not completely (several), as an
    array.
    """
    return F.when(F.col(reason).isNotNull(), F.array(F.col(reason))).otherwise(
        F.array_distinct(F.array_compact(F.array(*problems).cast("array<string>")))
    )


def flatten(
    frame: DataFrame,
    reasons: Column,
    usable: Column,
    entries: Sequence[Entry],
    with_target: bool,
    source: Column,
    element: Sequence[str] = (),
) -> DataFrame:
    """Turn rows of terms into rows of quads and dead letters, in one pass.

    Args:
        frame: the terms, and the places and texts of records that cannot be used.
        reasons: the array of reasons.
        usable: whether a row has quads at all.
        entries: the quads.
        with_target: whether they have targets.
        source: the name of the source in dead letters.
        element: the columns that identify a quad's element; a row without a time makes no quads.
    """
    if element:
        usable = usable & F.col(rows.EVENT_TIME).isNotNull()
    letters = F.transform(reasons, lambda one: letter(one, with_target))
    quads = quad_array(entries, with_target, tagged=True)
    if quads is not None:
        letters = F.concat(F.when(usable, quads).otherwise(F.array()), letters)
    kept = (source.alias(rows.SOURCE), rows.PLACE, rows.RECORD)
    exploded = frame.select(*element, *kept, F.explode(letters).alias("quad"))
    is_letter = F.col(rows.REASON).isNotNull()
    flat = exploded.select(*element, rows.SOURCE, rows.PLACE, rows.RECORD, "quad.*")
    return flat.where(is_letter | is_whole()).select(
        *element,
        *rows.TERMS,
        *([TARGET] if with_target else []),
        *[F.when(is_letter, F.col(name)).alias(name) for name in (rows.SOURCE, rows.PLACE)],
        rows.REASON,
        F.when(is_letter, F.col(rows.RECORD)).alias(rows.RECORD),
    )


def flatten_elements(
    frame: DataFrame, reasons: Column, usable: Column, entries: Sequence[Entry], source: Column
) -> DataFrame:
    """Turn rows of terms into one row for each element, all of its timed lines as a text.

    The arguments are those of `flatten`; `frame` has the columns of `rows.ELEMENT`.
    """
    quads = quad_array(entries, False)
    text = F.lit(None).cast("string")
    if quads is not None:
        time = F.col(rows.EVENT_TIME).cast("string")
        lines = F.transform(
            F.filter(quads, is_whole),
            lambda one: F.concat_ws(" ", time, *[one[name] for name in rows.TERMS], F.lit(".")),
        )
        # Without a time there is no line: `concat_ws` leaves out NULLs.
        text = F.when(usable & time.isNotNull(), F.array_join(F.array_distinct(lines), "\n"))
    nothing = F.lit(None).cast("string")
    element = F.struct(F.nullif(text, F.lit("")).alias(rows.LINE), nothing.alias(rows.REASON))
    letters = F.transform(
        reasons, lambda one: F.struct(nothing.alias(rows.LINE), one.alias(rows.REASON))
    )
    exploded = frame.select(
        rows.POSITION,
        source.alias(rows.SOURCE),
        rows.PLACE,
        rows.RECORD,
        F.explode(F.concat(F.array(element), letters)).alias("made"),
    )
    flat = exploded.select(rows.POSITION, rows.SOURCE, rows.PLACE, rows.RECORD, "made.*")
    return flat.where(F.col(rows.LINE).isNotNull() | F.col(rows.REASON).isNotNull())
