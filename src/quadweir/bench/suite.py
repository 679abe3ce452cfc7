"""A benchmark in pieces: the result of each piece is kept, and the piece does not run again.

A piece is identified by everything it depends on: its section and name, its inputs, the version of
Quadweir and the machine. An interrupted run continues with the missing pieces.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from quadweir._version import __version__
from quadweir.bench.measure import commit
from quadweir.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DIGITS: Final = 16
_MOST_WORDS: Final = 500
FAILED: Final = "failed"
"""The section of a result that lists the failed pieces and their errors."""


@final
class Workbench:
    """The shared resources of pieces: a folder for data that several of them use, and one Spark
    session.

    Args:
        folder: where data is kept.
        cores: how many the session uses.
        spark: an existing session, which is not stopped.
    """

    def __init__(self, folder: Path, *, cores: int = 2, spark: SparkSession | None = None) -> None:
        self.folder = folder
        self.cores = cores
        self._spark = spark
        self._own = spark is None

    @property
    def spark(self) -> SparkSession:
        """The session, started when it is first asked for."""
        if self._spark is None:
            from quadweir.runtime.spark.session import build

            self._spark = build(
                app_name="quadweir-bench", master=f"local[{self.cores}]", shards=self.cores
            )
        return self._spark

    def without_spark(self) -> None:
        """Stop the session: the next measurement needs all cores."""
        if self._own and self._spark is not None:
            self._spark.stop()
            self._spark = None

    @contextmanager
    def made(self, name: str, inputs: Mapping[str, Any]) -> Iterator[tuple[Path, bool]]:
        """A folder of data for a name and inputs, and whether it still has to be filled.

        A folder that was not filled completely is filled again the next time.
        """
        import shutil

        folder = self.folder / f"{name}-{fingerprint(name, inputs)}"
        done = folder / "done"
        if done.exists():
            yield folder, False
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        yield folder, True
        done.touch()


class PieceFunction(Protocol):
    """The function that measures a piece."""

    def __call__(self, bench: Workbench, /) -> Any:
        """Measure; return a value that JSON can hold."""
        ...


@final
@dataclass(frozen=True, slots=True)
class BenchmarkPiece:
    """One piece of a benchmark.

    Attributes:
        section: the section of the report.
        name: its name in that section.
        inputs: everything that its result depends on, except version, commit and machine.
        work: the function that measures.
    """

    section: str
    name: str
    inputs: Mapping[str, Any]
    work: PieceFunction

    @property
    def key(self) -> str:
        """The name of its file."""
        about = {"inputs": self.inputs, "version": __version__, "commit": commit()}
        machine = {"machine": platform.machine(), "cores": os.cpu_count()}
        plain = "".join(letter if letter.isalnum() else "-" for letter in self.name)
        name = f"{self.section}-{plain}".lower()
        return f"{name}-{fingerprint(name, about | machine)}"


def fingerprint(*about: Any) -> str:
    """A short hash of everything that a result depends on.

    >>> fingerprint("a", {"x": 1}) == fingerprint("a", {"x": 1}) != fingerprint("a", {"x": 2})
    True
    """
    text = json.dumps(about, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def run(
    pieces: Iterable[BenchmarkPiece],
    folder: Path,
    bench: Workbench,
    *,
    on_piece: Callable[[BenchmarkPiece, bool], None] = lambda _piece, _known: None,
) -> dict[str, list[dict[str, Any]]]:
    """Run the pieces that have no result yet; return the results by section.

    Args:
        pieces: the pieces, in the order in which they run.
        folder: where results are kept.
        bench: their shared resources.
        on_piece: called before each piece; its second argument says whether the result is known
        already.

    Raises:
        SourceError: the folder cannot be written.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"cannot write to {folder}: {error.strerror or error}") from error
    for piece in pieces:
        file = folder / f"{piece.key}.json"
        known = _read(file)
        on_piece(piece, known is not None)
        if known is None:
            began = time.perf_counter()
            try:
                result = piece.work(bench)
            except Exception as error:
                # A failure does not stop the other pieces; the next run tries the piece again.
                why = f"{type(error).__name__}: {error}"[:_MOST_WORDS]
                found.setdefault(FAILED, []).append(
                    {"name": f"{piece.section}: {piece.name}", "result": why}
                )
                continue
            known = {
                "name": piece.name,
                "inputs": dict(piece.inputs),
                "seconds": round(time.perf_counter() - began, 2),
                "result": result,
            }
            # The file is renamed into place, so it is complete or absent.
            hidden = folder / f".{file.name}.{os.getpid()}"
            hidden.write_text(json.dumps(known, indent=1), encoding="utf-8")
            hidden.rename(file)
        found.setdefault(piece.section, []).append(known)
    return found


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "result" in found else None
