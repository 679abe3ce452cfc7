"""A mapping's output as a stream for a query: times, elements, every sink."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import quadweir.runtime.spark.session
from brokers import KafkaBroker, until
from quadweir import Engine, rows
from quadweir.cli import main
from quadweir.commands.maplive import LiveOptions, begin
from quadweir.errors import UnsupportedError, UsageError
from quadweir.mapping.elements import ElementRule
from quadweir.mapping.files import Folders
from quadweir.mapping.read import parse_mapping
from quadweir.runtime.mappings.live import start_realtime
from quadweir.runtime.mappings.realtime import check_realtime
from quadweir.runtime.mappings.streams import Streams, compile_live
from quadweir.sinks.kafka import KafkaSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.start import Call
from quadweir.sources.streamfiles import Element, read_elements

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PREFIXES = """
@prefix rml: <http://w3id.org/rml/> . @prefix rmls: <http://semweb.mmlab.be/ns/rmls#> .
@base <http://e.org/m/> .
"""
CSV = "id,v,t,lane\n1,a,1000,L\n2,b,2000,L\n3,c,soon,M\n4,d,2000,M\n"
RECORDS = [
    {"id": 1, "v": "a", "t": 1000, "lane": "L"},
    {"id": 2, "v": "b", "t": 2000, "lane": "L"},
    {"id": 3, "v": "c", "t": "soon", "lane": "M"},
    {"id": 4, "v": "d", "t": "1970-01-01T00:00:02Z", "lane": "M"},
]
LANES = "lane,name\nL,left\nM,middle\nM,mid\n"
SOURCE = '[ a rmls:FileStream ; rmls:path "in" ]'
# Two triples of each record, and one for each name of its lane.
LOOKUP = """
; rml:predicateObjectMap [ rml:predicate <urn:lane> ; rml:objectMap [ rml:parentTriplesMap <#lane> ;
    rml:joinCondition [ rml:child "lane" ; rml:parent "lane" ] ] ] .
<#lane> rml:logicalSource [ rml:source "lanes.csv" ; rml:referenceFormulation rml:CSV ] ;
  rml:subjectMap [ rml:template "urn:{name}" ] .
"""


def mapping_text(source: str, *, formulation: str = "JSONPath", graph: str = "", more: str = "."):
    return f"""{PREFIXES}
    <#m> rml:logicalSource [ rml:source {source} ; rml:referenceFormulation rml:{formulation} ] ;
      rml:subjectMap [ rml:template "urn:{{id}}" ; rml:class <urn:C> {graph} ] ;
      rml:predicateObjectMap [ rml:predicate <urn:v> ; rml:objectMap [ rml:reference "v" ] ] {more}
    """


def said(elements: Iterator[Element]) -> list[tuple[int, frozenset[str]]]:
    """The times and triples of elements; graph names are ignored."""
    found = [
        (
            each.event_time,
            frozenset(f"{q.subject} {q.predicate} {q.object}" for q in each.quads),
        )
        for each in elements
    ]
    return sorted(found, key=lambda one: (one[0], sorted(one[1])))


def record(number: int, letter: str, *names: str) -> frozenset[str]:
    a = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    subject = f"<urn:{number}>"
    return frozenset(
        {
            f"{subject} {a} <urn:C>",
            f'{subject} <urn:v> "{letter}"',
            *(f"{subject} <urn:lane> <urn:{name}>" for name in names),
        }
    )


WANTED = [(1000, record(1, "a")), (2000, record(2, "b")), (2000, record(4, "d"))]
WITH_LANES = [
    (1000, record(1, "a", "left")),
    (2000, record(2, "b", "left")),
    (2000, record(4, "d", "mid", "middle")),
]


@pytest.fixture
def call(spark, capsysbinary, monkeypatch):
    """Type a command in the one session: exit code, standard output, standard error."""
    monkeypatch.setattr(quadweir.runtime.spark.session, "build", lambda **_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _self: None)

    def typed(*words: object) -> tuple[int, str, str]:
        capsysbinary.readouterr()
        code = 0
        try:
            main([str(word) for word in words])
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return typed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text("\n".join(map(json.dumps, RECORDS)) + "\n")
    (tmp_path / "r.csv").write_text(CSV)
    (tmp_path / "lanes.csv").write_text(LANES)
    return tmp_path


@pytest.mark.parametrize(
    "graph", ["", "; rml:graph <urn:g>", '; rml:graphMap [ rml:template "urn:g{id}" ]']
)
def test_a_bounded_run_writes_a_stream_file(call, folder, graph):
    """Elements stay complete and separate in any graph."""
    text = mapping_text('"r.csv"', formulation="CSV", graph=graph)
    (folder / "m.ttl").write_text(text)
    out, dead = folder / "out.stream", folder / "dead.jsonl"
    code, _, err = call("map", folder / "m.ttl", "-o", out, "--time", "t", "--dead-letters", dead)
    assert code == 0, err
    assert said(read_elements(out, stream="urn:s")) == WANTED
    times = [each.event_time for each in read_elements(out, stream="urn:s")]
    assert times == sorted(times)
    (letter,) = map(json.loads, dead.read_text().splitlines())
    assert letter["reason"] == "no event time in t: soon"
    # The same on standard output.
    _, shown, _ = call("map", folder / "m.ttl", "--format", "timed-lines", "--time", "r.csv=t")
    assert sorted(shown.splitlines()) == sorted(out.read_text().splitlines())


def test_each_graph_of_a_record_is_an_element(call, folder):
    own = '[ rml:template "urn:g{id}" ]'
    graph = f"; rml:graphMap {own}"
    more = (
        "; rml:predicateObjectMap [ rml:predicate <urn:w> ; rml:graph <urn:all> ; "
        'rml:objectMap [ rml:reference "v" ] ] .'
    )
    text = mapping_text('"r.csv"', formulation="CSV", graph=graph, more=more)
    (folder / "m.ttl").write_text(text)
    out = folder / "out.stream"
    code, _, err = call("map", folder / "m.ttl", "-o", out, "--time", "t")
    assert code == 0, err
    found = list(read_elements(out, stream="urn:s"))
    assert {(e.event_time, str(e.quads[0].graph), len(e.quads)) for e in found} == {
        (1000, "<urn:g1>", 3),
        (2000, "<urn:g2>", 3),
        (2000, "<urn:g4>", 3),
        (1000, "<urn:all>", 1),
        (2000, "<urn:all>", 1),
    }
    assert len(found) == 6  # Two at 2000 in <urn:all>: they were two records.


def test_what_a_lookup_adds_belongs_to_the_record(call, folder):
    (folder / "m.ttl").write_text(mapping_text('"r.csv"', formulation="CSV", more=LOOKUP))
    out = folder / "out.stream"
    code, _, err = call("map", folder / "m.ttl", "-o", out, "--time", "t")
    assert code == 0, err
    assert said(read_elements(out, stream="urn:s")) == WITH_LANES


def test_what_has_no_time_is_no_stream(call, folder):
    (folder / "m.ttl").write_text(mapping_text('"r.csv"', formulation="CSV"))
    code, _, err = call("map", folder / "m.ttl", "--format", "timed-lines")
    assert code == 3
    assert "the records of r.csv have no event time" in err and "--time r.csv=" in err
    code, _, err = call("map", folder / "m.ttl", "--time", "t")
    assert (code, "--time goes with" in err) == (2, True)
    code, _, err = call("map", folder / "m.ttl", "-o", "x.stream", "--time", "t", "--distinct")
    assert (code, "--distinct" in err) == (2, True)
    code, _, err = call("map", folder / "m.ttl", "-o", "x.stream", "--time", "tt")
    assert (code, "did you mean 't'" in err.lower()) == (3, True)


def test_pairs_of_two_streams_have_the_later_time(call, folder):
    """The same in a bounded run as in a live one (`test_stream_joins.py`)."""
    (folder / "other.csv").write_text("lane,at\nL,1500\nM,1\n")
    more = LOOKUP.replace('"lanes.csv"', '"other.csv"').replace("{name}", "{at}").rstrip()
    more = (
        more.removesuffix(".")
        + "; rml:predicateObjectMap [ rml:predicate <urn:is> ; rml:object <urn:x> ] ."
    )
    (folder / "m.ttl").write_text(mapping_text('"r.csv"', formulation="CSV", more=more))
    out = folder / "out.stream"
    code, _, err = call("map", folder / "m.ttl", "-o", out, "--time", "t", "--time", "other.csv=at")
    assert code == 0, err
    lanes = [
        (time, one)
        for time, statements in said(read_elements(out, stream="urn:s"))
        for one in statements
        if "urn:lane>" in one
    ]
    assert lanes == [
        (1500, "<urn:1> <urn:lane> <urn:1500>"),
        (2000, "<urn:2> <urn:lane> <urn:1500>"),
        (2000, "<urn:4> <urn:lane> <urn:1>"),
    ]


QUERY = "SELECT ?s ?v { STREAM <urn:s> [RANGE 500ms] { ?s a <urn:C> ; <urn:v> ?v } }"
ANSWERS = [(1000, "<urn:1>", '"a"'), (2000, "<urn:2>", '"b"'), (2000, "<urn:4>", '"d"')]


def answers_of(frame) -> list[tuple[int, str, str]]:
    return sorted((row.t, row.bindings.s, row.bindings.v) for row in frame.collect())


@pytest.mark.parametrize("how", ["a reference", "a column", "a timestamp"])
def test_a_mapped_frame_is_a_stream(spark, how):
    """As `docs/reference/queries.md` says."""
    frame = spark.createDataFrame(
        [(1, "a", 1000), (2, "b", 2000), (4, "d", 2000)], "id int, v string, t long"
    )
    mapping = parse_mapping(mapping_text('"{frame}"', formulation="CSV"))
    if how == "a reference":
        mapped = mapping.apply(frame, time="t")
    elif how == "a column":
        mapped = mapping.apply(frame.withColumnRenamed("t", rows.EVENT_TIME))
    else:
        mapped = mapping.apply(frame.selectExpr("id", "v", "timestamp_millis(t) AS t"), time="t")
    assert mapped.schema.names == rows.STATEMENT_SCHEMA.names
    engine = Engine(spark)
    engine.provide("urn:s", mapped)
    assert answers_of(engine.query(QUERY).spelled_answers()) == ANSWERS


def test_quads_without_times_are_no_stream(spark):
    frame = spark.createDataFrame([(1, "a")], "id int, v string")
    mapped = parse_mapping(mapping_text('"{frame}"', formulation="CSV")).apply(frame)
    with pytest.raises(UsageError, match="event_time") as found:
        Engine(spark).provide("urn:s", mapped)
    assert 'time="' in (found.value.hint or "")


def options(folder: Path, **more: object) -> LiveOptions:
    return LiveOptions(folders=Folders(mapping=folder, working=folder), **more)  # type: ignore[arg-type]


def test_a_live_run_writes_stream_files(spark, folder):
    """Each batch a file of whole elements; records without a time are dead letters."""
    mapping = parse_mapping(mapping_text(SOURCE, more=LOOKUP))
    given = options(
        folder,
        output=str(folder / "out"),
        form="timed-lines",
        times={"": "t"},
        dead_letters=str(folder / "dead"),
    )
    for number in (2, 3):
        begun = begin(spark, mapping, given, folder / "cp", {})
        begun.query.processAllAvailable()
        begun.query.stop()
        more = {"id": number * 10, "v": "e", "t": 1000 * number, "lane": "L"}
        (folder / "in" / f"{number}.jsonl").write_text(json.dumps(more) + "\n")
    found = said(read_elements(folder / "out", stream="urn:s"))
    assert found == sorted(
        [*WITH_LANES, (2000, record(20, "e", "left"))], key=lambda one: (one[0], sorted(one[1]))
    )
    (letter,) = [
        json.loads(line)
        for path in (folder / "dead").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert letter["reason"] == "no event time in t: soon"


def messages(kafka: KafkaBroker, spark, topic: str) -> dict[str, str]:
    return {row.key: row.value for row in kafka.consume(spark, topic).collect()}


def elements_in(found: dict[str, str]) -> list[tuple[int, frozenset[str]]]:
    """One element for each message."""
    return sorted(
        (
            (
                int(value.split(" ")[0]),
                frozenset(line.partition(" ")[2].removesuffix(" .") for line in value.split("\n")),
            )
            for value in found.values()
        ),
        key=lambda one: (one[0], sorted(one[1])),
    )


@pytest.mark.kafka
def test_what_map_sends_to_kafka_a_query_answers(spark, kafka, folder):
    """End to end: records, `map --live` to a topic, a live query over that topic."""
    topic = kafka.topic()
    given = options(
        folder, output=f"kafka:{kafka.address}/{topic}", form="timed-lines", times={"": "t"}
    )
    begun = begin(spark, parse_mapping(mapping_text(SOURCE, more=LOOKUP)), given, folder / "cp", {})
    begun.query.processAllAvailable()
    begun.query.stop()
    sent = messages(kafka, spark, topic)
    assert elements_in(sent) == WITH_LANES
    assert len(sent) == 3

    (folder / "streams.toml").write_text(
        f"""
        [streams."urn:s"]
        source = {{ kind = "kafka", servers = "{kafka.address}", topic = "{topic}" }}
        format = "timed-lines"
        delay = "0s"
        """
    )
    engine = Engine(spark)
    engine.load_streams(folder / "streams.toml")
    query = engine.query(QUERY)
    found: list[tuple[int, str, str]] = []

    def keep(frame, _number) -> None:
        found.extend(answers_of(frame))

    query.start(Call(keep), checkpoint=folder / "query")
    try:
        until(lambda: sorted(found) == ANSWERS, "the answers", query=query.streaming)
    finally:
        query.stop()


@pytest.mark.kafka
def test_real_time_mode_sends_a_message_for_each_element(spark, kafka, folder):
    source, topic = kafka.topic(), kafka.topic()
    kafka.produce(spark, source, [json.dumps(one) for one in RECORDS])
    text = mapping_text(
        f'[ a rmls:KafkaStream ; rmls:broker "{kafka.address}" ; rmls:topic "{source}" ]'
    )
    streams = Streams(
        spark=spark,
        folders=Folders(mapping=folder, working=folder),
        spool=folder / "spool",
        times={source: "t"},
    )
    mapping = parse_mapping(text)
    compiled = compile_live(mapping, streams, elements=ElementRule(lambda _: ""))
    check_realtime(mapping, compiled)
    sink = KafkaSink(kafka.address, topic, LineFormat.TIMED_LINES, name="map")
    every = timedelta(seconds=5)
    query = start_realtime(compiled, sink, f"{topic}-dead", folder / "cp", every=every)
    try:
        # No job of Spark may ask: until a batch ends, its tasks have all slots.
        until(
            lambda: sum(each.numInputRows for each in query.recentProgress) == len(RECORDS),
            "all records in the notes of progress",
            query=query,
        )
    finally:
        query.stop()
    assert elements_in(messages(kafka, spark, topic)) == WANTED
    assert "no event time in t" in str(messages(kafka, spark, f"{topic}-dead"))
    graphs = parse_mapping(
        text.replace("rml:class <urn:C>", "rml:class <urn:C>; rml:graph <urn:g>, rml:defaultGraph")
    )
    with pytest.raises(UnsupportedError, match="several graphs"):
        check_realtime(graphs, compile_live(graphs, streams, elements=ElementRule(lambda _: "")))


# --- `query --mapping`, and the oracle over all that a query can read ---


def jsonl(out: str) -> list[tuple[int, str, str]]:
    found = [json.loads(line) for line in out.splitlines()]
    return sorted(
        (each["t"], f"<{each['bindings']['s']['value']}>", f'"{each["bindings"]["v"]["value"]}"')
        for each in found
    )


def test_a_run_maps_and_queries(call, folder):
    (folder / "m.ttl").write_text(mapping_text('"r.csv"', formulation="CSV"))
    (folder / "q.rq").write_text(QUERY)
    for options in (["--verify"], ["--oracle"]):
        code, out, err = call(
            "query", folder / "q.rq", "--mapping", folder / "m.ttl", "--time", "t", *options
        )
        assert code == 0, err
        assert jsonl(out) == ANSWERS
        assert "no event time in t: soon" in err
    # In two runs, by a stream file, it is the same.
    assert call("map", folder / "m.ttl", "-o", folder / "s.stream", "--time", "t")[0] == 0
    code, out, err = call("query", folder / "q.rq", "--stream", f"urn:s={folder / 's.stream'}")
    assert (code, jsonl(out)) == (0, ANSWERS), err


def test_why_says_which_mapped_triples_an_answer_rests_on(call, folder):
    (folder / "m.ttl").write_text(mapping_text('"r.csv"', formulation="CSV"))
    (folder / "q.rq").write_text(QUERY)
    code, out, err = call(
        "query", folder / "q.rq", "--mapping", f"urn:s={folder / 'm.ttl'}", "--time", "t", "--why"
    )
    assert code == 0, err
    assert jsonl(out) == ANSWERS
    assert all("why" in json.loads(line) for line in out.splitlines())


def test_times_inside_mapped_elements(call, folder):
    """A window that takes times from a predicate needs none of the records."""
    at = (
        "; rml:predicateObjectMap [ rml:predicate <urn:at> ; rml:objectMap [ rml:reference "
        '"t" ; rml:datatype <http://www.w3.org/2001/XMLSchema#integer> ] ] .'
    )
    (folder / "r.csv").write_text("id,v,t\n1,a,1000\n2,b,2000\n4,d,2000\n")
    (folder / "m.ttl").write_text(mapping_text('"r.csv"', formulation="CSV", more=at))
    (folder / "q.rq").write_text(
        "SELECT ?s ?v FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT0.5S STEP PT1S @<urn:at>] "
        "{ WINDOW <urn:w> { ?s a <urn:C> ; <urn:v> ?v } }"
    )
    code, out, err = call("query", folder / "q.rq", "--mapping", folder / "m.ttl", "--verify")
    assert (code, jsonl(out)) == (0, ANSWERS), err


def test_declared_streams_are_mapped_under_their_own_names(call, folder):
    """Two sources, two streams; the oracle takes `--streams` as the engine does."""
    (folder / "streams.toml").write_text(
        """
        [streams."urn:s"]
        source = { kind = "folder", path = "in", pattern = "1.jsonl" }
        format = "jsonl"
        time = { column = "t" }
        [streams."urn:plain"]
        source = { kind = "file", path = "plain.stream" }
        format = "timed-lines"
        [streams."urn:graphs"]
        source = { kind = "file", path = "graphs.nq" }
        format = "timed-graphs"
        """
    )
    (folder / "plain.stream").write_text(
        "900 <urn:1> <urn:knows> <urn:2> .\n2000 <urn:4> <urn:knows> <urn:1> .\n"
    )
    time = "<http://www.w3.org/ns/prov#generatedAtTime>"
    (folder / "graphs.nq").write_text(
        f'<urn:g> {time} "1970-01-01T00:00:01Z" .\n<urn:1> <urn:seen> <urn:now> <urn:g> .\n'
    )
    (folder / "m.ttl").write_text(mapping_text("<urn:s>"))
    (folder / "q.rq").write_text(
        "SELECT ?s ?v { STREAM <urn:s> [RANGE 500ms] { ?s <urn:v> ?v } "
        "STREAM <urn:plain> [RANGE 500ms] { ?s <urn:knows> ?o } }"
    )
    words = ("query", folder / "q.rq", "--streams", folder / "streams.toml")
    for options in (["--verify"], ["--oracle"]):
        code, out, err = call(*words, "--mapping", folder / "m.ttl", *options)
        assert code == 0, err
        assert jsonl(out) == [(1000, "<urn:1>", '"a"'), (2000, "<urn:4>", '"d"')]
    # Without a mapping: streams that are RDF already.
    (folder / "q.rq").write_text(
        "SELECT ?s ?v { STREAM <urn:plain> [RANGE 500ms] { ?s <urn:knows> ?v } "
        "STREAM <urn:graphs> [RANGE 500ms] { ?s <urn:seen> <urn:now> } }"
    )
    for options in (["--verify"], ["--why"]):
        code, out, err = call(*words, *options)
        assert code == 0, err
        assert [each[:2] for each in jsonl(out)] == [(1000, "<urn:1>")]


def test_a_live_run_maps_and_queries(spark, folder):
    """Records of a watched folder, joined with a lookup, and answers that go on after a restart."""
    (folder / "m.ttl").write_text(mapping_text(SOURCE, more=LOOKUP))
    found: list[tuple[int, str, str]] = []

    def keep(frame, _number) -> None:
        found.extend(answers_of(frame))

    for number in (1, 2):
        engine = Engine(spark)
        made = engine.map(folder / "m.ttl", stream="urn:s", time="t")
        assert made.streams == ("urn:s",)
        query = engine.query(QUERY)
        query.start(Call(keep), checkpoint=folder / "query")
        try:
            query.processAllAvailable()
            assert query.metrics()["dead_letters"] == (1 if number == 1 else 0)
        finally:
            query.stop()
        more = {"id": 20, "v": "e", "t": 3000, "lane": "L"}
        (folder / "in" / "2.jsonl").write_text(json.dumps(more) + "\n")
    assert sorted(found) == [*ANSWERS, (3000, "<urn:20>", '"e"')]


JOINED = f"""{PREFIXES}
@prefix qw: <urn:quadweir:mapping#> .
<#m> rml:logicalSource [ rml:source [ a rmls:FileStream ; rmls:path "in" ] ;
    rml:referenceFormulation rml:JSONPath ] ;
  rml:subjectMap [ rml:template "urn:{{id}}" ; rml:class <urn:C> ] ;
  rml:predicateObjectMap [ rml:predicate <urn:v> ; rml:objectMap [ rml:parentTriplesMap <#o> ;
    rml:joinCondition [ rml:child "lane" ; rml:parent "lane" ] ;
    rmls:windowType rmls:TumblingWindow ; qw:size "10 s" ; qw:timestamp "t" ; qw:delay "10 s" ] ] .
<#o> rml:logicalSource [ rml:source [ a rmls:FileStream ; rmls:path "other" ] ;
    rml:referenceFormulation rml:JSONPath ] ;
  rml:subjectMap [ rml:template "urn:{{name}}" ] .
"""


def test_pairs_of_two_streams_reach_a_live_query(spark, folder):
    """A pair is a new element, at the later of both times."""
    (folder / "other").mkdir()
    others = [{"lane": "L", "name": "left", "t": 1500}, {"lane": "M", "name": "middle", "t": 1}]
    (folder / "other" / "1.jsonl").write_text("\n".join(map(json.dumps, others)) + "\n")
    (folder / "m.ttl").write_text(JOINED)
    engine = Engine(spark)
    engine.map(folder / "m.ttl", stream="urn:s", time="t")
    query = engine.query("SELECT ?s ?v { STREAM <urn:s> [RANGE 1s] { ?s <urn:v> ?v } }")
    found: list[tuple[int, str, str]] = []
    query.start(
        Call(lambda frame, _number: found.extend(answers_of(frame))), checkpoint=folder / "query"
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert sorted(found) == [
        (1500, "<urn:1>", "<urn:left>"),
        (2000, "<urn:2>", "<urn:left>"),
        (2000, "<urn:4>", "<urn:middle>"),
    ]


def test_a_record_far_ahead_does_not_make_the_others_late(spark, folder):
    """It is a dead letter of the join, as it is of a query (S4, P5)."""
    year_2200, lane = 7_258_118_400_000, {"lane": "L", "name": "left", "v": "x"}
    (folder / "other").mkdir()
    given = options(folder, output=str(folder / "out"), dead_letters=str(folder / "dead"))
    for number, time in enumerate((year_2200, 1000)):
        for each in ("in", "other"):
            one = json.dumps({**lane, "id": number, "t": time})
            (folder / each / "1.jsonl").unlink(missing_ok=True)
            (folder / each / f"{number}0.jsonl").write_text(one + "\n")
        begun = begin(spark, parse_mapping(JOINED), given, folder / "cp", {})
        begun.query.processAllAvailable()
        begun.query.stop()
    lines = [
        line for path in (folder / "out").glob("*.nq") for line in path.read_text().splitlines()
    ]
    assert [line for line in lines if "urn:v>" in line] == ["<urn:1> <urn:v> <urn:left> ."]
    letters = [
        json.loads(line)
        for path in (folder / "dead").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert len(letters) == 2
    assert all(each["reason"].startswith(f"ahead: it is of {year_2200}, ") for each in letters)
