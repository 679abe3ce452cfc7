"""Streams in memory as Arrow tables of statements, the input of engines in benchmarks.

A workload gives its streams as tables by name. This module changes their rate, cuts them, writes
them as files, or turns them into elements.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quadweir.bench.live import FILES

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    from quadweir.sources.streamfiles import Element
    from quadweir.terms import Quad

STATEMENTS: Final = pa.schema(
    [
        pa.field("event", pa.int64(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("predicate", pa.string(), nullable=False),
        pa.field("object", pa.string(), nullable=False),
    ]
)
"""A triple of a stream: the number of its event in the stream, its instant, and its terms."""
START: Final = 1_767_225_600_000
"""The first instant of streams that are played at a rate."""


def of_events(times: Ints, triples: Sequence[tuple[Any, str, Any]]) -> pa.Table:
    """Make a stream of events with the same triples each.

    Args:
        times: the instants of the events, in order.
        triples: for each triple of an event the subjects, the predicate and the objects; terms are
            columns with a term for each event, or one for all.
    """
    count, width = len(times), len(triples)
    # Triple k of event e stands at e * width + k once all are interleaved.
    order = pa.array(np.arange(count * width).reshape(width, count).T.ravel())
    subjects, ends = (
        pa.concat_arrays([_column(triple[at], count) for triple in triples]) for at in (0, 2)
    )
    predicates = pa.array([triple[1] for triple in triples])
    which = pa.array(np.tile(np.arange(width), count))
    columns = [
        pa.array(np.repeat(np.arange(count), width)),
        pa.array(np.repeat(times, width)),
        subjects.take(order),
        predicates.take(which),
        ends.take(order),
    ]
    return pa.Table.from_arrays(columns, schema=STATEMENTS)


def _column(terms: Any, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(terms, pa.string()), count) if isinstance(terms, str) else terms


def at_rate(
    tables: Mapping[str, pa.Table], rate: float, *, start: int = START
) -> dict[str, pa.Table]:
    """Give the events new instants, so that all streams together have `rate` triples a second.

    Events keep their order, also between streams. An event comes as soon as all triples before it
    have been played at that rate; all its own triples have one instant.

    Args:
        tables: the streams, in order.
        rate: triples a second, of all streams together.
        start: the instant of the first event.
    """
    names = list(tables)
    firsts, counts, times = [], [], []
    for table in tables.values():
        event = table.column("event").to_numpy()
        first = _firsts(event)
        firsts.append(first)
        counts.append(np.diff(np.append(first, len(event))))
        times.append(table.column("time").to_numpy()[first])
    which = np.repeat(np.arange(len(names)), [len(each) for each in times])
    number = np.concatenate([np.arange(len(each)) for each in times])
    order = np.lexsort((number, which, np.concatenate(times)))
    count = np.concatenate(counts)[order]
    before = np.cumsum(count) - count
    instant = np.empty(len(order), dtype=np.int64)
    instant[order] = start + np.floor(before * 1000.0 / rate).astype(np.int64)
    found, at = {}, 0
    for name, own in zip(names, counts, strict=True):
        played_at = np.repeat(instant[at : at + len(own)], own)
        at += len(own)
        column = tables[name].schema.get_field_index("time")
        found[name] = tables[name].set_column(column, STATEMENTS.field("time"), pa.array(played_at))
    return found


def head(tables: Mapping[str, pa.Table], triples: int) -> dict[str, pa.Table]:
    """The first events of all streams, about so many triples together."""
    times = np.sort(np.concatenate([each.column("time").to_numpy() for each in tables.values()]))
    if len(times) <= triples:
        return dict(tables)
    limit = int(times[triples])
    found = {}
    for name, table in tables.items():
        end = int(np.searchsorted(table.column("time").to_numpy(), limit))
        found[name] = table.slice(0, end)
    return found


def timed_lines(table: pa.Table) -> pa.ChunkedArray:
    """The lines of a stream file, without line feeds."""
    parts = [table.column(name) for name in ("subject", "predicate", "object")]
    time = table.column("time").cast(pa.string())
    return pc.binary_join_element_wise(
        pc.binary_join_element_wise(time, *parts, " "), pa.scalar("."), " "
    )


def write_table(table: pa.Table, path: Path) -> None:
    """Write a stream file."""
    with path.open("wb") as file:
        for chunk in timed_lines(table).chunks:
            if len(chunk):
                file.write(text_of(pc.binary_join_element_wise(chunk, "\n", "")))


def as_quads(table: pa.Table) -> list[Quad]:
    """The triples of a table as quads."""
    from quadweir.sources.statements import parse_statement

    names = ("subject", "predicate", "object")
    lines = pc.binary_join_element_wise(
        *[table.column(name) for name in names], pa.scalar("."), " "
    )
    return [parse_statement(line) for line in lines.to_pylist()]


def as_elements(streams: Mapping[str, pa.Table]) -> list[Element]:
    """The elements of streams by their IRIs, in the order of time; each event is an element."""
    from quadweir.sources.streamfiles import Element

    found = []
    for iri, table in streams.items():
        quads = as_quads(table)
        event, time = (table.column(name).to_numpy() for name in ("event", "time"))
        bounds = [*_firsts(event).tolist(), len(event)]
        for first, last in pairwise(bounds):
            found.append(
                Element(iri, int(time[first]), int(event[first]), tuple(quads[first:last]))
            )
    return sorted(found, key=lambda element: element.event_time)


def _firsts(event: Ints) -> Ints:
    """Where events begin."""
    return np.flatnonzero(np.concatenate(([True], event[1:] != event[:-1]))[: len(event)])


def write_batches(
    streams: Mapping[str, pa.Table], folder: Path, *, batches: int, ended: bool = False
) -> dict[str, Path]:
    """Write streams as Parquet files of statements, `FILES` of each stream for every batch.

    Batches are cut by time: each has about the same number of triples, and no instant is in two
    batches.

    Args:
        streams: the streams by their IRIs.
        folder: the folder to write to.
        batches: how many.
        ended: whether the last batch ends the streams, so that their windows become empty.

    Returns:
        The folder of each stream by its IRI.
    """
    all_cuts = batch_cuts(streams, batches)
    found = {}
    for number, (iri, table) in enumerate(streams.items()):
        cuts = all_cuts[iri]
        rows = statement_rows(iri, table)
        if ended:
            rows = pa.concat_tables([rows, _end(rows)])
            cuts[-1] += 1
        found[iri] = folder / f"stream-{number}"
        found[iri].mkdir(parents=True)
        for batch in range(batches):
            part = rows.slice(cuts[batch], cuts[batch + 1] - cuts[batch])
            size = -(-part.num_rows // FILES)
            for piece in range(FILES):
                file = found[iri] / f"{batch:05}-{piece}.parquet"
                pq.write_table(part.slice(piece * size, size), file, compression="snappy")
                # Spark reads files in the order of their modification times.
                at = START // 1000 + batch * FILES + piece
                os.utime(file, (at, at))
    return found


def batch_cuts(streams: Mapping[str, pa.Table], batches: int) -> dict[str, list[int]]:
    """Where batches of about as many triples each begin and end in each stream, cut by time."""
    times = np.sort(np.concatenate([each.column("time").to_numpy() for each in streams.values()]))
    bounds = [int(times[len(times) * number // batches]) for number in range(1, batches)]
    found = {}
    for iri, table in streams.items():
        own = table.column("time").to_numpy()
        found[iri] = [0, *np.searchsorted(own, bounds).tolist(), len(own)]
    return found


def statement_rows(iri: str, table: pa.Table) -> pa.Table:
    """Rows as `rows.STATEMENT_SCHEMA` has them."""
    count = table.num_rows
    return pa.table(
        {
            "stream": pa.repeat(pa.scalar(iri, pa.string()), count),
            "event_time": table.column("time"),
            "position": table.column("event"),
            **{name: table.column(name) for name in ("subject", "predicate", "object")},
            "graph": pa.nulls(count, pa.string()),
        }
    )


def _end(rows: pa.Table) -> pa.Table:
    """The row that ends all streams."""
    from quadweir.runtime.match.rowform import END

    values = {"stream": END, "event_time": 0, "position": 0}
    terms = dict.fromkeys(("subject", "predicate", "object"), "<urn:end>")
    return pa.Table.from_pylist([{**values, **terms, "graph": None}], schema=rows.schema)


def write_static(table: pa.Table, path: Path) -> Path:
    """Write static triples as N-Triples."""
    names = ("subject", "predicate", "object")
    columns = [table.column(name) for name in names]
    lines = pc.binary_join_element_wise(*columns, pa.scalar(".\n"), " ")
    with path.open("wb") as file:
        for chunk in lines.chunks:
            file.write(text_of(chunk))
    return path


def text_of(texts: pa.Array) -> pa.Buffer:
    """All texts joined: an Arrow array of text stores them this way."""
    if len(texts) == 0:
        return pa.py_buffer(b"")
    texts = texts.cast(pa.string())
    bounds = np.frombuffer(texts.buffers()[1], dtype=np.int32)
    first, last = bounds[texts.offset], bounds[texts.offset + len(texts)]
    return texts.buffers()[2].slice(int(first), int(last - first))
