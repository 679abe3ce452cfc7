"""The elements of a query's streams one by one, for the oracle and for `--why`."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from quadweir.errors import DataError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.algebra.query import ContinuousQuery
    from quadweir.engine import Engine
    from quadweir.sources.declare import StreamDeclaration
    from quadweir.sources.streamfiles import DeadLetter, Element
    from quadweir.terms import Quad


def is_plain(declaration: StreamDeclaration) -> bool:
    """Whether a declared stream is a stream file, which can be read without Spark."""
    from quadweir.sources.declare import FileSource, Format

    timed = (Format.TIMED_LINES, Format.TIMED_GRAPHS, Format.TIMED_FILES)
    is_file = isinstance(declaration.source, FileSource) or _is_finished(declaration)
    return is_file and declaration.format in timed


def _is_finished(declaration: StreamDeclaration) -> bool:
    from quadweir.sources.declare import FolderSource

    source = declaration.source
    return isinstance(source, FolderSource) and not source.watch


def read_declared(
    declaration: StreamDeclaration, predicate: str | None, bad: list[DeadLetter] | None
) -> Iterator[Element]:
    """Read the elements of a declared stream file (`is_plain`)."""
    from quadweir.sources.declare import FileSource, FolderSource, FromPredicate
    from quadweir.sources.streamfiles import StreamForm, read_elements

    source, time = declaration.source, declaration.time
    assert isinstance(source, FileSource | FolderSource)
    own = time.predicate if isinstance(time, FromPredicate) else None
    form = StreamForm(str(declaration.format))
    inside = predicate if form is not StreamForm.TIMED_LINES else None
    folder = source if isinstance(source, FolderSource) else FolderSource(path=Path())
    return read_elements(
        source.path,
        stream=declaration.iri,
        form=form,
        pattern=folder.pattern,
        start=folder.start,
        step=folder.step,
        predicate=own or inside,
        on_bad=bad.append if bad is not None else None,
    )


def read_by_spark(
    engine: Engine, iri: str, predicate: str | None, bad: list[DeadLetter] | None
) -> Iterator[Element]:
    """The elements of a stream, read with the engine: streams of mappings, and bare statements.

    Raises:
        UsageError: the stream has no end.
    """
    from pyspark.sql import functions as F

    from quadweir import rows
    from quadweir.sources.streamfiles import DeadLetter

    frame = engine.open_feed(iri, predicate)
    if frame.isStreaming:
        raise UsageError(
            f"the oracle needs streams that have an end, and <{iri}> has none",
            hint="Read files, or check samples of a live run with --verify.",
        )
    if rows.REASON in frame.columns:
        letters = frame.where(F.col(rows.REASON).isNotNull())
        for each in letters.select(*rows.DEAD_LETTER_SCHEMA.names).toLocalIterator():
            letter = DeadLetter(each[0], each[1], each[2], each[3])
            if bad is None:
                raise DataError(f"{letter.source} {letter.place}: {letter.reason}")
            bad.append(letter)
        frame = frame.where(F.col(rows.REASON).isNull())
    return _elements(frame, iri)


def _elements(frame: DataFrame, iri: str) -> Iterator[Element]:
    from quadweir import rows
    from quadweir.sources.streamfiles import Element

    statements = rows.select_statements(frame).orderBy(rows.EVENT_TIME, rows.POSITION)
    found = statements.toLocalIterator()
    for (time, position), together in groupby(found, key=lambda row: (row[1], row[2])):
        quads = dict.fromkeys(_quad(row[3:7]) for row in together)
        yield Element(iri, time, position, tuple(quads))


def _quad(terms: tuple[str, str, str, str | None]) -> Quad:
    from quadweir.sources.statements import parse_statement

    return parse_statement(" ".join(each for each in terms if each is not None) + " .")


def streams_read(
    query: ContinuousQuery, declared: Mapping[str, StreamDeclaration], mapped: Collection[str]
) -> dict[str, StreamDeclaration | None]:
    """The streams that a query reads, with their declarations; None for those of mappings.

    Raises:
        UsageError: one of them is not known.
    """
    from quadweir.sources.declare import undeclared
    from quadweir.terms import IRI

    every: dict[str, StreamDeclaration | None] = {
        iri: one for iri, one in declared.items() if one.format.is_rdf
    } | dict.fromkeys(mapped)
    named = [each.stream.value for each in query.windows if isinstance(each.stream, IRI)]
    if len(named) < len(query.windows):
        return every  # A stream variable stands for all streams.
    for iri in named:
        if iri not in every:
            raise undeclared(iri, every)
    return {iri: every[iri] for iri in named}


def needs_spark(read: Mapping[str, StreamDeclaration | None]) -> bool:
    """Whether some stream cannot be read without Spark."""
    return any(each is None or not is_plain(each) for each in read.values())


def read_streams(
    read: Mapping[str, StreamDeclaration | None],
    timed_by: Mapping[str, str],
    engine: Engine | None,
    bad: list[DeadLetter] | None,
) -> Iterator[Element]:
    """The elements of several streams, merged by event time.

    Args:
        read: the streams, with their declarations; None for those that a mapping makes.
        timed_by: the predicates that windows take event times from, by stream.
        engine: the engine of the streams; needed for everything but stream files.
        bad: called with each record that cannot be read; without it, the first such record raises.
    """
    found = []
    for iri, declaration in read.items():
        predicate = timed_by.get(iri)
        if declaration is not None and is_plain(declaration):
            found.append(read_declared(declaration, predicate, bad))
        else:
            assert engine is not None, "only stream files can be read without an engine"
            found.append(read_by_spark(engine, iri, predicate, bad))
    return heapq.merge(*found, key=lambda element: element.event_time)
