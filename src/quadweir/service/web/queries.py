"""Queries: check, register, list, pause and remove them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.concurrency import run_in_threadpool

from quadweir.algebra.warn import warnings_of
from quadweir.errors import QuadweirError, UsageError
from quadweir.runtime.network.querytext import QueryText
from quadweir.service.access import Caller
from quadweir.service.problems import MediaTypeError, problem_of, warning_of
from quadweir.service.queries import check_name, query_text
from quadweir.service.service import LiveService
from quadweir.service.web.context import (
    AdminCaller,
    Body,
    ReadCaller,
    Served,
    json_of,
    media_type,
    table_of,
    text_of,
)
from quadweir.service.web.openapi import named, takes
from quadweir.service.web.overview import SVG, wants_svg

router = APIRouter(tags=["queries"])
DryRun = Annotated[bool, Query(alias="dryRun")]
_TEXTS = ("text/plain", "application/sparql-query")
_STATES = ("running", "paused")
_EXAMPLE = "SELECT ?who { STREAM <urn:doors> [RANGE 1m] { ?who <urn:enters> ?room } }"
_QUERY = takes(*_TEXTS, example=_EXAMPLE)
_QUERY["requestBody"]["content"] |= takes("application/json", example={"text": _EXAMPLE})[
    "requestBody"
]["content"]
_QUERY |= named("query", dialect="The dialect, if the body is text.", content="`bag` or `graph`.")


@router.get("/queries")
def list_queries(
    service: Served,
    _caller: ReadCaller,
    state: str | None = None,
    after: str | None = None,
    limit: int = 1000,
) -> dict[str, Any]:
    """List the queries by name."""
    return service.queries.listed(state=state, after=after, limit=max(1, min(limit, 10_000)))


@router.post(
    "/queries",
    openapi_extra=takes(
        "application/json", example={"queries": {"NAME": {"text": "SELECT ..."}}, "replace": False}
    ),
)
async def register_queries(
    request: Request, service: Served, caller: AdminCaller, body: Body, dry_run: DryRun = False
) -> Any:
    """Register many queries at once; bad ones are refused one by one."""
    table = table_of(request, body)
    given = table.get("queries")
    if not isinstance(given, dict):
        raise UsageError('the member "queries" must be an object of queries by name')
    texts = {name: query_text(each) for name, each in given.items()}
    if dry_run:
        checked = await service.slow.run(
            lambda: {name: service.queries.check(text) for name, text in texts.items()}
        )
        return {"checked": checked}
    replacing = bool(table.get("replace", False))
    made, refused = await run_in_threadpool(
        lambda: _registered(service, caller, texts, replacing=replacing)
    )
    return {
        "registered": made,
        "refused": {name: problem_of(error) for name, error in refused.items()},
    }


def _registered(
    service: LiveService, caller: Caller, texts: Mapping[str, QueryText], *, replacing: bool
) -> tuple[list[str], dict[str, QuadweirError]]:
    with service.owned_queries.changing:
        service.owned_queries.check(caller, texts)
        made, refused = service.queries.register(texts, replacing=replacing)
        service.owned_queries.note(caller, made)
    return made, refused


@router.post("/check", openapi_extra=_QUERY)
async def check(
    request: Request, service: Served, _caller: ReadCaller, body: Body
) -> dict[str, Any]:
    """Say everything about a query without registering it."""
    text = _text_of(request, body)
    return await service.slow.run(lambda: service.queries.check(text))


@router.post("/try", openapi_extra=_QUERY)
async def try_query(
    request: Request, service: Served, _caller: AdminCaller, body: Body
) -> dict[str, Any]:
    """Answer a query over what its streams brought lately, without registering it."""
    text = _text_of(request, body)
    return await service.slow.run(lambda: service.trials.run(text))


@router.post(
    "/translate",
    openapi_extra=takes("application/json", example={"text": "SELECT ...", "to": "rspql"}),
)
async def translate(
    request: Request, service: Served, _caller: ReadCaller, body: Body
) -> dict[str, Any]:
    """Write a query in another dialect."""
    table = table_of(request, body)
    to = table.pop("to", None)
    if not isinstance(to, str):
        raise UsageError('the member "to" must name a dialect')
    text = query_text(table)
    return await service.slow.run(lambda: service.queries.translate(text, to))


@router.get("/queries/{name}")
def one_query(service: Served, _caller: ReadCaller, name: str) -> dict[str, Any]:
    """Return a query: its text, and how it is."""
    return service.queries.one(name, whole=True)


@router.put("/queries/{name}", openapi_extra=_QUERY)
async def put_query(
    request: Request,
    service: Served,
    caller: AdminCaller,
    body: Body,
    name: str,
    dry_run: DryRun = False,
) -> Response:
    """Register a query, or replace the one of this name."""
    check_name(name)
    text = _text_of(request, body)
    if dry_run:
        return JSONResponse(await service.slow.run(lambda: service.queries.check(text)))
    found, status = await run_in_threadpool(_put, service, caller, name, text)
    return JSONResponse(found, status, {"location": f"/queries/{name}"})


def _put(
    service: LiveService, caller: Caller, name: str, text: QueryText
) -> tuple[dict[str, Any], int]:
    status = 200 if service.pool.has(name) else 201
    _, refused = _registered(service, caller, {name: text}, replacing=True)
    for error in refused.values():
        raise error
    warnings = [warning_of(each) for each in warnings_of(text.parsed())]
    return {**service.queries.one(name), "warnings": warnings}, status


@router.patch(
    "/queries/{name}", openapi_extra=takes("application/json", example={"state": "paused"})
)
async def patch_query(
    request: Request, service: Served, _caller: AdminCaller, body: Body, name: str
) -> dict[str, Any]:
    """Pause a query, or let it go on."""
    state = table_of(request, body).get("state")
    if state not in _STATES:
        raise UsageError('the member "state" must be "running" or "paused"')

    def change() -> dict[str, Any]:
        service.pool.pause(name, is_paused=state == "paused")
        return service.queries.one(name)

    return await run_in_threadpool(change)


@router.delete("/queries/{name}", status_code=204)
def delete_query(service: Served, _caller: AdminCaller, name: str) -> None:
    """Remove a query."""
    service.pool.unregister([name])
    service.owned_queries.forget(name)
    service.webhooks.forget(name)
    service.answers.end([name], "the query was removed")


@router.get("/queries/{name}/explain", openapi_extra=named("query", as_="`text`, `plan` or `svg`."))
async def explain_query(
    request: Request, service: Served, _caller: ReadCaller, name: str
) -> Response:
    """Say how a query runs, and with which others it shares what: as JSON, text or a drawing.

    `?as=plan` draws the plan of the query, and `?as=svg` the network that it is in.
    """
    form = request.query_params.get("as")
    if form == "plan":
        plan = await service.slow.run(lambda: service.queries.drawing(name))
        return Response(plan, media_type=SVG)
    if wants_svg(request):
        network = service.pool.home_of(name).network
        return Response(await service.slow.run(network.draw), media_type=SVG)
    found = await service.slow.run(lambda: service.queries.explain(name))
    if form == "text" or (form is None and "text/plain" in request.headers.get("accept", "")):
        return PlainTextResponse(found["text"])
    return JSONResponse(found)


@router.get("/queries/{name}/metrics")
def query_metrics(service: Served, _caller: ReadCaller, name: str) -> dict[str, Any]:
    """Say what a query costs."""
    home = service.pool.home_of(name)
    costs = home.network.most_expensive(service.pool.count)
    cost = next((each for each in costs if each.id == name), None)
    return {
        "answers": cost.answers if cost is not None else 0,
        "rate": service.overview.rate_of(name),
        "batch_ms": cost.batch_ms if cost is not None else None,
        "share": cost.share if cost is not None else None,
        "held": cost.held if cost is not None else None,
    }


@router.post(
    "/queries/{name}/why",
    openapi_extra=takes("application/json", example={"t": 5, "sign": "+", "bindings": {}}),
)
async def why(
    request: Request, service: Served, _caller: ReadCaller, body: Body, name: str
) -> dict[str, Any]:
    """Say what an answer rests on."""
    table = table_of(request, body)
    return await service.slow.run(lambda: service.taps.why(name, table))


@router.post("/queries/{name}/verify")
async def verify(service: Served, _caller: ReadCaller, name: str) -> dict[str, Any]:
    """Compare some reports of a query with those of an evaluation from scratch."""
    return await service.slow.run(lambda: service.taps.verify(name))


@router.get("/queries/{name}/windows")
async def windows(service: Served, _caller: ReadCaller, name: str) -> dict[str, Any]:
    """Say what the windows of a query hold."""
    return await service.slow.run(lambda: service.taps.windows(name))


@router.get("/queries/{name}/webhook")
def one_webhook(service: Served, _caller: ReadCaller, name: str) -> dict[str, Any]:
    """Say where the answers of a query are sent, and whether they are taken."""
    return service.webhooks.one(name)


@router.put(
    "/queries/{name}/webhook",
    openapi_extra=takes("application/json", example={"url": "https://...", "secret": "..."}),
)
async def put_webhook(
    request: Request, service: Served, _caller: AdminCaller, body: Body, name: str
) -> dict[str, Any]:
    """Send the answers of a query to a URL."""
    table = table_of(request, body)
    return await run_in_threadpool(service.webhooks.put, name, table)


@router.delete("/queries/{name}/webhook", status_code=204)
def delete_webhook(service: Served, _caller: AdminCaller, name: str) -> None:
    """Stop sending the answers of a query to a URL."""
    service.webhooks.delete(name)


def _text_of(request: Request, body: bytes) -> QueryText:
    """Read the query of a request: text, or JSON."""
    kind = media_type(request)
    if kind in _TEXTS or (not kind and body):
        text = text_of(body, "query")
        options: dict[str, Any] = {
            name: request.query_params[name]
            for name in ("dialect", "content", "base")
            if name in request.query_params
        }
        if "backfill" in request.query_params:
            options["backfill"] = request.query_params["backfill"] in ("", "1", "true")
        return query_text({"text": text, **options})
    if kind != "application/json":
        raise MediaTypeError(
            f"a query cannot be read as {kind or 'nothing'}",
            hint="Send text/plain, application/sparql-query or application/json.",
        )
    return query_text(json_of(body))
