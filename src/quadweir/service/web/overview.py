"""The overview: what runs, and what feeds what."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from quadweir.service.access import Caller
from quadweir.service.service import LETTERS, OVERVIEW, LiveService
from quadweir.service.web.context import ReadCaller, Served, counted
from quadweir.service.web.eventstream import EventStream

router = APIRouter(tags=["overview"])
SVG = "image/svg+xml"


@router.get("/overview")
def overview(
    service: Served, caller: ReadCaller, history: bool = True, queries: int = 200
) -> dict[str, Any]:
    """Return networks, the graph of what feeds what, and the last ten minutes."""
    most = max(0, min(queries, 5000))
    return service.document(history=history, most_queries=most, role=caller.role.name.lower())


@router.get("/overview/events")
async def overview_events(service: Served, caller: ReadCaller) -> Response:
    """Send the overview whenever it is new."""
    return _events(service, OVERVIEW, caller)


@router.get("/networks")
def networks(service: Served, _caller: ReadCaller) -> dict[str, Any]:
    """List the networks."""
    return {"networks": [each.table() for each in service.overview.samples()]}


@router.get("/networks/{name}/explain")
def explain_network(
    request: Request,
    service: Served,
    _caller: ReadCaller,
    name: str,
) -> Response:
    """Say which queries share what, as text or as a drawing."""
    network = service.pool.get(name).network
    if wants_svg(request):
        return Response(network.draw(), media_type=SVG)
    return PlainTextResponse(network.explain())


@router.get("/deadletters")
def dead_letters(
    service: Served, _caller: ReadCaller, after: int = 0, limit: int = 200
) -> dict[str, Any]:
    """List records and elements that could not be used."""
    return service.letters.letters(after=after, limit=max(1, min(limit, 1000)))


@router.get("/deadletters/events")
async def dead_letter_events(service: Served, caller: ReadCaller) -> Response:
    """Send dead letters as they come."""
    return _events(service, LETTERS, caller)


def wants_svg(request: Request) -> bool:
    """Whether a request asks for a drawing."""
    return request.query_params.get("as") == "svg" or SVG in request.headers.get("accept", "")


def _events(service: LiveService, topic: str, caller: Caller) -> EventStream:
    limits = service.settings.limits
    return EventStream(
        counted(
            service,
            caller,
            lambda: service.hub.subscribe(
                topic, most_bytes=limits.waiting_bytes, most=limits.subscribers
            ),
        )
    )
