"""Checkpoints as a stopped query leaves them, made without Spark."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

from quadweir.runtime.checkpoint import DRIVER, Fingerprint
from quadweir.runtime.portable.planfile import StoredPlan
from quadweir.runtime.portable.rewriting import SHARDS
from quadweir.runtime.portable.sparklogs import COMMITS, OFFSETS
from quadweir.sources.streamfiles import Element
from quadweir.terms import Quad
from quadweir.testing import Answer
from query_hosts import spec_of
from streaming import quads
from worker_hosts import WorkerHost

STATIC = quads("c0 r d0 . c1 r d1 . c2 r d0")
JOIN = """SELECT ?x ?y ?z ?w {
  STREAM <urn:s> [RANGE 60ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 60ms] { ?y <urn:q> ?z }
  ?z <urn:r> ?w }"""
TWO_STAGES = """SELECT ?z (COUNT(*) AS ?n) {
  STREAM <urn:s> [RANGE 60ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 60ms] { ?y <urn:q> ?z }
  ?z <urn:r> ?w } GROUP BY ?z"""


def make_feed(count: int = 120) -> list[Element]:
    dice = random.Random(5)
    found = []
    for position in range(count):
        if position % 2:
            text, name = f"a{dice.randrange(9)} p b{dice.randrange(9)}", "urn:s"
        else:
            text, name = f"b{dice.randrange(9)} q c{dice.randrange(4)}", "urn:t"
        found.append(Element(name, 1000 + 2 * position, position, quads(text)))
    return found


class Stopped:
    """A query over batches of a feed, with a checkpoint like that of local worker processes."""

    def __init__(
        self, folder: Path, query: str, *, static: Sequence[Quad] = (), shards: int = 2
    ) -> None:
        self.folder, self._query, self._static = folder, query, static
        self.answers: list[Answer] = []
        self._batch = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._start(shards)
        self._write(shards)

    def _start(self, shards: int, *, like: str = "") -> None:
        self._host = WorkerHost(
            self._query,
            self.folder / SHARDS,
            static=self._static,
            shards=shards,
            processes=1,
            like=like,
        )
        self._host.batch, self._host.answers = self._batch, self.answers

    def _write(self, shards: int) -> None:
        spec = self._host.spec
        wide = None
        if shards == 1:
            wide = spec_of(self._query, static=self._static, shards=2).plan
        found = Fingerprint.of(
            spec.plan, shards=shards, partitions=0, static=spec.static_digest, shards_in=DRIVER
        )
        found.guard(self.folder)
        StoredPlan(spec.plan, wide).write(self.folder)

    def push(self, elements: Sequence[Element]) -> None:
        """Take a batch."""
        self._host.push(elements)
        for name, text in (
            (OFFSETS, f"v1\n{json.dumps({'conf': {}})}\n{self._batch}"),
            (COMMITS, "v1\n{}"),
        ):
            (self.folder / name).mkdir(exist_ok=True)
            (self.folder / name / str(self._batch)).write_text(text)
        self._batch += 1

    def stop(self) -> None:
        self._host.lose()

    def go_on(self) -> None:
        """Start again as the checkpoint says."""
        known = Fingerprint.left_in(self.folder)
        assert known is not None
        self._start(known.most, like=known.layout)
        # Nothing has to be written: it is what the checkpoint says already.
        self._write(known.most)

    def finish(self) -> None:
        self._host.finish()
