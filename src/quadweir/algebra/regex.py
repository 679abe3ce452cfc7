r"""XPath regular expressions for REGEX and REPLACE, matched in linear time.

Patterns and subjects both come from outside, and Python's `re` backtracks: `(a+)+$` on thirty
letters would stop a query. RE2 (the `google-re2` package) matches in time linear in the text, with
bounded memory, so no pattern needs to be guessed harmless. Its price is small: back references,
class subtraction and Unicode blocks are refused, as an error of the expression. The dialect is
XPath's, translated here; `\b` and `\B` are let through, since every other engine has them.

Spec: https://www.w3.org/TR/xpath-functions/#regex-syntax
"""

from __future__ import annotations

import re as python_re
from functools import lru_cache
from typing import Any, Final

import re2

from quadweir.algebra.moments import ExpressionError

PATTERN_LIMIT: Final = 10_000
RESULT_LIMIT: Final = 10_000_000
_MEMORY_LIMIT: Final = 8 << 20
_FLAGS: Final = frozenset("ismxq")
_NAME_START: Final = (
    r":A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}"
    r"\x{200C}-\x{200D}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}"
    r"\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}"
)
_NAME: Final = _NAME_START + r"\-.0-9\x{B7}\x{300}-\x{36F}\x{203F}-\x{2040}"
# The meaning of a multi-character escape, as the inside of a character class.
_CLASSES: Final = {
    "d": r"\p{Nd}",
    "s": r" \t\n\r",
    "w": r"\p{L}\p{M}\p{N}\p{S}",
    "i": _NAME_START,
    "c": _NAME,
}
_SINGLE: Final = frozenset("nrt\\|.-^?*+{}()[]$")
_PROPERTY: Final = python_re.compile(r"\{(\^?)([A-Z][a-z]?)\}")


def translate(pattern: str, *, ignore_space: bool = False) -> str:
    r"""Turn an XPath regular expression into RE2's dialect.

    >>> print(translate(r"\d+"))
    [\p{Nd}]+
    """
    if len(pattern) > PATTERN_LIMIT:
        raise ExpressionError(f"a pattern may have {PATTERN_LIMIT} characters")
    out: list[str] = []
    position = 0
    in_class = False
    class_start = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "\\":
            text, position = _escape(pattern, position, in_class=in_class)
            out.append(text)
        elif in_class:
            if character == "[":
                # Also where other dialects would take it as itself: XPath reserves it.
                raise ExpressionError("a character class inside a class is not supported")
            in_class = character != "]" or position - 1 == class_start
            out.append(character)
        elif character == "[":
            in_class = True
            out.append(character)
            if pattern[position : position + 1] == "^":
                out.append("^")
                position += 1
            class_start = position
            if pattern[position : position + 1] == "]":
                raise ExpressionError("a character class must hold something")
        elif character == "(" and pattern[position : position + 1] == "?":
            if pattern[position : position + 2] != "?:":
                raise ExpressionError("XPath has no (?...) but (?:...)")
            out.append(character)
        elif ignore_space and character in " \t\n\r":
            continue
        else:
            out.append(character)
    return "".join(out)


def _escape(pattern: str, position: int, *, in_class: bool) -> tuple[str, int]:
    """Translate what follows a backslash; return it and the place after it."""
    if position >= len(pattern):
        raise ExpressionError("a pattern ends in a backslash")
    character = pattern[position]
    position += 1
    if character in _SINGLE:
        return "\\" + character, position
    if character.lower() in _CLASSES:
        inside = _CLASSES[character.lower()]
        if character.islower():
            return (inside if in_class else f"[{inside}]"), position
        if not in_class:
            return f"[^{inside}]", position
        complements = {"D": r"\P{Nd}", "W": r"\p{P}\p{Z}\p{C}", "S": r"\S"}
        if character in complements:
            return complements[character], position
    if character in "pP":
        match = _PROPERTY.match(pattern, position)
        if match is not None and not match[1]:
            return f"\\{character}{{{match[2]}}}", match.end()
    if character in "bB" and not in_class:
        return "\\" + character, position
    raise ExpressionError(f"\\{character} is not supported in a pattern")


@lru_cache(maxsize=512)
def compile_regex(pattern: str, flags: str = "") -> Any:
    """Compile an XPath regular expression; a wrong one is an `ExpressionError`.

    >>> compile_regex("b", "i").search("ABC").span()
    (1, 2)
    """
    if not _FLAGS.issuperset(flags):
        raise ExpressionError(f'"{flags}" are not flags of a regular expression')
    if "q" in flags:
        if len(pattern) > PATTERN_LIMIT:
            raise ExpressionError(f"a pattern may have {PATTERN_LIMIT} characters")
        text = re2.escape(pattern)
    else:
        text = translate(pattern, ignore_space="x" in flags)
    options = re2.Options()
    options.max_mem = _MEMORY_LIMIT
    options.log_errors = False
    options.case_sensitive = "i" not in flags
    options.dot_nl = "s" in flags
    if "m" in flags:
        text = f"(?m:{text})"
    try:
        return re2.compile(text, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise ExpressionError(f"not a regular expression: {pattern[:80]}") from error


def matches(text: str, pattern: str, flags: str = "") -> bool:
    """Whether the pattern matches somewhere in the text.

    Spec: https://www.w3.org/TR/sparql11-query/#func-regex

    >>> matches("Alice", "^ali", "i"), matches("a" * 100, "(a+)+$b")
    (True, False)
    """
    compiled = compile_regex(pattern, flags)
    try:
        return compiled.search(text) is not None
    except UnicodeEncodeError as error:
        raise ExpressionError("the text is not Unicode") from error


def replace(text: str, pattern: str, replacement: str, flags: str = "") -> str:
    r"""Replace every match; `$1` in the replacement is the first group, `\$` a dollar.

    A pattern that matches the empty string is an error, as XPath has it.
    Spec: https://www.w3.org/TR/sparql11-query/#func-replace

    >>> replace("abcb", "(b)", "[$1]")
    'a[b]c[b]'
    """
    compiled = compile_regex(pattern, flags)
    if compiled.search("") is not None:
        raise ExpressionError("the pattern of REPLACE matches the empty string")
    parts = [replacement] if "q" in flags else _read_replacement(replacement, compiled.groups)
    out: list[str] = []
    size = last = 0
    try:
        for match in compiled.finditer(text):
            piece = text[last : match.start()] + "".join(
                part if isinstance(part, str) else (match.group(part) or "") for part in parts
            )
            size += len(piece)
            if size > RESULT_LIMIT:
                raise ExpressionError(f"REPLACE may make {RESULT_LIMIT} characters")
            out.append(piece)
            last = match.end()
    except UnicodeEncodeError as error:
        raise ExpressionError("the text is not Unicode") from error
    return "".join(out) + text[last:]


def _read_replacement(replacement: str, groups: int) -> list[str | int]:
    """Cut a replacement into text and group numbers."""
    parts: list[str | int] = []
    position = 0
    while position < len(replacement):
        character = replacement[position]
        following = replacement[position + 1 : position + 2]
        if character == "\\":
            if following not in ("\\", "$"):
                raise ExpressionError("a backslash in a replacement escapes \\ or $")
            parts.append(following)
            position += 2
        elif character == "$":
            if not (following.isascii() and following.isdigit()):
                raise ExpressionError("a dollar in a replacement is followed by a digit")
            number = int(following)
            position += 2
            # XPath: as many digits as still name a group belong to the number.
            while position < len(replacement) and replacement[position] in "0123456789":
                longer = number * 10 + int(replacement[position])
                if longer > groups:
                    break
                number = longer
                position += 1
            parts.append(number if number <= groups else "")
        else:
            parts.append(character)
            position += 1
    return parts
