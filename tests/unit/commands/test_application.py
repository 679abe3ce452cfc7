"""The file of `quadweir run`: what it may say, and the places of errors."""

from __future__ import annotations

import tomllib
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest
from referencing import Registry, Resource

from pages import ROOT
from quadweir.commands.application import Application, load, schema
from quadweir.commands.queryoutput import OutputTarget
from quadweir.errors import QuadweirError
from quadweir.runtime.network.querytext import QueryText
from quadweir.sources.declare import schema as streams_schema
from quadweir.sources.staticfiles import StaticFile
from quadweir.terms import IRI

EXAMPLE = '''\
schema = "schema.ttl"
queries_folder = "queries"

[streams."urn:s"]
source = { kind = "folder", path = "in", watch = true }
format = "timed-lines"

[streams."urn:r"]
source = { kind = "folder", path = "in", watch = true }
format = "csv"
time = { column = "at" }

[mappings.readings]
file = "readings.ttl"
stream = "urn:m"
time = "at"

[network]
checkpoint = "state"
shards = 2
every = "500ms"
static = ["names.ttl", { file = "places.ttl", graph = "urn:g" }]
most_held = 1000
most_answers = 50
dead_letters = "dead"
output = "answers"

[queries.one]
text = """
SELECT ?x {
  STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y }
}
"""
output = "one"
format = "csv"
paused = true

[queries.two]
file = "two.rq"
dialect = "cqels"
content = "bag"
base = "http://example.org/"
allow_unbounded = ["urn:s"]
output = "kafka:localhost:9092/two"

[queries.three]
text = "SELECT ?x { STREAM <urn:m> [NOW] { ?x <urn:p> ?y } }"
'''
MAPPING = """\
@prefix rml: <http://w3id.org/rml/> .
<#m> rml:logicalSource [ rml:source "readings.csv" ; rml:referenceFormulation rml:CSV ] ;
  rml:subjectMap [ rml:template "urn:sensor:{sensor}" ] ;
  rml:predicateObjectMap [ rml:predicate <urn:speed> ; rml:objectMap [ rml:reference "speed" ] ] .
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "queries").mkdir()
    (tmp_path / "readings.ttl").write_text(MAPPING)
    (tmp_path / "two.rq").write_text("SELECT ?x {\n STREAM <urn:s> [ALL] { ?x ?p <y> } }")
    return tmp_path


def loaded(folder: Path, text: str) -> Application:
    (folder / "app.toml").write_text(text)
    return load(folder / "app.toml")


def test_everything_is_read(folder: Path) -> None:
    app = loaded(folder, EXAMPLE)
    assert app.name == "app"
    assert set(app.streams) == {"urn:s", "urn:r"}
    assert app.read == ("urn:s", "urn:m"), "records are for mappings"
    assert app.folder == folder / "queries"
    assert app.schema == (folder / "schema.ttl",)
    assert app.static == (
        StaticFile(folder / "names.ttl"),
        StaticFile(folder / "places.ttl", IRI("urn:g")),
    )
    assert (app.checkpoint, app.shards) == (folder / "state", 2)
    assert (app.most_held, app.most_answers) == (1000, 50)
    assert (app.every, app.dead_letters) == (timedelta(milliseconds=500), str(folder / "dead"))
    assert app.target == OutputTarget(str(folder / "answers"), "jsonl")
    (mappings,) = app.mappings
    assert (mappings.iris, mappings.times) == ({"urn:m"}, {"": "at"})
    one, two, three = app.queries.values()
    assert (one.name, one.target, one.is_paused) == (
        "one",
        OutputTarget(str(folder / "one"), "csv"),
        True,
    )
    assert two.text == QueryText(
        (folder / "two.rq").read_text(), "cqels", "bag", "http://example.org/", ("urn:s",)
    )
    assert two.target == OutputTarget("kafka:localhost:9092/two", "jsonl")
    assert three.target is None


def test_little_is_needed(folder: Path) -> None:
    app = loaded(
        folder,
        'queries_folder = "queries"\n[mappings.m]\nfile = "readings.ttl"\nstream = "urn:s"\n',
    )
    assert (app.output, app.checkpoint, dict(app.queries)) == ("-", None, {})
    assert loaded(folder, EXAMPLE.replace('"answers"', '"none"')).target is None


STREAMS = '[streams."urn:s"]\nsource = { kind = "folder", path = "in", watch = true }\n'


@pytest.mark.parametrize(
    ("old", "new", "place", "message", "hint"),
    [
        ("queries_folder", "query_folder", "query_folder", 'unknown key "query_folder"', 'Did you mean "queries_folder"?'),
        ('"queries"', '"qeries"', '"qeries"', "there is no folder", "Create it"),
        ('"queries"', '"../queries"', '"../queries"', '"../queries" leaves the folder', "Keep it below the folder of this file, or allow its folder with --allow-dir."),
        ('"state"', '"/tmp/state"', '"/tmp/state"', '"/tmp/state" leaves the folder', None),
        ('"schema.ttl"', '"/schema.ttl"', '"/schema', '"/schema.ttl" leaves the folder', None),
        ("queries.one]", 'queries."../one"]', '[queries."../one"', "../one is not a name of at most 100", None),
        ("queries.one]", 'queries.".one"]', '[queries.".one"', ".one is not a name", None),
        ("shards = 2", "shards = 0", "0\nevery", "shards is 0, less than 1", None),
        ('every = "500ms"', 'every = "0s"', '"0s"', "every is not a duration above zero", None),
        ('"names.ttl", {', '7, {', "7, {", "0 is 7", "Expected"),
        ('graph = "urn:g"', 'graph = "g"', '"g" }', 'graph is not an absolute IRI', None),
        ('"dead"', '"answers"', '"answers"\n\n', "answers is the folder of network.dead_letters, too", "Name another folder."),
        ('"one"\nformat', '"answers"\nformat', '"answers"\nformat', "answers is the folder of network.output, too", None),
        ('"one"\nformat', '"state"\nformat', '"state"\nformat', "state is the folder of the checkpoint, too", None),
        ('"csv"\npaused', '"xml"\npaused', '"xml"', 'format is "xml"', "Choose one of"),
        ('"csv"\npaused', '"nquads"\npaused', '"nquads"', "answers that are solutions cannot be written as nquads", "Choose jsonl, csv or tsv."),
        ('output = "one"\n', "", "[queries.one]", "format is about an output of this query alone", None),
        ('output = "kafka:localhost:9092/two"', 'output = "kafka:two"', '"kafka:two"', "output is not a folder, or kafka:", None),
        ('output = "kafka:localhost:9092/two"', 'output = "kafka:h:1/t"\nformat = "csv"', '"csv"\n\n', "Kafka gets the answers of a query as jsonl", None),
        ('file = "two.rq"\n', "", "[queries.two]", "the query has no text", None),
        ('file = "two.rq"', 'file = "two.rq"\ntext = "x"', "[queries.two]", "the query has a file and a text", None),
        ('file = "two.rq"', 'file = "2.rq"', '"2.rq"', "no such file", None),
        ('dialect = "cqels"', 'dialect = "cql"', '"cql"', 'dialect is "cql"', 'Did you mean "cqels"?'),
        ("[RANGE 5s]", "[RANG 5s]", "RANG 5s", "unexpected 'RANG'", "Did you mean RANGE?"),
        ("<urn:s> [RANGE", "<urn:t> [RANGE", "STREAM <urn:t>", "the query reads the stream <urn:t>", "Declared streams: <urn:s>, <urn:m>."),
        ('allow_unbounded = ["urn:s"]\n', 'allow_unbounded = ["s"]\n', '"s"]', "0 is not an absolute IRI", None),
        ("[NOW] {", "[NAW] {", "NAW", "unexpected 'NAW'", None),
        ("?y } }\"", "?\\u0079 }\"", '"SELECT ?x { STREAM <urn:m>', "the query ends too early", None),
        ('"readings.ttl"', '"writings.ttl"', '"writings.ttl"', "there is no mapping file", None),
        ('stream = "urn:m"\n', "", "[mappings.readings]", "which stream does", 'Add stream = "IRI".'),
        ('stream = "urn:m"', 'stream = "urn:s"', "[mappings.readings]", "this mapping makes <urn:s>, which is given already", None),
    ],
)  # fmt: skip
def test_errors_name_their_place(
    folder: Path, old: str, new: str, place: str, message: str, hint: str | None
) -> None:
    text = EXAMPLE.replace(old, new)
    assert text != EXAMPLE
    with pytest.raises(QuadweirError) as caught:
        loaded(folder, text)
    error = caught.value
    assert message in error.message
    assert error.span is not None
    before = text[: text.index(place)]
    expected = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert (error.span.line, error.span.column) == expected, str(error)
    assert error.span.source == str(folder / "app.toml")
    assert error.exit_code in (2, 3)
    if hint is not None:
        assert error.hint is not None
        assert error.hint.startswith(hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('queries_folder = "queries"\n', "the file has no streams"),
        (f'{STREAMS}format = "timed-lines"\n', "the file has no queries"),
        (f'{STREAMS}format = "timed-line"\n', 'format is "timed-line"'),
        ("[streams", "not TOML"),
    ],
)
def test_a_file_that_lacks_something_says_what(folder: Path, text: str, message: str) -> None:
    with pytest.raises(QuadweirError) as caught:
        loaded(folder, text)
    assert caught.value.message.startswith(message)


def test_an_error_in_a_file_of_its_own_has_its_place_there(folder: Path) -> None:
    (folder / "two.rq").write_text("SELECT ?x {\n STREAM <urn:s> [ALL] { ?x ?p }")
    with pytest.raises(QuadweirError) as caught:
        loaded(folder, EXAMPLE)
    assert str(caught.value.span) == f"{folder / 'two.rq'}:2:31"


def test_other_folders_are_allowed_by_name(folder: Path, tmp_path_factory) -> None:
    other = tmp_path_factory.mktemp("other")
    text = EXAMPLE.replace('"state"', f'"{other}/state"')
    (folder / "app.toml").write_text(text)
    assert load(folder / "app.toml", allow_dirs=[other]).checkpoint == other / "state"
    with pytest.raises(QuadweirError):
        load(folder / "app.toml", allow_dirs=[folder])


@pytest.mark.parametrize("text", [EXAMPLE, (ROOT / "examples/network/app.toml").read_text()])
def test_the_published_schema_is_sound_and_accepts_the_examples(text: str) -> None:
    jsonschema.Draft202012Validator.check_schema(dict(schema()))
    known = Resource.from_contents(streams_schema()) @ Registry()
    jsonschema.Draft202012Validator(dict(schema()), registry=known).validate(tomllib.loads(text))


def test_the_example_is_good() -> None:
    app = load(ROOT / "examples/network/app.toml")
    assert list(app.queries) == ["floors"]
