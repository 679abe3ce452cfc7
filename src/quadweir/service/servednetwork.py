"""One network of the service: it starts, fails, starts again, and is asked how it is."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.errors import InternalError, QuadweirError, SourceError
from quadweir.runtime.network.graph import TemplateFacts, find_query, template_facts
from quadweir.service.sinks import TAP, LetterSink, RingSink

if TYPE_CHECKING:
    from quadweir.runtime.network.network import Network
    from quadweir.runtime.network.queries import NetworkQuery
    from quadweir.runtime.network.status import QueryStatus
    from quadweir.service.answerring import AnswerRing
    from quadweir.service.settings import ServedApplication
    from quadweir.service.sinks import DeadLetterBox

_FIRST_WAIT_S: Final = 5.0
_MOST_WAIT_S: Final = 300.0


@final
class ServedNetwork:
    """A network, with the folder of its checkpoint and of its answers.

    Args:
        name: its id.
        streams: the streams that it reads.
        network: the network.
        folder: its folder.
        ring: its last answers.
        taps: what its taps gave lately.

    Attributes:
        state: `starting`, `running`, `failed` or `stopped`.
        error: why it failed.
        is_lasting: whether it stays when its last query leaves.
    """

    def __init__(
        self,
        name: str,
        streams: frozenset[str],
        network: Network,
        folder: Path,
        ring: AnswerRing,
        taps: AnswerRing,
        *,
        is_lasting: bool = False,
    ) -> None:
        self.name = name
        self.streams = streams
        self.network = network
        self.folder = folder
        self.ring = ring
        self.taps = taps
        self.is_lasting = is_lasting
        self.state = "starting"
        self.error: QuadweirError | None = None
        self._lock = threading.Lock()
        self._wait_s = _FIRST_WAIT_S
        self._again_at = 0.0
        self._start: Callable[[], None] = lambda: None

    @property
    def number(self) -> int:
        """The number in its id."""
        return int(self.name[1:])

    def ring_of(self, query: str) -> AnswerRing:
        """Return the ring that has the answers of a query."""
        return self.taps if query.startswith(TAP) else self.ring

    def forget(self, queries: Sequence[str]) -> None:
        """Forget the answers of queries."""
        self.ring.forget(queries)
        self.taps.forget(queries)

    def start(
        self,
        app: ServedApplication,
        letters: DeadLetterBox,
        refused: Callable[[str, QuadweirError], None],
    ) -> None:
        """Start it with the queries of its checkpoint and those registered with it.

        Raises:
            QuadweirError: it cannot start.
        """

        def begin() -> None:
            self.network.start(
                RingSink(self.ring, self.taps, app.output if self.is_lasting else None),
                checkpoint=self.folder / "checkpoint",
                every=app.every,
                dead_letters=LetterSink(letters, self.name),
                refused=refused,
            )

        self._start = begin
        self._begin()
        if self.error is not None:
            raise self.error

    def _begin(self) -> None:
        self.state, self.error = "starting", None
        try:
            self._start()
        except QuadweirError as error:
            self._fail(error)
        except Exception as error:  # Spark's own errors
            self._fail(SourceError(f"the network {self.name} cannot start", detail=str(error)))
        else:
            self.state = "running"

    def _fail(self, error: QuadweirError) -> None:
        self.state, self.error = "failed", error
        self._again_at = time.monotonic() + self._wait_s
        self._wait_s = min(self._wait_s * 2, _MOST_WAIT_S)

    def check(self) -> None:
        """Look whether it still runs; start it again after a while if it failed."""
        with self._lock:
            if self.state == "running" and not self.network.isActive:
                error = self.network.exception()
                self.network.stop()
                self._fail(_failure(self.name, error))
            elif self.state == "running":
                self._wait_s = _FIRST_WAIT_S
            elif self.state == "failed" and time.monotonic() >= self._again_at:
                self._begin()

    def stop(self) -> None:
        """Stop it; it can start again from its folder."""
        with self._lock:
            self.network.stop()
            if self.state != "stopped":
                self.ring.close()
                self.taps.close()
            self.state = "stopped"

    def remove(self) -> None:
        """Stop it, and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- how it is ---

    def query(self, name: str) -> NetworkQuery | None:
        """Return a query; None if it is not there, or not known before the network has started."""
        try:
            return find_query(self.network, name)
        except QuadweirError:
            return None

    def status(self) -> list[QueryStatus]:
        """Return how each of its queries is; nothing before it has started."""
        try:
            return self.network.status()
        except QuadweirError:
            return []

    def templates(self) -> list[TemplateFacts]:
        """Return its templates; nothing before it has started."""
        try:
            return template_facts(self.network)
        except QuadweirError:
            return []

    def metrics(self) -> dict[str, Any]:
        """Return its metrics."""
        return self.network.metrics()

    def template_ms(self) -> Mapping[int, float]:
        """Return how long each template took in the last batch."""
        try:
            return self.network.template_costs()
        except QuadweirError:
            return {}

    def stream_rates(self) -> Mapping[str, float]:
        """Return how many rows of each stream came in a second, in the last batch."""
        try:
            progress = self.network.lastProgress
        except QuadweirError:
            return {}
        sources = progress.sources if progress is not None else []
        streams = sorted(self.streams)
        if len(sources) != len(streams):
            return {}
        rates = (each.inputRowsPerSecond for each in sources)
        return {
            iri: float(rate)
            for iri, rate in zip(streams, rates, strict=True)
            if rate == rate and rate is not None
        }


def _failure(name: str, error: Any) -> QuadweirError:
    if error is None:
        return SourceError(
            f"the input of the network {name} has ended",
            hint="A replay ends unless it says loop = true.",
        )
    text = str(error)
    if "INTERNAL" in text.upper():
        return InternalError(f"the network {name} stopped", detail=text)
    return SourceError(f"the network {name} stopped", detail=text[:2000])
