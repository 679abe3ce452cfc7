"""Mappings: list, declare and remove them, and try them on records."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from quadweir.service.web.context import (
    AdminCaller,
    Body,
    ReadCaller,
    Served,
    media_type,
    table_of,
    text_of,
)
from quadweir.service.web.openapi import named, takes

router = APIRouter(tags=["mappings"])
_OPTIONS: Final = ("stream", "time", "base")
_LANGUAGES: Final = {
    "text/turtle": "rml",
    "application/yaml": "yarrrml",
    "text/yaml": "yarrrml",
    "text/plain": None,
}
_PUT: Final = {
    **takes(*_LANGUAGES),
    **named("query", stream="The stream that it makes.", time="The member that has the time."),
}
_PUT["requestBody"]["content"] |= takes(
    "application/json", example={"text": "...", "stream": "urn:made", "time": "at"}
)["requestBody"]["content"]


@router.get("/mappings")
def list_mappings(service: Served, _caller: ReadCaller) -> dict[str, Any]:
    """List the mappings."""
    return {"mappings": service.mappings.listed()}


@router.post(
    "/mappings/preview",
    openapi_extra=takes("application/json", example={"text": "...", "records": ["{}"]}),
)
async def preview(
    request: Request, service: Served, _caller: ReadCaller, body: Body
) -> dict[str, Any]:
    """Map sample records with a mapping that is not declared."""
    table = table_of(request, body)
    return await service.slow.run(lambda: service.mappings.preview(table))


@router.get("/mappings/{name}")
def one_mapping(service: Served, _caller: ReadCaller, name: str) -> dict[str, Any]:
    """Return a mapping with its text."""
    return service.mappings.one(name)


@router.put("/mappings/{name}", openapi_extra=_PUT)
async def put_mapping(
    request: Request, service: Served, _caller: AdminCaller, body: Body, name: str
) -> Response:
    """Declare a mapping: as text with `stream`, `time` and `base` in the query, or as JSON."""
    table = _table_of(request, body)

    def put() -> tuple[bool, dict[str, Any]]:
        return service.mappings.put(name, table, service.pool), service.mappings.one(name)

    is_new, found = await run_in_threadpool(put)
    return JSONResponse(found, 201 if is_new else 200, {"location": f"/mappings/{name}"})


@router.delete("/mappings/{name}", status_code=204)
def delete_mapping(service: Served, _caller: AdminCaller, name: str) -> None:
    """Remove a mapping whose streams nothing reads."""
    service.mappings.delete(name, service.pool)


@router.post(
    "/mappings/{name}/preview",
    openapi_extra=takes("application/json", example={"records": ["{}"]}),
)
async def preview_named(
    request: Request, service: Served, _caller: ReadCaller, body: Body, name: str
) -> dict[str, Any]:
    """Map sample records with a mapping that is declared."""
    table = table_of(request, body)
    return await service.slow.run(lambda: service.mappings.preview(table, name))


def _table_of(request: Request, body: bytes) -> dict[str, Any]:
    """Read the mapping of a request: text, or JSON."""
    kind = media_type(request)
    if kind not in _LANGUAGES:
        return table_of(request, body)
    options = {name: request.query_params.get(name) for name in _OPTIONS}
    return {"text": text_of(body, "mapping"), "language": _LANGUAGES[kind], **options}
