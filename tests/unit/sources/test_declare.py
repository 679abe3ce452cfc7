"""Declarations: what the loader takes is what the published schema takes, and errors have places."""

from __future__ import annotations

import copy
import math
import re
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.errors import DeclarationError
from quadweir.sources.declare import (
    Arrival,
    Burst,
    Envelope,
    FileSource,
    FolderSource,
    Format,
    FromColumn,
    FromPredicate,
    KafkaSource,
    MemorySource,
    MqttSource,
    Rate,
    ReplaySource,
    StreamDeclaration,
    TcpSource,
    load,
    loads,
    schema,
    schema_files,
)
from quadweir.sources.schemacheck import first_problem
from quadweir.sources.tomlplaces import locate

EXAMPLE = """\
# What the reference page shows, and more.
[streams."http://example.org/flow"]
description = "vehicles an hour"
source = { kind = "file", path = "data/flow.stream" }
format = "timed-lines"
in_order = true

[streams."http://example.org/graphs"]
source = { kind = "folder", path = "graphs", pattern = "*.trig", watch = true }
format = "timed-graphs"
time = { predicate = "http://example.org/at" }
delay = "1m"

[streams."http://example.org/snapshots"]
source = { kind = "folder", path = "snapshots", start = 2024-01-01T00:00:00Z, step = "10s" }
format = "timed-files"

[streams."http://example.org/speed"]
format = "jsonl"
time = { column = "at" }
delay = "5s"
ahead = "2h"
idle = "30s"
dead_letters = "dead/speed"

[streams."http://example.org/speed".source]
kind = "kafka"
servers = "localhost:9092"
topic = "speed"
starting = "latest"
options = { "kafka.security.protocol" = "SSL" }

[streams."http://example.org/played"]
source = { kind = "replay", path = "data", pace = { burst = 500, every = "10s" }, loop = true }
format = "timed-lines"

[streams."http://example.org/tcp"]
source = { kind = "tcp", port = 9999 }
format = "ntriples"
time = "arrival"

[streams."http://example.org/mqtt"]
source.kind = "mqtt"
source.topic = "sensors/#"
source.qos = 2
format = "nquads"
time = { predicate = "http://example.org/at" }

[streams."urn:memory"]
source = { kind = "memory" }
format = "timed-lines"
"""
BASE = Path("/somewhere")
VALIDATOR = jsonschema.Draft202012Validator(dict(schema()))


def test_every_kind_of_source_is_read() -> None:
    found = loads(EXAMPLE, base=BASE)
    assert {declaration.kind for declaration in found.values()} == {
        "file", "folder", "kafka", "replay", "tcp", "mqtt", "memory",
    }  # fmt: skip
    flow = found["http://example.org/flow"]
    assert flow.source == FileSource(path=BASE / "data/flow.stream")
    assert (flow.time, flow.delay, flow.idle, flow.in_order) == (
        Envelope(),
        timedelta(0),
        None,
        True,
    )
    snapshots = found["http://example.org/snapshots"].source
    assert isinstance(snapshots, FolderSource)
    assert (snapshots.start, snapshots.step) == (1_704_067_200_000, timedelta(seconds=10))
    speed = found["http://example.org/speed"]
    assert (speed.delay_ms, speed.idle_ms, speed.ahead_ms) == (5000, 30_000, 7_200_000)
    assert speed.time == FromColumn("at")
    assert speed.dead_letters == BASE / "dead/speed"
    assert isinstance(speed.source, KafkaSource)
    assert speed.source.options == {"kafka.security.protocol": "SSL"}
    played = found["http://example.org/played"].source
    assert isinstance(played, ReplaySource)
    assert played.pace == Burst(500, timedelta(seconds=10))
    assert found["http://example.org/tcp"].delay == timedelta(seconds=10)
    assert found["http://example.org/tcp"].ahead == timedelta(hours=1)
    assert found["http://example.org/tcp"].time == Arrival()
    mqtt = found["http://example.org/mqtt"]
    assert mqtt.source == MqttSource(topic="sensors/#", qos=2)
    assert mqtt.time == FromPredicate("http://example.org/at")


@pytest.mark.parametrize(
    ("named", "found"),
    [('"a.ttl"', ["a.ttl"]), ('["a.ttl", "b/c.ttl"]', ["a.ttl", "b/c.ttl"])],
)
def test_schemas_of_queries_are_one_file_or_several(
    named: str, found: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "streams.toml"
    file.write_text(f"schema = {named}\n{EXAMPLE}", encoding="utf-8")
    assert schema_files(file) == tuple(tmp_path / name for name in found)


@pytest.mark.parametrize("named", ["[]", '["a.ttl", ""]', "[1]", '["../a.ttl"]'])
def test_a_list_of_schemas_names_files_of_its_folder(named: str, tmp_path: Path) -> None:
    file = tmp_path / "streams.toml"
    file.write_text(f"schema = {named}\n{EXAMPLE}", encoding="utf-8")
    with pytest.raises(DeclarationError, match="schema is|leaves the folder"):
        schema_files(file)


def test_the_schema_is_sound_and_accepts_the_example() -> None:
    jsonschema.Draft202012Validator.check_schema(dict(schema()))
    document = tomllib.loads(EXAMPLE.replace("2024-01-01T00:00:00Z", '"2024-01-01T00:00:00Z"'))
    VALIDATOR.validate(document)


def test_what_is_built_in_python_is_what_is_loaded() -> None:
    for declaration in loads(EXAMPLE, base=BASE).values():
        again = StreamDeclaration(
            iri=declaration.iri,
            source=declaration.source,
            format=declaration.format,
            time=declaration.time,
            delay=declaration.delay,
            idle=declaration.idle,
            ahead=declaration.ahead,
            in_order=declaration.in_order,
            dead_letters=declaration.dead_letters,
            description=declaration.description,
        )
        assert again == declaration
    with pytest.raises(DeclarationError):
        StreamDeclaration(iri="no iri", source=MemorySource(), format=Format.TIMED_LINES)
    with pytest.raises(DeclarationError):
        StreamDeclaration(iri="urn:s", source=TcpSource(port=70_000), format=Format.TIMED_LINES)
    with pytest.raises(DeclarationError):
        StreamDeclaration(
            iri="urn:s", source=ReplaySource(path=BASE, pace=Rate(0)), format=Format.TIMED_LINES
        )


SPEED = '[streams."http://example.org/speed"'
TCP = '[streams."http://example.org/tcp"]'


@pytest.mark.parametrize(
    ("old", "new", "place", "message", "hint"),
    [
        ('delay = "5s"', 'dely = "5s"', "dely", 'unknown key "dely"', 'Did you mean "delay"?'),
        ('delay = "5s"', "delay = 57", "57", "delay is not a string", "Expected"),
        ('delay = "5s"', 'delay = "5 s"', '"5 s"', "delay is not a duration", None),
        ('kind = "kafka"', 'kind = "kafk"', '"kafk"', 'unknown kind "kafk"', 'Did you mean "kafka"?'),
        ('topic = "speed"\n', "", f"{SPEED}.source]", "source has no topic", None),
        ("port = 9999", "port = 99999", "99999", "port is 99999, more than 65535", None),
        ("qos = 2", "qos = 333", "333", "qos is 333", "Choose one of: 0, 1, 2."),
        ("watch = true", "watch = 77", "77", "watch is not a boolean", None),
        ('time = "arrival"', 'time = "arival"', '"arival"', 'time is "arival"', "Expected"),
        ('time = "arrival"\n', "", TCP, "nothing around these records says a time", None),
        ('step = "10s"', 'pattern = "*"', '[streams."http://example.org/snap', "timed-files need a step", None),
        ('"data/flow.stream"', '"../flow.stream"', '"../', '"../flow.stream" leaves', "Keep data"),
        ('"data/flow.stream"', '"/etc/passwd"', '"/etc', '"/etc/passwd" leaves', None),
        ("2024-01-01T00:00:00Z", '"2024-02-30T00:00:00Z"', '"2024-02-30', "no such date", None),
        ("http://example.org/flow", "fl ow", '[streams."fl ow"]', "fl ow is not an IRI", None),
        ("every = ", "each = ", "each", 'unknown key "each"', None),
        ('{ kind = "tcp", port = 9999 }', '"tcp"', '"tcp"', 'source is "tcp", not a table', 'Write source = { kind = "tcp", ... }. Choose'),
        ('"urn:memory"]', '"urn:memory"', '\nsource = { kind = "memory"', "not TOML", None),
    ],
)  # fmt: skip
def test_errors_name_their_place(
    old: str, new: str, place: str, message: str, hint: str | None
) -> None:
    text = EXAMPLE.replace(old, new)
    with pytest.raises(DeclarationError) as caught:
        loads(text, base=BASE, source="s.toml")
    error = caught.value
    assert error.message.startswith(message)
    assert error.span is not None
    before = text[: text.index(place)]
    expected = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert (error.span.line, error.span.column, error.span.source) == (*expected, "s.toml")
    if hint is not None:
        assert error.hint is not None
        assert error.hint.startswith(hint)


def test_a_link_that_leads_outside_is_refused_unless_allowed(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    path = inside / "streams.toml"
    path.write_text(
        '[streams."urn:s"]\nformat = "timed-lines"\nsource = { kind = "file", path = "link/x" }'
    )
    with pytest.raises(DeclarationError):
        load(path)
    assert load(path, allow_outside=True)["urn:s"].source == FileSource(path=inside / "link/x")


def test_files_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError):
        load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    with pytest.raises(DeclarationError):
        load(tmp_path / "bad.toml")
    with pytest.raises(DeclarationError):
        loads("a = " + "[" * 5000 + "]" * 5000, base=tmp_path)


def document() -> dict[str, Any]:
    return tomllib.loads(EXAMPLE.replace("2024-01-01T00:00:00Z", '"2024-01-01T00:00:00Z"'))


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    return found


values = st.one_of(
    st.sampled_from(
        ["", "10s", "0s", "-1s", "timed-lines", "timed-files", "jsonl", "ntriples", "envelope", "arrival",
         "file", "folder", "tcp", "memory", "urn:x", "1970-01-01T00:00:00Z"]
    ),
    st.sampled_from(
        [True, 0, 1, -5, 70_000, 1.5, 2.0, 10**16, {}, [], {"predicate": "urn:p"}, {"column": "c"},
         {"rate": 5}, {"speed": 0}, {"rate": 1, "speed": 1}, {"kind": "memory"}]
    ),
)  # fmt: skip


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


keys = st.sampled_from(["time", "delay", "kind", "step", "path", "watch", "pace", "port", "other"])


@given(st.data())
def test_the_loader_accepts_what_the_schema_accepts(data: st.DataObject) -> None:
    changed = copy.deepcopy(document())
    for _ in range(data.draw(st.integers(1, 2))):
        if not places(changed):
            break
        *path, last = data.draw(st.sampled_from(places(changed)))
        table = changed
        for key in path:
            table = table[key]
        match data.draw(st.sampled_from(["delete", "replace", "add", "rename"])):
            case "delete":
                del table[last]
            case "replace":
                table[last] = copy.deepcopy(data.draw(values))
            case "add" if isinstance(table[last], dict):
                table[last][data.draw(keys)] = copy.deepcopy(data.draw(values))
            case _:
                table[data.draw(keys)] = table.pop(last)
    problem = first_problem(changed, schema())
    assert (problem is None) == VALIDATOR.is_valid(changed), problem


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        # Python's `$` matches before a last line feed; JSON Schema's does not.
        ("delay", "5s\n", "delay is not a duration"),
        ("source", {"kind": "replay", "path": "x", "pace": {"speed": math.nan}}, "speed is not a"),
        (
            "source",
            {"kind": "replay", "path": "x", "pace": {"speed": math.inf}},
            "speed is inf, more",
        ),
        ("source", {"kind": "tcp", "port": True}, "port is not a whole number"),
        ("source", {"kind": "mqtt", "topic": "t", "qos": True}, "qos is True"),
        ("source", {"path": "x"}, "source has no kind"),
        ("description", nested(300), "description is not a string"),
    ],
    ids=[
        "line feed",
        "not a number",
        "infinite",
        "true is not 1",
        "true is no choice",
        "no kind",
        "deep",
    ],
)
def test_what_toml_and_python_see_in_another_way_is_an_error_too(
    key: str, value: object, message: str
) -> None:
    changed = document()
    changed["streams"]["http://example.org/flow"][key] = value
    problem = first_problem(changed, schema())
    assert problem is not None
    assert problem.message.startswith(message)


def test_the_first_of_several_problems_in_the_text_is_named() -> None:
    first, second = "http://example.org/flow", "http://example.org/tcp"
    changed = document()
    changed["streams"][second]["delay"] = 1
    changed["streams"][first]["other"] = 1
    changed["streams"][first]["description"] = 2
    problem = first_problem(changed, schema())
    assert problem is not None
    assert problem.path == ("streams", first, "description")


def test_places_are_found_in_every_spelling_of_toml() -> None:
    text = (
        "a.b = 1 # c = 2\r\n"
        "'x y' = '''\n] = [ '''\r\n"
        '"q\\"\\u0041" = """a"" = """\n'
        "[t . \"u.v\"]\nk = [ 1, # x\n  [2, {z = 'y', w.n = 3}],\n]\n"
        "[[l]]\nm = 1\n[[l]]\n[l.n]\no = 2024-01-01 00:00:00\n"
    )
    tomllib.loads(text)
    found = {path: (place.value.line, place.value.column) for path, place in locate(text).items()}
    assert found == {
        ("a",): (1, 7),
        ("a", "b"): (1, 7),
        ("x y",): (2, 9),
        ('q"A',): (4, 15),
        ("t", "u.v"): (5, 1),
        ("t", "u.v", "k"): (6, 5),
        ("t", "u.v", "k", 0): (6, 7),
        ("t", "u.v", "k", 1): (7, 3),
        ("t", "u.v", "k", 1, 0): (7, 4),
        ("t", "u.v", "k", 1, 1): (7, 7),
        ("t", "u.v", "k", 1, 1, "z"): (7, 12),
        ("t", "u.v", "k", 1, 1, "w"): (7, 23),
        ("t", "u.v", "k", 1, 1, "w", "n"): (7, 23),
        ("l", 0): (9, 1),
        ("l", 0, "m"): (10, 5),
        ("l", 1): (11, 1),
        ("l", 1, "n"): (12, 1),
        ("l", 1, "n", "o"): (13, 5),
    }


@pytest.mark.parametrize("page", ["streams.md", "replay.md"])
def test_what_the_pages_show_is_accepted(page: str) -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        assert loads(block, base=BASE)
