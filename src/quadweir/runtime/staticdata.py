"""Static data for a query: read once, its sub-patterns solved once, their relations kept as files.

Small data is read and solved in this process. Large data is read by Spark, cut down to what the
query's patterns can match, and joined by Spark where the sub-pattern is made of triple patterns
only; what else there is in it is solved in this process over what was left. The relations are Arrow
files, which Spark sends to the machines of a cluster. On each machine what shards make of them, terms,
rows and indexes, becomes one more file, which all shards there map into memory (`kernel/layout.py`).
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from quadweir import rows, spelling
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import static_dataset
from quadweir.algebra.patterns import (
    BasicPattern,
    Graph,
    Join,
    PathPattern,
    Pattern,
    TriplePattern,
    Values,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.render import render
from quadweir.algebra.traverse import walk
from quadweir.entailment.close import StaticClosure
from quadweir.errors import DataError, PlanError, SourceError
from quadweir.kernel.build import relation_of
from quadweir.kernel.layout import NO_LAYOUT, VERSION, Arrays, map_layout, write_layout
from quadweir.kernel.shard import Shard
from quadweir.kernel.staticrelations import FixedRelation, Loaded, ShardShare, combined
from quadweir.plan.facts import NOTHING_KNOWN, StaticFacts
from quadweir.plan.nodes import StaticRelation
from quadweir.plan.program import Program, program_of
from quadweir.plan.pushdown import MOST_VALUES
from quadweir.plan.render import digest_of
from quadweir.runtime.match.entail import closed
from quadweir.sources.staticfiles import StaticFile, apart_from_streams, list_static, read_static
from quadweir.terms import IRI, BlankNode, Quad, Term, Variable, parse_term

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LARGE_BYTES: Final = 16 << 20
"""From so many bytes of files on Spark reads them."""
_QUADS: Final = "quads.parquet"
_TRIPLE: Final = rows.TERMS[:3]


@final
@dataclass(frozen=True)
class Stored:
    """The static relations of one query, as files that every worker can read.

    What shards make of them is a file too, made by the first worker of a machine that wants it.

    Attributes:
        folder: where the files are on the driver's machine.
        laid_out: whether shards are to have that file.
    """

    folder: str
    laid_out: bool = True

    def relation(self, query: ContinuousQuery, variables: tuple[Variable, ...]) -> FixedRelation:
        file = self._file(_name(query, variables))
        return FixedRelation.read(file, variables)

    def dataset(self) -> Dataset:
        table = pq.read_table(self._file(_QUADS))
        return Dataset.of(_quads(table))

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
                detail=f"They map it from {file}.",
                hint="Make room there, or set TMPDIR to a folder on another disk.",
            ) from error

    def _lay_out(self, file: Path, program: Program, share: ShardShare | None) -> None:
        with file.with_suffix(".lock").open("w") as lock:
            # Others that want it wait for it here.
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
        # On another machine of a cluster Spark has put it elsewhere.
        from pyspark import SparkFiles

        return Path(SparkFiles.get(f"{own.name}-{name}"))


@final
@dataclass(frozen=True)
class StaticData:
    """Files and quads that queries join with; nothing is read before a query wants it."""

    files: tuple[StaticFile, ...] = ()
    quads: tuple[Quad, ...] = ()
    large_bytes: int = LARGE_BYTES

    def prepare(
        self,
        spark: SparkSession,
        query: ContinuousQuery,
        streams: tuple[str, ...],
        *,
        follows: StaticClosure | None = None,
    ) -> Prepared:
        """Read what there is now, and solve what an optimised query asks of it.

        Args:
            spark: the session.
            query: the query, optimised.
            streams: the streams there are.
            follows: gives quads and what a schema derives from them; where properties are
                transitive, data is read here, however large it is.

        Raises:
            SourceError: a file is not there, or there is no room for what is found.
            DataError: a file is not what its name says; a query over half of its static data
                would give wrong answers.
            PlanError: FROM names a graph that is not there.
        """
        try:
            return self._prepare(spark, query, streams, follows)
        except OSError as error:
            # A query that runs and reads its data anew goes on without it.
            raise SourceError(
                f"static data cannot be read, or made ready: {error}",
                hint="Check the files, and whether there is room where TMPDIR points.",
            ) from error

    def _prepare(
        self,
        spark: SparkSession,
        query: ContinuousQuery,
        streams: tuple[str, ...],
        follows: StaticClosure | None,
    ) -> Prepared:
        program = program_of(query, streams=streams)
        asked = [each for each in program.static if not isinstance(each.query.pattern, Values)]
        is_whole = program.why_not is not None
        listed = [(each, list_static(each.path)) for each in self.files]
        size = sum(file.stat().st_size for _, files in listed for file in files)
        folder = Path(tempfile.mkdtemp(prefix="quadweir-static-"))
        prepared = Prepared(folder)
        source: Loaded | _InSpark
        if size < self.large_bytes or (follows is not None and follows.transitive):
            quads: Iterable[Quad] = apart_from_streams([*read_static(self.files), *self.quads])
            quads = follows.of(quads) if follows is not None else quads
            source = Loaded(static_dataset(query, Dataset.of(quads)))
        else:
            frame = self._frame(spark, listed)
            frame = closed(frame, follows.table) if follows is not None else frame
            patterns = None if is_whole else _matched(each.query.pattern for each in asked)
            source = _InSpark(spark, query, patterns, frame, folder)
        digests, counts = [], {}
        for each in asked:
            relation = source.relation(each.query, each.variables)
            relation.write(folder / _name(each.query, each.variables))
            digests.append(relation.digest)
            counts[each.query] = relation.count
            if not relation.count:
                prepared.unmatched.append(each.query.pattern)
        if is_whole:
            digests.append(_write_quads(source.dataset(), folder / _QUADS))
        if not str(spark.sparkContext.master).startswith("local"):
            prepared.send(spark)
        prepared.digest = combined(digests).hex()
        prepared.facts = StaticFacts(counts)
        return prepared

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return not self.files and not self.quads

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
        if self.quads:
            own = [tuple(_spelled(quad)) for quad in apart_from_streams(self.quads)]
            frames.append(spark.createDataFrame(own, rows.QUAD_SCHEMA))
        return reduce(lambda one, other: one.unionByName(other), frames)


class Prepared:
    """The relations of a query in a folder that goes when nobody needs it any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.digest = ""
        self.facts = NOTHING_KNOWN
        """What a planner may know of the data."""
        self.unmatched: list[Pattern] = []
        """Patterns that no static data matches."""
        self._removal = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @property
    def source(self) -> Stored:
        """What shards read them with."""
        return Stored(str(self.folder), bool(self.facts.counts))

    def values_of(self, relation: StaticRelation, variable: Variable) -> tuple[str, ...] | None:
        """Give the values of a variable in a static relation, in order; None if they are many."""
        found = relation_of(relation, self.source)
        codes = np.unique(found.codes[found.variables.index(variable)])
        if len(codes) > MOST_VALUES:
            return None
        return tuple(found.terms.take(pa.array(codes[codes >= 0])).to_pylist())

    def send(self, spark: SparkSession) -> None:
        """Have Spark copy the files to every machine of a cluster.

        They stay until this process ends: Spark wants every file that it was ever given for every
        task, and fails those that cannot have it.
        """
        for file in [each for each in self.folder.iterdir() if each.is_file()]:
            # Spark knows files by their names alone.
            copy = self.folder / f"{self.folder.name}-{file.name}"
            copy.hardlink_to(file)
            spark.sparkContext.addFile(str(copy))
        self._removal.detach()
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)


class _InSpark:
    """Static data that Spark reads: what the query can match of it, in a Parquet file."""

    def __init__(
        self,
        spark: SparkSession,
        query: ContinuousQuery,
        patterns: list[TriplePattern] | None,
        frame: DataFrame,
        folder: Path,
    ) -> None:
        self._query = query
        self._folder = folder
        self._check_graphs(frame)
        if patterns is not None:
            frame = frame.where(_any_of(patterns))
        scratch = folder / "matched"
        frame.dropDuplicates().write.parquet(str(scratch))
        self._frame = spark.read.schema(rows.QUAD_SCHEMA).parquet(str(scratch))
        self._is_restricted = bool(
            query.default_graphs or query.named_graphs or query.default_graph_windows
        )
        self._loaded: Dataset | None = None

    def relation(self, query: ContinuousQuery, variables: tuple[Variable, ...]) -> FixedRelation:
        found = self._lower(query.pattern, None)
        if found is None:
            return Loaded(self.dataset()).relation(query, variables)
        if not variables:
            return FixedRelation.of(variables, [], found.count())
        scratch = self._folder / "solutions"
        found.select(*map(_column, variables)).write.parquet(str(scratch))
        table = pq.read_table(scratch)
        shutil.rmtree(scratch)
        columns = [table.column(_column(variable)) for variable in variables]
        return FixedRelation.of(variables, columns, table.num_rows)

    def dataset(self) -> Dataset:
        if self._loaded is None:
            table = pq.read_table(self._folder / "matched")
            # Which of them are there was checked.
            names = (*self._query.default_graphs, *self._query.named_graphs)
            data = Dataset.of(_quads(table), named=names)
            self._loaded = static_dataset(self._query, data)
        return self._loaded

    def _check_graphs(self, whole: DataFrame) -> None:
        names = {str(name) for name in (*self._query.default_graphs, *self._query.named_graphs)}
        if not names:
            return
        there = whole.where(F.col(rows.GRAPH).isin(*names)).select(rows.GRAPH).distinct()
        missing = names - {row[0] for row in there.collect()}
        if missing:
            raise PlanError(
                f"there is no graph {min(missing)}",
                hint="Load it as a static graph of this name before the query runs.",
            )

    # --- patterns as joins ---

    def _lower(self, pattern: Pattern, graph: IRI | Variable | None) -> DataFrame | None:
        """Give the solutions as a frame with a column for each variable; None if Spark cannot."""
        match pattern:
            case BasicPattern(patterns=patterns) if patterns:
                parts = [each for each in patterns if isinstance(each, TriplePattern)]
                if len(parts) < len(patterns):
                    return None
                return reduce(_joined, [self._triple(each, graph) for each in parts])
            case Join(inputs=inputs):
                found = [self._lower(each, graph) for each in inputs]
                known = [each for each in found if each is not None]
                return reduce(_joined, known) if len(known) == len(found) else None
            case Graph(graph=IRI() | Variable() as name, input=source):
                return self._lower(source, name)
            case _:
                return None

    def _triple(self, pattern: TriplePattern, graph: IRI | Variable | None) -> DataFrame:
        frame = self._graph(graph)
        terms: list[tuple[object, str]] = list(
            zip((pattern.subject, pattern.predicate, pattern.object), _TRIPLE, strict=True)
        )
        if isinstance(graph, Variable):
            terms.append((graph, rows.GRAPH))
        first: dict[Variable, str] = {}
        for term, name in terms:
            if not isinstance(term, Variable):
                frame = frame.where(F.col(name) == str(term))
            elif term in first:
                frame = frame.where(F.col(name) == F.col(first[term]))
            else:
                first[term] = name
        columns = [F.col(name).alias(_column(variable)) for variable, name in first.items()]
        # Without variables a row still counts.
        return frame.select(*columns or [F.lit(0).alias("_")])

    def _graph(self, graph: IRI | Variable | None) -> DataFrame:
        name, query = F.col(rows.GRAPH), self._query
        if graph is None:
            if not self._is_restricted:
                return self._frame.where(name.isNull())
            names = [str(each) for each in query.default_graphs]
            return self._frame.where(name.isin(*names)).select(*_TRIPLE).distinct()
        visible = self._frame.where(name.isNotNull())
        if self._is_restricted:
            visible = visible.where(name.isin(*[str(each) for each in query.named_graphs]))
        return visible if isinstance(graph, Variable) else visible.where(name == str(graph))


def _joined(left: DataFrame, right: DataFrame) -> DataFrame:
    shared = [name for name in left.columns if name in right.columns and name != "_"]
    left, right = left.drop("_"), right.drop("_")
    return left.join(right, shared) if shared else left.crossJoin(right)


def _column(variable: Variable) -> str:
    """Name the column of a variable; Spark takes ?x and ?X for the same."""
    return f"v{variable.name.encode().hex()}"


def _matched(patterns: Iterable[Pattern]) -> list[TriplePattern] | None:
    """List the triple patterns that can match anything; None if all data may matter."""
    found = []
    for pattern in patterns:
        for node in walk(pattern):
            if isinstance(node, TriplePattern):
                found.append(node)
            elif isinstance(node, PathPattern) or (
                # The names of all graphs are its solutions.
                isinstance(node, Graph)
                and not any(isinstance(n, TriplePattern) for n in walk(node))
            ):
                return None
    return found


def _any_of(patterns: list[TriplePattern]) -> Column:
    found = F.lit(False)
    for pattern in patterns:
        each = F.lit(True)
        for term, name in zip(
            (pattern.subject, pattern.predicate, pattern.object), _TRIPLE, strict=True
        ):
            if not isinstance(term, Variable):
                each = each & (F.col(name) == str(term))
        found = found | each
    return found


def _named_apart(frame: DataFrame, prefix: str) -> DataFrame:
    """Name blank nodes so that they are no other file's and no stream's (S3)."""
    columns = {}
    for name in (rows.SUBJECT, rows.OBJECT, rows.GRAPH):
        columns[name] = spelling.with_labels(F.col(name), F.lit(prefix))
    return rows.select_quads(frame.withColumns(columns))


def _name(query: ContinuousQuery, variables: tuple[Variable, ...]) -> str:
    text = f"{render(query)}\n{' '.join(map(str, variables))}"
    return f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.arrow"


def _spelled(quad: Quad) -> list[str | None]:
    terms: list[Term | None] = [quad.subject, quad.predicate, quad.object, quad.graph]
    return [None if term is None else str(term) for term in terms]


def _quads(table: pa.Table) -> Iterable[Quad]:
    for batch in table.select(rows.TERMS).to_batches():
        for subject, predicate, end, graph in zip(*batch.to_pydict().values(), strict=True):
            terms = parse_term(subject), parse_term(predicate)
            name = parse_term(graph) if graph is not None else None
            assert isinstance(terms[0], IRI | BlankNode)
            assert isinstance(terms[1], IRI)
            assert name is None or isinstance(name, IRI | BlankNode)
            yield Quad(terms[0], terms[1], parse_term(end), name)


def _write_quads(data: Dataset, path: Path) -> bytes:
    """Write all that a query may see; gives its digest."""
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
