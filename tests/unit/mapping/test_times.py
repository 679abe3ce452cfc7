"""Which reference holds the event time of a source's records (docs/reference/rml.md)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from quadweir.mapping.files import Folders
from quadweir.mapping.joins import StreamTime
from quadweir.mapping.read import parse_mapping
from quadweir.runtime.mappings.streams import Streams
from quadweir.sources.declare import (
    Arrival,
    Envelope,
    Format,
    FromColumn,
    KafkaSource,
    ReplaySource,
    StreamDeclaration,
    TimeSource,
)

KAFKA = KafkaSource(servers="localhost:9092", topic="t")


def time_of(
    declared: StreamDeclaration | None, times: dict[str, str], *, bounded: bool = False
) -> StreamTime:
    source = "<urn:s>" if declared is not None else '"r.csv"'
    (found,) = parse_mapping(
        f"""@prefix rml: <http://w3id.org/rml/> .
        <urn:m> rml:logicalSource [ rml:source {source} ; rml:referenceFormulation rml:JSONPath ] ;
          rml:subjectMap [ rml:template "urn:{{id}}" ; rml:class <urn:C> ] ."""
    ).triples_maps
    streams = Streams(
        spark=None,  # type: ignore[arg-type]  # Nothing is opened.
        folders=Folders(mapping=Path(), working=Path()),
        declarations={declared.iri: declared} if declared is not None else {},
        times=times,
        bounded=bounded,
    )
    return streams.time_of(found.source)


def declare(time: TimeSource) -> StreamDeclaration:
    return StreamDeclaration(iri="urn:s", source=KAFKA, format=Format.JSONL, time=time)


@pytest.mark.parametrize(
    ("time", "times", "reference"),
    [
        # What --time says of the source itself wins; what it says of all is for the rest.
        (Envelope(), {}, None),
        (Envelope(), {"": "all"}, "all"),
        (Envelope(), {"": "all", "urn:s": "own"}, "own"),
        (FromColumn("column"), {"": "all"}, "column"),
        (FromColumn("column"), {"urn:s": "own"}, "own"),
        (Arrival(), {"": "all"}, None),
        (Arrival(), {"urn:s": "own"}, "own"),
    ],
)
def test_the_time_of_a_declared_stream(time, times, reference):
    found = time_of(declare(time), times)
    assert found.reference == reference
    assert found.is_arrival == isinstance(time, Arrival)
    assert found.delay_ms == 10_000


def test_a_replay_reads_its_times_itself():
    recording = StreamDeclaration(
        iri="urn:s",
        source=ReplaySource(path=Path("r.jsonl")),
        format=Format.JSONL,
        time=FromColumn("t"),
        delay=timedelta(0),
    )
    assert time_of(recording, {"": "all"}).reference is None
    assert time_of(recording, {"": "all"}, bounded=True).reference == "t"


def test_a_file_next_to_live_streams_has_no_time_unless_it_is_named():
    assert time_of(None, {"": "all"}).reference is None
    assert time_of(None, {"": "all"}, bounded=True).reference == "all"
    assert time_of(None, {"r.csv": "own"}).reference == "own"
    assert not time_of(None, {}).has_own_time
