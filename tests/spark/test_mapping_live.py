"""Mappings over the streams that they name: Kafka, TCP, MQTT, folders, declared streams.

All of them are read by one query, as a mapping may; each has its own subjects, so a source that
gives nothing, or too much, shows.
"""

from __future__ import annotations

import gzip
import io
import json
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

from brokers import KafkaBroker, MqttBroker, until
from quadweir.commands.maplive import LiveOptions, begin, check_options
from quadweir.errors import (
    DataError,
    EnvironmentProblem,
    MappingError,
    QuadweirError,
    SourceError,
    UnsupportedError,
    UsageError,
)
from quadweir.mapping.apply import compile_frames
from quadweir.mapping.files import Folders
from quadweir.mapping.functions import FUNCTIONS, register
from quadweir.mapping.model import Mapping
from quadweir.mapping.read import parse_mapping
from quadweir.runtime.mappings.bounded import MappingJob, run_bounded
from quadweir.runtime.mappings.live import start_realtime
from quadweir.runtime.mappings.realtime import check_realtime
from quadweir.runtime.mappings.streams import Streams, compile_live
from quadweir.sinks.kafka import KafkaSink
from quadweir.sources.declare import StreamDeclaration, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PREFIXES = """
@prefix rml: <http://w3id.org/rml/> . @prefix rmls: <http://semweb.mmlab.be/ns/rmls#> .
@prefix td: <https://www.w3.org/2019/wot/td#> .
@prefix hctl: <https://www.w3.org/2019/wot/hypermedia#> .
@prefix mqv: <http://www.w3.org/2018/wot/mqtt#> . @prefix kafka: <http://e.org/kafka#> .
@prefix formats: <http://www.w3.org/ns/formats/> . @base <http://e.org/m/> .
"""
RECORDS = [
    {"id": 1, "v": "a\nb", "n": [1, 2.5], "t": 1000},
    {"id": "x y", "v": "ä", "t": 2000},
    {"id": 3, "t": 2000},
]
JSON = [json.dumps(record) for record in RECORDS]


def triples_map(name: str, source: str, formulation: str = "JSONPath", more: str = "") -> str:
    xml = formulation == "XPath"
    number = (
        '; rml:predicateObjectMap [ rml:predicate <n> ; rml:objectMap [ rml:reference "n[*]" ]]'
    )
    return f"""<#{name}> rml:logicalSource [ rml:source {source} ;
      rml:referenceFormulation rml:{formulation} {'; rml:iterator "/rs/r"' if xml else ""} ] ;
    rml:subjectMap [ rml:template "http://e.org/{name}/{{id}}" ; rml:class <C> {more} ] ;
    rml:predicateObjectMap [ rml:predicate <v> ; rml:objectMap [ rml:reference "v" ] ]
    {number if formulation == "JSONPath" else ""} ."""


def thing(target: str, more: str = "") -> str:
    form = f'[ hctl:hasTarget "{target}" ; hctl:forContentType "application/json" {more} ]'
    return f"[ a td:Thing ; td:hasPropertyAffordance [ td:hasForm {form} ] ]"


def kafka_stream(broker: KafkaBroker, topic: str) -> str:
    return f'[ a rmls:KafkaStream ; rmls:broker "{broker.address}" ; rmls:topic "{topic}" ]'


def options(folder: Path, **more: object) -> LiveOptions:
    return LiveOptions(folders=Folders(mapping=folder, working=folder), **more)  # type: ignore[arg-type]


def to_the_end(
    spark: SparkSession,
    mapping: Mapping,
    folder: Path,
    declarations: dict[str, StreamDeclaration] | None = None,
) -> set[str]:
    out = io.BytesIO()
    folders = Folders(mapping=folder, working=folder)
    run_bounded(
        mapping,
        spark,
        MappingJob(folders=folders, declarations=declarations or {}, strict=True),
        out,
    )
    lines = out.getvalue().decode().splitlines()
    assert len(set(lines)) == len(lines)
    return set(lines)


def written(folder: Path) -> list[str]:
    return [line for path in folder.glob("*.nq") for line in path.read_text().splitlines()]


@pytest.fixture
def tcp_server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(240)
        yield listening


@pytest.fixture
def ending(spark: SparkSession, kafka: KafkaBroker, tmp_path: Path) -> tuple[str, dict[str, set]]:
    """A mapping of all bounded sources, and its triples by triples map."""
    for name in ("json", "watched", "replayed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jsonl").write_text("\n".join(JSON[:2]) + "\n")
        (tmp_path / name / "2.jsonl").write_text(JSON[2] + "\n")
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "1.csv").write_text('id,v\n1,"a\nb"\nx y,ä\n')
    (tmp_path / "xml").mkdir()
    (tmp_path / "xml" / "1.xml").write_text("<rs><r><id>1</id><v>a\nb</v></r></rs>")
    (tmp_path / "xml" / "2.xml").write_text(
        "<rs>\n<r><id>x y</id><v>ä</v></r><r><id>3</id></r></rs>"
    )
    topics = [kafka.topic() for _ in range(3)]
    for topic in topics:
        kafka.produce(spark, topic, list(JSON))
    (tmp_path / "streams.toml").write_text(
        f"""
        [streams."http://e.org/declared-kafka"]
        format = "jsonl"
        source = {{ kind = "kafka", servers = "{kafka.address}", topic = "{topics[2]}" }}
        [streams."http://e.org/declared-folder"]
        format = "jsonl"
        time = {{ column = "t" }}
        source = {{ kind = "folder", path = "watched", watch = true }}
        [streams."http://e.org/declared-replay"]
        format = "jsonl"
        time = {{ column = "t" }}
        source = {{ kind = "replay", path = "replayed", pace = {{ rate = 1000 }} }}
        """
    )
    text = PREFIXES + "\n".join(
        (
            triples_map("kafka", kafka_stream(kafka, topics[0])),
            triples_map(
                "thing", thing(f"kafka://{kafka.address}/{topics[1]}", "; kafka:groupId 'g'")
            ),
            triples_map("declared-kafka", "<http://e.org/declared-kafka>"),
            triples_map("declared-folder", "<http://e.org/declared-folder>"),
            triples_map("declared-replay", "<http://e.org/declared-replay>"),
            triples_map("json", '[ a rmls:FileStream ; rmls:path "json" ]'),
            triples_map("csv", '[ a rmls:FileStream ; rmls:path "csv" ]', "CSV"),
            triples_map("xml", '[ a rmls:FileStream ; rmls:path "xml" ]', "XPath"),
        )
    )
    names = ("kafka", "thing", "declared-kafka", "declared-folder", "declared-replay", "json")
    expected = {name: lines_of(name) for name in names}
    expected["csv"] = {one for one in lines_of("csv") if "/3>" not in one and "/m/n>" not in one}
    expected["xml"] = {one for one in lines_of("xml") if "/m/n>" not in one}
    return text, expected


def lines_of(name: str) -> set[str]:
    def line(which: str, predicate: str, value: str) -> str:
        return f"<http://e.org/{name}/{which}> {predicate} {value} ."

    a, xsd = (
        "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>",
        "http://www.w3.org/2001/XMLSchema#",
    )
    return {
        *(line(one, a, "<http://e.org/m/C>") for one in ("1", "x%20y", "3")),
        line("1", "<http://e.org/m/v>", '"a\\nb"'),
        line("x%20y", "<http://e.org/m/v>", '"ä"'),
        line("1", "<http://e.org/m/n>", f'"1"^^<{xsd}integer>'),
        line("1", "<http://e.org/m/n>", f'"2.5E0"^^<{xsd}double>'),
    }


@pytest.mark.kafka
@pytest.mark.mqtt
def test_every_kind_of_stream_gives_the_same_triples_live_and_read_to_its_end(
    spark: SparkSession,
    mqtt: MqttBroker,
    tcp_server: socket.socket,
    ending: tuple[str, dict[str, set[str]]],
    tmp_path: Path,
) -> None:
    text, expected = ending
    tcp = tcp_server.getsockname()[1]
    with (tmp_path / "streams.toml").open("a") as file:
        file.write(
            f"""
            [streams."http://e.org/declared-mqtt"]
            format = "jsonl"
            time = "arrival"
            source = {{ kind = "mqtt", port = {mqtt.port}, topic = "b" }}
            """
        )
    declarations = load(tmp_path / "streams.toml")
    qos = ';mqv:options ( [ mqv:optionName "qos" ; mqv:optionValue "1" ] )'
    endless = "\n".join(
        (
            triples_map(
                "tcp", f'[ a rmls:TCPSocketStream ; rmls:hostName "127.0.0.1" ; rmls:port "{tcp}" ]'
            ),
            triples_map("mqtt", thing(f"mqtt://127.0.0.1:{mqtt.port}/a", qos)),
            triples_map("declared-mqtt", "<http://e.org/declared-mqtt>"),
        )
    )
    everything = parse_mapping(text + endless)
    out = tmp_path / "out"
    begun = begin(
        spark, everything, options(tmp_path, output=str(out)), tmp_path / "cp", declarations
    )
    try:
        connection = tcp_server.accept()[0]
        connection.sendall("".join(f"{one}\n" for one in JSON).encode())
        log = mqtt.folder / "log"
        until(
            lambda: all(f"\t{topic} (QoS 1)" in log.read_text() for topic in "ab"),
            "both subscriptions",
            query=begun.query,
        )
        publish(mqtt, *((topic, one.encode()) for topic in "ab" for one in JSON))
        expected.update({name: lines_of(name) for name in ("tcp", "mqtt", "declared-mqtt")})
        wanted = set().union(*expected.values())
        until(lambda: set(written(out)) >= wanted, "all triples", query=begun.query)
    finally:
        begun.query.stop()
    connection.close()
    assert sorted(written(out)) == sorted(wanted)

    found = to_the_end(spark, parse_mapping(text), tmp_path, declarations)
    assert found == set().union(*(expected[name] for name in expected if name not in ENDLESS))


ENDLESS = ("tcp", "mqtt", "declared-mqtt")


def publish(broker: MqttBroker, *messages: tuple[str, bytes]) -> None:
    from paho.mqtt import client as paho

    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    for topic, payload in messages:
        client.publish(topic, payload, qos=1).wait_for_publish(30)
    client.disconnect()
    client.loop_stop()


TARGETS = """
; rml:logicalTarget <#lines>, <#document> """
TARGET_NODES = """
<#lines> a rml:LogicalTarget ; rml:serialization formats:N-Triples ; rml:compression rml:gzip ;
  rml:target [ a rml:FilePath ; rml:path "t/lines.nt.gz" ] .
<#document> a rml:LogicalTarget ; rml:serialization formats:Turtle ;
  rml:target [ a rml:FilePath ; rml:path "t/document.ttl" ] .
"""


def test_targets_get_a_document_a_batch_and_bad_records_their_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    file_stream = '[ a rmls:FileStream ; rmls:path "in" ]'
    both = triples_map("both", file_stream, more=TARGETS) + triples_map("own", file_stream)
    mapping = parse_mapping(PREFIXES + both + TARGET_NODES)
    given = options(tmp_path, output=str(tmp_path / "out"), dead_letters=str(tmp_path / "dead"))
    for number, record in enumerate((JSON[0], "{broken", JSON[1])):
        (tmp_path / "in" / f"{number}.jsonl").write_text(record + "\n")
        # Restarted from its checkpoint each time.
        begun = begin(spark, mapping, given, tmp_path / "cp", {})
        begun.query.processAllAvailable()
        begun.query.stop()
    wanted = {one for one in lines_of("both") if "/3>" not in one}
    for ending, form in ((".nt.gz", None), (".ttl", ox.RdfFormat.TURTLE)):
        documents = sorted((tmp_path / "t").glob(f"*{ending}"))
        assert [one.name.partition("-")[2] for one in documents] == [
            f"00000000{ending}",
            f"00000002{ending}",
        ]
        found: list[str] = []
        for document in documents:
            if form is None:
                found += gzip.decompress(document.read_bytes()).decode().splitlines()
            else:
                found += [f"{quad} ." for quad in ox.parse(path=str(document), format=form)]
        assert len(found) == len(set(found))
        assert {normal(one) for one in found} == {normal(one) for one in wanted}
    assert set(written(tmp_path / "out")) == {one for one in lines_of("own") if "/3>" not in one}
    (letters,) = [
        json.loads(line)
        for path in (tmp_path / "dead").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert letters["record"] == "{broken"
    assert "not valid JSON" in letters["reason"]
    # A strict run ends, says which, and writes nothing of the batch.
    strict = options(tmp_path, output=str(tmp_path / "strict"), strict=True)
    begun = begin(
        spark,
        parse_mapping(PREFIXES + triples_map("own", file_stream)),
        strict,
        tmp_path / "cp2",
        {},
    )
    with pytest.raises(DataError, match=r"1.jsonl, line 1: not valid JSON"):
        begun.wait(timedelta(minutes=5))
    assert written(tmp_path / "strict") == []
    # Documents of another run are left alone.
    begun = begin(
        spark, mapping, options(tmp_path, output=str(tmp_path / "out3")), tmp_path / "cp3", {}
    )
    with pytest.raises(SourceError, match="output of another query"):
        begun.wait(timedelta(minutes=5))


def normal(line: str) -> str:
    (quad,) = ox.parse(line, ox.RdfFormat.N_QUADS)
    return str(quad)


@pytest.mark.kafka
def test_real_time_from_kafka_to_kafka(
    spark: SparkSession, kafka: KafkaBroker, tmp_path: Path
) -> None:
    topic, out = kafka.topic(), kafka.topic()
    kafka.produce(spark, topic, [*JSON, "{broken"])
    for one in (out, f"{out}-dead-letters"):
        kafka.produce(spark, one, [])
        kafka.produce(spark, one, ["first"])
    mapping = parse_mapping(PREFIXES + triples_map("rt", kafka_stream(kafka, topic)))
    streams = Streams(spark=spark, folders=Folders(mapping=tmp_path), spool=tmp_path / "spool")
    compiled = compile_live(mapping, streams)
    check_realtime(mapping, compiled)
    sink = KafkaSink(kafka.address, out, name="map")
    query = start_realtime(
        compiled, sink, f"{out}-dead-letters", tmp_path / "cp", every=timedelta(seconds=5)
    )
    try:
        until(
            lambda: sum(each.numInputRows for each in query.recentProgress) == len(JSON) + 1,
            "all records in the notes of progress",
            query=query,
        )
    finally:
        query.stop()
    found = [row.value for row in kafka.consume(spark, out).collect()]
    assert sorted(found) == sorted({*lines_of("rt"), "first"})
    (letter,) = [
        json.loads(row.value)
        for row in kafka.consume(spark, f"{out}-dead-letters").collect()
        if row.value != "first"
    ]
    assert letter["record"] == "{broken" and "not valid JSON" in letter["reason"]
    # Each of the four partitions of two topics would need a slot, and the session has two.
    two = parse_mapping(
        PREFIXES
        + triples_map("rt", kafka_stream(kafka, topic))
        + triples_map("again", kafka_stream(kafka, out))
    )
    given = options(tmp_path, output=f"kafka:{kafka.address}/{out}", realtime=True)
    with pytest.raises(EnvironmentProblem, match=r"each of 4 partitions, and local\[2\] has 2"):
        begin(spark, two, given, tmp_path / "cp2", {})


TCP = '[ a rmls:TCPSocketStream ; rmls:hostName "127.0.0.1" ; rmls:port "9" ]'
DECLARATIONS = """
[streams."http://e.org/rdf"]
format = "nquads"
time = "arrival"
source = { kind = "tcp", port = 9 }
[streams."http://e.org/csv"]
format = "csv"
time = "arrival"
source = { kind = "mqtt", topic = "t" }
"""


@pytest.mark.parametrize(
    ("source", "formulation", "kind", "words"),
    [
        (TCP, "CSV", UnsupportedError, "lines of a TCP server as CSV"),
        ("<http://e.org/rdf>", "JSONPath", MappingError, "RDF already"),
        ("<http://e.org/csv>", "JSONPath", MappingError, "declared as csv, but read as JSONPath"),
        ("<http://e.org/none>", "JSONPath", MappingError, "is not declared"),
        (thing("ws://127.0.0.1/t"), "JSONPath", UnsupportedError, "WebSocket"),
        (thing("mqtt://broker.example/t"), "JSONPath", MappingError, "not this machine"),
        (
            thing(
                "mqtt://127.0.0.1/t", ';mqv:options [ mqv:optionName "qos"; mqv:optionValue "7" ]'
            ),
            "JSONPath",
            MappingError,
            "qos is '7'",
        ),
    ],
)
def test_what_cannot_be_read_live_says_why(
    spark: SparkSession,
    tmp_path: Path,
    source: str,
    formulation: str,
    kind: type[QuadweirError],
    words: str,
) -> None:
    (tmp_path / "streams.toml").write_text(DECLARATIONS)
    declarations = load(tmp_path / "streams.toml")
    mapping = parse_mapping(PREFIXES + triples_map("m", source, formulation))
    with pytest.raises(kind, match=words) as caught:
        begin(spark, mapping, options(tmp_path), tmp_path / "cp", declarations)
    assert caught.value.span is not None


@pytest.mark.parametrize("source", [TCP, thing("mqtt://127.0.0.1/t")])
def test_what_has_no_end_cannot_be_read_to_its_end(
    spark: SparkSession, tmp_path: Path, source: str
) -> None:
    with pytest.raises(UsageError, match="which have no end"):
        to_the_end(spark, parse_mapping(PREFIXES + triples_map("m", source)), tmp_path)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"form": "turtle"}, "documents have an end"),
        ({"distinct": True}, "remember every quad"),
        ({"realtime": True, "strict": True}, "cannot stop a real-time run"),
    ],
)
def test_options_that_a_live_run_cannot_have(
    tmp_path: Path, given: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        check_options(options(tmp_path, **given))


def test_a_stream_joined_with_a_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text(
        '{"id": 1, "lane": "a", "way": 1}\n{"id": 2, "lane": "b", "way": 2}\n{"id": 3}\n'
    )
    (tmp_path / "lanes.csv").write_text("lane,way,name\na,1,A\nb,1,B\nb,2,C\n")
    mapping = parse_mapping(
        PREFIXES
        + """
        <#child> rml:logicalSource [ rml:source [ a rmls:FileStream ; rmls:path "in" ] ;
            rml:referenceFormulation rml:JSONPath ] ;
          rml:subjectMap [ rml:template "http://e.org/{id}" ] ;
          rml:predicateObjectMap [ rml:predicate <on> ; rml:objectMap [
            rml:parentTriplesMap <#lane> ;
            rml:joinCondition [ rml:child "lane" ; rml:parent "lane" ],
              [ rml:child "way" ; rml:parent "way" ] ] ] .
        <#own> rml:logicalSource [ rml:source [ a rmls:FileStream ; rmls:path "in" ] ;
            rml:referenceFormulation rml:JSONPath ] ;
          rml:subjectMap [ rml:termType rml:BlankNode ] ;
          rml:predicateObjectMap [ rml:predicate <at> ; rml:objectMap [ rml:reference "t" ] ] .
        <#lane> rml:logicalSource [ rml:source "lanes.csv" ; rml:referenceFormulation rml:CSV ] ;
          rml:subjectMap [ rml:template "http://e.org/lane/{name}" ; rml:graph <lanes> ;
            rml:class <Lane> ] .
        """
    )
    a = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    expected = {
        f"<http://e.org/{one}> <http://e.org/m/on> <http://e.org/lane/{lane}> ."
        for one, lane in (("1", "A"), ("2", "C"))
    } | {
        f"<http://e.org/lane/{one}> {a} <http://e.org/m/Lane> <http://e.org/m/lanes> ."
        for one in "ABC"
    }
    out = tmp_path / "out"
    for number in range(2):
        # The file next to the stream is mapped once, with the first batch, and not after a restart.
        begun = begin(spark, mapping, options(tmp_path, output=str(out)), tmp_path / "cp", {})
        begun.query.processAllAvailable()
        begun.query.stop()
        (tmp_path / "in" / f"more{number}.jsonl").write_text('{"id": 4, "t": "now"}\n')
    begun = begin(spark, mapping, options(tmp_path, output=str(out)), tmp_path / "cp", {})
    begun.query.processAllAvailable()
    begun.query.stop()
    # Each record has its own blank node, in any line of any file.
    found = written(out)
    nodes = {line for line in found if line.startswith("_:")}
    assert len(nodes) == 2 and all(line.endswith(' <http://e.org/m/at> "now" .') for line in nodes)
    assert sorted(found) == sorted(expected | nodes)
    assert to_the_end(spark, mapping, tmp_path) == expected | nodes


KAFKA = '[ a rmls:KafkaStream ; rmls:broker "127.0.0.1:9" ; rmls:topic "t" ]'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (triples_map("m", TCP), r"reads TcpStream \(a TCP server\)"),
        (triples_map("m", "<http://e.org/s>"), "http://e.org/s .*not declared as Kafka"),
        (triples_map("m", KAFKA, "CSV"), "over t, rows are parsed in Python"),
        (
            triples_map("m", KAFKA).replace('"n[*]"', '"$..n"'),
            r"over t, JSONPaths run in Python.*\$\.\.n",
        ),
        (triples_map("m", KAFKA, more=TARGETS) + TARGET_NODES, "logical target, t/lines.nt.gz"),
        (
            triples_map("m", KAFKA)
            + triples_map("k", KAFKA).replace(
                "rml:JSONPath", 'rml:JSONPath ; rml:iterator "$.x[*]"'
            ),
            "reads a topic once; t is read",
        ),
        (
            triples_map("m", KAFKA).replace(
                'rml:reference "v"',
                """rml:functionExecution [ rml:function <http://e.org/own> ; rml:input
                  [ rml:parameter <http://e.org/text> ; rml:inputValueMap [ rml:reference "v" ]]]""",
            ),
            "calls http://e.org/own",
        ),
        (
            triples_map("m", KAFKA)
            + triples_map("k", KAFKA.replace('"t"', '"u"')).replace(
                'rml:reference "v"',
                'rml:parentTriplesMap <#m> ; rml:joinCondition [rml:child "id" ; rml:parent "id"]',
            ),
            "has no joins; join of u with t",
        ),
    ],
)
def test_real_time_mode_names_the_part_that_it_cannot_run(
    spark: SparkSession, text: str, words: str
) -> None:
    register("http://e.org/own", lambda text: text, ["http://e.org/text"])
    try:
        mapping = parse_mapping(PREFIXES + text)
        frame = spark.createDataFrame([("1", "{}")], "place string, value string")
        with pytest.raises(UnsupportedError, match=words) as caught:
            check_realtime(mapping, compile_frames(mapping, frame))
    finally:
        FUNCTIONS.remove("http://e.org/own")
    assert "--live" in str(caught.value.hint)


def test_input_that_means_harm_becomes_dead_letters(spark: SparkSession, tmp_path: Path) -> None:
    injected = 'http://e.org/x> <http://e.org/p> "pwned" .\n<http://e.org/y'
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "1.jsonl").write_bytes(
        b"\n".join(
            (
                json.dumps({"id": "http://e.org/ok", "v": '"\n\\'}).encode(),
                json.dumps({"id": injected, "v": "1"}).encode(),
                b'{"id": "http://e.org/latin", "v": "\xe4"}',
                b"[" * 100_000,
                b'{"id": "http://e.org/cut", "v": "',
                json.dumps({"id": "http://e.org/long", "v": "x" * 20_000_000}).encode(),
            )
        )
    )
    (tmp_path / "xml").mkdir()
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE r [<!ENTITY e0 "ha">{entities}]><rs><r><id>&e9;</id></r></rs>'
    (tmp_path / "xml" / "bomb.xml").write_text(bomb)
    (tmp_path / "xml" / "latin.xml").write_bytes(b"<rs><r><id>\xe4</id></r></rs>")
    (tmp_path / "xml" / "cut.xml").write_text("<rs><r><id>1</id></r>")
    (tmp_path / "xml" / "ok.xml").write_text("<rs><r><id>http://e.org/2</id><v>&lt;</v></r></rs>")
    text = "".join(
        triples_map(name, f'[ a rmls:FileStream ; rmls:path "{name}" ]', kind).replace(
            f'rml:template "http://e.org/{name}/{{id}}"', 'rml:reference "id"'
        )
        for name, kind in (("json", "JSONPath"), ("xml", "XPath"))
    )
    given = options(tmp_path, output=str(tmp_path / "out"), dead_letters=str(tmp_path / "dead"))
    begun = begin(spark, parse_mapping(PREFIXES + text), given, tmp_path / "cp", {})
    begun.query.processAllAvailable()
    begun.query.stop()
    found = list(ox.parse("\n".join(written(tmp_path / "out")), ox.RdfFormat.N_QUADS))
    values = {
        quad.subject.value: quad.object.value for quad in found if "/v" in quad.predicate.value
    }
    assert values == {"http://e.org/ok": '"\n\\', "http://e.org/2": "<"}
    letters = [
        json.loads(line)
        for path in (tmp_path / "dead").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    places = sorted(one["place"] for one in letters)
    assert places == [
        *(f"1.jsonl, line {number}" for number in range(2, 7)),
        "bomb.xml after record 0",
        "cut.xml after record 1",
        "latin.xml",
    ]
    assert begun.letters is not None and begun.letters.count == len(letters)


def test_a_bad_argument_of_a_function_is_a_dead_letter_live_and_read_to_its_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    records = [
        {"id": 1, "v": "a1", "find": "[0-9]", "date": "2024 u", "format": "yyyy 'u'", "n": "2"},
        {"id": 2, "v": "a1", "find": "(((", "date": "2024", "format": "'", "n": "1e300"},
        {"id": 3, "v": "a1", "find": "a", "date": "2025", "format": "yyyy", "n": "3"},
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text("\n".join(map(json.dumps, records)))
    grel = "http://users.ugent.be/~bjdmeest/function/grel.ttl#"

    def pair(predicate: str, function: str, *inputs: tuple[str, str]) -> str:
        given = "".join(
            f"; rml:input [ rml:parameter <{grel}{name}> ;"
            f' rml:inputValueMap [ rml:reference "{reference}" ] ]'
            for name, reference in inputs
        )
        return (
            f"; rml:predicateObjectMap [ rml:predicate <{predicate}> ; rml:objectMap [ "
            f"rml:functionExecution [ rml:function <{grel}{function}> {given} ] ] ]"
        )

    text = f"""{PREFIXES}<#m> rml:logicalSource [
        rml:source [ a rmls:FileStream ; rmls:path "in" ] ; rml:referenceFormulation rml:JSONPath ] ;
      rml:subjectMap [ rml:template "http://e.org/{{id}}" ]
      {pair("f", "string_find", ("valueParam", "v"), ("param_regex", "find"))}
      {pair("d", "date_toDate", ("valueParam", "date"), ("param_string_pattern", "format"))}
      {pair("n", "math_floor", ("param_dec_n", "n"))} .
    """
    mapping = parse_mapping(text)
    given = options(tmp_path, output=str(tmp_path / "out"), dead_letters=str(tmp_path / "dead"))
    begun = begin(spark, mapping, given, tmp_path / "cp", {})
    begun.query.processAllAvailable()
    begun.query.stop()
    out, dead = io.BytesIO(), tmp_path / "dead.jsonl"
    job = MappingJob(folders=Folders(mapping=tmp_path, working=tmp_path), dead_letters=dead)
    outcome = run_bounded(mapping, spark, job, out)
    xsd = "http://www.w3.org/2001/XMLSchema#"
    assert sorted(written(tmp_path / "out")) == sorted(out.getvalue().decode().splitlines())
    assert sorted(written(tmp_path / "out")) == [
        f'<http://e.org/1> <http://e.org/m/d> "2024-01-01"^^<{xsd}date> .',
        '<http://e.org/1> <http://e.org/m/f> "1" .',
        f'<http://e.org/1> <http://e.org/m/n> "2"^^<{xsd}integer> .',
        f'<http://e.org/3> <http://e.org/m/d> "2025-01-01"^^<{xsd}date> .',
        '<http://e.org/3> <http://e.org/m/f> "a" .',
        f'<http://e.org/3> <http://e.org/m/n> "3"^^<{xsd}integer> .',
    ]
    assert outcome.bad_records == 1
    for files in ([dead], list((tmp_path / "dead").glob("*.jsonl"))):
        letters = [json.loads(line) for one in files for line in one.read_text().splitlines()]
        assert {one["place"] for one in letters} == {"1.jsonl, line 2"}
        reasons = "\n".join(one["reason"] for one in letters)
        for words in ("'(((' is not a regular", "''' is not a date format", "'1.0E300'"):
            assert words in reasons
