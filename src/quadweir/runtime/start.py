"""Starts a planned query over streams that go on."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, final

from quadweir.algebra.query import ConstructForm
from quadweir.errors import UsageError
from quadweir.private import make_folder
from quadweir.runtime.answercolumns import AnswerColumns
from quadweir.runtime.answers import as_statements, present
from quadweir.runtime.checkpoint import Fingerprint
from quadweir.runtime.host.base import AnswerOutput, Host, Run, Trigger
from quadweir.runtime.host.choice import choose_host
from quadweir.runtime.match.feeds import open_feeds
from quadweir.runtime.match.recording import Recorder
from quadweir.runtime.match.rowtimes import event_times
from quadweir.runtime.planned import Planned, PlannedQuery
from quadweir.runtime.portable.upgrading import upgrade
from quadweir.runtime.silence import SilenceWatch, warn
from quadweir.runtime.wire.deadletters import dead_letters as letters_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.sinks.base import Sink


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """The arguments of `RegisteredQuery.start`."""

    sink: Sink
    checkpoint: Path
    every: timedelta | None = None
    available_now: bool = False
    statements: str | None = None
    name_elements: bool = True
    name: str | None = None
    record: Path | None = None
    dead_letters: Sink | None = None
    reload_static: bool = False
    upgrade: bool = False
    allow_loss: bool = False
    shards_in: str | None = None
    columns: AnswerColumns | None = None
    """The columns that answers have in the sink; without them they are as spelled."""


@final
@dataclass(frozen=True, slots=True)
class Started:
    """A run of a query.

    Attributes:
        run: the run.
        host: where its shards are.
        options: how it was started.
        digest: the fingerprint with which it runs.
        over: the plan that runs, of this query and of those that it reads from. Another query over
            the same answers may reload the data of such a query, whose plan is then not the one that
            runs here.
        watch: notices that it sees much and answers nothing.
    """

    run: Run
    host: Host
    options: StartOptions
    digest: str
    over: Mapping[PlannedQuery, Planned]
    watch: SilenceWatch

    @staticmethod
    def of(query: PlannedQuery, options: StartOptions) -> Started:
        """Start a run over a checkpoint that this process has claimed."""
        checkpoint = options.checkpoint
        if options.upgrade:
            _upgrade(query, options)
        left = Fingerprint.left_in(checkpoint)
        host = choose_host(query.spark, options.shards_in, left)
        query.settle(left)
        # A recording is of everything.
        asked = query.asked if options.record is None else None
        opened = open_feeds(event_times(query.plan), query.feeds, checkpoint / "spool", asked)
        if opened is None or not opened.is_streaming:
            raise UsageError(
                "the streams of the query are bounded: it has an end, and nothing to start",
                hint="Take to_dataframe(), or watch a folder (watch = true), or replay the files.",
            )
        fingerprint = query.fingerprint(host.name, host.partitions(query.spark))
        fingerprint.guard(checkpoint, reload_static=options.reload_static)
        query.stored_plan.write(checkpoint)
        has_letters = options.dead_letters is not None
        counted = opened.counted()
        statements = counted.frame if has_letters else counted.statements
        if options.record is not None:
            statements = _recorded(statements, options.record)
        spec = replace(query.spec, timing=opened.timing, letters=has_letters)
        watch = SilenceWatch(query.plan, query.shards)
        run = host.start(
            [replace(spec.job(statements, shards=query.shards), control=watch)],
            _outputs(query, options),
            checkpoint=checkpoint,
            trigger=Trigger(options.every, options.available_now, options.name),
        )
        over = {each: each.now for each in query.with_feeding()}
        return Started(run, host, options, fingerprint.digest, over, watch)


def _upgrade(query: PlannedQuery, options: StartOptions) -> None:
    if Fingerprint.left_in(options.checkpoint) is None:
        return
    old = upgrade(options.checkpoint, query, allow_loss=options.allow_loss, warn=warn)
    if old is not None:
        note = f"quadweir: the checkpoint is now one of this query; what it was before is in {old}"
        print(note, file=sys.stderr, flush=True)


def _outputs(query: PlannedQuery, options: StartOptions) -> list[AnswerOutput]:
    plan, form = query.plan, query.spec.answer_form

    def answers(raws: Sequence[DataFrame]) -> DataFrame:
        found = present(raws[0], plan.query, form)
        if options.columns is not None:
            return options.columns.select(found)
        if options.statements is None:
            return found
        return as_statements(found, options.statements, named=options.name_elements)

    names = tuple(each.name for each in form.variables)
    is_solutions = not isinstance(plan.query.form, ConstructForm) and options.columns is None
    found = [AnswerOutput(options.sink, answers, variables=names if is_solutions else None)]
    if options.dead_letters is not None:
        found.append(
            AnswerOutput(options.dead_letters, lambda raws: letters_of(raws[0]), letters=True)
        )
    return found


def _recorded(statements: DataFrame, folder: Path) -> DataFrame:
    make_folder(folder)
    recorder = Recorder(str(folder.absolute()))
    return statements.mapInArrow(recorder, statements.schema)
