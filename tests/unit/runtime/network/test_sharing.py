"""Templates that run equal joins once, in the shards of a network."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from network_hosts import LAST, POINTS, NetworkHost, alone
from quadweir.kernel.multijoin import Join
from quadweir.runtime.network import control
from quadweir.runtime.network.sharedunit import SharedUnit
from quadweir.runtime.shard import journal
from quadweir.sources.streamfiles import Element
from quadweir.testing import diff_answers
from streaming import quads, stream

STREAMS = ("urn:s", "urn:t")
BODY = """{ STREAM <urn:s> [RANGE $ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE $ms] { ?y <urn:q> ?z } $F }"""
PAIRS = f"SELECT ?x ?z {BODY}"
RENAMED = """SELECT ?b { STREAM <urn:t> [RANGE $ms] { ?b <urn:q> ?c }
  STREAM <urn:s> [RANGE $ms] { ?a <urn:p> ?b } FILTER(?a != ?c) }"""
KNOWN = f"SELECT ?x ?z ?d {BODY.replace('$F', '?z <urn:is> ?d')}"
COUNTS = f"SELECT ?x (COUNT(*) AS ?n) {BODY} GROUP BY ?x"
GREATEST = f"SELECT ?y (MAX(?z) AS ?n) {BODY} GROUP BY ?y"
ABOUT = f"SELECT ?z {BODY.replace('?x', '<urn:a1>')}"
# Nothing occurs in all of its patterns.
CHAIN = """SELECT $V { STREAM <urn:s> [RANGE $ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE $ms] { ?y <urn:q> ?z }
  STREAM <urn:s> [RANGE $ms] { ?w <urn:p> ?z } }"""
TOTALS = f"SELECT ?z (COUNT(*) AS ?n) {BODY} GROUP BY ?z"
BY_X = f"SELECT ?x (MAX(?z) AS ?n) {BODY} GROUP BY ?x"
TEXTS = (
    PAIRS,
    RENAMED,
    KNOWN,
    COUNTS,
    GREATEST,
    ABOUT,
    CHAIN.replace("$V", "?x ?w"),
    CHAIN.replace("$V", "(COUNT(*) AS ?n)"),
    CHAIN.replace("$V", "?z"),
)
STATIC = quads("c1 is d1 . c1 is d2 . c2 is d1 . b1 p b2")


def of_length(text: str, length: int) -> str:
    return text.replace("$F", "").replace("$", str(length))


def make_batches(seed: int, count: int, size: int = 5) -> list[list[Element]]:
    dice = random.Random(seed)
    found, now = [], 1000
    for position in range(count * size):
        now += dice.randrange(3)
        text, name = f"a{dice.randrange(3)} p b{dice.randrange(3)}", "urn:s"
        if dice.random() < 0.3:
            text = f"a{dice.randrange(3)} p c{dice.randrange(3)}"
        elif dice.random() < 0.6:
            text, name = f"b{dice.randrange(3)} q c{dice.randrange(3)}", "urn:t"
        found.append(Element(name, now, position, quads(text)))
    return [found[at : at + size] for at in range(0, len(found), size)]


def shared_units(host: NetworkHost) -> list[SharedUnit]:
    """The units of groups in all shards."""
    return [
        unit
        for held in host._held
        for shards in held._shards
        for shard in shards
        for unit in shard._hosted._units.values()
        if isinstance(unit, SharedUnit)
    ]


def joins(unit: SharedUnit) -> int:
    return sum(isinstance(each, Join) for each, _ in unit._shard._dataflow.operators)


@pytest.mark.parametrize(("shards", "seed"), [(1, 1), (2, 2), (3, 3), (2, 4), (2, 5)])
def test_templates_of_a_group_come_and_go_and_answer_as_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int, seed: int
) -> None:
    """Whatever is lost on the way."""
    monkeypatch.setattr(journal, "LONGEST_LOG", seed + 1)
    monkeypatch.setattr(control, "_MOST_CHANGES", 3)
    dice = random.Random(seed)
    batches = make_batches(seed, 16)
    spans: dict[int, list[int]] = {}
    with NetworkHost(tmp_path, shards=shards, processes=2, static=STATIC) as host:
        host.register(**{f"q{place}": of_length(text, 12) for place, text in enumerate(TEXTS)})
        for place, batch in enumerate(batches):
            host.push(batch, dies=dice.choice([None, None, *POINTS]), loses=dice.random() < 0.3)
            for number in host.delivery.queries:
                spans.setdefault(number, [place, 0])[1] = place + 1
            one, other = (f"q{dice.randrange(10)}" for _ in "ab")
            if one in [each.id for each in host.registry.queries()] and dice.random() < 0.6:
                host.registry.unregister([one])
            text = of_length(dice.choice(TEXTS), dice.choice((3, 12, 20)))
            host.register(replacing=True, **{other: text})
            if dice.random() < 0.3:
                host.die()
        assert host.registry.stopped() == []
        host.push(LAST)
        groups = [each.group for each in host.registry.specs.values()]
        assert len({*groups}) < len(groups)
    batches.append(LAST)
    for number in host.delivery.queries:
        spans.setdefault(number, [len(batches) - 1, 0])[1] = len(batches)
    total = 0
    for number, span in spans.items():
        text = host.lifetimes[number].text
        expected = alone(text, batches, *span, streams=STREAMS, static=STATIC)
        assert diff_answers(expected, host.answers.get(number, [])) == "", text
        total += len(expected)
    assert total > 150


def test_equal_joins_of_two_templates_run_once_in_each_shard(tmp_path: Path) -> None:
    with NetworkHost(tmp_path) as host:
        host.register(a=of_length(PAIRS, 20), b=of_length(RENAMED, 30), c=of_length(ABOUT, 9))
        host.push(stream((1000, "a p b")))
        units = shared_units(host)
        assert [(len(each.templates), joins(each)) for each in units] == [(3, 1), (3, 1)]
        host.registry.unregister(["a", "c"])
        host.push(stream((1001, "a p b")))
        assert [len(each.templates) for each in shared_units(host)] == [1, 1]
        host.registry.unregister(["b"])
        host.push(stream((1002, "a p b")))
        assert shared_units(host) == []


def test_a_group_lies_in_one_shard_if_its_joins_have_no_key(tmp_path: Path) -> None:
    with NetworkHost(tmp_path, shards=3) as host:
        host.register(first=of_length(PAIRS, 20))
        for place, text in enumerate((COUNTS, TOTALS, BY_X)):
            host.register(**{f"q{place}": of_length(text, 20)})
        specs = [host.registry.specs[each] for each in range(4)]
        assert [each.group for each in specs] == [0, 1, 1, 1]
        assert [each.home for each in specs] == [None, 1, 1, 1]


@pytest.mark.parametrize("longest", [1, 50])
def test_a_template_that_fails_leaves_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    monkeypatch.setattr(journal, "LONGEST_LOG", longest)
    batches = make_batches(3, 8)
    texts = [of_length(each, 12) for each in (PAIRS, RENAMED, COUNTS, GREATEST)]
    with NetworkHost(tmp_path) as host:
        host.register(**{f"q{place}": text for place, text in enumerate(texts)})
        for place, batch in enumerate(batches):
            if place == 3:
                for unit in shared_units(host):
                    for number in {1, 3} & {*unit.templates}:
                        monkeypatch.setattr(unit._shard._heads[str(number)].output, "step", _fails)
            host.push(batch)
            if place in (3, 5):
                host.lose()
        assert {each.id: each.stopped for each in host.registry.stopped()} == {
            "q1": "ArithmeticError: it went wrong",
            "q3": "ArithmeticError: it went wrong",
        }
        host.push(LAST)
    batches.append(LAST)
    for number, last in ((0, len(batches)), (2, len(batches)), (1, 3), (3, 3)):
        text = host.lifetimes[number].text
        expected = alone(text, batches, 0, last, streams=STREAMS)
        assert diff_answers(expected, host.answers.get(number, [])) == ""


def _fails(*_: object) -> None:
    raise ArithmeticError("it went wrong")


def test_a_template_keeps_its_group_when_the_first_one_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a restart, from a control log that does not name the first one any more."""
    monkeypatch.setattr(journal, "LONGEST_LOG", 2)
    for name, value in (("_REMEMBERED", 3), ("_MOST_CHANGES", 1)):
        monkeypatch.setattr(control, name, value)
    batches = make_batches(5, 14)
    with NetworkHost(tmp_path, shards=2) as host:
        host.register(a=of_length(TOTALS, 12))
        host.register(b=of_length(COUNTS, 12), c=of_length(BY_X, 12))
        for place, batch in enumerate(batches):
            host.push(batch)
            if place == 2:
                host.registry.unregister(["a"])
            if place == 3:
                host.register(other=of_length(TOTALS, 5))
            if place == 4:
                host.registry.unregister(["other"])
            if place in (9, 12):
                host.register(replacing=True, b=of_length(COUNTS, place))
            if place > 8:
                host.die()
        assert {each.group for each in host.registry.specs.values()} == {0}
        assert 0 not in host.registry.specs
        assert host.log.first > 1
    expected = alone(host.lifetimes[2].text, batches, 0, len(batches), streams=STREAMS)
    assert diff_answers(expected, host.answers[2]) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (of_length(RENAMED, 2000), "the windows of template 0 are 100 times shorter"),
        (of_length(RENAMED, 1), "the windows of template 0 are 20 times longer"),
        (
            of_length(
                PAIRS.replace("$F", "OPTIONAL { STREAM <urn:u> [NOW] { ?y <urn:r> ?r } }"), 20
            ),
            "",
        ),
    ],
)
def test_a_template_that_would_pay_more_than_it_saves_runs_apart(
    tmp_path: Path, text: str, why: str
) -> None:
    with NetworkHost(tmp_path, streams=("urn:s", "urn:t", "urn:u")) as host:
        host.register(a=of_length(PAIRS, 20), b=text)
        first, second = (host.registry.specs[each] for each in range(2))
        assert (first.group, second.group, second.apart) == (0, 1, why)


def test_a_group_reports_what_each_of_its_templates_did(tmp_path: Path) -> None:
    many = stream(*((1000, f"a{n} p b{n}") for n in range(40)))
    with NetworkHost(tmp_path, shards=1) as host:
        host.register(a=of_length(PAIRS, 30), b=of_length(RENAMED, 10))
        host.push(many)
        facts: Mapping[int, Any] = {each.template: each for each in host.control.units}
        assert facts[0].held == 3 * facts[1].held == 30
        assert all(each.microseconds for each in facts.values())
        host.push(stream((1001, "b1 q c"), name="t"))
        host.push([Element("urn:s", 900, 99, quads("a p b"))])
        assert host.facts["late"] == 1


def test_a_template_of_a_group_that_holds_too_much_is_stopped(tmp_path: Path) -> None:
    many = stream(*((1000 + n, f"a{n} p b{n}") for n in range(40)))
    with NetworkHost(tmp_path, most_held=20, shards=1) as host:
        host.register(a=of_length(PAIRS, 30), b=of_length(RENAMED, 10))
        host.push([*many, *stream((1039, "b q c"), name="t")])
        assert [each.id for each in host.registry.stopped()] == ["a"]
        # What only the other needed is there until it leaves, and is not charged to this one.
        host.push(stream((1040, "b35 q c"), name="t"), loses=True)
        assert len(host.answers[1]) == 1
        assert [each.id for each in host.registry.stopped()] == ["a"]
