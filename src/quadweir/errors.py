"""Every error class, sorted by who can act on it.

The first line of an error is a lower-case fragment about the user's query, mapping or data; the
hint is something to do. Each class has a stable `code` and the exit code that the command line
ends with.
"""

from __future__ import annotations

from typing import ClassVar

from quadweir.spans import Span


class QuadweirError(Exception):
    """The root of every error that Quadweir raises on purpose.

    >>> error = SourceError("no such file: a.nt", hint="Check the path.")
    >>> error.code, error.exit_code
    ('QW-SOURCE', 1)
    """

    code: ClassVar[str] = "QW-ERROR"
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        span: Span | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.span = span

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span else ""
        parts = [f"{place}{self.message}"]
        if self.detail:
            parts.append(self.detail)
        if self.hint:
            parts.append(f"Hint: {self.hint}")
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive Exception's own pickling, and errors cross from
        # Spark's Python workers to the driver.
        return _rebuild, (type(self), self.message, self.detail, self.hint, self.span)


def _rebuild(
    kind: type[QuadweirError],
    message: str,
    detail: str | None,
    hint: str | None,
    span: Span | None,
) -> QuadweirError:
    return kind(message, detail=detail, hint=hint, span=span)


class UsageError(QuadweirError):
    """The command line or a call was given arguments that do not go together."""

    code = "QW-USAGE"
    exit_code = 2


class QuerySyntaxError(QuadweirError):
    """A query text does not parse; its author can fix it."""

    code = "QW-SYNTAX"
    exit_code = 3


class MappingError(QuadweirError):
    """An RML mapping is not valid; its author can fix it."""

    code = "QW-MAPPING"
    exit_code = 3


class DeclarationError(QuadweirError):
    """A stream declaration (TOML or Python) is not valid; its author can fix it."""

    code = "QW-DECLARATION"
    exit_code = 3


class PlanError(QuadweirError):
    """A query parses, but no plan can answer it; its author can change it."""

    code = "QW-PLAN"
    exit_code = 3


class UnboundedStateError(PlanError):
    """A query would have to remember everything it has ever seen."""

    code = "QW-UNBOUNDED"


class LimitError(QuadweirError):
    """An input is larger or more deeply nested than the limits allow."""

    code = "QW-LIMIT"
    exit_code = 3


class UnsupportedError(QuadweirError):
    """Left out by design; nobody needs to act."""

    code = "QW-UNSUPPORTED"
    exit_code = 3


class NotImplementedYetError(QuadweirError):
    """Not implemented yet; the message names what is missing."""

    code = "QW-NOT-YET"
    exit_code = 1


class EnvironmentProblem(QuadweirError):  # noqa: N818 - it is the environment's fault, not an error in a call
    """Java, Spark, a disk or a port has a problem; the machine's operator can act."""

    code = "QW-ENVIRONMENT"


class SourceError(QuadweirError):
    """A source or sink cannot be read or written; the stream's operator can act."""

    code = "QW-SOURCE"


class DataError(QuadweirError):
    """More records were bad than the run allows."""

    code = "QW-DATA"
    exit_code = 4


class StateError(QuadweirError):
    """State from an earlier run cannot be used; the query's operator can act."""

    code = "QW-STATE"


class InternalError(QuadweirError):
    """Our fault; the message asks for a report."""

    code = "QW-INTERNAL"
