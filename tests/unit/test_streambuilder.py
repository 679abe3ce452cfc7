"""A chain of calls declares what a table of a TOML file declares."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quadweir.errors import DeclarationError, MappingError, UsageError
from quadweir.sources.declare import Format, Rate, StreamDeclaration, loads
from quadweir.streambuilder import StreamBuilder

IRI = "http://example.org/s"
BASE = Path("/data")


def declared(table: str) -> StreamDeclaration:
    # An inline table is on one line.
    table = table.replace(",\n", ", ")
    return loads(f'[streams."{IRI}"]\n{table}', base=BASE)[IRI]


CHAINS = {
    "kafka": (
        """
        source = { kind = "kafka", servers = "localhost:9092", topic = "speed",
                   options = { "kafka.security.protocol" = "SSL" } }
        format = "jsonl"
        time = { column = "measured_at" }
        delay = "5s"
        idle = "30s"
        ahead = "2h"
        dead_letters = "dead/speed"
        description = "speeds"
        """,
        lambda stream: (
            stream.kafka("localhost:9092", "speed", options={"kafka.security.protocol": "SSL"})
            .format("jsonl")
            .event_time(column="measured_at")
            .delay("5s")
            .idle(timedelta(seconds=30))
            .ahead("PT2H")
            .dead_letters("file:///data/dead/speed")
            .description("speeds")
        ),
    ),
    "mqtt": (
        """
        source = { kind = "mqtt", topic = "a/#", host = "broker", qos = 2, client_id = "c",
                   tls = true, username = "ann", password_env = "SECRET" }
        format = "ntriples"
        time = { predicate = "urn:at" }
        in_order = true
        """,
        lambda stream: (
            stream.mqtt(
                "a/#",
                host="broker",
                qos=2,
                client_id="c",
                tls=True,
                username="ann",
                password_env="SECRET",
            )
            .format(Format.NTRIPLES)
            .event_time(predicate="urn:at")
            .in_order()
        ),
    ),
    "tcp": (
        'source = { kind = "tcp", port = 9999 }\nformat = "nquads"\ntime = "arrival"',
        lambda stream: stream.tcp(9999).format("nquads").event_time(arrival=True),
    ),
    "file": (
        'source = { kind = "file", path = "flow.stream" }\nformat = "timed-lines"',
        lambda stream: stream.file(BASE / "flow.stream").format("timed-lines"),
    ),
    "folder": (
        """
        source = { kind = "folder", path = "snap", pattern = "*.ttl", start = 2024-01-01T00:00:00Z,
                   step = "10s", watch = true }
        format = "timed-files"
        """,
        lambda stream: stream.folder(
            "/data/snap",
            pattern="*.ttl",
            start=datetime(2024, 1, 1, tzinfo=UTC),
            step="10 seconds",
            watch=True,
        ).format("timed-files"),
    ),
    "replay": (
        """
        source = { kind = "replay", path = "rec.jsonl", pace = { burst = 5, every = "2s" },
                   loop = true, limit = 9 }
        format = "jsonl"
        time = { column = "t" }
        """,
        lambda stream: (
            stream.replay("/data/rec.jsonl", burst=5, every="2s", loop=True, limit=9)
            .format("jsonl")
            .event_time(column="t")
        ),
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_and_a_table_declare_the_same(name: str) -> None:
    table, chain = CHAINS[name]
    assert chain(StreamBuilder(IRI)).declaration == declared(table)


def test_calls_may_come_in_any_order_and_later_ones_win() -> None:
    stream = StreamBuilder(IRI).format("jsonl").delay("1s").file("a")
    stream.event_time(column="t").file("/b").format("timed-lines").event_time().delay("2s")
    assert stream.declaration == StreamDeclaration(
        iri=IRI, source=stream.declaration.source, format=Format.TIMED_LINES, delay="2s"
    )
    assert stream.declaration.source.path == Path("/b")


def test_a_pace_is_a_number_or_an_object() -> None:
    one = StreamBuilder(IRI).replay("a", rate=5).format("timed-lines").declaration
    other = StreamBuilder(IRI).replay("a", pace=Rate(5)).format("timed-lines").declaration
    assert one == other


@pytest.mark.parametrize(
    ("chain", "kind", "message"),
    [
        (lambda s: s.declaration, DeclarationError, "has no source"),
        (lambda s: s.file("a").declaration, DeclarationError, "has no format"),
        (lambda s: s.format("xls"), DeclarationError, "there is no format 'xls'"),
        (lambda s: s.delay("5 parsecs"), UsageError, "not a duration: 5 parsecs"),
        (lambda s: s.delay(timedelta(-1)), UsageError, "not a duration"),
        (lambda s: s.ahead(5), UsageError, "not a duration: 5"),
        (lambda s: s.file("s3a://bucket/a"), UsageError, "is not on this machine"),
        (lambda s: s.event_time(column="t", arrival=True), DeclarationError, "one source of event"),
        (lambda s: s.replay("a", burst=1), DeclarationError, "a burst needs"),
        (lambda s: s.replay("a", rate=1, speed=1), DeclarationError, "a replay has one pace"),
        (lambda s: s.folder("a", start="noon"), UsageError, "not an event time: noon"),
        (
            lambda s: s.tcp(1).format("jsonl").declaration,
            DeclarationError,
            "nothing around these records says a time",
        ),
        (
            lambda s: s.dataframe("frame").format("jsonl").declaration,
            DeclarationError,
            "a DataFrame, which has no format",
        ),
        (
            lambda s: s.dataframe("frame").event_time(arrival=True).declaration,
            DeclarationError,
            "whose times are in a column",
        ),
    ],
)
def test_errors_say_what_to_write(chain, kind, message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        chain(StreamBuilder(IRI))
    assert caught.value.hint or "nothing around" in message


@pytest.mark.parametrize("name", ["doors", "", "urn:my doors", "<urn:doors>"])
def test_the_name_of_a_stream_is_an_absolute_iri(name: str) -> None:
    with pytest.raises(DeclarationError, match="must be an absolute IRI") as caught:
        StreamBuilder(name)
    assert "urn:doors" in str(caught.value.hint)


def test_a_mapping_is_read_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.ttl").write_text("@prefix rml: <http://w3id.org/rml/> . <#m> a rml:Nonsense .")
    with pytest.raises(MappingError):
        StreamBuilder(IRI).mapping(tmp_path / "m.ttl")


def test_a_stream_shows_what_was_said_so_far() -> None:
    stream = StreamBuilder(IRI).tcp(9999).format("jsonl")
    assert repr(stream) == f"<stream {IRI} source=TcpSource format='jsonl'>"
