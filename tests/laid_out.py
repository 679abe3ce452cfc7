"""Static data that shards get as a file which they map, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import static_dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.kernel.layout import Arrays, map_layout, write_layout
from quadweir.kernel.shard import Shard
from quadweir.kernel.staticrelations import FixedRelation, Loaded, ShardShare
from quadweir.plan.program import Program
from quadweir.plan.render import digest_of
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

    def layout(self, program: Program, share: ShardShare | None) -> Arrays:
        file = self.folder / f"{digest_of(program)} {share}"
        if not file.exists():
            made = Shard(program, static=self.data, records=False, share=share)
            write_layout(file, made.layout())
        return map_layout(file)
