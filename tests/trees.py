"""Expected trees in tests, short enough to read: `:x` stands for <http://example.org/x>."""

from __future__ import annotations

import re

from quadweir.algebra.patterns import Distinct, Pattern, Project, Reduced, Slice
from quadweir.algebra.query import ContinuousQuery
from quadweir.syntax import parse
from rendered_trees import read_pattern

PREFIX = "PREFIX : <http://example.org/> "
_SHORT = re.compile(r"(?<=[\s(]):(\w+)")


def tree(text: str) -> Pattern:
    """Read a pattern in the text form of the algebra."""
    return read_pattern(_SHORT.sub(r"<http://example.org/\1>", text))


def asked(text: str, dialect: str | None = None, **options: object) -> ContinuousQuery:
    """Parse a query that uses the prefix."""
    return parse(PREFIX + text, dialect=dialect, **options)  # type: ignore[arg-type]


def body(text: str) -> Pattern:
    """Parse a group of plain SPARQL and give its pattern."""
    pattern = asked(f"SELECT * {text}", "sparql").pattern
    assert isinstance(pattern, Project)
    return pattern.input


def inside(pattern: Pattern) -> Pattern:
    """Step through projection, DISTINCT and LIMIT."""
    while isinstance(pattern, Project | Distinct | Reduced | Slice):
        pattern = pattern.input
    return pattern
