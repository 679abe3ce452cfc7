"""XPath by lxml, with regular expressions in linear time and limited work.

lxml gives XPath the functions of EXSLT, and matches with Python's `re`, which backtracks; here RE2
matches. A path that walks the document several times (`//*//*`) is evaluated only below a limit on
the number of combinations, because libxml2 cannot be stopped once it has begun.

Spec: http://exslt.org/regexp/
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from lxml import etree

from quadweir.errors import LimitError
from quadweir.mapping.functions.patterns import compiled

MOST_COMBINATIONS: Final = 1_000_000_000
"""How many combinations of nodes a path may try in one document or element."""

_EXSLT: Final = "http://exslt.org/regular-expressions"
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_BELOW: Final = "descendant|descendant-or-self|ancestor|ancestor-or-self"
_ASIDE: Final = "following|preceding|following-sibling|preceding-sibling"
# A step that may look at the whole document, and the local name that it asks for. It looks at all
# nodes, whatever their names, if it goes aside or starts at the root: `//` after a bracket or blank.
_FAR: Final = re.compile(
    rf"(?:(?P<all>\b(?:{_ASIDE})\s*::|(?<![\w.\-*)\]])//)|//|\b(?:{_BELOW})\s*::)"
    r"\s*(?:[\w.\-]+:(?!:))?(?P<name>[\w.\-]+|\*)?"
)


def compile_xpath(path: str, namespaces: Mapping[str, str]) -> Callable[[Any], Any]:
    """A function that evaluates a path for an element.

    The function that is returned raises a LimitError if there are too many combinations.
    """
    xpath: Callable[[Any], Any] = etree.XPath(
        path,
        namespaces=dict(namespaces),
        extensions=_FUNCTIONS,
        regexp=False,
        smart_strings=False,
    )
    wanted = [
        _Step(found["name"] or "*", looks_at_all=found["all"] is not None)
        for found in _FAR.finditer(_QUOTED.sub("''", path))
    ]
    if len(wanted) < 2:
        return xpath

    def limited(element: Any) -> Any:
        _check(path, wanted, element)
        return xpath(element)

    return limited


class _Step(NamedTuple):
    """A step that goes far: the name that it asks for, and whether it looks at all nodes for it."""

    name: str
    looks_at_all: bool


def _check(path: str, wanted: list[_Step], element: Any) -> None:
    # A reference may look above its element.
    root = element.getroot() if hasattr(element, "getroot") else element
    if path.startswith("/") or "::" in path or ".." in path:
        root = root.getroottree().getroot()
    counts = Counter(etree.QName(each).localname for each in root.iter(etree.Element))
    counts["*"] = counts.total()
    # A step is taken from each node found before it, also if it then finds nothing itself.
    before, combinations = 1, 0
    for name, looks_at_all in wanted:
        # What is no element (text(), node()) is counted as if each were.
        found = counts[name] if name in counts else counts["*"] * _is_test(name)
        # To go through the document once is no combination.
        looked_at = counts["*"] if looks_at_all and before > 1 else found
        combinations = max(combinations, before * looked_at)
        before *= found
    if combinations > MOST_COMBINATIONS:
        raise LimitError(
            f"the XPath {path[:200]} may try {combinations:,} combinations of nodes, "
            f"and the limit is {MOST_COMBINATIONS:,}",
            detail="Each // visits everything below each node found before it.",
            hint="Name the elements that lead there instead.",
        )


def _is_test(name: str) -> bool:
    """Whether a step asks for a kind of node, not for a name."""
    return name in {"node", "text", "."}


def _flagged(pattern: str, flags: str) -> Any:
    return compiled(f"(?i){pattern}" if "i" in flags else pattern)


def _string(value: Any) -> str:
    """The string of an argument; for a node set, that of its first node."""
    if isinstance(value, list):
        return _string(value[0]) if value else ""
    if isinstance(value, etree._Element):
        return "".join(value.itertext())
    return str(value)


def _test(_: Any, text: Any, pattern: Any, flags: Any = "") -> bool:
    return bool(_flagged(_string(pattern), _string(flags)).search(_string(text)))


def _match(_: Any, text: Any, pattern: Any, flags: Any = "") -> list[Any]:
    found = _flagged(_string(pattern), _string(flags))
    if "g" in _string(flags):
        texts = [each.group(0) for each in found.finditer(_string(text))]
    else:
        first = found.search(_string(text))
        texts = [] if first is None else [first.group(0), *(one or "" for one in first.groups())]
    elements = [etree.Element("match") for _ in texts]
    for element, one in zip(elements, texts, strict=True):
        element.text = one
    return elements


def _replace(_: Any, text: Any, pattern: Any, flags: Any, replacement: Any) -> str:
    found = _flagged(_string(pattern), _string(flags))
    # The replacement is text: EXSLT has no references to groups.
    return str(
        found.sub(
            lambda _: _string(replacement), _string(text), count=0 if "g" in _string(flags) else 1
        )
    )


_FUNCTIONS: Final = {
    (_EXSLT, "test"): _test,
    (_EXSLT, "match"): _match,
    (_EXSLT, "replace"): _replace,
}
