"""Joins of streams in windows, over a real Kafka: the published mappings, restarts, kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from brokers import KafkaBroker, until
from join_model import Model, Record
from ndw_mappings import kafka, mapping, reading
from quadweir.commands.maplive import LiveOptions, begin
from quadweir.errors import MappingError
from quadweir.kernel.streamjoin.windows import Dynamic, JoinTiming, Tumbling
from quadweir.mapping.files import Folders
from quadweir.mapping.joins import JoinHost
from quadweir.mapping.read import parse_mapping
from quadweir.runtime.joins.frames import host_join
from quadweir.runtime.mappings.bounded import MappingJob, run_bounded
from quadweir.runtime.mappings.streams import Streams, compile_live

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pyspark.sql import SparkSession

    from quadweir.sinks.start import RunningQuery

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def written(folder: Path) -> list[str]:
    return [line for path in folder.glob("*.nq") for line in path.read_text().splitlines()]


def bounded(spark: SparkSession, text: str, folder: Path) -> Counter[str]:
    out = folder / "bounded.nq"
    with out.open("wb") as file:
        folders = Folders(mapping=folder, working=folder)
        run_bounded(parse_mapping(text), spark, MappingJob(folders=folders, strict=True), file)
    return Counter(out.read_text().splitlines())


def last_metrics(query: RunningQuery) -> Mapping[str, Any]:
    """What the join reported about its last batch; a trigger that finds nothing reports nothing."""
    found = [each.observedMetrics.get("quadweir_join_1") for each in query.recentProgress]
    return [each for each in found if each is not None and each["held"] is not None][-1]


def topic_records(spark: SparkSession, broker: KafkaBroker, topic: str, side: int) -> list[Record]:
    options = {"kafka.bootstrap.servers": broker.address, "subscribe": topic}
    frame = spark.read.format("kafka").options(**options).load()
    found = frame.selectExpr(
        "CAST(value AS STRING) AS value", "unix_millis(timestamp) AS t", "offset"
    )
    return [
        Record(row.offset, side, _key(row.value), row.t, row.t)
        for row in found.orderBy("offset").collect()
    ]


def _key(value: str) -> str | None:
    fields = json.loads(value) if value.startswith("{") else {"internalId": None}
    if fields["internalId"] is None:
        return None
    return json.dumps([fields["internalId"], fields["timestamp"]])


def test_the_published_mappings(spark: SparkSession, kafka_topics: Topics, tmp_path: Path) -> None:
    """Dynamic and tumbling over topics, with a restart in between; and the whole over files."""
    topics = kafka_topics
    speeds = [
        reading(lane, n, minute, speed=80 + n)
        for minute in range(2)
        for lane in ("a-1", "a-2", "b,1")
        for n in range(3)
    ]
    flows = [{**reading(each["internalId"], each["accuracy"], 0), "flow": 7} for each in speeds[:9]]
    # Of another type, so another key; and no record at all.
    flows.append({**flows[0], "internalId": None})
    for name, records in (("ndwspeed", speeds), ("ndwflow", flows)):
        (tmp_path / f"{name}.json").write_text(json.dumps(records))
    full = bounded(spark, mapping('"ndwspeed.json"', '"ndwflow.json"', iterator="$.*"), tmp_path)
    assert sum(full.values()) == 27

    runs, known = {}, {}
    for kind in ("Dynamic", "Tumbling"):
        text = mapping(
            kafka(topics.broker.address, topics.speed),
            kafka(topics.broker.address, topics.flow),
            join=f"rmls:{kind}WindowJoin",
        )
        runs[kind] = parse_mapping(text)
    halves = [(speeds[:5], flows[4:]), (speeds[5:], flows[:4])]
    for part in halves:
        topics.send(spark, *part)
        for kind, read in runs.items():
            out, letters = tmp_path / kind, tmp_path / f"{kind}-dead"
            options = LiveOptions(
                folders=Folders(mapping=tmp_path, working=tmp_path),
                output=str(out),
                dead_letters=str(letters),
            )
            begun = begin(spark, read, options, tmp_path / f"{kind}-checkpoint", {})
            begun.query.processAllAvailable()
            known[kind] = last_metrics(begun.query)
            begun.query.stop()
    arrived = [
        each
        for side, topic in enumerate((topics.speed, topics.flow))
        for each in topic_records(spark, topics.broker, topic, side)
    ]
    arrived.sort(key=lambda each: (each.arrival, each.side))
    for kind, window in (("Dynamic", Dynamic()), ("Tumbling", Tumbling(2_000))):
        model = Model(window, JoinTiming((1_000, 1_000), 60_000))
        expected = model.run(arrived)
        lines = written(tmp_path / kind)
        assert len(lines) == len(expected) == known[kind]["pairs"] > 0
        assert Counter(lines) <= full
        assert known[kind]["late"] == model.late
        # One has no internalId, one is no record.
        assert known[kind]["without_key"] == 2
    # A bad record is reported once, though it is read on the way into a join.
    for kind in runs:
        found = [p.read_text() for p in (tmp_path / f"{kind}-dead").glob("*.jsonl")]
        assert "".join(found).count("not JSON at all") == 1


class Topics:
    """Two topics for one test."""

    def __init__(self, broker: KafkaBroker) -> None:
        self.broker = broker
        self.speed, self.flow = broker.topic(), broker.topic()
        self._sent = 0

    def send(
        self, spark: SparkSession, speeds: list[dict[str, object]], flows: list[dict[str, object]]
    ) -> None:
        texts = [json.dumps(each) for each in speeds]
        if not self._sent:
            texts.append("not JSON at all")
        self.broker.produce(spark, self.speed, texts)
        self.broker.produce(spark, self.flow, [json.dumps(each) for each in flows])
        self._sent += 1


@pytest.fixture
def kafka_topics(kafka: KafkaBroker) -> Topics:
    return Topics(kafka)


@pytest.mark.parametrize(
    ("join", "host", "known"),
    [
        ("rmls:TumblingJoin", host_join, "have no time"),
        ("", host_join, "without a window"),
        ('rmls:TumblingJoin ; qw:timestamp "timestamp"', None, "no state"),
    ],
)
def test_what_cannot_be_joined(
    spark: SparkSession, tmp_path: Path, join: str, host: JoinHost | None, known: str
) -> None:
    for name in ("speed", "flow"):
        (tmp_path / name).mkdir()
    sources = [f'[ a rmls:FileStream ; rmls:path "{name}" ]' for name in ("speed", "flow")]
    found = parse_mapping(mapping(*sources, join=join))
    folders = Folders(mapping=tmp_path, working=tmp_path)
    streams = Streams(spark=spark, folders=folders, spool=tmp_path / "spool")
    with pytest.raises(MappingError, match=known) as refused:
        compile_live(found, streams, host=host)
    assert refused.value.span is not None


TIMED = 'qw:timestamp "timestamp"'
KINDS = {
    "tumbling": f"rmls:TumblingJoin ; {TIMED}",
    "sliding": f"rmls:SlidingJoin ; {TIMED}",
    "interval": f'qw:Interval ; {TIMED}; qw:distance "PT3S"',
    "dynamic": f"rmls:DynamicJoin ; {TIMED}",
}


def test_plans_of_each_kind(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """`quadweir map --explain` of a join of each kind, in a file that a reviewer reads."""
    for name in ("speed", "flow"):
        (tmp_path / name).mkdir()
    sources = [f'[ a rmls:FileStream ; rmls:path "{name}" ]' for name in ("speed", "flow")]
    folders = Folders(mapping=tmp_path, working=tmp_path)
    streams = Streams(spark=spark, folders=folders, spool=tmp_path / "spool")
    plans = {
        kind: compile_live(parse_mapping(mapping(*sources, join=join)), streams, host=host_join)
        for kind, join in KINDS.items()
    }
    made = "\n".join(f"--- {kind}\n{plan.explain()}\n" for kind, plan in plans.items())
    golden = Path(__file__).parents[1] / "golden/plans/mapping-joins.plan"
    if request.config.getoption("--update-golden"):
        golden.write_text(made, "utf-8")
    assert made == golden.read_text("utf-8"), "see --update-golden"


# --- kill -9 ----------------------------------------------------------------------------------

PAIRS = 200


@pytest.mark.slow
def test_kill_and_restart_lose_and_double_no_pair(
    spark: SparkSession, kafka_topics: Topics, tmp_path: Path
) -> None:
    topics = kafka_topics
    numbers = range(PAIRS)
    speeds = [reading(f"lane-{n % 20}", n, n % 60, speed=n, at=n * 10) for n in numbers]
    flows = [reading(f"lane-{n % 20}", n, n % 60, flow=n, at=n * 10) for n in numbers]
    # The rest comes after the kill, so that there is something left to do however late that is.
    later = PAIRS * 3 // 4
    topics.send(spark, speeds[:later], flows[:later])
    (tmp_path / "streams.toml").write_text(
        "".join(
            f'[streams."urn:{name}"]\nformat = "jsonl"\ntime = {{ column = "at" }}\n'
            f'source = {{ kind = "kafka", servers = "{topics.broker.address}", topic = "{topic}", '
            'options = { maxOffsetsPerTrigger = "40" } }\n'
            for name, topic in (("speed", topics.speed), ("flow", topics.flow))
        )
    )
    window = 'qw:Interval . <JoinConfigMap> qw:distance "600 ms" ; qw:delay "1 h"'
    (tmp_path / "map.ttl").write_text(
        mapping("<urn:speed>", "<urn:flow>", join=window, keys="internalId")
    )
    expected = Counter(
        (f"speed={one}&", f"flow={other}&")
        for one in numbers
        for other in numbers
        if one % 20 == other % 20 and abs(one - other) * 10 <= 600
    )
    out = tmp_path / "out"

    def found() -> Counter[tuple[str, str]]:
        parts = (line.split("laneFlow") for line in written(out))
        return Counter((_field(one, "speed"), _field(other, "flow")) for one, other in parts)

    first = start(tmp_path)
    try:
        until(lambda: len(list(out.glob("0*"))) >= 3 or first.poll() is not None, "some batches")
        assert first.poll() is None, (tmp_path / "log").read_text()
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert 0 < sum(found().values()) < sum(expected.values())
    topics.send(spark, speeds[later:], flows[later:])
    second = start(tmp_path)
    try:
        until(
            lambda: sum(found().values()) >= sum(expected.values()) or second.poll() is not None,
            "all pairs",
            timeout_s=500,
        )
    finally:
        second.send_signal(signal.SIGINT)
        second.wait(120)
    assert found() == expected


def _field(text: str, name: str) -> str:
    return f"{name}={text.partition(f'{name}=')[2].partition('&')[0]}&"


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Start the command as the leader of a process group, so that its JVM can be killed with it."""
    command = [sys.executable, "-m", "quadweir.cli", "map", "map.ttl", "--live", "--streams"]
    command += ["streams.toml", "-o", "out", "--checkpoint", "checkpoint"]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={
                **os.environ,
                "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
                "QUADWEIR_MASTER": "local[2]",
            },
        )
