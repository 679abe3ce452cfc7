"""N-Triples and N-Quads lines to quad rows, wholly as column expressions.

Most lines in the world are already canonical: one pattern recognises them. Any other line is first
made canonical, or gets a reason why it cannot be (`canonical.py`). Then cuts at spaces do the rest.
Terms that stand in columns already, spelled by somebody else, are checked in the same way, as a text
with a line for each.

Spec: https://www.w3.org/TR/n-quads/#sec-grammar
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.sources.canonical import (
    EMPTY,
    FAILED,
    OF_LINES,
    OF_TERMS,
    canonicalise,
    is_plain,
    let,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Names that no source can have, since they are taken off again before the frame is returned.
_TEXT: Final = "_nt_text"
_PLAIN: Final = "_nt_plain"
_PARTS: Final = "_nt_parts"
_REST: Final = "_nt_rest"
_TAIL: Final = "_nt_tail"


def parse_lines(frame: DataFrame, line: Column) -> DataFrame:
    """Add the four terms of each line, and the reason where there are none.

    A line that is empty or a comment has neither terms nor a reason.

    Args:
        frame: any DataFrame, streaming or not.
        line: the text of one line, without its end.

    Returns:
        `frame` with the columns of `rows.QUAD_SCHEMA` and `rows.REASON`.
    """
    kept = [F.col(f"`{name}`") for name in frame.columns]
    # Each select names what later ones use more than once, so that Spark computes it once.
    text = F.col(_TEXT)
    staged = frame.select(*kept, line.alias(_TEXT))
    staged = staged.select(*kept, _TEXT, is_plain(text, OF_LINES).alias(_PLAIN))
    # Java does not compile methods of more than 8,000 bytes, and this expression makes one. It gets
    # a projection, and so a method, of its own, which lets plain lines through at once; that it
    # uses the flag twice keeps Spark from merging it with the one before.
    plain = F.col(_PLAIN)
    odd = F.when(plain, text).otherwise(_canonical_line(text))
    staged = staged.select(*kept, odd.alias(_TEXT), _PLAIN)
    staged = staged.select(*kept, _TEXT, _PLAIN, F.split(_TEXT, " ", 3).alias(_PARTS))
    failed = ~plain & text.startswith(FAILED)
    subject, predicate, last = (F.col(_PARTS)[index] for index in range(3))
    staged = staged.select(
        *kept,
        F.when(~failed, subject).alias(rows.SUBJECT),
        F.when(~failed, predicate).alias(rows.PREDICATE),
        F.when(~failed, _cut_off(last, F.lit(2))).alias(_REST),
        F.when(failed, F.substr(text, F.lit(2))).alias(rows.REASON),
    )
    rest, graph = F.col(_REST), F.col(rows.GRAPH)
    others = (rows.SUBJECT, rows.PREDICATE, _REST, rows.REASON)
    staged = staged.select(*kept, *others, _tail_of(rest).alias(_TAIL))
    staged = staged.select(*kept, *others, _graph_of(F.col(_TAIL)).alias(rows.GRAPH))
    obj = _object_of(rest, graph).alias(rows.OBJECT)
    return staged.select(*kept, rows.SUBJECT, rows.PREDICATE, obj, graph, rows.REASON)


def _tail_of(rest: Column) -> Column:
    """What of object and graph name is left after the last quote, or the end of a triple term.

    In it only the graph name has a space before it.
    """
    return (
        F.when(rest.startswith('"'), F.substring_index(rest, '"', -1))
        .when(rest.startswith("<<"), F.substring_index(rest, ")>>", -1))
        .otherwise(rest)
    )


def _graph_of(tail: Column) -> Column:
    return F.when(tail.contains(" "), F.substring_index(tail, " ", -1))


def _object_of(rest: Column, graph: Column) -> Column:
    return F.when(graph.isNull(), rest).otherwise(_cut_off(rest, F.octet_length(graph) + 1))


def _canonical_line(text: Column) -> Column:
    """The canonical form of a line; `!` and the reason if it has none; NULL if it says nothing."""
    return F.when(~text.rlike(EMPTY), canonicalise(text, OF_LINES))


def parse_line(text: Column) -> Column:
    """The four terms of a line and the reason where there are none, as one struct.

    As one expression it costs nothing where it is not asked for, and for a line more than the
    columns of `parse_lines`: it is for frames in which few lines need it.
    """
    nothing = F.lit(None).cast("string")

    def found(*values: Column) -> Column:
        names = (*rows.TERMS, rows.REASON)
        return F.struct(*(each.alias(name) for name, each in zip(names, values, strict=True)))

    def cut(line: Column) -> Column:
        failed = found(*[nothing] * 4, F.substr(line, F.lit(2)))
        return F.when(line.startswith(FAILED), failed).otherwise(let(F.split(line, " ", 3), terms))

    def terms(parts: Column) -> Column:
        def with_rest(rest: Column) -> Column:
            def with_graph(graph: Column) -> Column:
                return found(parts[0], parts[1], _object_of(rest, graph), graph, nothing)

            return let(_graph_of(_tail_of(rest)), with_graph)

        return let(_cut_off(parts[2], F.lit(2)), with_rest)

    # Spark interprets what is inside `zip_with` instead of making Java of it. As Java it would be a
    # method of more than 8,000 bytes, which Java never compiles, and each row would have to enter it.
    one = F.array(text)
    return F.zip_with(one, one, lambda line, _: let(_canonical_line(line), cut))[0]


def check_terms(frame: DataFrame) -> DataFrame:
    """Make the four terms of each row canonical, and add the reason where they are no statement.

    Each term is read by itself: what holds two of them, or the end of a statement, is none.

    Args:
        frame: any DataFrame with the columns of `rows.QUAD_SCHEMA`, in any spelling, NULL too.

    Returns:
        `frame` with these columns spelled canonically, NULL where there is a reason, and
        `rows.REASON`.
    """
    kept = [F.col(f"`{name}`") for name in frame.columns if name not in (*rows.TERMS, rows.REASON)]
    *triple, graph = (F.col(name) for name in rows.TERMS)
    # No pattern lets a line pass that a term brings; an empty name is not the default graph.
    lines = [F.coalesce(each, F.lit("")) for each in triple]
    named = F.when(graph == "", "?").otherwise(F.coalesce(graph, F.lit("")))
    text, plain = F.col(_TEXT), F.col(_PLAIN)
    staged = frame.select(*kept, *rows.TERMS, F.concat_ws("\n", *lines, named).alias(_TEXT))
    staged = staged.select(*kept, *rows.TERMS, _TEXT, is_plain(text, OF_TERMS).alias(_PLAIN))
    # As for lines: a projection of its own.
    odd = F.when(plain, F.lit("")).otherwise(canonicalise(text, OF_TERMS))
    staged = staged.select(*kept, *rows.TERMS, _PLAIN, odd.alias(_TEXT))
    failed = ~plain & text.startswith(FAILED)
    staged = staged.select(
        *kept,
        *rows.TERMS,
        _PLAIN,
        F.when(~plain & ~failed, F.split(text, "\n", -1)).alias(_PARTS),
        F.when(failed, F.substr(text, F.lit(2))).alias(rows.REASON),
    )
    found = [
        F.when(plain, F.col(name)).otherwise(F.nullif(F.col(_PARTS)[place], F.lit(""))).alias(name)
        for place, name in enumerate(rows.TERMS)
    ]
    return staged.select(*kept, *found, rows.REASON)


def _cut_off(text: Column, count: Column) -> Column:
    """Take bytes off the end; as a string, Spark would count characters from the start."""
    return F.substring(text.cast("binary"), F.lit(1), F.octet_length(text) - count).cast("string")
