"""A network under queries that come and go all the time: whether memory and batch time stay flat."""

from __future__ import annotations

import random
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir.bench.continuous import query_text
from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.live import FILES, engine_over
from quadweir.bench.memory import resident_mib
from quadweir.bench.socialstream import FIRST_USER, STREAM, SocialNetworkSize, write_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quadweir.bench.cloudsize import CloudSize

_TURNOVER: Final = 10
_TEMPLATES: Final = (("q01", None), ("q04", "15s"), ("q10", "15s"))
_BATCH_TRIPLES: Final = 2_000
_AT_ONCE: Final = 50
"""How many batches are generated at a time."""


def soak(spark: SparkSession, size: CloudSize, folder: Path) -> Iterator[Measurement]:
    """Ten queries leave and ten come with every batch; the first and the last quarter are compared."""
    own, source = folder / "soak", random.Random(size.seed)
    (own / "posts").mkdir(parents=True)
    network = engine_over(spark, {f"{STREAM}posts": own / "posts"}).network()
    running = [f"soak-{number}" for number in range(size.soaked)]
    number = len(running)
    found = network.register_all({name: _drawn(source, size.users) for name in running})
    assert not found.refused, found.refused
    network.start(checkpoint=own / "checkpoint")
    ends = time.monotonic() + 60 * size.soak_minutes
    batches: list[tuple[float, int]] = []
    files = _files(own, size)
    while time.monotonic() < ends:
        leaving = source.sample(running, _TURNOVER)
        network.unregister(*leaving)
        coming = [f"soak-{number + place}" for place in range(_TURNOVER)]
        number += _TURNOVER
        refused = network.register_all({name: _drawn(source, size.users) for name in coming})
        assert not refused.refused, refused.refused
        gone = {*leaving}
        running = [each for each in running if each not in gone] + coming
        for _ in range(FILES):
            next(files)
        network.processAllAvailable()
        batches.append((network.lastProgress.batchDuration, resident_mib()))
    assert sorted(network.queries()) == sorted(running)
    stopped = [each for each in network.status() if each.state == "stopped"]
    assert not stopped, stopped
    network.stop()
    shutil.rmtree(own)
    quarter = max(1, len(batches) // 4)
    # The first quarter begins when Java has compiled what it needs.
    early, late = batches[quarter : 2 * quarter], batches[-quarter:]
    for place, name, unit in ((0, "time of a batch", "ms"), (1, "memory of all processes", "MiB")):
        before, after = (statistics.median(each[place] for each in part) for part in (early, late))
        yield Measurement(
            f"{size.soaked:,} queries, {name}: last quarter / second quarter",
            after / before,
            "x",
            at_most=1.2,
            note=f"{before:,.0f} and {after:,.0f} {unit} in the middle; {len(batches):,} batches "
            f"in {size.soak_minutes} minutes, {number:,} queries in all",
        )


def _drawn(source: random.Random, users: int) -> str:
    name, length = source.choice(_TEMPLATES)
    text = query_text(name).replace("u984", f"u{source.randrange(FIRST_USER, FIRST_USER + users)}")
    if length is not None:
        text = text.replace(f"RANGE {length}", f"RANGE {source.randint(100, 15_000)}ms")
    return text


def _files(folder: Path, size: CloudSize) -> Iterator[None]:
    """Let one file after the other appear in the stream."""
    network, first = SocialNetworkSize(users=size.users), 0
    while True:
        scratch = folder / f"scratch-{first}"
        write_streams(
            network, ["posts"], scratch, batches=_AT_ONCE, triples=_BATCH_TRIPLES, first=first
        )
        for file in sorted((scratch / "posts").iterdir()):
            file.rename(folder / "posts" / file.name)
            yield
        shutil.rmtree(scratch)
        first += _AT_ONCE
