"""A service for tests: it runs on the session of the tests, and a client asks it over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from pyspark.sql import SparkSession

from quadweir.service.access import Access, TokenRecord
from quadweir.service.server import ServiceServer
from quadweir.service.service import LiveService
from quadweir.service.settings import ServedApplication, ServiceSettings

TIMEOUT = httpx.Timeout(120)


@dataclass(frozen=True)
class Served:
    """A running service and a client of it."""

    service: LiveService
    server: ServiceServer
    http: httpx.Client

    def put_stream(self, iri: str, **table: Any) -> httpx.Response:
        return self.http.put(path_of(iri), json=table) if table else self.http.put(path_of(iri))

    def put_query(self, name: str, text: str) -> dict[str, Any]:
        found = self.http.put(f"/queries/{name}", json={"text": text})
        assert found.status_code in (200, 201), found.text
        answer: dict[str, Any] = found.json()
        return answer

    def push(
        self, iri: str, body: str, kind: str = "text/turtle", **headers: str
    ) -> dict[str, Any]:
        given = {"content-type": kind, **headers}
        found = self.http.post(path_of(iri), content=body.encode(), headers=given)
        assert found.status_code == 202, found.text
        answer: dict[str, Any] = found.json()
        return answer

    @contextmanager
    def events(self, path: str, **headers: str) -> Iterator[Iterator[dict[str, Any]]]:
        """Subscribe, and wait until the service has taken that."""
        given = {"accept": "text/event-stream", **headers}
        with self.http.stream("GET", path, headers=given) as response:
            assert response.status_code == 200, response.read()
            lines = response.iter_lines()
            assert next(lines) == ": Quadweir"
            events = _events(lines)
            if path.startswith(("/queries/", "/streams/")):
                assert next(events)["event"] == "begin"
            yield events

    def problem(self, method: str, path: str, status: int, **options: Any) -> dict[str, Any]:
        """Ask for something that is refused."""
        found = self.http.request(method, path, **options)
        assert found.status_code == status, found.text
        assert found.headers["content-type"] == "application/problem+json"
        answer: dict[str, Any] = found.json()
        assert answer["status"] == status
        assert answer["code"].startswith("QW-")
        assert answer["message"]
        return answer


def path_of(iri: str) -> str:
    return f"/streams/{quote(iri, safe='')}"


def _events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {}
    for line in lines:
        if not line:
            if found:
                yield found
            found = {}
        elif not line.startswith(":"):
            name, _, text = line.partition(": ")
            found[name] = json.loads(text) if name == "data" else text


@contextmanager
def served(
    spark: SparkSession,
    data: Path,
    app: ServedApplication | None = None,
    tokens: tuple[TokenRecord, ...] = (),
    **options: Any,
) -> Iterator[Served]:
    """Run a service over a folder until the block ends."""
    settings = ServiceSettings(data=data, **{"port": 0, **options})
    service = LiveService(spark, app or ServedApplication(shards=2), settings)
    try:
        with ServiceServer(service, Access(tokens)) as server:
            service.start()
            with httpx.Client(base_url=server.url, timeout=TIMEOUT) as http:
                yield Served(service, server, http)
    finally:
        service.stop()
