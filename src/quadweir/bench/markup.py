"""HTML and SVG as text in which nothing from outside can become markup."""

from __future__ import annotations

import re
from html import escape
from typing import Final, final

_FORBIDDEN: Final = re.compile(
    r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_EMPTY: Final = frozenset({"meta", "link", "br", "hr"})


@final
class Markup(str):
    """Text that is markup already, made by `element` alone."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Make an element; whatever is not `Markup` is escaped, attributes of None are left out.

    An underscore at the end of an attribute's name is dropped, one inside becomes a hyphen.

    >>> element("p", "a < b", element("b", "c"), class_="x", stroke_width=1.50)
    '<p class="x" stroke-width="1.5">a &lt; b<b>c</b></p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{plain(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY:
        return Markup(f"<{name}{written}>")
    inside = "".join(each if isinstance(each, Markup) else plain(each) for each in children)
    return Markup(f"<{name}{written}>{inside}</{name}>")


def joined(*parts: Markup) -> Markup:
    """Put markup side by side."""
    return Markup("".join(parts))


def plain(text: str) -> Markup:
    r"""Escape text for content and for attributes; what no document may hold is replaced.

    >>> plain('<a href="x">\x00')
    '&lt;a href=&quot;x&quot;&gt;\ufffd'
    """
    return Markup(escape(_FORBIDDEN.sub("\ufffd", text)))


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
