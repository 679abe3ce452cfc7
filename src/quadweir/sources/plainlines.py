"""A compiled look at a block of timed lines: where each line, its time and its terms are.

Nearly all lines in the world are plain: a time, then a statement in its canonical spelling. Such a line
needs no parser, only to be checked and cut, and this module goes over its bytes once. It knows less
than the grammar on purpose. What it does not know is reported as odd and parsed by `ntriples.py`,
so a mistake here could only ever be to call a line plain, and that is what the tests look for.

Spec: https://www.w3.org/TR/rdf12-n-quads/#canonical-quads
"""

from __future__ import annotations

from string import ascii_letters, ascii_lowercase, digits
from typing import Any, Final, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quadweir.sources.plaintimes import NO_TIME, Bytes, has_extra_zero, instant, milliseconds
from quadweir.vocab import RDF, XSD

Ints: TypeAlias = NDArray[np.int64]
Lines: TypeAlias = NDArray[np.void]

LINE: Final = np.dtype(
    [
        ("start", np.int64),
        ("statement", np.int64),
        ("end", np.int64),
        ("time", np.int64),
        ("predicate", np.int64),
        ("object", np.int64),
        ("graph", np.int64),
        ("kind", np.int64),
        ("usual", np.int64),
    ]
)
"""A line, by places in its block: where it and its statement begin; where it ends, without its line
end; its time; where the predicate, the object and the graph name begin (0: it has none); its kind;
whether the text before the statement is the time in milliseconds and one space."""

BLANK: Final = 0
"""White space or a comment."""
UNTIMED: Final = 1
"""It does not begin with a time."""
ODD: Final = 2
"""It has a time; its statement takes the thorough way."""
PLAIN: Final = 3
"""It has a time and a statement in its canonical spelling."""

_PADDING: Final = b"\n" + b"\0" * 63
"""Looking ahead ends here: no loop passes a line feed, and no time is longer than the rest."""
_LONGEST: Final = 2**20
"""Longer lines take the thorough way, which has a limit of its own."""

_LETTER, _SCHEME, _IRI, _QUOTED, _LABEL_START, _LABEL, _LOWER, _TAG = (
    np.uint8(1 << bit) for bit in range(8)
)
_PRINTABLE: Final = "".join(map(chr, range(0x20, 0x7F)))


def _byte_classes() -> Bytes:
    found = np.zeros(256, dtype=np.uint8)
    for flag, characters in (
        (_LETTER, ascii_letters),
        (_SCHEME, ascii_letters + digits + "+.-"),
        (_IRI, "".join(sorted(set(_PRINTABLE) - set(' <>"{}|^`\\')))),
        (_QUOTED, "".join(sorted(set(_PRINTABLE) - set('"\\')))),
        (_LABEL_START, ascii_letters + digits + "_:"),
        (_LABEL, ascii_letters + digits + "_:.-"),
        (_LOWER, ascii_lowercase),
        (_TAG, ascii_lowercase + digits),
    ):
        found[np.frombuffer(characters.encode(), dtype=np.uint8)] |= flag
    return found


_CLASSES: Final = _byte_classes()
_STRING: Final = np.frombuffer(f"<{XSD.string}>".encode(), dtype=np.uint8)
_LANG_STRING: Final = np.frombuffer(f"<{RDF.langString}>".encode(), dtype=np.uint8)
_ESCAPED: Final = np.frombuffer(b'tbnrf"\\', dtype=np.uint8)

_NEWLINE, _RETURN, _SPACE, _GAP, _HASH, _DOT = 10, 13, 32, 9, 35, 46
_LESS, _GREATER, _QUOTE, _BACKSLASH, _COLON, _AT, _CARET = 60, 62, 34, 92, 58, 64, 94
_UNDERSCORE, _MINUS = 95, 45
_BEYOND_ASCII: Final = 0x80
_MOST_TAGS: Final = 9
_LONGEST_TAG: Final = 8


def look_at(block: bytes) -> tuple[Bytes, Lines]:
    """Look at whole lines of UTF-8; gives the bytes, with padding, and what was found of each line."""
    data = np.frombuffer(block + _PADDING, dtype=np.uint8)
    count = block.count(b"\n") + (not block.endswith(b"\n"))
    lines = np.zeros(count, dtype=LINE)
    _look(data, len(block), lines)
    return data, lines


def cut_out(data: Bytes, begins: Ints, ends: Ints) -> tuple[NDArray[np.int32], Bytes]:
    """Copy pieces one after another; gives where each begins and the bytes, as Arrow has strings."""
    sizes = ends - begins
    # Compiled code checks no bounds, so a wrong place must not get that far.
    assert sizes.min(initial=0) >= 0
    offsets = np.zeros(len(begins) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    copied = np.empty(int(offsets[-1]), dtype=np.uint8)
    _copy(data, np.ascontiguousarray(begins), offsets, copied)
    return offsets, copied


def share_graphs(data: Bytes, lines: Lines) -> NDArray[np.int8]:
    """Tell which lines go on with the element of the line before: 1 yes, 0 no, -1 if one is odd."""
    found = np.zeros(len(lines), dtype=np.int8)
    _share(data, lines, found)
    return found


@njit(cache=True)  # type: ignore[untyped-decorator]
def _look(data: Bytes, size: int, lines: Lines) -> None:
    at = 0
    for number in range(len(lines)):
        line = lines[number]
        line.start = at
        line.statement = at
        line.kind = UNTIMED
        gap = at
        while data[gap] != _SPACE and data[gap] != _GAP and data[gap] != _NEWLINE:
            gap += 1
        # A file may end in a time and a gap, without a line end; that is no time before a statement.
        if gap > at and data[gap] != _NEWLINE and gap < size - 1:
            time = milliseconds(data, at, gap)
            is_number = time != NO_TIME
            if not is_number:
                time = instant(data, at, gap)
            if time != NO_TIME:
                begin = gap + 1
                while data[begin] == _SPACE or data[begin] == _GAP:
                    begin += 1
                line.time = time
                line.statement = begin
                line.kind = ODD
                one_space = begin == gap + 1 and data[gap] == _SPACE
                line.usual = is_number and one_space and not has_extra_zero(data, at, gap)
                end = _statement(data, begin, line)
                after = end
                while data[after] == _RETURN:
                    after += 1
                if end and data[after] == _NEWLINE and after - at <= _LONGEST:
                    line.kind = PLAIN
                    line.end = end
                    at = after + 1
                    continue
        stop = gap
        while data[stop] != _NEWLINE:
            stop += 1
        end = stop
        while end > at and data[end - 1] == _RETURN:
            end -= 1
        line.end = end
        if line.kind == UNTIMED and _is_blank(data, at, end):
            line.kind = BLANK
        at = stop + 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _is_blank(data: Bytes, at: int, end: int) -> bool:
    while at < end and (data[at] == _SPACE or data[at] == _GAP or data[at] == _RETURN):
        at += 1
    return at == end or data[at] == _HASH


@njit(cache=True)  # type: ignore[untyped-decorator]
def _statement(data: Bytes, at: int, line: Any) -> int:
    """Where a plain statement ends, its places noted in `line`; 0 if it is odd."""
    at = _resource(data, at)
    if not at or data[at] != _SPACE or data[at + 1] != _LESS:
        return 0
    line.predicate = at + 1
    at = _iri(data, at + 1)
    if not at or data[at] != _SPACE:
        return 0
    line.object = at + 1
    at = _literal(data, at + 1) if data[at + 1] == _QUOTE else _resource(data, at + 1)
    if not at or data[at] != _SPACE:
        return 0
    line.graph = 0
    if data[at + 1] != _DOT:
        line.graph = at + 1
        at = _resource(data, at + 1)
        if not at or data[at] != _SPACE or data[at + 1] != _DOT:
            return 0
    return at + 2


@njit(cache=True)  # type: ignore[untyped-decorator]
def _resource(data: Bytes, at: int) -> int:
    if data[at] == _LESS:
        end: int = _iri(data, at)
        return end
    if data[at] != _UNDERSCORE or data[at + 1] != _COLON:
        return 0
    at += 2
    if not _CLASSES[data[at]] & _LABEL_START:
        return 0
    while _CLASSES[data[at]] & _LABEL:
        at += 1
    return 0 if data[at - 1] == _DOT else at


@njit(cache=True)  # type: ignore[untyped-decorator]
def _iri(data: Bytes, at: int) -> int:
    at += 1
    if not _CLASSES[data[at]] & _LETTER:
        return 0
    while _CLASSES[data[at]] & _SCHEME:
        at += 1
    if data[at] != _COLON:
        return 0
    at += 1
    while True:
        while _CLASSES[data[at]] & _IRI:
            at += 1
        if data[at] == _GREATER:
            return at + 1
        if data[at] < _BEYOND_ASCII or _is_no_character(data, at):
            return 0
        # The controls from U+0080 to U+009F.
        if data[at] == 0xC2 and data[at + 1] < 0xA0:
            return 0
        at += 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _is_no_character(data: Bytes, at: int) -> bool:
    """Tell whether U+FFFE or U+FFFF begins here."""
    return bool(data[at] == 0xEF and data[at + 1] == 0xBF and data[at + 2] >= 0xBE)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _literal(data: Bytes, at: int) -> int:
    at += 1
    while True:
        while _CLASSES[data[at]] & _QUOTED:
            at += 1
        byte = data[at]
        if byte == _QUOTE:
            break
        if byte == _BACKSLASH:
            known = False
            for escaped in _ESCAPED:
                known = known or data[at + 1] == escaped
            if not known:
                return 0
            at += 1
        elif byte < _BEYOND_ASCII or _is_no_character(data, at):
            return 0
        at += 1
    at += 1
    if data[at] == _AT or data[at] == _CARET:
        end: int = _language(data, at) if data[at] == _AT else _datatype(data, at)
        return end
    return at


@njit(cache=True)  # type: ignore[untyped-decorator]
def _datatype(data: Bytes, at: int) -> int:
    if data[at + 1] != _CARET or data[at + 2] != _LESS:
        return 0
    # Written out, these two are not how the literal is spelled.
    if _begins(data, at + 2, _STRING) or _begins(data, at + 2, _LANG_STRING):
        return 0
    end: int = _iri(data, at + 2)
    return end


@njit(cache=True)  # type: ignore[untyped-decorator]
def _begins(data: Bytes, at: int, word: Bytes) -> bool:
    place = 0
    while place < len(word) and data[at + place] == word[place]:
        place += 1
    return place == len(word)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _language(data: Bytes, at: int) -> int:
    allowed = _LOWER
    for _ in range(1 + _MOST_TAGS):
        first = at + 1
        at = first
        while _CLASSES[data[at]] & allowed:
            at += 1
        if at == first or at - first > _LONGEST_TAG:
            return 0
        if data[at] != _MINUS:
            return at
        allowed = _TAG
    return 0


@njit(cache=True)  # type: ignore[untyped-decorator]
def _copy(data: Bytes, begins: Ints, offsets: NDArray[np.int32], copied: Bytes) -> None:
    for number in range(len(begins)):
        begin = begins[number]
        first = offsets[number]
        for place in range(offsets[number + 1] - first):
            copied[first + place] = data[begin + place]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _share(data: Bytes, lines: Lines, found: NDArray[np.int8]) -> None:
    for number in range(1, len(lines)):
        line, before = lines[number], lines[number - 1]
        if line.kind < ODD or before.kind < ODD or line.time != before.time:
            continue
        if line.kind == ODD or before.kind == ODD:
            found[number] = -1
            continue
        size = line.end - line.graph
        if line.graph == 0 or before.graph == 0 or size != before.end - before.graph:
            continue
        place = 0
        while place < size and data[line.graph + place] == data[before.graph + place]:
            place += 1
        found[number] = place == size
