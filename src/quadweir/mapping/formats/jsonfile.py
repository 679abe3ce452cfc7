"""Cuts JSON documents into records without holding a whole document.

A file is a sequence of documents, so JSON Lines, concatenated JSON and one large document are read
the same way. If the iterator leads by names to an array and takes all its elements, they are cut
out one by one, and memory holds only one of them. The text of a record is a slice of the file;
Spark parses it later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, TextIO

from quadweir.errors import LimitError
from quadweir.mapping.files import is_broken
from quadweir.mapping.formats.batches import MAX_RECORD_CHARACTERS, RecordRow, bad_row
from quadweir.mapping.jsonpath import Every, ObjectMember, PathStep, select, simple_steps

_CHUNK: Final = 2**18
_BLANK: Final = " \t\n\r"


class MalformedJson(ValueError):  # noqa: N818 - a reason, caught where it can be reported
    """The text is not JSON from here on."""


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


class _Cursor:
    """A position in a text that is read as far as needed."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._held = ""
        self._at = 0
        self._dropped = 0
        self._ended = False

    @property
    def place(self) -> str:
        return f"character {self._dropped + self._at + 1}"

    def peek(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            held, at = self._held, self._at
            while at < len(held) and held[at] in _BLANK:
                at += 1
            self._at = at
            if at < len(held):
                return held[at]
            if not self._fill(_CHUNK):
                return ""

    def take(self, expected: str) -> None:
        """Step over one character."""
        if self.peek() != expected:
            raise MalformedJson(f"expected {expected}")
        self._at += 1

    def value(self) -> tuple[Any, str]:
        """Read one value; return it and its text."""
        self.peek()
        chunk = _CHUNK
        while True:
            try:
                value, end = _DECODER.raw_decode(self._held, self._at)
            except RecursionError:
                raise MalformedJson("nested too deeply") from None
            except ValueError as error:
                if not self._fill(chunk):
                    raise MalformedJson(str(error).split(":")[0].lower()) from None
            else:
                # A number that ends where the buffer does may go on.
                if end < len(self._held) or not self._fill(_CHUNK):
                    text = self._held[self._at : end]
                    self._at = end
                    return value, text
            if len(self._held) - self._at > MAX_RECORD_CHARACTERS:
                raise MalformedJson(f"longer than {MAX_RECORD_CHARACTERS} characters, or cut off")
            chunk = min(2 * chunk, MAX_RECORD_CHARACTERS)

    def excerpt(self) -> str:
        """The text at this place, for a message."""
        return self._held[self._at : self._at + 1000]

    def skip_line(self) -> bool:
        """Skip to the next line; return whether there is one."""
        while True:
            end = self._held.find("\n", self._at)
            if end >= 0:
                self._at = end + 1
                return True
            self._at = len(self._held)
            if not self._fill(_CHUNK):
                return False

    def _fill(self, size: int) -> bool:
        if self._ended:
            return False
        more = self._text.read(size)
        if not more:
            self._ended = True
            return False
        self._dropped += self._at
        self._held = self._held[self._at :] + more
        self._at = 0
        return True


def streamable(steps: Sequence[PathStep]) -> int | None:
    """How many steps lead to the array whose elements can be cut out; None if there is none.

    >>> streamable(simple_steps("$.a.b[*].c"))
    2
    """
    for number, step in enumerate(steps):
        if isinstance(step, Every):
            return number
        if not isinstance(step, ObjectMember):
            return None
    return None


def read_texts(text: TextIO, iterator: str | None) -> Iterator[RecordRow]:
    """The text of each record, for Spark to parse."""
    for place, _, piece in _records(text, iterator):
        if isinstance(piece, RecordRow):
            yield piece
        elif is_broken(piece):
            yield bad_row(place, "not in the file's encoding", piece)
        else:
            yield RecordRow(place, (piece,), weight=len(piece))


def read_values(
    text: TextIO, iterator: str | None, references: Sequence[str]
) -> Iterator[RecordRow]:
    """The values of each reference in each record."""
    for place, record, piece in _records(text, iterator):
        if isinstance(piece, RecordRow):
            yield piece
            continue
        yield evaluate(place, record, references, len(piece))


def evaluate(place: str, record: Any, references: Sequence[str], weight: int) -> RecordRow:
    """The values of each reference in one parsed record."""
    try:
        values = tuple([spell(one) for one in select(record, path)] for path in references)
    except RecursionError:
        return bad_row(place, "nested too deeply")
    except LimitError as error:
        return bad_row(place, f"{error.code}: {error.message}")
    if any(text is not None and is_broken(text) for one in values for text, _ in one):
        return bad_row(place, "half of a surrogate pair", json.dumps(record))
    return RecordRow(place, values, weight=weight)


def parse_record(text: str) -> Any:
    """Parse one message; raise `MalformedJson` with the reason if it is not JSON."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise MalformedJson("nested too deeply") from None
    except ValueError as error:
        raise MalformedJson(str(error).split(":")[0].lower()) from None


def spell(value: Any) -> tuple[str | None, str]:
    """The lexical form of a JSON value and its kind, the same as from Spark.

    >>> spell(1.5), spell(True), spell("x"), spell([1])
    (('1.5', 'double'), ('true', 'boolean'), ('x', 'string'), ('[1]', 'array'))
    """
    match value:
        case None:
            return None, "null"
        case bool():
            return ("true" if value else "false"), "boolean"
        case str():
            return value, "string"
        case int():
            return str(value), "integer"
        case float():
            return java_double(value), "double"
        case list():
            return json.dumps(value), "array"
        case _:
            return json.dumps(value), "object"


def java_double(value: float) -> str:
    """Spell a number as Java's Double.toString does.

    >>> java_double(100000.0), java_double(1e7), java_double(1.5e-05)
    ('100000.0', '1.0E7', '1.5E-5')
    """
    if value != value or value in (float("inf"), float("-inf")):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits = mantissa.lstrip("-").replace(".", "").lstrip("0")
        whole = mantissa.lstrip("-").split(".")[0]
        if whole.strip("0"):
            power = len(whole) - 1
        else:
            fraction = mantissa.split(".")[1]
            power = -(len(fraction) - len(fraction.lstrip("0")) + 1)
        digits = digits.rstrip("0") or "0"
        sign = "-" if value < 0 else ""
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _records(text: TextIO, iterator: str | None) -> Iterator[tuple[str, Any, str | RecordRow]]:
    """The place, value and text of each record, or a Row with the reason why there is none."""
    path = iterator or "$"
    steps = simple_steps(path)
    depth = streamable(steps) if steps is not None else None
    cursor = _Cursor(text)
    number = 0
    while cursor.peek():
        number += 1
        try:
            if depth is None or steps is None:
                value, piece = cursor.value()
                if steps == ():
                    yield f"record {number}", value, piece
                else:
                    for count, one in enumerate(select(value, path), 1):
                        yield f"record {number}.{count}", one, json.dumps(one, ensure_ascii=False)
            else:
                yield from _elements(cursor, steps, depth, number)
        except LimitError as error:
            yield cursor.place, None, bad_row(cursor.place, f"{error.code}: {error.message}")
        except MalformedJson as error:
            place = cursor.place
            letter = bad_row(place, f"not valid JSON: {error}", cursor.excerpt())
            yield place, None, letter
            # The text after a broken document is unreliable, unless each document is a line.
            if number > 1 or depth is None:
                if not cursor.skip_line():
                    return
            else:
                return


def _elements(
    cursor: _Cursor, steps: Sequence[PathStep], depth: int, number: int
) -> Iterator[tuple[str, Any, str | RecordRow]]:
    """Cut the elements out of the array (or object) that the first `depth` steps lead to."""
    opened = 0
    for step in steps[:depth]:
        if not _enter(cursor, step.name if isinstance(step, ObjectMember) else ""):
            _leave(cursor, opened)
            return
        opened += 1
    rest = steps[depth + 1 :]
    count = 0
    for value, piece in _children(cursor):
        if not rest:
            count += 1
            yield f"record {number}.{count}", value, piece
            continue
        for one in _follow(value, rest):
            count += 1
            yield f"record {number}.{count}", one, json.dumps(one, ensure_ascii=False)
    _leave(cursor, opened)


def _follow(value: Any, steps: Sequence[PathStep]) -> list[Any]:
    path = "$" + "".join(
        "[*]"
        if isinstance(step, Every)
        else f"['{step.name}']"
        if isinstance(step, ObjectMember)
        else f"[{step.index}]"
        for step in steps
    )
    return select(value, path)


def _enter(cursor: _Cursor, name: str) -> bool:
    """Step into the member of this name; if there is none, read the value to its end."""
    if cursor.peek() != "{":
        cursor.value()
        return False
    cursor.take("{")
    while cursor.peek() != "}":
        key, _ = cursor.value()
        cursor.take(":")
        if key == name:
            return True
        cursor.value()
        if cursor.peek() != "}":
            cursor.take(",")
    cursor.take("}")
    return False


def _leave(cursor: _Cursor, opened: int) -> None:
    """Read to the end of all open objects."""
    for _ in range(opened):
        while cursor.peek() == ",":
            cursor.take(",")
            cursor.value()
            cursor.take(":")
            cursor.value()
        cursor.take("}")


def _children(cursor: _Cursor) -> Iterator[tuple[Any, str]]:
    opening = cursor.peek()
    if opening not in ("[", "{"):
        cursor.value()
        return
    closing = "]" if opening == "[" else "}"
    cursor.take(opening)
    while cursor.peek() != closing:
        if opening == "{":
            cursor.value()
            cursor.take(":")
        yield cursor.value()
        if cursor.peek() != closing:
            cursor.take(",")
    cursor.take(closing)
