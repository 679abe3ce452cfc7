"""Network addresses as people write them: `host:port`, and lists of them with commas between.

An address is parsed once and strictly, and the parsed form is passed on. Broker clients accept
more, for example `localhost://192.0.2.2:9092`. If two parsers read one text differently, it passes
the check of one and leads the other to another host.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import QuadweirError, UsageError

if TYPE_CHECKING:
    from quadweir.spans import Span

_LOCAL_NAMES: Final = frozenset(("localhost", "ip6-localhost"))
# The names of RFC 1123, and the underscore that container networks use.
_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\.?")
_ADDRESS: Final = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]+):([0-9]{1,5})")
_LONGEST_NAME: Final = 253
_PORTS: Final = range(1, 65_536)


@final
@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port; an IPv6 address has no brackets here.

    >>> str(Address("::1", 9092))
    '[::1]:9092'
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_addresses(
    text: str, *, error: type[QuadweirError] = UsageError, span: Span | None = None
) -> tuple[Address, ...]:
    """Read addresses with commas between.

    >>> spell(read_addresses("localhost:9092, [::1]:9093"))
    'localhost:9092,[::1]:9093'

    Args:
        text: the text to parse.
        error: the exception class for a text that is not a list of addresses.
        span: its place.
    """
    return tuple(read_address(part, error=error, span=span) for part in text.split(","))


def read_address(
    text: str, *, error: type[QuadweirError] = UsageError, span: Span | None = None
) -> Address:
    """Read one address, of a host and a port; the name of a host becomes lower case."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or int(match[2]) not in _PORTS:
        raise error(
            f"{text.strip()!r} is not an address of the form HOST:PORT",
            detail=_form(text.strip()),
            hint="Write for example localhost:9092; several have commas between.",
            span=span,
        )
    return Address(read_host(match[1], error=error, span=span), int(match[2]))


def _form(text: str) -> str | None:
    if "://" in text:
        return "It has a scheme; an address has none."
    host, _, port = text.rpartition(":")
    if host and port.isdecimal() and port.isascii() and int(port) not in _PORTS:
        return "A port is a number from 1 to 65535."
    if ":" in host:
        return "An address of IPv6 stands in brackets, as in [::1]:9092."
    return None


def read_host(
    text: str, *, error: type[QuadweirError] = UsageError, span: Span | None = None
) -> str:
    """Read the name or IP address of a host; IPv6 with or without brackets.

    >>> read_host("LOCALHOST"), read_host("[::1]")
    ('localhost', '::1')
    """
    host = text.strip().lower()
    is_bracketed = host.startswith("[") and host.endswith("]")
    if (":" in host or is_bracketed) and "%" not in host:
        try:
            return str(ipaddress.IPv6Address(host[1:-1] if is_bracketed else host))
        except ValueError:
            pass
    if len(host) <= _LONGEST_NAME and _NAME.fullmatch(host):
        return host
    raise error(
        f"{text.strip()!r} is not the name or address of a host",
        hint="Write for example localhost, 127.0.0.1 or [::1].",
        span=span,
    )


def spell(addresses: Iterable[Address]) -> str:
    """Write addresses with commas between, as Kafka's clients take them."""
    return ",".join(map(str, addresses))


def is_local(host: str) -> bool:
    """Whether a name or address means this machine.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("192.0.2.1")
    (True, True, False)
    """
    if host in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_allowed(address: Address, hosts: Iterable[str]) -> bool:
    """Whether `hosts`, each a host or `host:port`, contain this address; this machine is always
    allowed.

    >>> is_allowed(Address("192.0.2.1", 9092), ["192.0.2.1:9092"])
    True
    """
    return is_local(address.host) or any(
        one.strip().lower().strip("[]") == address.host or one.strip().lower() == str(address)
        for one in hosts
    )
