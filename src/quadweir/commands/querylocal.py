"""`quadweir query` in this process, without Spark, for small streams that have an end."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from typing import TYPE_CHECKING

from quadweir.commands.board import Board
from quadweir.commands.queryasked import AskedQuery
from quadweir.commands.queryoracle import agrees, write_answers
from quadweir.commands.querysaid import (
    MOST_NAMED,
    doubt_time,
    opened,
    say_what_is_missing,
    summarise,
)
from quadweir.commands.schemas import schema_of
from quadweir.commands.withoutpandas import leave_pandas_out
from quadweir.errors import DataError, UsageError

if TYPE_CHECKING:
    from quadweir.runtime.local.query import LocalAnswers
    from quadweir.testing import Answer


class EngineChoice(StrEnum):
    """The values of `--engine`: what answers a query over streams that have an end."""

    AUTO = "auto"
    SPARK = "spark"
    LOCAL = "local"


def is_for_local(asked: AskedQuery, choice: EngineChoice) -> bool:
    """Tell whether this process answers a query, rather than Spark.

    Raises:
        UsageError: the options ask for this process, and it cannot answer the query.
    """
    if choice is EngineChoice.SPARK:
        return False
    from quadweir.runtime.local.choice import LOCAL_BYTES, input_bytes, why_not_local
    from quadweir.sources.staticfiles import StaticFile

    streams = asked.streams_read()
    reason = _why_spark(asked) or why_not_local(streams)
    if choice is EngineChoice.LOCAL:
        if reason is not None:
            raise UsageError(
                f"this query needs Spark: {reason}", hint="Leave --engine out, or --engine spark."
            )
        return True
    if reason is not None or os.environ.get("QUADWEIR_MASTER"):
        return False
    static = [StaticFile.of(each) for each in asked.static]
    return input_bytes(streams.values(), static) <= LOCAL_BYTES


def _why_spark(asked: AskedQuery) -> str | None:
    """Say which option only Spark can do."""
    if asked.target.is_kafka:
        return "it writes answers to Kafka"
    if asked.master is not None:
        return "--master names where Spark runs"
    if asked.shards is not None:
        return "--shards divides the state of a query among the tasks of Spark"
    return None


def answer_locally(asked: AskedQuery, *, verify: bool) -> bool:
    """Answer in this process; tells whether the oracle, if asked, agrees."""
    leave_pandas_out()
    from quadweir.runtime.local.query import LocalQuery
    from quadweir.sources.staticfiles import StaticFile

    asked.check_bounded()
    with Board.of_bounded(prints=asked.target.output == "-") as board:
        board.start("answering in this process")
        streams = {iri: each for iri, each in asked.streams_read().items() if each is not None}
        found = LocalQuery(
            asked.query,
            streams,
            static=[StaticFile.of(each) for each in asked.static],
            schema=schema_of(asked.schemas),
            allow_unbounded=asked.allow_unbounded,
        ).run()
        _tell_of_letters(found, asked)
        if asked.why:
            given = sorted(_as_answers(found), key=lambda each: each.t)
            write_answers(asked, given, None)
        else:
            _write(found, asked)
        if not len(found.answers):
            say_what_is_missing(found.unmatched)
        if not verify:
            return True
        board.start("asking the oracle")
        return agrees(asked, _as_answers(found), None)


def _write(found: LocalAnswers, asked: AskedQuery) -> None:
    from quadweir.algebra.query import ConstructForm
    from quadweir.commands.queryoutput import is_ordered, pending_lines
    from quadweir.runtime.local.lines import answer_lines, sorted_lines

    lines = answer_lines(found.query, found.answers, asked.target.line_format)
    if not isinstance(found.query.form, ConstructForm) and not is_ordered(asked.query):
        lines = sorted_lines(lines, found.answers)
    names = [variable.name for variable in found.answers.variables]
    pending_lines(asked.target, lines, names).publish()


def _as_answers(found: LocalAnswers) -> list[Answer]:
    from quadweir.testing.shards import as_answers

    return as_answers(found.answers, found.query)


def _tell_of_letters(found: LocalAnswers, asked: AskedQuery) -> None:
    """Count the bad records, print some of them, and keep all of them if `--dead-letters` is
    given.
    """
    doubt_time(found.earliest)
    letters = found.letters
    if asked.dead_letters is not None:
        with opened(asked.dead_letters) as out:
            for letter in letters:
                out.write(json.dumps(letter, ensure_ascii=False) + "\n")
    if not letters:
        return
    named = [f"{each['source']} {each['place']}: {each['reason']}" for each in letters[:MOST_NAMED]]
    if asked.strict:
        raise DataError(f"{len(letters)} records cannot be used; one of them: {named[0]}")
    summarise("record could not be read", named, len(letters))
