"""Where the service may connect to because a request says so: to hosts that the operator named.

A name that the operator allows may lead elsewhere tomorrow. So it must not lead to this machine, nor
to addresses that exist on the local link only, such as those where clouds keep secrets. Whoever wants
that names the address itself, or `localhost`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Final

from quadweir.addresses import Address, read_addresses, read_host
from quadweir.errors import EnvironmentProblem, SourceError
from quadweir.kafkaclient import ElsewhereError, check_broker
from quadweir.service.problems import ForbiddenError
from quadweir.sources.declare import KafkaSource, MqttSource, TcpSource

if TYPE_CHECKING:
    from quadweir.sources.declare import DeclaredSource

_BROKER_S: Final = 2.0


def check_allowed(address: Address, allowed: Iterable[str]) -> None:
    """Refuse a host that the operator has not named, alone or with its port.

    >>> check_allowed(Address("broker", 9092), ["broker:9092"])

    Raises:
        ForbiddenError: it is not allowed.
    """
    names = {each.strip().lower().strip("[]") for each in allowed}
    if not {address.host, str(address), f"{address.host}:{address.port}"} & names:
        raise ForbiddenError(
            f"the service may not connect to {address}",
            hint="Let the operator allow it with --allow-net.",
        )


def resolved(address: Address) -> list[str]:
    """Return the IP addresses of a host, none of which means this machine or its link.

    Raises:
        ForbiddenError: one of them does, and the host is a name.
        SourceError: the name is not known.
    """
    if address.host == "localhost" or _parsed(address.host) is not None:
        return [address.host]
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceError(f"the host {address.host} is not known: {error}") from None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    for each in addresses:
        if is_inside(each):
            raise ForbiddenError(
                f"{address.host} leads to {each}, which is this machine or its link",
                hint=f"If that is meant, let the operator allow it: --allow-net {each}.",
            )
    return addresses


def check_source(source: DeclaredSource, allowed: Sequence[str]) -> None:
    """Refuse the source of a stream that leads to a host that the operator has not named.

    Raises:
        ForbiddenError: it does, or it is a cluster that sends its clients to such a host.
    """
    addresses: Sequence[Address] = ()
    match source:
        case KafkaSource():
            addresses = read_addresses(source.servers)
        case MqttSource():
            port = source.port or (8883 if source.tls else 1883)
            addresses = [Address(read_host(source.host), port)]
        case TcpSource():
            addresses = [Address(read_host(source.host), source.port)]
        case _:
            return
    for address in addresses:
        check_allowed(address, allowed)
        # It need not be there yet; whoever answers now must be who was allowed.
        with suppress(SourceError):
            resolved(address)
    if isinstance(source, KafkaSource):
        try:
            check_broker(source.servers, timeout_s=_BROKER_S, hosts=allowed)
        except ElsewhereError as error:
            raise ForbiddenError(error.message, hint=error.hint) from None
        except (SourceError, EnvironmentProblem):
            return


def is_inside(text: str) -> bool:
    """Whether an IP address means this machine or its link, in whatever form it is written.

    >>> [is_inside(each) for each in ("::ffff:127.0.0.1", "169.254.169.254", "64:ff9b::7f00:1")]
    [True, True, True]
    >>> is_inside("192.0.2.1"), is_inside("10.0.0.1")
    (False, False)
    """
    found = _parsed(text.partition("%")[0])
    if isinstance(found, IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or _translated(found)
        found = inner or found
    return found is None or (
        found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified
    )


def _translated(address: IPv6Address) -> IPv4Address | None:
    """Return the address of IPv4 inside one of NAT64 or of the old compatible form."""
    head, tail = int(address) >> 32, int(address) & 0xFFFFFFFF
    # ::1 and :: are of IPv6.
    is_old = head == 0 and tail > 1
    return IPv4Address(tail) if is_old or head == 0x64FF9B << 64 else None


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
