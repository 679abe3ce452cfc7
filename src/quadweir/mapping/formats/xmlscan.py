"""One quick scan of a large XML file: are its records so plain that Spark can split them?

Most files are a list of records, and a record a list of elements with text. In such a file a
record ends at each of its end tags, and a child's text stands between two fixed tags. The scan is
compiled, reads every byte once, and checks all conditions: tags match, no two children of a record
have the same name, children contain only text, and there are no comments, CDATA, declarations or
references except the five that every XML has. Everything else is left to lxml.

Spec: https://www.w3.org/TR/xml/
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from string import ascii_letters, digits
from typing import IO, Any, Final, TypeAlias, final

import numpy as np
from numba import njit

from quadweir.mapping.formats.batches import RecordRow
from quadweir.mapping.formats.prescan import MOST_BYTES
from quadweir.mapping.formats.xmlfile import XmlPlan, read_elements, simple_reference

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_CHUNK: Final = 2**24
_MOST_NAMES: Final = 62
_LONGEST_NAME: Final = 64
_PADDING: Final = b"\0" * (_LONGEST_NAME + 8)
"""No XML document contains a zero byte, so looking ahead ends here."""
_MOST_HEAD: Final = 2**16
_DECLARATION: Final = re.compile(
    rb"""\s*<\?xml\s+version=["']1\.0["'](?:\s+encoding=["'](?:utf-8|us-ascii)["'])?(?:\s+standalone=["']\w+["'])?\s*\?>""",
    re.IGNORECASE,
)
_NOT_CHARACTERS: Final = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")

(
    CHILDREN,
    ATTRIBUTES,
    INNER,
    BARE,
    WITH_ATTRIBUTES,
    REFERENCES,
    UNCLEAN,
    VARIED,
    WIDTH,
    EMPTY,
    RECORDS,
) = range(11)
"""What the places of `seen` count or flag: names of children, of records' attributes and of children's,
and then what was seen at all."""


@final
@dataclass(frozen=True, slots=True)
class PlainXml:
    """The facts that Spark needs to split a file."""

    record: str
    """The record's tag as it is spelt."""
    has_attributes: bool
    """Whether all records have attributes; otherwise none has."""
    ends: tuple[str, ...]
    """The texts that may follow the name in the start tag of a child: `>`, a space, `/>`."""
    children: tuple[str, ...]
    """The tags of children, in the order in which they came first."""
    is_regular: bool
    """Whether every record has all of them, in this order."""
    found: tuple[str | None, ...]
    """For each reference the child's tag, or `@` and the attribute's name; None: it finds none."""
    has_references: bool
    """Whether some text holds `&amp;` or its like."""
    is_clean: bool
    """Whether everything is ASCII, and no value can hold a character that a literal must escape."""
    records: int
    """How many records there are."""


def look_at_xml(path: Path, plan: XmlPlan) -> PlainXml | str:
    """How Spark can split the file, or why it cannot."""
    if plan.path() is None:
        return f"the iterator {plan.iterator} is more than element names"
    for reference in plan.references:
        if simple_reference(reference) is None:
            return f"{reference} is more than a child or an attribute"
    if path.stat().st_size > MOST_BYTES:
        return "the file is too large to be looked at first"
    if plan.foreign():
        return "its prefixes are declared by the document"
    with path.open("rb") as file:
        return _look(file, plan)


def _look(file: IO[bytes], plan: XmlPlan) -> PlainXml | str:
    buffer = file.read(_CHUNK)
    tag = _record_tag(buffer, plan)
    if tag is None:
        return "its first records are not of one tag"
    opening = re.search(rb"<" + re.escape(tag) + rb"[ >]", buffer)
    assert opening is not None
    head, buffer = buffer[: opening.start()], buffer[opening.start() :]
    if head.lstrip().startswith(b"<?xml") and not _DECLARATION.match(head):
        return "it says that it is not XML 1.0 in UTF-8"
    tables = np.zeros((3, _MOST_NAMES, _LONGEST_NAME), np.uint8)
    sizes = np.zeros((3, _MOST_NAMES), np.int64)
    seen = np.zeros(11, np.int64)
    name = np.frombuffer(tag, np.uint8)
    closing = b"</" + tag + b">"
    while True:
        cut = buffer.rfind(closing)
        if cut < 0:
            return f"a record is longer than {_CHUNK >> 20} MiB"
        whole = buffer[: cut + len(closing)]
        if not _is_text(whole):
            return "it is not UTF-8"
        if not _scan(
            np.frombuffer(whole + _PADDING, np.uint8), len(whole), name, tables, sizes, seen
        ):
            return "its records are not all lists of different elements with nothing but text"
        rest = buffer[len(whole) :]
        more = file.read(_CHUNK)
        if not more:
            break
        buffer = rest + more
        if closing not in buffer:
            buffer += file.read(_CHUNK)
            if closing not in buffer:
                rest = buffer
                break
    if len(rest) > _MOST_HEAD or file.read(1):
        return "there is much behind its last record"
    return _judge(plan, head, rest, tag, tables, sizes, seen)


def _record_tag(buffer: bytes, plan: XmlPlan) -> bytes | None:
    """The tag of the first element that may be a record, as it is spelt."""
    local = plan.iterator.strip().rpartition("/")[2].rpartition(":")[2]
    found = re.search(
        rb"<((?:[A-Za-z_][\w.\-]*:)?" + re.escape(local).encode() + rb")[ >]", buffer[:_MOST_HEAD]
    )
    if found is None or len(found[1]) > _LONGEST_NAME:
        return None
    return found[1]


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return not any(one in data for one in _NOT_CHARACTERS)


def _judge(
    plan: XmlPlan,
    head: bytes,
    tail: bytes,
    tag: bytes,
    tables: Bytes,
    sizes: Ints,
    seen: Ints,
) -> PlainXml | str:
    """Let lxml read one record with everything that was seen, to find the target of each
    reference.
    """
    children, attributes, inner = (
        [tables[kind, n, : sizes[kind, n]].tobytes() for n in range(seen[kind])]
        for kind in (CHILDREN, ATTRIBUTES, INNER)
    )
    if seen[BARE] and seen[WITH_ATTRIBUTES]:
        return "some records have attributes and others have none"
    if any(one.startswith(b"xmlns") for one in attributes + inner):
        return "its records declare namespaces"
    early = [b"<" + one + end for one in children for end in (b">", b" ", b"/>")]
    if any(one in head for one in (*early, b"</" + tag + b">")):
        return "there is much before its first record"
    attribute_text = "".join(
        f' {one.decode()}="a{number}"' for number, one in enumerate(attributes)
    )
    # One child gets all attributes: only the declarations of their prefixes matter.
    own = "".join(f' {one.decode()}=""' for one in inner)
    more = [f"{children[0].decode()}{own}"] if inner else []
    starts = [*more, *(one.decode() for one in children[len(more) :])]
    body = "".join(f"<{s}>c{k}</{s.partition(' ')[0]}>" for k, s in enumerate(starts))
    record = f"<{tag.decode()}{attribute_text}>{body}</{tag.decode()}>".encode()
    rows = list(read_elements(io.BytesIO(head + record + tail), plan, None))
    if len(rows) != 1 or rows[0].values is None:
        return "what is around its records is more than their parents"
    marks = {f"c{number}": one.decode() for number, one in enumerate(children)}
    marks |= {f"a{number}": f"@{one.decode()}" for number, one in enumerate(attributes)}
    found = _found(rows[0], marks)
    if found is None:
        return "a reference finds elements of several spellings"
    return PlainXml(
        record=tag.decode(),
        has_attributes=bool(seen[WITH_ATTRIBUTES]),
        ends=(">", *([" "] if inner else []), *(["/>"] if seen[EMPTY] else [])),
        children=tuple(one.decode() for one in children),
        is_regular=not seen[VARIED],
        found=found,
        has_references=bool(seen[REFERENCES]),
        is_clean=not seen[UNCLEAN] and not seen[REFERENCES],
        records=int(seen[RECORDS]),
    )


def _found(row: RecordRow, marks: dict[str, str]) -> tuple[str | None, ...] | None:
    found: list[str | None] = []
    for values in row.values or ():
        if len(values) > 1:
            return None
        found.append(marks[values[0]] if values else None)
    return tuple(found)


# -- compiled ---------------------------------------------------------------------------------

_SPACE, _TAB, _LINE, _RETURN = map(ord, " \t\n\r")
_LESS, _GREATER, _SLASH, _EQUALS, _QUOTE, _AND, _BACKSLASH, _COLON = map(ord, '<>/="&\\:')
_DELETE: Final = 0x7F
_KNOWN: Final = np.zeros((5, 8), np.uint8)
"""`amp;` and its like, and behind each its length."""
_STARTS: Final = np.array([chr(byte) in f"{ascii_letters}_" for byte in range(256)])
_NAMES: Final = np.array([chr(byte) in f"{ascii_letters}{digits}_.-" for byte in range(256)])
_PLAIN: Final = np.array(
    [0x20 <= byte < _DELETE and chr(byte) not in '<>"&\\=' for byte in range(256)]
)
for _number, _word in enumerate((b"amp;", b"lt;", b"gt;", b"quot;", b"apos;")):
    _KNOWN[_number, : len(_word)] = np.frombuffer(_word, np.uint8)
    _KNOWN[_number, 7] = len(_word)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _name(data: Bytes, at: int) -> int:
    """The end of the name that begins at `at`; `at` if there is none."""
    if not _STARTS[data[at]]:
        return at
    while _NAMES[data[at]]:
        at += 1
    if data[at] == _COLON and _STARTS[data[at + 1]]:
        at += 1
        while _NAMES[data[at]]:
            at += 1
    return at


@njit(cache=True)  # type: ignore[untyped-decorator]
def _same(data: Bytes, at: int, other: Bytes, start: int, size: int) -> bool:
    for place in range(size):  # noqa: SIM110 - compiled code has no generators
        if data[at + place] != other[start + place]:
            return False
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _number_of(
    data: Bytes,
    start: int,
    end: int,
    guess: int,
    kind: int,
    tables: Bytes,
    sizes: Ints,
    seen: Ints,
) -> int:
    """The number of a name, a new one if needed; -1 if there are too many names or it is too
    long.
    """
    size = end - start
    is_near = guess < seen[kind] and sizes[kind, guess] == size
    if is_near and _same(data, start, tables[kind, guess], 0, size):
        return guess
    for number in range(seen[kind]):
        if sizes[kind, number] == size and _same(data, start, tables[kind, number], 0, size):
            return number
    number = seen[kind]
    if size > _LONGEST_NAME or number >= _MOST_NAMES:
        return -1
    for place in range(size):
        tables[kind, number, place] = data[start + place]
    sizes[kind, number] = size
    seen[kind] += 1
    return number


@njit(cache=True)  # type: ignore[untyped-decorator]
def _text(data: Bytes, at: int, stop: int, seen: Ints) -> int:
    """The end of a text, at `stop`; -1 if the text is not plain."""
    while True:
        while _PLAIN[data[at]]:
            at += 1
        byte = data[at]
        if byte == stop:
            return at
        if byte == _AND:
            size = 0
            for number in range(5):
                length = int(_KNOWN[number, 7])
                if _same(data, at + 1, _KNOWN[number], 0, length):
                    size = length
                    break
            if size == 0:
                return -1
            seen[REFERENCES] = 1
            at += 1 + size
            continue
        if byte in (_LESS, _GREATER):
            return -1
        if byte == _EQUALS and stop == _QUOTE:
            return -1  # A value that ends in ` name=` would look like an attribute.
        if byte < 0x20:
            # In attributes these become spaces; a carriage return becomes a line's end.
            if stop == _QUOTE or byte not in (_TAB, _LINE):
                return -1
            seen[UNCLEAN] = 1
        elif byte in (_QUOTE, _BACKSLASH) or byte >= _DELETE:
            seen[UNCLEAN] = 1
        at += 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _skip(data: Bytes, at: int) -> int:
    while True:
        byte = data[at]
        if byte not in (_SPACE, _LINE, _TAB, _RETURN):
            return at
        at += 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _attributes(data: Bytes, at: int, kind: int, tables: Bytes, sizes: Ints, seen: Ints) -> int:
    """The end of a start tag's attributes; -1 if they are not plain."""
    used = np.int64(0)
    guess = 0
    while data[at] == _SPACE:
        start = at + 1
        at = _name(data, start)
        if at == start or data[at] != _EQUALS or data[at + 1] != _QUOTE:
            return -1
        number = _number_of(data, start, at, guess, kind, tables, sizes, seen)
        if number < 0 or used >> number & 1:
            return -1
        used |= np.int64(1) << number
        guess = number + 1
        at = _text(data, at + 2, _QUOTE, seen)
        if at < 0:
            return -1
        at += 1
    return at


@njit(cache=True)  # type: ignore[untyped-decorator]
def _scan(data: Bytes, end: int, tag: Bytes, tables: Bytes, sizes: Ints, seen: Ints) -> bool:
    """Scan whole records; return whether all are plain, and record their content in `seen`."""
    at = 0
    while True:
        at = _skip(data, at)
        if at >= end:
            return at == end
        if data[at] != _LESS or not _same(data, at + 1, tag, 0, tag.size):
            return False
        at += 1 + tag.size
        seen[RECORDS] += 1
        if data[at] == _SPACE:
            seen[WITH_ATTRIBUTES] = 1
            at = _attributes(data, at, ATTRIBUTES, tables, sizes, seen)
            if at < 0:
                return False
        else:
            seen[BARE] = 1
        if data[at] != _GREATER:
            return False
        at += 1
        used = np.int64(0)
        place = 0
        while True:
            at = _skip(data, at)
            if data[at] != _LESS:
                return False
            start = at + 1
            if data[start] == _SLASH:
                break
            at = _name(data, start)
            if at == start:
                return False
            size = at - start
            number = _number_of(data, start, at, place, CHILDREN, tables, sizes, seen)
            if number < 0 or used >> number & 1:
                return False
            if number != place:
                seen[VARIED] = 1
            used |= np.int64(1) << number
            place += 1
            if data[at] == _SPACE:
                at = _attributes(data, at, INNER, tables, sizes, seen)
                if at < 0:
                    return False
            if data[at] == _SLASH and data[at + 1] == _GREATER:
                seen[EMPTY] = seen[VARIED] = 1
                at += 2
                continue
            if data[at] != _GREATER:
                return False
            at = _text(data, at + 1, _LESS, seen)
            if at < 0 or data[at + 1] != _SLASH or not _same(data, at + 2, data, start, size):
                return False
            at += 2 + size
            if data[at] != _GREATER:
                return False
            at += 1
        if seen[WIDTH] == 0:
            seen[WIDTH] = place + 1
        elif seen[WIDTH] != place + 1:
            seen[VARIED] = 1
        at = start + 1
        if not _same(data, at, tag, 0, tag.size) or data[at + tag.size] != _GREATER:
            return False
        at += tag.size + 1
