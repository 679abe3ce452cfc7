"""The answers of a query: as events, as lines, or the last report."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fastapi import APIRouter, Request, Response, WebSocket
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocketDisconnect

from quadweir.errors import QuadweirError, UsageError
from quadweir.service.access import Caller
from quadweir.service.answers import START, json_text
from quadweir.service.problems import problem_of
from quadweir.service.service import LiveService
from quadweir.service.subscriptions import EventBundle, Subscription
from quadweir.service.web.context import ReadCaller, Served, access_of, service_of
from quadweir.service.web.eventstream import BEAT_S, NDJSON, SSE, EventStream

router = APIRouter(tags=["answers"])
RESULTS: Final = "application/sparql-results+json"
_FORMS: Final = {"sse": SSE, "ndjson": NDJSON, "json": RESULTS}
_PROTOCOL: Final = "quadweir"
_BEAT: Final = '{"event":"beat","data":{}}'


@router.get("/queries/{name}/answers")
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
    subscription, first = _subscribed(service, caller, name, since)
    return EventStream(
        subscription,
        first,
        media_type=NDJSON if form == NDJSON else SSE,
        stall_s=service.settings.limits.stall_s,
        follow=follow,
    )


def _subscribed(
    service: LiveService, caller: Caller, name: str, since: str | None
) -> tuple[Subscription, EventBundle]:
    leave = service.quotas.subscribe(caller.name, caller.quota)
    try:
        subscription, first = service.answers.subscribe(name, since)
    except QuadweirError:
        leave()
        raise
    subscription.also(leave)
    return subscription, first


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
    service, access = service_of(socket), access_of(socket)
    offered = socket.scope.get("subprotocols", [])
    await socket.accept(_PROTOCOL if _PROTOCOL in offered else None)
    try:
        caller = access.caller(socket)
        since = socket.query_params.get("from")
        subscription, first = _subscribed(service, caller, name, since)
    except QuadweirError as error:
        await socket.send_text(f'{{"event":"error","data":{json_text(problem_of(error))}}}')
        await socket.close(1008, error.message[:100])
        return
    try:
        await _send(socket, subscription, first, service.settings.limits.stall_s)
        await socket.close(1001, (subscription.dropped or "no more answers")[:100])
    except (WebSocketDisconnect, RuntimeError, TimeoutError):
        return
    finally:
        subscription.close()


async def _send(
    socket: WebSocket, subscription: Subscription, first: EventBundle, stall_s: float
) -> None:
    async def tell(text: str) -> None:
        async with asyncio.timeout(stall_s):
            await socket.send_text(text)

    for event in first.events:
        await tell(event.message)
    async for bundle in subscription.bundles(BEAT_S):
        if bundle is None:
            # Also finds out whether the client has gone.
            await tell(_BEAT)
            continue
        for event in bundle.events:
            await tell(event.message)
    if subscription.dropped is not None:
        reason: dict[str, Any] = {"reason": subscription.dropped}
        await tell(f'{{"event":"dropped","data":{json_text(reason)}}}')
