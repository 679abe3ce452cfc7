"""Paths into JSON: simple ones as steps for Spark, and a test for the others.

A simple path selects by name, position and wildcard only. Filters, slices, negative positions,
unions and descent (`..`) are evaluated in Python by `python-jsonpath`.

Two spellings that RFC 9535 does not have are common in mappings and are read as other engines read
them: a dot before a bracket (`$.[*]`), and names with blanks or commas (`Country Code`).

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
      \.(?P<name>[^.\[\]'"()*?@,:\s\\$^]+)
    | \[\s*'(?P<single>[^'\\]*)'\s*\]
    | \[\s*"(?P<double>[^"\\]*)"\s*\]
    | \[\s*(?P<index>\d{1,9})\s*\]
    | (?P<all>\[\s*\*\s*\]|\.\*)
    """,
    re.VERBOSE,
)
_BRACKET: Final = re.compile(
    r"""\[(?:[^\[\]'"]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\[[^\]]*\])*\]?"""
)
# Some engines take ^ for "the parent of"; quoted, it is a character like any other.
_UPWARD: Final = re.compile(r"""^(?:[^'"^]|'[^']*'|"[^"]*")*\^""")
_NAME: Final = re.compile(r"[^.\[]+")
# Characters allowed in a dotted name, in addition to those of a plain one.
_LOOSE: Final = re.compile(r"[^.\[\]'\"()*?@:\\$^]*[\s,][^.\[\]'\"()*?@:\\$^]*")


@final
@dataclass(frozen=True, slots=True)
class ObjectMember:
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


PathStep: TypeAlias = ObjectMember | Position | Every


@lru_cache(maxsize=4096)
def normal_path(path: str) -> str:
    """Add the root that references may leave out, and brackets around names that need them.

    >>> normal_path("name"), normal_path("$.name"), normal_path("['a b']")
    ('$.name', '$.name', "$['a b']")
    >>> normal_path("$.[*]"), normal_path("Country Code"), normal_path("$..a.first, name")
    ('$[*]', "$['Country Code']", "$..a['first, name']")
    """
    path = path.strip()
    if path.startswith(("$", "@")):
        path = path[1:]
    elif not path.startswith(("[", ".")):
        path = "." + path
    pieces: list[str] = []
    position = 0
    while position < len(path):
        dots = len(path) - position - len(path[position:].lstrip("."))
        position += dots
        if path.startswith("[", position):
            match = _BRACKET.match(path, position)
            # One dot before a bracket has no meaning; two dots descend.
            pieces.append("." * (dots if dots > 1 else 0))
        else:
            match = _NAME.match(path, position)
            pieces.append("." * dots)
        if match is None:
            break
        name = match[0]
        if dots and _LOOSE.fullmatch(name) and name.strip():
            if dots == 1:
                pieces.pop()
            name = f"['{name.strip()}']"
        pieces.append(name)
        position = match.end()
    return "$" + "".join(pieces)


@lru_cache(maxsize=4096)
def simple_steps(path: str) -> tuple[PathStep, ...] | None:
    """The steps of a simple path; None if the path is not simple.

    >>> simple_steps("$.a[0]['b c'][*]")
    (ObjectMember(name='a'), Position(index=0), ObjectMember(name='b c'), Every())
    >>> simple_steps("$..a") is None
    True
    """
    text = normal_path(path)
    steps: list[PathStep] = []
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
            steps.append(ObjectMember(next(name for name in names if name is not None)))
    return tuple(steps)


def why_not_simple(path: str) -> str:
    """The part of a path that Spark cannot evaluate, in words.

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
    """Raise a MappingError unless some evaluator accepts the path."""
    if _UPWARD.search(path):
        raise MappingError(
            f"{what} goes up to a parent with ^, which JSONPath cannot: {path}",
            hint="Iterate over the outer record and reach into it with a path such as $.list[*].name. "
            "A member whose name holds a ^ is written $['^name'].",
        )
    if simple_steps(path) is None:
        compile_path(path, what)


@lru_cache(maxsize=4096)
def compile_path(path: str, what: str = "a reference") -> Any:
    """Prepare a path for evaluation in Python."""
    from jsonpath.exceptions import JSONPathError

    from quadweir.mapping.jsonpathlimits import compile_limited

    try:
        return compile_limited(normal_path(path))
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
        from quadweir.mapping.jsonpathlimits import find_all

        return find_all(compile_path(path), document, path)
    found = [document]
    for step in steps:
        match step:
            case ObjectMember(name=name):
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
