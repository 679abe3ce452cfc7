"""The answers of a query as columns of Spark types: what `to_dataframe` and frame sinks give.

Inside, answers are spelled as terms (`answers.py`). A column gets another type than string if the
query says which type its values have, or if the user asks for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from pyspark.errors import ParseException
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    TimestampType,
)

from quadweir import rows, spelling
from quadweir.algebra.answertypes import answer_types
from quadweir.algebra.query import AskForm, ConstructForm, ContinuousQuery
from quadweir.algebra.signatures import Type
from quadweir.errors import UsageError
from quadweir.plan.shapes import answer_variables
from quadweir.vocab import RDF, XSD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ColumnType = str | DataType
"""A Spark type, or its name in SQL."""

_SPARK: Final[Mapping[Type, DataType]] = {
    Type.INTEGER: LongType(),
    Type.DECIMAL: DoubleType(),
    Type.FLOAT: DoubleType(),
    Type.DOUBLE: DoubleType(),
    Type.NUMERIC: DoubleType(),
    Type.BOOLEAN: BooleanType(),
    Type.DATE_TIME: TimestampType(),
    Type.DATE: DateType(),
}
_NAMED: Final[Mapping[str, DataType]] = {
    "timestamp": TimestampType(),
    "date": DateType(),
    "string": StringType(),
}
_DATE_LENGTH: Final = 10
_HAS_ZONE: Final = r"(?:Z|[+-][0-9]{2}:[0-9]{2})$"


@final
@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """The columns of a query's answers for users: `t`, `sign`, and one for each variable.

    Attributes:
        names: the name of each variable's column, in the order of the variables.
        types: the type of each of them.
        terms: whether columns are structs with all parts of a term.
        is_graph: whether the answers are graphs, in one column.
    """

    names: tuple[str, ...] = ()
    types: tuple[ColumnType, ...] = ()
    terms: bool = False
    is_graph: bool = False

    @staticmethod
    def of(
        query: ContinuousQuery,
        *,
        types: Mapping[str, ColumnType] | None = None,
        terms: bool = False,
    ) -> AnswerColumns:
        """Return the columns of a query's answers.

        Args:
            query: the query.
            types: Spark types of some variables, by name.
            terms: give all parts of each term.

        Raises:
            UsageError: `types` names an unknown variable, or there are no variables.
        """
        asked = {name.removeprefix("?"): each for name, each in (types or {}).items()}
        if isinstance(query.form, ConstructForm):
            if asked or terms:
                raise UsageError(
                    "the answers of a CONSTRUCT are graphs, which have no columns for variables",
                    hint="Leave out types and terms.",
                )
            return AnswerColumns(is_graph=True)
        if asked and terms:
            raise UsageError(
                "types and terms exclude each other",
                hint="With terms=True, cast the field `value` of a column yourself.",
            )
        variables = answer_variables(query)
        known = answer_types(query)
        if isinstance(query.form, AskForm):
            known = dict.fromkeys(variables, Type.BOOLEAN)
        names = [each.name for each in variables]
        for name in asked:
            if name not in names:
                raise UsageError(
                    f"the query has no variable ?{name} whose type could be chosen",
                    hint=f"Its variables are {', '.join(f'?{each}' for each in names)}.",
                )
        found = [
            asked.get(each.name) or _SPARK.get(known.get(each, Type.TERM), StringType())
            for each in variables
        ]
        return AnswerColumns(_distinct(names), tuple(found), terms)

    def select(self, answers: DataFrame) -> DataFrame:
        """Return answers, as `answers.present` gives them, with these columns.

        Raises:
            UsageError: a type that was asked for does not exist.
        """
        instant = F.timestamp_millis(F.col(rows.REPORT)).alias(rows.REPORT)
        if self.is_graph:
            return answers.select(instant, rows.SIGN, rows.TRIPLES)
        # By place: names may differ only in case.
        inner = answers.select(instant, rows.SIGN, f"{rows.BINDINGS}.*").toDF(
            rows.REPORT, rows.SIGN, *map(_place, range(len(self.names)))
        )
        columns = [
            (_term(F.col(_place(place))) if self.terms else _typed(F.col(_place(place)), kind))
            for place, kind in enumerate(self.types)
        ]
        named = [each.alias(name) for name, each in zip(self.names, columns, strict=True)]
        return inner.select(rows.REPORT, rows.SIGN, *named)


def _place(place: int) -> str:
    return f"v{place}"


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return names for columns: Spark takes `T` for `t`, so later ones get underscores."""
    found: list[str] = []
    taken = {rows.REPORT, rows.SIGN}
    for name in names:
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        found.append(name)
    return tuple(found)


def _typed(term: Column, kind: ColumnType) -> Column:
    """Return a term as a value of a type; NULL if it is none."""
    if isinstance(kind, str):
        kind = _NAMED.get(kind.strip().lower(), kind)
    if isinstance(kind, StringType):
        return spelling.plain_value(term)
    text = spelling.lexical_form(term)
    if isinstance(kind, TimestampType):
        # What has no time zone is in UTC, whatever the zone of the session (S2).
        text = F.when(text.rlike(_HAS_ZONE), text).otherwise(F.concat(text, F.lit("Z")))
    elif isinstance(kind, DateType):
        text = F.substring(text, 1, _DATE_LENGTH)
    try:
        return text.try_cast(kind)
    except ParseException as error:
        raise UsageError(
            f"{kind!r} is not a type of Spark's", hint="Write one such as double or decimal(38,18)."
        ) from error


def _term(term: Column) -> Column:
    """Return all parts of a term as a struct; NULL if there is no term."""
    text = lexical = spelling.lexical_form(term)
    after = spelling.after_quotes(term)
    is_literal = lexical.isNotNull()
    is_triple = term.startswith("<<")
    is_blank = term.startswith("_:")
    kind = (
        F.when(is_literal, "literal")
        .when(is_triple, "triple")
        .when(is_blank, "bnode")
        .otherwise("iri")
    )
    value = (
        F.when(is_literal, text)
        .when(is_triple, term)
        .when(is_blank, F.substr(term, F.lit(3)))
        .otherwise(F.btrim(term, F.lit("<>")))
    )
    datatype = (
        F.when(after == "", XSD.string)
        .when(after.startswith("@"), RDF.langString)
        .otherwise(F.btrim(after, F.lit("^<>")))
    )
    language = F.when(after.startswith("@"), F.substr(after, F.lit(2)))
    parts = F.struct(
        kind.alias("kind"),
        value.alias("value"),
        F.when(is_literal, datatype).alias("datatype"),
        F.when(is_literal, language).alias("language"),
    )
    return F.when(term.isNotNull(), parts)
