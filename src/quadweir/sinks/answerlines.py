"""Answers of a continuous query as lines of text, as column expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from quadweir import rows
from quadweir.errors import UsageError
from quadweir.vocab import XSD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TAB: Final = "\t"


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
        bindings = F.struct(*[_json_term(_binding(name)).alias(name) for name in sorted(names)])
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
        *[F.coalesce(_csv_value(_plain(_binding(name))), F.lit("")) for name in names],
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


def _json_term(term: Column) -> Column:
    is_iri, is_blank, tail = term.startswith("<"), term.startswith("_:"), _tail(term)
    kind = F.when(is_iri, "uri").when(is_blank, "bnode").otherwise("literal")
    label = F.when(is_blank, F.substr(term, F.lit(3))).otherwise(_plain(term))
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


def _plain(term: Column) -> Column:
    """The value of a term without what marks its kind; a blank node keeps its mark."""
    inside = F.length(term) - 2
    lexical = F.substring(term, F.lit(2), inside - F.length(_tail(term)))
    return (
        F.when(term.startswith("<"), F.substring(term, F.lit(2), inside))
        .when(term.startswith('"'), _unescaped(lexical))
        .otherwise(term)
    )


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
