"""Static data that is a DataFrame of quads."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from quadweir import rows
from quadweir.errors import DataError, UsageError
from quadweir.sources.ntriples import check_terms
from quadweir.terms import IRI, BlankNode, Quad, parse_term

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FEW: Final = 50_000
"""Frames of more quads stay in Spark."""


def check_columns(frame: DataFrame) -> None:
    """Check that a frame has the columns of quads; `graph` may be missing.

    Raises:
        UsageError: it has others, or it is a stream.
    """
    if frame.isStreaming:
        raise UsageError("static data cannot be a stream", hint="Give a DataFrame that has an end.")
    types = {field.name: field.dataType for field in frame.schema.fields}
    for name in rows.TERMS:
        if name not in types and name != rows.GRAPH:
            raise UsageError(
                f'the DataFrame of static data has no column "{name}"',
                hint=f"A quad has the columns {', '.join(rows.TERMS)} (QUAD_SCHEMA).",
            )
        if not isinstance(types.get(name, StringType()), StringType):
            found = types[name].simpleString()
            if found != "void":
                raise UsageError(
                    f'"{name}" in the DataFrame of static data is {found}, and not string',
                    hint='Terms are spelled as in N-Triples: <urn:a>, "text"@en, _:b.',
                )


def quads_of(frame: DataFrame) -> DataFrame:
    """Return the rows as canonical quads (`rows.QUAD_SCHEMA`) with `rows.REASON`."""
    nothing = F.lit(None).cast("string")
    named = [
        F.col(name).cast("string") if name in frame.columns else nothing.alias(name)
        for name in rows.TERMS
    ]
    return check_terms(frame.select(*named))


def good_quads(frame: DataFrame) -> DataFrame:
    """Return the rows as canonical quads.

    Raises:
        DataError: a row is not a quad; a query over half of its static data would be wrong.
    """
    checked = quads_of(frame)
    bad = checked.where(F.col(rows.REASON).isNotNull()).select(rows.REASON).take(1)
    if bad:
        raise DataError(f"a row of the static DataFrame is no quad: {bad[0][0]}")
    return checked.select(*rows.TERMS)


def read_quads_of(frame: DataFrame, *, most: int | None = FEW) -> list[Quad] | None:
    """Return the quads of a frame; None if there are more than `most`.

    Raises:
        DataError: a row is not a quad.
    """
    limited = frame if most is None else frame.limit(most + 1)
    found = quads_of(limited).toArrow().to_pylist()
    if most is not None and len(found) > most:
        return None
    return [_quad(each) for each in found]


def digest_of(frame: DataFrame) -> bytes:
    """Return a digest of the rows of a frame, in any order."""
    number = F.xxhash64(*rows.TERMS)
    (found,) = (
        quads_of(frame).agg(F.count("*"), F.bit_xor(number), F.sum(F.shiftright(number, 20)))
    ).collect()
    return hashlib.sha256(repr(tuple(found)).encode()).digest()


def _quad(row: dict[str, str | None]) -> Quad:
    if row[rows.REASON] is not None:
        raise DataError(f"a row of the static DataFrame is no quad: {row[rows.REASON]}")
    subject, predicate, end, graph = (
        None if row[name] is None else parse_term(str(row[name])) for name in rows.TERMS
    )
    # What was checked has a resource as subject and graph, and an IRI as predicate.
    assert isinstance(subject, IRI | BlankNode)
    assert isinstance(predicate, IRI)
    assert end is not None
    assert graph is None or isinstance(graph, IRI | BlankNode)
    return Quad(subject, predicate, end, graph)
