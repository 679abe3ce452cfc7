"""Timed lines as statements and dead letters, without Spark; with it, column expressions do that."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from quadweir import rows
from quadweir.errors import DataError
from quadweir.sources.fileplan import PARSED
from quadweir.sources.statements import is_blank, parse_statement

_PLAIN: Final = tuple(f"plain_{name}" for name in rows.TERMS)


def parsed_lines(lines: pa.RecordBatch, stream: str) -> pa.RecordBatch:
    """Return timed lines as rows: plain lines are cut already, the others are parsed here.

    Args:
        lines: a batch of `timedlines.SCHEMA`.
        stream: the IRI of the stream.

    Returns:
        A batch of `fileplan.PARSED`.
    """
    terms = [lines.column(name) for name in _PLAIN]
    reasons = lines.column("reason")
    odd = pc.and_(lines.column("value").is_valid(), reasons.is_null())
    if pc.any(odd).as_py():
        found = [_terms_of(text) for text in lines.column("value").filter(odd).to_pylist()]
        *own, why = zip(*found, strict=True)
        terms = [
            pc.replace_with_mask(column, odd, pa.array(values, pa.string()))
            for column, values in zip(terms, own, strict=True)
        ]
        reasons = pc.replace_with_mask(reasons, odd, pa.array(why, pa.string()))
    reasons = pc.if_else(pc.and_(terms[0].is_null(), reasons.is_null()), "no statement", reasons)
    time = lines.column("event_time")
    spaced = pc.binary_join_element_wise(time.cast(pa.string()), "", " ")
    spelled = pc.binary_join_element_wise(*terms, ".", " ", null_handling="skip")
    record = pc.binary_join_element_wise(
        pc.coalesce(lines.column("lead"), spaced), pc.coalesce(lines.column("value"), spelled), ""
    )
    places = pc.binary_join_element_wise("line", lines.column("line").cast(pa.string()), " ")
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(pa.scalar(stream), len(lines)),
            time,
            lines.column("run"),
            *terms,
            lines.column("source"),
            places,
            reasons,
            pc.utf8_slice_codeunits(record, 0, rows.DEAD_LETTER_TEXT),
        ],
        schema=PARSED,
    )


def _terms_of(text: str) -> tuple[str | None, ...]:
    """Return the four terms of a statement, or none and the reason."""
    if is_blank(text):
        return (None, None, None, None, None)
    try:
        quad = parse_statement(text)
    except DataError as error:
        return (None, None, None, None, error.message)
    graph = None if quad.graph is None else str(quad.graph)
    return (str(quad.subject), str(quad.predicate), str(quad.object), graph, None)
