"""String templates: text with references in braces, and backslashes that take braces literally.

Spec: https://kg-construct.github.io/rml-core/spec/docs/#template-valued-term-map
"""

from __future__ import annotations

from dataclasses import dataclass

from quadweir.errors import MappingError

ESCAPABLE = "{}\\"


@dataclass(frozen=True, slots=True)
class TextPart:
    """Characters that a template copies."""

    text: str


@dataclass(frozen=True, slots=True)
class ReferencePart:
    """A part of a template that is filled from the record."""

    reference: str


TemplatePart = TextPart | ReferencePart


def parse_template(text: str) -> tuple[TemplatePart, ...]:
    r"""Split a template into text and references; a stray brace or backslash is an error.

    >>> parse_template("http://ex.org/{id}/x")
    (TextPart(text='http://ex.org/'), ReferencePart(reference='id'), TextPart(text='/x'))
    >>> parse_template(r"{$['\{a\}']}")
    (ReferencePart(reference="$['{a}']"),)
    """
    parts: list[TemplatePart] = []
    run: list[str] = []
    opened_at: int | None = None
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\":
            following = text[position + 1 : position + 2]
            if not following or following not in ESCAPABLE:
                raise MappingError(
                    f"template {text!r} has a backslash at character {position + 1} "
                    "that escapes nothing",
                    detail="In a template a backslash may only stand before {, } or \\.",
                    hint='Write \\\\ for a backslash; inside a Turtle string that is "\\\\\\\\".',
                )
            run.append(following)
            position += 2
            continue
        if character == "{":
            if opened_at is not None:
                raise MappingError(
                    f"template {text!r} opens a brace inside the one opened "
                    f"at character {opened_at + 1}",
                    hint="Write \\{ for a brace that belongs to the reference or the text.",
                )
            if run:
                parts.append(TextPart("".join(run)))
            run, opened_at = [], position
        elif character == "}":
            if opened_at is None:
                raise MappingError(
                    f"template {text!r} closes a brace at character {position + 1} "
                    "that was never opened",
                    hint="Write \\} for a brace that belongs to the text.",
                )
            reference = "".join(run)
            if not reference.strip():
                raise MappingError(
                    f"template {text!r} has an empty reference at character {opened_at + 1}",
                    hint="Name a column or path between the braces, or write \\{\\}.",
                )
            parts.append(ReferencePart(reference))
            run, opened_at = [], None
        else:
            run.append(character)
        position += 1
    if opened_at is not None:
        raise MappingError(
            f"template {text!r} never closes the brace opened at character {opened_at + 1}",
            hint="Close it with }, or write \\{ for a brace that belongs to the text.",
        )
    if run:
        parts.append(TextPart("".join(run)))
    return tuple(parts)


def spell_template(parts: tuple[TemplatePart, ...]) -> str:
    r"""Write parts back as a template that parses to them.

    >>> spell_template((TextPart("a{"), ReferencePart("b")))
    'a\\{{b}'
    """
    return "".join(
        _escape(part.text) if isinstance(part, TextPart) else "{" + _escape(part.reference) + "}"
        for part in parts
    )


def _escape(text: str) -> str:
    return "".join(f"\\{character}" if character in ESCAPABLE else character for character in text)
