"""The base of the writers of the streaming dialects, and their entry point."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from quadweir.algebra.analyze import windows_read
from quadweir.algebra.patterns import BasicPattern, PathPattern, Pattern
from quadweir.algebra.query import ContinuousQuery, DescribeForm
from quadweir.algebra.scopes import windows_of
from quadweir.algebra.streams import Report, ReportPolicy
from quadweir.algebra.windows import Content, PastScope, TimeScope, Window
from quadweir.syntax.write_sparql import SparqlWriter, TranslationWarning, indented
from quadweir.terms import IRI, Variable

# The prefix that windows without a name of their own are written with.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
WINDOW_PREFIX: Final = {"w": "urn:quadweir:window:"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenQuery:
    """A query's text, and the parts of its meaning that the text has lost."""

    text: str
    warnings: tuple[TranslationWarning, ...]


class WindowWriter(SparqlWriter):
    """Tells how a dialect's own defaults differ from what the query says."""

    title: str
    content: Content

    def __init__(self, query: ContinuousQuery, prefixes: Mapping[str, str] | None = None) -> None:
        super().__init__(query, {**WINDOW_PREFIX, **(prefixes or {})})

    def written(self) -> WrittenQuery:
        """Write the query, and find the meaning that its text has lost."""
        text = self.text()
        if self.query.windows:
            self.check()
        return WrittenQuery(text=text, warnings=tuple(self.warnings))

    def report(self) -> Report:
        """The report policy of a query of this dialect with these windows."""
        raise NotImplementedError

    def check(self) -> None:
        """Warn of report, tick, content and event times that the dialect cannot say."""
        report, wanted = self.report(), self.query.report
        if report.policy is not wanted.policy:
            says = {
                ReportPolicy.ON_CHANGE: "whenever the content of a window changes",
                ReportPolicy.ON_CLOSE: "when a window with a step closes",
            }
            self.warn(
                "report",
                f"the query reports {says[wanted.policy]}; in {self.title} it will report "
                f"{says[report.policy]}",
            )
        if report.non_empty_only and not wanted.non_empty_only:
            self.warn("empty-windows", f"{self.title} keeps silent where all windows are empty")
        if wanted.non_empty_only and not report.non_empty_only:
            self.warn("empty-windows", f"{self.title} reports where all windows are empty, too")
        for window in self.query.windows:
            self._check_window(window)

    def _check_window(self, window: Window) -> None:
        if window.content is not self.content:
            kinds = {Content.BAG: "every element counts", Content.GRAPH: "equal triples are one"}
            self.warn(
                "content",
                f"in {window.name} {kinds[window.content]}; in {self.title} {kinds[self.content]}",
                window,
            )
        scope = window.scope
        if isinstance(scope, TimeScope | PastScope) and scope.origin_ms:
            self.warn("origin", f"{window.name} has its close instants moved", window)
        if isinstance(scope, TimeScope) and scope.full:
            self.warn("full", f"{window.name} is evaluated from its first full range on", window)
        if isinstance(scope, TimeScope) and scope.while_open:
            self.warn("while-open", f"{window.name} is evaluated while it fills", window)

    def lose_described(self) -> None:
        """Warn that more is described: in C-SPARQL, windows can be the whole default graph."""
        query = self.query
        if (
            isinstance(query.form, DescribeForm)
            and query.default_graph_windows
            and not (query.default_graphs or query.named_graphs)
        ):
            self.warn(
                "merged-default-graph",
                f"in {self.title} DESCRIBE also shows what the static data says of a resource",
                query.form,
            )

    def lose_event_time(self, window: Window) -> None:
        """Warn that the window's event time has to be declared with the stream."""
        if window.event_time is not None:
            self.warn(
                "event-time",
                f"{self.title} cannot name {window.event_time} as the event time of "
                f"{window.stream}; declare it with the stream",
                window,
            )

    def lose_unread(self) -> None:
        """Warn of windows that no pattern reads: without a place in the text they report no more."""
        read = windows_read(self.query.pattern, self.query)
        for window in self.query.windows:
            if window.name not in read:
                self.warn(
                    "unused-window", f"no pattern reads {window.name}; it is left out", window
                )

    def register_name(self, name: str, *, prefixed: bool = True) -> str:
        """Write the name of a REGISTER clause: a plain word, or an IRI."""
        if _NAME.fullmatch(name):
            return name
        return self.iri(IRI(name)) if prefixed else str(IRI(name))

    def windows_named(self, name: IRI | Variable) -> tuple[Window, ...]:
        return windows_of(name, self.query)

    def merged(self, pattern: BasicPattern) -> list[str]:
        """Write a pattern over a merged default graph: each triple in one of the windows.

        A triple that is in two windows, or in a window and the static data, is matched twice.
        """
        names = self.query.default_graph_windows
        self.warn(
            "merged-default-graph",
            f"{self.title} has no merged default graph; each pattern is tried in each window, and "
            "a triple that is in two of them counts twice",
        )
        lines: list[str] = []
        for triple in pattern.patterns:
            if isinstance(triple, PathPattern):
                self.warn(
                    "merged-default-graph",
                    "a path is matched inside one window, not across the merged graph",
                    triple,
                )
            alone = BasicPattern(patterns=(triple,), span=triple.span)
            branches = [self.in_window(self.query.window(name), alone) for name in names]
            if self.query.default_graphs:
                branches.append(self.triples(alone))
            first: list[str] = []
            for branch in branches:
                opening = "{" if not first else "} UNION {"
                first = [*first[:-1], opening, *indented(branch), "}"]
            lines += first
        return lines

    def in_window(self, window: Window, pattern: BasicPattern) -> list[str]:
        """Write triples inside a window's own block."""
        raise NotImplementedError

    def is_bare(self, pattern: Pattern) -> bool:
        return super().is_bare(pattern) and not self._is_merged()

    def _is_merged(self) -> bool:
        return bool(self.query.default_graph_windows) and not self.blocks

    def leaf(self, pattern: BasicPattern) -> list[str]:
        if self._is_merged():
            return self.merged(pattern)
        return self.triples(pattern)


def short_duration(ms: int) -> str:
    """Write a duration in one unit, the largest that fits.

    >>> short_duration(90_000), short_duration(7_200_000), short_duration(250)
    ('90s', '2h', '250ms')
    """
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if ms % size == 0 and ms:
            return f"{ms // size}{unit}"
    return f"{ms}ms"


def iso_duration(ms: int) -> str:
    """Write a duration as ISO 8601 does.

    >>> iso_duration(90_000), iso_duration(100), iso_duration(86_400_000), iso_duration(0)
    ('PT90S', 'PT0.1S', 'P1D', 'PT0S')
    """
    if ms and ms % 86_400_000 == 0:
        return f"P{ms // 86_400_000}D"
    for unit, size in (("H", 3_600_000), ("M", 60_000)):
        if ms and ms % size == 0:
            return f"PT{ms // size}{unit}"
    seconds, rest = divmod(ms, 1000)
    fraction = f".{rest:03}".rstrip("0") if rest else ""
    return f"PT{seconds}{fraction}S"
