"""Networks equal single queries (P4): whatever comes, goes, stops or is lost beside a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from network_hosts import LAST, POINTS, NetworkHost, alone, joined_at
from properties.dense import Feed, dense_questions, feeds, static_data
from properties.strategies import EVERYTHING, STREAMS
from quadweir.kernel.arrays import ALWAYS
from quadweir.runtime.network import control
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.shard import journal
from quadweir.sources.streamfiles import Element
from quadweir.terms import Quad
from quadweir.testing import Answer, Oracle, diff_answers

DIALECTS = ("rspql", "csparql", "cqels", "sparqlstream")
NAMES = ("a", "b", "c", "d")
# Questions that differ in constants and window lengths only, so that some of them share a template.
SIMILAR = [
    "SELECT ?a ?b { STREAM :stream0 [RANGE $Rms] { ?a :p0 ?b } STREAM :stream1 [RANGE $Sms] { $A ?v ?b } }",
    "SELECT ?b { STREAM :stream0 [RANGE $Rms] { $A :p0 ?b } }",
    "SELECT ?b (COUNT(*) AS ?n) { STREAM :stream0 [RANGE $Rms SLIDE $Sms] { $A ?v ?b } } GROUP BY ?b",
    "CONSTRUCT { _:x :of ?a } { STREAM :stream1 [RANGE $Rms] { ?a :p0 $A } }",
]
# Templates of a group: different shapes, variables and orders, over one join.
_BODY = (
    "{ STREAM :stream0 [RANGE $Rms] { ?x :p0 ?y } STREAM :stream1 [RANGE $Sms] { ?z ?v ?y } $F }"
)
_OTHER = (
    "{ STREAM :stream1 [RANGE $Sms] { ?c ?d ?b } STREAM :stream0 [RANGE $Rms] { ?a :p0 ?b } $F }"
)
JOINED = [
    each.replace("$F", "")
    for each in (
        f"SELECT ?x ?z {_BODY}",
        f"SELECT ?b {_OTHER.replace('$F', 'FILTER(?a != ?c)')}",
        f"SELECT ?y (COUNT(*) AS ?n) {_BODY} GROUP BY ?y",
        f"SELECT ?b (MAX(?c) AS ?n) {_OTHER} GROUP BY ?b",
        f"SELECT DISTINCT ?y {_BODY.replace('$F', '?y :p1 ?w')}",
        f"SELECT ?z {_BODY.replace('?x', '$A')}",
    )
]


@st.composite
def texts(draw: st.DrawFn) -> QueryText:
    return replace(draw(questions()), backfill=draw(st.booleans()))


@st.composite
def questions(draw: st.DrawFn) -> QueryText:
    alike = draw(st.sampled_from([SIMILAR, JOINED, None]))
    if alike is not None:
        text = f"PREFIX : <http://example.org/> {draw(st.sampled_from(alike))}"
        for name, values in (("$A", ":s0 :s1 :s2"), ("$R", "3 8 15"), ("$S", "2 5")):
            text = text.replace(name, draw(st.sampled_from(values.split())))
        return QueryText(text, dialect="cqels")
    dialect = draw(st.sampled_from(DIALECTS))
    question = draw(dense_questions(dialect, kinds=EVERYTHING - {"path"}, slices=True))
    return QueryText(question.text(dialect), dialect=dialect)


@st.composite
def cuts(draw: st.DrawFn, feed: Feed, delays: dict[str, int]) -> list[Feed]:
    """The batches in which elements arrive; none of them is late."""
    keys = []
    for element in feed:
        most = max(0, delays[element.stream] - 1)
        keys.append((element.event_time + draw(st.integers(0, most)), element))
    arrived = [element for _, element in sorted(keys, key=lambda pair: pair[0])]
    found = []
    while arrived:
        size = draw(st.integers(0, 5))
        found.append(arrived[:size])
        arrived = arrived[size:]
    return found


def change(draw: st.DrawFn, host: NetworkHost) -> None:
    """Let some queries come, go, pause or go on."""
    registry = host.registry
    for _ in range(draw(st.integers(0, 2))):
        there = [each.id for each in registry.queries()]
        one = draw(st.sampled_from(NAMES))
        kind = draw(st.sampled_from(["register", "register", "leave", "pause", "resume"]))
        if kind == "register":
            given = draw(texts())
            if there and draw(st.booleans()):
                # The same again: windows hold all that it asks for.
                again = registry.get(draw(st.sampled_from(there)))
                assert again is not None
                given = replace(again.text, backfill=True)
            registry.register({one: given}, replacing=True)
        elif one not in there:
            continue
        elif kind == "leave":
            registry.unregister([one])
        else:
            registry.pause([one], is_paused=kind == "pause")


# Each example plans several queries, and takes many decisions.
@settings(
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ]
)
@given(data=st.data(), feed=feeds(), static=static_data())
def test_queries_of_a_network_answer_as_they_do_alone(
    data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    draw = data.draw
    delays = {iri: draw(st.integers(0, 9)) for iri in STREAMS}
    batches = [*draw(cuts(feed, delays)), LAST]
    # When each query ran, by its number, and in which of these batches it was paused.
    spans: dict[int, list[int]] = {}
    paused: set[tuple[int, int]] = set()
    with (
        TemporaryDirectory() as folder,
        mock.patch.object(journal, "LONGEST_LOG", draw(st.sampled_from([1, 3, 50]))),
        mock.patch.object(control, "_MOST_CHANGES", draw(st.sampled_from([2, 1000]))),
        NetworkHost(
            Path(folder),
            streams=STREAMS,
            static=static,
            shards=draw(st.integers(1, 3)),
            delays=delays,
            processes=draw(st.integers(1, 2)),
        ) as host,
    ):
        host.registry.register({name: draw(texts()) for name in NAMES[:2]}, replacing=False)
        for place, batch in enumerate(batches):
            for query in host.registry.queries():
                spans.setdefault(query.number, [place, 0])[1] = place + 1
                if query.is_paused:
                    paused.add((query.number, place))
            dies = draw(st.sampled_from([None, None, None, *POINTS]))
            host.push(batch, dies=dies, loses=draw(st.sampled_from([False, False, True])))
            assert host.registry.stopped() == []
            change(draw, host)
            if draw(st.integers(0, 5)) == 0:
                host.die()
    for number, (first, last) in spans.items():
        check(host, number, batches, first, last, static, delays, paused)


def check(
    host: NetworkHost,
    number: int,
    batches: Sequence[Feed],
    first: int,
    last: int,
    static: list[Quad],
    delays: dict[str, int],
    paused: set[tuple[int, int]],
) -> None:
    text, backfill = host.lifetimes[number].text, host.lifetimes[number].backfill
    before = joined_at(text, [each for batch in batches[:first] for each in batch])
    since: int | None = None
    assert (backfill is not None) == text.backfill
    if backfill is not None and backfill.state == "done":
        since = ALWAYS if backfill.since is None else backfill.since
        assert since <= before
    expected: list[Answer] = []

    def unless_paused(batch: int, found: list[Answer]) -> None:
        if (number, batch) not in paused:
            expected.extend(found)

    every = alone(
        text,
        batches,
        first,
        last,
        streams=STREAMS,
        static=static,
        delays=delays,
        backfilled=since,
        on_batch=unless_paused,
    )
    assert diff_answers(expected, host.answers.get(number, [])) == "", text.text
    if last == len(batches):
        # It saw the end: its answers are all that the query has over what it may see.
        from_batch, since = (first, before) if since is None else (0, since)
        seen = [
            each for batch in batches[from_batch:-1] for each in batch if each.event_time > since
        ]
        asked = [each for each in by_the_oracle(text, seen, static) if each.t > before]
        assert diff_answers(asked, every) == "", text.text


def by_the_oracle(text: QueryText, seen: Sequence[Element], static: list[Quad]) -> list[Answer]:
    """What the query means over some elements."""
    ordered = sorted(seen, key=lambda each: (each.event_time, each.position))
    return list(Oracle(text.parsed(), static=static).answers(ordered))
