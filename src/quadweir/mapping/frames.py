"""DataFrames as sources of records: a user's own, and the record rows of live streams.

A frame with the text column of `rows.RECORD_SCHEMA` holds a document or message in each row; any
other frame holds a record in each row, whose references are its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from io import StringIO
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from quadweir import rows
from quadweir.errors import LimitError, MappingError
from quadweir.mapping.formats.batches import RecordRow
from quadweir.mapping.records import (
    Records,
    check_references,
    describe,
    no_such_column,
    read_texts,
    why_python,
    with_position,
)
from quadweir.mapping.sources import FormulationKind, LogicalSource
from quadweir.mapping.values import TYPED, ColumnForm, ReferenceValues
from quadweir.vocab import XSD

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_ROW_TEXT: Final = "_quadweir_row"


def from_frame(frame: DataFrame, logical: LogicalSource, references: Mapping[str, bool]) -> Records:
    """The records of a logical source from a DataFrame, streaming or not."""
    check_references(logical, references)
    records = _from_frame(frame, logical, references)
    if rows.REASON not in frame.columns:
        return records
    # A live source has already reported the records that it could not read.
    given = F.col(rows.REASON)
    reason = given if records.reason is None else F.coalesce(given, records.reason)
    return replace(records, reason=reason)


def _from_frame(
    frame: DataFrame, logical: LogicalSource, references: Mapping[str, bool]
) -> Records:
    is_text = rows.VALUE in frame.columns and isinstance(
        frame.schema[rows.VALUE].dataType, StringType
    )
    match logical.formulation.kind:
        case FormulationKind.JSONPATH if is_text:
            return _json(frame, rows.VALUE, logical, references)
        case FormulationKind.JSONPATH:
            whole = frame.withColumn(_ROW_TEXT, F.to_json(F.struct("*")))
            return _json(whole, _ROW_TEXT, logical, references)
        case FormulationKind.XPATH if is_text:
            return _in_python(frame, rows.VALUE, logical, references)
        case FormulationKind.XPATH:
            raise MappingError(
                f"{describe(logical)} is read by XPath, but its frame has no text column",
                hint=f"Put the XML documents into a string column named {rows.VALUE}.",
                span=logical.span,
            )
        case _ if is_text and rows.PLACE in frame.columns:
            return _in_python(frame, rows.VALUE, logical, references)
        case _:
            return _columns(frame, logical, references)


def _place(frame: DataFrame) -> tuple[Column, bool]:
    if rows.PLACE in frame.columns:
        return F.col(rows.PLACE), True
    return F.lit(""), False


def _json(
    frame: DataFrame, text: str, logical: LogicalSource, references: Mapping[str, bool]
) -> Records:
    if why_python(logical, references) is not None:
        return _in_python(frame, text, logical, references)
    # A row without text is ignored, unless it has a reason.
    wanted = ~F.coalesce(F.col(text), F.lit("")).rlike("^\\s*\\z")
    if rows.REASON in frame.columns:
        wanted = wanted | F.col(rows.REASON).isNotNull()
    records = read_texts(frame.where(wanted), text, logical, references)
    return _placed(records)


def _placed(records: Records) -> Records:
    place, is_placed = _place(records.frame)
    return replace(
        records,
        place=with_position(records.frame, place),
        is_placed=is_placed,
        how=(f"{records.shown}: texts of a DataFrame", *records.how),
    )


# -- columns ----------------------------------------------------------------------------------


def _columns(frame: DataFrame, logical: LogicalSource, references: Mapping[str, bool]) -> Records:
    values = {}
    by_name = {field.name: field.dataType for field in frame.schema.fields}
    for reference in references:
        if reference not in by_name:
            raise no_such_column(reference, list(by_name), describe(logical), logical)
        values[reference] = _column_value(
            frame[f"`{reference.replace('`', '``')}`"], by_name[reference], logical.nulls or ()
        )
    place, is_placed = _place(frame)
    return Records(
        frame=frame,
        values=values,
        shown=describe(logical),
        place=place,
        is_placed=is_placed,
        text=F.to_json(F.struct(*[value.column for value in values.values()]))
        if values
        else F.lit(None).cast("string"),
        reason=None,
        how=(f"{describe(logical)}: columns of a DataFrame",),
    )


def _column_value(column: Column, kind: DataType, nulls: tuple[str, ...]) -> ReferenceValues:
    if isinstance(kind, ArrayType):
        return ReferenceValues(column.cast("array<string>"), ColumnForm.TEXTS, nulls)
    if isinstance(kind, TimestampType | TimestampNTZType):
        text = F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        # The canonical form drops zeros at the end of the fraction, and an empty one.
        text = F.regexp_replace(text, "\\.?0+$", "")
        if isinstance(kind, TimestampType):
            text = F.concat(text, F.date_format(column, "XXX"))
        return ReferenceValues(text, ColumnForm.TEXT, nulls, datatype=XSD.dateTime)
    return ReferenceValues(column.cast("string"), ColumnForm.TEXT, nulls, datatype=_natural(kind))


def _natural(kind: DataType) -> str | None:
    match kind:
        case IntegralType():
            return XSD.integer
        case DecimalType():
            return XSD.decimal
        case FractionalType():
            return XSD.double
        case BooleanType():
            return XSD.boolean
        case DateType():
            return XSD.date
        case _:
            return None


# -- Python on Arrow batches ------------------------------------------------------------------


class _Texts(Enum):
    """The format of the texts."""

    JSON = auto()
    XML = auto()
    CSV = auto()


_KINDS: Final = {FormulationKind.JSONPATH: _Texts.JSON, FormulationKind.XPATH: _Texts.XML}
_TYPES: Final = {_Texts.JSON: TYPED, _Texts.XML: "array<string>", _Texts.CSV: "string"}
_FORMS: Final = {
    _Texts.JSON: ColumnForm.TYPED,
    _Texts.XML: ColumnForm.TEXTS,
    _Texts.CSV: ColumnForm.TEXT,
}


def _in_python(
    frame: DataFrame, text: str, logical: LogicalSource, references: Mapping[str, bool]
) -> Records:
    kind = _KINDS.get(logical.formulation.kind, _Texts.CSV)
    paths = tuple(references)
    names = [f"v{number}" for number in range(len(paths))]
    kept = [field for field in frame.schema.fields if field.name != _ROW_TEXT]
    schema = ", ".join(
        [f"`{field.name}` {field.dataType.simpleString()}" for field in kept]
        + ["_place string", "_reason string", "_record string"]
        + [f"{name} {_TYPES[kind]}" for name in names]
    )
    evaluate = _Evaluate(
        text,
        tuple(field.name for field in kept),
        kind,
        logical.iterator,
        paths,
        logical.formulation.namespaces,
        logical.empty_is_missing,
    )
    mapped = frame.mapInArrow(evaluate, schema)
    _, is_placed = _place(frame)
    nulls = logical.nulls or ()
    why = {
        _Texts.XML: "XPaths run in Python on Arrow batches: Spark's know no namespaces and expand "
        "entities",
        _Texts.CSV: "rows are parsed in Python on Arrow batches: each message has its own header",
        _Texts.JSON: f"JSONPaths run in Python on Arrow batches: {why_python(logical, references)}",
    }[kind]
    return Records(
        frame=mapped,
        values={
            path: ReferenceValues(F.col(name), _FORMS[kind], nulls)
            for path, name in zip(paths, names, strict=True)
        },
        shown=describe(logical),
        place=F.concat_ws(
            " ", *([F.col(rows.PLACE)] if is_placed else []), F.nullif("_place", F.lit(""))
        ),
        is_placed=is_placed,
        text=F.col("_record"),
        reason=F.col("_reason"),
        how=(f"{describe(logical)}: texts of a DataFrame", why),
        uses_python=True,
    )


@final
class _Evaluate:
    """Evaluates all references of each text, in a worker."""

    def __init__(
        self,
        text: str,
        kept: Sequence[str],
        kind: _Texts,
        iterator: str | None,
        references: Sequence[str],
        namespaces: tuple[tuple[str, str], ...],
        empty_is_missing: bool,
    ) -> None:
        self._text = text
        self._kept = tuple(kept)
        self._kind = kind
        self._iterator = iterator
        self._references = tuple(references)
        self._namespaces = namespaces
        self._empty_is_missing = empty_is_missing

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from quadweir.mapping.formats.filejob import TEXT_TYPE, TEXTS_TYPE, TYPED_TYPE

        kind = {_Texts.JSON: TYPED_TYPE, _Texts.XML: TEXTS_TYPE, _Texts.CSV: TEXT_TYPE}[self._kind]
        names = [f"v{number}" for number in range(len(self._references))]
        for batch in batches:
            texts = batch.column(self._text)
            reasons = batch.column(rows.REASON) if rows.REASON in batch.schema.names else None
            taken: list[int] = []
            made: list[RecordRow] = []
            for number, text in enumerate(texts):
                value = text.as_py()
                if reasons is not None and reasons[number].is_valid:
                    taken.append(number)
                    made.append(RecordRow("", None, None, value))
                elif value is not None and value.strip():
                    for row in self._rows(value):
                        taken.append(number)
                        made.append(row)
            at = pa.array(taken, pa.int64())
            kept = [batch.column(name).take(at) for name in self._kept]
            empty = (None,) * len(names)
            values = [row.values if row.values is not None else empty for row in made]
            columns = list(zip(*values, strict=True)) if made else [()] * len(names)
            letters = [[row.place, row.reason, row.record] for row in made]
            letter_columns = list(zip(*letters, strict=True)) if made else [()] * 3
            yield pa.RecordBatch.from_arrays(
                [
                    *kept,
                    *[pa.array(one, pa.string()) for one in letter_columns],
                    *[pa.array(column, kind) for column in columns],
                ],
                names=[*self._kept, "_place", "_reason", "_record", *names],
            )

    def _rows(self, text: str) -> Iterator[RecordRow]:
        match self._kind:
            case _Texts.XML:
                from quadweir.mapping.formats.xmlfile import XmlPlan, read_elements

                plan = XmlPlan(self._iterator or "/*", self._references, self._namespaces)
                return read_elements(text, plan, "UTF-8")
            case _Texts.CSV:
                from quadweir.mapping.formats.csvfile import read_rows
                from quadweir.mapping.sources import CsvDialect

                return read_rows(
                    StringIO(text, newline=""),
                    CsvDialect(),
                    self._references,
                    empty_is_missing=self._empty_is_missing,
                )
            case _Texts.JSON:
                return self._json(text)

    def _json(self, text: str) -> Iterator[RecordRow]:
        from quadweir.mapping.formats.batches import bad_row
        from quadweir.mapping.formats.jsonfile import MalformedJson, evaluate, parse_record
        from quadweir.mapping.jsonpath import select

        try:
            document = parse_record(text)
            found = select(document, self._iterator or "$")
        except MalformedJson as error:
            yield bad_row("", f"not valid JSON: {error}", text)
            return
        except RecursionError:
            yield bad_row("", "not valid JSON: nested too deeply", text)
            return
        except LimitError as error:
            yield bad_row("", f"{error.code}: {error.message}", text)
            return
        for number, record in enumerate(found, 1):
            yield evaluate(str(number), record, self._references, 0)
