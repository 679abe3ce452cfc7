"""Mappings: list, declare and remove them, and try them on records."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from quadweir.service.web.context import AdminCaller, Body, ReadCaller, Served, table_of

router = APIRouter(tags=["mappings"])


@router.get("/mappings")
def list_mappings(service: Served, _caller: ReadCaller) -> dict[str, Any]:
    """List the mappings."""
    return {"mappings": service.mappings.listed()}


@router.post("/mappings/preview")
async def preview(
    request: Request, service: Served, _caller: ReadCaller, body: Body
) -> dict[str, Any]:
    """Map sample records with a mapping that is not declared."""
    table = table_of(request, body)
    return await run_in_threadpool(service.mappings.preview, table)


@router.get("/mappings/{name}")
def one_mapping(service: Served, _caller: ReadCaller, name: str) -> dict[str, Any]:
    """Return a mapping with its text."""
    return service.mappings.one(name)


@router.put("/mappings/{name}")
async def put_mapping(
    request: Request, service: Served, _caller: AdminCaller, body: Body, name: str
) -> Response:
    """Declare a mapping."""
    table = table_of(request, body)

    def put() -> tuple[bool, dict[str, Any]]:
        return service.mappings.put(name, table, service.pool), service.mappings.one(name)

    is_new, found = await run_in_threadpool(put)
    return JSONResponse(found, 201 if is_new else 200, {"location": f"/mappings/{name}"})


@router.delete("/mappings/{name}", status_code=204)
def delete_mapping(service: Served, _caller: AdminCaller, name: str) -> None:
    """Remove a mapping whose streams nothing reads."""
    service.mappings.delete(name, service.pool)


@router.post("/mappings/{name}/preview")
async def preview_named(
    request: Request, service: Served, _caller: ReadCaller, body: Body, name: str
) -> dict[str, Any]:
    """Map sample records with a mapping that is declared."""
    table = table_of(request, body)
    return await run_in_threadpool(service.mappings.preview, table, name)
