"""Compiling everything before a stream runs, so that nothing is compiled while it does."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numba.core.registry import CPUDispatcher

from quadweir import kernel
from quadweir.algebra.dataset import Dataset
from quadweir.kernel.arrays import FOREVER
from quadweir.kernel.clocks import Elements
from quadweir.kernel.dictionary import Dictionary, DictionaryScope
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.oneway import OneWay
from quadweir.kernel.probing import advance
from quadweir.kernel.ring import RingIndex
from quadweir.kernel.shard import Shard
from quadweir.kernel.streamjoin.join import Arrivals, StreamJoin
from quadweir.kernel.streamjoin.policies import CarryPolicy
from quadweir.kernel.streamjoin.windows import Dynamic, JoinWindow, Tumbling
from quadweir.kernel.xxhash import shard_numbers
from quadweir.syntax import parse
from quadweir.terms import IRI, Quad

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"

# Terms of every kind that operators tell apart.
_TERMS: Final = (
    "<urn:quadweir:a>",
    f'"1"^^<{_XSD}integer>',
    f'"900000000000000000000"^^<{_XSD}integer>',
    f'"1.5"^^<{_XSD}decimal>',
    f'"2.5E0"^^<{_XSD}double>',
    f'"0.1000000000000000055511151231257827"^^<{_XSD}double>',
    f'"true"^^<{_XSD}boolean>',
    f'"2026-05-04T08:00:00Z"^^<{_XSD}dateTime>',
    '"text"',
)

_ONLY_AGGREGATES: Final = "--only-aggregates"
_WINDOW: Final = "STREAM <urn:s> [RANGE 20ms]"
# Between them they use every operator; one and the same data matches all their patterns.
_QUERIES: Final = (
    f"SELECT * {{ {_WINDOW} {{ ?a <urn:p> ?b }} {_WINDOW} {{ ?a <urn:q> ?c }} "
    f"{_WINDOW} {{ ?a <urn:r> ?b }} FILTER(?b < 3 || ?b * 2 > ?c + 1 && ?b = ?c || !?b) }}",
    f"SELECT DISTINCT ?a {{ {_WINDOW} {{ ?a <urn:p> ?b }} "
    f"OPTIONAL {{ {_WINDOW} {{ ?a <urn:q> ?c }} }} "
    f"MINUS {{ {_WINDOW} {{ ?a <urn:r> ?d }} }} "
    f"FILTER NOT EXISTS {{ {_WINDOW} {{ ?a <urn:s> ?b }} }} }}",
    "SELECT ?a ?b { STREAM <urn:s> [TRIPLES 4] { ?a <urn:p> ?b } "
    "STREAM <urn:s> [TRIPLES 4] { ?a <urn:q> ?c } ?a <urn:p> ?d }",
    f"SELECT DISTINCT ?a ?b {{ {_WINDOW} {{ ?a <urn:p> ?b }} }} ORDER BY ?b LIMIT 2",
    f"SELECT DISTINCT ?b {{ {_WINDOW} {{ ?a <urn:p> ?b }} }}",
)
_AGGREGATES: Final = (
    f"SELECT ?k (COUNT(?v) AS ?n) (SUM(?v) AS ?s) (AVG(?v) AS ?m) (MIN(?v) AS ?l) (MAX(?v) AS ?h) "
    f"(SAMPLE(?v) AS ?e) (GROUP_CONCAT(?v) AS ?g) (SUM(DISTINCT ?v) AS ?d) "
    f"{{ {_WINDOW} {{ ?k <urn:p> ?v }} }} GROUP BY ?k",
    f"SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?s) (AVG(?v / 2) AS ?m) "
    f"{{ {_WINDOW} {{ ?k <urn:p> ?v }} }}",
)


def warm_up(processes: int = 1) -> None:
    """Run every compiled function once: compile it, or load it from the cache on disk.

    A worker calls this before its first batch. Compiled functions are called with one form of
    arguments each, so that no later call compiles anything.

    Args:
        processes: Up to so many compile at once if the cache is empty: this one, and one that
            compiles the aggregates.
    """
    helper = None
    if processes > 1 and not is_cached():
        helper = subprocess.Popen([sys.executable, "-m", __spec__.name, _ONLY_AGGREGATES])
    for text in _QUERIES:
        _run(text)
    _touch_the_rest()
    if helper is not None:
        # What it failed to compile is compiled here.
        helper.wait()
    for text in _AGGREGATES:
        _run(text)


def is_cached() -> bool:
    """Return whether the kernel was compiled before, by this user and for this processor."""
    folder = advance.stats.cache_path
    return folder is not None and any(Path(folder).glob("probing.advance-*.nbi"))


def _run(text: str) -> None:
    """Take two steps, a snapshot, and the end of the stream."""
    query = parse(text, dialect="cqels")
    static = Dataset.of([Quad(IRI("urn:quadweir:a"), IRI("urn:p"), IRI("urn:quadweir:a"))])
    shard = Shard.of(query, static=static)
    for turn in range(2):
        time = np.arange(10 * turn, 10 * turn + len(_TERMS), dtype=np.int64)
        values = pa.array(_TERMS).dictionary_encode()
        matches = {
            place: MatchColumns(time, time, [values for _ in plan.variables])
            for place, plan in enumerate(shard.leaves)
        }
        elements = Elements(time, time, np.ones_like(time))
        places = range(len(shard.sources))
        seen = {place: (int(time[0]), int(time[-1])) for place in places}
        shard.step(Events(matches, dict.fromkeys(places, elements), seen), int(time[-1]))
    fresh = Shard.of(query, static=static)
    fresh.restore(shard.snapshot())
    fresh.step(Events(), FOREVER)


def _touch_the_rest() -> None:
    """Call what only more input than this reaches."""
    cells = np.arange(1, 33, dtype=np.int64).reshape(-1, 1)
    rows = np.arange(32, dtype=np.int64)
    index = RingIndex((0,), ring=1, linked=False)
    index.attach(np.repeat(cells, 2, axis=1))
    index.insert(rows)
    index.probe(1)
    index.remove(rows)
    OneWay(1).find(cells)
    shard_numbers(pa.array(_TERMS), 2)
    terms = Dictionary()
    DictionaryScope(terms).hold(terms.numbers([f"<urn:quadweir:{n}>" for n in range(100)]))
    for window in (Tumbling(), Dynamic(), Dynamic(_AskedPolicy())):
        _join(window)


@final
class _AskedPolicy(CarryPolicy):
    """A policy that is not ours, so that the Python way of asking it is compiled, too."""


def _join(window: JoinWindow) -> None:
    """Join records over a few windows' time, with a snapshot in between."""
    time = np.repeat(np.arange(0, 60_000, 1_500, dtype=np.int64), 2)
    number = np.arange(len(time), dtype=np.int64)
    join = StreamJoin(window)
    arrivals = Arrivals(pa.array(["k"] * len(time)), number % 2, time, time, number)
    for _ in join.step(arrivals):
        pass
    fresh = StreamJoin(window)
    fresh.restore(join.snapshot())


def dispatchers() -> Iterator[tuple[str, Any]]:
    """Return every compiled function of the kernel with its name."""
    prefix = f"{kernel.__name__}."
    for module in pkgutil.walk_packages(kernel.__path__, prefix):
        loaded = importlib.import_module(module.name)
        for name, found in vars(loaded).items():
            if isinstance(found, CPUDispatcher) and found.py_func.__module__ == loaded.__name__:
                yield f"{module.name.removeprefix(prefix)}.{name}", found


def compiled() -> dict[str, int]:
    """Return how many forms of each compiled function there are in this process."""
    return {name: len(each.signatures) for name, each in dispatchers()}


if __name__ == "__main__":
    if _ONLY_AGGREGATES in sys.argv:
        for each in _AGGREGATES:
            _run(each)
    else:
        warm_up(processes=2)
