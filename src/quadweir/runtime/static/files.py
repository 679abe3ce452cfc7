"""The static relations of a query as files, for every worker to read.

The relations are Arrow files, and Spark sends them to the machines of a cluster. From them the
first shard on a machine makes terms, rows and indexes, and writes them to one more file. All shards
on that machine map this file into memory (`kernel/layout.py`).
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, final

import pyarrow as pa
import pyarrow.parquet as pq

from quadweir import rows
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.render import render
from quadweir.errors import SourceError
from quadweir.kernel.layout import NO_LAYOUT, VERSION, Arrays, map_layout, write_layout
from quadweir.kernel.shard import Shard
from quadweir.kernel.staticrelations import FixedRelation, ShardShare
from quadweir.plan.program import Program
from quadweir.plan.render import digest_of
from quadweir.terms import IRI, BlankNode, Quad, Variable, parse_term

QUADS: Final = "quads.parquet"
"""The file of all quads that a query may see, if it needs them all."""


@final
@dataclass(frozen=True)
class Stored:
    """The static relations of one query, as files that every worker can read.

    Attributes:
        folder: where the files are on the driver's machine.
        laid_out: whether shards map a layout file; the first shard on a machine writes it.
    """

    folder: str
    laid_out: bool = True

    def relation(self, query: ContinuousQuery, variables: tuple[Variable, ...]) -> FixedRelation:
        file = self._file(relation_file(query, variables))
        return FixedRelation.read(file, variables)

    def dataset(self) -> Dataset:
        table = pq.read_table(self._file(QUADS))
        return Dataset.of(read_quads(table))

    def layout(self, program: Program, share: ShardShare | None) -> Arrays:
        if not self.laid_out:
            return NO_LAYOUT
        part = f"{share.number}-{share.count}" if share is not None else "all"
        file = self._file(f"{digest_of(program)[:24]}.{part}.{VERSION}.layout")
        try:
            if not file.exists():
                self._lay_out(file, program, share)
            return map_layout(file)
        except OSError as error:
            raise SourceError(
                f"static data cannot be laid out for shards: {error}",
                detail=f"Shards map it from {file}.",
                hint="Make room there, or set TMPDIR to a folder on another disk.",
            ) from error

    def _lay_out(self, file: Path, program: Program, share: ShardShare | None) -> None:
        with file.with_suffix(".lock").open("w") as lock:
            # Other workers that need the file wait here.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                own = replace(self, laid_out=False)
                shard = Shard(program, static=own, records=False, share=share)
                part = file.with_suffix(".part")
                write_layout(part, shard.layout())
                part.replace(file)

    def _file(self, name: str) -> Path:
        own = Path(self.folder)
        if own.exists():
            return own / name
        # On another machine of a cluster, Spark has put the file elsewhere.
        from pyspark import SparkFiles

        return Path(SparkFiles.get(f"{own.name}-{name}"))


def relation_file(query: ContinuousQuery, variables: tuple[Variable, ...]) -> str:
    """Return the name of the file that holds the solutions of a static sub-pattern."""
    text = f"{render(query)}\n{' '.join(map(str, variables))}"
    return f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.arrow"


def read_quads(table: pa.Table) -> Iterable[Quad]:
    """Yield the quads of a table with the columns `rows.TERMS`."""
    for batch in table.select(rows.TERMS).to_batches():
        for subject, predicate, end, graph in zip(*batch.to_pydict().values(), strict=True):
            terms = parse_term(subject), parse_term(predicate)
            name = parse_term(graph) if graph is not None else None
            assert isinstance(terms[0], IRI | BlankNode)
            assert isinstance(terms[1], IRI)
            assert name is None or isinstance(name, IRI | BlankNode)
            yield Quad(terms[0], terms[1], parse_term(end), name)


def write_quads(data: Dataset, path: Path) -> bytes:
    """Write all quads that a query may see; return their digest."""
    found = [
        (*map(str, occurrence[:3]), None if name is None else str(name))
        for name, source in [(None, data.default), *data.named.items()]
        for occurrence in source.occurrences
    ]
    found.sort(key=lambda row: [each or "" for each in row])
    columns = list(zip(*found, strict=True)) or [()] * len(rows.TERMS)
    arrays = [pa.array(column, pa.string()) for column in columns]
    pq.write_table(pa.table(arrays, names=list(rows.TERMS)), path)
    digest = hashlib.sha256()
    for row in found:
        digest.update(repr(row).encode())
    return digest.digest()
