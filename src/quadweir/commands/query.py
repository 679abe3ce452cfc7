"""`quadweir query`: answer a continuous query over RDF streams."""

from __future__ import annotations

import heapq
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from quadweir.commands.querytext import (
    ContentOption,
    DialectOption,
    QueryArgument,
    read_query,
    read_text,
)
from quadweir.errors import DataError, NotImplementedYetError, SourceError, UsageError

if TYPE_CHECKING:
    from quadweir.sources.streamfiles import DeadLetter, Element
    from quadweir.terms import Quad

# How many bad records and late elements are named one by one.
_MOST_NAMED = 5


def query(
    query: QueryArgument,
    stream: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI=PATH", help="A stream and the file or folder it is read from; repeatable."
        ),
    ] = None,
    static: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[IRI=]FILE",
            help="Static RDF data, in the default graph or in the graph of that name; repeatable.",
        ),
    ] = None,
    oracle: Annotated[
        bool,
        typer.Option(
            "--oracle", help="Recompute every report from scratch: slow, and right by definition."
        ),
    ] = False,
    output: Annotated[
        str, typer.Option(metavar="FILE|-", help="Where answers go; - is standard output.")
    ] = "-",
    output_format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="jsonl: one answer a line.")
    ] = "jsonl",
    delay: Annotated[
        str, typer.Option(metavar="DURATION", help="How late an element may come, such as 10s.")
    ] = "0s",
    dialect: DialectOption = None,
    content: ContentOption = None,
    allow_unbounded: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI", help="A window or stream that may be kept whole (ALL); repeatable."
        ),
    ] = None,
    max_reports: Annotated[
        int, typer.Option(min=1, help="Give up after this many reports.")
    ] = 100_000,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first record that cannot be read.")
    ] = False,
) -> None:
    """Answer a continuous query over RDF streams.

    Streams are read to their end and drained. Each answer is a line of JSON: its report instant t in
    milliseconds, + or - as its sign, and its bindings as in SPARQL's JSON results, or the triples
    of a CONSTRUCT.
    """
    from quadweir.algebra.analyze import analyze, refuse_unbounded
    from quadweir.terms import IRI

    text, source = read_text(query)
    read = read_query(text, source, dialect=dialect, content=content)
    analyze(read)
    refuse_unbounded(read, allowed=frozenset(map(IRI, allow_unbounded or ())))
    if output_format != "jsonl":
        raise UsageError(f"no format {output_format!r}", hint="Choose jsonl.")
    if not oracle:
        raise NotImplementedYetError(
            "only the oracle answers queries in this version", hint="Add --oracle."
        )
    from quadweir.sources.times import parse_duration
    from quadweir.testing.oracle import Oracle

    try:
        delay_ms = int(parse_duration(delay).total_seconds() * 1000)
    except DataError as error:
        raise UsageError(f"--delay: {error.message}", hint=error.hint) from None
    bad: list[DeadLetter] = []
    feed = read_streams(stream or [], bad=None if strict else bad)
    wise = Oracle(
        read, static=read_static(static or []), delay_ms=delay_ms, max_reports=max_reports
    )
    run = wise.run(feed)
    with _opened(output) as out:
        for answer in run.answers:
            out.write(json.dumps(answer.to_json(), ensure_ascii=False) + "\n")
    _summarise("record could not be read", [f"{x.source} {x.place}: {x.reason}" for x in bad])
    _summarise(
        "element without an event time", [f"{e.stream} {e.position}: {why}" for e, why in run.dead]
    )
    _summarise("late element", [f"{e.stream} {e.position}" for e in run.late])


def read_streams(named: list[str], *, bad: list[DeadLetter] | None) -> Iterator[Element]:
    """Read streams side by side: by event time, as far as the order of each file allows."""
    from quadweir.sources.streamfiles import read_elements

    streams = []
    for each in named:
        iri, path = _cut(each)
        if iri is None or not path:
            raise UsageError(
                f"--stream {each} is not IRI=PATH",
                hint="Write --stream http://example.org/s=s.stream",
            )
        streams.append(
            read_elements(Path(path), stream=iri, on_bad=bad.append if bad is not None else None)
        )
    return heapq.merge(*streams, key=lambda element: element.event_time)


def read_static(named: list[str]) -> Iterator[Quad]:
    """Read static files; a blank node belongs to its file."""
    from quadweir.sources.rdfdocuments import BadQuad, read_quads
    from quadweir.terms import IRI, BlankNode

    for number, each in enumerate(named):
        iri, path = _cut(each)
        file = Path(path)
        if not file.exists():
            raise SourceError(f"no such file: {file}", hint="Check the path given to --static.")
        for quad in read_quads(file):
            if isinstance(quad, BadQuad):
                raise DataError(f"{file}, {quad.place}: {quad.reason}")
            subject, end = quad.subject, quad.object
            if isinstance(subject, BlankNode):
                subject = BlankNode(f"f{number}-{subject.label}")
            if isinstance(end, BlankNode):
                end = BlankNode(f"f{number}-{end.label}")
            graph = quad.graph if iri is None else IRI(iri)
            yield replace(quad, subject=subject, object=end, graph=graph)


def _cut(argument: str) -> tuple[str | None, str]:
    """Cut IRI=PATH in two; both may hold equals signs, so a cut before something there is best.

    >>> _cut("urn:s=a.stream"), _cut("a.ttl")
    (('urn:s', 'a.stream'), (None, 'a.ttl'))
    """
    if Path(argument).exists():
        return None, argument
    cuts = [place for place, letter in enumerate(argument) if letter == "="]
    cuts = [place for place in cuts if ":" in argument[:place]]
    for place in cuts:
        if Path(argument[place + 1 :]).exists():
            return argument[:place], argument[place + 1 :]
    return (argument[: cuts[0]], argument[cuts[0] + 1 :]) if cuts else (None, argument)


@contextmanager
def _opened(output: str) -> Iterator[TextIO]:
    if output == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        with Path(output).open("w", encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        raise SourceError(f"cannot write {output}: {error.strerror}") from None


def _summarise(what: str, found: list[str]) -> None:
    if not found:
        return
    plural = "" if len(found) == 1 else "s"
    first, _, rest = what.partition(" ")
    noun = f"{first}{plural} {rest}" if first != "late" else f"late {rest}{plural}"
    print(f"quadweir: {len(found)} {noun}", file=sys.stderr)
    for each in found[:_MOST_NAMED]:
        print(f"  {each}", file=sys.stderr)
    if len(found) > _MOST_NAMED:
        print(f"  and {len(found) - _MOST_NAMED} more", file=sys.stderr)
