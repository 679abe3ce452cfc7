"""Places in query, mapping and configuration text."""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text, by lines and columns that both count from 1; the end is exclusive.

    >>> str(Span(line=3, column=7, end_line=3, end_column=12, source="q.rq"))
    'q.rq:3:7'
    """

    line: int
    column: int
    end_line: int | None = None
    end_column: int | None = None
    source: str | None = None

    def __str__(self) -> str:
        place = f"{self.line}:{self.column}"
        return f"{self.source}:{place}" if self.source else place


def excerpt(text: str, span: Span) -> str:
    r"""Show the line a span starts on, with a caret under the stretch it covers.

    >>> print(excerpt("SELECT ?x\nWHER { }", Span(2, 1, 2, 5)))
    2 | WHER { }
      | ^^^^
    """
    lines = text.splitlines()
    if not 1 <= span.line <= len(lines):
        return ""
    line = lines[span.line - 1].expandtabs(1)
    same_line = span.end_line in (None, span.line)
    end = span.end_column if same_line and span.end_column else None
    width = max(1, (end or span.column + 1) - span.column)
    # A minified query can be one line of a megabyte: show the neighbourhood only.
    start = max(0, span.column - 60)
    shown = line[start : start + 100]
    gutter = " " * len(str(span.line))
    carets = "^" * min(width, max(1, len(shown) - (span.column - 1 - start)))
    return f"{span.line} | {shown}\n{gutter} | {' ' * (span.column - 1 - start)}{carets}"
