"""Streams in memory, as Arrow tables of statements: what benchmarks and tests feed to engines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quadweir.bench.lsbench.activity import in_order
from quadweir.bench.lsbench.network import Network
from quadweir.bench.lsbench.parameters import STREAMS
from quadweir.bench.lsbench.spell import spell_events, spell_users
from quadweir.bench.lsbench.write import all_events, text_of

if TYPE_CHECKING:
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
_EVENTS_AT_ONCE: Final = 100_000


def make_tables(network: Network, streams: Iterable[str] = STREAMS) -> dict[str, pa.Table]:
    """The streams of a network by their names, in the order of time.

    >>> from quadweir.bench.lsbench.network import make_network
    >>> from quadweir.bench.lsbench.parameters import Parameters
    >>> tables = make_tables(make_network(Parameters(users=20, days=1)), ("posts",))
    >>> tables["posts"].column_names
    ['event', 'time', 'subject', 'predicate', 'object']
    """
    wanted = tuple(streams)
    made: dict[str, list[pa.RecordBatch]] = {stream: [] for stream in wanted}
    for stream, batch in all_events(network):
        if stream in made:
            made[stream].append(batch)
    return {stream: _table(network, stream, in_order(made.pop(stream))) for stream in wanted}


def _table(network: Network, stream: str, events: pa.RecordBatch) -> pa.Table:
    pieces = []
    for start in range(0, events.num_rows, _EVENTS_AT_ONCE):
        some = events.slice(start, _EVENTS_AT_ONCE)
        texts = spell_events(network, stream, some)
        counts = pc.count_substring(texts, "\n").to_numpy()
        event = np.repeat(np.arange(start, start + some.num_rows), counts)
        time = np.repeat(some.column("time").to_numpy(), counts)
        terms = pc.split_pattern(_lines(texts), " ", max_splits=3).flatten()
        subject, predicate, end = (terms.take(_every(4, at, len(event))) for at in (1, 2, 3))
        columns = [pa.array(event), pa.array(time), subject, predicate, _without_end(end)]
        pieces.append(pa.RecordBatch.from_arrays(columns, schema=STATEMENTS))
    return pa.Table.from_batches(pieces, schema=STATEMENTS)


def _lines(texts: pa.Array) -> pa.Array:
    whole = pa.array([bytes(text_of(texts)[:-1])]).cast(pa.string())
    return pc.split_pattern(whole, "\n").flatten()


def _every(step: int, first: int, count: int) -> pa.Array:
    return pa.array(np.arange(count) * step + first)


def _without_end(terms: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(terms, 0, -2)


def static_table(network: Network) -> pa.Table:
    """The static data: subjects, predicates and objects."""
    lines = _lines(spell_users(network, np.arange(network.parameters.users)))
    terms = pc.split_pattern(lines, " ", max_splits=2).flatten()
    columns = [terms.take(_every(3, at, len(lines))) for at in range(3)]
    columns[2] = _without_end(columns[2])
    return pa.table(dict(zip(("subject", "predicate", "object"), columns, strict=True)))


def at_rate(tables: Mapping[str, pa.Table], rate: float, *, start: int = 0) -> dict[str, pa.Table]:
    """Play streams together, so many triples a second: the same events, at other instants.

    Events keep their order, also between streams; one comes as soon as all triples before it have
    been told at that rate, and all of its own triples at one instant.

    Args:
        tables: the streams, in order.
        rate: triples a second, of all streams together.
        start: the instant of the first event.
    """
    names = list(tables)
    firsts, counts, times = [], [], []
    for table in tables.values():
        event = table.column("event").to_numpy()
        first = np.flatnonzero(np.concatenate(([True], event[1:] != event[:-1]))[: len(event)])
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
        told = np.repeat(instant[at : at + len(own)], own)
        at += len(own)
        column = tables[name].schema.get_field_index("time")
        found[name] = tables[name].set_column(column, STATEMENTS.field("time"), pa.array(told))
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
