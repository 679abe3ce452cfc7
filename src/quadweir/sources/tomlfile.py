"""TOML files that a JSON Schema checks; errors have the place in the file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, Final, final

from quadweir.errors import DeclarationError
from quadweir.sources.schemacheck import Problem, first_problem
from quadweir.sources.tomlplaces import KeyPath, Place, locate
from quadweir.spans import Span

MAX_FILE_CHARACTERS: Final = 2**20


@final
@dataclass(frozen=True, slots=True)
class AllowedPaths:
    """Where the paths of a file may lead.

    Attributes:
        base: the folder that they are relative to.
        allowed: other folders that they may lead to.
        anywhere: whether they may lead anywhere.
        hint: what the author of the file can do about a path that leads elsewhere.
    """

    base: Path
    allowed: tuple[Path, ...] = ()
    anywhere: bool = False
    hint: str = "Keep data below the declarations, or allow other places by name."

    def allow(self, path: Path) -> bool:
        """Whether a path is in one of the folders. A link to a place outside counts as outside."""
        if "\0" in str(path):
            return False
        found = path.resolve()
        return self.anywhere or any(
            found.is_relative_to(each.resolve()) for each in (self.base, *self.allowed)
        )


@final
@dataclass(frozen=True, slots=True)
class TomlFile:
    """A file that its schema accepts.

    Attributes:
        document: its tables and values; dates and times are strings.
        where: where its paths may lead.
        places: the place of each key and value.
        text: its text.
    """

    document: dict[str, Any]
    where: AllowedPaths
    places: Mapping[KeyPath, Place]
    text: str

    def path(self, text: str, path: KeyPath) -> Path:
        """Return a path that the file names.

        Raises:
            DeclarationError: it may not lead there.
        """
        found = self.where.base / text
        if not self.where.allow(found):
            message = f'"{text[:80]}" leaves the folder of the declarations'
            raise self.error(path, message, self.where.hint)
        return found

    def span(self, path: KeyPath) -> Span | None:
        """Return the place of a key."""
        place = self.places.get(path)
        return place.key if place else None

    def error(self, path: KeyPath, message: str, hint: str | None = None) -> DeclarationError:
        """Return an error about a value."""
        return problem_error(Problem(path, message, hint), self.places)


def read_toml(
    path: Path, schema: Mapping[str, Any], where: AllowedPaths, *parts: Mapping[str, Any]
) -> TomlFile:
    """Read a file, as `parse_toml` reads its text.

    Raises:
        DeclarationError: the file cannot be read or is not valid; the error has the place.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise DeclarationError(f"cannot read {path}: {reason}", hint="Check the path.") from error
    return parse_toml(text, schema, where, *parts, source=str(path))


def parse_toml(
    text: str,
    schema: Mapping[str, Any],
    where: AllowedPaths,
    *parts: Mapping[str, Any],
    source: str | None = None,
) -> TomlFile:
    """Read a text and check it.

    Args:
        text: the text.
        schema: its JSON Schema.
        where: where its paths may lead.
        parts: other schemas that the schema refers to, by their `$id`.
        source: the name of the file, for errors.

    Raises:
        DeclarationError: the text is not valid; the error has the place.
    """
    if len(text) > MAX_FILE_CHARACTERS:
        raise DeclarationError(f"more than {MAX_FILE_CHARACTERS} characters of declarations")
    try:
        document = tomllib.loads(text)
        text = text.replace("\r\n", "\n")
        places = locate(text, source)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(error), text, source) from None
    except RecursionError:
        raise DeclarationError("the declarations are nested too deeply") from None
    document = _without_moments(document)
    problem = first_problem(document, schema, *parts)
    if problem is not None:
        raise problem_error(problem, places)
    return TomlFile(document, where, places, text)


def problem_error(problem: Problem, places: Mapping[KeyPath, Place]) -> DeclarationError:
    """Return a problem as an error, with the nearest place that is known."""
    path = problem.path
    while path and path not in places:
        path = path[:-1]
    place = places.get(path)
    exact = path == problem.path and not problem.at_key
    span = (place.value if exact else place.key) if place else None
    return DeclarationError(problem.message, hint=problem.hint, span=span)


def _without_moments(value: Any) -> Any:
    """Return the document with TOML's dates and times as strings, which the schema expects."""
    match value:
        case dict():
            return {key: _without_moments(item) for key, item in value.items()}
        case list():
            return [_without_moments(item) for item in value]
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            return value


def _syntax_error(message: str, text: str, source: str | None) -> DeclarationError:
    match = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    if match is None:
        return DeclarationError(f"not TOML: {message}", span=Span(1, 1, source=source))
    if match[1]:
        span = Span(int(match[1]), int(match[2]), source=source)
    else:
        lines = text.split("\n")
        span = Span(len(lines), len(lines[-1]) + 1, source=source)
    what = message[: match.start()]
    return DeclarationError(f"not TOML: {what[:1].lower()}{what[1:]}", span=span)
