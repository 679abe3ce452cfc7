"""The application of the service: its routes, and what is done to every request and response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from quadweir._version import __version__
from quadweir.errors import InternalError, QuadweirError, UsageError
from quadweir.service.problems import (
    MEDIA_TYPE,
    NotFoundError,
    PressureError,
    ServiceError,
    problem_of,
    status_of,
)
from quadweir.service.web import about, answers, mappings, openapi, overview, page, queries, streams
from quadweir.service.web.shareddata import routes_of

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from quadweir.service.access import Access
    from quadweir.service.service import LiveService

_LOG: Final = logging.getLogger("quadweir.service")
_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
}


def make_app(service: LiveService, access: Access) -> FastAPI:
    """Return the application of a service."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        service.hub.attach(asyncio.get_running_loop())
        yield
        service.hub.attach(None)

    app = FastAPI(
        title="Quadweir",
        version=__version__,
        lifespan=lifespan,
        # Its usual page loads scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.openapi = partial(openapi.describe, app)  # type: ignore[method-assign]
    app.state.service, app.state.access = service, access
    for each in (about, openapi, overview, queries, answers, streams, mappings):
        app.include_router(each.router)
    for name in ("static", "schema"):
        app.include_router(routes_of(name))
    # Last: it takes every path that nothing else takes.
    app.include_router(page.router)
    for kind in (QuadweirError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, _failed)
    app.add_middleware(Gatekeeper, access=access, is_proxied=service.settings.behind_proxy)
    return app


async def _failed(request: Request, error: Exception) -> Response:
    found = _as_ours(error)
    path = request.scope["path"]
    if found.code in _NO_ROUTE and path.startswith("/streams/") and "://" in path:
        iri = quote(path.removeprefix("/streams/"), safe="")
        found = UsageError(
            "an IRI in a path is one segment", hint=f"Write its slashes so: /streams/{iri[:200]}"
        )
    return problem_response(found)


def _as_ours(error: Exception) -> QuadweirError:
    match error:
        case QuadweirError():
            if isinstance(error, InternalError):
                _LOG.error("%s", error)
            return error
        case RequestValidationError():
            first = error.errors()[0]
            place = ".".join(str(each) for each in first.get("loc", ()))
            return UsageError(f"{place}: {first.get('msg', 'not valid')}")
        case HTTPException(status_code=404):
            return NotFoundError("there is nothing at this path", hint="GET / or /openapi.json")
        case HTTPException():
            return _OtherError(str(error.detail), error.status_code)
        case _:
            _LOG.error("a request failed", exc_info=error)
            return InternalError("the service failed; its log says more")


_NO_ROUTE: Final = (NotFoundError.code, ServiceError.code)


class _OtherError(ServiceError):
    """What the framework refuses by itself."""

    code = "QW-REQUEST"

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status  # type: ignore[misc]


def problem_response(error: QuadweirError) -> JSONResponse:
    """Return an error as a response."""
    headers = {}
    status = status_of(error)
    if isinstance(error, PressureError):
        headers["retry-after"] = str(error.retry_after_s)
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse(problem_of(error), status, headers, MEDIA_TYPE)


@final
class Gatekeeper:
    """Checks where a request comes from, and adds headers to each response.

    A path keeps its percent signs, so an IRI is one segment of it.
    """

    def __init__(self, app: ASGIApp, access: Access, *, is_proxied: bool) -> None:
        self._app = app
        self._access = access
        self._is_proxied = is_proxied

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if it may come."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if self._is_proxied:
            # IRIs of pages and streams must be those that clients see.
            scope = {**scope, "scheme": "https" if scope["type"] == "http" else "wss"}
        raw = scope.get("raw_path")
        if raw:
            scope = {**scope, "path": raw.partition(b"?")[0].decode("latin-1")}

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(message)
            await send(message)

        try:
            self._access.check_site(Headers(scope=scope))
        except ServiceError as error:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008, "reason": error.message})
            else:
                await problem_response(error)(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)


def _add_headers(message: MutableMapping[str, Any]) -> None:
    known = {name for name, _ in message["headers"]}
    message["headers"] = [
        *message["headers"],
        *(
            (name.encode(), value.encode())
            for name, value in _HEADERS.items()
            if name.encode() not in known
        ),
    ]
