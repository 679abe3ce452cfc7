"""The answers of a query as frames, and what a bounded run read."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation

from quadweir import rows
from quadweir.algebra.query import ConstructForm
from quadweir.errors import UsageError
from quadweir.paths import PathLike, as_path
from quadweir.runtime.answercolumns import AnswerColumns, ColumnType
from quadweir.runtime.answers import as_statements, present, with_times
from quadweir.runtime.host.bounded import answer_bounded
from quadweir.runtime.host.executors import Executors
from quadweir.runtime.match.counts import bounded_counts
from quadweir.runtime.match.feeds import Feed, Opened, open_feeds
from quadweir.runtime.match.rowtimes import event_times
from quadweir.runtime.match.sentences import unmatched_in_static
from quadweir.runtime.match.unmatched import unmatched_in_streams
from quadweir.runtime.planned import PlannedQuery
from quadweir.runtime.preview import first_answers

if TYPE_CHECKING:
    from pandas import DataFrame as Table
    from pyspark.sql import DataFrame

ANSWERS: Final = "urn:quadweir:answers"
_TAGS: Final = itertools.count(1)


class AnswerFrames:
    """The answers of a planned query as frames.

    Args:
        planned: the query.

    Attributes:
        query: the query as it was parsed.
        warnings: what in the query is legal but probably not meant, such as unknown functions.
    """

    def __init__(self, planned: PlannedQuery) -> None:
        self._planned = planned
        self.query, self.warnings = planned.query, planned.warnings
        self._observed: tuple[Observation, DataFrame] | None = None

    def to_dataframe(
        self,
        *,
        types: Mapping[str, ColumnType] | None = None,
        terms: bool = False,
        spool: PathLike | None = None,
    ) -> DataFrame:
        """Return the answers: a bounded frame if all streams are bounded, else a streaming frame.

        The columns are `t`, the report instant, a timestamp; `sign`, + or -; and one for each
        variable, NULL where it is not bound. IRIs and literals are strings. If the query says which
        datatype a variable has, as COUNT, AVG, arithmetic and casts do, its column has a type of
        Spark's: integers are bigint, all other numbers double, and `xsd:boolean`, `xsd:dateTime`
        and `xsd:date` are boolean, timestamp and date. A variable with the name of another column
        gets an underscore: `?t` becomes `t_`. The answer of a CONSTRUCT is in one column `graph`, an
        array of quads, whose `graph` is NULL for the default graph.

        Args:
            types: types of Spark's for some variables, such as `{"mean": "decimal(38,18)"}`. What is
                no such value is NULL.
            terms: make each variable a struct of `kind` (iri, literal, bnode or triple), `value`,
                `datatype` and `language`.
            spool: where TCP and MQTT keep what arrived until it is processed; only they need it.

        Raises:
            UsageError: a stream is not declared, or the streams do not go together; or there is no
                such variable or type.
        """
        columns = AnswerColumns.of(self.query, types=types, terms=terms)
        return columns.select(self.spelled_answers(spool=None if spool is None else as_path(spool)))

    def preview(
        self,
        seconds: float = 10,
        *,
        rows: int = 20,
        types: Mapping[str, ColumnType] | None = None,
        terms: bool = False,
    ) -> Table:
        """Return the first answers as a pandas table, to look at.

        A live query runs for this long, with a temporary checkpoint. A run that was started before goes
        on as it is.

        Args:
            seconds: how long to wait for answers of a live query.
            rows: how many answers at most.
            types: types of Spark's for some variables, as in `to_dataframe`.
            terms: all parts of each term, as in `to_dataframe`.
        """
        columns = AnswerColumns.of(self.query, types=types, terms=terms)
        with TemporaryDirectory(prefix="quadweir-spool-") as spool:
            answers = columns.select(self.spelled_answers(spool=Path(spool)))
            return first_answers(self._planned, answers, columns, seconds=seconds, rows=rows)

    def spelled_answers(self, *, spool: Path | None = None) -> DataFrame:
        """Return the answers as they are inside: `t` in milliseconds, and terms as spelled.

        Instead of one column for each variable there is `bindings`, a struct with the canonical
        spelling of each term.
        """
        raw, _ = self._raw(spool)
        return present(raw, self._planned.plan.query, self._planned.spec.answer_form)

    def statements(self, stream: str = ANSWERS, *, spool: Path | None = None) -> DataFrame:
        """Return the triples of a CONSTRUCT's answers as statements of a stream (A5).

        If its streams go on, there are rows without a triple among them. They report through which
        instant everything is known, so that `Engine.provide` can make a stream of them.

        Raises:
            UsageError: the query is not a CONSTRUCT.
        """
        self._check_construct()
        # Each of several queries in one run has metrics of its own.
        raw, is_streaming = self._raw(spool, run=stream, tag=f"_{next(_TAGS)}")
        if is_streaming:
            return with_times(raw, self._planned.plan.query, self._planned.spec.answer_form, stream)
        return as_statements(
            present(raw, self._planned.plan.query, self._planned.spec.answer_form), stream
        )

    def as_feed(self, stream: str) -> Feed:
        """Return the triples of a CONSTRUCT's answers as a stream that another query can read.

        Raises:
            UsageError: the query is not a CONSTRUCT.
        """
        self._check_construct()

        def open_answers(predicate: str | None, spool: Path | None) -> DataFrame:
            if predicate is not None:
                raise UsageError(
                    f"<{stream}> is made by a query, which gives its elements their times",
                    hint=f"Leave out the event time <{predicate}> in the window over it.",
                )
            return self.statements(stream, spool=spool)

        return Feed(stream, open_answers, reports_time=True, made_by=self._planned)

    def dead_letters(self) -> DataFrame:
        """Return the unusable records of bounded streams, as rows of `rows.DEAD_LETTER_SCHEMA`."""
        opened = self._open(None)
        if opened is None:
            return self._planned.spark.createDataFrame([], rows.DEAD_LETTER_SCHEMA)
        return opened.dead_letters

    def input_counts(self) -> dict[str, int | None]:
        """Return how many statements and dead letters the bounded run of `to_dataframe` read.

        `earliest` is the earliest event time of a statement, None if there is none. The call waits
        until some action has computed that frame.
        """
        if self._observed is None:
            return {"statements": 0, "dead_letters": 0, "earliest": None}
        observation, frame = self._observed
        observed: Any = observation
        if observed._jo.getRow().length():
            return dict(observation.get)
        # If nothing matches, Spark drops what it has begun, and what it has observed.
        return frame.agg(*bounded_counts()).collect()[0].asDict()

    def unmatched(self) -> list[str]:
        """List the patterns of a bounded run that matched nothing, and empty streams.

        The streams are read once more for it.
        """
        planned = self._planned
        found = unmatched_in_static(planned.now.prepared.unmatched)
        opened = self._open(None)
        if opened is not None and not opened.is_streaming:
            found += unmatched_in_streams(opened.statements, planned.plan)
        return found

    def _raw(self, spool: Path | None, *, run: str = "", tag: str = "") -> tuple[DataFrame, bool]:
        """Return the output of the shards, and whether it goes on.

        Args:
            spool: where TCP and MQTT keep what arrived until it is processed.
            run: identifies the frame among others of the same query.
            tag: makes the names of its metrics differ from those of others in the same run.
        """
        planned, spec = self._planned, self._planned.spec
        opened = self._open(spool, is_asked=True)
        if opened is None:
            empty = planned.spark.createDataFrame([], rows.STATEMENT_SCHEMA)
            return answer_bounded(empty, spec, shards=1), False
        if not opened.is_streaming:
            # Without a name: queries over the answers of queries have several observations.
            observation = Observation()
            self._observed = observation, opened.frame
            counted = replace(opened, frame=opened.frame.observe(observation, *bounded_counts()))
            return answer_bounded(counted.statements, spec, shards=planned.shards), False
        timed = replace(spec, timing=opened.timing)
        job = timed.job(opened.counted(tag=tag).statements, shards=planned.shards, tag=tag)
        return Executors().frame(job, run=run), True

    def _open(self, spool: Path | None, *, is_asked: bool = False) -> Opened | None:
        """Open the streams; with `is_asked`, only what the query can ask of them."""
        planned = self._planned
        asked = planned.asked if is_asked else None
        return open_feeds(event_times(planned.plan), planned.feeds, spool, asked)

    def _check_construct(self) -> None:
        if not isinstance(self.query.form, ConstructForm):
            raise UsageError(
                "only the answers of a CONSTRUCT are triples", hint="Take to_dataframe()."
            )
