"""The records of a mapping's logical source: one row each, with a value for each reference.

Other modules read them: `readfile` from files, `live` from streams and `frames` from DataFrames.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir.errors import MappingError
from quadweir.mapping.jsoncolumns import (
    POSITION,
    read_json,
    spells,
)
from quadweir.mapping.jsonpath import check_path, simple_steps, why_not_simple
from quadweir.mapping.sources import (
    FormulationKind,
    LogicalSource,
)
from quadweir.mapping.values import ReferenceValues

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from quadweir.mapping.formats.xmlfile import XmlPlan

# Characters of a column's name that an error shows: a file that is not CSV can be one long name.
_MOST_SHOWN: Final = 80


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of one logical source."""

    frame: DataFrame
    values: Mapping[str, ReferenceValues]
    shown: str
    """The name of the source in dead letters."""
    place: Column
    is_placed: bool = True
    """Whether `place` is unique for each record, and the same whenever it is computed."""
    text: Column
    """The original text of the record, if known."""
    reason: Column | None
    """The reason why a record is unusable, NULL if it is usable; None if all can be used."""
    how: tuple[str, ...] = ()
    is_small: bool = False
    """Whether the records were read into the driver."""
    uses_python: bool = False
    """Whether Python workers take part."""
    count: int | None = None
    """The number of records, if it is known and all can be used."""


def describe(logical: LogicalSource) -> str:
    """Name a source in a few words.

    >>> from quadweir.mapping.sources import MappedFile, Formulation, FormulationKind, LogicalSource
    >>> describe(LogicalSource(
    ...     source=MappedFile(path="a.csv"), formulation=Formulation(kind=FormulationKind.CSV)))
    'a.csv'
    """
    source = logical.source
    for name in ("path", "topic", "iri", "name", "url"):
        if hasattr(source, name):
            return str(getattr(source, name))
    return type(source).__name__


def check_references(logical: LogicalSource, references: Mapping[str, bool]) -> None:
    """Raise a MappingError for an invalid path."""
    try:
        match logical.formulation.kind:
            case FormulationKind.JSONPATH:
                check_path(logical.iterator or "$", "the iterator")
                for reference in references:
                    check_path(reference, "a reference")
            case FormulationKind.XPATH:
                from quadweir.mapping.formats.xmlfile import check_plan

                check_plan(xml_plan(logical, references))
            case _:
                pass
    except MappingError as error:
        error.span = error.span or logical.span
        raise


def xml_plan(logical: LogicalSource, references: Iterable[str]) -> XmlPlan:
    """How the elements of a source are found and read."""
    from quadweir.mapping.formats.xmlfile import XmlPlan

    return XmlPlan(logical.iterator or "/*", tuple(references), logical.formulation.namespaces)


def why_python(logical: LogicalSource, references: Mapping[str, bool]) -> str | None:
    """The reason why the JSONPaths of a source are evaluated in Python; None if Spark evaluates
    them.
    """
    for path in (logical.iterator or "$", *references):
        steps = simple_steps(path)
        if steps is None:
            return f"{path} {why_not_simple(path)}"
        if not spells(steps):
            return f"{path} has both kinds of quotes in a name"
    return None


def no_such_column(
    reference: str, names: list[str], shown: str, logical: LogicalSource
) -> MappingError:
    """The error for a reference to a column that is not there."""
    import difflib

    delimiter = _other_delimiter(reference, names)
    if delimiter is not None:
        shown_delimiter = "\\t" if delimiter == "\t" else delimiter
        return MappingError(
            f"the mapping reads the column {reference!r}, but {shown} has {delimiter!r} between its "
            "columns",
            detail=f"Read with another delimiter, its header is the one name {names[0]!r}.",
            hint="Set the delimiter: in RML rml:source [ a csvw:Table ; csvw:url ... ; csvw:dialect "
            f'[ csvw:delimiter "{shown_delimiter}" ] ], in YARRRML delimiter: "{shown_delimiter}".',
            span=logical.span,
        )
    if any("\0" in name for name in names):
        return MappingError(
            f"{shown} has no header that can be read: it is not text, or in another encoding",
            detail=f"It begins with {names[0][:_MOST_SHOWN]!r}.",
            hint="If it is UTF-16, declare it: rml:encoding rml:UTF-16LE or rml:UTF-16BE, in a "
            'csvw:dialect csvw:encoding "utf-16-le". If it is compressed: rml:compression rml:gzip.',
            span=logical.span,
        )
    near = difflib.get_close_matches(reference, names, 1, 0.6) or [
        name for name in names if name.lower() == reference.lower()
    ]
    return MappingError(
        f"the mapping reads the column {reference!r}, which {shown} does not have",
        detail=f"It has {', '.join(map(_shown, names[:30])) or 'no columns at all'}.",
        hint=f"Did you mean {near[0]!r}?" if near else "Check the name, and the CSV dialect.",
        span=logical.span,
    )


def _shown(name: str) -> str:
    return repr(name) if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]!r}..."


def _other_delimiter(reference: str, names: list[str]) -> str | None:
    """The likely delimiter of a file whose header was read as one name."""
    if len(names) != 1:
        return None
    for delimiter in ";\t|,":
        if reference in (name.strip(" \"'") for name in names[0].split(delimiter)):
            return delimiter
    return None


def with_position(frame: DataFrame, place: Column) -> Column:
    """Add the number of a record within its text to its place, if a text can hold several."""
    if POSITION not in frame.columns:
        return place
    return F.concat_ws(".", place, F.col(POSITION).cast("string"))


def read_texts(
    frame: DataFrame, text: str, logical: LogicalSource, references: Mapping[str, bool]
) -> Records:
    """Read a column of JSON texts by Spark expressions."""
    raw = F.col(text)
    frame, values, problem = read_json(
        frame, text, logical.iterator, references, logical.nulls or ()
    )
    broken = F.when(~F.is_valid_utf8(raw), F.lit("not UTF-8"))
    return Records(
        frame=frame,
        values=values,
        shown=describe(logical),
        place=F.lit(""),
        text=F.make_valid_utf8(raw),
        reason=F.coalesce(broken, problem),
        how=("JSONPaths are Spark expressions",),
    )


__all__ = [
    "Records",
    "check_references",
    "describe",
    "no_such_column",
    "read_texts",
    "why_python",
    "with_position",
    "xml_plan",
]
