"""Stream files: RDF elements with their times, read and written without Spark.

There are three forms (`docs/reference/stream-files.md`): timed lines, timed graphs, timed files.
This module is the simple reader; tests compare every other reader with it.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final, TextIO, final

from quadweir.errors import DataError, LimitError, SourceError, UsageError
from quadweir.paths import PathLike, as_path
from quadweir.sources.lines import MAX_LINE_BYTES, Fault, read_lines
from quadweir.sources.rdfdocuments import BadQuad, rdf_suffix, read_quads
from quadweir.sources.statements import graph_name, is_blank, parse_statement
from quadweir.spans import Span
from quadweir.terms import BlankNode, Literal, Quad, Resource
from quadweir.times import DurationLike, as_duration, as_instant, format_time, parse_time
from quadweir.vocab import PROV

# The high bits of a position are the number of the file in its folder, the low bits that of the
# line or graph in it: enough for a million million lines and eight million files.
FILE_SHIFT: Final = 40
DEFAULT_STREAM: Final = "urn:quadweir:stream"
# How many quads of a timed-graphs file may wait for their times, which can be anywhere in the file.
MAX_WAITING_QUADS: Final = 1_000_000
_RECORD_CHARACTERS: Final = 10_000
_TIMED: Final = re.compile(r"([^ \t]+)[ \t]+(.+)", re.DOTALL)


class StreamForm(StrEnum):
    """How a stream file states the times of its elements."""

    TIMED_LINES = "timed-lines"
    """Each line is an event time, a space or tab, and a statement."""
    TIMED_GRAPHS = "timed-graphs"
    """Each named graph is an element; the default graph has its prov:generatedAtTime."""
    TIMED_FILES = "timed-files"
    """Each file of a folder is an element; its place in the order of names gives its time."""


@final
@dataclass(frozen=True, slots=True)
class Element:
    """An element of a stream: an RDF graph with an event time and a position (semantics S1).

    Attributes:
        stream: the IRI of the stream.
        event_time: milliseconds since 1970.
        position: the place in the stream; it orders elements of equal time.
        quads: its statements, in the order of the file; at least one.
    """

    stream: str
    event_time: int
    position: int
    quads: tuple[Quad, ...]

    @property
    def triples(self) -> tuple[Quad, ...]:
        """The statements without their graph name."""
        return tuple(
            quad if quad.graph is None else replace(quad, graph=None) for quad in self.quads
        )


@final
@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A line, graph or file that could not be used: its place, the reason, and its beginning."""

    source: str
    place: str
    reason: str
    record: str | None = None


@dataclass(slots=True)
class FileReport:
    """What `validate` found in a stream file.

    Attributes:
        form: the form of the file.
        elements: how many elements it has.
        statements: how many statements they have.
        first: the lowest event time, None without elements.
        last: the highest event time.
        out_of_order: elements earlier than the one before them.
        max_lateness_ms: the longest lag of those; a stream with this delay loses none.
        bad: how many lines, graphs or files cannot be used.
        letters: the first of those, at most `LETTERS_SHOWN`.
    """

    LETTERS_SHOWN = 100

    form: StreamForm
    elements: int = 0
    statements: int = 0
    first: int | None = None
    last: int | None = None
    out_of_order: int = 0
    max_lateness_ms: int = 0
    bad: int = 0
    letters: list[DeadLetter] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every line could be used."""
        return self.bad == 0


OnBad = Callable[[DeadLetter], None]


def read_elements(
    path: PathLike,
    *,
    stream: str = DEFAULT_STREAM,
    form: StreamForm | str | None = None,
    pattern: str = "*",
    start: datetime | int | str = 0,
    step: DurationLike | None = None,
    predicate: str | None = None,
    on_bad: OnBad | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Element]:
    """Yield the elements of a stream file, or of a folder of stream files, in order.

    Args:
        path: a file or, for every form, a folder whose files are read in the order of their names.
        stream: the IRI of the stream that the elements belong to.
        form: the form; None guesses it from names (`guess_form`).
        pattern: which files of a folder to read.
        start: timed files: the event time of the first file; a number is in milliseconds.
        step: timed files: the time from one file to the next.
        predicate: timed graphs and timed files: take the time from this predicate inside each
            element instead.
        on_bad: called with every line, graph or file that cannot be used; without it, the first
            one raises.
        max_line_bytes: longer lines cannot be used.

    Raises:
        DataError: something cannot be used, and `on_bad` is None.
        SourceError: the path does not exist or cannot be read.
        UsageError: the arguments do not go together.
    """
    path = as_path(path)
    step = as_duration(step) if step is not None else None
    form = StreamForm(form) if form is not None else guess_form(path, step=step)
    if form is StreamForm.TIMED_FILES and step is None and predicate is None:
        raise UsageError("timed files need a step", hint="Give a start and a step, or a predicate.")
    reader = ElementReader(
        form=form,
        stream=stream,
        start=as_instant(start),
        step_ms=step // timedelta(milliseconds=1) if step is not None else None,
        predicate=predicate,
        on_bad=on_bad or _raise,
        max_line_bytes=max_line_bytes,
    )
    return itertools.chain.from_iterable(
        reader.read(file, index) for index, file in enumerate(list_files(path, pattern))
    )


def guess_form(path: Path, *, step: timedelta | None = None) -> StreamForm:
    """Return the form that names suggest: timed graphs for TriG and N-Quads, else timed lines.

    >>> guess_form(Path("a.trig")), guess_form(Path("a.stream.gz"))
    (<StreamForm.TIMED_GRAPHS: 'timed-graphs'>, <StreamForm.TIMED_LINES: 'timed-lines'>)
    """
    if step is not None:
        return StreamForm.TIMED_FILES
    if path.is_dir():
        path = next(iter(list_files(path)), path)
    return (
        StreamForm.TIMED_GRAPHS if rdf_suffix(path) in (".trig", ".nq") else StreamForm.TIMED_LINES
    )


def list_files(path: Path, pattern: str = "*") -> list[Path]:
    """Return the files to read, in order: the file itself, or those of a folder, sorted by name.

    Names that begin with a dot or an underscore are left out, as in Spark: such files are still
    being written, or are markers.

    Raises:
        SourceError: the file or folder does not exist.
    """
    if not path.is_dir():
        if not path.exists():
            raise SourceError(f"no such file or folder: {path}", hint="Check the path.")
        return [path]
    return sorted(
        (file for file in path.iterdir() if is_wanted(file.name, pattern) and file.is_file()),
        # By code point, not by locale, so that every machine reads in the same order.
        key=lambda file: file.name,
    )


def is_wanted(name: str, pattern: str) -> bool:
    """Whether a file of a folder is read, by its name.

    >>> is_wanted("a.nt", "*.nt"), is_wanted("_SUCCESS", "*"), is_wanted(".a.nt.tmp", "*")
    (True, False, False)
    """
    return name[:1] not in "._" and fnmatch.fnmatchcase(name, pattern)


def write_elements(elements: Iterable[Element], out: TextIO, *, iso: bool = False) -> int:
    """Write elements as timed lines; return the number of lines.

    A comment line separates two elements that would be read as one (equal time, same graph, one
    after the other). An element with several statements must have all of them in one named graph;
    otherwise it would be read as several elements.

    Args:
        elements: the elements, in the order of the stream.
        out: the file to write to.
        iso: write times as ISO 8601, not in milliseconds.

    Raises:
        DataError: an element has several statements that are not all in one named graph.
    """
    count = 0
    before: tuple[int, Resource] | None = None
    for element in elements:
        graphs = {quad.graph for quad in element.quads}
        graph = next(iter(graphs))
        if len(element.quads) > 1 and (len(graphs) > 1 or graph is None):
            raise DataError(
                f"element {element.position} has {len(element.quads)} statements outside one graph",
                hint="Give its statements one graph name, or write timed graphs.",
            )
        time = format_time(element.event_time) if iso else str(element.event_time)
        key = (element.event_time, graph) if graph is not None else None
        if key is not None and key == before:
            out.write("#\n")
        before = key
        for quad in element.quads:
            out.write(f"{time} {quad}\n")
            count += 1
    return count


def validate(
    path: Path | str,
    *,
    form: StreamForm | str | None = None,
    pattern: str = "*",
    start: int = 0,
    step: timedelta | None = None,
    predicate: str | None = None,
) -> FileReport:
    """Return a report of what a stream file has and what is wrong with it."""
    path = Path(path)
    chosen = StreamForm(form) if form is not None else guess_form(path, step=step)
    report = FileReport(form=chosen)

    def note(letter: DeadLetter) -> None:
        report.bad += 1
        if len(report.letters) < FileReport.LETTERS_SHOWN:
            report.letters.append(letter)

    for element in read_elements(
        path,
        form=chosen,
        pattern=pattern,
        start=start,
        step=step,
        predicate=predicate,
        on_bad=note,
    ):
        time = element.event_time
        report.elements += 1
        report.statements += len(element.quads)
        report.first = time if report.first is None else min(report.first, time)
        if report.last is not None and time < report.last:
            report.max_lateness_ms = max(report.max_lateness_ms, report.last - time)
            report.out_of_order += 1
        report.last = time if report.last is None else max(report.last, time)
    return report


def _raise(letter: DeadLetter) -> None:
    number = re.search(r"[0-9]+", letter.place)
    line = int(number[0]) if letter.place.startswith("line") and number else 1
    raise DataError(letter.reason, span=Span(line, 1, source=letter.source))


@dataclass(slots=True)
class _Waiting:
    position: int
    quads: list[Quad] = field(default_factory=list)


@final
@dataclass(frozen=True, slots=True)
class ElementReader:
    """Reads stream files, each with its number in the stream (`read_elements`)."""

    form: StreamForm
    stream: str
    start: int
    step_ms: int | None
    predicate: str | None
    on_bad: OnBad
    max_line_bytes: int

    def read(self, file: Path, index: int) -> Iterator[Element]:
        """Yield the elements of one file."""
        match self.form:
            case StreamForm.TIMED_LINES:
                return self._timed_lines(file, index)
            case StreamForm.TIMED_GRAPHS:
                return self._timed_graphs(file, index)
            case StreamForm.TIMED_FILES:
                return self._timed_file(file, index)

    def _bad(self, file: Path, place: str, reason: str, record: str | None = None) -> None:
        cut = record[:_RECORD_CHARACTERS] if record is not None else None
        self.on_bad(DeadLetter(str(file), place, reason, cut))

    def _timed_lines(self, file: Path, index: int) -> Iterator[Element]:
        run: list[Quad] = []
        run_time = run_position = 0
        before: tuple[int, str] | None = None
        for line in read_lines(file, max_line_bytes=self.max_line_bytes):
            key: tuple[int, str] | None = None
            time, quad = 0, None
            if isinstance(line, Fault):
                self._bad(file, f"line {line.number}", line.reason, line.excerpt)
            elif not is_blank(line.text):
                try:
                    time, statement = split_time(line.text)
                    name = graph_name(statement)
                    key = (time, name) if name is not None else None
                    quad = parse_statement(statement)
                except DataError as error:
                    self._bad(file, f"line {line.number}", error.message, line.text)
            if key is None or key != before:
                if run:
                    yield Element(self.stream, run_time, run_position, tuple(run))
                    run = []
                run_time, run_position = time, (index << FILE_SHIFT) + line.number
            before = key
            if quad is not None:
                run.append(quad)
        if run:
            yield Element(self.stream, run_time, run_position, tuple(run))

    def _timed_graphs(self, file: Path, index: int) -> Iterator[Element]:
        predicate = self.predicate or PROV.generatedAtTime
        inside = self.predicate is not None
        times: dict[Resource, int] = {}
        waiting: OrderedDict[Resource, _Waiting] = OrderedDict()
        closed: set[Resource] = set()
        current: Resource | None = None
        held = 0
        ordinal = 0

        def ready(graph: Resource) -> Iterator[Element]:
            nonlocal held
            if graph in waiting and graph in times:
                group = waiting.pop(graph)
                held -= len(group.quads)
                time = times[graph]
                yield Element(self.stream, time, group.position, tuple(group.quads))

        for quad in self._quads(file):
            is_time = quad.predicate.value == predicate
            if is_time and (quad.graph is not None if inside else quad.graph is None):
                about = quad.graph if inside else quad.subject
                assert about is not None
                self._note_time(file, times, about, quad)
                if about != current and about in closed:
                    yield from ready(about)
            if quad.graph is None:
                if not is_time or inside:
                    self._bad(file, f"graph {ordinal}", "a statement outside any graph", str(quad))
                continue
            if quad.graph != current:
                if quad.graph in closed:
                    self._bad(
                        file,
                        f"graph {ordinal}",
                        f"the graph {quad.graph} is taken up again after another one",
                        str(quad),
                    )
                    continue
                if current is not None:
                    closed.add(current)
                    yield from ready(current)
                current = quad.graph
                ordinal += 1
                waiting[current] = _Waiting((index << FILE_SHIFT) + ordinal)
            waiting[current].quads.append(quad)
            held += 1
            if held > MAX_WAITING_QUADS:
                raise LimitError(
                    f"more than {MAX_WAITING_QUADS} statements of {file} wait for a time",
                    hint="Put each graph's prov:generatedAtTime next to it.",
                )
        if current is not None:
            yield from ready(current)
        for graph, group in waiting.items():
            why = f"the graph {graph} has no usable time"
            self._bad(file, f"graph {group.position % (1 << FILE_SHIFT)}", why, str(group.quads[0]))

    def _note_time(
        self, file: Path, times: dict[Resource, int], about: Resource, quad: Quad
    ) -> None:
        try:
            if not isinstance(quad.object, Literal):
                raise DataError(f"not an event time: {quad.object}")
            time = parse_time(quad.object.lexical)
        except DataError as error:
            self._bad(file, f"graph {about}", error.message, str(quad))
            return
        if times.get(about, time) != time:
            self._bad(file, f"graph {about}", f"the graph {about} has two times", str(quad))
            return
        times[about] = time

    def _timed_file(self, file: Path, index: int) -> Iterator[Element]:
        quads: list[Quad] = []
        broken = False

        def note(letter: DeadLetter) -> None:
            nonlocal broken
            broken = True
            self.on_bad(letter)

        for quad in replace(self, on_bad=note)._quads(file):
            quads.append(quad)
            if len(quads) > MAX_WAITING_QUADS:
                self._bad(file, "file", f"a file of more than {MAX_WAITING_QUADS} statements")
                return
        if broken:
            # An element enters a window as a whole or not at all (S1).
            return
        if not quads:
            # The file still counts in the order, so the next file keeps its time.
            return
        time = self.start + index * (self.step_ms or 0)
        if self.predicate is not None:
            times: dict[Resource, int] = {}
            key = BlankNode("file")
            for quad in quads:
                if quad.predicate.value == self.predicate:
                    self._note_time(file, times, key, quad)
            found = times.get(key)
            if found is None:
                self._bad(file, "file", f"no time: <{self.predicate}> is missing")
                return
            time = found
        yield Element(self.stream, time, index << FILE_SHIFT, tuple(quads))

    def _quads(self, file: Path) -> Iterator[Quad]:
        for item in read_quads(file, max_line_bytes=self.max_line_bytes):
            if isinstance(item, BadQuad):
                self._bad(file, item.place, item.reason, item.record)
            else:
                yield item


def split_time(text: str) -> tuple[int, str]:
    r"""Return the time and the statement of a timed line.

    >>> split_time("1000\t<urn:s> <urn:p> <urn:o> .")
    (1000, '<urn:s> <urn:p> <urn:o> .')

    Raises:
        DataError: the line does not begin with an event time and a space or tab.
    """
    match = _TIMED.fullmatch(text)
    if match is None:
        raise DataError("no event time before the statement")
    return parse_time(match[1]), match[2]
