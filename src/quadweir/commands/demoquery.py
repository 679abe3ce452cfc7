"""The continuous query of the demo, over the RDF that the demo produces."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quadweir.commands.interrupts import Interrupts
    from quadweir.runtime.query import RegisteredQuery

_SINK_LOG: Final = ".quadweir-sink.json"
_LOOK_SECONDS: Final = 0.25
_PATIENCE_SECONDS: Final = 120.0
_MOST_SHOWN: Final = 5


@final
@dataclass
class JamQuery:
    """The query `bench/queries/jams.rq` (where cars crawl) over the stream of speeds as it is
    written.

    Attributes:
        spark: the session.
        stream: the IRI of the stream.
        folder: the folder of the stream's files.
        answers: the folder of the answers.
        checkpoint: the state of the query.
    """

    spark: SparkSession
    stream: str
    folder: Path
    answers: Path
    checkpoint: Path
    _running: RegisteredQuery | None = None

    def start_when_ready(self) -> None:
        """Start when the stream has its first files; until then do nothing."""
        if self._running is not None or not (self.folder / _SINK_LOG).is_file():
            return
        from importlib.resources import files

        from quadweir.engine import Engine
        from quadweir.sinks.files import FileSink
        from quadweir.sinks.lineformat import LineFormat
        from quadweir.sources.declare import FolderSource, Format, StreamDeclaration

        engine = Engine(self.spark)
        engine.declare(
            StreamDeclaration(
                iri=self.stream,
                source=FolderSource(path=self.folder, pattern="*.stream", watch=True),
                format=Format.TIMED_LINES,
            )
        )
        text = files("quadweir.bench").joinpath("queries/jams.rq").read_text(encoding="utf-8")
        self._running = engine.query(text)
        self._running.start(
            FileSink(self.answers, LineFormat.ANSWERS_JSONL),
            checkpoint=self.checkpoint,
            name="demo-jams",
        )

    @property
    def was_tried(self) -> bool:
        """Whether a batch went through, or the query failed."""
        running = self._running
        return running is not None and (running.lastProgress is not None or not running.isActive)

    def finish(self, interrupts: Interrupts) -> None:
        """Wait until all written RDF has been answered, and stop."""
        if self._running is None:
            return
        try:
            last_change, before = time.monotonic(), -1
            while not interrupts.seen and (done := self._files_read()) < self._files_there():
                if done != before:
                    last_change, before = time.monotonic(), done
                self._check(time.monotonic() - last_change)
                time.sleep(_LOOK_SECONDS)
        finally:
            self._running.stop()

    def stop(self) -> None:
        """Stop at once."""
        if self._running is not None:
            self._running.stop()

    @property
    def count(self) -> int:
        """How many answers were written."""
        return sum(len(_lines(file)) for file in self.answers.glob("*.jsonl"))

    def latest(self) -> str:
        """The answers of the last report that had any, in words."""
        newest = max(self.answers.glob("*.jsonl"), default=None)
        found = [json.loads(line) for line in _lines(newest)] if newest is not None else []
        if not found:
            return ""
        last = max(answer["t"] for answer in found)
        lines = [_worded(answer) for answer in found if answer["t"] == last]
        more = [f"and {len(lines) - _MOST_SHOWN} more"] if len(lines) > _MOST_SHOWN else []
        return "\n".join([*sorted(lines)[:_MOST_SHOWN], *more])

    def _files_there(self) -> int:
        return sum(1 for _ in self.folder.glob("*.stream"))

    def _files_read(self) -> int:
        assert self._running is not None
        progress = self._running.lastProgress
        if progress is None:
            return 0
        return int(json.loads(progress.sources[0].endOffset)["files"])

    def _check(self, quiet_seconds: float) -> None:
        assert self._running is not None
        if self._running.isActive and quiet_seconds < _PATIENCE_SECONDS:
            return
        problem = self._running.exception()
        raise SourceError(
            "the query stopped before its stream ended",
            detail=str(problem or f"nothing for {quiet_seconds:.0f} s").strip(),
            hint="`quadweir doctor` checks what it needs.",
        )


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def _worded(answer: dict[str, dict[str, dict[str, str]]]) -> str:
    from datetime import UTC, datetime

    bound = answer["bindings"]
    moment = datetime.fromtimestamp(float(str(answer["t"])) / 1000, UTC)
    sensor = bound["sensor"]["value"].rpartition("/")[2]
    return f"{moment:%H:%M} sensor {sensor}: {float(bound['mean']['value']):.0f} km/h"
