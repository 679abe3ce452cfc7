"""Whether the service is well, who asks, and metrics for Prometheus."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.requests import Request

from quadweir._version import __version__
from quadweir.runtime.prometheus import NetworkCollector
from quadweir.service.problems import UnavailableError
from quadweir.service.web.context import ReadCaller, Served, access_of

router = APIRouter(tags=["service"])


@router.get("/healthz", response_class=PlainTextResponse)
async def health() -> str:
    """Say that the service answers."""
    return "ok"


@router.get("/readyz", response_class=PlainTextResponse)
async def ready(service: Served) -> str:
    """Say whether queries run."""
    if not service.is_ready:
        raise UnavailableError("the service is starting")
    down = [each.name for each in service.pool.networks() if each.state != "running"]
    if down:
        raise UnavailableError(f"networks that do not run: {', '.join(down)}")
    return "ok"


@router.get("/session")
async def session(request: Request) -> dict[str, Any]:
    """Say who asks."""
    access = access_of(request)
    caller = access.known(request)
    return {
        "role": caller.role.name.lower() if caller is not None else None,
        "needs_token": access.needs_token,
        "version": __version__,
    }


@router.get("/metrics")
def metrics(service: Served, _caller: ReadCaller) -> Response:
    """Return the metrics of all networks for Prometheus."""
    registry = CollectorRegistry()
    for each in service.pool.networks():
        registry.register(NetworkCollector(each.name, each.network))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
