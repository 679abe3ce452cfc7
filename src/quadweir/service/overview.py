"""How everything is, now and over the last ten minutes, as the page draws it.

A thread of its own asks the networks every two seconds. Requests get what it found.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.service.sinks import TAP

if TYPE_CHECKING:
    from quadweir.runtime.network.graph import TemplateFacts
    from quadweir.runtime.network.status import QueryStatus
    from quadweir.service.servednetwork import ServedNetwork

STEP_MS: Final = 2_000
SAMPLES: Final = 300
MOST_QUERIES: Final = 200
SERIES: Final = (
    "input_rate", "answer_rate", "lag_ms", "through", "batch_ms", "kernel_ms", "state_ms",
    "spark_ms", "state_bytes", "held", "late", "dead_letters", "queries",
)  # fmt: skip
_RATE_SAMPLES: Final = 5


@final
@dataclass(frozen=True)
class StreamNode:
    """A stream, for the drawing: its IRI, the kind of its source, and how fast it is."""

    iri: str
    source: str
    rate: float | None = None


@final
@dataclass(frozen=True)
class MappingNode:
    """A mapping, for the drawing: its name, and the streams that it reads and makes."""

    name: str
    sources: tuple[str, ...]
    streams: tuple[str, ...]


@final
@dataclass
class NetworkSample:
    """What was found out about a network."""

    network: ServedNetwork
    metrics: dict[str, Any]
    status: dict[str, QueryStatus]
    templates: list[TemplateFacts]
    template_ms: Mapping[int, float]
    stream_rates: Mapping[str, float]

    def table(self) -> dict[str, Any]:
        """Return it as JSON."""
        from quadweir.service.problems import problem_of

        network = self.network
        return {
            "id": network.name,
            "state": network.state,
            "error": problem_of(network.error) if network.error is not None else None,
            "streams": sorted(network.streams),
            "queries": self.metrics["queries"],
            "templates": self.metrics["templates"],
            "metrics": self.metrics,
        }


@final
@dataclass
class _History:
    """Values at the last instants; None where there was none."""

    rows: deque[dict[str, dict[str, Any]]] = field(default_factory=lambda: deque(maxlen=SAMPLES))

    def columns(self, keys: Iterable[str]) -> dict[str, dict[str, list[Any]]]:
        keys = tuple(keys)
        names = {name for row in self.rows for name in row}
        return {
            name: {key: [row.get(name, {}).get(key) for row in self.rows] for key in keys}
            for name in sorted(names)
        }


@final
class Overview:
    """Samples of the networks.

    Args:
        networks: returns the networks.
        streams: returns the streams that are known.
        mappings: returns the mappings.
        clock: milliseconds since 1970; tests pass their own.
    """

    def __init__(
        self,
        networks: Callable[[], list[ServedNetwork]],
        streams: Callable[[Mapping[str, float]], Iterable[StreamNode]],
        mappings: Callable[[], Iterable[MappingNode]],
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._networks = networks
        self._streams = streams
        self._mappings = mappings
        self._clock = clock
        self._samples: list[NetworkSample] = []
        self._nodes: list[StreamNode] = []
        self._times: deque[int] = deque(maxlen=SAMPLES)
        self._of_networks = _History()
        self._of_streams = _History()
        # The answers of all queries at the last instants.
        self._counts: deque[tuple[int, dict[str, int]]] = deque(maxlen=_RATE_SAMPLES + 1)

    def sample(self) -> dict[str, Any]:
        """Ask all networks, and return what is new in the history."""
        now = self._clock()
        samples = [_sampled(each) for each in self._networks()]
        rates: dict[str, float] = {}
        for each in samples:
            for iri, rate in each.stream_rates.items():
                rates[iri] = max(rate, rates.get(iri, 0.0))
        self._nodes = list(self._streams(rates))
        self._samples = samples
        counts = {name: status.answers for each in samples for name, status in each.status.items()}
        self._counts.append((now, counts))
        networks = {
            each.network.name: {key: each.metrics.get(key) for key in SERIES} for each in samples
        }
        streams = {each.iri: {"rate": each.rate} for each in self._nodes}
        self._times.append(now)
        self._of_networks.rows.append(networks)
        self._of_streams.rows.append(streams)
        return {"t": now, "networks": networks, "streams": streams}

    def rate_of(self, query: str) -> float:
        """Return how many answers a query gave in a second, lately."""
        if len(self._counts) < 2:
            return 0.0
        (began, before), (now, counts) = self._counts[0], self._counts[-1]
        more = counts.get(query, 0) - before.get(query, 0)
        return max(0, more) * 1000 / max(1, now - began)

    def status_of(self, query: str) -> QueryStatus | None:
        """Return how a query was at the last sample."""
        return next((each.status[query] for each in self._samples if query in each.status), None)

    def samples(self) -> list[NetworkSample]:
        """Return the last samples."""
        return self._samples

    def stream_rate(self, iri: str) -> float | None:
        """Return how fast a stream was at the last sample."""
        return next((each.rate for each in self._nodes if each.iri == iri), None)

    def lag_of(self, iri: str) -> int | None:
        """Return the least lag of the networks that read a stream."""
        lags = [
            each.metrics["lag_ms"]
            for each in self._samples
            if iri in each.network.streams and each.metrics.get("lag_ms") is not None
        ]
        return min(lags, default=None)

    def document(self, *, history: bool = True, most_queries: int = MOST_QUERIES) -> dict[str, Any]:
        """Return everything that the page draws."""
        nodes: list[dict[str, Any]] = []
        edges: list[dict[str, Any]] = []
        read: dict[str, list[str]] = {}
        for each in self._samples:
            for iri in each.network.streams:
                read.setdefault(iri, []).append(each.network.name)
        rates = {each.iri: each.rate for each in self._nodes}
        for node in self._nodes:
            nodes.append(
                {
                    "id": f"stream:{node.iri}",
                    "kind": "stream",
                    "label": node.iri,
                    "source": node.source,
                    "rate": node.rate,
                    "networks": read.get(node.iri, []),
                }
            )
        for mapping in self._mappings():
            nodes.append(
                {"id": f"mapping:{mapping.name}", "kind": "mapping", "label": mapping.name}
            )
            own = f"mapping:{mapping.name}"
            edges += [_edge(f"stream:{one}", own, rates.get(one)) for one in mapping.sources]
            edges += [_edge(own, f"stream:{one}", rates.get(one)) for one in mapping.streams]
        more = 0
        for each in self._samples:
            own_nodes, own_edges, hidden = self._of_network(each, rates, most_queries)
            nodes += own_nodes
            edges += own_edges
            more += hidden
        found = {
            "networks": [each.table() for each in self._samples],
            "nodes": nodes,
            "edges": edges,
            "more_queries": more,
        }
        if history:
            found["history"] = {
                "step_ms": STEP_MS,
                "t": list(self._times),
                "networks": self._of_networks.columns(SERIES),
                "streams": self._of_streams.columns(("rate",)),
            }
        return found

    def _of_network(
        self, sample: NetworkSample, rates: Mapping[str, float | None], most: int
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
        """Return the nodes and edges of a network, and how many queries are left out."""
        name = sample.network.name
        nodes, edges = [], []
        members = {each.number: each.members for each in sample.templates}
        for template in sample.templates:
            own = f"template:{name}:{template.number}"
            nodes.append(
                {
                    "id": own,
                    "kind": "template",
                    "label": f"template {template.number}",
                    "network": name,
                    "members": template.members,
                    "batch_ms": sample.template_ms.get(template.number),
                    "reason": template.reason or None,
                    "key": template.key,
                    "patterns": list(template.patterns),
                }
            )
            for iri in template.streams:
                edge = _edge(f"stream:{iri}", own, rates.get(iri))
                edges.append({**edge, "shared": iri in template.shares})
        shown = list(_first(sample, most, self.rate_of))
        for status in shown:
            rate = self.rate_of(status.id)
            spent = sample.template_ms.get(status.template)
            nodes.append(
                {
                    "id": f"query:{status.id}",
                    "kind": "query",
                    "label": status.id,
                    "network": name,
                    "template": status.template,
                    "state": status.state,
                    "reason": status.reason,
                    "answers": status.answers,
                    "rate": rate,
                    "batch_ms": spent / max(1, members.get(status.template, 1))
                    if spent is not None
                    else None,
                }
            )
            if status.template in members:
                own = f"template:{name}:{status.template}"
                edges.append(_edge(own, f"query:{status.id}", rate))
        return nodes, edges, len(sample.status) - len(shown)


def _first(sample: NetworkSample, most: int, rate: Callable[[str], float]) -> Iterator[QueryStatus]:
    """Yield the queries that are worth showing: stopped ones, then those with most answers."""
    listed = sample.status.values()
    if len(listed) > most:
        listed = sorted(  # type: ignore[assignment]
            listed, key=lambda each: (each.state != "stopped", -rate(each.id), -each.answers)
        )[:most]
    yield from listed


def _edge(begin: str, end: str, rate: float | None) -> dict[str, Any]:
    return {"from": begin, "to": end, "rate": rate}


def _sampled(network: ServedNetwork) -> NetworkSample:
    network.check()
    status = {each.id: each for each in network.status() if not each.id.startswith(TAP)}
    metrics = network.metrics()
    metrics["queries"] = sum(each.state != "stopped" for each in status.values())
    # Queries that only look into streams are nobody's.
    members = Counter(each.template for each in status.values())
    templates = [
        replace(each, members=members[each.number])
        for each in network.templates()
        if members[each.number]
    ]
    metrics["templates"] = len(templates)
    return NetworkSample(
        network,
        metrics,
        status,
        templates,
        network.template_ms(),
        network.stream_rates(),
    )
