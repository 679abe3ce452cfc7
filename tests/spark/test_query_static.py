"""Static data of queries: solved by Spark as in memory, in all formats, and reloaded on request."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from brokers import until
from quadweir.entailment.close import static_closure
from quadweir.errors import DataError, PlanError, SourceError, StateError
from quadweir.optimize import optimize
from quadweir.plan.program import program_of
from quadweir.runtime.query import RegisteredQuery
from quadweir.runtime.static.data import StaticData
from quadweir.sinks.files import FileSink
from quadweir.sinks.gate import Gate
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.memory import MemorySink
from quadweir.sinks.start import Call
from quadweir.sources.schemafiles import read_schema
from quadweir.sources.staticfiles import StaticFile
from quadweir.sources.streamfiles import Element
from quadweir.syntax import parse
from quadweir.terms import IRI, Quad
from quadweir.testing import Answer, Oracle, diff_answers
from spark_queries import LAST, engine_over, write_batches, written
from static_files import FILES, write_static
from streaming import quads, stream

pytestmark = pytest.mark.spark

STREAM = "STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y }"
PATTERNS = {
    "triple patterns": [
        "?y <urn:r> ?z",
        "?y <urn:r> ?z . ?z <urn:name> ?name . ?other <urn:r> ?z",
        "?y <urn:r> ?z . ?a <urn:age> ?b",
        "?y <urn:r> ?y",
        "GRAPH <urn:g> { ?y <urn:r> ?z }",
        "GRAPH ?g { ?y <urn:r> ?z } ?z <urn:name> ?name",
        "?y <urn:r> ?z OPTIONAL { ?z <urn:age> ?age } FILTER(?z != ?y)",
        "<urn:b0> <urn:r> <urn:c0>",
    ],
    "a path": ["?y <urn:r>+ ?z"],
}


@pytest.fixture(scope="module")
def static(tmp_path_factory) -> tuple[StaticFile, ...]:
    folder = tmp_path_factory.mktemp("static")
    write_static(folder)
    return (StaticFile(folder), StaticFile(folder / FILES[0], IRI("urn:h")))


@pytest.mark.parametrize("patterns", PATTERNS.values(), ids=PATTERNS)
def test_spark_finds_in_large_data_what_is_found_in_memory(spark, static, patterns) -> None:
    branches = " UNION ".join(f"{{ {STREAM} {pattern} }}" for pattern in patterns)
    query = optimize(parse(f"SELECT * {{ {branches} }}", dialect="cqels")).query
    wanted = program_of(query, streams=("urn:s",)).static
    assert len(wanted) >= len(patterns)
    found = [
        StaticData(static, large_bytes=size).prepare(spark, query, ("urn:s",))
        for size in (1 << 30, 0)
    ]
    for asked in wanted:
        small, large = (each.source.relation(asked.query, asked.variables) for each in found)
        assert small.count > 0
        assert small.digest == large.digest
    assert found[0].digest == found[1].digest


def test_spark_closes_large_data_as_it_is_closed_in_memory(spark, static, tmp_path) -> None:
    (tmp_path / "schema.ttl").write_text(
        """@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        @prefix owl: <http://www.w3.org/2002/07/owl#> .
        <urn:r> rdfs:range <urn:C> ; rdfs:subPropertyOf <urn:q> . <urn:C> rdfs:subClassOf <urn:D> .
        <urn:q> owl:inverseOf <urn:back> . <urn:name> rdfs:domain <urn:D> .""",
        encoding="utf-8",
    )
    schema, _ = read_schema([tmp_path / "schema.ttl"])
    text = f"""SELECT * {{ {{ {STREAM} ?y a <urn:D> }} UNION {{ {STREAM} GRAPH ?g {{ ?y <urn:back> ?z }} }}
        UNION {{ {STREAM} ?y <urn:q> ?z }} }}"""
    query = parse(text, dialect="cqels")
    follows = static_closure(schema, query)
    wanted = program_of(optimize(query).query, streams=("urn:s",)).static
    found = [
        StaticData(static, large_bytes=size).prepare(
            spark, optimize(query).query, ("urn:s",), follows=follows
        )
        for size in (1 << 30, 0)
    ]
    for asked in wanted:
        small, large = (each.source.relation(asked.query, asked.variables) for each in found)
        assert small.count > 0
        assert small.digest == large.digest


def test_from_takes_named_graphs_and_misses_those_that_are_not_there(spark, static) -> None:
    def prepared(graph: str, size: int, predicate: str = "r") -> str:
        text = f"""SELECT * FROM <{graph}> FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S]
            {{ WINDOW <urn:w> {{ ?x <urn:p> ?y }} ?y <urn:{predicate}> ?z }}"""
        query = optimize(parse(text)).query
        return StaticData(static, large_bytes=size).prepare(spark, query, ("urn:s",)).digest

    assert prepared("urn:g", 0) == prepared("urn:g", 1 << 30) != prepared("urn:h", 0)
    assert prepared("urn:g", 0, "none") == prepared("urn:g", 1 << 30, "none")
    with pytest.raises(PlanError, match="urn:none"):
        prepared("urn:none", 0)


def test_a_fault_in_large_data_is_named(spark, tmp_path) -> None:
    (tmp_path / "bad.nt").write_text("<urn:a> <urn:r> <urn:b> .\nnonsense\n")
    query = optimize(parse(f"SELECT * {{ {STREAM} ?y <urn:r> ?z }}", dialect="cqels")).query
    data = StaticData((StaticFile(tmp_path),), large_bytes=0)
    with pytest.raises(DataError, match=r"bad\.nt, line 2"):
        data.prepare(spark, query, ("urn:s",))


def test_a_query_is_registered_before_its_static_data_is_there(spark, tmp_path: Path) -> None:
    """It reads the data when it starts, or when somebody asks for its plan."""
    text = f"SELECT ?x ?z {{ {STREAM} ?y <urn:r> ?z }}"
    file = tmp_path / "data.nt"
    write_batches(tmp_path / "in", [*stream((1000, "a p b7"), (1001, "a p b8")), LAST], 10)
    registered = engine_over(spark, tmp_path / "in").query(text, static=[file])

    def start() -> None:
        registered.start(
            FileSink(tmp_path / "out", LineFormat.ANSWERS_JSONL),
            checkpoint=tmp_path / "checkpoint",
            available_now=True,
        )

    for asked in (start, registered.explain, registered.spelled_answers):
        with pytest.raises(SourceError, match=r"data\.nt"):
            asked()
    file.write_text("<urn:b> <urn:r> <urn:c> .\nnonsense\n")
    for asked in (start, registered.explain, registered.spelled_answers):
        with pytest.raises(DataError, match=r"data\.nt, line 2"):
            asked()
    file.write_text("".join(f"<urn:b{n}> <urn:r> <urn:c{n}> .\n" for n in range(0, 100_000, 8)))
    start()
    registered.awaitTermination()
    assert {each.bindings["z"] for each in written(tmp_path / "out")} == {IRI("urn:c8")}
    file.unlink()
    # What was read stays known.
    assert "12,500 rows" in registered.explain()


def test_static_data_is_reloaded_while_a_query_runs(spark, tmp_path: Path) -> None:
    text = f"SELECT ?x ?z {{ {STREAM} ?y <urn:r> ?z }}"
    feed = stream(*((1000 + 3 * n, f"a{n % 5} p b{n % 3}") for n in range(40)))
    file = tmp_path / "data.nt"
    before, after = quads("b0 r c0 . b1 r c1"), quads("b1 r d1 . b2 r d2")
    file.write_text("".join(f"{quad}\n" for quad in before))
    following = write_batches(tmp_path / "in", feed[:20], 10)
    engine = engine_over(spark, tmp_path / "in")
    registered = engine.query(text, static=[file])
    out = tmp_path / "out"
    registered.start(FileSink(out, LineFormat.ANSWERS_JSONL), checkpoint=tmp_path / "checkpoint")
    try:
        registered.processAllAvailable()
        assert registered.reload_static() is False
        file.rename(tmp_path / "elsewhere.nt")
        with pytest.raises(SourceError, match=r"data\.nt"):
            registered.reload_static()
        assert registered.isActive
        file.write_text("".join(f"{quad}\n" for quad in after))
        assert registered.reload_static() is True
        write_batches(tmp_path / "in", [*feed[20:], LAST], 10, first=following)
        until(lambda: registered.isActive, "the query runs again")
        registered.processAllAvailable()
        registered.processAllAvailable()
    finally:
        registered.stop()
    cut = feed[20].event_time
    expected = [
        answer
        for data, wanted in ((before, range(cut)), (after, range(cut, 10_000)))
        for answer in Oracle(text, static=data).answers(feed)
        if answer.t in wanted
    ]
    assert len({answer.t for answer in expected}) > 10
    assert diff_answers(expected, written(out)) == ""
    # The checkpoint is now that of the new data.
    engine.query(text, static=[file]).fingerprint.guard(tmp_path / "checkpoint")


def test_data_is_reloaded_between_two_batches(
    spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a topic, nobody could tell which answers of one batch rest on old data, and which on new."""
    file = tmp_path / "data.nt"
    file.write_text("<urn:b> <urn:r> <urn:c> .\n")
    (tmp_path / "in").mkdir()
    begun, ended = [], []
    stopping = threading.Event()
    close = Gate.close
    monkeypatch.setattr(Gate, "close", lambda *args: (stopping.set(), close(*args)))

    def write(frame: DataFrame, number: int) -> None:
        begun.append(number)
        found = {row.bindings.z for row in frame.collect()}
        if len(begun) > 1:
            assert stopping.wait(240), "the query is stopped while a batch is written"
        ended.append((number, found))

    engine = engine_over(spark, tmp_path / "in")
    text = f"SELECT ?x ?z {{ {STREAM} ?y <urn:r> ?z }}"
    registered = engine.query(text, dialect="cqels", static=[file])
    feed = [*stream(*((1000 + n, f"a{n} p b") for n in range(12)))]
    write_batches(tmp_path / "in", feed, 2)
    registered.start(Call(write), checkpoint=tmp_path / "checkpoint")
    try:
        until(lambda: len(begun) > 1, "a batch is being written")
        file.write_text("<urn:b> <urn:r> <urn:d> .\n")
        assert registered.reload_static() is True
        assert registered.exception() is None
        registered.processAllAvailable()
    finally:
        registered.stop()
    numbers = [number for number, _ in ended]
    assert numbers == begun == sorted(set(numbers))
    reported = [found for _, found in ended if found]
    assert {*reported[0]} == {"<urn:c>"}
    assert {*reported[-1]} == {"<urn:d>"}
    assert all(len(found) == 1 for found in reported)


@pytest.mark.parametrize("is_live", [True, False], ids=["while it runs", "from a checkpoint"])
def test_two_stages_over_divided_data_reload_it_and_so_do_queries_that_feed_them(
    spark, tmp_path: Path, *, is_live: bool
) -> None:
    """A count window is over what was there; earlier answers of the feeding query do not change."""
    made = """CONSTRUCT { ?y <urn:q> ?o } FROM NAMED WINDOW <urn:w> ON <urn:t> [RANGE PT0.02S]
        { WINDOW <urn:w> { ?y <urn:q> ?b } ?b <urn:s> ?o }"""
    text = """SELECT ?z (COUNT(*) AS ?n) (MAX(?o) AS ?m)
        FROM NAMED WINDOW <urn:v> ON <urn:s> [TRIPLES 6]
        FROM NAMED WINDOW <urn:w> ON <urn:made> [RANGE PT0.03S]
        { WINDOW <urn:v> { ?x <urn:p> ?y } WINDOW <urn:w> { ?y <urn:q> ?o } ?y <urn:r> ?z
          OPTIONAL { WINDOW <urn:w> { ?y <urn:q> ?e } <urn:b0> <urn:is> <urn:on> } } GROUP BY ?z"""
    feed = [
        *stream(*((1000 + 3 * n, f"a{n % 5} p b{n % 3}") for n in range(40))),
        *stream(*((1000 + 3 * n, f"b{n % 4} q c{n % 3}") for n in range(40)), name="t"),
    ]
    feed.sort(key=lambda each: each.event_time)
    before = quads("b0 r d0 . b1 r d1 . c0 s o0")
    after = quads("b1 r d1 . b2 r d1 . b0 r d2 . c1 s o1 . c2 s o2 . b0 is on")
    file, out = tmp_path / "data.nt", tmp_path / "out"
    file.write_text("".join(f"{quad}\n" for quad in before))
    following = write_batches(tmp_path / "in", feed[:40], 20)

    def made_query() -> RegisteredQuery:
        engine = engine_over(spark, tmp_path / "in")
        engine.provide("urn:made", engine.query(made, static=[file]))
        return engine.query(text, static=[file])

    def start(query: RegisteredQuery, *, reload_static: bool = False) -> None:
        sink = FileSink(out, LineFormat.ANSWERS_JSONL)
        query.start(sink, checkpoint=tmp_path / "checkpoint", reload_static=reload_static)

    registered = made_query()
    assert len(registered.plan.stages) == 2
    assert any(placed.is_divided for _, placed in registered.plan.placed)
    start(registered)
    try:
        registered.processAllAvailable()
        assert registered.reload_static() is False
        reported = written(out)
        file.write_text("".join(f"{quad}\n" for quad in after))
        if is_live:
            assert registered.reload_static() is True
        else:
            registered.stop()
            registered = made_query()
            with pytest.raises(StateError) as refused:
                start(registered)
            assert "--reload-static" in (refused.value.hint or "")
            start(registered, reload_static=True)
        write_batches(tmp_path / "in", [*feed[40:], LAST], 20, first=following)
        registered.processAllAvailable()
        registered.processAllAvailable()
    finally:
        registered.stop()
    # Of the newest instant of a stream not all was known.
    old, new = range(feed[39].event_time), range(feed[39].event_time, 10_000)

    def answers(
        asked: str, data: tuple[Quad, ...], instants: range, *more: Element
    ) -> list[Answer]:
        found = Oracle(asked, static=data).answers([*feed, *more])
        return [answer for answer in found if answer.t in instants]

    given = [*answers(made, before, old), *answers(made, after, new)]
    elements = [Element("urn:made", each.t, n, each.graph) for n, each in enumerate(given)]
    assert diff_answers(answers(text, before, old, *elements), reported) == ""
    later = answers(text, after, new, *elements)
    assert len({answer.t for answer in later}) > 10
    assert diff_answers([*reported, *later], written(out)) == ""


def test_a_query_keeps_the_data_that_it_runs_over_when_another_reloads_it(
    spark, tmp_path: Path
) -> None:
    """Both read the answers of a third, and only one reloads its data."""
    made = f"CONSTRUCT {{ ?x <urn:to> ?z }} {{ {STREAM} ?y <urn:r> ?z }}"
    text = "SELECT ?x ?z { STREAM <urn:made> [RANGE 15ms] { ?x <urn:to> ?z } }"
    file, out = tmp_path / "data.nt", tmp_path / "out"
    file.write_text("<urn:b> <urn:r> <urn:c> .\n")
    (tmp_path / "in").mkdir()
    engine = engine_over(spark, tmp_path / "in")
    engine.provide("urn:made", engine.query(made, dialect="cqels", static=[file]))
    one, other = (engine.query(text, dialect="cqels") for _ in range(2))
    try:
        for name, query in (("one", one), ("other", other)):
            sink = FileSink(out / name, LineFormat.ANSWERS_JSONL)
            query.start(sink, checkpoint=tmp_path / f"checkpoint of {name}")
        file.write_text("<urn:b> <urn:r> <urn:d> .\n")
        assert one.reload_static() is True
        one.stop()
        write_batches(tmp_path / "in", [*stream((1000, "a p b")), LAST], 10)
        other.processAllAvailable()
    finally:
        one.stop()
        other.stop()
    expected = [Answer.of(1000, "+", {"x": IRI("urn:a"), "z": IRI("urn:c")})]
    assert diff_answers(expected, written(out / "other")) == ""


TRIANGLE = """FROM <urn:g> FROM STREAM <urn:s> [RANGE 20ms STEP 10ms]
    WHERE { ?x <urn:p> ?y . ?y <urn:r> ?z . ?z <urn:o> ?x }"""
"""Which of the variables it is sharded by depends on what static data has of it."""


def started(
    query: RegisteredQuery, checkpoint: Path, *, reloading: bool = False
) -> RegisteredQuery:
    return query.start(MemorySink(), checkpoint=checkpoint, reload_static=reloading)


@pytest.mark.parametrize("is_live", [True, False], ids=["while it runs", "from a checkpoint"])
def test_rows_of_queries_that_feed_it_stay_where_they_are(
    spark, tmp_path: Path, *, is_live: bool
) -> None:
    file, checkpoint = tmp_path / "data.nq", tmp_path / "checkpoint"
    file.write_text("<urn:a> <urn:r> <urn:c> <urn:g> .\n")
    (tmp_path / "in").mkdir()

    def registered() -> tuple[RegisteredQuery, RegisteredQuery]:
        engine = engine_over(spark, tmp_path / "in")
        text = f"CONSTRUCT {{ ?x <urn:to> ?z }} {TRIANGLE}"
        made = engine.query(text, dialect="csparql", static=[file])
        engine.provide("urn:made", made)
        text = "SELECT ?x ?z { STREAM <urn:made> [RANGE 15ms] { ?x <urn:to> ?z } }"
        return made, engine.query(text, dialect="cqels")

    made, reader = registered()
    layout = made.plan.layout
    started(reader, checkpoint)
    try:
        file.write_text("<urn:a> <urn:p> <urn:b> <urn:g> .\n")
        other, reloading = registered()
        assert other.plan.layout != layout
        if is_live:
            assert reader.reload_static() is True
        else:
            reader.stop()
            made, reader = other, started(reloading, checkpoint, reloading=True)
        assert made.plan.layout == layout
        assert reader.isActive
    finally:
        reader.stop()


def test_a_query_is_compared_with_what_it_runs_on_whatever_others_read(
    spark, tmp_path: Path
) -> None:
    """Another that reads its answers, and does not run, may have had it planned over any data."""
    file = tmp_path / "data.nq"
    file.write_text("<urn:a> <urn:r> <urn:c> <urn:g> .\n")
    (tmp_path / "in").mkdir()
    engine = engine_over(spark, tmp_path / "in")
    text = f"CONSTRUCT {{ ?x <urn:to> ?z }} {TRIANGLE}"
    made = engine.query(text, dialect="csparql", static=[file])
    engine.provide("urn:made", made)
    text = "SELECT ?x ?z { STREAM <urn:made> [RANGE 15ms] { ?x <urn:to> ?z } }"
    reader = engine.query(text, dialect="cqels")
    layout = made.plan.layout
    started(made, tmp_path / "checkpoint")
    try:
        file.write_text("<urn:a> <urn:p> <urn:b> <urn:g> .\n")
        assert reader.reload_static() is True
        assert made.plan.layout != layout
        file.write_text("<urn:a> <urn:r> <urn:c> <urn:g> .\n")
        assert made.reload_static() is False
        assert made.plan.layout == layout
    finally:
        made.stop()
