"""Addresses are parsed once and strictly, so that a check and a client never read them
differently."""

from pathlib import Path
from typing import Any

import pytest

from quadweir.addresses import Address, is_allowed, read_addresses, read_host, spell
from quadweir.errors import DeclarationError, MappingError, UsageError
from quadweir.kafkaclient import check_broker
from quadweir.mapping.files import Folders
from quadweir.mapping.read import parse_mapping
from quadweir.mapping.sources import Formulation, FormulationKind, KafkaStream, LogicalSource
from quadweir.runtime.mappings.streams import Streams
from quadweir.sinks.kafka import KafkaSink
from quadweir.sources.declare import loads
from quadweir.sources.kafka import read_kafka

HOSTILE = [
    "localhost:9092,localhost://192.0.2.2:9093",
    "localhost:9092,localhost:1;192.0.2.2:9093",
    "localhost:9092;192.0.2.2:9093",
    "SASL_SSL://localhost:9092",
    "localhost:9092@192.0.2.2:9093",
    "user@localhost:9092",
    "localhost:9092/192.0.2.2:9093",
    "localhost:9092?192.0.2.2:9093",
    "localhost:9092#192.0.2.2:9093",
    "localhost:9092\\192.0.2.2:9093",
    "localhost:9092 192.0.2.2:9093",
    "localhost:9092\n192.0.2.2:9093",
    "localhost\0:9092",
    "[:9092",
    "]:9092",
    "[]:9092",
    "[::1:9092",
    "[::1]192.0.2.2:9092",
    "[::1%lo]:9092",
    "::1:9092",
    "localhost:",
    "localhost",
    ":9092",
    "localhost:0",
    "localhost:65536",
    "localhost:+9092",
    "localhost:٩٠٩٢",
    "ｌocalhost:9092",
    "-localhost:9092",
    "local..host:9092",
    "localhost:9092,",
    "",
]
NET = [
    ("localhost:1,192.0.2.2:2", "192.0.2.2"),
    ("localhost.example.org:1", "localhost.example.org"),
    ("127.0.0.1.example.org:1", "127.0.0.1.example.org"),
    ("0x7f.1:1", "0x7f.1"),
    ("2130706433:1", "2130706433"),
    ("0.0.0.0:1", "0.0.0.0"),
    ("[2001:db8::1]:1", "2001:db8::1"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_not_host_and_port_is_refused_by_all_that_take_brokers(text: str):
    with pytest.raises(UsageError, match="is not"):
        read_addresses(text)
    with pytest.raises(MappingError, match="is not"):
        KafkaStream(brokers=text, topic="t")
    with pytest.raises(UsageError, match="is not"):
        check_broker(text)
    with pytest.raises(UsageError, match="is not"):
        KafkaSink(text, "t")
    with pytest.raises(UsageError, match="is not"):
        read_kafka(None, servers=text, topic="t")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", [text for text in HOSTILE if text and all(one >= " " and one != "\\" for one in text)]
)
def test_a_mapping_or_declaration_with_such_brokers_says_where_it_stands(text: str):
    with pytest.raises(MappingError, match="is not") as caught:
        parse_mapping(_mapping(f'a rmls:KafkaStream ; rmls:broker "{text}" ; rmls:topic "t"'))
    assert caught.value.span is not None
    with pytest.raises(DeclarationError, match="is not") as declared:
        loads(_declared(f'kind = "kafka", servers = "{text}", topic = "t"'), base=Path())
    assert declared.value.span is not None and declared.value.span.line == 4


@pytest.mark.parametrize("host", ["a b", "localhost;x", "localhost:1", "[::1", "[", "", "a/b"])
def test_a_host_alone_is_read_as_strictly(host: str):
    with pytest.raises(UsageError, match="not the name or address"):
        read_host(host)
    with pytest.raises(MappingError):
        parse_mapping(_mapping(f'a rmls:TCPSocketStream ; rmls:hostName "{host}" ; rmls:port 1'))
    for kind in ("tcp", "mqtt"):
        more = "port = 1" if kind == "tcp" else 'topic = "t"'
        with pytest.raises(DeclarationError):
            loads(_declared(f'kind = "{kind}", host = "{host}", {more}'), base=Path())


@pytest.mark.parametrize(
    "target", ["mqtt://[/t", "kafka://[:9092/t", "tcp://[::1:1/", "mqtt://a b/"]
)
def test_a_form_with_half_an_address_is_an_error_of_the_mapping(target: str):
    form = f'a td:Thing ; td:hasPropertyAffordance [ td:hasForm [ hctl:hasTarget "{target}" ] ]'
    with pytest.raises(MappingError) as caught:
        parse_mapping(_mapping(form))
    assert caught.value.span is not None


def test_addresses_are_handed_on_as_they_were_read():
    read = read_addresses(" LOCALHOST:09092 ,[0:0::1]:1, broker_1.example.:2")
    assert read == (
        Address("localhost", 9092),
        Address("::1", 1),
        Address("broker_1.example.", 2),
    )
    assert spell(read) == "localhost:9092,[::1]:1,broker_1.example.:2"
    assert read_addresses(spell(read)) == read
    assert KafkaStream(brokers=" LOCALHOST:09092", topic="t").brokers == "localhost:9092"
    assert KafkaSink("A:1, B:2", "t").servers == "a:1,b:2"


@pytest.mark.parametrize(("brokers", "host"), NET)
def test_every_broker_of_a_mapping_must_be_this_machine_or_allowed(brokers: str, host: str):
    with pytest.raises(MappingError, match="which is not this machine") as caught:
        _streams().open(_kafka(brokers), {})
    assert host in caught.value.message


def test_a_host_is_allowed_by_name_or_with_its_port():
    address = Address("192.0.2.1", 9092)
    assert is_allowed(address, ["192.0.2.1"])
    assert is_allowed(address, ["192.0.2.1:9092"])
    assert not is_allowed(address, ["192.0.2.1:9093", "192.0.2.10"])
    assert is_allowed(Address("2001:db8::1", 1), ["[2001:db8::1]"])
    assert is_allowed(Address("127.0.0.2", 1), [])


def _streams(*hosts: str) -> Streams:
    nothing: Any = None
    return Streams(spark=nothing, folders=Folders(mapping=Path()), hosts=hosts)


def _kafka(brokers: str) -> LogicalSource:
    return LogicalSource(
        source=KafkaStream(brokers=brokers, topic="t"),
        formulation=Formulation(kind=FormulationKind.JSONPATH),
    )


def _mapping(source: str) -> str:
    return f"""
@prefix rml: <http://w3id.org/rml/> .
@prefix rmls: <http://semweb.mmlab.be/ns/rmls#> .
@prefix td: <https://www.w3.org/2019/wot/td#> .
@prefix hctl: <https://www.w3.org/2019/wot/hypermedia#> .
<#map> rml:logicalSource [
    rml:source [ {source} ] ; rml:referenceFormulation rml:JSONPath ] ;
  rml:subject <http://example.org/s> .
"""


def _declared(source: str) -> str:
    return f"""
[streams."http://example.org/s"]
format = "jsonl"
source = {{ {source} }}
time = "arrival"
"""
