"""The records of a plain XML file as Spark expressions: split at end tags, and children by tags.

The conditions for this are checked before, for the whole file (`formats/xmlscan.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quadweir.mapping.formats.xmlfile import asks_text
from quadweir.mapping.formats.xmlscan import PlainXml
from quadweir.mapping.values import ColumnForm, ReferenceValues

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CELLS: Final = "_quadweir_cells"
_REFERENCES: Final = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
"""`&amp;` comes last, because its result may look like one of the others."""


def read_plain(spark: SparkSession, path: str, plain: PlainXml) -> DataFrame:
    """A row for each record, with its text up to its end tag; `path` is in Spark's form."""
    text = F.col("value")
    frame = spark.read.text(path, lineSep=f"</{plain.record}>")
    # The text after the last record is a row too.
    frame = frame.where(text.contains(f"<{plain.record}{_after_name(plain)}"))
    # No text contains the character `<`.
    return frame.withColumn(_CELLS, F.split(text, "<")) if plain.is_regular else frame


def plain_values(
    plain: PlainXml, references: Mapping[str, bool], nulls: tuple[str, ...]
) -> dict[str, ReferenceValues]:
    """The values of each reference in the rows of `read_plain`."""
    return {
        reference: ReferenceValues(
            _value(plain, found, asks_text(reference)),
            ColumnForm.TEXT,
            nulls,
            is_clean=plain.is_clean,
        )
        for reference, found in zip(references, plain.found, strict=True)
    }


def _after_name(plain: PlainXml) -> str:
    return " " if plain.has_attributes else ">"


def _value(plain: PlainXml, found: str | None, own_text: bool) -> Column:
    if found is None:
        return F.lit(None).cast("string")
    text = F.col("value")
    if found.startswith("@"):
        tag = F.substring_index(_behind(text, f"<{plain.record}"), ">", 1)
        start = f' {found[1:]}="'
        value = F.when(tag.contains(start), F.substring_index(_behind(tag, start), '"', 1))
    elif plain.is_regular:
        # Counted from the end: before the first record there is more than before the others.
        place = 2 * (plain.children.index(found) - len(plain.children))
        cell = F.try_element_at(_CELLS, F.lit(place))
        has_name_only = plain.ends == (">",)
        value = F.substr(cell, F.lit(len(found) + 2)) if has_name_only else _behind(cell, ">")
    else:
        starts = [f"<{found}{end}" for end in plain.ends]
        parts = [
            F.when(text.contains(start), F.substring_index(_behind(text, start), "<", 1))
            for start in starts
        ]
        # Behind a space come attributes; neither they nor texts hold the sign that ends a tag.
        value = _behind(F.coalesce(*parts), ">") if len(parts) > 1 else parts[0]
    if plain.has_references:
        value = F.when(value.contains("&"), _resolved(value)).otherwise(value)
    return F.nullif(value, F.lit("")) if own_text else value


def _behind(text: Column, start: str) -> Column:
    return F.substring_index(text, start, -1)


def _resolved(text: Column) -> Column:
    for reference, character in _REFERENCES.items():
        text = F.replace(text, F.lit(reference), F.lit(character))
    return text
