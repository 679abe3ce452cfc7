"""What a hostile client or page tries: nothing is opened, nothing leaks, and others are served."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quadweir.service.access import Role, TokenQuota, TokenRecord, digest_of_token
from quadweir.service.settings import ServiceLimits
from quadweir.service.web import protocol
from service_client import Served, path_of, served

NAMES = {"ann": Role.ADMIN, "pat": Role.PUSH, "rea": Role.READ}
TOKENS = (
    *(TokenRecord(name, role, digest_of_token(name)) for name, role in NAMES.items()),
    TokenRecord(
        "few",
        Role.ADMIN,
        digest_of_token("few"),
        TokenQuota(queries=0, streams=1, subscribers=1, bytes_per_minute=100),
    ),
)
SMALL = ServiceLimits(body_bytes=10_000, subscribers=3)


@pytest.fixture
def open_service(tmp_path: Path) -> Iterator[Served]:
    """A service without tokens; no query runs, so it needs no Spark."""
    with served(None, tmp_path, limits=SMALL) as found:  # type: ignore[arg-type]
        yield found


@pytest.fixture
def closed_service(tmp_path: Path) -> Iterator[Served]:
    with served(None, tmp_path, tokens=TOKENS, limits=SMALL) as found:  # type: ignore[arg-type]
        yield found


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"}


READS = ["/overview", "/streams", "/queries", "/mappings", "/networks", "/deadletters", "/metrics"]
PUSHES = [("POST", path_of("urn:s"))]
CHANGES = [
    ("PUT", path_of("urn:s")),
    ("DELETE", path_of("urn:s")),
    ("PUT", "/queries/q"),
    ("PATCH", "/queries/q"),
    ("DELETE", "/queries/q"),
    ("POST", "/queries"),
    ("PUT", "/mappings/m"),
    ("DELETE", "/mappings/m"),
]


@pytest.mark.parametrize("headers", [{}, bearer("wrong"), {"authorization": "ann"}])
def test_without_a_known_token_nothing_is_answered(
    closed_service: Served, headers: dict[str, str]
) -> None:
    for path in READS:
        found = closed_service.problem("GET", path, 401, headers=headers)
        assert found["code"] == "QW-TOKEN"
    for method, path in (*PUSHES, *CHANGES):
        closed_service.problem(method, path, 401, headers=headers, content=b"x")
    assert closed_service.http.get("/healthz").status_code == 200
    assert closed_service.http.get("/session", headers=headers).json()["role"] is None


def test_a_role_allows_no_more_than_it_says(closed_service: Served) -> None:
    for path in READS:
        assert closed_service.http.get(path, headers=bearer("rea")).status_code == 200
    for name, refused in (("rea", [*PUSHES, *CHANGES]), ("pat", CHANGES)):
        for method, path in refused:
            found = closed_service.problem(method, path, 403, headers=bearer(name), content=b"x")
            assert "role" in found["message"]
    assert closed_service.http.put(path_of("urn:s"), headers=bearer("ann")).status_code == 201
    pushed = {**bearer("pat"), "content-type": "text/turtle"}
    body = b"<urn:a> <urn:b> <urn:c> ."
    assert closed_service.http.post(path_of("urn:s"), headers=pushed, content=body).is_success


def test_a_token_has_its_quotas(closed_service: Served) -> None:
    few = bearer("few")
    assert closed_service.http.put(path_of("urn:one"), headers=few).status_code == 201
    closed_service.problem("PUT", path_of("urn:two"), 429, headers=few)
    text = {"text": "SELECT ?x { STREAM <urn:one> [NOW] { ?x ?y ?z } }"}
    closed_service.problem("PUT", "/queries/q", 429, headers=few, json=text)
    pushed = {**few, "content-type": "text/turtle"}
    body = b"<urn:a> <urn:b> <urn:c> ." * 3
    assert closed_service.http.post(path_of("urn:one"), headers=pushed, content=body).is_success
    found = closed_service.http.post(path_of("urn:one"), headers=pushed, content=body)
    assert found.status_code == 429
    assert int(found.headers["retry-after"]) >= 1
    with closed_service.events("/overview/events", **few):
        closed_service.problem("GET", "/overview/events", 429, headers=few)
    closed_service.http.delete(path_of("urn:one"), headers=few)
    assert closed_service.http.put(path_of("urn:two"), headers=few).status_code == 201


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/../../service.py",
        "/assets/..%2f..%2fservice.py",
        "/%00",
        "/assets/%00.js",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/%ff",
    ],
)
def test_no_path_leads_out_of_the_page(open_service: Served, path: str) -> None:
    with socket.create_connection(("127.0.0.1", open_service.server.port)) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: raw.recv(65536), b""))
    assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400"))
    assert b"root:" not in answer


@pytest.mark.parametrize(
    "iri", ["../../x", "urn:../../../../tmp/x", "urn:x\0y", "urn:" + "x" * 5_000, "file:///etc"]
)
def test_an_iri_is_no_path(open_service: Served, tmp_path: Path, iri: str) -> None:
    before = {each.name for each in tmp_path.parent.iterdir()}
    open_service.put_stream(iri)
    assert {each.name for each in tmp_path.parent.iterdir()} == before
    for folder in (tmp_path / "push").glob("*"):
        assert len(folder.name) == 32


def test_too_large_bodies_are_refused(open_service: Served) -> None:
    open_service.put_stream("urn:s")
    headers = {"content-type": "text/turtle"}
    body = b"#" * 20_000
    open_service.problem("POST", path_of("urn:s"), 413, content=body, headers=headers)

    def parts() -> Iterator[bytes]:
        for _ in range(20):
            yield b"#" * 1_000

    found = open_service.http.post(path_of("urn:s"), content=parts(), headers=headers)
    assert found.status_code == 413


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/ld+json", b"[" * 5_000),
        ("text/turtle", b"<urn:a> <urn:b> " + b"[ <urn:p> " * 900),
        ("text/turtle", b"<urn:a> <urn:b> " + b"(" * 9_000),
        ("application/n-quads", b"\xff\xfe"),
        ("application/ld+json", b'{"@context":"http://127.0.0.1:1/context","@id":"urn:a","p":1}'),
        ("application/n-quads", b'<urn:a> <urn:b> "' + b"\\" * 9_000),
    ],
)
def test_bodies_that_should_hurt_are_errors(open_service: Served, kind: str, body: bytes) -> None:
    open_service.put_stream("urn:s")
    headers = {"content-type": kind}
    open_service.problem("POST", path_of("urn:s"), 400, content=body, headers=headers)


@pytest.mark.parametrize("body", [b"[" * 9_000, b'{"a":' * 1_800, b"\xff", b'"\\ud800"', b"1e999"])
def test_json_that_should_hurt_is_an_error(open_service: Served, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    open_service.problem("POST", "/queries", 400, content=body, headers=headers)
    open_service.problem("PUT", "/mappings/m", 400, content=body, headers=headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost.evil.example"},
        {"host": "evil.example"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    ],
)
def test_pages_of_other_sites_get_and_change_nothing(
    open_service: Served, headers: dict[str, str]
) -> None:
    for method, path in (("GET", "/overview"), ("PUT", path_of("urn:s")), ("GET", "/")):
        found = open_service.http.request(method, path, headers=headers)
        assert found.status_code == 403
        assert "access-control-allow-origin" not in found.headers
    assert open_service.http.get("/streams").json() == {"streams": []}


def test_a_page_of_another_site_may_not_ask_what_it_may(open_service: Served) -> None:
    asked = {"origin": "http://evil.example", "access-control-request-method": "PUT"}
    assert open_service.http.options("/queries/q", headers=asked).status_code == 403


@pytest.mark.parametrize(
    ("source", "form"),
    [
        ({"kind": "kafka", "servers": "10.0.0.1:9092", "topic": "t"}, "timed-lines"),
        ({"kind": "kafka", "servers": "localhost:9092", "topic": "t"}, "timed-lines"),
        ({"kind": "tcp", "host": "169.254.169.254", "port": 80}, "timed-lines"),
        ({"kind": "mqtt", "host": "broker.example", "topic": "t"}, "timed-lines"),
        ({"kind": "folder", "path": "/etc", "watch": True}, "timed-lines"),
        ({"kind": "replay", "path": "../../../../etc/passwd"}, "timed-lines"),
        ({"kind": "file", "path": "/etc/passwd"}, "timed-lines"),
    ],
)
def test_a_declaration_opens_nothing_that_the_operator_did_not_allow(
    open_service: Served, source: dict[str, Any], form: str
) -> None:
    found = open_service.http.put(path_of("urn:s"), json={"source": source, "format": form})
    assert found.status_code in (400, 403)
    assert "allow" in found.json()["hint"]
    assert open_service.http.get("/streams").json() == {"streams": []}


def test_what_is_the_operators_stays_the_operators(tmp_path: Path) -> None:
    with served(None, tmp_path, allow_hosts=("broker",)) as found:  # type: ignore[arg-type]
        kafka = {"kind": "kafka", "servers": "broker:9092", "topic": "t"}
        mqtt = {"kind": "mqtt", "host": "broker", "topic": "t"}
        for source in (
            {**kafka, "options": {"kafka.sasl.jaas.config": "com.sun..."}},
            {**mqtt, "username": "u", "password_env": "AWS_SECRET_ACCESS_KEY"},
        ):
            table = {"source": source, "format": "timed-lines"}
            found.problem("PUT", path_of("urn:s"), 403, json=table)
        letters = {"source": kafka, "format": "timed-lines", "dead_letters": "/tmp/x"}
        assert found.http.put(path_of("urn:s"), json=letters).status_code in (400, 403)
        allowed = {"source": kafka, "format": "timed-lines"}
        assert found.http.put(path_of("urn:s"), json=allowed).status_code == 201


MAPPING = """
prefixes: {{ex: "urn:ex:"}}
mappings:
  m:
    sources:
      - {{access: "{access}", type: {kind}, referenceFormulation: jsonpath, iterator: "$"}}
    s: ex:$(a)
    po: [[ex:p, $(b)]]
"""


@pytest.mark.parametrize(
    ("access", "kind"),
    [
        ("/etc/passwd", "localfile"),
        ("tcp://127.0.0.1:1", "tcp"),
        ("mqtt://10.0.0.1/t", "mqtt"),
        ("/etc", "folder"),
    ],
)
def test_a_mapping_opens_nothing(open_service: Served, access: str, kind: str) -> None:
    text = MAPPING.format(access=access, kind=kind)
    found = open_service.http.put("/mappings/m", json={"text": text, "stream": "urn:m"})
    assert found.status_code in (400, 403)
    assert open_service.http.get("/mappings").json() == {"mappings": []}


def test_a_head_that_comes_slowly_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_S", 0.2)
    with served(None, tmp_path) as found:  # type: ignore[arg-type]
        address = ("127.0.0.1", found.server.port)
        for begin in (b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", b"POST /que"):
            with socket.create_connection(address, timeout=30) as raw:
                raw.sendall(begin)
                try:
                    answer = raw.recv(100)
                except ConnectionError:
                    answer = b""
                assert answer == b""
        assert found.http.get("/healthz").text == "ok"


def test_there_are_only_so_many_subscribers(open_service: Served) -> None:
    with (
        open_service.events("/overview/events"),
        open_service.events("/overview/events"),
        open_service.events("/deadletters/events"),
    ):
        open_service.problem("GET", "/overview/events", 429)
    # Those that have gone make room.
    with open_service.events("/overview/events"):
        pass


def test_a_failure_says_nothing_about_the_inside(
    open_service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("the secret place")

    monkeypatch.setattr(open_service.service, "list_streams", fail)
    found = open_service.problem("GET", "/streams", 500)
    assert found["code"] == "QW-INTERNAL"
    assert "secret" not in str(found)


def test_responses_forbid_what_they_do_not_need(open_service: Served) -> None:
    for path in ("/", "/queries", "/nothing"):
        headers = open_service.http.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe-eval" not in headers["content-security-policy"]
