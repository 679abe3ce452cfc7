"""Options of a run for a query's windows: their start, and when they report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, final

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import ReportPolicy
from quadweir.algebra.windows import CountScope, PastScope, Scope, TimeScope, Window
from quadweir.errors import UsageError

_NO_STEP: Final = "no window of the query has a step"
_ADD_STEP: Final = "Write RANGE r STEP s, or leave this out."


@final
class ReportOn(StrEnum):
    """When a query reports, by the names of the SECRET model."""

    CONTENT_CHANGE = "content-change"
    WINDOW_CLOSE = "window-close"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Windowing:
    """The options of a run for all windows of a query.

    Attributes:
        start_ms: t0 of windows of time with a step (W2); None for 1970.
        full: the first window opens at t0, so that only full windows are reported (W9).
        report: when to report: at closes, or whenever the content of an open window changes (W10);
        None for the dialect's default.
    """

    start_ms: int | None = None
    full: bool = False
    report: ReportOn | None = None


AS_WRITTEN: Final = Windowing()


def with_windowing(query: ContinuousQuery, asked: Windowing) -> ContinuousQuery:
    """The query with these options in its algebra.

    Raises:
        UsageError: an option does not apply to any window of the query.
    """
    start_ms, full, report = asked.start_ms, asked.full, asked.report
    windows = query.windows
    if (start_ms is not None or full) and not any(_hops(window.scope) for window in windows):
        raise UsageError(f"{_NO_STEP}, so none has a beginning", hint=_ADD_STEP)
    if start_ms is not None:
        windows = tuple(
            replace(window, scope=replace(window.scope, origin_ms=start_ms))
            if isinstance(window.scope, TimeScope | PastScope) and _hops(window.scope)
            else window
            for window in windows
        )
    if full:
        windows = tuple(map(_full, windows))
    if report is None:
        return replace(query, windows=windows)
    if query.tick.every_ms is not None:
        raise UsageError(
            "the query says itself when it reports (COMPUTED EVERY)",
            hint="Leave one of the two out.",
        )
    if report is ReportOn.CONTENT_CHANGE:
        policy = ReportPolicy.ON_CHANGE
        windows = tuple(map(_while_open, windows))
    else:
        policy = ReportPolicy.ON_CLOSE
        if not any(_hops(window.scope) or _counts(window.scope) for window in windows):
            raise UsageError(f"{_NO_STEP}, so none closes", hint=_ADD_STEP)
    return replace(query, windows=windows, report=replace(query.report, policy=policy))


def _hops(scope: Scope) -> bool:
    return isinstance(scope, TimeScope | PastScope) and scope.step_ms is not None


def _counts(scope: Scope) -> bool:
    return isinstance(scope, CountScope) and scope.step is not None


def _full(window: Window) -> Window:
    scope = window.scope
    if isinstance(scope, PastScope) and scope.step_ms is not None:
        raise UsageError(
            "a window in the past is never full: it has no first element to wait for",
            hint="Write RANGE r STEP s.",
            span=scope.span or window.span,
        )
    if isinstance(scope, TimeScope) and scope.step_ms is not None:
        return replace(window, scope=replace(scope, full=True))
    return window


def _while_open(window: Window) -> Window:
    scope = window.scope
    if _counts(scope) or (isinstance(scope, PastScope) and scope.step_ms is not None):
        raise UsageError(
            "only windows RANGE r STEP s can report while they are open",
            hint="Leave out the STEP of this window, or report at window-close.",
            span=scope.span or window.span,
        )
    if isinstance(scope, TimeScope) and scope.step_ms is not None:
        return replace(window, scope=replace(scope, while_open=True))
    return window
