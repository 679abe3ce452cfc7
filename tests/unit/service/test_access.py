"""Who may do what, and where requests may come from."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from quadweir.service.access import Access, Caller, Role, TokenRecord, digest_of_token
from quadweir.service.problems import ForbiddenError, NoTokenError


def connection(
    *, kind: str = "http", protocols: tuple[str, ...] = (), **headers: str
) -> HTTPConnection:
    spelled = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    return HTTPConnection({"type": kind, "headers": spelled, "subprotocols": list(protocols)})


TOKENS = [
    TokenRecord("ann", Role.ADMIN, digest_of_token("a-token")),
    TokenRecord("bob", Role.READ, digest_of_token("b-token")),
]


def test_without_tokens_everybody_may_do_everything() -> None:
    assert Access().caller(connection()).role is Role.ADMIN


def test_a_token_says_who_asks() -> None:
    access = Access(TOKENS)
    assert access.caller(connection(authorization="Bearer a-token")) == Caller("ann", Role.ADMIN)
    assert access.caller(connection(authorization="bearer b-token")).role is Role.READ
    socket = connection(kind="websocket", protocols=("quadweir", "bearer.b-token"))
    assert access.caller(socket).name == "bob"


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", "Bearer x", "Basic a-token", "a-token"])
def test_an_unknown_token_is_refused(given: str) -> None:
    with pytest.raises(NoTokenError):
        Access(TOKENS).caller(connection(authorization=given))


def test_a_subprotocol_is_no_token_of_a_plain_request() -> None:
    with pytest.raises(NoTokenError):
        Access(TOKENS).caller(connection(protocols=("bearer.a-token",)))


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost:7474"},
        {"host": "127.0.0.1:7474", "origin": "http://127.0.0.1:7474"},
        {"host": "[::1]:7474"},
        {"host": "LOCALHOST:7474", "origin": "http://localhost:7474"},
        {"host": "rooms.example:443", "origin": "https://rooms.example:443"},
        {"host": "localhost:7474", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
        {"host": "localhost:7474", "sec-fetch-site": "same-origin"},
    ],
)
def test_requests_of_our_own_pages_may_come(headers: dict[str, str]) -> None:
    Access(hosts=["rooms.example"]).check_site(Headers(headers))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "evil.example:7474"},
        {"host": "localhost.evil.example"},
        {"host": "localhost:7474", "origin": "http://evil.example"},
        {"host": "localhost:7474", "origin": "null"},
        {"host": "localhost:7474", "origin": "http://localhost:8080"},
        {"host": "localhost:7474", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    ],
)
def test_requests_from_elsewhere_may_not(headers: dict[str, str]) -> None:
    with pytest.raises(ForbiddenError):
        Access(hosts=["rooms.example"]).check_site(Headers(headers))
