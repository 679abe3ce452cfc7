"""Static data and the schema: list, put and remove files."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from quadweir.service.service import LiveService
from quadweir.service.shareddata import FORMATS, SharedFiles
from quadweir.service.web.context import AdminCaller, Body, ReadCaller, Served, media_type
from quadweir.service.web.openapi import named, takes


def routes_of(kind: str) -> APIRouter:
    """Return the routes of one kind of files: `static` or `schema`."""
    router = APIRouter(prefix=f"/{kind}", tags=[kind])

    def files_of(service: LiveService) -> SharedFiles:
        return service.static if kind == "static" else service.schema

    @router.get("")
    def listed(service: Served, _caller: ReadCaller) -> dict[str, Any]:
        """List the files, and say which version they are."""
        return files_of(service).listed()

    @router.get("/{name}")
    def one(service: Served, _caller: ReadCaller, name: str) -> Response:
        """Return a file."""
        body, found = files_of(service).one(name)
        return Response(body, media_type=found)

    @router.put(
        "/{name}",
        openapi_extra={**takes(*FORMATS), **named("query", graph="The graph of its statements.")},
    )
    async def put(
        request: Request, service: Served, _caller: AdminCaller, body: Body, name: str
    ) -> dict[str, Any]:
        """Put a file; all networks start again with it."""
        graph = request.query_params.get("graph")
        kind_of_body = media_type(request)
        return await run_in_threadpool(files_of(service).put, name, body, kind_of_body, graph)

    @router.delete("/{name}")
    def delete(service: Served, _caller: AdminCaller, name: str) -> dict[str, Any]:
        """Remove a file; all networks start again without it."""
        return files_of(service).delete(name)

    return router
