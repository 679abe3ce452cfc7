"""The output of `quadweir query`: its place and its format."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, TextIO, final

from quadweir.commands.preflight import check_file
from quadweir.errors import SourceError, UsageError
from quadweir.private import replaced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.algebra.query import ContinuousQuery
    from quadweir.runtime.query import RegisteredQuery
    from quadweir.sinks.base import Sink
    from quadweir.sinks.kafka import KafkaSink
    from quadweir.sinks.lineformat import LineFormat

_KAFKA: Final = "kafka:"
_SOLUTIONS: Final = ("jsonl", "csv", "tsv")
_TRIPLES: Final = ("jsonl", "nquads", "timed-lines", "trig")
_ALL_ROWS: Final = 2**31 - 2
_CHUNK: Final = 1 << 20
_LINES: Final = 4096


@final
@dataclass(frozen=True, slots=True)
class OutputTarget:
    """The options of the command line about the output."""

    output: str
    form: str

    def check(self, query: ContinuousQuery) -> None:
        """Refuse a format that does not suit the answers.

        Raises:
            UsageError: the format does not suit.
        """
        from quadweir.algebra.query import ConstructForm, DescribeForm

        makes_triples = isinstance(query.form, ConstructForm | DescribeForm)
        allowed = _TRIPLES if makes_triples else _SOLUTIONS
        if self.form not in (*_SOLUTIONS, *_TRIPLES):
            raise UsageError(f"no format {self.form!r}", hint=f"Choose {_either(allowed)}.")
        if self.form not in allowed:
            kind = "triples" if makes_triples else "solutions"
            raise UsageError(
                f"answers that are {kind} cannot be written as {self.form}",
                hint=f"Choose {_either(allowed)}.",
            )

    def check_place(self) -> None:
        """Make sure that the answers of a bounded run can be written.

        Raises:
            SourceError: they cannot.
        """
        if self.is_kafka:
            self.kafka("query").prepare()
        elif self.output != "-":
            check_file(Path(self.output))

    @property
    def is_kafka(self) -> bool:
        return self.output.startswith(_KAFKA)

    @property
    def statements(self) -> bool:
        """Whether single triples are written, rather than answers."""
        return self.form in ("nquads", "timed-lines", "trig")

    @property
    def timed(self) -> bool:
        """Whether the output can be read as a stream again."""
        return self.form == "timed-lines"

    @property
    def line_format(self) -> LineFormat:
        from quadweir.sinks.lineformat import LineFormat

        return {
            "jsonl": LineFormat.ANSWERS_JSONL,
            "csv": LineFormat.ANSWERS_CSV,
            "tsv": LineFormat.ANSWERS_TSV,
            "timed-lines": LineFormat.TIMED_LINES,
        }.get(self.form, LineFormat.NQUADS)  # a TriG document is made of N-Quads

    def kafka(self, name: str) -> KafkaSink:
        """The topic as a sink.

        Raises:
            UsageError: the output names no topic.
        """
        from quadweir import rows
        from quadweir.sinks.kafka import KafkaSink

        if self.form == "trig":
            raise UsageError(
                "a TriG document cannot be one message", hint="Choose jsonl or nquads."
            )
        servers, _, topic = self.output.removeprefix(_KAFKA).rpartition("/")
        if not servers or not topic:
            raise UsageError(
                f"not a Kafka topic: {self.output}", hint="Write kafka:HOST:PORT/TOPIC."
            )
        time = rows.EVENT_TIME if self.statements else rows.REPORT
        return KafkaSink(servers, topic, self.line_format, name=name, time=time)

    def sink(self, name: str, out: TextIO | None = None) -> Sink:
        """The sink of a live run; `out` stands for standard output."""
        from quadweir.sinks.console import ConsoleSink
        from quadweir.sinks.files import FileSink
        from quadweir.sinks.rdf_batches import DocumentSink
        from quadweir.sinks.rdf_documents import Syntax

        if self.is_kafka:
            return self.kafka(name)
        if self.form == "trig":
            if self.output == "-":
                raise UsageError(
                    "a TriG document has an end, and a live run has none",
                    hint="Choose nquads, or name a file, which gives a document for each batch.",
                )
            return DocumentSink(Path(self.output), Syntax.TRIG)
        if self.output == "-":
            return ConsoleSink(self.line_format, _ALL_ROWS, out or sys.stdout)
        return FileSink(Path(self.output), self.line_format)


def write_bounded(
    target: OutputTarget, registered: RegisteredQuery, *, answers: DataFrame
) -> PendingAnswers:
    """Compute the answers of a bounded run and write them to a scratch folder.

    `PendingAnswers.publish` moves them to the output, so that a failed run leaves no partial
    output.
    """
    from quadweir import rows
    from quadweir.sinks.answerlines import header
    from quadweir.sinks.base import Batch
    from quadweir.sinks.lines import with_line

    frame = answers
    order = [rows.REPORT, rows.LINE]
    if target.statements:
        from quadweir.runtime.answers import as_statements
        from quadweir.runtime.frames import ANSWERS

        frame = as_statements(answers, ANSWERS, named=target.timed)
        # Lines of one graph are one element only if they are adjacent.
        order = [rows.EVENT_TIME, rows.GRAPH, rows.LINE]
    if target.is_kafka:
        sink = target.kafka(registered.query.name or "query")
        sink.prepare()
        sink.write(frame, Batch(0, ""))
        return PendingAnswers(target, None, None)
    scratch = Path(tempfile.mkdtemp(prefix="quadweir-query-"))
    lines = with_line(frame, target.line_format).select(*order).repartition(1)
    if not is_ordered(registered.query):
        # The answers of one report have no order; sorting makes equal runs give equal files.
        lines = lines.sortWithinPartitions(*order)
    lines.select(rows.LINE).write.mode("overwrite").text(str(scratch / "lines"))
    first = header(frame, tabs=target.form == "tsv") if target.form in ("csv", "tsv") else None
    return PendingAnswers(target, ScratchLines(scratch), first)


def pending_lines(
    target: OutputTarget, lines: Sequence[str], variables: Sequence[str]
) -> PendingAnswers:
    """Return lines of answers in memory, ready for the output; `variables` are those of solutions."""
    from quadweir.sinks.answertext import header_of

    is_table = target.form in ("csv", "tsv")
    first = header_of(variables, tabs=target.form == "tsv") if is_table else None
    return PendingAnswers(target, HeldLines(lines), first)


class PendingLines(Protocol):
    """Lines of answers that wait to be written."""

    def chunks(self) -> Iterator[bytes]:
        """Return chunks of whole lines."""

    def discard(self) -> None:
        """Forget them."""


@final
@dataclass(frozen=True, slots=True)
class ScratchLines:
    """Lines in files that Spark wrote."""

    folder: Path

    def chunks(self) -> Iterator[bytes]:
        for part in sorted((self.folder / "lines").glob("part-*")):
            with part.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    yield chunk + file.readline()

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


@final
@dataclass(frozen=True, slots=True)
class HeldLines:
    """Lines in memory."""

    lines: Sequence[str]

    def chunks(self) -> Iterator[bytes]:
        for start in range(0, len(self.lines), _LINES):
            yield "".join(f"{line}\n" for line in self.lines[start : start + _LINES]).encode()

    def discard(self) -> None:
        """Do nothing: the lines are only in memory."""


@final
@dataclass(frozen=True, slots=True)
class PendingAnswers:
    """Computed answers, not yet in the output."""

    target: OutputTarget
    lines: PendingLines | None
    header: str | None

    def publish(self) -> None:
        """Write them to the output.

        Raises:
            SourceError: the output cannot be opened.
            OSError: it cannot be written to its end; the error names it.
        """
        if self.lines is None:
            return
        output = self.target.output
        try:
            with ExitStack() as stack:
                stack.callback(self.discard)
                if self.target.form == "trig":
                    self._document()
                else:
                    self._lines(stack)
        except OSError as error:
            # Where a write fails, as on a full disk, the system does not say of which file.
            error.filename = error.filename or ("standard output" if output == "-" else output)
            raise

    @property
    def is_empty(self) -> bool:
        """Whether there are no answers; False for Kafka, where it is unknown."""
        return self.lines is not None and next(self._chunks(), None) is None

    def discard(self) -> None:
        """Forget the answers."""
        if self.lines is not None:
            self.lines.discard()

    def _lines(self, stack: ExitStack) -> None:
        out = self._opened(stack)
        if self.header is not None:
            out.write(f"{self.header}\n".encode())
        for chunk in self._chunks():
            out.write(chunk)
        out.flush()

    def _opened(self, stack: ExitStack) -> BinaryIO:
        if self.target.output == "-":
            sys.stdout.flush()
            return sys.stdout.buffer
        path = Path(self.target.output)
        try:
            # A file is replaced once it is complete; a pipe or device can only be written to.
            is_device = path.exists() and not path.is_file()
            place = path if is_device else stack.enter_context(replaced(path))
            return stack.enter_context(place.open("wb"))
        except OSError as error:
            raise SourceError(f"cannot write {path}: {error.strerror}") from None

    def _document(self) -> None:
        from quadweir.sinks.rdf_documents import Syntax, write_file, write_stream

        if self.target.output == "-":
            write_stream(self._chunks(), sys.stdout.buffer, Syntax.TRIG)
            sys.stdout.buffer.flush()
        else:
            write_file(self._chunks(), Path(self.target.output), Syntax.TRIG)

    def _chunks(self) -> Iterator[bytes]:
        """Chunks of whole lines."""
        assert self.lines is not None
        return self.lines.chunks()


def is_ordered(query: ContinuousQuery) -> bool:
    """Whether ORDER BY gives the answers of a report an order."""
    from quadweir.algebra.patterns import Distinct, OrderBy, Project, Reduced, Slice

    pattern = query.pattern
    while isinstance(pattern, Slice | Distinct | Reduced | Project):
        pattern = pattern.input
    return isinstance(pattern, OrderBy)


def _either(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + f" or {names[-1]}"
