"""DataFrames as sources of records: a user's own, and the record rows of live streams.

A frame with the text column of `rows.RECORD_SCHEMA` holds a document or message in each row; any
other frame holds a record in each row, whose references are its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

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
from quadweir.errors import MappingError
from quadweir.mapping.formats.batches import Row
from quadweir.mapping.records import (
    Records,
    check_references,
    describe,
    no_such_column,
    read_texts,
    why_python,
)
from quadweir.mapping.sources import FormulationKind, LogicalSource
from quadweir.mapping.values import TYPED, Form, Value
from quadweir.vocab import XSD

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_ROW_TEXT: Final = "_quadweir_row"


def from_frame(frame: DataFrame, logical: LogicalSource, references: Mapping[str, bool]) -> Records:
    """Take the records of a logical source from a DataFrame, streaming or not."""
    check_references(logical, references)
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
    # A message without text is no message.
    records = read_texts(
        frame.where(~F.coalesce(F.col(text), F.lit("")).rlike("^\\s*\\z")),
        text,
        logical,
        references,
    )
    return _placed(records)


def _placed(records: Records) -> Records:
    from dataclasses import replace

    from quadweir.mapping.records import with_position

    place, is_placed = _place(records.frame)
    return replace(records, place=with_position(records.frame, place), is_placed=is_placed)


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


def _column_value(column: Column, kind: DataType, nulls: tuple[str, ...]) -> Value:
    if isinstance(kind, ArrayType):
        return Value(column.cast("array<string>"), Form.TEXTS, nulls)
    if isinstance(kind, TimestampType | TimestampNTZType):
        text = F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        # The canonical form drops zeros at the end of the fraction, and an empty one.
        text = F.regexp_replace(text, "\\.?0+$", "")
        if isinstance(kind, TimestampType):
            text = F.concat(text, F.date_format(column, "XXX"))
        return Value(text, Form.TEXT, nulls, datatype=XSD.dateTime)
    return Value(column.cast("string"), Form.TEXT, nulls, datatype=_natural(kind))


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


def _in_python(
    frame: DataFrame, text: str, logical: LogicalSource, references: Mapping[str, bool]
) -> Records:
    is_xml = logical.formulation.kind is FormulationKind.XPATH
    paths = tuple(references)
    kind = "array<string>" if is_xml else TYPED
    names = [f"v{number}" for number in range(len(paths))]
    kept = [field for field in frame.schema.fields if field.name != _ROW_TEXT]
    schema = ", ".join(
        [f"`{field.name}` {field.dataType.simpleString()}" for field in kept]
        + ["_place string", "_reason string", "_record string"]
        + [f"{name} {kind}" for name in names]
    )
    evaluate = _Evaluate(
        text,
        tuple(field.name for field in kept),
        is_xml,
        logical.iterator,
        paths,
        logical.formulation.namespaces,
    )
    mapped = frame.mapInArrow(evaluate, schema)
    _, is_placed = _place(frame)
    nulls = logical.nulls or ()
    form = Form.TEXTS if is_xml else Form.TYPED
    why = (
        "XPaths run in Python on Arrow batches: Spark's know no namespaces and expand entities"
        if is_xml
        else f"JSONPaths run in Python on Arrow batches: {why_python(logical, references)}"
    )
    return Records(
        frame=mapped,
        values={
            path: Value(F.col(name), form, nulls) for path, name in zip(paths, names, strict=True)
        },
        shown=describe(logical),
        place=F.concat_ws(" ", *([rows.PLACE] if is_placed else []), "_place"),
        is_placed=is_placed,
        text=F.col("_record"),
        reason=F.col("_reason"),
        how=(f"{describe(logical)}: texts of a DataFrame", why),
    )


class _Evaluate:
    """Evaluates all references of each text, in a worker."""

    def __init__(
        self,
        text: str,
        kept: Sequence[str],
        is_xml: bool,
        iterator: str | None,
        references: Sequence[str],
        namespaces: tuple[tuple[str, str], ...],
    ) -> None:
        self._text = text
        self._kept = tuple(kept)
        self._is_xml = is_xml
        self._iterator = iterator
        self._references = tuple(references)
        self._namespaces = namespaces

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from quadweir.mapping.formats.batches import schema_of
        from quadweir.mapping.formats.filejob import TEXTS_TYPE, TYPED_TYPE

        names = [f"v{number}" for number in range(len(self._references))]
        own = schema_of(names, TEXTS_TYPE if self._is_xml else TYPED_TYPE)
        for batch in batches:
            texts = batch.column(batch.schema.get_field_index(self._text))
            taken: list[int] = []
            made: list[Row] = []
            for number, text in enumerate(texts):
                value = text.as_py()
                if value is None or not value.strip():
                    continue
                for row in self._rows(value):
                    taken.append(number)
                    made.append(row)
            at = pa.array(taken, pa.int64())
            kept = [
                batch.column(batch.schema.get_field_index(name)).take(at) for name in self._kept
            ]
            empty = (None,) * len(names)
            values = [row.values if row.values is not None else empty for row in made]
            columns = list(zip(*values, strict=True)) if made else [()] * len(names)
            data = [
                pa.array([row.place for row in made], pa.string()),
                pa.array([row.reason for row in made], pa.string()),
                pa.array([row.record for row in made], pa.string()),
                *[
                    pa.array(column, own.field(3 + number).type)
                    for number, column in enumerate(columns)
                ],
            ]
            yield pa.RecordBatch.from_arrays(
                [*kept, *data],
                names=[*self._kept, "_place", "_reason", "_record", *names],
            )

    def _rows(self, text: str) -> Iterator[Row]:
        from quadweir.mapping.formats.batches import bad_row

        if self._is_xml:
            from quadweir.mapping.formats.xmlfile import XmlPlan, read_elements

            plan = XmlPlan(self._iterator or "/*", self._references, self._namespaces)
            yield from read_elements(text, plan, "UTF-8")
            return
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
        for number, record in enumerate(found, 1):
            yield evaluate(str(number), record, self._references, 0)
