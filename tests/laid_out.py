"""Static data that shards get as a file which they map, without Spark."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.render import render
from quadweir.kernel.build import static_dataset
from quadweir.kernel.fixed import FixedRelation, Loaded, Share
from quadweir.kernel.layout import Arrays, map_layout, write_layout
from quadweir.kernel.shard import Shard
from quadweir.terms import Quad, Variable
from quadweir.testing.shards import scoped_static


@dataclass(frozen=True)
class LaidOut:
    """Static data in memory, and what shards make of it in a folder."""

    data: Loaded
    folder: Path

    @staticmethod
    def of(query: ContinuousQuery, static: Sequence[Quad], folder: Path) -> LaidOut:
        whole = Dataset.of(scoped_static(static))
        return LaidOut(Loaded(static_dataset(query, whole)), folder)

    def relation(self, query: ContinuousQuery, variables: tuple[Variable, ...]) -> FixedRelation:
        return self.data.relation(query, variables)

    def dataset(self) -> Dataset:
        return self.data.dataset()

    def layout(
        self, query: ContinuousQuery, streams: tuple[str, ...], share: Share | None
    ) -> Arrays:
        name = hashlib.sha256(f"{render(query)} {streams} {share}".encode()).hexdigest()
        file = self.folder / name
        if not file.exists():
            made = Shard(query, static=self.data, streams=streams, records=False, share=share)
            write_layout(file, made.layout())
        return map_layout(file)
