"""Static data that changes while a query runs: from then on, answers are as if it was always so."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import OutputOperator, Report, ReportPolicy, Tick
from quadweir.algebra.windows import Content
from quadweir.runtime.host import stateprocessor
from quadweir.runtime.shard import journal
from quadweir.sources.streamfiles import Element
from quadweir.syntax.read import parse
from quadweir.terms import Quad
from quadweir.testing import Answer, diff_answers
from query_hosts import Host
from streaming import quads, stream

WINDOWS = (
    "RANGE 20ms",
    "RANGE 20ms STEP 8ms",
    "RANGE 12ms STEP 12ms",
    "TRIPLES 5",
    "TRIPLES 5 STEP 3",
    "ELEMENTS 3",
    "ELEMENTS 3 STEP 2",
    "FROM NOW-25ms TO NOW-5ms",
)
ONE = "WINDOW <urn:v> { ?x <urn:p> ?y }"
TWO = f"{ONE} WINDOW <urn:w> {{ ?y <urn:q> ?o }}"
BODIES = {
    "a join": f"{ONE} ?y <urn:r> ?z",
    "a join of two windows": f"{TWO} ?y <urn:r> ?z",
    "a join by another variable": f"{TWO} ?o <urn:r> ?z",
    "optional": f"{ONE} OPTIONAL {{ ?y <urn:r> ?z }}",
    "minus": f"{TWO} MINUS {{ ?y <urn:r> ?z }}",
    "exists": f"{TWO} FILTER EXISTS {{ ?y <urn:r> ?z }}",
    "not exists": f"{ONE} FILTER NOT EXISTS {{ ?y <urn:r> ?o FILTER(?o != ?x) }}",
    "union": f"{{ {ONE} }} UNION {{ ?x <urn:r> ?y }}",
    "a switch": f"{TWO} <urn:b0> <urn:is> <urn:on>",
    "a path": f"{ONE} ?y <urn:r>+ ?z",
    "evaluated again": f"{ONE} FILTER(EXISTS {{ ?y <urn:r> ?z }} || ?x = <urn:a0>)",
}
HEADS = (
    ("SELECT ?x ?y ?z", ""),
    ("SELECT DISTINCT ?x", ""),
    ("SELECT ?x (COUNT(*) AS ?n) (MAX(?y) AS ?m)", "GROUP BY ?x"),
    ("SELECT (COUNT(*) AS ?n)", ""),
    ("SELECT ?x ?y", "ORDER BY ?y ?x LIMIT 2"),
    ("ASK", ""),
    ("CONSTRUCT { ?x <urn:to> ?y }", ""),
)
REPORTS = (
    Report(policy=ReportPolicy.ON_CHANGE, non_empty_only=True),
    Report(policy=ReportPolicy.ON_CLOSE, non_empty_only=True),
)


@pytest.fixture(autouse=True)
def no_copies():
    stateprocessor._COPIES.clear()
    yield
    stateprocessor._COPIES.clear()


def make_query(body: str, dice: random.Random) -> ContinuousQuery:
    """A query around a body: of any windows, reports and form."""
    head, tail = dice.choice(HEADS)
    over = {"v": "s", "w": dice.choice("st")}
    named = "".join(
        f"FROM NAMED WINDOW <urn:{name}> ON <urn:{stream}> [{dice.choice(WINDOWS)}]\n"
        for name, stream in over.items()
        if f"<urn:{name}>" in body
    )
    query = parse(f"{head}\n{named}WHERE {{ {body} }} {tail}", allow=("FROM",))
    content = dice.choice(list(Content))
    query = replace(
        query,
        output=dice.choice(list(OutputOperator)),
        windows=tuple(replace(each, content=content) for each in query.windows),
    )
    if dice.random() < 0.3:
        query = replace(query, tick=Tick(every_ms=dice.choice((5, 13))))
    elif dice.random() < 0.3:
        query = replace(query, report=dice.choice(REPORTS))
    return query


def make_feed(dice: random.Random, count: int = 40) -> list[Element]:
    """Two streams of a few names, with pauses in which windows run empty."""
    found, time = [], 1000
    for position in range(count):
        time += 60 if dice.random() < 0.05 else dice.randrange(4)
        if dice.random() < 0.6:
            text = f"a{dice.randrange(3)} p b{dice.randrange(3)} . b{dice.randrange(3)} q c0"
            found.append(Element("urn:s", time, position, quads(text)))
        else:
            text = f"b{dice.randrange(3)} q b{dice.randrange(3)}"
            found.append(Element("urn:t", time, position, quads(text)))
    return found


MERGED = {
    "a pattern": "?x <urn:p> ?y",
    "a join": "?x <urn:p> ?y . ?y <urn:q> ?z",
    "a join of three": "?x <urn:p> ?y . ?y <urn:q> ?z . ?z <urn:q> ?o",
    "a join with what is in static data alone": "?x <urn:p> ?y . ?y <urn:r> ?z",
    "any predicate": "?x ?v ?y . ?y <urn:q> ?z",
    "optional": "?x <urn:p> ?y OPTIONAL { ?y <urn:q> ?z }",
    "minus": "?x <urn:p> ?y MINUS { ?y <urn:q> ?z }",
    "not exists": "?x <urn:p> ?y FILTER NOT EXISTS { ?y <urn:q> ?y }",
    "union": "{ ?x <urn:p> ?y } UNION { ?x <urn:q> ?y } ?y ?v ?z",
    "a switch": "?x <urn:p> ?y . <urn:b0> <urn:q> <urn:b0>",
}


def make_merged(body: str, dice: random.Random) -> ContinuousQuery:
    """A C-SPARQL query, which matches windows and static data as one graph (A1, W8)."""
    head, tail = dice.choice(HEADS)
    over = dice.choice(("s", "st"))
    streams = "".join(
        f"FROM STREAM <urn:{each}> [RANGE {dice.choice(('20ms STEP 8ms', '12ms STEP 12ms'))}]\n"
        for each in over
    )
    text = f"{head}\nFROM <urn:g>\n{streams}WHERE {{ {body} }} {tail}"
    content = dice.choice((Content.GRAPH, Content.GRAPH, Content.BAG))
    query = parse(text, dialect="csparql", content=content)
    return replace(query, output=dice.choice(list(OutputOperator)))


def make_overlap(dice: random.Random) -> tuple[Quad, ...]:
    """Static data that streams say much of again, often without any triple of some predicate."""
    kinds = dice.choice(("p", "qr", "pr", "pq", "pqr", "r"))
    pairs = {
        (dice.choice(kinds), dice.randrange(3), dice.randrange(3))
        for _ in range(dice.randrange(2, 10))
    }
    ends = {"p": "ab", "q": "bb", "r": "bb"}
    texts = (f"{ends[v][0]}{one} {v} {ends[v][1]}{other}" for v, one, other in sorted(pairs))
    return quads(" . ".join(texts), "g")


def make_static(dice: random.Random) -> tuple[Quad, ...]:
    pairs = {(dice.randrange(3), dice.randrange(3)) for _ in range(dice.randrange(1, 5))}
    text = " . ".join(f"b{one} r b{other}" for one, other in sorted(pairs))
    return quads(text + (" . b0 is on" if dice.random() < 0.8 else ""))


def batches_of(feed: Sequence[Element], dice: random.Random) -> list[list[Element]]:
    size = dice.choice((3, 7))
    return [list(feed[start : start + size]) for start in range(0, len(feed), size)]


def rest(
    host: Host, batches: Sequence[Sequence[Element]], *, restarts: bool = False
) -> list[Answer]:
    """Give the answers to all that is still to come."""
    host.answers = []
    for batch in batches:
        host.push(batch, tasks=2)
        if restarts:
            host.restart()
    host.finish()
    return host.answers


@pytest.mark.parametrize(
    ("body", "is_merged"),
    [(each, False) for each in BODIES.values()] + [(each, True) for each in MERGED.values()],
    ids=[*BODIES, *(f"{each}, merged" for each in MERGED)],
)
def test_answers_after_a_reload_are_those_over_what_is_there_now(
    body: str, is_merged: bool, tmp_path: Path
) -> None:
    """A run that had the new data from the beginning tells what they are."""
    answered = 0
    for seed in range(8):
        dice = random.Random(f"{body} {seed}")
        query = make_merged(body, dice) if is_merged else make_query(body, dice)
        feed = make_feed(dice)
        before, after = (make_overlap(dice) if is_merged else make_static(dice) for _ in range(2))
        batches = batches_of(feed, dice)
        cut = dice.randrange(1, len(batches) - 1)
        shards, delay_ms = dice.choice((1, 2, 3)), dice.choice((0, 9))
        runs = []
        for number, static in enumerate((before, after)):
            folder = tmp_path / f"{seed}.{number}"
            folder.mkdir()
            run = Host(
                query, static=static, shards=shards, delay_ms=delay_ms, direct=True, folder=folder
            )
            for batch in batches[:cut]:
                run.push(batch, tasks=2)
            runs.append(run)
        old, always = runs
        assert old.reload(after)
        expected = rest(always, batches[cut:])
        answered += bool(expected)
        found = rest(old, batches[cut:], restarts=dice.random() < 0.5)
        assert diff_answers(expected, found) == "", f"seed {seed}"
    assert answered > 2


TWO_STAGES = f"""SELECT ?z (COUNT(*) AS ?n)
FROM NAMED WINDOW <urn:v> ON <urn:s> [RANGE 20ms STEP 8ms]
FROM NAMED WINDOW <urn:w> ON <urn:t> [TRIPLES 5]
WHERE {{ {TWO} ?y <urn:r> ?z }} GROUP BY ?z"""
BEFORE, AFTER = quads("b0 r b1 . b1 r b2"), quads("b1 r b3 . b2 r b1 . b3 r b3")


@pytest.mark.parametrize("longest", [2, 50], ids=["from snapshots", "from logs"])
@pytest.mark.parametrize("output", OutputOperator)
def test_a_batch_that_fails_after_a_reload_is_taken_again(
    monkeypatch, output: OutputOperator, longest: int
) -> None:
    """Whichever stage had done its part: state and answers are as if it had not been tried."""
    monkeypatch.setattr(journal, "LONGEST_LOG", longest)
    query = replace(parse(TWO_STAGES), output=output)
    batches = batches_of(make_feed(random.Random(3)), random.Random(1))
    cut = len(batches) // 2
    old, always = (Host(query, static=each, name=f"{each}") for each in (BEFORE, AFTER))
    assert len(old.stages) == 2
    for batch in batches[:cut]:
        old.push(batch)
        always.push(batch)
    assert old.reload(AFTER)
    states = [stage.state() for stage in old.stages]
    for is_lost in (False, True):
        old.push(batches[cut])
        for stage, state in zip(old.stages, states, strict=True):
            stage.take_up(state)
        if is_lost:
            old.restart()
    expected = rest(always, batches[cut:])
    assert len({each.t for each in expected}) > 3
    assert diff_answers(expected, rest(old, batches[cut:], restarts=True)) == ""


def test_data_that_becomes_what_it_was_is_taken_over_like_any_other() -> None:
    query = replace(parse(TWO_STAGES), output=OutputOperator.ISTREAM)
    batches = batches_of(make_feed(random.Random(3)), random.Random(1))
    host, always = (Host(query, static=BEFORE, name=name) for name in ("there and back", "there"))
    for number, batch in enumerate(batches[:4]):
        # Workers may still have shards as they were over the data of before.
        if number > 1:
            assert host.reload(AFTER if number % 2 == 0 else BEFORE)
        host.push(batch)
        always.push(batch)
    expected = rest(always, batches[4:])
    assert expected
    assert diff_answers(expected, rest(host, batches[4:])) == ""


def test_rows_stay_where_they_are_over_any_data() -> None:
    """Which variable rows are sharded by depends on what static data matches too."""
    text = """SELECT ?z ?x FROM <urn:g> FROM STREAM <urn:s> [RANGE 20ms STEP 10ms]
    WHERE { ?x <urn:p> ?y . ?y <urn:r> ?z . ?z <urn:o> ?x }"""
    before, after = quads("a is b", "g"), quads("b0 r c0 . c0 o a0 . c0 o a1", "g")
    feed = stream(
        *((1000 + 3 * n, f"a{n % 3} p b{n % 2} . b{n % 2} r c1 . c1 o a{n % 3}") for n in range(40))
    )
    batches = [feed[start : start + 5] for start in range(0, len(feed), 5)]
    old, always = (Host(text, static=each, shards=2, name=f"{each}") for each in (before, after))
    for batch in batches[:4]:
        old.push(batch)
        always.push(batch)
    layout = old.spec.plan.layout
    assert always.spec.plan.layout != layout
    assert old.reload(after)
    assert old.spec.plan.layout == layout
    expected = rest(always, batches[4:])
    assert expected
    assert diff_answers(expected, rest(old, batches[4:])) == ""


def test_what_static_data_binds_does_not_decide_where_rows_are() -> None:
    """Whether all rows bind what OPTIONAL binds is for the data to say, and that may change."""
    text = f"""SELECT DISTINCT ?o FROM NAMED WINDOW <urn:v> ON <urn:s> [RANGE 20ms]
    WHERE {{ {ONE} {{ ?y <urn:r> ?z OPTIONAL {{ ?z <urn:o> ?o }} }} }}"""
    before = quads("b0 r b1 . b1 o b2")
    host = Host(text, static=before, shards=2)
    host.push(make_feed(random.Random(1))[:10])
    assert host.shards == 2
    assert host.reload((*before, *quads("b0 r b7")))


@pytest.mark.parametrize("texts", [("a0 r b7", "a0 p b7"), ("a0 p b7", "a0 r b7")], ids=str)
@pytest.mark.parametrize("shards", [1, 2])
def test_what_was_logged_in_one_shard_is_read_as_it_was_written(
    texts: tuple[str, str], shards: int
) -> None:
    """With a key two patterns that differ in names only would be two tests, without one they are one."""
    text = """SELECT ?x ?z FROM <urn:g> FROM STREAM <urn:s> [RANGE 20ms STEP 10ms]
    WHERE { ?x <urn:p> ?y . ?y <urn:p> ?z }"""
    query = parse(text, dialect="csparql", content=Content.BAG)
    before, after = (quads(each, "g") for each in texts)
    texts_of = ("b1 q b2", "b1 p b0 . b0 q b1", "b2 p b1", "b0 p b2 . b1 q b2")
    feed = stream(*((1000 + 3 * n, texts_of[n * 3 % 4]) for n in range(40)))
    both = [Host(query, static=each, shards=shards, name=f"{each}") for each in (before, after)]
    for host in both:
        for start in range(0, 20, 5):
            host.push(feed[start : start + 5])
    old, always = both
    assert old.reload(after)
    rest_of = [feed[start : start + 5] for start in range(20, len(feed), 5)]
    expected = rest(always, rest_of)
    assert expected
    assert diff_answers(expected, rest(old, rest_of)) == ""


@pytest.mark.parametrize("report", [Report(policy=ReportPolicy.ON_CLOSE), *REPORTS], ids=str)
@pytest.mark.parametrize("output", OutputOperator)
def test_a_second_stage_that_had_other_static_terms_is_taken_up(
    monkeypatch, output: OutputOperator, report: Report
) -> None:
    """They had numbers there that others have now; what it held comes once more."""
    monkeypatch.setattr(journal, "LONGEST_LOG", 4)
    query = replace(parse(TWO_STAGES), output=output, report=report)
    feed = make_feed(random.Random(1))
    batches = [feed[start : start + 3] for start in range(0, len(feed), 3)]
    before, after = quads("b0 r c0 . b1 r c1 . b2 r c2"), quads("b1 r d1 . b0 r d0")
    old, always = (Host(query, static=each, shards=1, name=f"{each}") for each in (before, after))
    for batch in batches[:6]:
        old.push(batch)
        always.push(batch)
    assert old.reload(after)
    expected = rest(always, batches[6:])
    assert expected
    assert diff_answers(expected, rest(old, batches[6:], restarts=True)) == ""
