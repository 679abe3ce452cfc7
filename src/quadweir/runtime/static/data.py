"""Static data for a query: it is read once, and each static sub-pattern is solved once.

Small data is read and solved in this process. Spark reads and joins large data (`sparkjoin.py`).
The solutions are written as files for the shards (`files.py`).
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast, final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from quadweir import rows, spelling
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import static_dataset
from quadweir.algebra.patterns import Pattern, Values
from quadweir.algebra.query import ContinuousQuery
from quadweir.entailment.close import StaticClosure
from quadweir.errors import DataError, SourceError, UsageError
from quadweir.kernel.build import relation_of
from quadweir.kernel.staticrelations import Loaded, combined
from quadweir.paths import PathLike
from quadweir.plan.facts import NOTHING_KNOWN, StaticFacts
from quadweir.plan.nodes import StaticRelation
from quadweir.plan.program import program_of
from quadweir.plan.pushdown import MOST_VALUES
from quadweir.runtime.match.entail import closed
from quadweir.runtime.static.files import QUADS, Stored, relation_file, write_quads
from quadweir.runtime.static.quadframes import (
    FEW,
    check_columns,
    digest_of,
    good_quads,
    read_quads_of,
)
from quadweir.runtime.static.shared import SharedSolutions, Solved
from quadweir.runtime.static.sparkjoin import SparkJoined, matchable
from quadweir.sources.staticfiles import StaticFile, apart_from_streams, list_static, read_static
from quadweir.terms import IRI, Quad, Term, Variable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

StaticInput: TypeAlias = "StaticFile | PathLike | Quad | DataFrame"
"""What a caller may give as static data."""
WHOLE_DIGEST: Final = "quads.digest"
"""The file with the digest of all quads that a query may see."""
_SCRATCH: Final = "unshared-"
LARGE_BYTES: Final = 16 << 20
"""Spark reads static files that have this many bytes or more in all."""


@final
@dataclass(frozen=True)
class StaticData:
    """Files, quads and frames that queries join with; nothing is read before a query needs it.

    Attributes:
        files: the static files.
        quads: more static quads.
        frames: more static quads, as rows of `rows.QUAD_SCHEMA`.
        large_bytes: from this size of the files on, Spark reads them.
    """

    files: tuple[StaticFile, ...] = ()
    quads: tuple[Quad, ...] = ()
    frames: tuple[DataFrame, ...] = ()
    large_bytes: int = LARGE_BYTES

    @staticmethod
    def of(static: Iterable[StaticInput]) -> StaticData:
        """Return static data from files, folders, `IRI=FILE` for a named graph, quads and frames.

        Raises:
            UsageError: a frame does not have the columns of quads, or something is none of these.
        """
        files, quads, frames = [], [], []
        for each in static:
            if isinstance(each, Quad):
                quads.append(each)
            elif isinstance(each, StaticFile):
                files.append(each)
            elif isinstance(each, str | os.PathLike):
                files.append(StaticFile.of(each))
            elif hasattr(each, "isStreaming"):
                check_columns(each)
                frames.append(each)
            else:
                raise UsageError(
                    f"static data cannot be {type(each).__name__}",
                    hint="Give files, folders, quads, or DataFrames of quads.",
                )
        return StaticData(tuple(files), tuple(quads), tuple(frames))

    def digest(self) -> str:
        """Return a SHA-256 of all files and quads.

        Raises:
            SourceError: a file does not exist.
        """
        found = hashlib.sha256()
        for each in self.files:
            for file in list_static(each.path):
                found.update(f"{each.graph} {file.suffix}\n".encode())
                with file.open("rb") as data:
                    found.update(hashlib.file_digest(data, "sha256").digest())
        for frame in self.frames:
            found.update(digest_of(frame))
        for quad in sorted(map(str, self.quads)):
            found.update(f"{quad}\n".encode())
        return found.hexdigest()

    def prepare(
        self,
        spark: SparkSession,
        query: ContinuousQuery,
        streams: tuple[str, ...],
        *,
        follows: StaticClosure | None = None,
        shared: SharedSolutions | None = None,
    ) -> Prepared:
        """Read the data as it is now, and solve the static sub-patterns of a query.

        Args:
            spark: the session.
            query: the query, optimised.
            streams: the streams that exist.
            follows: adds what a schema derives from the quads. If a property is transitive, the
                data is read in this process, however large it is.
            shared: what was solved for other queries over the same data and schema. What it has is
                not solved again.

        Raises:
            SourceError: a file does not exist, or there is no room for the solutions.
            DataError: a file does not parse; a query over half of its static data would give
                wrong answers.
            PlanError: FROM names a graph that does not exist.
        """
        try:
            return self._prepare(spark, query, streams, follows, shared or SharedSolutions())
        except OSError as error:
            # A running query that reads its data again can continue with what it had.
            raise SourceError(
                f"static data cannot be read or prepared: {error}",
                hint="Check the files, and that the disk of TMPDIR has room.",
            ) from error

    def _prepare(
        self,
        spark: SparkSession,
        query: ContinuousQuery,
        streams: tuple[str, ...],
        follows: StaticClosure | None,
        shared: SharedSolutions,
    ) -> Prepared:
        program = program_of(query, streams=streams)
        asked = [each for each in program.static if not isinstance(each.query.pattern, Values)]
        is_whole = program.why_not is not None
        unsolved = [each for each in asked if shared.find(each) is None]
        folder = Path(tempfile.mkdtemp(prefix="quadweir-static-"))
        prepared = Prepared(folder)
        if unsolved or is_whole:
            self._solve(spark, query, unsolved, follows, shared, folder, whole=is_whole)
        digests, counts = [], {}
        for each in asked:
            solved = shared.find(each)
            assert solved is not None, "it was solved before, or just now"
            (folder / relation_file(each.query, each.variables)).hardlink_to(solved.file)
            digests.append(solved.digest)
            counts[each.query] = solved.count
            if not solved.count:
                prepared.unmatched.append(each.query.pattern)
        if is_whole:
            digests.append((folder / WHOLE_DIGEST).read_bytes())
        if not str(spark.sparkContext.master).startswith("local"):
            prepared.send(spark)
        prepared.digest = combined(digests).hex()
        prepared.facts = StaticFacts(counts)
        return prepared

    def _solve(
        self,
        spark: SparkSession,
        query: ContinuousQuery,
        asked: list[StaticRelation],
        follows: StaticClosure | None,
        shared: SharedSolutions,
        folder: Path,
        *,
        whole: bool,
    ) -> None:
        """Solve sub-patterns; write the whole data, too, if the query may need all of it."""
        listed = [(each, list_static(each.path)) for each in self.files]
        size = sum(file.stat().st_size for _, files in listed for file in files)
        source: Loaded | SparkJoined
        own: list[Quad] | None = None
        if follows is not None and follows.transitive:
            own = self._read_frames(None)
        elif size < self.large_bytes:
            own = self._read_frames(FEW)
        if own is not None:
            few = own
            quads: Iterable[Quad] = shared.quads(
                lambda: [*apart_from_streams([*read_static(self.files), *self.quads, *few])]
            )
            quads = follows.of(quads) if follows is not None else quads
            source = Loaded(static_dataset(query, Dataset.of(quads)))
        else:
            frame = self._frame(spark, listed)
            frame = closed(frame, follows.table) if follows is not None else frame
            patterns = None if whole else matchable(each.query.pattern for each in asked)
            source = SparkJoined(spark, query, patterns, frame, folder)
        for each in asked:
            relation = source.relation(each.query, each.variables)
            file = folder / f"{_SCRATCH}{relation_file(each.query, each.variables)}"
            relation.write(file)
            shared.keep(each, Solved(file, relation.digest, relation.count))
            file.unlink()
        if whole:
            (folder / WHOLE_DIGEST).write_bytes(write_quads(source.dataset(), folder / QUADS))

    @property
    def is_empty(self) -> bool:
        """Whether there are no files, no quads and no frames."""
        return not self.files and not self.quads and not self.frames

    def _read_frames(self, most: int | None) -> list[Quad] | None:
        """Return the quads of all frames; None if one has more than `most`."""
        found: list[Quad] = []
        for number, frame in enumerate(self.frames):
            quads = read_quads_of(frame, most=most)
            if quads is None:
                return None
            found += [each.relabelled(f"d{number}-".__add__) for each in quads]
        return found

    def _frame(self, spark: SparkSession, listed: list[tuple[StaticFile, list[Path]]]) -> DataFrame:
        from quadweir.sources.rdf_files import read_rdf

        frames = []
        for number, (static, files) in enumerate(listed):
            read = read_rdf(spark, *files)
            bad = read.dead_letters.take(1)
            if bad:
                letter = bad[0]
                raise DataError(
                    f"{letter[rows.SOURCE]}, {letter[rows.PLACE]}: {letter[rows.REASON]}"
                )
            frame = read.quads
            if static.graph is not None:
                frame = frame.withColumn(rows.GRAPH, F.lit(str(static.graph)))
            frames.append(_named_apart(frame, f"g{number}-"))
        for number, each in enumerate(self.frames):
            frames.append(_named_apart(good_quads(each), f"d{number}-"))
        if self.quads:
            own = [tuple(_spelled(quad)) for quad in apart_from_streams(self.quads)]
            frames.append(spark.createDataFrame(own, rows.QUAD_SCHEMA))
        return reduce(lambda one, other: one.unionByName(other), frames)


class Prepared:
    """The relations of a query, in a folder that is removed with this object."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.digest = ""
        self.facts = NOTHING_KNOWN
        """What a planner may know about the data."""
        self.unmatched: list[Pattern] = []
        """Patterns that no static data matches."""
        self._removal = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @property
    def source(self) -> Stored:
        """Reads the relations, in this process or in a worker."""
        return Stored(str(self.folder), bool(self.facts.counts))

    def values_of(self, relation: StaticRelation, variable: Variable) -> tuple[str, ...] | None:
        """Return the values of a variable in a relation, in order; None if there are many."""
        found = relation_of(relation, self.source)
        codes = np.unique(found.codes[found.variables.index(variable)])
        if len(codes) > MOST_VALUES:
            return None
        return tuple(found.terms.take(pa.array(codes[codes >= 0])).to_pylist())

    def send(self, spark: SparkSession) -> None:
        """Have Spark copy the files to every machine of a cluster.

        The files stay until this process ends: for each task Spark fetches every file that it was
        ever given, and a task fails if one is missing.
        """
        for file in [each for each in self.folder.iterdir() if each.is_file()]:
            # Spark identifies a file by its name without the folder.
            copy = self.folder / f"{self.folder.name}-{file.name}"
            copy.hardlink_to(file)
            spark.sparkContext.addFile(str(copy))
        self._removal.detach()
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)


def _named_apart(frame: DataFrame, prefix: str) -> DataFrame:
    """Rename blank nodes, so that none is shared with another file or a stream (S3)."""
    columns = {}
    for name in (rows.SUBJECT, rows.OBJECT, rows.GRAPH):
        columns[name] = spelling.with_labels(F.col(name), F.lit(prefix))
    return rows.select_quads(frame.withColumns(columns))


def _spelled(quad: Quad) -> list[str | None]:
    terms: list[Term | None] = [quad.subject, quad.predicate, quad.object, quad.graph]
    return [None if term is None else str(term) for term in terms]


def in_graph(given: Iterable[StaticInput | Iterable[Quad]], graph: str | None) -> list[StaticInput]:
    """Return static data, one by one, in a named graph, if there is one.

    Raises:
        UsageError: it is no static data.
    """
    flat: list[StaticInput] = []
    for each in given:
        if isinstance(each, list | tuple | set | frozenset):
            flat.extend(each)
        else:
            flat.append(cast("StaticInput", each))
    read = StaticData.of(flat)
    if graph is None:
        return flat
    name = IRI(graph)
    return [
        *(replace(each, graph=name) for each in read.files),
        *(replace(each, graph=name) for each in read.quads),
        *(each.withColumn(rows.GRAPH, F.lit(str(name))) for each in read.frames),
    ]
