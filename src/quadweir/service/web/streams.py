"""Streams: list, declare and remove them, and push into them."""

from __future__ import annotations

import hashlib
from typing import Any

from fastapi import APIRouter, Request, Response, WebSocket
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from quadweir.errors import DataError, UsageError
from quadweir.service.describing import MEDIA_TYPE as JSON_LD
from quadweir.service.describing import catalogue, stream_description
from quadweir.service.ldes import MEDIA_TYPE as LDES
from quadweir.service.ldes import EventPage
from quadweir.service.pushing import RDF_TYPES, RECORD_TYPES
from quadweir.service.web.answers import LISTENING, event_socket, event_stream
from quadweir.service.web.context import (
    AdminCaller,
    Body,
    PushCaller,
    ReadCaller,
    Served,
    access_of,
    decoded,
    media_type,
    table_of,
    version_of,
)
from quadweir.service.web.openapi import named, takes
from quadweir.times import parse_time

router = APIRouter(tags=["streams"])
_PUSH = {
    **takes(*RDF_TYPES, *RECORD_TYPES),
    **named(
        "header",
        quadweir_time="The event time of what has none of its own.",
        idempotency_key="A body that is pushed again with the same key counts once.",
    ),
}


@router.get("/streams")
def list_streams(request: Request, service: Served, _caller: ReadCaller) -> Response:
    """List the streams, with their rates and lags, or as a catalogue in JSON-LD."""
    found = service.list_streams()
    if _wants_description(request):
        described = catalogue(found, str(request.base_url).rstrip("/"))
        return JSONResponse(described, media_type=JSON_LD)
    return JSONResponse({"streams": found})


@router.get("/streams/{iri}")
def one_stream(request: Request, service: Served, _caller: ReadCaller, iri: str) -> Response:
    """Return a stream: its declaration, and how it is; or its description in JSON-LD."""
    found = service.stream(decoded(iri))
    if _wants_description(request):
        described = stream_description(found, str(request.base_url).rstrip("/"))
        return JSONResponse(described, media_type=JSON_LD)
    return JSONResponse(found)


def _wants_description(request: Request) -> bool:
    return JSON_LD in request.headers.get("accept", "")


@router.put(
    "/streams/{iri}",
    openapi_extra=takes(
        "application/json",
        example={"source": {"kind": "push"}, "format": "jsonl"},
        is_required=False,
    ),
)
async def declare_stream(
    request: Request, service: Served, caller: AdminCaller, body: Body, iri: str
) -> Response:
    """Declare a stream; without a body, RDF can be pushed into it."""
    name = decoded(iri)
    table = table_of(request, body) if body else None

    def declare() -> tuple[bool, dict[str, Any]]:
        with service.owned_streams.changing:
            service.owned_streams.check(caller, [name])
            is_new = service.streams.declare(name, table)
            if is_new:
                service.owned_streams.note(caller, [name])
        return is_new, service.stream(name)

    is_new, found = await run_in_threadpool(declare)
    return JSONResponse(found, 201 if is_new else 200, {"location": f"/streams/{iri}"})


@router.delete("/streams/{iri}", status_code=204)
def delete_stream(service: Served, _caller: AdminCaller, iri: str) -> None:
    """Remove a stream that nothing reads."""
    name = decoded(iri)
    service.streams.delete(name, service.pool, service.mappings.readers_of(name))
    service.owned_streams.forget(name)


@router.post("/streams/{iri}", status_code=202, openapi_extra=_PUSH)
async def push(
    request: Request, service: Served, caller: PushCaller, body: Body, iri: str
) -> dict[str, Any]:
    """Push elements or records; they are on disk when the answer comes."""
    service.quotas.push(caller.name, caller.quota, len(body))
    given = request.headers.get("quadweir-time")
    time_ms = None
    if given is not None:
        try:
            time_ms = parse_time(given)
        except DataError:
            raise UsageError(
                f"the header Quadweir-Time is no time: {given[:60]!r}",
                hint="Write 2026-03-03T07:58:00Z, or milliseconds since 1970.",
            ) from None
    key = request.headers.get("idempotency-key", "")
    kind = media_type(request)
    name = decoded(iri)
    return await run_in_threadpool(
        lambda: service.streams.push(
            name, body, kind, time_ms=time_ms, key=key, version=version_of(request)
        )
    )


@router.get("/streams/{iri}/events", openapi_extra=LISTENING)
async def stream_events(
    request: Request, service: Served, caller: ReadCaller, iri: str
) -> Response:
    """Send the statements of a stream as they come."""
    name = await run_in_threadpool(service.taps.open, decoded(iri))
    return event_stream(request, service, caller, name)


@router.websocket("/streams/{iri}/events")
async def stream_socket(socket: WebSocket, iri: str) -> None:
    """Send the statements of a stream as messages."""
    await event_socket(socket, lambda service: service.taps.open(decoded(iri)))


@router.get("/streams/{iri}/records")
def sample_records(service: Served, _caller: ReadCaller, iri: str) -> dict[str, Any]:
    """Return some records of a stream, as samples for a mapping."""
    return {"records": service.streams.records(decoded(iri))}


@router.get("/streams/{iri}/ldes")
def event_stream_view(request: Request, service: Served, _caller: ReadCaller, iri: str) -> Response:
    """Return a pushed stream as a Linked Data Event Stream: its pages."""
    return _tagged(request, service.streams.pages(decoded(iri)).view(_ldes_place(request, iri)))


@router.get("/streams/{iri}/ldes/{page}")
def event_page(
    request: Request, service: Served, _caller: ReadCaller, iri: str, page: int
) -> Response:
    """Return a page of a Linked Data Event Stream; a whole page never changes."""
    pages = service.streams.pages(decoded(iri))
    return _tagged(request, pages.page(_ldes_place(request, iri), page))


def _tagged(request: Request, found: EventPage) -> Response:
    """Return a page with an ETag, or that the client has it already."""
    tag = f'"{hashlib.sha256(found.text.encode()).hexdigest()[:32]}"'
    # A cache that others share must not answer those who have no token.
    whose = "private" if access_of(request).needs_token else "public"
    age = f"{whose}, max-age=31536000, immutable" if found.is_whole else "no-cache"
    headers = {"etag": tag, "cache-control": age}
    known = request.headers.get("if-none-match", "")
    if known == "*" or tag in (each.strip().removeprefix("W/") for each in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(found.text, media_type=LDES, headers=headers)


def _ldes_place(request: Request, iri: str) -> str:
    return f"{str(request.base_url).rstrip('/')}/streams/{iri}/ldes"
