"""Converts RDF files from one format to another, quad by quad, in constant memory.

This needs no Spark: one core reads a file faster than a session starts. For folders of many
gigabytes use `rdf_files.read_rdf` and a sink.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast, final

import pyoxigraph as ox

from quadweir.errors import DataError, SourceError, UsageError
from quadweir.fileformats import FORMATS, JELLY
from quadweir.jelly import read_frames
from quadweir.sinks.rdf_documents import Syntax, opened, write_quads
from quadweir.sources.lines import Fault, lines_of, open_bytes, read_blocks
from quadweir.sources.rdfdocuments import BadQuad
from quadweir.sources.statements import is_blank, parse_statement
from quadweir.sources.xmlguard import without_doctype

_LINES: Final = ("ntriples", "nquads")
# pyoxigraph names anonymous blank nodes at random; we rename them so that the same input gives the
# same bytes.
_RANDOM: Final = re.compile(r"[0-9a-f]{28,32}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A conversion: the files and the options.

    Attributes:
        source: the file to read.
        target: the file to write; None is standard output.
        source_format: one of `FORMATS`, or `JELLY`.
        target_format: one of `FORMATS`, or `JELLY`.
        base: the base of relative IRIs.
        merge_graphs: put the quads of all graphs into the default graph.
    """

    source: Path
    target: Path | None
    source_format: str
    target_format: str
    base: str | None = None
    merge_graphs: bool = False


@final
@dataclass(slots=True)
class ConversionOutcome:
    """The result of a conversion: the number of quads written, and the records that could not be
    read.
    """

    quads: int = 0
    bad: int = 0
    first_bad: list[BadQuad] = field(default_factory=list)


def convert(
    job: Conversion,
    *,
    on_bad: Callable[[BadQuad], None] = lambda _: None,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> ConversionOutcome:
    """Convert a file; the target appears only when it is complete.

    Args:
        job: what to do.
        on_bad: called for each line that cannot be read, and for the error that ends a document.
        on_bytes: called with the number of bytes read so far.

    Raises:
        SourceError: a file cannot be read or written.
        UsageError: the source has named graphs and the target format has none.
    """
    if job.target is not None and job.target.resolve() == job.source.resolve():
        raise UsageError("source and target are the same file")
    outcome = ConversionOutcome()

    def bad(item: BadQuad) -> None:
        outcome.bad += 1
        if len(outcome.first_bad) < 5:
            outcome.first_bad.append(item)
        on_bad(item)

    readers = {JELLY: _read_jelly, **dict.fromkeys(_LINES, _read_lines)}
    reader = readers.get(job.source_format, _read_document)
    prefixes: dict[str, str] = {}
    quads = _counted(_without_graphs(reader(job, prefixes, bad, on_bytes), job), outcome)
    with _written(job.target) as out:
        # Prefixes are at the head of a document, so they are known with the first quad.
        first = next(quads, None)
        rest = quads if first is None else _chained(first, quads)
        try:
            write_quads(rest, out, Syntax(job.target_format), prefixes=prefixes)
        except ValueError as error:
            if "named graph" not in str(error):
                raise SourceError(f"cannot write {job.target_format}: {error}") from error
            raise UsageError(
                f"{job.source} has named graphs, which {job.target_format} cannot hold",
                hint="Write nquads, trig or jsonld, or add --merge-graphs.",
            ) from error
    return outcome


def _chained(first: ox.Quad, rest: Iterator[ox.Quad]) -> Iterator[ox.Quad]:
    yield first
    yield from rest


def _counted(quads: Iterator[ox.Quad], outcome: ConversionOutcome) -> Iterator[ox.Quad]:
    for quad in quads:
        outcome.quads += 1
        yield quad


def _without_graphs(quads: Iterator[ox.Quad], job: Conversion) -> Iterator[ox.Quad]:
    if not job.merge_graphs:
        return quads
    return (ox.Quad(quad.subject, quad.predicate, quad.object) for quad in quads)


def _read_lines(
    job: Conversion,
    prefixes: dict[str, str],
    bad: Callable[[BadQuad], None],
    on_bytes: Callable[[int], None],
) -> Iterator[ox.Quad]:
    """Read block by block; only a block with an error is read again line by line."""
    del prefixes
    done = 0
    for block in read_blocks(job.source):
        if isinstance(block, Fault):
            bad(BadQuad(f"line {block.number}", block.reason, block.excerpt))
            continue
        done += len(block.data)
        try:
            yield from list(ox.parse(block.data, FORMATS[job.source_format]))
        except SyntaxError:
            for line in lines_of(block):
                if isinstance(line, Fault):
                    bad(BadQuad(f"line {line.number}", line.reason, line.excerpt))
                elif not is_blank(line.text):
                    yield from _read_line(line.number, line.text, job.source_format, bad)
        on_bytes(done)


def _read_line(
    number: int, text: str, source_format: str, bad: Callable[[BadQuad], None]
) -> Iterator[ox.Quad]:
    place = f"line {number}"
    try:
        quad = parse_statement(text)
        if quad.graph is not None and source_format == "ntriples":
            raise DataError("a graph name in N-Triples")
        # We accept some lines that pyoxigraph rejects (an IRI with odd percent signs); they are
        # kept unchanged.
        yield from ox.parse(str(quad), ox.RdfFormat.N_QUADS, lenient=True)
    except DataError as error:
        bad(BadQuad(place, error.message, text))
    except SyntaxError as error:
        bad(BadQuad(place, error.msg, text))


def _read_jelly(
    job: Conversion,
    prefixes: dict[str, str],
    bad: Callable[[BadQuad], None],
    on_bytes: Callable[[int], None],
) -> Iterator[ox.Quad]:
    del prefixes
    with open_bytes(job.source) as data:
        try:
            for quads in read_frames(cast("BinaryIO", _Metered(data, on_bytes))):
                lines = "\n".join(map(str, quads))
                yield from ox.parse(lines, ox.RdfFormat.N_QUADS, lenient=True)
        except DataError as error:
            bad(BadQuad("file", f"not Jelly: {error.message}"))
        except OSError as error:
            bad(BadQuad("file", str(error)))


def _read_document(
    job: Conversion,
    prefixes: dict[str, str],
    bad: Callable[[BadQuad], None],
    on_bytes: Callable[[int], None],
) -> Iterator[ox.Quad]:
    names: dict[str, ox.BlankNode] = {}

    def renamed(term: Any) -> Any:
        if type(term) is ox.BlankNode and _RANDOM.fullmatch(term.value):
            return names.setdefault(term.value, ox.BlankNode(f"q{len(names)}"))
        if type(term) is ox.Triple:
            return ox.Triple(renamed(term.subject), term.predicate, renamed(term.object))
        return term

    with open_bytes(job.source) as data:
        try:
            guarded = without_doctype(data) if job.source_format == "rdfxml" else data
            metered = cast("IO[bytes]", _Metered(guarded, on_bytes))
            parser = ox.parse(metered, FORMATS[job.source_format], base_iri=job.base)
            for quad in parser:
                if not names and not prefixes and parser.prefixes:
                    prefixes.update(parser.prefixes)
                subject, value, graph = quad.subject, quad.object, quad.graph_name
                yield ox.Quad(renamed(subject), quad.predicate, renamed(value), renamed(graph))
        except SyntaxError as error:
            place = f"line {error.lineno}" if error.lineno else "file"
            bad(BadQuad(place, f"not {job.source_format}: {error.msg}"))
        except DataError as error:
            bad(BadQuad("file", error.message))
        except OSError as error:
            bad(BadQuad("file", str(error)))


class _Metered:
    """A readable stream that reports how many bytes have been read."""

    def __init__(self, file: BinaryIO, on_bytes: Callable[[int], None]) -> None:
        self._file = file
        self._on_bytes = on_bytes
        self._done = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size) or b""
        self._done += len(data)
        self._on_bytes(self._done)
        return data


@contextmanager
def _written(target: Path | None) -> Iterator[IO[bytes]]:
    if target is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with opened(target) as out:
        yield out
