"""Prometheus reads what a query's meter knows."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from quadweir.errors import UsageError
from quadweir.runtime.metrics import QueryMeter
from quadweir.runtime.prometheus import MetricsServer, QueryCollector

DOORS: dict[str, Any] = {
    **QueryMeter().metrics(), "answers": 4, "ahead": 2, "state_ms": 30, "input_rate": 2.5
}  # fmt: skip


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    server = MetricsServer(
        QueryCollector(lambda: {"doors": DOORS, 'odd "\\\n name': {"answers": 1}}), 0
    )
    yield server
    server.close()


def page(server: MetricsServer) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
        assert "version=0.0.4" in answer.headers["Content-Type"]
        return str(answer.read().decode())


def test_the_page_has_the_names_units_and_types_that_are_documented(server: MetricsServer) -> None:
    families = {each.name: each for each in text_string_to_metric_families(page(server))}
    found = {
        (sample.name, sample.labels["query"]): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert found["quadweir_answers_total", "doors"] == 4
    assert found["quadweir_answers_total", 'odd "\\\n name'] == 1
    assert found["quadweir_ahead_dead_letters_total", "doors"] == 2
    assert found["quadweir_batch_state_seconds", "doors"] == 0.03
    assert found["quadweir_input_statements_per_second", "doors"] == 2.5
    assert families["quadweir_answers"].type == "counter"
    assert families["quadweir_batch_state_seconds"].type == "gauge"


def test_only_what_is_known_and_only_queries_are_served(server: MetricsServer) -> None:
    text = page(server)
    assert DOORS["batch_ms"] is None
    assert "quadweir_batch_seconds" not in text
    assert all(line.startswith(("#", "quadweir_")) for line in text.splitlines())


def test_metrics_are_served_on_this_machine_alone(server: MetricsServer) -> None:
    assert server._server.server_address[0] == "127.0.0.1"


def test_a_port_in_use_is_an_error_that_names_it(server: MetricsServer) -> None:
    with pytest.raises(UsageError, match=f"port {server.port}"):
        MetricsServer(QueryCollector(dict), server.port)


def test_a_closed_server_answers_no_more() -> None:
    server = MetricsServer(QueryCollector(dict), 0)
    server.close()
    with (
        pytest.raises(ConnectionRefusedError),
        socket.create_connection(("127.0.0.1", server.port)),
    ):
        pass
