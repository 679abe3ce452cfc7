"""Declared streams that cannot be opened are refused before Spark is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quadweir.errors import DeclarationError, UsageError
from quadweir.sources.declare import (
    Format,
    FromColumn,
    FromPredicate,
    KafkaSource,
    MemorySource,
    ReplaySource,
    StreamDeclaration,
    TcpSource,
)
from quadweir.sources.opening import find_stream, open_declared, open_rdf

# Whatever is asked of it fails.
NO_SPARK: Any = None


@pytest.mark.parametrize(
    "source",
    [ReplaySource(path=Path("a.csv")), KafkaSource(servers="localhost:9092", topic="t")],
    ids=["replay", "kafka"],
)
def test_records_that_are_not_rdf_have_to_be_mapped_first(source):
    declared = StreamDeclaration(
        iri="urn:s", source=source, format=Format.CSV, time=FromColumn("at")
    )
    with pytest.raises(DeclarationError, match="the records of <urn:s> are csv, not RDF") as caught:
        open_rdf(NO_SPARK, declared)
    assert caught.value.hint == "Map them with RML first."


def test_lines_of_a_tcp_server_need_a_spool():
    declared = StreamDeclaration(
        iri="urn:s", source=TcpSource(port=9999), format=Format.TIMED_LINES
    )
    with pytest.raises(UsageError, match="<urn:s> arrives once"):
        open_declared(NO_SPARK, declared)


def test_a_stream_in_memory_is_refused():
    declared = StreamDeclaration(
        iri="urn:s", source=MemorySource(), format=Format.NTRIPLES, time=FromPredicate("urn:at")
    )
    with pytest.raises(UsageError, match="<urn:s> is a stream in memory"):
        open_rdf(NO_SPARK, declared)


def test_a_stream_that_nobody_declared_is_an_error_with_those_that_are():
    assert find_stream("urn:a", {"urn:a": 1}) == 1
    with pytest.raises(UsageError, match="no stream is declared as <urn:b>") as caught:
        find_stream("urn:b", {"urn:a": 1})
    assert caught.value.hint == "Declared streams: <urn:a>."
