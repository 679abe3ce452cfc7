"""The page on operation and the dashboard name metrics that exist."""

import json
import re
from collections.abc import Iterator
from typing import Any

from pages import ROOT
from quadweir.runtime.metrics import QueryMeter
from quadweir.runtime.prometheus import NetworkCollector

FOLDER = ROOT / "docs" / "operate"
NAME = re.compile(r"\bquadweir_\w+")


class Status:
    id, state, answers = "q", "running", 1


class Network:
    """What a collector asks of a network, with a value for every metric."""

    def metrics(self) -> dict[str, Any]:
        return {**dict.fromkeys(QueryMeter().metrics(), 1), "queries": 1, "templates": 1}

    def status(self) -> list[Status]:
        return [Status()]


def served() -> set[str]:
    families = NetworkCollector("net", Network()).collect()  # type: ignore[arg-type]
    return {sample.name for family in families for sample in family.samples}


def expressions(panel: dict[str, Any]) -> Iterator[str]:
    yield from (each["expr"] for each in panel["targets"])


def test_the_dashboard_shows_every_metric_and_no_other() -> None:
    dashboard = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
    named = {
        name
        for panel in dashboard["panels"]
        for text in expressions(panel)
        for name in NAME.findall(text)
    }
    assert named <= served()
    rates = {"quadweir_input_statements_per_second", "quadweir_answers_per_second"}
    # Prometheus computes rates itself, and a network's queries are too many for one panel.
    assert served() - named == rates | {"quadweir_state_rows", "quadweir_query_answers_total"}
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_alerts_are_over_metrics_that_are_served() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    named = set(NAME.findall(page))
    assert len(named) > 5
    assert named <= served()
