"""Which stream a mapping of the command line makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadweir.commands.mappingtimes import parse_times
from quadweir.commands.querymappings import read_mappings
from quadweir.errors import UsageError
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.sources.declare import loads
from quadweir.syntax import parse

ONE = "SELECT ?s { STREAM <urn:a> [RANGE 1s] { ?s ?p ?o } }"
TWO = "SELECT ?s { STREAM <urn:a> [RANGE 1s] { ?s ?p ?o } STREAM <urn:b> [RANGE 1s] { ?s ?p ?o } }"
MAPPING = """
@prefix rml: <http://w3id.org/rml/> .
<#m> rml:logicalSource [ rml:source %s ; rml:referenceFormulation rml:JSONPath ] ;
  rml:subjectMap [ rml:template "urn:{id}" ; rml:class <urn:C> ] .
"""


@pytest.fixture
def file(tmp_path: Path):
    def write(source: str) -> Path:
        path = tmp_path / "m.ttl"
        path.write_text(MAPPING % source)
        return path

    return write


def test_the_stream_that_nothing_else_gives(file):
    path = file('"r.json"')
    (mapped,) = read_mappings([str(path)], parse(TWO), ["urn:b"], {}, None)
    assert (mapped.stream, mapped.iris) == ("urn:a", ("urn:a",))


def test_the_stream_that_is_named(file):
    path = file('"r.json"')
    (mapped,) = read_mappings([f"urn:x={path}"], parse(ONE), [], {}, None)
    assert mapped.iris == ("urn:x",)
    (mapped,) = read_mappings([f"x={path}"], parse(ONE), [], {}, "http://e.org/")
    assert mapped.iris == ("http://e.org/x",)


def test_declared_streams_keep_their_names(file):
    (mapped,) = read_mappings([str(file("<urn:b>"))], parse(TWO), ["urn:a"], {}, None)
    assert (mapped.stream, mapped.iris) == (None, ("urn:b",))
    # The query does not read it by that name: then it is the one that is left.
    (mapped,) = read_mappings([str(file("<urn:c>"))], parse(TWO), ["urn:a"], {}, None)
    assert (mapped.stream, mapped.iris) == ("urn:b", ("urn:b",))


def test_rdf_that_is_declared_is_not_made_by_a_mapping(file, tmp_path):
    declared = loads(
        """[streams."urn:a"]
        source = { kind = "file", path = "a.stream" }
        format = "timed-lines"
        """,
        base=tmp_path,
    )
    (mapped,) = read_mappings([str(file('"r.json"'))], parse(TWO), [], declared, None)
    assert mapped.iris == ("urn:b",)


def test_what_cannot_be_known_is_asked_for(file, tmp_path):
    path = file('"r.json"')
    with pytest.raises(UsageError, match="which stream does .*m.ttl make") as found:
        read_mappings([str(path)], parse(TWO), [], {}, None)
    assert "--mapping IRI=" in (found.value.hint or "")
    with pytest.raises(UsageError, match="no mapping file"):
        read_mappings([str(tmp_path / "none.ttl")], parse(ONE), [], {}, None)


@pytest.mark.parametrize("given", [["a=t", "a=u"], ["t", "u"], ["a="]])
def test_times_that_say_nothing_or_too_much(given):
    with pytest.raises(UsageError):
        parse_times(given)


def test_the_time_of_a_source_that_no_mapping_reads(file):
    model = RmlMapping.read(file('"r.json"'))
    assert parse_times(["r.json=t"], [model]) == {"r.json": "t"}
    with pytest.raises(UsageError, match=r"no mapping reads r\.jsn") as found:
        parse_times(["t", "r.jsn=t"], [model])
    assert "r.json" in (found.value.hint or "")


@pytest.mark.parametrize(("given", "taken"), [(1, ["urn:a"]), (2, [])])
def test_a_stream_is_given_once(file, given, taken):
    with pytest.raises(UsageError, match="<urn:a> is made by"):
        read_mappings(["urn:a=" + str(file('"r.json"'))] * given, parse(TWO), taken, {}, None)
