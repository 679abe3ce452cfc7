"""What every request handler needs: the service, who asks, and the body."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from email.message import Message
from typing import TYPE_CHECKING, Annotated, Any, Final, cast
from urllib.parse import unquote

from fastapi import Depends, Request
from starlette.requests import ClientDisconnect, HTTPConnection

from quadweir.errors import DataError, QuadweirError, UsageError
from quadweir.service.access import Caller, Role
from quadweir.service.problems import ForbiddenError, MediaTypeError, SlowBodyError, TooLargeError
from quadweir.service.service import LiveService

if TYPE_CHECKING:
    from quadweir.service.access import Access
    from quadweir.service.subscriptions import Subscription

_MOST_DEPTH: Final = 64
BODY_S: Final = 60.0
_LONGEST_NUMBER: Final = 18


def service_of(connection: HTTPConnection) -> LiveService:
    """Return the service."""
    return cast(LiveService, connection.app.state.service)


def access_of(connection: HTTPConnection) -> Access:
    """Return who may do what."""
    found: Access = connection.app.state.access
    return found


def _caller(role: Role) -> Callable[[HTTPConnection], Caller]:
    def check(connection: HTTPConnection) -> Caller:
        caller = access_of(connection).caller(connection)
        if caller.role < role:
            raise ForbiddenError(
                f"this needs a token of the role {role.name.lower()}, and yours is of the role "
                f"{caller.role.name.lower()}"
            )
        return caller

    return check


Served = Annotated[LiveService, Depends(service_of)]
ReadCaller = Annotated[Caller, Depends(_caller(Role.READ))]
PushCaller = Annotated[Caller, Depends(_caller(Role.PUSH))]
AdminCaller = Annotated[Caller, Depends(_caller(Role.ADMIN))]


def counted(
    service: LiveService, caller: Caller, subscribe: Callable[[], Subscription]
) -> Subscription:
    """Subscribe, and count that for the token until the subscriber leaves.

    Raises:
        PressureError: the token has as many subscribers as it may have.
    """
    leave = service.quotas.subscribe(caller.name, caller.quota)
    try:
        found = subscribe()
    except QuadweirError:
        leave()
        raise
    found.also(leave)
    return found


def decoded(segment: str) -> str:
    """Return a segment of a path without its percent signs.

    >>> decoded("urn%3Ax%2Fy")
    'urn:x/y'

    Raises:
        UsageError: it is not UTF-8.
    """
    try:
        found = unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise UsageError("the path is not UTF-8") from None
    if "\0" in found:
        raise UsageError("the path has a NUL character")
    return found


def media_type(request: Request) -> str:
    """Return the content type of a body, without parameters."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


def version_of(request: Request) -> str | None:
    """Return the version of RDF that the content type of a body names."""
    message = Message()
    message["content-type"] = request.headers.get("content-type", "")
    found = message.get_param("version")
    return found if isinstance(found, str) else None


async def body_of(request: Request) -> AsyncIterator[bytes]:
    """Read a body, up to the limit; it counts until the request is answered.

    Raises:
        TooLargeError: it is larger.
        PressureError: it is too much together with those of other requests.
        SlowBodyError: it comes too slowly.
    """
    service = service_of(request)
    most = service.settings.limits.body_bytes
    too_large = TooLargeError(
        f"the body of the request is larger than {most:,} bytes", hint="Send it in parts."
    )
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > _LONGEST_NUMBER or int(length) > most:
        raise too_large
    found = bytearray()
    with service.bodies.hold() as held:
        try:
            async with asyncio.timeout(BODY_S):
                async for part in request.stream():
                    found += part
                    if len(found) > most:
                        raise too_large
                    held.add(len(part))
        except TimeoutError:
            raise SlowBodyError(f"the body did not come within {BODY_S:.0f} s") from None
        except ClientDisconnect:
            raise SlowBodyError("the client has gone before the end of the body") from None
        yield bytes(found)


Body = Annotated[bytes, Depends(body_of)]


def text_of(body: bytes, what: str) -> str:
    """Read a body that is text.

    Raises:
        DataError: it is not UTF-8.
    """
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"the {what} is not UTF-8: {error.reason} at byte {error.start}") from None


def json_of(body: bytes) -> Any:
    """Read JSON that does not nest too deeply.

    Raises:
        UsageError: it is not JSON.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the body is not JSON: {str(error)[:200]}") from None
    if b"\\u" in body:
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise UsageError(
                "the JSON of the body has half a character (a lone surrogate)"
            ) from None
        except RecursionError:
            raise UsageError("the JSON of the body nests too deeply") from None
    if _depth(found, 0) > _MOST_DEPTH:
        raise UsageError(f"the JSON of the body nests deeper than {_MOST_DEPTH} levels")
    return found


def _depth(found: Any, depth: int) -> int:
    if depth > _MOST_DEPTH or not isinstance(found, dict | list):
        return depth
    inner = found.values() if isinstance(found, dict) else found
    return max((_depth(each, depth + 1) for each in inner), default=depth + 1)


def table_of(request: Request, body: bytes) -> dict[str, Any]:
    """Read a body that is an object of JSON.

    Raises:
        MediaTypeError: the content type is another.
        UsageError: it is no object.
    """
    if media_type(request) != "application/json":
        raise MediaTypeError("the body must be application/json", hint="Set its content type.")
    found = json_of(body)
    if not isinstance(found, dict):
        raise UsageError("the body must be an object of JSON")
    return found
