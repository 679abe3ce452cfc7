"""The resources of the whole kernel: memory, many queries at once, compilation, a long run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from quadweir.bench.kernel_pipeline import CHUNK, Measurement, Pipeline, joined
from quadweir.bench.templateshards import template_shards
from quadweir.kernel.arrays import Ints
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.shard import Shard
from quadweir.optimize import optimize
from quadweir.syntax import parse

# Table 2 of paper 001: megabytes of n-way joins over count windows of 10,000.
TABLE_2: Final = {2: 12.4, 3: 13.4, 4: 14.7, 6: 17.0, 8: 18.7}
WORD: Final = 8


# --- memory -----------------------------------------------------------------------------------


def memory(*, quick: bool) -> Iterator[Measurement]:
    """The bytes of arrays divided by the bytes of the integers and pointers in them; table 2 of the
    paper.
    """
    for window in (10_000,) if quick else (1_000_000, 700_000, 550_000):
        pipeline = Pipeline(
            window, [{"k": window, f"v{n}": 1 << 40} for n in range(3)], joined(eager=False)
        )
        pipeline.fill(step=min(CHUNK, window))
        taken, needed = _taken(pipeline), _needed(pipeline)
        yield Measurement(
            f"3-way join, windows of {window:,}: bytes / bytes of integers and pointers",
            taken / needed,
            "x",
            at_most=1.5,
            note=f"{taken / (3 * window):.0f} bytes a mapping, results and indexes included",
        )
    window = 1_000 if quick else 10_000
    for ways, paper in TABLE_2.items():
        columns = [{"k": 10_000, f"v{n}": 1 << 40} for n in range(ways)]
        pipeline = Pipeline(window, columns, joined(eager=False), counted=True)
        pipeline.fill(step=1_000 * ways)
        yield Measurement(
            f"{ways}-way join, count windows of {window:,}",
            _taken(pipeline) / 1e6,
            "MB",
            at_most=paper,
            note=f"paper: {paper} MB; {pipeline.join.held():,} results",
        )


def _taken(pipeline: Pipeline) -> int:
    """The bytes of all arrays that outlive a step."""
    leaves = sum(leaf.table.cells.nbytes for leaf in pipeline.leaves)
    return leaves + pipeline.join.nbytes


def _needed(pipeline: Pipeline) -> int:
    """The bytes of the contents: a mapping's times, values and pointers; a key; a result."""
    words = 0
    for leaf in pipeline.leaves:
        # Enter, leave, values; the mapping before with the same key; the first result.
        words += leaf.table.held * (leaf.table.width + 2)
    join = pipeline.join
    words += sum(2 * index.keys for index in join.indexes)
    words += join.held() * (len(pipeline.leaves) + join.links_of_a_result)
    return words * WORD


# --- many queries -----------------------------------------------------------------------------

_LIKES: Final = (
    "SELECT ?x WHERE {{ STREAM <urn:s> [RANGE 1s] {{ <urn:user/{0}> <urn:likes> ?x }} }}"
)


def queries(*, quick: bool) -> Iterator[Measurement]:
    """Queries that differ in a constant: the cost of an element that concerns none of them."""
    many, elements = (1_000, 20_000) if quick else (10_000, 300_000)
    shards = {
        count: template_shards([_parsed(_LIKES.format(n)) for n in range(count)])[0]
        for count in (2, many)
    }
    costs = {}
    for count, shard in shards.items():
        for concerned in (False, True):
            # Users that no query asks for, or only users that some query asks for.
            low, high = (0, count) if concerned else (many, 2 * many)
            cost, answers = _cost(shard, elements, low, high)
            costs[count, concerned] = cost
            note_text = f"{answers:.2f} answers an element"
            what = "every element concerns one" if concerned else "no element concerns any"
            yield Measurement(
                f"{count:,} queries, {what}", cost * 1e9, "ns an element", note=note_text
            )
    yield Measurement(
        f"{many:,} queries / 2 queries, elements that concern none",
        costs[many, False] / costs[2, False],
        "x",
        at_most=2.0,
    )
    yield Measurement(
        f"{many:,} queries / 2 queries, elements that concern one",
        costs[many, True] / costs[2, True],
        "x",
    )


def _parsed(text: str) -> Any:
    return optimize(parse(text, dialect="cqels")).query


def _cost(shard: Shard, elements: int, low: int, high: int) -> tuple[float, float]:
    random = np.random.default_rng(5)
    # Time goes on from one call to the next.
    now = int(getattr(shard, "_bench_now", 0))
    names = pa.array([f"<urn:user/{n}>" for n in range(low, high)])
    things = pa.array([f"<urn:post/{n}>" for n in range(1_000)])
    spent, answers, taken, turn = 0.0, 0, 0, 0
    while taken < elements:
        size = min(CHUNK, elements)
        instants = np.arange(now, now + size, dtype=np.int64) // 100
        now += size
        users = pa.DictionaryArray.from_arrays(
            pa.array(random.integers(0, high - low, size, dtype=np.int32)), names
        )
        posts = pa.DictionaryArray.from_arrays(
            pa.array(random.integers(0, 1_000, size, dtype=np.int32)), things
        )
        matches = {}
        for place, plan in enumerate(shard.leaves):
            own = [posts if v.name == "x" else users for v in plan.variables]
            matches[place] = MatchColumns(instants, np.arange(now - size, now), own)
        seen = {0: (int(instants[0]), int(instants[-1]))}
        start = time.process_time()
        found = len(shard.step(Events(matches, {}, seen), int(instants[-1]) - 1))
        if turn:
            spent += time.process_time() - start
            answers += found
            taken += size
        turn += 1
    object.__setattr__(shard, "_bench_now", now)
    return spent / taken, answers / taken


# --- compilation ------------------------------------------------------------------------------

# The grammar of queries is loaded before: only the compiled functions are to be timed.
_WARM: Final = """
import resource
import time
import pandas
from quadweir.kernel.warm import warm_up
from quadweir.syntax import parse
parse("SELECT * { STREAM <urn:s> [NOW] { ?s ?p ?o } }", dialect="cqels")
start, work = time.perf_counter(), time.process_time()
warm_up(processes=2)
children = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.perf_counter() - start, time.process_time() - work, children.ru_utime + children.ru_stime)
"""


def compilation(*, quick: bool) -> Iterator[Measurement]:
    """The whole kernel compiled into an empty cache, then loaded from it by another process."""
    if quick:
        return
    with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as folder:
        for name, most in (("compiled into an empty cache", 15.0), ("loaded from the cache", 1.0)):
            waited, worked, helped = _warm(Path(folder))
            yield Measurement(
                f"all of the kernel {name}",
                waited,
                "s",
                at_most=most,
                note=f"{worked:.1f} s of CPU time in this process, {helped:.1f} s in a helper process",
            )


def _warm(folder: Path) -> tuple[float, float, float]:
    done = subprocess.run(
        [sys.executable, "-c", _WARM],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    waited, worked, helped = map(float, done.stdout.split())
    return waited, worked, helped


# --- a long run -------------------------------------------------------------------------------

# Two posts by one user with one hashtag; posts for each hashtag.
_Q4: Final = """SELECT ?user ?one ?other ?tag WHERE {
  STREAM <urn:posts> [RANGE 15s] { ?user <urn:creator_of> ?one . ?one <urn:hashtag> ?tag }
  STREAM <urn:posts> [RANGE 15s] { ?user <urn:creator_of> ?other . ?other <urn:hashtag> ?tag }
  FILTER(?one != ?other) }"""
_Q10: Final = """SELECT ?tag (COUNT(?post) AS ?posts) WHERE {
  STREAM <urn:posts> [RANGE 15s] { ?post <urn:hashtag> ?tag } } GROUP BY ?tag"""


def soak(
    elements: int, on_step: Callable[[str], None] = lambda _: None, step: int = 20_000
) -> Iterator[Measurement]:
    """Take `elements` posts, each with its own name, and watch the memory of the kernel."""
    for name, text in (("Q4", _Q4), ("Q10", _Q10)):
        shard = Shard.of(_parsed(text), records=False)
        samples = []
        taken = answers = 0
        start = time.process_time()
        while taken < elements:
            answers += _posts(shard, taken, step)
            taken += step
            if taken % max(step, elements // 20 // step * step) == 0:
                samples.append((taken, shard.held(), len(shard.dictionary), _resident()))
                on_step(
                    f"{name}: {taken:,} elements, {samples[-1][1]:,} mappings held, "
                    f"{samples[-1][2]:,} terms, {samples[-1][3] / 2**20:,.0f} MiB resident"
                )
        spent = time.process_time() - start
        # The windows were full after the first 15 s, long before the first quarter was over.
        later = samples[len(samples) // 4 :]
        yield Measurement(
            f"{name}: elements",
            elements / spent,
            "/s",
            note=f"{taken:,} taken, {answers:,} answers",
        )
        for place, what in ((1, "mappings held"), (2, "terms in the dictionary"), (3, "resident")):
            seen = [sample[place] for sample in later]
            unit = "bytes" if place == 3 else ""
            yield Measurement(f"{name}: {what} at the end", seen[-1], unit)
            yield Measurement(
                f"{name}: {what}, last / first after the windows were full",
                seen[-1] / max(1, seen[0]),
                "x",
                at_most=1.1,
            )


def _posts(shard: Shard, first: int, count: int) -> int:
    """Feed posts, two each millisecond: 30,000 in a window."""
    random = np.random.default_rng(first)
    position = np.arange(first, first + count, dtype=np.int64)
    instants = position // 2
    columns = {
        "one": (names := pa.array([f"<urn:post/{n}>" for n in range(first, first + count)])),
        "other": names,
        "post": names,
        "user": pa.array([f"<urn:user/{n}>" for n in random.integers(0, 20_000, count)]),
        "tag": pa.array([f'"tag {n}"' for n in random.integers(0, 500, count)]),
    }
    matches = {}
    for place, plan in enumerate(shard.leaves):
        own: list[pa.Array | Ints] = [columns[v.name] for v in plan.variables]
        matches[place] = MatchColumns(instants, position, own)
    seen = {place: (int(instants[0]), int(instants[-1])) for place in range(len(shard.sources))}
    return len(shard.step(Events(matches, {}, seen), int(instants[-1]) - 1))


def _resident() -> int:
    """The bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
