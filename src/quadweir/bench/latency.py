"""The latency of a mapping from Kafka to Kafka, in real-time mode and in micro-batches.

Records are sent at a steady rate. Each carries its sending time, and the mapping puts that time
into a triple. The broker stamps the triple's message when it appends the message to the output
topic. Latency is the difference of both times, so it includes both passes through Kafka.
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quadweir.bench.measure import machine
from quadweir.errors import SourceError
from quadweir.mapping.files import Folders
from quadweir.mapping.model import Mapping
from quadweir.mapping.read import parse_mapping
from quadweir.runtime.mappings.live import start_batches, start_realtime
from quadweir.runtime.mappings.realtime import check_realtime
from quadweir.runtime.mappings.streams import Streams, compile_live
from quadweir.sinks.kafka import KafkaSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quadweir.sinks.start import RunningQuery

SLOTS: Final = 4
"""Task slots of the session: real-time tasks hold one for each partition, and counting needs
one."""
_SENT: Final = "http://example.org/sent"
_TICK_S: Final = 0.01
_PATIENCE_S: Final = 240
_QUANTILES: Final = (0.5, 0.99)
_MAPPING: Final = """
@prefix rml: <http://w3id.org/rml/> . @prefix rmls: <http://semweb.mmlab.be/ns/rmls#> .
@prefix ex: <http://example.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<urn:m> rml:logicalSource [ rml:referenceFormulation rml:JSONPath ; rml:source
    [ a rmls:KafkaStream ; rmls:broker "%(servers)s" ; rmls:topic "%(topic)s" ] ] ;
  rml:subjectMap [ rml:template
    "http://example.org/{lane}/{lat}/{long}/{internalId}/{number}" ] ;
  rml:predicateObjectMap [ rml:predicate ex:speed ;
    rml:objectMap [ rml:reference "speed" ; rml:datatype xsd:decimal ] ] ;
  rml:predicateObjectMap [ rml:predicate ex:lane ; rml:objectMap [ rml:reference "lane" ] ] ;
  rml:predicateObjectMap [ rml:predicate ex:sent ; rml:objectMap [ rml:reference "sent" ] ] .
"""


def run(
    spark: SparkSession,
    servers: str,
    *,
    rate: int = 1000,
    seconds: int = 20,
    warm_up: int = 10,
    partitions: int = 2,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure one mapping in both modes.

    Args:
        spark: a session with Kafka's connector and more task slots than partitions.
        servers: the broker.
        rate: records a second.
        seconds: how long to measure.
        warm_up: for how many seconds records are sent before counting begins.
        partitions: how many the topics have.
        on_step: called with the name of each measurement before it begins.
    """
    latencies = {}
    for name, begin in (("micro-batch", _begin_batches), ("real-time", _begin_realtime)):
        on_step(name)
        latencies[name] = _measure(spark, servers, begin, rate, seconds, warm_up, partitions)
    ratio = latencies["real-time"]["median_ms"] / latencies["micro-batch"]["median_ms"]
    return {
        "benchmark": "mapping-latency",
        "machine": machine(),
        "input": {"records_per_second": rate, "seconds": seconds, "triples_per_record": 3},
        "latency": latencies,
        "ratios": {"real-time median / micro-batch median": round(ratio, 4)},
    }


def _measure(
    spark: SparkSession,
    servers: str,
    begin: Callable[[SparkSession, Mapping, KafkaSink, Path], RunningQuery],
    rate: int,
    seconds: int,
    warm_up: int,
    partitions: int,
) -> dict[str, float]:
    tag = uuid.uuid4().hex[:8]
    topic, out = f"latency-{tag}", f"latency-{tag}-out"
    kafka = _Kafka(spark, servers)
    try:
        kafka.create((topic, out, f"{out}-dead-letters"), partitions)
        mapping = parse_mapping(_MAPPING % {"servers": servers, "topic": topic})
        with tempfile.TemporaryDirectory(prefix="quadweir-latency-") as folder:
            query = begin(spark, mapping, KafkaSink(servers, out, name="bench"), Path(folder))
            try:
                # The start is not measured: records that arrived during it are through before
                # counting begins.
                kafka.send(topic, range(warm_up * rate), rate)
                _await(spark, servers, out, 3 * warm_up * rate, query)
                measured = range(warm_up * rate, (warm_up + seconds) * rate)
                behind = kafka.send(topic, measured, rate)
                _await(spark, servers, out, 3 * measured.stop, query)
            finally:
                query.stop()
        found = _latencies(spark, servers, out, warm_up * rate)
        return {**found, "sender_behind_ms": round(behind * 1000, 1)}
    finally:
        kafka.close()


def _begin_batches(
    spark: SparkSession, mapping: Mapping, sink: KafkaSink, folder: Path
) -> RunningQuery:
    streams = Streams(spark=spark, folders=Folders(mapping=folder), spool=folder / "spool")
    return start_batches(compile_live(mapping, streams), sink, folder).query


def _begin_realtime(
    spark: SparkSession, mapping: Mapping, sink: KafkaSink, folder: Path
) -> RunningQuery:
    streams = Streams(spark=spark, folders=Folders(mapping=folder), spool=folder / "spool")
    compiled = compile_live(mapping, streams)
    check_realtime(mapping, compiled)
    return start_realtime(compiled, sink, f"{sink.topic}-dead-letters", folder)


def _await(spark: SparkSession, servers: str, topic: str, wanted: int, query: RunningQuery) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while (found := _messages(spark, servers, topic).count()) < wanted:
        if not query.isActive:
            raise SourceError("the query ended", detail=str(query.exception())[:500])
        if time.monotonic() > deadline:
            raise SourceError(f"only {found} of {wanted} messages arrived in {_PATIENCE_S} s")
        time.sleep(1)


def _messages(spark: SparkSession, servers: str, topic: str) -> Any:
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic}
    return spark.read.format("kafka").options(**options).load()


def _latencies(spark: SparkSession, servers: str, topic: str, skipped: int) -> dict[str, float]:
    from pyspark.sql import functions as F

    line = F.col("value").cast("string")
    found = _messages(spark, servers, topic).where(line.contains(f"<{_SENT}>"))
    number = F.regexp_extract(line, r"^<[^>]*/(\d+)>", 1).cast("int")
    sent = F.regexp_extract(line, r'"(\d+)"', 1).cast("bigint")
    latency = (F.unix_millis("timestamp") - sent).alias("ms")
    row = (
        found.where(number >= skipped)
        .select(latency)
        .agg(
            F.percentile("ms", F.array(*map(F.lit, _QUANTILES))).alias("quantiles"),
            F.max("ms").alias("most"),
            F.count("ms").alias("count"),
        )
        .first()
    )
    assert row is not None
    median, p99 = row["quantiles"]
    return {
        "median_ms": round(median, 1),
        "p99_ms": round(p99, 1),
        "most_ms": row["most"],
        "records": row["count"],
    }


class _Kafka:
    """Kafka's own clients in the driver's Java: one sends at an even rate, the other creates
    topics.
    """

    def __init__(self, spark: SparkSession, servers: str) -> None:
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        self._servers = servers
        clients = self._jvm.org.apache.kafka.clients
        settings = self._jvm.java.util.HashMap()
        settings["bootstrap.servers"] = servers
        self._admin = clients.admin.AdminClient.create(settings)
        settings = self._jvm.java.util.HashMap()
        settings["bootstrap.servers"] = servers
        settings["linger.ms"] = "0"
        serializer = self._jvm.org.apache.kafka.common.serialization.StringSerializer
        self._producer = clients.producer.KafkaProducer(settings, serializer(), serializer())
        self._lines = self._jvm.java.util.regex.Pattern.compile("\n")

    def create(self, topics: Sequence[str], partitions: int) -> None:
        wanted = self._jvm.java.util.ArrayList()
        configs = self._jvm.java.util.HashMap()
        # The broker's time: no reader can have the message earlier.
        configs["message.timestamp.type"] = "LogAppendTime"
        optional = self._jvm.java.util.Optional
        for topic in topics:
            one = self._jvm.org.apache.kafka.clients.admin.NewTopic(
                topic, optional.of(partitions), optional.empty()
            )
            wanted.add(one.configs(configs))
        self._admin.createTopics(wanted).all().get()

    def send(self, topic: str, numbers: range, rate: int) -> float:
        """Send records at an even rate; return the sender's greatest delay, in seconds."""
        to_record, send = self._calls(topic)
        begun = time.monotonic()
        sent, behind = 0, 0.0
        while sent < len(numbers):
            due = min(len(numbers), int((time.monotonic() - begun) * rate) + 1)
            behind = max(behind, (due - sent) / rate - _TICK_S)
            if sent < due:
                text = "\n".join(map(_record, numbers[sent:due]))
                self._lines.splitAsStream(text).map(to_record).forEach(send)
            sent = due
            time.sleep(_TICK_S)
        self._producer.flush()
        return behind

    def _calls(self, topic: str) -> tuple[Any, Any]:
        """Two Java functions: one makes a record of a text, the other sends it.

        Python calls for each record would keep a core busy that the mapping needs.
        """
        invoke, util = self._jvm.java.lang.invoke, self._jvm.java.util
        load = self._producer.getClass().getClassLoader().loadClass
        made = load("org.apache.kafka.clients.producer.ProducerRecord")
        texts, records = util.ArrayList(), util.ArrayList()
        texts.add(load("java.lang.String"))
        texts.add(load("java.lang.Object"))
        records.add(made)
        lookup, kind = invoke.MethodHandles.publicLookup(), invoke.MethodType.methodType
        create = lookup.findConstructor(made, kind(self._jvm.java.lang.Void.TYPE, texts))
        given = kind(load("java.util.concurrent.Future"), records)
        send = lookup.findVirtual(self._producer.getClass(), "send", given)
        make = invoke.MethodHandleProxies.asInterfaceInstance
        return (
            make(load("java.util.function.Function"), create.bindTo(topic)),
            make(load("java.util.function.Consumer"), send.bindTo(self._producer)),
        )

    def close(self) -> None:
        self._producer.close()
        self._admin.close()


def _record(number: int) -> str:
    return (
        f'{{"lane": "lane{number % 19}", "lat": 52.0{number % 97}, "long": 4.8{number % 89}, '
        f'"internalId": "NL-{number % 1000}", "number": {number}, "speed": {number % 130}, '
        f'"sent": {time.time_ns() // 1_000_000}}}'
    )
