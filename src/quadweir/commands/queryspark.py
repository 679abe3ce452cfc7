"""`quadweir query` on Spark, over streams that have an end."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

from quadweir.commands.board import STARTING, Board
from quadweir.commands.queryasked import AskedQuery
from quadweir.commands.queryoracle import agrees, write_answers
from quadweir.commands.querysaid import (
    MOST_NAMED,
    doubt_time,
    opened,
    say_what_is_missing,
    summarise,
)
from quadweir.commands.schemas import tell_of
from quadweir.errors import DataError

if TYPE_CHECKING:
    from quadweir.runtime.query import RegisteredQuery


def answer_on_spark(asked: AskedQuery, *, verify: bool) -> bool:
    """Answer on Spark; tells whether the oracle, if asked, agrees."""
    from quadweir.commands.queryoutput import write_bounded
    from quadweir.runtime.spark.session import build
    from quadweir.testing.frames import answers_from_rows

    asked.check_bounded()
    with ExitStack() as stack:
        board = stack.enter_context(Board.of_bounded(prints=asked.target.output == "-"))
        board.start(STARTING)
        spark = build(app_name="quadweir-query", master=asked.master, shards=asked.shards)
        stack.callback(spark.stop)
        board.start("answering")
        engine = asked.engine(spark)
        engine.schema(*asked.schema)
        tell_of(engine.schema_warnings)
        registered = engine.query(
            asked.query,
            static=asked.static,
            shards=asked.shards,
            allow_unbounded=asked.allow_unbounded,
        )
        answers = registered.spelled_answers()
        if verify:
            answers = answers.persist()
        if asked.why:
            # Sorted, so that the windows of each report are evaluated once.
            given = sorted(answers_from_rows(answers.toLocalIterator()), key=lambda each: each.t)
            _tell_of_letters(registered, asked)
            write_answers(asked, given, engine)
            is_empty = not given
        else:
            written = write_bounded(asked.target, registered, answers=answers)
            try:
                _tell_of_letters(registered, asked)
                is_empty = written.is_empty
                written.publish()
            finally:
                written.discard()
        if is_empty:
            say_what_is_missing(registered.unmatched())
        if not verify:
            return True
        board.start("asking the oracle")
        return agrees(asked, answers_from_rows(answers.toLocalIterator()), engine)


def _tell_of_letters(registered: RegisteredQuery, asked: AskedQuery) -> None:
    """Count the bad records, print some of them, and keep all of them if `--dead-letters` is
    given.
    """
    counts = registered.input_counts()
    count = counts["dead_letters"] or 0
    doubt_time(counts["earliest"])
    # The streams are read again for this, and only if there are bad records.
    letters = registered.dead_letters() if count else None
    if asked.dead_letters is not None:
        with opened(asked.dead_letters) as out:
            for letter in letters.toLocalIterator() if letters is not None else ():
                out.write(json.dumps(letter.asDict(), ensure_ascii=False) + "\n")
    if letters is None:
        return
    first = letters.take(MOST_NAMED)
    named = [f"{letter['source']} {letter['place']}: {letter['reason']}" for letter in first]
    if asked.strict:
        raise DataError(f"{count} records cannot be used; one of them: {named[0]}")
    summarise("record could not be read", named, count)
