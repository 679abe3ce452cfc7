"""What a hostile client or page tries: nothing is opened, nothing leaks, and others are served."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from quadweir.service.access import Role, TokenQuota, TokenRecord, digest_of_token
from quadweir.service.answerring import AnswerRing
from quadweir.service.settings import ServedApplication, ServiceLimits
from quadweir.sources.declare import Format, KafkaSource, StreamDeclaration
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


def test_a_head_that_comes_slowly_is_not_waited_for(tmp_path: Path) -> None:
    limits = ServiceLimits(head_s=0.2)
    with served(None, tmp_path, limits=limits) as found:  # type: ignore[arg-type]
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


def test_secrets_of_the_operator_are_not_shown(tmp_path: Path) -> None:
    source = KafkaSource(
        servers="broker:9092", topic="t", options={"kafka.sasl.jaas.config": "the-password"}
    )
    iri = "urn:secured"
    declared = StreamDeclaration(iri=iri, source=source, format=Format.TIMED_LINES)
    app = ServedApplication(streams={iri: declared})
    with served(None, tmp_path, app, tokens=TOKENS) as found:  # type: ignore[arg-type]
        for path in ("/streams", path_of(iri), "/overview", "/openapi.json"):
            for name in NAMES:
                text = found.http.get(path, headers=bearer(name)).text
                assert "the-password" not in text


def test_what_is_kept_is_the_owners(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with served(None, tmp_path / "data") as found:  # type: ignore[arg-type]
            found.put_stream("urn:s")
            found.push("urn:s", "<urn:a> <urn:b> <urn:c> .")
            turtle = {"content-type": "text/turtle"}
            body = "<urn:a> <urn:b> <urn:c> ."
            assert found.http.put("/static/s", content=body, headers=turtle).is_success
            ring = AnswerRing(tmp_path / "data" / "networks" / "n1" / "answers")
            ring.close()
        kept = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
        assert len(kept) > 8
        for each in kept:
            assert each.stat().st_mode & 0o077 == 0, each
    finally:
        os.umask(before)


def test_two_requests_at_once_do_not_exceed_a_quota(closed_service: Served) -> None:
    few = bearer("few")

    def put(number: int) -> int:
        return closed_service.http.put(path_of(f"urn:{number}"), headers=few).status_code

    with ThreadPoolExecutor(8) as threads:
        found = sorted(threads.map(put, range(8)))
    assert found == [201] + [429] * 7


@pytest.mark.parametrize("count", [17, 300_000])
@pytest.mark.parametrize("kind", ["application/n-quads", "text/turtle", "text/x-timed-lines"])
def test_no_body_ends_the_service(tmp_path: Path, kind: str, count: int) -> None:
    begin = "<urn:a> <urn:b> "
    body = begin + f"<<( {begin}" * count + "<urn:c> " + ")>> " * count + "."
    with served(None, tmp_path) as found:  # type: ignore[arg-type]
        found.put_stream("urn:s")
        body = f"1 {body}" if "timed" in kind else body
        headers = {"content-type": kind}
        refused = found.http.post(path_of("urn:s"), content=body.encode(), headers=headers)
        assert refused.status_code in (400, 413)
        assert found.http.put("/static/s", content=body.encode(), headers=headers).is_error
        assert found.http.get("/healthz").text == "ok"


NESTED = "<urn:a> <urn:b> " + "<<( <urn:a> <urn:b> " * 40_000 + "1 " + ")>> " * 40_000 + "."
LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        NESTED,
        f"@prefix p: <urn:{'x' * 500_000}> .\n" + "p: p: p: .\n" * 20_000,
        LAUGHS + "mappings: *i\n",
        "mappings: &m\n  a: *m\n",
        "mappings:\n" + "".join(" " * n + "a:\n" for n in range(1, 900)),
        "[" * 500_000,
        "x" * 2_000_000,
        "mappings:\n  a: {s: 'ex:$(" + "a" * 10_000 + "(" * 10_000 + "'}\n",
    ],
    ids=["triple terms", "prefix", "laughs", "circle", "deep", "brackets", "long", "template"],
)
def test_no_mapping_ends_the_service(tmp_path: Path, text: str) -> None:
    with served(None, tmp_path) as found:  # type: ignore[arg-type]
        for path in ("/mappings/preview", "/mappings/m/preview"):
            tried = found.http.post(path, json={"text": text, "records": []})
            assert tried.is_client_error or tried.json()["problem"]["status"] < 500
        assert found.http.put("/mappings/m", json={"text": text, "stream": "urn:m"}).is_client_error
        assert found.http.get("/healthz").text == "ok"


@pytest.mark.parametrize(
    "body",
    [
        b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">'
        + b"".join(b'<!ENTITY %c "%b">' % (n, b"&%c;" % (n - 1) * 20) for n in range(98, 110))
        + b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">&m;</rdf:RDF>',
        '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE r []><r/>'.encode("utf-16"),
    ],
)
def test_entities_of_rdf_xml_are_not_unfolded(open_service: Served, body: bytes) -> None:
    headers = {"content-type": "application/rdf+xml"}
    found = open_service.problem("PUT", "/static/s", 400, content=body, headers=headers)
    assert "document type" in found["message"]


@pytest.mark.parametrize(
    ("method", "path", "table"),
    [
        ("POST", "/check", {"text": "\ud800"}),
        ("POST", "/translate", {"text": "\ud800", "to": "\udfff"}),
        ("PUT", "/queries/q", {"text": "\ud800"}),
        ("POST", "/queries", {"queries": {"\ud800": "x"}}),
        ("PUT", "/mappings/m", {"text": "\ud800", "stream": "urn:\ud800"}),
        ("POST", "/mappings/preview", {"text": "\ud800", "records": ["\ud800"]}),
        ("PUT", path_of("urn:s"), {"source": {"kind": "push"}, "description": "\ud800"}),
        ("PUT", "/queries/q/webhook", {"url": "http://\ud800/", "secret": "\ud800" * 20}),
    ],
)
def test_half_a_character_is_refused(
    open_service: Served, method: str, path: str, table: dict[str, Any]
) -> None:
    headers = {"content-type": "application/json"}
    content = json.dumps(table).encode()
    open_service.problem(method, path, 400, content=content, headers=headers)


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
def test_an_iri_with_slashes_says_how_to_write_it(open_service: Served, method: str) -> None:
    found = open_service.problem(method, "/streams/http://example.org/rooms", 400, content=b"")
    assert "http%3A%2F%2Fexample.org%2Frooms" in found["hint"]
