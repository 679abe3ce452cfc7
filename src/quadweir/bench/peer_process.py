"""A peer that is a separate program, for example an engine on the JVM.

The program is started with the paths of the query and of the static data (N-Triples; an empty file if
there is none) as its last two arguments. It reads lines from standard input, each the IRI of a stream,
a tab, and a timed line; an empty line ends a batch, and the end of input ends all streams.
It then writes its answers to standard output, one JSON object a line, as `quadweir query --format
jsonl` does, and exits with 0.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import final

import pyarrow as pa
import pyarrow.compute as pc

from quadweir.bench.peers import Peer
from quadweir.bench.tables import timed_lines, write_static
from quadweir.bench.workloads import Question
from quadweir.errors import SourceError
from quadweir.testing import Answer, answers_from_json


@final
class ProcessPeer(Peer):
    """Runs a program for each question.

    Args:
        name: what the report calls it.
        command: how it is started; the paths of query and static data are added.
        dialect: the dialect of the queries that it wants.
    """

    def __init__(self, name: str, command: Sequence[str], *, dialect: str = "cqels") -> None:
        self.name = name
        self.dialect = dialect
        self._command = list(command)
        self._process: subprocess.Popen[str] | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._out: Path | None = None

    def start(self, question: Question, static: pa.Table | None) -> None:
        self._folder = TemporaryDirectory(prefix="quadweir-bench-")
        path = Path(self._folder.name)
        query, triples = path / "query.rq", path / "static.nt"
        query.write_text(question.text, encoding="utf-8")
        if static is None:
            triples.write_text("", encoding="utf-8")
        else:
            write_static(static, triples)
        # A file, because a pipe that nobody reads while batches are fed would block the program.
        self._out = path / "answers.jsonl"
        try:
            with self._out.open("w", encoding="utf-8") as out:
                self._process = subprocess.Popen(
                    [*self._command, str(query), str(triples)],
                    stdin=subprocess.PIPE,
                    stdout=out,
                    text=True,
                    encoding="utf-8",
                )
        except OSError as error:
            self.stop()
            raise SourceError(
                f"cannot start {self._command[0]}: {error.strerror or error}",
                hint="Check the command of the peer.",
            ) from error

    def feed(self, batch: Mapping[str, pa.Table]) -> None:
        assert self._process is not None and self._process.stdin is not None
        lines: list[tuple[int, str]] = []
        for iri, table in batch.items():
            texts = pc.binary_join_element_wise(f"{iri}\t", timed_lines(table), "")
            lines += zip(table.column("time").to_pylist(), texts.to_pylist(), strict=True)
        # A stable sort: elements of one instant keep their order within a stream.
        lines.sort(key=lambda line: line[0])
        try:
            self._process.stdin.writelines(f"{text}\n" for _, text in lines)
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def collect(self) -> list[Answer]:
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            raise self._ended() from None
        if self._process.wait():
            raise self._ended()
        assert self._out is not None
        lines = self._out.read_text(encoding="utf-8").splitlines()
        return answers_from_json(line for line in lines if line.strip())

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                with suppress(BrokenPipeError):
                    self._process.stdin.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _ended(self) -> SourceError:
        assert self._process is not None
        code = self._process.wait()
        return SourceError(f"{self.name} ended with exit code {code}", hint="See what it printed.")
