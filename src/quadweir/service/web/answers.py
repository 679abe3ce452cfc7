"""The answers of a query: as events, as lines, or the last report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastapi import APIRouter, Request, Response, WebSocket
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from quadweir.errors import QuadweirError, UsageError
from quadweir.service.access import Caller
from quadweir.service.answers import START
from quadweir.service.problems import problem_of
from quadweir.service.service import LiveService
from quadweir.service.subscriptions import Event, json_text
from quadweir.service.web.context import ReadCaller, Served, access_of, counted, service_of
from quadweir.service.web.eventstream import NDJSON, SSE, EventStream, send_messages
from quadweir.service.web.openapi import named

router = APIRouter(tags=["answers"])
RESULTS: Final = "application/sparql-results+json"
_FORMS: Final = {"sse": SSE, "ndjson": NDJSON, "json": RESULTS}
_PROTOCOL: Final = "quadweir"
LISTENING: Final = {
    "parameters": [
        *named(
            "query",
            as_="`sse`, `ndjson` or `json`; default: by the header Accept.",
            from_="`start`, the id of the last known answer, or an instant.",
            follow="`false` ends with what is kept.",
        )["parameters"],
        *named("header", last_event_id="The id of the last known event.")["parameters"],
    ]
}
_REFUSED: Final = 1008


@router.get("/queries/{name}/answers", openapi_extra=LISTENING)
async def answers(request: Request, service: Served, caller: ReadCaller, name: str) -> Response:
    """Send the answers of a query as they come, or return its last report."""
    form = _form_of(request)
    if form == RESULTS:
        found = await run_in_threadpool(service.answers.report, name)
        if "triples" in found:
            text = "".join(f"{line}\n" for line in found["triples"])
            return Response(text, media_type="application/n-quads")
        return JSONResponse(found, media_type=RESULTS)
    return event_stream(request, service, caller, name)


def event_stream(request: Request, service: LiveService, caller: Caller, name: str) -> EventStream:
    """Return the answers of a query as events or lines."""
    form = _form_of(request)
    since = request.headers.get("last-event-id") or request.query_params.get("from")
    follow = request.query_params.get("follow", "true") != "false"
    if not follow and since is None:
        since = START
    return EventStream(
        counted(service, caller, lambda: service.answers.subscribe(name, since)),
        media_type=NDJSON if form == NDJSON else SSE,
        follow=follow,
    )


def _form_of(request: Request) -> str:
    named = request.query_params.get("as")
    if named is not None:
        if named not in _FORMS:
            raise UsageError(
                f"there is no form {named[:40]!r} of answers", hint="Use sse, ndjson or json."
            )
        return _FORMS[named]
    accepted = request.headers.get("accept", "")
    return next((each for each in (SSE, NDJSON) if each in accepted), RESULTS)


@router.websocket("/queries/{name}/answers")
async def answer_socket(socket: WebSocket, name: str) -> None:
    """Send the answers of a query as messages."""
    await event_socket(socket, lambda _service: name)


async def event_socket(socket: WebSocket, query: Callable[[LiveService], str]) -> None:
    """Send the answers of a query as messages, or why that cannot be.

    Args:
        socket: the socket.
        query: returns the name of the query; it may take a while.
    """
    service, access = service_of(socket), access_of(socket)
    offered = socket.scope.get("subprotocols", [])
    await socket.accept(_PROTOCOL if _PROTOCOL in offered else None)
    try:
        caller = access.caller(socket)
        name = await run_in_threadpool(query, service)
        since = socket.query_params.get("from")
        subscription = counted(service, caller, lambda: service.answers.subscribe(name, since))
    except QuadweirError as error:
        await socket.send_text(Event("", "error", json_text(problem_of(error))).message)
        await socket.close(_REFUSED, error.message[:100])
        return
    await send_messages(socket, subscription, service.settings.limits.stall_s)
