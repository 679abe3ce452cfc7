"""Other ways to answer the same questions: the interface of a peer, and the peers we ship.

A peer gets a question and its static data, then batches of elements in the order of time. It
returns its answers when it has all of them. `docs/reference/bench-lsbench.md` explains how to add
one, for example an engine on the JVM (`peer_process.py`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.windows import TimeScope
from quadweir.bench.live import drain
from quadweir.bench.lsbench.parameters import STREAM_IRI
from quadweir.bench.tables import as_quads, statement_rows, write_static
from quadweir.bench.workloads import STATIC_GRAPH, Question
from quadweir.errors import UnsupportedError
from quadweir.sources.staticfiles import StaticFile
from quadweir.syntax.read import parse
from quadweir.terms import IRI
from quadweir.testing import Answer
from quadweir.testing.elements import from_oxigraph
from quadweir.testing.frames import answers_from_rows
from quadweir.testing.oxigraph_terms import to_oxigraph_quad

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Peer(ABC):
    """Something that answers continuous queries.

    Attributes:
        name: what the report calls it.
        dialect: the dialect of the questions that it wants.
        times: the size of the large input divided by that of the small one; the large one takes
        some seconds more.
    """

    name: str
    dialect: str = "cqels"
    times: int = 2

    @abstractmethod
    def start(self, question: Question, static: pa.Table | None) -> None:
        """Take a question and its static triples.

        Raises:
            UnsupportedError: it cannot answer this question.
        """

    @abstractmethod
    def feed(self, batch: Mapping[str, pa.Table]) -> None:
        """Take the next elements of the streams, by their IRIs; time never goes back."""

    @abstractmethod
    def collect(self) -> list[Answer]:
        """End the streams, and return all answers."""

    def drain(self) -> None:
        """End the streams, wait for the last answer, and drop all answers."""
        self.collect()

    def stop(self) -> None:  # noqa: B027 - most have nothing to give back
        """Release all resources; also called after an error."""


# --- re-evaluation ----------------------------------------------------------------------------

_REGISTER: Final = re.compile(r"^\s*(REGISTER\s.*|FROM\s.*)$", re.MULTILINE)


@final
class Reevaluation(Peer):
    """Answers as C-SPARQL does: at every close, pyoxigraph evaluates the whole query over the
    windows' content.

    The store is kept from close to close: elements enter as they arrive and are removed as they
    leave. Only the evaluation starts again.
    """

    name = "re-evaluation with pyoxigraph"
    dialect = "csparql"

    def start(self, question: Question, static: pa.Table | None) -> None:
        query = parse(question.text, dialect="csparql", allow=("FROM",))
        self._ranges, self._step = _windows(query)
        self._sparql = _REGISTER.sub("", question.text)
        self._store = ox.Store()
        self._static: set[ox.Quad] = set()
        if static is not None and STATIC_GRAPH in question.text:
            quads = [to_oxigraph_quad(quad, None) for quad in as_quads(static)]
            self._store.bulk_extend(quads)
            self._static = set(quads)
        self._inside: dict[str, deque[tuple[int, ox.Quad]]] = {iri: deque() for iri in self._ranges}
        self._counts: dict[ox.Quad, int] = {}
        self._waiting: dict[str, deque[tuple[int, ox.Quad]]] = {
            iri: deque() for iri in self._ranges
        }
        self._close: int | None = None
        self._answers: list[Answer] = []

    def feed(self, batch: Mapping[str, pa.Table]) -> None:
        latest = None
        for iri, table in batch.items():
            times = table.column("time").to_pylist()
            quads = [to_oxigraph_quad(quad, None) for quad in as_quads(table)]
            self._waiting[iri].extend(zip(times, quads, strict=True))
            if times:
                latest = max(times[-1], latest if latest is not None else times[-1])
                if self._close is None:
                    # The first close after the first element.
                    self._close = -(-times[0] // self._step) * self._step
        while latest is not None and self._close is not None and self._close < latest:
            self._report()

    def collect(self) -> list[Answer]:
        # Until all windows are empty; a close with empty windows is not reported.
        while any(self._waiting.values()) or any(self._inside.values()):
            self._report()
        return self._answers

    def _report(self) -> None:
        close = self._close
        assert close is not None
        for iri, length in self._ranges.items():
            waiting, inside = self._waiting[iri], self._inside[iri]
            while waiting and waiting[0][0] <= close:
                time, quad = waiting.popleft()
                inside.append((time, quad))
                self._enter(quad)
            while inside and inside[0][0] <= close - length:
                self._leave(inside.popleft()[1])
        if any(self._inside.values()):
            found: Any = self._store.query(self._sparql)
            names = [variable.value for variable in found.variables]
            for solution in found:
                bound = {name: solution[name] for name in names if solution[name] is not None}
                terms = {name: from_oxigraph(term) for name, term in bound.items()}
                self._answers.append(Answer.of(close, "+", terms))
            self._close = close + self._step
        else:
            ahead = [each[0][0] for each in self._waiting.values() if each]
            after = min(ahead, default=close + self._step)
            self._close = max(close + self._step, -(-after // self._step) * self._step)

    def _enter(self, quad: ox.Quad) -> None:
        self._counts[quad] = self._counts.get(quad, 0) + 1
        self._store.add(quad)

    def _leave(self, quad: ox.Quad) -> None:
        left = self._counts[quad] - 1
        if left:
            self._counts[quad] = left
            return
        del self._counts[quad]
        if quad not in self._static:
            self._store.remove(quad)


def _windows(query: ContinuousQuery) -> tuple[dict[str, int], int]:
    """The ranges of the windows by stream, and their common step, in milliseconds."""
    ranges: dict[str, int] = {}
    steps = set()
    for window in query.windows:
        scope = window.scope
        stream = window.stream
        if not isinstance(scope, TimeScope) or scope.step_ms is None or not isinstance(stream, IRI):
            raise UnsupportedError("re-evaluation needs time windows with a step")
        ranges[stream.value] = scope.range_ms
        steps.add(scope.step_ms)
    if len(steps) != 1:
        raise UnsupportedError("re-evaluation needs windows that close together")
    return ranges, steps.pop()


# --- on Spark ---------------------------------------------------------------------------------


class _OnSpark(Peer):
    """Keeps its input as Parquet files, and answers over all of them at the end."""

    times = 40

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._folder: TemporaryDirectory[str] | None = None

    def start(self, question: Question, static: pa.Table | None) -> None:
        self.question = question
        self._folder = TemporaryDirectory(prefix="quadweir-bench-")
        self.path = Path(self._folder.name)
        self.static: Path | None = None
        if static is not None:
            self.static = write_static(static, self.path / "static.nt")
        self._fed = 0

    def feed(self, batch: Mapping[str, pa.Table]) -> None:
        for number, iri in enumerate(self.question.streams):
            folder = self.path / f"stream-{number}"
            folder.mkdir(exist_ok=True)
            pq.write_table(statement_rows(iri, batch[iri]), folder / f"{self._fed:05}.parquet")
        self._fed += 1

    def statements(self, iri: str) -> DataFrame:
        """The input of a stream so far."""
        from quadweir import rows

        folder = self.path / f"stream-{self.question.streams.index(iri)}"
        return self._spark.read.schema(rows.STATEMENT_SCHEMA).parquet(str(folder))

    def collect(self) -> list[Answer]:
        return answers_from_rows(self.answers().collect())

    def drain(self) -> None:
        drain(self.answers())

    @abstractmethod
    def answers(self) -> DataFrame:
        """Report instants, signs and bindings."""

    def stop(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()


@final
class Quadweir(_OnSpark):
    """Quadweir, over streams that are complete."""

    name = "Quadweir"

    def answers(self) -> DataFrame:
        from quadweir.engine import Engine

        # The query holds its static data for as long as the engine holds the query.
        self._engine = engine = Engine(self._spark)
        for iri in self.question.streams:
            engine.provide(iri, self.statements(iri), canonical=True)
        static: list[StaticFile] = []
        if self.static is not None:
            graph = IRI(STATIC_GRAPH) if STATIC_GRAPH in self.question.text else None
            static = [StaticFile(self.static, graph)]
        return engine.query(self.question.text, static=static).spelled_answers()


@final
class SparkSql(_OnSpark):
    """Queries of LSBench written by hand in Spark SQL, for exactly these streams."""

    name = "Spark SQL by hand"

    def start(self, question: Question, static: pa.Table | None) -> None:
        if question.name not in _BY_HAND:
            raise UnsupportedError(f"nobody wrote {question.name} in Spark SQL")
        super().start(question, static)

    def answers(self) -> DataFrame:
        from pyspark.sql import functions as F

        from quadweir import rows

        frames = {
            iri.removeprefix(STREAM_IRI): self.statements(iri) for iri in self.question.streams
        }
        if self.static is not None:
            cut = F.split(F.rtrim(F.col("value")), " ", 3)
            lines = self._spark.read.text(str(self.static)).select(cut.alias("cut"))
            frames["static"] = lines.select(
                F.col("cut")[0].alias("subject"),
                F.col("cut")[1].alias("predicate"),
                F.regexp_replace(F.col("cut")[2], r" \.$", "").alias("object"),
            )
        found = _BY_HAND[self.question.name](frames)
        names = [name for name in found.columns if name != rows.REPORT]
        return found.select(
            rows.REPORT, F.lit("+").alias(rows.SIGN), F.struct(*names).alias(rows.BINDINGS)
        )


_SIB: Final = "http://www.ins.cwi.nl/sib/"
_ME: Final = f"<{_SIB}user/u984>"
_PERSON: Final = f"<{_SIB}person/p984>"
_SIOC: Final = "http://rdfs.org/sioc/ns#"
_KNOWS: Final = "<http://xmlns.com/foaf/0.1/knows>"
_LIKE: Final = f"<{_SIB}vocabulary/like>"


def _pairs(
    frame: DataFrame, predicate: str, subject: str, end: str, time: str | None = None
) -> DataFrame:
    """The subjects and objects of a predicate, under other names, with their times if wanted."""
    from pyspark.sql import functions as F

    columns = [F.col("subject").alias(subject), F.col("object").alias(end)]
    if time is not None:
        columns.append(F.col("event_time").alias(time))
    return frame.where(F.col("predicate") == predicate).select(*columns)


def _q1(frames: Mapping[str, DataFrame]) -> DataFrame:
    from pyspark.sql import functions as F

    posts = frames["posts"]
    mine = posts.where((F.col("subject") == _ME) | (F.col("object") == _ME))
    return mine.select(F.col("event_time").alias("t"), "subject", "predicate", "object")


def _q2(frames: Mapping[str, DataFrame]) -> DataFrame:
    accounts = _pairs(frames["static"], f"<{_SIOC}account_of>", "user", "person")
    posts = _pairs(frames["posts"], f"<{_SIOC}creator_of>", "user", "post", "t")
    mine = accounts.where(accounts["person"] == _PERSON).select("user")
    return posts.join(mine, "user").select("t", "user", "post")


def _q3(frames: Mapping[str, DataFrame]) -> DataFrame:
    accounts = _pairs(frames["static"], f"<{_SIOC}account_of>", "user", "person")
    knows = _pairs(frames["static"], _KNOWS, "user", "friend")
    friends = knows.join(accounts.where(accounts["person"] == _PERSON), "user").select("friend")
    posts = _pairs(frames["posts"], f"<{_SIOC}creator_of>", "friend", "post", "t")
    return posts.join(friends, "friend").select("t", "friend", "post")


def _lately_liked(likes: DataFrame, items: DataFrame, item: str) -> DataFrame:
    """Likes of the last 100 ms on items of the last minute, at the instant when both are
    present.
    """
    from pyspark.sql import functions as F

    both = likes.join(items, item).withColumn("t", F.greatest("liked", "made"))
    return both.where((F.col("t") - F.col("liked") < 100) & (F.col("t") - F.col("made") < 60_000))


def _q5(frames: Mapping[str, DataFrame]) -> DataFrame:
    likes = _pairs(frames["photo-likes"], _LIKE, "friend", "photo", "liked")
    tagged = _pairs(frames["photos"], f"<{_SIB}vocabulary/usertag>", "photo", "tagged", "made")
    knows = _pairs(frames["static"], _KNOWS, "tagged", "friend")
    found = _lately_liked(likes, tagged, "photo").join(knows, ["tagged", "friend"])
    return found.select("t", "tagged", "friend", "photo")


def _q6(frames: Mapping[str, DataFrame]) -> DataFrame:
    likes = _pairs(frames["post-likes"], _LIKE, "friend", "post", "liked")
    posts = _pairs(frames["posts"], f"<{_SIOC}container_of>", "channel", "post", "made")
    knows = _pairs(frames["static"], _KNOWS, "user", "friend")
    follows = _pairs(frames["static"], f"<{_SIOC}subscriber_of>", "user", "channel")
    # The followers of friends' channels are the same for every like, so they are joined once.
    reach = knows.join(follows, "user")
    found = _lately_liked(likes, posts, "post").join(reach, ["friend", "channel"])
    return found.select("t", "user", "friend", "post", "channel")


_BY_HAND: Final[dict[str, Callable[[Mapping[str, DataFrame]], DataFrame]]] = {
    "Q1": _q1,
    "Q2": _q2,
    "Q3": _q3,
    "Q5": _q5,
    "Q6": _q6,
}
