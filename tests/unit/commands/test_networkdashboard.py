"""The display of a network: what is shown of its queries."""

from __future__ import annotations

import io

from rich.console import Console

from quadweir.commands.networkdashboard import network_panel, queries_of
from quadweir.runtime.network.status import QueryCost, QueryStatus

FOUND = {
    "statements": 1200, "answers": 3, "late": 2, "dead_letters": 1, "ahead": 0, "held": 40,
    "lag_ms": 1500, "through": 1_700_000_000_000,
    "batches": 7, "batch_ms": 300, "kernel_ms": 20, "state_ms": 30, "spark_ms": 250,
    "input_rate": 400.0, "answer_rate": 1.0, "state_rows": 6, "state_bytes": 2_000_000,
}  # fmt: skip
STATUS = [
    QueryStatus("rooms", "running", None, 1, 1, 4000),
    QueryStatus("floors", "paused", None, 1, 1, 0),
    QueryStatus("bad [/b]", "stopped", "its sink failed: no space", 2, 0, 7),
]
COSTS = [QueryCost("rooms", 12.5, 0.75, 1200.0, 4000), QueryCost("floors", 4.2, 0.25, 10.0, 0)]
NETWORK = {**FOUND, "queries": 2, "templates": 1}


def test_queries_costs_and_reasons_are_shown() -> None:
    out = io.StringIO()
    console = Console(file=out, width=120, color_system=None)
    console.print(network_panel("building [b]", NETWORK, STATUS, COSTS))
    shown = out.getvalue()
    for text in (
        "building [b]", "2 queries in 1 templates, 1 paused, 1 stopped", "1,200 so far",
        "rooms", "12.50", "75%", "1,200", "4,000", "bad [/b]", "its sink failed: no space",
    ):  # fmt: skip
        assert text in shown


def test_what_is_not_there_is_not_named() -> None:
    assert queries_of(NETWORK, STATUS[:1]) == "2 queries in 1 templates"
