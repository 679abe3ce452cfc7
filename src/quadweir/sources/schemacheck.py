"""Checks a document against a JSON Schema, in words that its author can act on.

It knows the keywords that our own schemas use and no others; tests hold it against a full
validator. The one addition: the `$comment` beside an `if` is the message when its `then` fails.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

Path = tuple[str | int, ...]
Schema = Mapping[str, Any] | bool

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_KNOWN: Final = frozenset(
    [
        "$schema",
        "$id",
        "$comment",
        "title",
        "description",
        "$defs",
        "$ref",
        "type",
        "enum",
        "const",
        "pattern",
        "minLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "items",
        "minItems",
        "minProperties",
        "required",
        "properties",
        "additionalProperties",
        "propertyNames",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
    ]
)


@final
@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where: the path of keys, and whether the key itself is meant."""

    path: Path
    message: str
    hint: str | None = None
    at_key: bool = False


def check(document: object, schema: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with a document, in its own order.

    >>> next(check({"delay": 5}, {"type": "object", "properties": {"delay": {"type": "string"}}}))
    Problem(path=('delay',), message='delay is not a string', hint=None, at_key=False)
    """
    return _Checker(schema).problems(document, schema, ())


class _Checker:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def problems(self, value: object, schema: Schema, path: Path) -> Iterator[Problem]:
        if isinstance(schema, bool):
            if not schema:
                yield Problem(path, f"{_name(path)} cannot stand here")
            return
        unknown = schema.keys() - _KNOWN
        assert not unknown, f"the checker does not know {unknown}"
        if "$ref" in schema:
            yield from self.problems(value, self._definition(schema["$ref"]), path)
        meant = schema.get("description")
        if "type" in schema and not _is(value, schema["type"]):
            yield Problem(path, f"{_name(path)} is not {_article(schema['type'])}", _hint(meant))
            return
        yield from self._scalar(value, schema, path, meant)
        if isinstance(value, dict):
            yield from self._table(value, schema, path)
        if isinstance(value, list):
            yield from self._list(value, schema, path)
        yield from self._branches(value, schema, path, meant)

    def fits(self, value: object, schema: Schema, path: Path) -> bool:
        return next(self.problems(value, schema, path), None) is None

    def _definition(self, reference: str) -> Schema:
        found: Any = self._root
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
        return found  # type: ignore[no-any-return]

    def _scalar(
        self, value: object, schema: Mapping[str, Any], path: Path, meant: str | None
    ) -> Iterator[Problem]:
        allowed = [schema["const"]] if "const" in schema else schema.get("enum")
        if allowed is not None and not any(_equal(value, one) for one in allowed):
            yield Problem(path, f"{_name(path)} is {_show(value)}", _choices(value, allowed))
        if isinstance(value, str):
            pattern = schema.get("pattern")
            # `$` of JSON Schema is the very end; Python's also stands before a last line feed.
            if pattern is not None and not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
                what = f" is not {meant}" if meant else " is not of the right form"
                yield Problem(path, f"{_name(path)}{what}: {_show(value)}")
            if len(value) < schema.get("minLength", 0):
                yield Problem(path, f"{_name(path)} is empty")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            low, high = schema.get("minimum"), schema.get("maximum")
            above = schema.get("exclusiveMinimum")
            if math.isnan(value) and (low is not None or high is not None or above is not None):
                yield Problem(path, f"{_name(path)} is not a number")
            elif low is not None and value < low:
                yield Problem(path, f"{_name(path)} is {value}, less than {low}")
            elif above is not None and value <= above:
                yield Problem(path, f"{_name(path)} is {value}, and must be above {above}")
            elif high is not None and value > high:
                yield Problem(path, f"{_name(path)} is {value}, more than {high}")

    def _table(
        self, value: dict[str, object], schema: Mapping[str, Any], path: Path
    ) -> Iterator[Problem]:
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        names = schema.get("propertyNames", True)
        for key, item in value.items():
            here = (*path, key)
            for problem in self.problems(key, names, here):
                yield Problem(here, problem.message, problem.hint, at_key=True)
            if key in known:
                yield from self.problems(item, known[key], here)
            elif others is False:
                yield Problem(here, f"unknown key {_show(key)}", _choices(key, known), at_key=True)
            else:
                yield from self.problems(item, others, here)
        for key in schema.get("required", ()):
            if key not in value:
                yield Problem(path, f"{_name(path)} has no {key}", _hint_of(known.get(key)))
        if len(value) < schema.get("minProperties", 0):
            yield Problem(path, f"{_name(path)} is empty")

    def _list(
        self, value: list[object], schema: Mapping[str, Any], path: Path
    ) -> Iterator[Problem]:
        for place, item in enumerate(value):
            yield from self.problems(item, schema.get("items", True), (*path, place))
        if len(value) < schema.get("minItems", 0):
            yield Problem(path, f"{_name(path)} is empty")

    def _branches(
        self, value: object, schema: Mapping[str, Any], path: Path, meant: str | None
    ) -> Iterator[Problem]:
        for part in schema.get("allOf", ()):
            yield from self.problems(value, part, path)
        for union in ("anyOf", "oneOf"):
            branches = schema.get(union, ())
            if branches and not any(self.fits(value, branch, path) for branch in branches):
                yield from self._nearest(value, branches, path, meant)
        if "not" in schema and self.fits(value, schema["not"], path):
            yield Problem(path, f"{_name(path)} cannot be {_show(value)}")
        if (
            "if" in schema
            and self.fits(value, schema["if"], path)
            and not self.fits(value, schema["then"], path)
        ):
            yield Problem(path, schema["$comment"])

    def _nearest(
        self, value: object, branches: list[Mapping[str, Any]], path: Path, meant: str | None
    ) -> Iterator[Problem]:
        """Complain about the branch that was meant: that of the same kind, or of the same keys."""
        if isinstance(value, dict):
            kinds = {
                branch["properties"]["kind"]["const"]: branch
                for branch in branches
                if "kind" in branch.get("properties", {})
            }
            if kinds:
                kind = value.get("kind")
                if isinstance(kind, str) and kind in kinds:
                    yield from self.problems(value, kinds[kind], path)
                elif "kind" in value:
                    hint = _choices(kind, kinds)
                    yield Problem((*path, "kind"), f"unknown kind {_show(kind)}", hint)
                else:
                    yield Problem(path, f"{_name(path)} has no kind", _choices(None, kinds))
                return
            for branch in branches:
                if value.keys() & branch.get("properties", {}).keys():
                    yield from self.problems(value, branch, path)
                    return
        yield Problem(path, f"{_name(path)} is {_show(value)}", _hint(meant))


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _equal(value: object, other: object) -> bool:
    # True == 1 in Python, but not in JSON.
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _name(path: Path) -> str:
    return str(path[-1]) if path else "the file"


def _article(kind: str) -> str:
    words = {"object": "a table", "integer": "a whole number", "array": "a list"}
    return words.get(kind, f"a {kind}")


def _show(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _hint(meant: str | None) -> str | None:
    # Sentences describe a key; fragments, the values that it takes.
    return meant if meant is None or meant.endswith(".") else f"Expected: {meant}."


def _hint_of(schema: Schema | None) -> str | None:
    meant = schema.get("description") if isinstance(schema, Mapping) else None
    return _hint(meant)


def _choices(value: object, allowed: Mapping[str, Any] | list[Any]) -> str:
    names = [str(one) for one in allowed]
    near = difflib.get_close_matches(str(value), names, n=1) if isinstance(value, str) else []
    if near:
        return f'Did you mean "{near[0]}"?'
    return f"Choose one of: {', '.join(names)}."
