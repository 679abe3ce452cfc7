"""A client of `quadweir serve`, which needs nothing but Python."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Final, Self, cast, final
from urllib.parse import quote, urlencode, urlsplit

from quadweir import errors
from quadweir.errors import QuadweirError, SourceError, UsageError
from quadweir.spans import Span

_JSON: Final = "application/json"


class RefusedError(QuadweirError):
    """The service refused a request.

    Attributes:
        status: the status of HTTP.
        code: the code of the error, as the service gave it.
    """

    status: int = 0


@final
@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """An answer of a query of a service.

    Attributes:
        id: its place among the answers of the query; `Client.answers` resumes from there.
        t: the report instant, in milliseconds.
        sign: + or -.
        bindings: the terms of variables, as in SPARQL's JSON results.
        graph: the statements of a CONSTRUCT, one N-Quads line each.
    """

    id: str
    t: int
    sign: str
    bindings: Mapping[str, Mapping[str, str]]
    graph: tuple[str, ...] = ()


@final
class Client:
    """Asks a service over HTTP.

    Args:
        url: where the service is.
        token: the token, if the service needs one.
        timeout: how many seconds to wait for the service.

    Raises:
        UsageError: the URL does not begin with http:// or https://.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:7474", *, token: str | None = None, timeout: float = 60.0
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url!r} is not the address of a service")
        self._host, self._port = parts.hostname, parts.port
        self._is_safe = parts.scheme == "https"
        self._token = token
        self._timeout = timeout
        self._kept: http.client.HTTPConnection | None = None

    # --- streams ---

    def declare(self, iri: str, table: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Declare a stream; without a table, RDF can be pushed into it."""
        return self._json("PUT", _stream(iri), table)

    def streams(self) -> list[dict[str, Any]]:
        """List the streams."""
        found: list[dict[str, Any]] = self._json("GET", "/streams")["streams"]
        return found

    def remove_stream(self, iri: str) -> None:
        """Remove a stream that nothing reads."""
        self._json("DELETE", _stream(iri))

    def push(
        self,
        iri: str,
        body: str | bytes | Iterable[Mapping[str, Any]],
        *,
        content_type: str | None = None,
        time: int | str | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Push elements or records; they are on the service's disk when this returns.

        Args:
            iri: the stream.
            body: RDF as text, by default N-Quads, or records as tables.
            content_type: how the body is written.
            time: the event time, in milliseconds or ISO 8601; default: as in the body, or now.
            key: a push that is repeated with the same key counts once.
        """
        if isinstance(body, str | bytes):
            data = body.encode() if isinstance(body, str) else body
            kind = content_type or "application/n-quads"
        else:
            data = json.dumps(list(body)).encode()
            kind = content_type or _JSON
        headers = {"content-type": kind}
        if time is not None:
            headers["quadweir-time"] = str(time)
        if key is not None:
            headers["idempotency-key"] = key
        return self._asked("POST", _stream(iri), data, headers)

    # --- queries ---

    def register(self, name: str, text: str, **options: Any) -> dict[str, Any]:
        """Register a query, or replace the one of this name.

        Args:
            name: its name.
            text: the query, in any dialect.
            options: `dialect`, `content`, `base` and `allow_unbounded`.
        """
        return self._json("PUT", _query(name), {"text": text, **options})

    def register_all(
        self, queries: Mapping[str, str | Mapping[str, Any]], *, replacing: bool = False
    ) -> dict[str, Any]:
        """Register many queries at once; return which are new, and why others were refused."""
        return self._json("POST", "/queries", {"queries": dict(queries), "replace": replacing})

    def check(self, text: str, **options: Any) -> dict[str, Any]:
        """Say everything about a query without registering it."""
        return self._json("POST", "/check", {"text": text, **options})

    def queries(self) -> list[dict[str, Any]]:
        """List the queries."""
        found: list[dict[str, Any]] = []
        while True:
            after = {"after": found[-1]["name"]} if found else {}
            page = self._json("GET", f"/queries?{urlencode(after)}")["queries"]
            if not page:
                return found
            found += page

    def query(self, name: str) -> dict[str, Any]:
        """Return a query: its text, and how it is."""
        return self._json("GET", _query(name))

    def pause(self, name: str) -> None:
        """Let a query give no answers for now."""
        self._json("PATCH", _query(name), {"state": "paused"})

    def resume(self, name: str) -> None:
        """Let a paused query give answers again."""
        self._json("PATCH", _query(name), {"state": "running"})

    def explain(self, name: str) -> str:
        """Return how a query runs, and with which others it shares what."""
        found: str = self._json("GET", f"{_query(name)}/explain")["text"]
        return found

    def why(self, name: str, answer: ServedAnswer) -> dict[str, Any]:
        """Return what an answer of a SELECT or ASK rests on, as far as the service knows it."""
        table = {"t": answer.t, "sign": answer.sign, "bindings": dict(answer.bindings)}
        return self._json("POST", f"{_query(name)}/why", table)

    def verify(self, name: str) -> dict[str, Any]:
        """Compare some reports of the last minutes with an evaluation from scratch."""
        return self._json("POST", f"{_query(name)}/verify")

    def unregister(self, name: str) -> None:
        """Remove a query."""
        self._json("DELETE", _query(name))

    def report(self, name: str) -> dict[str, Any]:
        """Return the last report of a query, as SPARQL's JSON results."""
        return self._json("GET", f"{_query(name)}/answers?as=json")

    def answers(self, name: str, *, since: str | None = None) -> Iterator[ServedAnswer]:
        """Yield the answers of a query as they come, until it is removed.

        If the connection breaks, it is made again, and no answer that the service still keeps is
        missed or repeated.

        Args:
            name: the query.
            since: the id of the last answer that is known, `start` for all that are kept, or an
                instant; default: what is new.

        Raises:
            SourceError: the service stopped the query or dropped this subscriber.
        """
        at = since
        while True:
            for event in self._events(f"{_query(name)}/answers", at):
                table = json.loads(event["data"])
                match event["event"]:
                    case "begin":
                        at = at or event["id"]
                    case "answer":
                        at = event["id"]
                        yield ServedAnswer(
                            at,
                            table["t"],
                            table["sign"],
                            table.get("bindings", {}),
                            tuple(table.get("graph", ())),
                        )
                    case "end" if "removed" in table["reason"]:
                        return
                    case "end":
                        raise SourceError(f"the query {name} ended: {table['reason']}")
                    case "dropped":
                        raise SourceError(f"the service let this subscriber go: {table['reason']}")

    # --- mappings and the rest ---

    def put_mapping(self, name: str, text: str, **options: Any) -> dict[str, Any]:
        """Declare a mapping, in RML or YARRRML; `options` are `stream`, `time` and `base`."""
        return self._json("PUT", f"/mappings/{quote(name, safe='')}", {"text": text, **options})

    def preview(self, text: str, records: Iterable[str]) -> dict[str, Any]:
        """Map sample records, each a text, with a mapping that is not declared."""
        return self._json("POST", "/mappings/preview", {"text": text, "records": list(records)})

    def put_static(
        self, name: str, body: str | bytes, *, content_type: str = "text/turtle"
    ) -> dict[str, Any]:
        """Put a file of static data; the networks start again with it."""
        data = body.encode() if isinstance(body, str) else body
        path = f"/static/{quote(name, safe='')}"
        return self._asked("PUT", path, data, {"content-type": content_type})

    def overview(self) -> dict[str, Any]:
        """Return what runs, and what feeds what."""
        return self._json("GET", "/overview")

    def close(self) -> None:
        """Close the connection."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- HTTP ---

    def _json(
        self, method: str, path: str, table: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        if table is None:
            return self._asked(method, path, None, {})
        return self._asked(method, path, json.dumps(table).encode(), {"content-type": _JSON})

    def _asked(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        is_again = self._kept is not None
        connection = self._kept = self._kept or self._connection()
        try:
            connection.request(method, path, body, {**self._headers(), **headers})
            answer = connection.getresponse()
            data = answer.read()
        except (http.client.HTTPException, OSError) as error:
            self.close()
            # A kept connection may have ended meanwhile; the request itself may be fine.
            if is_again and isinstance(error, http.client.RemoteDisconnected):
                return self._asked(method, path, body, headers)
            raise self._lost(error) from error
        if answer.status >= http.client.BAD_REQUEST:
            raise _refused(answer.status, data)
        if not data:
            return {}
        return cast("dict[str, Any]", json.loads(data))

    def _events(self, path: str, since: str | None) -> Iterator[dict[str, str]]:
        """Yield the events of one connection."""
        # It has no end, and sends a sign of life every 15 seconds.
        connection = self._connection()
        begin = f"?{urlencode({'from': since})}" if since is not None else ""
        try:
            headers = {**self._headers(), "accept": "text/event-stream"}
            connection.request("GET", path + begin, headers=headers)
            answer = connection.getresponse()
            if answer.status >= http.client.BAD_REQUEST:
                raise _refused(answer.status, answer.read())
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            raise self._lost(error) from error
        # From here on, a broken connection is opened again.
        with closing(connection), suppress(http.client.HTTPException, OSError):
            yield from _parsed(cast("IO[bytes]", answer))

    def _connection(self) -> http.client.HTTPConnection:
        if self._is_safe:
            return http.client.HTTPSConnection(
                self._host,
                self._port,
                timeout=self._timeout,
                context=ssl.create_default_context(),
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._token}"} if self._token is not None else {}

    def _lost(self, error: Exception) -> SourceError:
        place = f"{self._host}:{self._port}" if self._port else self._host
        return SourceError(
            f"the service at {place} does not answer: {error}",
            hint="Start it with `quadweir serve`, or check the address.",
        )


def _stream(iri: str) -> str:
    return f"/streams/{quote(iri, safe='')}"


def _query(name: str) -> str:
    return f"/queries/{quote(name, safe='')}"


def _parsed(lines: Iterable[bytes]) -> Iterator[dict[str, str]]:
    r"""Yield server-sent events.

    >>> list(_parsed([b"id: 1\n", b"event: answer\n", b"data: {}\n", b"\n", b": beat\n", b"\n"]))
    [{'id': '1', 'event': 'answer', 'data': '{}'}]
    """
    found: dict[str, str] = {}
    for raw in lines:
        line = raw.decode().rstrip("\r\n")
        if line:
            name, colon, text = line.partition(": ")
            if colon and name:
                found[name] = text
        elif "data" in found:
            yield found
            found = {}


def _refused(status: int, data: bytes) -> QuadweirError:
    """Return the error that a problem document describes."""
    try:
        table = json.loads(data)
    except ValueError:
        table = {}
    message = str(table.get("message") or f"the service answered {status}")
    place = next(iter(table.get("places") or ()), None)
    known: dict[str, type[QuadweirError]] = {
        each.code: each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, QuadweirError)
    }
    kind = known.get(table.get("code", ""), RefusedError)
    error = kind(
        message,
        detail=table.get("detail"),
        hint=table.get("hint"),
        span=Span(**place) if place else None,
    )
    if isinstance(error, RefusedError):
        error.status = status
        error.code = table.get("code", RefusedError.code)  # type: ignore[misc]
    return error
