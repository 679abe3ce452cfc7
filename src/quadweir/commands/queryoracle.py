"""`quadweir query` with the oracle: `--oracle`, `--verify` and `--why`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from quadweir.commands.queryasked import AskedQuery
from quadweir.commands.querysaid import doubt_time, opened, say_what_is_missing, summarise
from quadweir.commands.schemas import schema_of
from quadweir.errors import UsageError

if TYPE_CHECKING:
    from quadweir.engine import Engine
    from quadweir.sources.streamfiles import DeadLetter, Element
    from quadweir.testing import Answer, Oracle
    from quadweir.testing.why import Reasons


def oracle_of(asked: AskedQuery, *, tell: bool) -> Oracle:
    """An oracle for which no element is late: it has all elements before time advances."""
    from quadweir.testing.oracle import Oracle
    from quadweir.testing.reasoner import Reasoner

    schema = schema_of(asked.schemas, tell=tell)
    return Oracle(
        asked.query,
        static=asked.quads(),
        max_reports=asked.max_reports,
        entail=Reasoner(schema) if schema is not None else None,
    )


def _with_doubts(feed: Iterable[Element]) -> Iterator[Element]:
    for number, element in enumerate(feed):
        if number == 0:
            doubt_time(element.event_time)
        yield element


@contextmanager
def _reader(asked: AskedQuery) -> Iterator[Engine | None]:
    """Start Spark if some stream needs it, for example one that a mapping makes."""
    from quadweir.commands.queryelements import needs_spark

    if not needs_spark(asked.streams_read()):
        yield None
        return
    from quadweir.runtime.spark.session import build

    spark = build(app_name="quadweir-query", master=asked.master, shards=asked.shards)
    try:
        yield asked.engine(spark)
    finally:
        spark.stop()


def answer_by_oracle(asked: AskedQuery) -> None:
    """Answer by recomputing every report from scratch."""
    from quadweir.commands.unmatched import Unmatched

    if asked.target.form != "jsonl" or asked.target.is_kafka:
        raise UsageError("the oracle writes jsonl to files only", hint="Leave --oracle out.")
    bad: list[DeadLetter] = []
    with _reader(asked) as engine:
        unmatched = Unmatched(asked.query, asked.quads())
        feed = asked.elements(None if asked.strict else bad, engine)
        run = oracle_of(asked, tell=True).run(_with_doubts(unmatched.watching(feed)))
        write_answers(asked, run.answers, engine)
    summarise("record could not be read", [f"{x.source} {x.place}: {x.reason}" for x in bad])
    summarise(
        "element without an event time", [f"{e.stream} {e.position}: {why}" for e, why in run.dead]
    )
    # What follows by a schema is not looked at, so that a pattern may match all the same.
    if not run.answers and not asked.schemas:
        say_what_is_missing(unmatched.said())


def reasons_of(asked: AskedQuery, feed: Iterable[Element]) -> Reasons:
    """What finds the elements and static triples behind answers (`--why`)."""
    from quadweir.testing.why import Reasons

    return Reasons(asked.query, feed, asked.quads(), schema_of(asked.schemas, tell=False))


def write_answers(asked: AskedQuery, answers: Iterable[Answer], engine: Engine | None) -> None:
    """Write answers as lines of JSON, with what is behind them if `--why` is given."""
    reasons = reasons_of(asked, asked.elements([], engine)) if asked.why else None
    with opened(asked.target.output) as out:
        for answer in answers:
            line = answer.to_json()
            if reasons is not None:
                line["why"] = reasons.of(answer)
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


def agrees(asked: AskedQuery, actual: list[Answer], engine: Engine | None) -> bool:
    """Tell whether the oracle gives these answers, and say so."""
    from quadweir.testing import diff_answers

    expected = oracle_of(asked, tell=False).answers(asked.elements([], engine))
    difference = diff_answers(expected, actual)
    if not difference:
        print(f"quadweir: the oracle gives the same {len(expected)} answers", file=sys.stderr)
        return True
    print(f"quadweir: the oracle gives different answers: {difference}", file=sys.stderr)
    return False
