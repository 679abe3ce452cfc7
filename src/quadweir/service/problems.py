"""Errors as problem documents (RFC 9457), with our codes, places and hints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from quadweir.errors import (
    DataError,
    DeclarationError,
    EnvironmentProblem,
    InternalError,
    LimitError,
    MappingError,
    NotImplementedYetError,
    PlanError,
    QuadweirError,
    QuerySyntaxError,
    SourceError,
    StateError,
    UnsupportedError,
    UsageError,
)
from quadweir.spans import Span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quadweir.algebra.warn import QueryWarning

MEDIA_TYPE: Final = "application/problem+json"


class ServiceError(QuadweirError):
    """A request that the service does not answer; `status` is that of HTTP."""

    code = "QW-REQUEST"
    status: ClassVar[int] = 400


class NotFoundError(ServiceError):
    """There is nothing of the name that the request asks for."""

    code = "QW-NOT-FOUND"
    status = 404


class GoneError(ServiceError):
    """What the request asks for was here, and is no longer kept."""

    code = "QW-GONE"
    status = 410


class ConflictError(ServiceError):
    """There is another thing of this name already, or something still uses it."""

    code = "QW-CONFLICT"
    status = 409


class ForbiddenError(ServiceError):
    """The operator of the service does not allow it."""

    code = "QW-FORBIDDEN"
    status = 403


class NoTokenError(ServiceError):
    """The request has no token, or one that is not known."""

    code = "QW-TOKEN"
    status = 401


class SlowBodyError(ServiceError):
    """The body of the request came too slowly."""

    code = "QW-SLOW"
    status = 408


class TooLargeError(ServiceError):
    """The body of the request is too large."""

    code = "QW-TOO-LARGE"
    status = 413


class MediaTypeError(ServiceError):
    """The service does not read or write this content type."""

    code = "QW-CONTENT-TYPE"
    status = 415


class UnavailableError(ServiceError):
    """What the request needs does not run for now."""

    code = "QW-UNAVAILABLE"
    status = 503


class PressureError(ServiceError):
    """The service cannot take more for now, or a token has used up its quota.

    Args:
        message: what is full.
        retry_after_s: when to try again.
        hint: what else can be done.
    """

    code = "QW-PRESSURE"
    status = 429

    def __init__(self, message: str, *, retry_after_s: int = 1, hint: str | None = None) -> None:
        super().__init__(message, hint=hint or "Send it again later.")
        self.retry_after_s = retry_after_s


_STATUS: Final[tuple[tuple[type[QuadweirError], int], ...]] = (
    (QuerySyntaxError, 400),
    (MappingError, 400),
    (DeclarationError, 400),
    (DataError, 400),
    (UsageError, 400),
    (LimitError, 413),
    (PlanError, 422),
    (UnsupportedError, 422),
    (NotImplementedYetError, 422),
    (SourceError, 502),
    (StateError, 409),
    (EnvironmentProblem, 503),
    (InternalError, 500),
)


def status_of(error: QuadweirError) -> int:
    """Return the status of HTTP for an error.

    >>> status_of(QuerySyntaxError("expected a pattern"))
    400
    """
    if isinstance(error, ServiceError):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def problem_of(error: QuadweirError) -> dict[str, Any]:
    """Return an error as a problem document.

    The detail of an internal error is a traceback; it is for the log, not for the client.
    """
    is_ours = isinstance(error, InternalError)
    return {
        "type": "about:blank",
        "title": type(error).__name__,
        "status": status_of(error),
        "code": error.code,
        "message": error.message,
        "detail": None if is_ours else error.detail,
        "hint": error.hint,
        "places": places_of(error.span),
    }


def places_of(span: Span | None) -> list[dict[str, Any]]:
    """Return a place as JSON.

    >>> places_of(Span(3, 7))
    [{'line': 3, 'column': 7, 'end_line': None, 'end_column': None, 'source': None}]
    """
    if span is None:
        return []
    names = ("line", "column", "end_line", "end_column", "source")
    return [{name: getattr(span, name) for name in names}]


def warning_of(warning: QueryWarning) -> Mapping[str, Any]:
    """Return a warning as JSON."""
    return {
        "message": warning.message,
        "hint": warning.hint,
        "places": places_of(warning.span),
    }
