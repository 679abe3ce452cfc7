"""The places of keys and values in a TOML text, which tomllib does not report.

tomllib has already accepted the text, so the scanner does not check it: it skips values and does
not read them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, final

from quadweir.spans import Span

KeyPath = tuple[str | int, ...]

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRINGS: Final = (
    re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}', re.DOTALL),
    re.compile(r"'''.*?'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
_SCALAR: Final = re.compile(r"[^,\]}#\n]*")
_KEY_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_SHORT: Final = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}


@final
@dataclass(frozen=True, slots=True)
class Place:
    """The places of a key and its value; for a table, both are the key in its header."""

    key: Span
    value: Span


def locate(text: str, source: str | None = None) -> dict[KeyPath, Place]:
    r"""Return the places of a valid TOML text, by the path of keys and list indexes.

    >>> locate('[a."b.c"]\nd = [1, 2]')[("a", "b.c", "d", 1)].value.column
    9
    """
    scanner = _Scanner(text, source)
    scanner.document()
    return scanner.places


class _Scanner:
    def __init__(self, text: str, source: str | None) -> None:
        self.text = text
        self.source = source
        self.at = 0
        self.places: dict[KeyPath, Place] = {}
        self._line_starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self._tables: dict[KeyPath, int] = {}

    def document(self) -> None:
        table: KeyPath = ()
        self._blank()
        while self.at < len(self.text):
            start = self.at
            if self.text.startswith("[[", start):
                self.at += 2
                names = self._key()
                self.at = self.text.index("]]", self.at) + 2
                table = self._entered(names[:-1])
                table = (*table, names[-1])
                index = self._tables.get(table, -1) + 1
                self._tables[table] = index
                table = (*table, index)
                self._note(table, start, start, self.at)
            elif self.text[start] == "[":
                self.at += 1
                names = self._key()
                self.at = self.text.index("]", self.at) + 1
                table = self._entered(names)
                self._note(table, start, start, self.at)
            else:
                self._pair(table)
            self._blank()

    def _entered(self, names: list[str]) -> KeyPath:
        """Return the path of a header; a list of tables means its last table so far."""
        path: KeyPath = ()
        for name in names:
            path = (*path, name)
            if path in self._tables:
                path = (*path, self._tables[path])
        return path

    def _pair(self, table: KeyPath) -> None:
        start = self.at
        names = self._key()
        self.at = self.text.index("=", self.at) + 1
        self._blank()
        value = self.at
        path = (*table, *names)
        self._value(path)
        for depth in range(len(table) + 1, len(path) + 1):
            self._note(path[:depth], start, value, self.at)

    def _key(self) -> list[str]:
        names = []
        while True:
            self._blank()
            if match := _BARE_KEY.match(self.text, self.at):
                names.append(match[0])
                self.at = match.end()
            else:
                names.append(self._quoted_key())
            self._blank()
            if self.text[self.at : self.at + 1] != ".":
                return names
            self.at += 1

    def _quoted_key(self) -> str:
        start = self.at
        self._string()
        inside = self.text[start + 1 : self.at - 1]
        if self.text[start] == "'":
            return inside
        return _KEY_ESCAPE.sub(
            lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else _SHORT.get(m[3], m[3]), inside
        )

    def _string(self) -> None:
        for pattern in _STRINGS:
            if match := pattern.match(self.text, self.at):
                self.at = match.end()
                return
        raise AssertionError("tomllib accepted a text that has no string here")

    def _value(self, path: KeyPath) -> None:
        opening = self.text[self.at]
        if opening in "\"'":
            self._string()
        elif opening == "[":
            self.at += 1
            self._blank()
            index = 0
            while self.text[self.at] != "]":
                item, start = (*path, index), self.at
                self._value(item)
                self._note(item, start, start, self.at)
                index += 1
                self._comma()
            self.at += 1
        elif opening == "{":
            self.at += 1
            self._blank()
            while self.text[self.at] != "}":
                self._pair(path)
                self._comma()
            self.at += 1
        else:
            match = _SCALAR.match(self.text, self.at)
            assert match is not None
            self.at += len(match[0].rstrip())

    def _comma(self) -> None:
        self._blank()
        if self.text[self.at] == ",":
            self.at += 1
            self._blank()

    def _blank(self) -> None:
        match = _BLANK.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def _note(self, path: KeyPath, key: int, value: int, end: int) -> None:
        # A dotted key or a header may name a table again; the first mention is its place.
        self.places.setdefault(path, Place(self._span(key, value), self._span(value, end)))

    def _span(self, start: int, end: int) -> Span:
        return Span(*self._line_column(start), *self._line_column(end), source=self.source)

    def _line_column(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, at)
        return line, at - self._line_starts[line - 1] + 1
