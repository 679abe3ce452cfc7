"""Static data of a network that is read again: what windows hold is joined with the new data."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from network_hosts import NetworkHost
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.network.spec import TemplateSpec
from quadweir.runtime.shard import journal
from streaming import quads, stream

PLACES = """REGISTER RSTREAM <urn:q> AS SELECT ?z (COUNT(?x) AS ?n)
  FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE {}ms STEP 1ms]
  WHERE {{ WINDOW <urn:w> {{ ?x <urn:p> ?y }} ?y <urn:in> ?z }} GROUP BY ?z"""
NEW = """SELECT ?x ?z { STREAM <urn:s> [RANGE 50ms] { ?x <urn:p> ?y } ?y <urn:in> ?z }"""
PAIRS = "SELECT ?x ?y { STREAM <urn:s> [RANGE 50ms] { ?x <urn:p> ?y } }"


def found(host: NetworkHost, number: int, t: int) -> Counter[tuple[str, str]]:
    """What a query answered at an instant: places with counts, or with things."""
    return Counter(
        (str(each.bindings["z"]), str(each.bindings.get("n", each.bindings.get("x"))))
        for each in host.answers.get(number, [])
        if each.t == t
    )


def count(place: str, n: int) -> tuple[str, str]:
    return (f"<urn:{place}>", f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>')


@pytest.mark.parametrize("longest", [1, 50])
def test_windows_are_joined_with_the_new_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    """Whether they come from a snapshot or from the log; also in queries that joined later."""
    monkeypatch.setattr(journal, "LONGEST_LOG", longest)
    with NetworkHost(tmp_path, static=quads("b in hall . c in hall")) as host:
        host.register(a=QueryText(PLACES.format(9), dialect="rspql"), new=NEW, pairs=PAIRS)
        host.push(stream((1, "x p b"), (2, "y p c"), (3, "z p d")))
        host.register(b=QueryText(PLACES.format(20), dialect="rspql"))
        host.push(stream((5, "v p b")), dies="kept")
        host.push(stream((6, "v p nothing")))
        assert found(host, 0, 5) == Counter([count("hall", 3)])
        host.reload(quads("b in hall . c in attic . d in attic"))
        host.push(stream((7, "w p d")), dies="written")
        host.push(stream((20, "w p nothing")))
    assert found(host, 0, 7) == Counter([count("hall", 2), count("attic", 3)])
    assert found(host, 3, 7) == Counter([count("hall", 1), count("attic", 1)])
    # It tells what is new in the stream. That z has a place now is new in the data only.
    assert found(host, 1, 7) == Counter([("<urn:attic>", "<urn:w>")])
    assert [each.t for each in host.answers[1]] == [1, 2, 5, 7]
    assert [each.t for each in host.answers[2]] == [1, 2, 3, 5, 6, 7, 20]


@pytest.mark.parametrize("longest", [1, 50])
def test_a_query_whose_rows_would_lie_elsewhere_is_stopped_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    monkeypatch.setattr(journal, "LONGEST_LOG", longest)

    def held(self: TemplateSpec) -> str:
        return f"{len(self.shards.plan.query.windows)} {self.reason} {data if self.number else ''}"

    monkeypatch.setattr(TemplateSpec, "held", property(held))
    data = "old"
    with NetworkHost(tmp_path, static=quads("b in hall")) as host:
        host.register(pairs=PAIRS, a=NEW)
        host.push(stream((1, "x p b")))
        data = "new"
        host.reload(quads("b in attic"))
        host.push(stream((2, "x p b")))
        host.push(stream((3, "x p b")))
    (stopped,) = host.registry.stopped()
    assert stopped.id == "a"
    assert "the shards of the query would hold other rows" in (stopped.stopped or "")
    assert [each.t for each in host.answers[0]] == [1, 2, 3]
    assert [each.t for each in host.answers[1]] == [1]
