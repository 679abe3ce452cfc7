"""What a network says of its queries: who shares what, what each costs, which give too much."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pyarrow as pa
import pytest

from network_hosts import NO_SESSION, NetworkHost
from quadweir.runtime.network.delivery import Delivery
from quadweir.runtime.network.explain import network_svg, network_text, query_text
from quadweir.runtime.network.queries import NetworkQuery
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.network.spec import QUERY
from quadweir.runtime.network.status import UnitFacts, costs_of, status_of
from quadweir.sinks.base import Batch
from streaming import stream

ABOUT = "SELECT ?x { STREAM <urn:s> [RANGE %dms] { ?x <urn:p> <urn:%s> } }"
COUNTED = "SELECT (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } }"
STREAMS = ("urn:s", "urn:t")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def host(tmp_path: Path):
    with NetworkHost(tmp_path / "network") as host:
        host.register(one=ABOUT % (20, "a"), other=ABOUT % (30, "b"), counted=COUNTED)
        host.push(stream((1000, "x p a")))
        yield host


def test_queries_of_one_template_are_named_together(host: NetworkHost) -> None:
    text = network_text(host.registry.specs, host.registry.queries(), STREAMS, 2)
    assert "queries    3 in 2 templates" in text
    assert "2 queries: one, other" in text
    assert "constants for 1 parameter" in text


def test_matching_that_templates_share_is_named(host: NetworkHost) -> None:
    text = network_text(host.registry.specs, host.registry.queries(), STREAMS, 2)
    first, second = text.split("\ntemplate ")[1:]
    assert "? <urn:p> ? in <urn:s>, shared with templates 1" in first
    assert "? <urn:p> ? in <urn:s>, shared with templates 0" in second


def test_one_query_says_what_is_its_own_and_how_it_runs(host: NetworkHost) -> None:
    query = host.registry.get("other")
    assert query is not None
    text = query_text(query, host.registry.specs, host.registry.queries())
    assert "constant   <urn:b>" in text
    assert "window 1   30 ms" in text
    assert "matched before the shuffle" in text


def test_the_drawing_has_a_box_for_each_stream_template_and_group_of_queries(
    host: NetworkHost,
) -> None:
    drawn = network_svg(host.registry.specs, host.registry.queries(), STREAMS)
    root = ElementTree.fromstring(drawn)
    assert len(root.findall(f"{SVG}g")) == 2 + 2 + 2
    assert len(root.findall(f"{SVG}line")) == 2 * 2
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert "2 queries: one, other" in texts


def test_a_name_that_is_markup_is_drawn_as_text(tmp_path: Path) -> None:
    with NetworkHost(tmp_path / "network") as host:
        host.register(**{"<b>&": COUNTED})
        drawn = network_svg(host.registry.specs, host.registry.queries(), STREAMS)
    texts = [each.text for each in ElementTree.fromstring(drawn).iter(f"{SVG}text")]
    assert "1 query: <b>&" in texts


def query(number: int, template: int) -> NetworkQuery:
    return NetworkQuery(number, f"q{number}", QueryText(""), template, (), (), ("x",))


def test_the_cost_of_a_template_is_divided_among_its_queries() -> None:
    units = [
        UnitFacts(0, 5, 10, 3000, 0),
        UnitFacts(0, 5, 20, 5000, 0),
        UnitFacts(1, 1, 4, 2000, 0),
    ]
    found = costs_of([query(1, 0), query(2, 0), query(3, 1)], units, {1: 7})
    assert [(each.id, each.batch_ms, each.held, each.answers) for each in found] == [
        ("q1", 4.0, 15.0, 7),
        ("q2", 4.0, 15.0, 0),
        ("q3", 2.0, 4.0, 0),
    ]
    assert sum(each.share for each in found) == pytest.approx(1)


def test_costs_before_the_first_batch_are_nothing() -> None:
    assert [each.share for each in costs_of([query(1, 0)], [], {})] == [0]


def test_a_query_is_running_paused_or_stopped() -> None:
    one = query(1, 0)
    assert status_of(one, 3, 9).state == "running"
    assert status_of(one, 3, 9).shared_with == 2
    one.is_paused = True
    assert status_of(one, 1, 0).state == "paused"
    one.stopped = "its sink failed"
    assert (status_of(one, 0, 0).state, status_of(one, 0, 0).shared_with) == ("stopped", 0)


def test_a_query_that_gives_too_many_answers_is_stopped_alone() -> None:
    now = [0.0]
    delivery = Delivery(NO_SESSION, None, most_answers=2, clock=lambda: now[0])
    delivery.queries = {1: query(1, 0), 2: query(2, 0)}

    def deliver(number: int, count: int) -> None:
        answers = pa.RecordBatch.from_arrays([pa.array([number] * count)], names=[QUERY])
        delivery.write_arrow([answers], Batch(0, "network"))

    deliver(1, 20)
    deliver(2, 15)
    assert delivery.take_failures() == {}
    deliver(1, 1)
    assert list(delivery.take_failures()) == [1]
    now[0] = 10.0
    deliver(2, 20)
    assert delivery.take_failures() == {}, "answers of ten seconds ago no longer count"


# --- joins that run once ---

JOINED = (
    "{ STREAM <urn:s> [RANGE 9s] { ?a <urn:p> ?b } STREAM <urn:t> [RANGE 9s] { ?b <urn:q> ?c } }"
)


def test_joins_that_run_once_are_named_and_drawn(tmp_path: Path) -> None:
    with NetworkHost(tmp_path / "network") as host:
        host.register(
            pairs=f"SELECT ?a ?c {JOINED}",
            middles=f"SELECT ?b {JOINED}",
            short=f"SELECT ?c {JOINED}".replace("9s", "90ms"),
            more=f"SELECT ?a {JOINED[:-1]} STREAM <urn:s> [RANGE 9s] {{ ?b <urn:r> ?d }} }}",
        )
        specs, queries = host.registry.specs, host.registry.queries()
        text = network_text(specs, queries, STREAMS, 2)
        drawn = network_svg(specs, queries, STREAMS)
        alone = query_text(queries[0], specs, queries)
    first, second, third, fourth = text.split("\ntemplate ")[1:]
    assert "runs once  ?v0 <urn:p> ?v2 in <urn:s> and ?v2 <urn:q> ?v1 in <urn:t>" in first
    assert "with templates 1\n" in first
    assert "with templates 0\n" in second
    assert "apart      the windows of template 0 are 100 times longer" in third
    assert "runs once" not in third + fourth
    assert "column     ?c  (?v1)" in alone
    root = ElementTree.fromstring(drawn)
    assert len(root.findall(f"{SVG}g")) == 2 + 1 + 4 + 4
    # Two streams to the join, the join to two templates, streams to the others, templates to queries.
    assert len(root.findall(f"{SVG}line")) == 2 + 2 + 2 * 2 + 4
    assert "once for 2" in [each.text for each in root.iter(f"{SVG}text")]
