"""Paths into JSON: the simple ones as steps that Spark can take, the others told apart.

Simple is what selects by name, position and wildcard only. Filters, slices, negative positions,
unions and descent (`..`) are evaluated in Python by `python-jsonpath`.

Spec: https://www.rfc-editor.org/rfc/rfc9535
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, final

from quadweir.errors import MappingError

_STEP: Final = re.compile(
    r"""
      \.(?P<name>[^.\[\]'"()*?@,:\s\\$]+)
    | \[\s*'(?P<single>[^'\\]*)'\s*\]
    | \[\s*"(?P<double>[^"\\]*)"\s*\]
    | \[\s*(?P<index>\d{1,9})\s*\]
    | (?P<all>\[\s*\*\s*\]|\.\*)
    """,
    re.VERBOSE,
)


@final
@dataclass(frozen=True, slots=True)
class Member:
    """The member of an object with this name."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class Position:
    """The element of an array at this position, from 0."""

    index: int


@final
@dataclass(frozen=True, slots=True)
class Every:
    """All elements of an array or all members of an object."""


Step: TypeAlias = Member | Position | Every


def normal_path(path: str) -> str:
    """Put in the root that references may leave out.

    >>> normal_path("name"), normal_path("$.name"), normal_path("['a b']")
    ('$.name', '$.name', "$['a b']")
    """
    path = path.strip()
    if path.startswith(("$", "@")):
        return "$" + path[1:]
    return "$" + path if path.startswith(("[", ".")) else "$." + path


@lru_cache(maxsize=4096)
def simple_steps(path: str) -> tuple[Step, ...] | None:
    """Read a path that selects by name, position and wildcard only; None if it does more.

    >>> simple_steps("$.a[0]['b c'][*]")
    (Member(name='a'), Position(index=0), Member(name='b c'), Every())
    >>> simple_steps("$..a") is None
    True
    """
    text = normal_path(path)
    steps: list[Step] = []
    position = 1
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            return None
        position = match.end()
        if match["all"]:
            steps.append(Every())
        elif match["index"]:
            steps.append(Position(int(match["index"])))
        else:
            names = (match["name"], match["single"], match["double"])
            steps.append(Member(next(name for name in names if name is not None)))
    return tuple(steps)


def why_not_simple(path: str) -> str:
    """Say what in a path Spark cannot evaluate.

    >>> why_not_simple("$..a")
    'descends with ..'
    """
    if ".." in path:
        return "descends with .."
    if "?" in path:
        return "filters with ?"
    if re.search(r"\[[^\]]*:", path):
        return "slices an array"
    if re.search(r"\[\s*-", path):
        return "counts from the end of an array"
    return "selects by more than names, positions and *"


def check_path(path: str, what: str) -> None:
    """Raise a MappingError unless the path is one that some evaluator takes."""
    if simple_steps(path) is None:
        compile_path(path, what)


@lru_cache(maxsize=4096)
def compile_path(path: str, what: str = "a reference") -> Any:
    """Prepare a path for evaluation in Python."""
    from jsonpath import JSONPathEnvironment
    from jsonpath.exceptions import JSONPathError

    try:
        return JSONPathEnvironment().compile(normal_path(path))
    except (JSONPathError, RecursionError) as error:
        raise MappingError(
            f"{what} is not a JSONPath: {path}",
            detail=str(error).splitlines()[0] if str(error) else None,
            hint="JSONPath is defined in RFC 9535; a name with blanks is written $['a b'].",
        ) from None


def select(document: Any, path: str) -> list[Any]:
    """Evaluate any path in Python.

    >>> select({"a": [{"b": 1}, {"b": 2}]}, "$.a[*].b")
    [1, 2]
    """
    steps = simple_steps(path)
    if steps is None:
        return list(compile_path(path).findall(document))
    found = [document]
    for step in steps:
        match step:
            case Member(name=name):
                found = [one[name] for one in found if isinstance(one, dict) and name in one]
            case Position(index=index):
                found = [one[index] for one in found if isinstance(one, list) and index < len(one)]
            case Every():
                found = [
                    inner
                    for one in found
                    if isinstance(one, list | dict)
                    for inner in (one.values() if isinstance(one, dict) else one)
                ]
    return found
