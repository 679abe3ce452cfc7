"""Large static data: Spark reads it, keeps what the query can match, and joins triple patterns.

Patterns that are more than triple patterns are solved in this process, over what Spark kept.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyarrow.parquet as pq
from pyspark.sql import functions as F

from quadweir import rows
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import static_dataset
from quadweir.algebra.patterns import (
    BasicPattern,
    Graph,
    Join,
    PathPattern,
    Pattern,
    TriplePattern,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.traverse import walk
from quadweir.errors import PlanError
from quadweir.kernel.staticrelations import FixedRelation, Loaded
from quadweir.runtime.static.files import read_quads
from quadweir.terms import IRI, Variable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_TRIPLE: Final = rows.TERMS[:3]


@final
class SparkJoined:
    """Solves patterns over static data that Spark reads.

    Args:
        spark: the session.
        query: the query, which says which graphs it sees.
        patterns: the triple patterns that can match anything (`matchable`); None if all data may
            matter.
        frame: the quads.
        folder: where the quads that can match are written, as Parquet.
    """

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
            # `_check_graphs` has checked that these graphs exist.
            names = (*self._query.default_graphs, *self._query.named_graphs)
            data = Dataset.of(read_quads(table), named=names)
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
        """Return the solutions, with a column for each variable; None if Spark cannot solve it."""
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
        # A row counts as a solution even if there are no variables.
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
    """Return the name of a variable's column; to Spark, `x` and `X` are the same name."""
    return f"v{variable.name.encode().hex()}"


def matchable(patterns: Iterable[Pattern]) -> list[TriplePattern] | None:
    """Return the triple patterns that can match anything; None if all data may matter."""
    found = []
    for pattern in patterns:
        for node in walk(pattern):
            if isinstance(node, TriplePattern):
                found.append(node)
            elif isinstance(node, PathPattern) or (
                # Its solutions are the names of all graphs.
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
