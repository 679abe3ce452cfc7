"""Brackets and atoms: the layout of the text form, without any meaning.

A form is a list of atoms (strings without blanks, or quoted) and forms.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeAlias

Sexpr: TypeAlias = "str | list[Sexpr]"

WIDTH: Final = 96


def flat(form: Sexpr) -> str:
    """Write a form in one line.

    >>> flat(["join", ["bgp"], ["bgp"]])
    '(join (bgp) (bgp))'
    """
    if isinstance(form, str):
        return form
    return f"({' '.join(map(flat, form))})"


def layout(form: Sexpr, blocks: Collection[str], indent: int = 0) -> str:
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


def _is_block(form: Sexpr, blocks: Collection[str]) -> bool:
    return isinstance(form, list) and (
        (bool(form) and isinstance(form[0], str) and form[0] in blocks)
        or any(_is_block(part, blocks) for part in form)
    )
