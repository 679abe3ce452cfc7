"""Simple JSONPaths as Spark expressions, with one parse for each record.

Only the first members of references are parsed. A member that is only used in templates becomes a
string; one whose type matters becomes a variant, and longer paths continue inside it. Variants take
any shape, so a record of an unexpected shape loses nothing.

Measured on records of eight members (`quadweir bench mapping`): `from_json` with a schema costs
half of `get_json_object` per member, and a variant costs no more than a string.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType, VariantType

from quadweir.mapping.jsonpath import Every, ObjectMember, PathStep, Position, simple_steps
from quadweir.mapping.values import ColumnForm, ReferenceValues

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BROKEN: Final = "_quadweir_broken"
_ITEM: Final = "_quadweir_item"
_PARTS: Final = "_quadweir_parts"
POSITION: Final = "_quadweir_position"
"""The number of a record within its text, if there can be several."""
NOT_JSON: Final = "not valid JSON"
TRAILING: Final = "trailing content after the JSON value"
_BLANK: Final = "^\\s*\\z"
_MOST_BYTES: Final = 16 * 2**20
_TOO_LONG: Final = f"longer than {_MOST_BYTES} bytes, more than Spark parses as one JSON record"


def spells(steps: Sequence[PathStep]) -> bool:
    """Whether Spark's own path language can name every member."""
    return not any(
        isinstance(step, ObjectMember) and "'" in step.name and '"' in step.name for step in steps
    )


def is_blank(text: Column) -> Column:
    """Whether a text is blank; for most texts the first byte is enough."""
    return F.when(text.startswith("{"), False).otherwise(text.rlike(_BLANK))


def flat_schema(references: Mapping[str, bool]) -> StructType | None:
    """The members of flat objects as fields; None if some reference needs more."""
    paths = [simple_steps(reference) or () for reference in references]
    if not paths or any(len(path) != 1 or not isinstance(path[0], ObjectMember) for path in paths):
        return None
    fields: dict[str, bool] = {}
    for path, is_typed in zip(paths, references.values(), strict=True):
        head = path[0]
        assert isinstance(head, ObjectMember)
        fields[head.name] = fields.get(head.name, False) or is_typed
    if len({name.lower() for name in fields}) < len(fields):
        return None
    return _schema(fields)


def read_flat(
    frame: DataFrame, references: Mapping[str, bool], nulls: tuple[str, ...], is_clean: bool
) -> tuple[dict[str, ReferenceValues], Column, Column]:
    """The values in rows that Spark's own reader made from flat objects.

    Returns:
        The value of each reference; the text of a record as far as it is known; the reason why it
        is unusable, NULL if it is not.
    """
    values = {}
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    for reference in references:
        (head,) = simple_steps(reference) or ()
        assert isinstance(head, ObjectMember)
        form = ColumnForm.VARIANT if isinstance(kinds[head.name], VariantType) else ColumnForm.TEXT
        values[reference] = ReferenceValues(
            _quoted(head.name), form, nulls, is_clean=is_clean, is_scalar=True
        )
    broken = F.col(BROKEN)
    members = F.to_json(F.struct(*[_quoted(name) for name in kinds if name != BROKEN]))
    # Spark refuses to read a file only for its broken records, and a count of the good ones may
    # become just that. So the reason refers to the members.
    text = F.coalesce(broken, members)
    reason = F.when(broken.isNotNull(), F.when(F.try_parse_json(text).isNull(), _fault(broken)))
    return values, text, reason


def _quoted(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def read_json(
    frame: DataFrame,
    text: str,
    iterator: str | None,
    references: Mapping[str, bool],
    nulls: tuple[str, ...],
) -> tuple[DataFrame, dict[str, ReferenceValues], Column]:
    """Parse a column of JSON texts.

    Args:
        frame: one row for each text.
        text: the name of the column that holds it.
        iterator: the simple path to the records in a text.
        references: each simple path that is wanted, and whether its type matters.
        nulls: texts that count as missing.

    Returns:
        One row for each record; the value of each reference; the reason why a text is unusable,
        NULL if it is not.
    """
    steps = simple_steps(iterator or "$") or ()
    paths = {reference: simple_steps(reference) or () for reference in references}
    heads = {path[0].name for path in paths.values() if path and isinstance(path[0], ObjectMember)}
    # Spark compares the names of fields without case, so two that differ only in it cannot both
    # be fields.
    by_fields = len({name.lower() for name in heads}) == len(heads) and all(
        path and isinstance(path[0], ObjectMember) for path in paths.values()
    )
    raw = F.col(text)
    if not steps and by_fields:
        return _by_fields(frame, raw, paths, references, nulls)
    parsed = F.try_parse_json(raw)
    if steps:
        frame = frame.withColumn(_PARTS, parsed)
        broken = _reason(F.col(_PARTS), raw)
        items = _follow(F.col(_PARTS), ColumnForm.VARIANT, steps)
        many = items[0] if items[1] is ColumnForm.VARIANTS else F.array(items[0])
        # An unusable text keeps its row, so that it can be reported.
        frame = frame.select("*", F.posexplode_outer(many).alias(POSITION, _ITEM))
        reason = broken
    else:
        frame = frame.withColumn(_ITEM, parsed)
        reason = _reason(F.col(_ITEM), raw)
    values = {}
    for reference, path in paths.items():
        column, form = _follow(F.col(_ITEM), ColumnForm.VARIANT, path)
        values[reference] = ReferenceValues(column, form, nulls)
    return frame, values, reason


def _by_fields(
    frame: DataFrame,
    raw: Column,
    paths: Mapping[str, tuple[PathStep, ...]],
    references: Mapping[str, bool],
    nulls: tuple[str, ...],
) -> tuple[DataFrame, dict[str, ReferenceValues], Column]:
    variants: dict[str, bool] = {}
    for reference, path in paths.items():
        head = path[0]
        assert isinstance(head, ObjectMember)
        variants[head.name] = (
            variants.get(head.name, False) or references[reference] or len(path) > 1
        )
    schema = _schema(variants)
    # An array of records would give its first one.
    record = F.when(
        ~F.ltrim(raw).startswith("["),
        F.from_json(raw, schema, {"columnNameOfCorruptRecord": BROKEN, "mode": "PERMISSIVE"}),
    )
    frame = frame.withColumn(_PARTS, record)
    parts = F.col(_PARTS)
    values = {}
    for reference, path in paths.items():
        head = path[0]
        assert isinstance(head, ObjectMember)
        column = parts.getField(head.name)
        if variants[head.name]:
            column, form = _follow(column, ColumnForm.VARIANT, path[1:])
            values[reference] = ReferenceValues(column, form, nulls)
        else:
            # Only the text of an array or object can begin so, or a string that happens to.
            # A CASE, not an AND: Spark computes what several ANDs share before it needs it, and
            # would parse every record twice.
            nested = F.when(
                column.startswith("{") | column.startswith("["),
                F.schema_of_variant(
                    F.try_variant_get(F.try_parse_json(raw), _spell([head]), "variant")
                ).rlike("^[AO]"),
            )
            plain = F.when(nested, F.lit(None)).otherwise(column)
            elements = F.when(
                column.startswith("["),
                F.try_variant_get(F.try_parse_json(raw), _spell([head]), "array<variant>"),
            )
            values[reference] = ReferenceValues(
                plain, ColumnForm.TEXT, nulls, nested, elements=elements
            )
    reason = F.when(
        parts.getField(BROKEN).isNotNull(), F.when(F.try_parse_json(raw).isNull(), _fault(raw))
    ).when(
        _trailing(raw),
        F.when(F.try_parse_json(raw).isNull(), _fault(raw)).otherwise(F.lit(TRAILING)),
    )
    return frame, values, reason


def _schema(variants: Mapping[str, bool]) -> StructType:
    return StructType(
        [
            StructField(name, VariantType() if variant else StringType())
            for name, variant in sorted(variants.items())
        ]
        + [StructField(BROKEN, StringType())]
    )


def _reason(parsed: Column, raw: Column) -> Column:
    return F.when(parsed.isNull(), _fault(raw)).when(_trailing(raw), F.lit(TRAILING))


def _trailing(raw: Column) -> Column:
    """Whether a text that Spark could parse continues after its first value.

    Spark reads one value and leaves the rest unread. In brackets, a second value is a second
    element or an error. Where the first brace is the last byte, there is no second value: bytes,
    not characters, which would have to be counted.
    """
    whole = F.try_parse_json(F.concat(F.lit("["), raw, F.lit("]")))
    second = F.try_variant_get(whole, "$[1]", "variant")
    is_one = F.octet_length(F.substring_index(raw, "}", 1)) + 1 == F.octet_length(raw)
    return F.when(is_one, False).otherwise(whole.isNull() | second.isNotNull())


def _fault(raw: Column) -> Column:
    return F.when(F.octet_length(raw) > _MOST_BYTES, F.lit(_TOO_LONG)).otherwise(F.lit(NOT_JSON))


def _follow(
    column: Column, form: ColumnForm, steps: Sequence[PathStep]
) -> tuple[Column, ColumnForm]:
    """Follow steps from a variant, or from an array of variants."""
    run: list[PathStep] = []
    for step in steps:
        if not isinstance(step, Every):
            run.append(step)
            continue
        column, form = _children(column, form, run)
        run = []
    if not run:
        return column, form
    path = _spell(run)
    if form is ColumnForm.VARIANTS:
        return F.transform(column, lambda one: F.try_variant_get(one, path, "variant")), form
    return F.try_variant_get(column, path, "variant"), form


def _children(
    column: Column, form: ColumnForm, run: Sequence[PathStep]
) -> tuple[Column, ColumnForm]:
    path = _spell(run)
    if form is ColumnForm.VARIANTS:
        return (
            F.flatten(F.array_compact(F.transform(column, lambda one: _every(one, path)))),
            ColumnForm.VARIANTS,
        )
    return _every(column, path), ColumnForm.VARIANTS


def _every(column: Column, path: str) -> Column:
    return F.coalesce(
        F.try_variant_get(column, path, "array<variant>"),
        F.map_values(F.try_variant_get(column, path, "map<string,variant>")),
    )


def _spell(steps: Sequence[PathStep]) -> str:
    path = "$"
    for step in steps:
        match step:
            case ObjectMember(name=name):
                path += f'["{name}"]' if "'" in name else f"['{name}']"
            case Position(index=index):
                path += f"[{index}]"
            case Every():
                raise AssertionError("wildcards are not spelt")
    return path
