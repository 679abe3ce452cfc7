"""The handle of a network: what can be asked about its queries, while it runs and afterwards."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from quadweir.errors import UsageError
from quadweir.runtime.handle import RunHandle
from quadweir.runtime.metrics import QueryMeter
from quadweir.runtime.network.explain import network_svg, network_text, query_text
from quadweir.runtime.network.status import QueryCost, QueryStatus, costs_of, status_of
from quadweir.runtime.network.waiting import WaitingQueries
from quadweir.runtime.pictures import handle_html

if TYPE_CHECKING:
    from quadweir.runtime.host.base import Run
    from quadweir.runtime.network.registry import QueryRegistry
    from quadweir.runtime.network.running import NetworkRun
    from quadweir.runtime.network.templates import NetworkInputs


class NetworkHandle(RunHandle):
    """What a network says about itself; `Network` changes its queries, and starts and ends it.

    Args:
        inputs: what its queries read.
    """

    _kind = "network"
    _how_to_start = "Call start(checkpoint=...)."

    def __init__(self, inputs: NetworkInputs) -> None:
        self._inputs = inputs
        self._waiting = WaitingQueries()
        self._meter = QueryMeter()
        self._running: NetworkRun | None = None
        # How the queries were when the last run ended.
        self._ended: NetworkRun | None = None

    @property
    def _latest(self) -> NetworkRun | None:
        return self._running or self._ended

    @property
    def _last_run(self) -> Run | None:
        return self._latest.run if self._latest is not None else None

    def _known(self) -> NetworkRun:
        """Return the present or last run of the network.

        Raises:
            UsageError: there is none.
        """
        if self._latest is None:
            raise self._not_started()
        return self._latest

    def queries(self) -> list[str]:
        """List the names of the queries that run, are paused, or wait for the start."""
        if self._running is None:
            return list(self._waiting.texts)
        return [each.id for each in self._running.registry.queries()]

    def status(self) -> list[QueryStatus]:
        """Return how each query is; those that were stopped come last."""
        run = self._known()
        return [
            status_of(
                each, run.registry.members_of(each.template), run.delivery.counts[each.number]
            )
            for each in (*run.registry.queries(), *run.registry.stopped())
        ]

    def most_expensive(self, count: int = 10) -> list[QueryCost]:
        """Return the queries that took most of the last batch, the most expensive first.

        The queries of a template run together: each is charged with an equal share of its time and
        state, and with its own answers.
        """
        run = self._known()
        return costs_of(run.registry.queries(), run.control.units, run.delivery.counts)[:count]

    def template_costs(self) -> dict[int, float]:
        """Return the milliseconds that shards took for each template in the last batch."""
        found: Counter[int] = Counter()
        for each in self._known().control.units:
            found[each.template] += each.microseconds
        return {template: microseconds / 1000 for template, microseconds in found.items()}

    def explain(self, query: str | None = None) -> str:
        """Say which queries share what; for one query, also how it runs.

        Raises:
            UsageError: there is no such query, or the network was not started.
        """
        registry: QueryRegistry = self._known().registry
        if query is None:
            streams = sorted(self._inputs.feeds)
            return network_text(
                registry.templates(), registry.queries(), streams, self._inputs.shards
            )
        found = registry.get(query)
        if found is None:
            raise UsageError(
                f"there is no query {query!r}", hint="`network.queries()` lists the queries."
            )
        return query_text(found, registry.templates(), registry.queries())

    def draw(self) -> str:
        """Draw streams, templates and queries as SVG.

        Raises:
            UsageError: the network was not started.
        """
        registry = self._known().registry
        return network_svg(registry.templates(), registry.queries(), sorted(self._inputs.feeds))

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the network since it was first started here.

        They are those of `RegisteredQuery.metrics`, with `queries` and `templates`, the numbers of
        queries that run and of what they share.
        """
        run = self._latest
        if run is not None:
            self._meter.add(run.run.recentProgress)
        found = self._meter.metrics()
        queries = run.registry.queries() if run is not None else []
        found["queries"] = len(queries)
        found["templates"] = len({each.template for each in queries})
        return found

    def _repr_html_(self) -> str:
        """Show the network in a notebook: its state, rates and watermark, and its queries."""
        has_run = self._latest is not None
        state = "running" if self.isActive else "stopped" if has_run else "not started"
        found = self.metrics()
        notes = [f"{found['queries']} queries, {found['templates']} templates"]
        picture = self.draw() if self._running is not None else ""
        return handle_html("network", state, found, picture, notes)
