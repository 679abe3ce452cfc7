"""JSONPath by `python-jsonpath`, with regular expressions in linear time and limited work.

The library matches with Python's `re`, which backtracks, and each `..` in a path visits the
document again from every node found so far. Here RE2 matches, and the visited nodes are counted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final, final

from jsonpath import JSONPathEnvironment
from jsonpath.exceptions import JSONPathSyntaxError
from jsonpath.filter import FilterQuery, RegexLiteral
from jsonpath.function_extensions import ExpressionType, FilterFunction
from jsonpath.parse import Parser
from jsonpath.segments import JSONPathChildSegment, JSONPathRecursiveDescentSegment
from jsonpath.selectors import Filter, SingularQuerySelector
from jsonpath.token import TOKEN_RE_FLAGS

from quadweir.errors import LimitError
from quadweir.mapping.functions.patterns import compiled

MOST_NODES: Final = 1_000_000
"""The most nodes that a path may visit in any document."""
FOR_EACH: Final = 20
"""How often a path may visit each node of a larger document."""


@final
class _Budget(threading.local):
    left = MOST_NODES


_BUDGET: Final = _Budget()


@final
class _TooMuchError(Exception):
    """The budget is spent."""


def _spend(node: Any) -> None:
    _BUDGET.left -= 1 + (len(node) if isinstance(node, list | dict) else 0)
    if _BUDGET.left < 0:
        raise _TooMuchError


class _ChildSegment(JSONPathChildSegment):
    def resolve(self, nodes: Iterable[Any]) -> Iterator[Any]:
        for node in nodes:
            _spend(node.obj)
            for selector in self.selectors:
                yield from selector.resolve(node)


class _DescentSegment(JSONPathRecursiveDescentSegment):
    def _visit(self, node: Any, depth: int = 1) -> Iterator[Any]:
        _spend(node.obj)
        yield from super()._visit(node, depth)


class _Matching(FilterFunction):
    """`match` or `search`; false for an invalid pattern, as RFC 9535 requires."""

    arg_types: ClassVar = [ExpressionType.VALUE, ExpressionType.VALUE]
    return_type = ExpressionType.LOGICAL

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole

    def __call__(self, value: object, pattern: object) -> bool:
        if not isinstance(value, str) or not isinstance(pattern, str):
            return False
        try:
            found = compiled(pattern)
            return bool(found.fullmatch(value) if self._whole else found.search(value))
        except (ValueError, UnicodeEncodeError):
            return False


class _Parser(Parser):
    def parse_regex(self, stream: Any) -> Any:
        token = stream.current()
        flags = ""
        if stream.peek().kind == TOKEN_RE_FLAGS:
            stream.next()
            flags = "".join(sorted(set(stream.next().value) & set("ims")))
        try:
            pattern = compiled(f"(?{flags}){token.value}" if flags else token.value)
        except ValueError as error:
            raise JSONPathSyntaxError(str(error), token=token) from None
        return RegexLiteral(value=pattern)


class _Environment(JSONPathEnvironment):
    parser_class = _Parser

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        self.function_extensions["match"] = _Matching(whole=True)
        self.function_extensions["search"] = _Matching(whole=False)


def compile_limited(path: str) -> Any:
    """Prepare a path; to be evaluated by `find_all`."""
    found = _Environment().compile(path)
    # Paths joined by | and & are kept side by side.
    for each in (found, *(other for _, other in getattr(found, "paths", ()))):
        _limit(getattr(each, "path", each))
    return found


def _limit(path: Any) -> None:
    """Make the segments of a path, and of the paths in its filters, count the nodes they visit."""
    segments = []
    for segment in path.segments:
        for selector in segment.selectors:
            if isinstance(selector, Filter):
                _limit_expression(selector.expression)
            elif isinstance(selector, SingularQuerySelector):
                _limit(selector.query)
        descends = isinstance(segment, JSONPathRecursiveDescentSegment)
        kind = _DescentSegment if descends else _ChildSegment
        segments.append(kind(env=segment.env, token=segment.token, selectors=segment.selectors))
    path.segments = tuple(segments)


def _limit_expression(expression: Any) -> None:
    if isinstance(expression, FilterQuery):
        _limit(expression.path)
        return
    for each in expression.children():
        _limit_expression(each)


def find_all(prepared: Any, document: Any, path: str) -> list[Any]:
    """Evaluate a path.

    Raises:
        LimitError: it looks at too many nodes.
    """
    _BUDGET.left = most = max(MOST_NODES, FOR_EACH * _size(document))
    try:
        return list(prepared.findall(document))
    except _TooMuchError:
        raise LimitError(
            f"the JSONPath {path[:200]} looks at more than {most:,} nodes of a document",
            detail="Each .. visits everything below each node found before it.",
            hint="Name the members that lead there instead.",
        ) from None


def _size(document: Any) -> int:
    """Count the nodes of a document."""
    count, waiting = 0, [document]
    while waiting:
        node = waiting.pop()
        count += 1
        if isinstance(node, dict):
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return count
