"""A server of the metrics of running queries, with Prometheus' own client library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quadweir.errors import UsageError

if TYPE_CHECKING:
    from quadweir.runtime.network.network import Network

Metrics = Mapping[str, Mapping[str, Any]]
"""The metrics of each query, by its name."""

MOST_QUERIES: Final = 1000
"""A network reports the answers of so many queries one by one."""

# The key of a metric, its name for Prometheus, what it says, and its unit there. The library adds
# `_total` to the names of counters.
_COUNTERS: Final = (
    ("batches", "batches", "Batches taken"),
    ("statements", "input_statements", "Statements read"),
    ("dead_letters", "dead_letters", "Records that could not be read"),
    ("ahead", "ahead_dead_letters", "Dead letters too far ahead in time"),
    ("answers", "answers", "Answers given"),
    ("late", "late_matches", "Matches of elements that came too late"),
    ("shard_moves", "shard_moves", "Shards that were on another executor than before"),
    ("executors_lost", "executors_lost", "Executors with shards that were lost"),
)
_GAUGES: Final = (
    ("input_rate", "input_statements_per_second", "Statements per second, lately", 1),
    ("answer_rate", "answers_per_second", "Answers per second, lately", 1),
    ("lag_ms", "watermark_lag_seconds", "How far the watermark is behind the clock", 1e-3),
    ("held", "mappings_held", "Mappings that shards remember", 1),
    ("state_rows", "state_rows", "Rows in the state store", 1),
    ("state_bytes", "state_bytes", "Bytes in the state store", 1),
    ("batch_ms", "batch_seconds", "Time of the last batch", 1e-3),
    ("kernel_ms", "batch_python_seconds", "Part of it in shards, in Python", 1e-3),
    ("state_ms", "batch_state_seconds", "Part of it for writing state", 1e-3),
    ("spark_ms", "batch_spark_seconds", "The rest of it", 1e-3),
    ("backlog", "backlog", "Records or files that wait in the sources", 1),
    ("busy", "busy_ratio", "Share of the time that batches take", 1),
    ("executors", "executors", "Executors of the cluster", 1),
    ("recovery_ms", "recovery_seconds", "Time from the last loss of an executor to a batch", 1e-3),
)


@final
class QueryCollector(Collector):
    r"""Returns the metrics of queries when Prometheus asks; unknown values are left out.

    >>> from prometheus_client import generate_latest
    >>> registry = CollectorRegistry()
    >>> registry.register(QueryCollector(lambda: {'a"b': {"answers": 3, "lag_ms": None}}))
    >>> print(generate_latest(registry).decode(), end="")
    # HELP quadweir_answers_total Answers given
    # TYPE quadweir_answers_total counter
    quadweir_answers_total{query="a\"b"} 3.0

    Args:
        read: returns the metrics of each query, by its name.
        label: the label that has the name.
    """

    def __init__(self, read: Callable[[], Metrics], label: str = "query") -> None:
        self._read = read
        self._labels = [label]

    def collect(self) -> Iterator[Metric]:
        queries = self._read()
        for key, name, meaning in _COUNTERS:
            counter = CounterMetricFamily(f"quadweir_{name}", meaning, labels=self._labels)
            for query, value in _known(queries, key):
                counter.add_metric([query], value)
            if counter.samples:
                yield counter
        for key, name, meaning, scale in _GAUGES:
            gauge = GaugeMetricFamily(f"quadweir_{name}", meaning, labels=self._labels)
            for query, value in _known(queries, key):
                gauge.add_metric([query], value * scale)
            if gauge.samples:
                yield gauge
        places = GaugeMetricFamily(
            "quadweir_executor_shards", "Shards on an executor", labels=[*self._labels, "executor"]
        )
        for query, found in queries.items():
            for executor, count in (found.get("executor_shards") or {}).items():
                places.add_metric([query, executor], count)
        if places.samples:
            yield places


@final
class NetworkCollector(Collector):
    """Returns the metrics of a network, and the answers of its first `MOST_QUERIES` queries.

    Args:
        name: the name of the network.
        network: the network.
    """

    def __init__(self, name: str, network: Network) -> None:
        self._name = name
        self._network = network

    def collect(self) -> Iterator[Metric]:
        found = self._network.metrics()
        yield from QueryCollector(lambda: {self._name: found}, "network").collect()
        status = self._network.status()
        queries = GaugeMetricFamily(
            "quadweir_network_queries", "Queries of the network", labels=["network", "state"]
        )
        counts = Counter(each.state for each in status)
        for state in ("running", "paused", "stopped"):
            queries.add_metric([self._name, state], counts[state])
        yield queries
        templates = GaugeMetricFamily(
            "quadweir_network_templates", "Templates that queries share", labels=["network"]
        )
        templates.add_metric([self._name], found["templates"])
        yield templates
        answers = CounterMetricFamily(
            "quadweir_query_answers", "Answers of a query", labels=["network", "query"]
        )
        for each in status[:MOST_QUERIES]:
            answers.add_metric([self._name, each.id], each.answers)
        yield answers


def _known(queries: Metrics, key: str) -> Iterator[tuple[str, float]]:
    for query, found in queries.items():
        value = found.get(key)
        if value is not None:
            yield query, value


@final
class MetricsServer:
    """Answers `GET /metrics` on this machine only, until it is closed.

    Args:
        collector: returns the metrics when they are asked for.
        port: the port to listen on; 0 takes a free one, and `port` then has its number.

    Raises:
        UsageError: the port is in use.
    """

    def __init__(self, collector: Collector, port: int) -> None:
        # Not the library's own registry: it would add the state of this Python process.
        registry = CollectorRegistry()
        registry.register(collector)
        try:
            self._server, self._thread = start_http_server(port, "127.0.0.1", registry)
        except OSError as error:
            raise UsageError(
                f"port {port} cannot be used for metrics: {error.strerror}",
                hint="Choose another with --metrics-port.",
            ) from None
        self.port = int(self._server.server_address[1])

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
