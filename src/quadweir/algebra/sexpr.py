"""Brackets and atoms: the layout and the reading of the text form, without any meaning.

A form is a list of atoms (strings without blanks, or quoted) and forms.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, TypeAlias

from quadweir.errors import QuerySyntaxError
from quadweir.spans import Span

Form: TypeAlias = "str | list[Form]"

WIDTH: Final = 96
_ATOM: Final = re.compile(
    r'\s+|(?P<bracket>[()])|(?P<atom><[^<>\s]*>|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^>]*>)?|[^\s()"]+)',
    re.DOTALL,
)


def flat(form: Form) -> str:
    """Write a form in one line.

    >>> flat(["join", ["bgp"], ["bgp"]])
    '(join (bgp) (bgp))'
    """
    if isinstance(form, str):
        return form
    return f"({' '.join(map(flat, form))})"


def layout(form: Form, blocks: Collection[str], indent: int = 0) -> str:
    """Write a form for people: a form whose head is in `blocks` has a line of its own.

    >>> print(layout(["filter", ["=", "?x", "1"], ["bgp"]], blocks={"filter", "bgp"}))
    (filter (= ?x 1)
      (bgp))
    """
    if isinstance(form, str):
        return form
    line = flat(form)
    if indent + len(line) <= WIDTH and not any(_is_block(part, blocks) for part in form):
        return line
    text = "("
    inline = True
    for index, part in enumerate(form):
        piece = flat(part)
        column = indent + len(text) - text.rfind("\n") - 1
        # Parts before the first block stay on the line of the head; the rest goes below.
        holds_block = _is_block(part, blocks)
        inline = inline and not holds_block and (index == 0 or column + len(piece) < WIDTH)
        if inline:
            text += piece if index == 0 else f" {piece}"
        else:
            below = indent + 2
            text += f"\n{' ' * below}{layout(part, blocks, below)}"
    return f"{text})"


def _is_block(form: Form, blocks: Collection[str]) -> bool:
    return isinstance(form, list) and (
        (bool(form) and isinstance(form[0], str) and form[0] in blocks)
        or any(_is_block(part, blocks) for part in form)
    )


def parse_form(text: str) -> Form:
    """Read one form.

    >>> parse_form('(extend ?x "a b"@en (bgp))')
    ['extend', '?x', '"a b"@en', ['bgp']]
    """
    stack: list[list[Form]] = [[]]
    place = 0
    while place < len(text):
        match = _ATOM.match(text, place)
        if match is None:
            raise _error(text, place, f"unexpected {text[place]!r} in a query tree")
        place = match.end()
        if match["atom"] is not None:
            stack[-1].append(match["atom"])
        elif match["bracket"] == "(":
            stack.append([])
        elif match["bracket"] == ")":
            if len(stack) == 1:
                raise _error(text, match.start(), "a bracket closes that was not opened")
            done = stack.pop()
            stack[-1].append(done)
    if len(stack) > 1:
        raise _error(text, len(text), "a bracket is not closed")
    if len(stack[0]) != 1:
        raise _error(text, 0, f"a query tree is one form, and here are {len(stack[0])}")
    return stack[0][0]


def _error(text: str, place: int, message: str) -> QuerySyntaxError:
    line = text.count("\n", 0, place) + 1
    column = place - (text.rfind("\n", 0, place) + 1) + 1
    return QuerySyntaxError(message, span=Span(line, column))
