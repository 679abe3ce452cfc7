"""A guard against document type declarations in RDF/XML.

pyoxigraph expands entities without a limit: a few hundred bytes can become gigabytes and end the
process. Entities are declared in the document type declaration, which is before the root element.
So it is enough to look at what is before that element.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, Final

from quadweir.errors import DataError

if TYPE_CHECKING:
    from typing import BinaryIO

HEAD_BYTES: Final = 65_536
_SKIPPED: Final = re.compile(rb"\s+|<!--.*?-->|<\?.*?\?>", re.DOTALL)
_BOM: Final = b"\xef\xbb\xbf"


def without_doctype(file: BinaryIO) -> BinaryIO:
    r"""Return the content of an XML file that declares no document type.

    >>> import io
    >>> without_doctype(io.BytesIO(b"<?xml version='1.0'?> <!-- hi --> <a/>")).read()
    b"<?xml version='1.0'?> <!-- hi --> <a/>"

    Raises:
        DataError: the file declares a document type, or its root element does not begin in the
            first `HEAD_BYTES` bytes.
    """
    head = b""
    while len(head) < HEAD_BYTES and (more := file.read(HEAD_BYTES - len(head))):
        head += more
    position = len(_BOM) if head.startswith(_BOM) else 0
    while match := _SKIPPED.match(head, position):
        position = match.end()
    rest = head[position : position + 9]
    if rest.upper().startswith(b"<!DOCTYPE"):
        raise DataError(
            "the file has a document type declaration",
            detail="Entities can unfold a small file into gigabytes, so they are refused.",
            hint="Write names in full, and leave out <!DOCTYPE ...>.",
        )
    if rest and not re.match(rb"<[^!?]", rest):
        raise DataError(f"no XML root element in the first {HEAD_BYTES} bytes")
    return io.BufferedReader(_Joined(head, file))


class _Joined(io.RawIOBase):
    """The bytes that were already read, then the rest of the file."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head[: len(buffer)]
        if data:
            self._head = self._head[len(data) :]
        else:
            data = self._rest.read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)
