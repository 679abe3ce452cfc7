"""The demo's mapping and its whole way from recording to files."""

import json

import pyoxigraph
import pytest

from quadweir import rows
from quadweir.bench.motorway import write_recording
from quadweir.commands import demo
from quadweir.commands.interrupts import Interrupts

pytestmark = pytest.mark.spark


def records(spark, *texts: str):
    return spark.createDataFrame(
        [(text, position, 1772524680000, None) for position, text in enumerate(texts)],
        f"{rows.VALUE} string, {rows.POSITION} long, {rows.EVENT_TIME} long, {rows.REASON} string",
    )


def test_readings_become_observations_of_five_statements_and_nonsense_becomes_none(spark):
    flow = '{"sensor": "4.5-2", "time": "2026-03-03T07:58:00Z", "flow": 1380}'
    speed = '{"sensor": "a> <b", "time": "2026-03-03T07:58:00Z", "speed": 31}'
    statements = demo.observe_streams(
        records(spark, flow, "nonsense"), records(spark, "[1]", speed)
    ).collect()
    # A reading is one element.
    elements = {(row[rows.STREAM], row[rows.POSITION]) for row in statements}
    assert sorted(stream for stream, _ in elements) == [f"{demo.BASE}flow", f"{demo.BASE}speed"]
    assert {row[rows.EVENT_TIME] for row in statements} == {1772524680000}
    text = "\n".join(f"{' '.join(row[name] for name in rows.TERMS)} ." for row in statements)
    quads = list(pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.N_QUADS))
    assert all(quad.subject == quad.graph_name for quad in quads)
    found = {(quad.predicate.value.split("/")[-1], str(quad.object)) for quad in quads}
    assert found == {
        ("22-rdf-syntax-ns#type", "<http://www.w3.org/ns/sosa/Observation>"),
        ("madeBySensor", f"<{demo.BASE}sensor/4.5-2>"),
        ("madeBySensor", f"<{demo.BASE}sensor/a%3E%20%3Cb>"),
        ("observedProperty", f"<{demo.BASE}flow>"),
        ("observedProperty", f"<{demo.BASE}speed>"),
        ("hasSimpleResult", '"1380"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ("hasSimpleResult", '"31"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ("resultTime", '"2026-03-03T07:58:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'),
    }


def test_a_recording_ends_up_in_files_every_reading_once(spark, tmp_path):
    recording = write_recording(tmp_path / "recording", 2_000)
    with recording[1].open("a") as speeds:
        speeds.write("nonsense\n")
    summary = demo.run(spark, recording, 50_000, tmp_path, Interrupts())
    assert summary.complete
    assert summary.bad_records == 1
    assert summary.latest.count("\n") == 4
    # Nothing crawls in the first minutes, but the query ran.
    assert (tmp_path / "query-checkpoint" / "commits" / "0").is_file()
    assert summary.answers == 0
    assert len(list(pyoxigraph.parse(summary.latest, format=pyoxigraph.RdfFormat.N_TRIPLES))) == 5
    assert summary.triples == 5 * (sum(summary.records.values()) - 1)
    for name, path in zip(demo.QUANTITIES, recording, strict=True):
        readings = [json.loads(line) for line in path.read_text().splitlines() if line[0] == "{"]
        written = [
            line
            for file in (tmp_path / "rdf" / name).glob("*.stream")
            for line in file.read_text().splitlines()
        ]
        sensors = sorted(
            line.split("madeBySensor> ")[1].split()[0] for line in written if "madeBy" in line
        )
        assert sensors == sorted(f"<{demo.BASE}sensor/{one['sensor']}>" for one in readings)
        assert len(set(written)) == len(written) == 5 * len(sensors)


def test_an_interrupted_run_stops_in_order_and_says_so(spark, tmp_path):
    recording = write_recording(tmp_path / "recording", 20_000)
    interrupts = Interrupts()
    interrupts.seen = True
    summary = demo.run(spark, recording, 100, tmp_path, interrupts)
    assert not summary.complete
    assert spark.streams.active == []
