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
        [(text, position, None) for position, text in enumerate(texts)],
        f"{rows.VALUE} string, {rows.POSITION} long, {rows.REASON} string",
    )


def test_a_reading_becomes_an_observation_of_five_triples(spark):
    text = json.dumps({"sensor": "4.5-2", "time": "2026-03-03T07:58:00Z", "speed": 31})
    (row,) = demo.observations(records(spark, text), "speed").collect()
    assert (row[rows.STREAM], row[rows.EVENT_TIME]) == (f"{demo.BASE}speed", 1772524680000)
    lines = "\n".join(f"{' '.join(triple)} ." for triple in row[demo.TRIPLES])
    graph = list(pyoxigraph.parse(lines, format=pyoxigraph.RdfFormat.N_TRIPLES))
    assert {str(quad.subject) for quad in graph} == {row[rows.GRAPH]}
    assert {
        str(quad.predicate).rsplit("/")[-1].split("#")[-1][:-1]: str(quad.object) for quad in graph
    } == {
        "type": "<http://www.w3.org/ns/sosa/Observation>",
        "madeBySensor": f"<{demo.BASE}sensor/4.5-2>",
        "observedProperty": f"<{demo.BASE}speed>",
        "hasSimpleResult": '"31"^^<http://www.w3.org/2001/XMLSchema#integer>',
        "resultTime": '"2026-03-03T07:58:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
    }


@pytest.mark.parametrize(
    "text",
    [
        "not JSON",
        "",
        '{"sensor": "a", "time": "2026-03-03T07:58:00Z"}',
        '{"time": "2026-03-03T07:58:00Z", "speed": 1}',
        '{"sensor": "a", "time": "yesterday", "speed": 1}',
        '{"sensor": "a", "time": "2026-03-03T07:58:00Z", "speed": "fast"}',
    ],
)
def test_a_record_that_is_not_as_it_should_be_has_no_triples(text, spark):
    (row,) = demo.observations(records(spark, text), "speed").collect()
    assert row[demo.TRIPLES] is None


def test_a_sensor_cannot_break_out_of_its_iri(spark):
    text = json.dumps({"sensor": "a> <b", "time": "2026-03-03T07:58:00Z", "speed": 31})
    (row,) = demo.observations(records(spark, text), "speed").collect()
    assert row[rows.GRAPH].count("<") == 1
    assert " " not in row[rows.GRAPH]


def test_a_recording_ends_up_in_files_every_reading_once(spark, tmp_path):
    recording = write_recording(tmp_path / "recording", 2_000)
    with recording[1].open("a") as speeds:
        speeds.write('{"sensor": "4.5-2", "time": "2026-03-03T07:58:00Z", "speed": null}\n')
    summary = demo.run(spark, recording, 50_000, tmp_path, Interrupts())
    assert summary.complete
    assert summary.bad_records == 1
    assert summary.triples == 5 * (sum(summary.records.values()) - 1)
    for name, path in zip(demo.QUANTITIES, recording, strict=True):
        readings = [json.loads(line) for line in path.read_text().splitlines()]
        written = [
            line
            for file in (tmp_path / "rdf" / name).glob("*.stream")
            for line in file.read_text().splitlines()
        ]
        sensors = sorted(
            line.split("madeBySensor> ")[1].split()[0] for line in written if "madeBy" in line
        )
        assert sensors == sorted(
            f"<{demo.BASE}sensor/{one['sensor']}>" for one in readings if one[name] is not None
        )
        assert len(set(written)) == len(written) == 5 * len(sensors)


def test_an_interrupted_run_stops_in_order_and_says_so(spark, tmp_path):
    recording = write_recording(tmp_path / "recording", 20_000)
    interrupts = Interrupts()
    interrupts.seen = True
    summary = demo.run(spark, recording, 100, tmp_path, interrupts)
    assert not summary.complete
    assert spark.streams.active == []
