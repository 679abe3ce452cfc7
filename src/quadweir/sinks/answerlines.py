"""Column expressions that write the answers of a continuous query as lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from quadweir import rows, spelling
from quadweir.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TAB: Final = "\t"


def variables_of(frame: DataFrame) -> list[str]:
    """Return the variables that answers bind, in the order of SELECT.

    Raises:
        UsageError: the rows are not solutions.
    """
    if rows.BINDINGS not in frame.columns:
        raise UsageError(
            "only answers of SELECT and ASK have bindings",
            hint="Write triples of a CONSTRUCT as jsonl, nquads, timed-lines or trig.",
        )
    kind = frame.schema[rows.BINDINGS].dataType
    assert isinstance(kind, StructType)
    return kind.names


def json_line(frame: DataFrame) -> Column:
    """Return an answer as JSON: `t`, `sign`, and bindings as in SPARQL's JSON results, or triples.

    If there is a column `rows.WHY`, which is JSON, it comes last.

    Spec: https://www.w3.org/TR/sparql12-results-json/#select-encode-terms
    """
    if rows.TRIPLES in frame.columns:
        spelled = F.transform(
            rows.TRIPLES,
            lambda triple: F.concat_ws(" ", *[triple[name] for name in rows.TERMS], F.lit(".")),
        )
        graph = F.array_sort(spelled).alias(rows.TRIPLES)
        return F.to_json(F.struct(rows.REPORT, rows.SIGN, graph))
    # Unbound variables are left out. The order of names in a JSON object has no meaning.
    terms = [_json_term(name) for name in sorted(variables_of(frame))]
    why = [F.lit(f',"{rows.WHY}":'), F.col(rows.WHY)] if rows.WHY in frame.columns else []
    return F.concat(
        F.lit(f'{{"{rows.REPORT}":'),
        F.col(rows.REPORT).cast("string"),
        F.lit(f',"{rows.SIGN}":"'),
        F.col(rows.SIGN),
        F.lit(f'","{rows.BINDINGS}":{{'),
        F.concat_ws(",", *terms) if terms else F.lit(""),
        F.lit("}"),
        *why,
        F.lit("}"),
    )


def csv_line(frame: DataFrame) -> Column:
    """Return an answer as CSV: instant, sign, and plain values, as in SPARQL's CSV results.

    Spec: https://www.w3.org/TR/sparql11-results-csv-tsv/#csv
    """
    names = variables_of(frame)
    return F.concat_ws(
        ",",
        F.col(rows.REPORT).cast("string"),
        F.col(rows.SIGN),
        *[
            F.coalesce(_csv_value(spelling.plain_value(_binding(name))), F.lit(""))
            for name in names
        ],
    )


def tsv_line(frame: DataFrame) -> Column:
    """Return an answer as TSV: instant, sign, and terms as RDF spells them.

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
    """Return the first line of a CSV or TSV file of answers."""
    from quadweir.sinks.answertext import header_of

    return header_of(variables_of(frame), tabs=tabs)


def _binding(name: str) -> Column:
    return F.col(f"{rows.BINDINGS}.`{name}`")


def _json_term(name: str) -> Column:
    """Return a variable and its term as a member of a JSON object; NULL if it is not bound.

    Nothing is escaped: the escapes of a canonical spelling are those of JSON
    (`quadweir.terms.escape`), and IRIs and labels have no character that needs one. Rejected:
    removing the escapes of literals with `from_json` and writing them with `to_json`. The plan is
    longer, Spark works through it in every batch, and it does not compile `from_json`.
    """
    term = _binding(name)
    key = f"{json.dumps(name, ensure_ascii=False)}:"
    # Nested triple terms have one opening and one closing each.
    opened = F.regexp_extract(term, "^(?:<<[(] [^ ]+ [^ ]+ )+", 0)
    count = F.length(opened) - F.length(F.replace(opened, F.lit("<<("), F.lit("<<")))
    begin = F.regexp_replace(opened, "<<[(] <([^ ]+)> <([^ ]+)> ", _opened_json("uri"))
    begin = F.regexp_replace(begin, "<<[(] _:([^ ]+) <([^ ]+)> ", _opened_json("bnode"))
    length = F.length(term) - F.length(opened) - 4 * count
    inner = F.substring(term, F.length(opened) + 1, length)
    triple = F.concat(F.lit(key), begin, _json_value(inner, ""), F.repeat(F.lit("}}"), count))
    return F.when(term.startswith("<<"), triple).otherwise(_json_value(term, key))


def _opened_json(kind: str) -> str:
    """Return the replacement for the start of a triple term, up to its object."""
    return (
        f'{{"type":"triple","value":{{"subject":{{"type":"{kind}","value":"$1"}},'
        '"predicate":{"type":"uri","value":"$2"},"object":'
    )


def _json_value(term: Column, before: str) -> Column:
    """Return a term that is no triple term as JSON, with a text before it."""
    tail = spelling.after_quotes(term)
    quoted = F.substring(term, F.lit(1), F.length(term) - F.length(tail))
    language = F.concat(F.lit(',"xml:lang":"'), F.substr(tail, F.lit(2)), F.lit('"}'))
    # No IRI contains these characters.
    datatype = F.concat(F.lit(',"datatype":"'), F.btrim(tail, F.lit("^<>")), F.lit('"}'))
    rest = F.when(tail == "", "}").when(tail.startswith("@"), language).otherwise(datatype)

    def written(kind: str, *parts: Column) -> Column:
        opened = f'{before}{{"type":"{kind}","value":'
        return F.concat(F.lit(opened + ("" if kind == "literal" else '"')), *parts)

    return (
        F.when(term.startswith('"'), written("literal", quoted, rest))
        .when(term.startswith("<"), written("uri", F.btrim(term, F.lit("<>")), F.lit('"}')))
        .when(term.startswith("_:"), written("bnode", F.substr(term, F.lit(3)), F.lit('"}')))
    )


def _csv_value(value: Column) -> Column:
    quoted = F.concat(F.lit('"'), F.replace(value, F.lit('"'), F.lit('""')), F.lit('"'))
    return F.when(value.rlike('[",\r\n]'), quoted).otherwise(value)
