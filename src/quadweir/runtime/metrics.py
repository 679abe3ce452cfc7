"""How a running query fares: what Spark says of its batches, added up; for Prometheus too."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, final

from quadweir.errors import UsageError
from quadweir.runtime.continuous import FIRST_METRICS, METRICS
from quadweir.runtime.feeds import METRICS as INPUT_METRICS

# As in the kernel: nothing is known yet, and all is known.
_EDGE: Final = 2**59
_RATE_SECONDS: Final = 10.0
_COUNTED: Final = (
    (INPUT_METRICS, ("statements", "dead_letters")),
    (FIRST_METRICS, ("late",)),
    (METRICS, ("answers", "late")),
)


@final
class Meter:
    """Adds up Spark's reports of batches, each once.

    Args:
        clock: seconds that only grow; tests pass their own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: tuple[str, int] = ("", -1)
        self._history: list[tuple[float, int, int]] = []
        self._found: dict[str, Any] = {
            "batches": 0, "statements": 0, "dead_letters": 0, "answers": 0, "late": 0,
            "through": None, "held": 0, "state_rows": 0, "state_bytes": 0,
            "batch_ms": None, "kernel_ms": None, "state_ms": None, "spark_ms": None,
        }  # fmt: skip
        self._lock = threading.Lock()

    def add(self, reports: Iterable[Any]) -> None:
        """Take in reports in their order; those that were taken in before change nothing."""
        with self._lock:
            for report in reports:
                run, batch = str(report.runId), int(report.batchId)
                if run == self._seen[0] and batch <= self._seen[1]:
                    continue  # Spark also repeats the number of the last while nothing arrives
                self._seen = (run, batch)
                self._add(report)
            known = self._found["statements"], self._found["answers"]
            if not self._history or self._history[-1][1:] != known:
                self._history.append((self._clock(), *known))

    def _add(self, report: Any) -> None:
        found, observed = self._found, report.observedMetrics
        found["batches"] += 1
        for name, keys in _COUNTED:
            row = observed.get(name)
            for key in keys:
                found[key] += (row[key] or 0) if row is not None else 0
        if INPUT_METRICS not in observed:
            found["statements"] += report.numInputRows
        told = observed.get(METRICS)
        stages = [each for each in (observed.get(FIRST_METRICS), told) if each is not None]
        if told is not None and told["through"] is not None:
            through = told["through"]
            found["through"] = through if abs(through) < _EDGE else None
            found["held"] = sum(each["held"] or 0 for each in stages)
            found["kernel_ms"] = sum(each["kernel_ms"] or 0 for each in stages)
        found["batch_ms"] = report.batchDuration
        operators = report.stateOperators
        if told is not None and "state_ms" in told:
            # Shards beside the driver keep their state themselves.
            for key in ("state_rows", "state_bytes", "state_ms"):
                found[key] = sum(each[key] for each in stages)
        elif operators:
            found["state_rows"] = sum(each.numRowsTotal for each in operators)
            found["state_bytes"] = sum(each.memoryUsedBytes for each in operators)
            # Spark adds up what its tasks took side by side.
            found["state_ms"] = sum(
                round(each.commitTimeMs / max(1, each.numShufflePartitions)) for each in operators
            )
        known = (found["kernel_ms"] or 0) + (found["state_ms"] or 0)
        found["spark_ms"] = max(0, found["batch_ms"] - known)

    def metrics(self) -> dict[str, Any]:
        """Give totals, rates and how the last batch went."""
        with self._lock:
            found = dict(self._found)
            found["input_rate"], found["answer_rate"] = self._rates()
        through = found["through"]
        found["lag_ms"] = None if through is None else round(time.time() * 1000) - through
        return found

    def _rates(self) -> tuple[float, float]:
        now = self._clock()
        while len(self._history) > 2 and self._history[1][0] < now - _RATE_SECONDS:
            del self._history[0]
        if len(self._history) < 2:
            return 0.0, 0.0
        began, *first = self._history[0]
        seconds = max(now - began, 1e-3)
        last = self._history[-1][1:]
        return (last[0] - first[0]) / seconds, (last[1] - first[1]) / seconds


# --- for Prometheus ----------------------------------------------------------------------------

_EXPOSED: Final[tuple[tuple[str, str, str, str, float], ...]] = (
    ("batches", "batches_total", "counter", "Batches taken", 1),
    ("statements", "input_statements_total", "counter", "Statements read", 1),
    ("dead_letters", "dead_letters_total", "counter", "Records that could not be read", 1),
    ("answers", "answers_total", "counter", "Answers given", 1),
    ("late", "late_matches_total", "counter", "Matches of elements that came too late", 1),
    ("input_rate", "input_statements_per_second", "gauge", "Statements a second of late", 1),
    ("answer_rate", "answers_per_second", "gauge", "Answers a second of late", 1),
    ("lag_ms", "watermark_lag_seconds", "gauge", "How far the watermark is behind the clock", 1e-3),
    ("held", "mappings_held", "gauge", "Mappings that shards remember", 1),
    ("state_rows", "state_rows", "gauge", "Rows in Spark's state store", 1),
    ("state_bytes", "state_bytes", "gauge", "Bytes in Spark's state store", 1),
    ("batch_ms", "batch_seconds", "gauge", "Time of the last batch", 1e-3),
    ("kernel_ms", "batch_python_seconds", "gauge", "Part of it in shards, in Python", 1e-3),
    ("state_ms", "batch_state_seconds", "gauge", "Part of it for writing state", 1e-3),
    ("spark_ms", "batch_spark_seconds", "gauge", "The rest of it", 1e-3),
)


def exposition(queries: Mapping[str, Mapping[str, Any]]) -> str:
    r"""Write the metrics of queries, by their names, as Prometheus reads them.

    Spec: https://prometheus.io/docs/instrumenting/exposition_formats/

    >>> print(exposition({'a"b': {"answers": 3, "lag_ms": None, "batch_ms": 250}}), end="")
    # HELP quadweir_answers_total Answers given
    # TYPE quadweir_answers_total counter
    quadweir_answers_total{query="a\"b"} 3
    # HELP quadweir_batch_seconds Time of the last batch
    # TYPE quadweir_batch_seconds gauge
    quadweir_batch_seconds{query="a\"b"} 0.25
    """
    lines = []
    for key, name, kind, told, scale in _EXPOSED:
        samples = [
            f'quadweir_{name}{{query="{_escaped(query)}"}} {found[key] * scale:.10g}'
            for query, found in queries.items()
            if found.get(key) is not None
        ]
        if samples:
            lines += [f"# HELP quadweir_{name} {told}", f"# TYPE quadweir_{name} {kind}", *samples]
    return "".join(f"{line}\n" for line in lines)


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@final
class MetricsServer:
    """Answers `GET /metrics` on this machine only, until it is closed.

    Args:
        read: gives the metrics of each query by its name.
        port: where; 0 for any that is free, which `port` then tells.

    Raises:
        UsageError: the port is taken.
    """

    def __init__(self, read: Callable[[], Mapping[str, Mapping[str, Any]]], port: int) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/metrics":
                    self.send_error(404)
                    return
                body = exposition(read()).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing of requests."""

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except OSError as error:
            raise UsageError(
                f"port {port} cannot be used for metrics: {error.strerror}",
                hint="Choose another with --metrics-port.",
            ) from None
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
