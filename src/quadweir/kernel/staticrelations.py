"""Static relations in the form that shards take them: each term once, rows as places among them.

A query asks static data for the solutions of its static sub-patterns and for nothing else. They are
computed once, before the query starts, and every shard reads them, from memory or from a file that
is mapped into memory; how large the data is that they were found in does not matter to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import solve, static_dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.solutions import Bag
from quadweir.errors import SourceError
from quadweir.kernel.arrays import Ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.layout import NO_LAYOUT, Arrays
from quadweir.kernel.xxhash import shard_numbers
from quadweir.plan.program import Program
from quadweir.terms import Variable


@final
@dataclass(frozen=True)
class FixedRelation:
    """Solutions of a pattern over static data.

    Attributes:
        variables: What the columns bind.
        terms: The distinct spellings, in order.
        codes: For each variable the places of its values among the terms, -1 where it is unbound.
            Rows are sorted: state refers to them by number, whatever order the data is read in.
    """

    variables: tuple[Variable, ...]
    terms: pa.Array
    codes: tuple[NDArray[np.int32], ...]
    count: int

    @staticmethod
    def of(
        variables: tuple[Variable, ...], columns: Sequence[pa.ChunkedArray], count: int
    ) -> FixedRelation:
        """Make a relation of columns of canonical spellings, null for unbound."""
        chunks = [chunk.cast(pa.large_string()) for column in columns for chunk in column.chunks]
        terms = pc.unique(pa.chunked_array(chunks, pa.large_string())).drop_null()
        terms = terms.take(pc.sort_indices(terms))
        found = [
            np.concatenate(
                [np.zeros(0, np.int32)]
                + [
                    pc.fill_null(pc.index_in(chunk.cast(pa.large_string()), terms), -1).to_numpy()
                    for chunk in column.chunks
                ]
            )
            for column in columns
        ]
        if found:
            order = np.lexsort(found[::-1])
            found = [np.ascontiguousarray(each[order], dtype=np.int32) for each in found]
        return FixedRelation(variables, terms, tuple(found), count)

    @staticmethod
    def of_bag(variables: tuple[Variable, ...], bag: Bag) -> FixedRelation:
        """Make a relation of solutions."""
        columns = [
            pa.chunked_array(
                [
                    pa.array(
                        [str(row[each]) if each in row else None for row in bag], pa.large_string()
                    )
                ]
            )
            for each in variables
        ]
        return FixedRelation.of(variables, columns, len(bag))

    def in_order(self, variables: tuple[Variable, ...]) -> FixedRelation:
        """Return the same rows with columns in another order; its digest names no variable."""
        codes = tuple(self.codes[self.variables.index(each)] for each in variables)
        if codes:
            rows = np.lexsort(codes[::-1])
            codes = tuple(np.ascontiguousarray(each[rows]) for each in codes)
        found = FixedRelation(variables, self.terms, codes, self.count)
        places = tuple(Variable(str(place)) for place in range(len(variables)))
        found.__dict__["digest"] = replace(found, variables=places).digest
        return found

    def part(self, key: Variable, share: ShardShare) -> FixedRelation:
        """Return the rows whose value of a variable belongs to one shard; all rows bind it."""
        chosen = self.codes[self.variables.index(key)]
        here = shard_numbers(self.terms, share.count) == share.number
        codes = [each[here[chosen]] for each in self.codes]
        used = np.unique(np.concatenate(codes))
        used = used[used >= 0]
        numbers = np.full(len(self.terms) + 1, -1, dtype=np.int32)  # the last for what is unbound
        numbers[used] = np.arange(len(used))
        return FixedRelation(
            self.variables,
            self.terms.take(pa.array(used)),
            tuple(numbers[each] for each in codes),
            len(codes[0]),
        )

    @property
    def bound(self) -> Ints:
        """For each variable 1 if all rows bind it, else 0."""
        return np.array([(each >= 0).all() for each in self.codes], dtype=np.int64)

    def numbers(self, dictionary: Dictionary) -> NDArray[np.int64]:
        """Return the rows as a shard's numbers of terms, 0 for unbound; the terms are kept for good."""
        numbers = dictionary.encode(self.terms)
        dictionary.keep(numbers)
        # One place more, for what is unbound.
        known = np.append(numbers, 0)
        found = np.empty((self.count, len(self.variables)), dtype=np.int64)
        for place, codes in enumerate(self.codes):
            found[:, place] = known[codes]
        return found

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all of it."""
        found = hashlib.sha256()
        found.update(f"{self.count} {' '.join(map(str, self.variables))}\n".encode())
        # The buffers of an array may begin before it.
        for buffer in pa.concat_arrays([self.terms]).buffers()[1:]:
            if buffer is not None:
                found.update(buffer)
        for codes in self.codes:
            found.update(codes.data)
        return found.digest()

    def write(self, path: Path) -> None:
        """Write it as an Arrow file that can be mapped into memory."""
        names = ["terms", *(f"codes{place}" for place in range(len(self.codes)))]
        lists = [self.terms, *map(pa.array, self.codes)]
        offsets = [pa.array([0, len(each)], pa.int64()) for each in lists]
        columns = [
            pa.LargeListArray.from_arrays(offset, each)
            for offset, each in zip(offsets, lists, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(columns, names=names).replace_schema_metadata(
            {"count": str(self.count), "digest": self.digest.hex()}
        )
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)

    @staticmethod
    def read(path: Path, variables: tuple[Variable, ...]) -> FixedRelation:
        """Read what `write` wrote; its bytes stay in the file until they are looked at.

        Raises:
            SourceError: it is not there, or is no such file.
        """
        try:
            batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
        except (OSError, pa.ArrowException) as error:
            raise SourceError(
                f"the static data of the query is gone: {path}",
                detail=str(error),
                hint="Start the query again; it reads its static files again.",
            ) from error
        terms, *codes = (column.flatten() for column in batch.columns)
        count = int(batch.schema.metadata[b"count"])
        found = FixedRelation(variables, terms, tuple(each.to_numpy() for each in codes), count)
        found.__dict__["digest"] = bytes.fromhex(batch.schema.metadata[b"digest"].decode())
        return found


@final
@dataclass(frozen=True, slots=True)
class ShardShare:
    """Which of several shards one is: what it has of static relations that are divided.

    Attributes:
        number: The shard.
        count: How many shards there are.
    """

    number: int
    count: int


class StaticSource(Protocol):
    """Where a shard has static relations from."""

    def relation(self, query: ContinuousQuery, variables: tuple[Variable, ...]) -> FixedRelation:
        """Return the solutions of a query without windows over what static data it may see."""

    def dataset(self) -> Dataset:
        """Return the data itself, for queries that are evaluated from scratch at their reports."""

    def layout(self, program: Program, share: ShardShare | None) -> Arrays:
        """Return what `Shard.layout` returned for a program and this data; nothing if that is unknown."""


@final
@dataclass(frozen=True)
class Loaded:
    """Static data in memory, as far as the query may see it."""

    data: Dataset

    def relation(self, query: ContinuousQuery, variables: tuple[Variable, ...]) -> FixedRelation:
        return FixedRelation.of_bag(variables, solve(query, self.data))

    def dataset(self) -> Dataset:
        return self.data

    def layout(self, program: Program, share: ShardShare | None) -> Arrays:
        return NO_LAYOUT


def source_of(query: ContinuousQuery, static: Dataset | StaticSource | None) -> StaticSource:
    """Return where the static relations of a query come from."""
    if static is None or isinstance(static, Dataset):
        return Loaded(static_dataset(query, static))
    return static


def combined(digests: Iterable[bytes]) -> bytes:
    """Name several relations by one digest."""
    return hashlib.sha256(b"".join(digests)).digest()
