"""What a hostile client does below HTTP: heads and bodies that do not end, frames, and no reading."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from quadweir.service.access import Role, TokenRecord, digest_of_token
from quadweir.service.service import OVERVIEW
from quadweir.service.settings import ServiceLimits
from quadweir.service.subscriptions import Event, EventBundle
from quadweir.service.web import protocol
from service_client import Served, path_of, served

HOST = b"Host: localhost\r\n"
SOON = ServiceLimits(head_s=0.5, stall_s=0.5, body_bytes=20_000, waiting_bytes=100_000)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service without queries, which needs no Spark; it waits for nobody."""
    folder = tmp_path_factory.mktemp("service")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "LINGER_S", 0.3)
        with served(None, folder, limits=SOON) as found:  # type: ignore[arg-type]
            found.service.end_overview()
            yield found


@contextmanager
def connected(running: Served) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", running.server.port), timeout=30) as raw:
        yield raw


def said(running: Served, *parts: bytes) -> bytes:
    """Send something; return all that the service says until it closes the connection."""
    with connected(running) as raw:
        found = b""
        with suppress(ConnectionError):
            for part in parts:
                raw.sendall(part)
        with suppress(ConnectionError):
            while data := raw.recv(65536):
                found += data
    return found


def eventually(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not is_so():
        if time.monotonic() > deadline:
            return False
        # Other threads go on; there is no event to wait for.
        os.sched_yield()
    return True


def streams(running: Served) -> list[str]:
    return [each["iri"] for each in running.http.get("/streams").json()["streams"]]


# --- heads and bodies ---


@pytest.mark.parametrize(
    "parts",
    [
        [b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n"],
        [b"GET / HTTP/1.1\r\n" + HOST + b"X: ", *[b"a" * 60_000] * 20, b"\r\n\r\n"],
        [b"GET / HTTP/1.1\r\n" + HOST, *[b"X-%d: y\r\n" % n for n in range(20_000)], b"\r\n"],
        [
            b"POST /check HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n",
            *[b"1;" + b"e" * 60_000 + b"\r\n{\r\n"] * 20,
        ],
        [
            b"POST /check HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n0\r\n",
            *[b"T: " + b"t" * 60_000 + b"\r\n"] * 20,
        ],
    ],
    ids=["path", "header", "headers", "extensions", "trailers"],
)
def test_what_is_not_the_body_has_a_limit(running: Served, parts: list[bytes]) -> None:
    found = said(running, *parts)
    assert b"HTTP/1.1 2" not in found
    assert len(found) < 2_000
    assert running.http.get("/healthz").text == "ok"


SMUGGLED = b"PUT /streams/urn:smuggled HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        b"Content-Length: 0\r\nContent-Length: 80\r\n",
        b"Content-Length: 80\r\nContent-Length: 0\r\n",
        b"Content-Length: +0\r\n",
        b"Content-Length: 0x10\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length : 0\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
        b"X: a\r\n Content-Length: 80\r\nContent-Length: 0\r\nContent-Length: 1\r\n",
        b"X: a\rContent-Length: 0\r\n",
        b"X: a\0b\r\n",
    ],
)
def test_a_request_with_two_ends_is_none(running: Served, head: bytes) -> None:
    body = b"0\r\n\r\n" + SMUGGLED
    found = said(running, b"POST /check HTTP/1.1\r\n" + HOST + head + b"\r\n" + body)
    assert found.count(b"HTTP/1.1 ") == 1
    assert found.startswith(b"HTTP/1.1 4")
    assert b"connection: close" in found.lower()
    assert streams(running) == []


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /streams HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"GET /streams HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /streams HTTP/1.1\r\nHost: localhost, evil.example\r\nConnection: close\r\n\r\n",
        b"GET /streams HTTP/1.1\r\nHost: localhost:80@evil.example\r\nConnection: close\r\n\r\n",
        b"GET /streams HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n",
        b"GET /streams HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET /streams HTTP/1.0\r\nConnection: close\r\n\r\n",
        b"GET http://evil.example/streams HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"GET /streams HTTP/1.1\r\nHost: [::1\r\nConnection: close\r\n\r\n",
        b"GET /streams HTTP/1.1\r\nHost: [::1].evil.example\r\nConnection: close\r\n\r\n",
    ],
)
def test_a_host_is_one_name_of_ours(running: Served, request_: bytes) -> None:
    found = said(running, request_)
    assert found.startswith((b"HTTP/1.1 403", b"HTTP/1.1 400"))
    assert b'{"streams"' not in found


@pytest.mark.parametrize(
    "noise",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"\0" * 100,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=["tls", "0.9", "nul", "http2"],
)
def test_what_is_no_http_is_refused(running: Served, noise: bytes) -> None:
    found = said(running, noise)
    assert not found or found.startswith(b"HTTP/1.1 400")


def test_whoever_goes_on_after_a_refusal_is_cut_off(running: Served) -> None:
    head = b"POST /check HTTP/1.1\r\nContent-Length: 9999999999\r\n" + HOST + b"\r\n"
    with connected(running) as raw:
        raw.sendall(head)
        assert raw.recv(65536).startswith(b"HTTP/1.1 413")
        with pytest.raises(ConnectionError):
            while True:
                raw.sendall(b"x" * 1000)


def test_an_empty_line_holds_no_connection(running: Served) -> None:
    with connected(running) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
        assert b"200" in raw.recv(65536)
        raw.sendall(b"\r\n")
        with suppress(ConnectionError):
            while raw.recv(100):
                pass


def test_a_body_that_comes_too_slowly_is_not_waited_for(
    running: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quadweir.service.web.context.BODY_S", 0.3)
    head = b"POST /check HTTP/1.1\r\nContent-Length: 100\r\n" + HOST + b"\r\n"
    found = said(running, head, b"{")
    assert found.startswith(b"HTTP/1.1 408")


# --- clients that do not read ---


def test_whoever_asks_and_does_not_read_is_cut_off(running: Served) -> None:
    connections = running.server.connections
    with connected(running) as raw:
        raw.settimeout(0.2)
        with suppress(OSError):
            while True:
                raw.sendall((b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n") * 100)
        assert eventually(lambda: connections() <= 1)
    assert running.http.get("/healthz").text == "ok"


def flood(running: Served, count: int = 400) -> None:
    events = [Event("", "noise", json.dumps("x" * 10_000))]
    for _ in range(count):
        running.service.hub.run(lambda: running.service.hub.publish(OVERVIEW, EventBundle(events)))


def test_a_subscriber_that_does_not_read_is_let_go(running: Served) -> None:
    with connected(running) as raw:
        raw.sendall(b"GET /overview/events HTTP/1.1\r\n" + HOST + b"\r\n")
        assert b"200" in raw.recv(100)
        flood(running)
        assert eventually(lambda: running.service.hub.count == 0)
        assert eventually(lambda: running.server.connections() <= 1)


# --- WebSockets ---


def upgraded(running: Served, raw: socket.socket, path: bytes = b"/queries/q/answers") -> bytes:
    raw.sendall(
        b"GET "
        + path
        + b" HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + HOST
        + b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    return raw.recv(65536)


@pytest.mark.parametrize(
    "frame",
    [
        b"\x81\x05hello",
        b"\x81\xff" + struct.pack("!Q", 2**62) + b"mask",
        b"\x83\x80mask",
        b"\x80\x80mask",
        b"\x89\xfe\x00\xffmask" + b"x" * 255,
    ],
    ids=["unmasked", "huge", "reserved", "continued", "long-ping"],
)
def test_bad_frames_end_a_socket(running: Served, frame: bytes) -> None:
    with connected(running) as raw:
        assert upgraded(running, raw).startswith(b"HTTP/1.1 101")
        with suppress(ConnectionError):
            raw.sendall(frame)
            while raw.recv(65536):
                pass
    assert eventually(lambda: running.server.connections() <= 1)


def test_a_socket_of_another_site_is_refused(running: Served) -> None:
    url = running.server.url.replace("http", "ws") + "/queries/q/answers"
    for origin in ("http://evil.example", "null", "http://localhost:1"):
        with pytest.raises(Exception, match="403"):
            connect(url, origin=origin)  # type: ignore[arg-type]


def test_a_socket_needs_a_token(tmp_path: Path) -> None:
    tokens = (TokenRecord("rea", Role.READ, digest_of_token("rea")),)
    with served(None, tmp_path, tokens=tokens) as found:  # type: ignore[arg-type]
        for path in ("/queries/q/answers", f"{path_of('urn:s')}/events"):
            url = found.server.url.replace("http", "ws") + path
            for offered in (None, ["quadweir"], ["quadweir", "bearer.wrong"]):
                with connect(url, subprotocols=offered) as raw:  # type: ignore[arg-type]
                    refusal = json.loads(raw.recv(30))
                    assert refusal["data"]["code"] == "QW-TOKEN"
                    with pytest.raises(ConnectionClosed):
                        raw.recv(30)
            good = ["quadweir", "bearer.rea"]
            with connect(url, subprotocols=good) as raw:  # type: ignore[arg-type]
                assert raw.subprotocol == "quadweir"
                assert json.loads(raw.recv(30))["data"]["code"] == "QW-NOT-FOUND"
