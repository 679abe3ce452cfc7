"""Who may do what: tokens and roles, and which sites and names a request may come from."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, final

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from quadweir.service.problems import ForbiddenError, NoTokenError

_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")
_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:@/\\?#,\s]+)(?::[0-9]{1,5})?")
BEARER: Final = "bearer."
"""How a token begins that a WebSocket offers as a subprotocol."""


class Role(IntEnum):
    """What a token allows; each role allows what those below it do."""

    NONE = 0
    READ = 1
    PUSH = 2
    ADMIN = 3


@final
@dataclass(frozen=True, slots=True)
class TokenQuota:
    """How much a token may ask for; None is as much as the service allows.

    Attributes:
        queries: how many queries it may have registered.
        streams: how many streams it may have declared.
        subscribers: how many subscribers it may have at once.
        bytes_per_minute: how many bytes it may push in a minute.
    """

    queries: int | None = None
    streams: int | None = None
    subscribers: int | None = None
    bytes_per_minute: int | None = None


_UNLIMITED: Final = TokenQuota()


@final
@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the name of the token, its role, and how much it may ask for."""

    name: str
    role: Role
    quota: TokenQuota = _UNLIMITED


@final
@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A token: its name, its role, the SHA-256 of its text, and how much it may ask for."""

    name: str
    role: Role
    digest: str
    quota: TokenQuota = _UNLIMITED


def digest_of_token(token: str) -> str:
    """Return what is kept of a token; tokens are random, so one round of SHA-256 is enough.

    >>> digest_of_token("secret")[:12]
    '2bb80d537b1d'
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


@final
class Access:
    """Decides who may do what.

    Args:
        tokens: the tokens; without any, everybody may do everything.
        hosts: the names by which clients reach the service, besides those of this machine.
        port: the port of the service.
    """

    def __init__(
        self, tokens: Iterable[TokenRecord] = (), hosts: Iterable[str] = (), port: int = 0
    ) -> None:
        self._tokens = tuple(tokens)
        self._names = {each.lower() for each in (*_LOCAL, *hosts)}
        self.port = port

    @property
    def needs_token(self) -> bool:
        """Whether requests need a token."""
        return bool(self._tokens)

    def known(self, connection: HTTPConnection) -> Caller | None:
        """Return who asks; None for somebody unknown."""
        if not self._tokens:
            return Caller("", Role.ADMIN)
        token = _token_of(connection)
        if token is None:
            return None
        digest = digest_of_token(token)
        found = None
        for each in self._tokens:
            # Compare all of them, so that the time it takes reveals nothing.
            if hmac.compare_digest(each.digest, digest):
                found = Caller(each.name, each.role, each.quota)
        return found

    def caller(self, connection: HTTPConnection) -> Caller:
        """Return who asks.

        Raises:
            NoTokenError: there is no token, or it is not known.
        """
        found = self.known(connection)
        if found is None:
            raise NoTokenError(
                "the request has no token that is known here",
                hint="Send the header Authorization: Bearer TOKEN.",
            )
        return found

    def check_site(self, headers: Headers) -> None:
        """Refuse requests that a page of another site makes a browser send.

        With DNS rebinding, a page reaches this machine under a name of its own, so the Host must be one
        of ours. A form or a script of another site has another Origin.

        Raises:
            ForbiddenError: it comes from elsewhere.
        """
        hosts = headers.getlist("host")
        host = hosts[0].lower() if len(hosts) == 1 else ""
        if _name_of(host) not in self._names:
            raise ForbiddenError(
                f"the service is not reached by the name {host[:100]!r}",
                hint="Let the operator allow the name with --host-name.",
            )
        origin = headers.get("origin")
        if origin is not None and origin.lower().partition("://")[2] != host:
            raise ForbiddenError(f"requests of the site {origin[:100]!r} are not answered")
        elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        # A link from elsewhere to the page is fine.
        if elsewhere and origin is None and headers.get("sec-fetch-mode") != "navigate":
            raise ForbiddenError("requests of other sites are not answered")


def _name_of(host: str) -> str | None:
    """Return a host without its port; None for what is no host.

    >>> _name_of("[::1]:7474"), _name_of("localhost:7474"), _name_of("[::1].example")
    ('[::1]', 'localhost', None)
    """
    found = _HOST.fullmatch(host)
    return found[1] if found is not None else None


def _token_of(connection: HTTPConnection) -> str | None:
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    if connection.scope["type"] == "websocket":
        for each in connection.scope.get("subprotocols", ()):
            if each.startswith(BEARER):
                return str(each.removeprefix(BEARER))
    return None
