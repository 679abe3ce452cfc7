"""Answers of a continuous query as lines of text, as column expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from quadweir import rows
from quadweir.errors import UsageError
from quadweir.vocab import XSD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TAB: Final = "\t"
# Columns that `with_parts` adds, before the name of a variable.
_TAIL: Final = "tail of "
_LEXICAL: Final = "lexical form of "
_TEXT: Final = "text of "


def variables_of(frame: DataFrame) -> list[str]:
    """The names of what answers bind, in the order of SELECT.

    Raises:
        UsageError: the rows are not answers that bind variables.
    """
    if rows.BINDINGS not in frame.columns:
        raise UsageError(
            "only answers of SELECT and ASK have bindings to be written",
            hint="Write triples of a CONSTRUCT as jsonl, nquads, timed-lines or trig.",
        )
    kind = frame.schema[rows.BINDINGS].dataType
    assert isinstance(kind, StructType)
    return kind.names


def with_parts(frame: DataFrame) -> DataFrame:
    """Cut the literals of answers into their parts, in steps of their own, for `json_line`.

    Written wherever they are used, nine times over, the parts made a long text of code, and one that
    Spark wrote anew in every task of every batch: of what reads JSON it compiles nothing ahead.
    """
    if rows.BINDINGS not in frame.columns:
        return frame
    names = variables_of(frame)

    def step(frame: DataFrame, made: str, how: Callable[[str], Column]) -> DataFrame:
        return frame.select("*", *[how(name).alias(f"{made}{name}") for name in names])

    frame = step(frame, _TAIL, lambda name: _tail(_binding(name)))
    frame = step(frame, _LEXICAL, lambda name: _lexical(_binding(name), _made(_TAIL, name)))
    return step(frame, _TEXT, lambda name: _unescaped(_made(_LEXICAL, name)))


def json_line(frame: DataFrame) -> Column:
    """An answer as JSON: `t`, `sign`, and bindings as in SPARQL's JSON results, or triples.

    If there is a column `rows.WHY`, which is JSON, it comes after them.

    Spec: https://www.w3.org/TR/sparql11-results-json/#select-encode-terms
    """
    if rows.TRIPLES in frame.columns:
        spelled = F.transform(
            rows.TRIPLES,
            lambda triple: F.concat_ws(" ", *[triple[name] for name in rows.TERMS[:3]], F.lit(".")),
        )
        graph = F.array_sort(spelled).alias(rows.TRIPLES)
        return F.to_json(F.struct(rows.REPORT, rows.SIGN, graph))
    names = variables_of(frame)
    if names:
        # What is not bound is left out; SPARQL's order of names in an object means nothing.
        bindings = F.struct(*[_json_term(frame, name).alias(name) for name in sorted(names)])
        line = F.to_json(F.struct(rows.REPORT, rows.SIGN, bindings.alias(rows.BINDINGS)))
    else:
        line = _with(F.to_json(F.struct(rows.REPORT, rows.SIGN)), rows.BINDINGS, F.lit("{}"))
    return _with(line, rows.WHY, F.col(rows.WHY)) if rows.WHY in frame.columns else line


def _with(line: Column, name: str, value: Column) -> Column:
    """Add to an object what is JSON already."""
    opened = F.substring(line, F.lit(1), F.length(line) - 1)
    return F.concat(opened, F.lit(f',"{name}":'), value, F.lit("}"))


def csv_line(frame: DataFrame) -> Column:
    """An answer as CSV: instant, sign, and plain values, as in SPARQL's CSV results.

    Spec: https://www.w3.org/TR/sparql11-results-csv-tsv/#csv
    """
    names = variables_of(frame)
    return F.concat_ws(
        ",",
        F.col(rows.REPORT).cast("string"),
        F.col(rows.SIGN),
        *[F.coalesce(_csv_value(_value(_binding(name))), F.lit("")) for name in names],
    )


def tsv_line(frame: DataFrame) -> Column:
    """An answer as TSV: instant, sign, and terms as RDF spells them.

    Spec: https://www.w3.org/TR/sparql11-results-csv-tsv/#tsv
    """
    names = variables_of(frame)
    return F.concat_ws(
        _TAB,
        F.col(rows.REPORT).cast("string"),
        F.col(rows.SIGN),
        *[F.coalesce(_binding(name), F.lit("")) for name in names],
    )


def header(frame: DataFrame, *, tabs: bool) -> str:
    """The first line of a CSV or TSV file of answers."""
    names = variables_of(frame)
    if tabs:
        return _TAB.join([f"?{rows.REPORT}", f"?{rows.SIGN}", *(f"?{name}" for name in names)])
    return ",".join([rows.REPORT, rows.SIGN, *names])


def _binding(name: str) -> Column:
    return F.col(f"{rows.BINDINGS}.`{name}`")


def _made(what: str, name: str) -> Column:
    return F.col(f"`{what}{name}`")


def _json_term(frame: DataFrame, name: str) -> Column:
    term = _binding(name)
    tail, text = _tail(term), _unescaped(_lexical(term, _tail(term)))
    if f"{_TEXT}{name}" in frame.columns:
        tail, text = _made(_TAIL, name), _made(_TEXT, name)
    is_blank = term.startswith("_:")
    kind = F.when(term.startswith("<"), "uri").when(is_blank, "bnode").otherwise("literal")
    label = F.when(is_blank, F.substr(term, F.lit(3))).otherwise(_plain(term, text))
    is_typed = tail.startswith("^^<") & (tail != f"^^<{XSD.string}>")
    written = F.struct(
        kind.alias("type"),
        label.alias("value"),
        F.when(tail.startswith("@"), F.substr(tail, F.lit(2))).alias("xml:lang"),
        F.when(is_typed, F.substring(tail, F.lit(4), F.length(tail) - 4)).alias("datatype"),
    )
    return F.when(term.isNotNull(), written)


def _tail(term: Column) -> Column:
    """What follows the last quotation mark of a literal: its language, its datatype, or nothing."""
    return F.when(term.startswith('"'), F.substring_index(term, '"', -1))


def _lexical(term: Column, tail: Column) -> Column:
    """What is between the quotation marks of a literal, as it is spelled; NULL for other terms."""
    return F.substring(term, F.lit(2), F.length(term) - 2 - F.length(tail))


def _plain(term: Column, text: Column) -> Column:
    """The value of a term without what marks its kind; a blank node keeps its mark.

    Args:
        term: the term.
        text: what it says if it is a literal, else NULL.
    """
    return (
        F.when(text.isNotNull(), text)
        .when(term.startswith("<"), F.substring(term, F.lit(2), F.length(term) - 2))
        .otherwise(term)
    )


def _value(term: Column) -> Column:
    return _plain(term, _unescaped(_lexical(term, _tail(term))))


def _unescaped(lexical: Column) -> Column:
    """Undo the escapes of a canonical spelling (`quadweir.terms.escape`): JSON has the same.

    Rejected: doing it by parts, with functions of Spark's that take a lambda. Spark compiled that anew
    in every small batch, since such a function's variable gets a new name whenever it is written.
    """
    text = F.concat(F.lit('{"v":"'), lexical, F.lit('"}'))
    read = F.from_json(text, "v string", {"maxStringLen": str(2**31 - 1)})["v"]
    return F.when(lexical.contains("\\"), F.coalesce(read, lexical)).otherwise(lexical)


def _csv_value(value: Column) -> Column:
    quoted = F.concat(F.lit('"'), F.replace(value, F.lit('"'), F.lit('""')), F.lit('"'))
    return F.when(value.rlike('[",\r\n]'), quoted).otherwise(value)
