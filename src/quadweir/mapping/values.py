"""What a reference finds in a record, in the forms in which Spark holds it.

CSV and XML give texts; JSON gives values with a type, from which a literal takes its natural
datatype. A value that is an array or an object is no term: it is a fault of the record.

Spec: https://kg-construct.github.io/rml-core/spec/docs/#natural-mapping
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir.mapping.literals import canonical_double, literal
from quadweir.vocab import XSD

if TYPE_CHECKING:
    from pyspark.sql import Column

_INTEGER: Final = f'"^^<{XSD.integer}>'
_DOUBLE: Final = f'"^^<{XSD.double}>'
_BOOLEAN: Final = f'"^^<{XSD.boolean}>'
# A variant keeps 1.0 as a decimal without fraction; whole numbers are decimals only beyond 64 bit.
_FRACTION: Final = r"^D(?!ECIMAL\((?:19|2[0-9]|3[0-9]),0\))"

TYPED: Final = "array<struct<text: string, kind: string>>"
"""How Python gives the values of a JSONPath."""


class Form(Enum):
    """How the column of a value is typed."""

    TEXT = auto()
    TEXTS = auto()
    VARIANT = auto()
    VARIANTS = auto()
    TYPED = auto()


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """A column of strings, or with `many` one of arrays of strings; NULL stands for none."""

    column: Column
    many: bool = False
    pieces: tuple[str | Column, ...] = ()
    """What the string is put together of, where that is known: fixed texts, and columns."""

    @property
    def constant(self) -> str | None:
        """The string, where it is the same for every record."""
        fixed = [piece for piece in self.pieces if isinstance(piece, str)]
        return "".join(fixed) if fixed and len(fixed) == len(self.pieces) else None

    def map(self, each: Callable[[Column], Column]) -> Terms:
        """Apply a column expression to every string."""
        if not self.many:
            return Terms(each(self.column))
        return Terms(F.transform(self.column, each), many=True)

    def to_array(self) -> Column:
        """The strings as an array without NULLs."""
        if self.many:
            return F.array_compact(F.coalesce(self.column, F.array().cast("array<string>")))
        return F.array_compact(F.array(self.column))


def put_together(*pieces: str | Column) -> Terms:
    """A string made of fixed texts and columns; NULL if one of the columns is."""
    columns = [F.lit(piece) if isinstance(piece, str) else piece for piece in pieces]
    return Terms(columns[0] if len(columns) == 1 else F.concat(*columns), pieces=pieces)


@final
@dataclass(frozen=True, slots=True)
class Value:
    """What one reference finds in a record."""

    column: Column
    form: Form
    nulls: tuple[str, ...] = ()
    is_nested: Column | None = None
    """For a TEXT of JSON: whether it is the text of an array or object."""
    datatype: str | None = None
    """For a TEXT from a typed column: the IRI of its natural datatype."""
    plain: Column | None = None
    """Where `text` has been computed already."""
    key: Column | None = None
    """Where `keyed` has."""
    is_clean: bool = False
    """Whether texts are of ASCII, and none of a character that a literal spells as an escape."""

    @property
    def many(self) -> bool:
        """Whether there may be several."""
        return self.form in (Form.TEXTS, Form.VARIANTS, Form.TYPED)

    def text(self) -> Terms:
        """The values as plain text."""
        if self.plain is not None:
            return Terms(self.plain, self.many)
        match self.form:
            case Form.TEXT | Form.TEXTS:
                terms = Terms(self.column, self.many)
            case Form.VARIANT | Form.VARIANTS:
                terms = Terms(self.column, self.many).map(_variant_text)
            case Form.TYPED:
                terms = Terms(F.transform(self.column, _typed_text), many=True)
        if not self.nulls:
            return terms
        return terms.map(lambda text: F.when(~text.isin(*self.nulls), text))

    def natural(self) -> Terms:
        """The values as literals of their natural datatypes."""
        match self.form:
            case Form.TEXT | Form.TEXTS:
                return self.text().map(
                    lambda text: literal(text, datatype=self.datatype, is_escaped=self.is_clean)
                )
            case Form.VARIANT | Form.VARIANTS:
                terms = Terms(self.column, self.many).map(
                    lambda value: _variant_literal(value, self.plain, self.is_clean)
                )
            case Form.TYPED:
                terms = Terms(F.transform(self.column, _typed_literal), many=True)
        if not self.nulls:
            return terms
        spelt = [f'"{null}"' for null in self.nulls]
        return terms.map(lambda term: F.when(~term.isin(*spelt), term))

    @property
    def is_typed(self) -> bool:
        """Whether values have types of their own."""
        return self.datatype is not None or self.form not in (Form.TEXT, Form.TEXTS)

    def keyed(self) -> Terms:
        """The values as texts that are equal where the values and their types are."""
        if self.key is not None:
            return Terms(self.key)
        match self.form:
            case Form.TEXT | Form.TEXTS:
                return self.text().map(lambda text: _keyed(F.lit(self.datatype is None), text))
            case Form.VARIANT:
                is_string = F.schema_of_variant(self.column) == "STRING"
                return Terms(_keyed(is_string, self.text().column))
            case Form.VARIANTS:
                terms = Terms(self.column, self.many).map(
                    lambda value: _keyed(
                        F.schema_of_variant(value) == "STRING", _variant_text(value)
                    )
                )
            case Form.TYPED:
                terms = Terms(
                    F.transform(
                        self.column, lambda one: _keyed(one["kind"] == "string", _typed_text(one))
                    ),
                    many=True,
                )
        if not self.nulls:
            return terms
        spelt = [f'"{null}' for null in self.nulls]
        return terms.map(lambda key: F.when(~key.isin(*spelt), key))

    def double_text(self) -> Terms:
        """The values as plain text, numbers in the canonical form of xsd:double."""
        match self.form:
            case Form.VARIANT | Form.VARIANTS:
                return Terms(self.column, self.many).map(
                    lambda value: F.when(
                        F.schema_of_variant(value).rlike("^(?:BIGINT|D)"),
                        canonical_double(value.cast("double").cast("string")),
                    ).otherwise(_variant_text(value))
                )
            case Form.TYPED:
                return Terms(
                    F.transform(
                        self.column,
                        lambda one: F.when(
                            one["kind"].isin("integer", "double"),
                            canonical_double(one["text"].cast("double").cast("string")),
                        ).otherwise(_typed_text(one)),
                    ),
                    many=True,
                )
            case _:
                return self.text()

    def fault(self) -> Column | None:
        """Whether some value is an array or an object; None if that cannot be."""
        match self.form:
            case Form.TEXT:
                return self.is_nested
            case Form.TEXTS:
                return None
            case Form.VARIANT:
                return _is_nested(self.column)
            case Form.VARIANTS:
                return F.exists(self.column, _is_nested)
            case Form.TYPED:
                return F.exists(self.column, lambda one: one["kind"].isin("array", "object"))


def _keyed(is_string: Column, text: Column) -> Column:
    # Texts of numbers and truth values differ from one another anyway.
    return F.concat(F.when(is_string, '"').otherwise(F.lit("=")), text)


def _is_nested(value: Column) -> Column:
    kind = F.schema_of_variant(value)
    return kind.startswith("ARRAY") | kind.startswith("OBJECT")


def _variant_text(value: Column) -> Column:
    # Most are strings and whole numbers, which show without a regular expression what they are.
    kind, text = F.schema_of_variant(value), value.cast("string")
    return (
        F.when(kind == "STRING", text)
        .when(_is_nested(value), F.lit(None))
        .when(kind.startswith("D"), F.when(kind.rlike(_FRACTION), _double(value)).otherwise(text))
        .otherwise(text)
    )


def _variant_literal(value: Column, plain: Column | None = None, is_clean: bool = False) -> Column:
    kind = F.schema_of_variant(value)
    text = plain if plain is not None else value.cast("string")
    return (
        F.when(kind == "STRING", literal(text, is_escaped=is_clean))
        .when(kind.rlike("^[AOV]"), F.lit(None))
        .when(
            kind.rlike(_FRACTION),
            F.concat(
                F.lit('"'),
                canonical_double(plain if plain is not None else _double(value)),
                F.lit(_DOUBLE),
            ),
        )
        .otherwise(
            F.concat(
                F.lit('"'), text, F.when(kind == "BOOLEAN", _BOOLEAN).otherwise(F.lit(_INTEGER))
            )
        )
    )


def _double(value: Column) -> Column:
    return value.cast("double").cast("string")


def _typed_text(value: Column) -> Column:
    return F.when(~value["kind"].isin("array", "object"), value["text"])


def _typed_literal(value: Column) -> Column:
    kind, text = value["kind"], value["text"]
    return (
        F.when(kind == "string", literal(text))
        .when(kind == "integer", F.concat(F.lit('"'), text, F.lit(_INTEGER)))
        .when(kind == "double", F.concat(F.lit('"'), canonical_double(text), F.lit(_DOUBLE)))
        .when(kind == "boolean", F.concat(F.lit('"'), text, F.lit(_BOOLEAN)))
        .when(kind.contains(":"), literal(text, datatype=kind))
    )
