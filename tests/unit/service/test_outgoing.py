"""The service connects only to hosts that the operator named, whatever their names lead to."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from fakekafka import fake_broker
from quadweir.addresses import Address
from quadweir.errors import SourceError
from quadweir.service import outgoing
from quadweir.service.outgoing import check_allowed, check_source, is_inside, resolved
from quadweir.service.problems import ForbiddenError
from quadweir.sources.declare import KafkaSource, MqttSource, TcpSource

INSIDE = [
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "169.254.169.254", "224.0.0.1", "::1", "::",
    "fe80::1", "fe80::1%eth0", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "2002:7f00:1::",
    "64:ff9b::169.254.169.254", "::127.0.0.1", "ff02::1", "not an address",
]  # fmt: skip


def leads(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every name lead to these addresses."""

    def found(_host: str, port: int, **_options: Any) -> list[Any]:
        return [(0, 0, 0, "", (each, port)) for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_of_this_machine_and_its_link_are_known(address: str) -> None:
    assert is_inside(address)


@pytest.mark.parametrize("address", ["192.0.2.1", "10.1.2.3", "2001:db8::1", "::ffff:10.1.2.3"])
def test_other_addresses_are_elsewhere(address: str) -> None:
    assert not is_inside(address)


@pytest.mark.parametrize("address", [each for each in INSIDE if "not" not in each])
def test_a_name_may_not_lead_inside(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    leads(monkeypatch, "192.0.2.1", address)
    with pytest.raises(ForbiddenError):
        resolved(Address("hooks.example", 443))


def test_a_name_leads_where_it_led_when_it_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    leads(monkeypatch, "192.0.2.1", "192.0.2.1", "2001:db8::1")
    assert resolved(Address("hooks.example", 443)) == ["192.0.2.1", "2001:db8::1"]
    # What the operator names as an address is meant.
    assert resolved(Address("127.0.0.1", 80)) == ["127.0.0.1"]
    assert resolved(Address("localhost", 80)) == ["localhost"]


def test_a_name_that_is_not_known_is_an_error_of_ours() -> None:
    for name in ("no-such-host.invalid", "a" * 64 + ".example"):
        with pytest.raises(SourceError):
            resolved(Address(name, 80))


@pytest.mark.parametrize(
    ("host", "port", "is_good"),
    [
        ("broker", 9092, True),
        ("broker", 22, True),
        ("other", 9093, True),
        ("other", 22, False),
        ("::1", 5, True),
        ("broker.evil.example", 9092, False),
        ("localhost", 9092, False),
        ("127.0.0.1", 9092, False),
    ],
)
def test_hosts_are_allowed_by_name_or_with_their_port(host: str, port: int, is_good: bool) -> None:
    allowed = ["Broker", "other:9093", "[::1]"]
    if is_good:
        check_allowed(Address(host, port), allowed)
    else:
        with pytest.raises(ForbiddenError):
            check_allowed(Address(host, port), allowed)


@pytest.mark.parametrize(
    "source",
    [
        KafkaSource(servers="broker:9092,broker:9093", topic="t"),
        MqttSource(host="broker", topic="t"),
        TcpSource(host="broker", port=5),
    ],
)
def test_a_source_may_not_lead_inside(monkeypatch: pytest.MonkeyPatch, source: Any) -> None:
    monkeypatch.setattr(outgoing, "check_broker", lambda *_given, **_options: None)
    leads(monkeypatch, "10.0.0.1")
    check_source(source, ["broker"])
    with pytest.raises(ForbiddenError):
        check_source(source, ["other"])
    leads(monkeypatch, "::ffff:127.0.0.1")
    with pytest.raises(ForbiddenError):
        check_source(source, ["broker"])


def test_a_cluster_may_not_send_clients_elsewhere() -> None:
    pytest.importorskip("kafka", reason="the extra `kafka` is not installed")
    with (
        fake_broker(member=("broker.evil.example", 9092)) as servers,
        pytest.raises(ForbiddenError) as caught,
    ):
        check_source(KafkaSource(servers=servers, topic="t"), ["127.0.0.1"])
    assert "sends its clients" in caught.value.message
