"""Checks of a document against a JSON Schema, with messages that help its author.

The library `jsonschema` decides what is valid; this module says what is wrong and what to write.
One addition to the standard: the `$comment` next to an `if` is the message when its `then` fails.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.sources.tomlplaces import KeyPath

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

_ARTICLES: Final = {"object": "a table", "integer": "a whole number", "array": "a list"}
_AFTER_ALL_KEYS: Final = 2**60


@final
@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong and where: the path of keys, and whether the key itself is wrong."""

    path: KeyPath
    message: str
    hint: str | None = None
    at_key: bool = False


def first_problem(
    document: Any, schema: Mapping[str, Any], *parts: Mapping[str, Any]
) -> Problem | None:
    """Return the first problem of a document, in the order of its text; None if it is valid.

    `parts` are other schemas that the schema refers to, by their `$id`.

    >>> first_problem({"delay": 5}, {"properties": {"delay": {"type": "string"}}})
    Problem(path=('delay',), message='delay is not a string', hint=None, at_key=False)
    """
    from referencing import Registry, Resource

    known: Registry[Any] = Registry()
    for each in parts:
        known = Resource.from_contents(each) @ known
    errors = _validator_class()(schema, registry=known).iter_errors(document)
    problems = [problem for error in errors for problem in _problems(error, ())]
    return min(problems, key=lambda problem: _position(document, problem), default=None)


@cache
def _validator_class() -> type[Validator]:
    from jsonschema import Draft202012Validator, validators

    # TOML has NaN; JSON does not.
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "number", lambda _, value: _is_number(value) and not math.isnan(value)
    )
    made: type[Validator] = validators.extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, {"if": _if, "pattern": _pattern}, type_checker=types
    )
    return made


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _if(
    validator: Validator, condition: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    holds, wanted = (validator.evolve(schema=part) for part in (condition, schema["then"]))
    if holds.is_valid(instance) and not wanted.is_valid(instance):
        yield ValidationError(schema["$comment"])


def _pattern(
    _: Validator, pattern: str, instance: object, _schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    # `$` in JSON Schema is the end of the text; Python's also matches before a last line feed.
    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield ValidationError("is not of the right form")


def _position(document: object, problem: Problem) -> tuple[int, ...]:
    """Return the place of a problem in the text; that of a table is after those of its keys."""
    found = []
    value: Any = document
    for part in problem.path:
        if isinstance(value, dict) and part in value:
            found.append(list(value).index(part))
            value = value[part]
        elif isinstance(value, list) and isinstance(part, int):
            found.append(part)
            value = value[part]
    is_whole = isinstance(value, dict | list) and not problem.at_key
    return (*found, _AFTER_ALL_KEYS) if is_whole else tuple(found)


def _problems(error: ValidationError, above: KeyPath) -> Iterator[Problem]:
    value: Any = error.instance
    rule: Any = error.validator_value
    is_key = "propertyNames" in error.schema_path
    path = (*above, *error.path, value) if is_key else (*above, *error.path)
    schema: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
    meant = schema.get("description")
    name = str(path[-1]) if path else "the file"
    match error.validator:
        case "type":
            what = _ARTICLES.get(rule, f"a {rule}")
            yield Problem(path, f"{name} is not {what}", _hint(meant), is_key)
        case "enum" | "const":
            allowed = rule if error.validator == "enum" else [rule]
            yield Problem(path, f"{name} is {_show(value)}", _choices(value, allowed), is_key)
        case "pattern":
            what = meant or "of the right form"
            yield Problem(path, f"{name} is not {what}: {_show(value)}", at_key=is_key)
        case "minLength" | "minItems" | "minProperties":
            yield Problem(path, f"{name} is empty", at_key=is_key)
        case "minimum":
            yield Problem(path, f"{name} is {value}, less than {rule}", at_key=is_key)
        case "exclusiveMinimum":
            yield Problem(path, f"{name} is {value}, and must be above {rule}", at_key=is_key)
        case "maximum":
            yield Problem(path, f"{name} is {value}, more than {rule}", at_key=is_key)
        case "required":
            known = schema.get("properties", {})
            for key in rule:
                if key not in value:
                    hint = _hint(known.get(key, {}).get("description"))
                    yield Problem(path, f"{name} has no {key}", hint)
        case "additionalProperties" if rule is False:
            known = schema.get("properties", {})
            for key in value:
                if key not in known:
                    hint = _choices(key, known)
                    yield Problem((*path, key), f"unknown key {_show(key)}", hint, at_key=True)
        case "anyOf" | "oneOf":
            yield from _nearest(error, path, name, _hint(meant))
        case _:
            yield Problem(path, error.message, at_key=is_key)


def _nearest(
    error: ValidationError, path: KeyPath, name: str, hint: str | None
) -> Iterator[Problem]:
    """Yield the problems of the branch that was meant: of the same kind, or with the same keys."""
    value: Any = error.instance
    branches: Any = error.validator_value
    tables = [branch.get("properties", {}) for branch in branches]
    kinds = {keys["kind"]["const"]: i for i, keys in enumerate(tables) if "kind" in keys}
    meant = None
    if kinds and isinstance(value, str):
        kind = value if value in kinds else next(iter(kinds))
        hint = f'Write {name} = {{ kind = "{kind}", ... }}. {_choices(None, kinds)}'
        yield Problem(path, f"{name} is {_show(value)}, not a table with a kind", hint)
        return
    if isinstance(value, dict):
        kind = value.get("kind")
        if isinstance(kind, str) and kind in kinds:
            meant = kinds[kind]
        elif kinds and "kind" in value:
            yield Problem((*path, "kind"), f"unknown kind {_show(kind)}", _choices(kind, kinds))
            return
        elif kinds:
            yield Problem(path, f"{name} has no kind", _choices(None, kinds))
            return
        else:
            meant = next((i for i, keys in enumerate(tables) if value.keys() & keys.keys()), None)
    if meant is None:
        yield Problem(path, f"{name} is {_show(value)}", hint)
        return
    for each in error.context or ():
        if each.schema_path[0] == meant:
            yield from _problems(each, path)


def _show(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _hint(meant: str | None) -> str | None:
    # A sentence describes a key; a fragment describes its values.
    return meant if meant is None or meant.endswith(".") else f"Expected: {meant}."


def _choices(value: object, allowed: Mapping[str, Any] | list[Any]) -> str:
    names = [str(one) for one in allowed]
    near = difflib.get_close_matches(str(value), names, n=1) if isinstance(value, str) else []
    if near:
        return f'Did you mean "{near[0]}"?'
    return f"Choose one of: {', '.join(names)}."
