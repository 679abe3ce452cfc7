"""Streams in memory, as Arrow tables of statements: what benchmarks and tests feed to engines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quadweir.bench.lsbench.activity import in_order
from quadweir.bench.lsbench.network import FriendNetwork
from quadweir.bench.lsbench.parameters import STREAMS
from quadweir.bench.lsbench.spell import spell_events, spell_users
from quadweir.bench.lsbench.write import all_events
from quadweir.bench.tables import STATEMENTS, text_of

_EVENTS_AT_ONCE: Final = 100_000


def make_tables(network: FriendNetwork, streams: Iterable[str] = STREAMS) -> dict[str, pa.Table]:
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


def _table(network: FriendNetwork, stream: str, events: pa.RecordBatch) -> pa.Table:
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


def static_table(network: FriendNetwork) -> pa.Table:
    """The static data: subjects, predicates and objects."""
    lines = _lines(spell_users(network, np.arange(network.parameters.users)))
    terms = pc.split_pattern(lines, " ", max_splits=2).flatten()
    columns = [terms.take(_every(3, at, len(lines))) for at in range(3)]
    columns[2] = _without_end(columns[2])
    return pa.table(dict(zip(("subject", "predicate", "object"), columns, strict=True)))
