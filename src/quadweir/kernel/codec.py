"""State as bytes: arrays and Arrow columns in a versioned frame that is refused when it does not fit.

A frame says what it is, for which query it was written, and how it can be seen to be whole:

    8 bytes   magic
    2 bytes   version of the format
    2 bytes   kind: a snapshot or a delta
    32 bytes  fingerprint of the query and of all that its state depends on
    8 bytes   length of what follows, and 8 bytes: its length once it is expanded
    32 bytes  SHA-256 of all of the above and of what follows
    then      named arrays, compressed

Nothing in it is code: an array is a type out of a list, a shape and numbers. What is read is
checked before it is used, so that a damaged file is an error and not a wrong answer.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quadweir.errors import StateError

FORMAT_VERSION: Final = 3

_MAGIC: Final = b"QWSTATE\n"
_HEAD: Final = struct.Struct("<8sHH32sQQ")
_CHECKSUM: Final = 32
_ENTRY: Final = struct.Struct("<HBB")
_TYPES: Final = (np.dtype(np.int64), np.dtype(np.uint8), np.dtype(np.float64), np.dtype(np.bool_))
# More than any shard can hold; a length beyond it is nonsense, and no memory is asked for it.
_MOST_BYTES: Final = 2**40


@final
class StateKind(IntEnum):
    """What a frame holds."""

    SNAPSHOT = 1
    DELTA = 2


def fingerprint(*parts: str | bytes) -> bytes:
    """Digest texts and bytes in their order; where one ends and the next begins counts.

    >>> fingerprint("ab", "c") == fingerprint("a", "bc")
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()


# --- frames -----------------------------------------------------------------------------------


def write_frame(kind: StateKind, query: bytes, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write named arrays as a snapshot or a delta of a query."""
    plain = _pack(arrays)
    body: bytes = _codec().compress(plain, asbytes=True)
    head = _HEAD.pack(_MAGIC, FORMAT_VERSION, kind, query, len(body), len(plain))
    return head + _checksum(head, body) + body


def written_for(data: bytes) -> bytes:
    """Return the fingerprint that a frame was written with; nothing of it is checked."""
    return data[_HEAD.size - 48 : _HEAD.size - 16]


def read_frame(kind: StateKind, query: bytes, data: bytes) -> dict[str, NDArray[Any]]:
    """Read what `write_frame` wrote.

    Raises:
        StateError: It is none, is of another version, kind or query, or is damaged.
    """
    name = kind.name.lower()
    if len(data) < len(_MAGIC) or data[: len(_MAGIC)] != _MAGIC:
        raise StateError(
            f"this is no {name} of Quadweir",
            hint="Check which file the state is read from.",
        )
    if len(data) < _HEAD.size + _CHECKSUM:
        raise _damaged(name, "it ends within its head")
    _, version, found_kind, found_query, length, size = _HEAD.unpack_from(data)
    if version != FORMAT_VERSION:
        raise StateError(
            f"a {name} of format {version}, where format {FORMAT_VERSION} is read",
            hint="Start the query without its old state, or run it with the release that wrote its state.",
        )
    body = memoryview(data)[_HEAD.size + _CHECKSUM :]
    if len(body) != length:
        raise _damaged(name, f"it has {len(body)} bytes where {length} were written")
    if _checksum(data[: _HEAD.size], body) != data[_HEAD.size : _HEAD.size + _CHECKSUM]:
        raise _damaged(name, "its checksum does not fit")
    if found_kind != kind:
        raise StateError(f"not a {name} but state of another kind")
    if found_query != query:
        raise StateError(
            f"a {name} of another query, or over other static data",
            detail="State can only be taken up by the query that left it.",
            hint="Start the query without its old state.",
        )
    if size > _MOST_BYTES:
        raise _damaged(name, f"it claims to expand to {size} bytes")
    try:
        return _unpack(memoryview(_codec().decompress(body, decompressed_size=size)), name)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(name, f"it cannot be expanded: {error}") from error


def _checksum(head: bytes, body: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(head)
    digest.update(body)
    return digest.digest()


def _codec() -> pa.Codec:
    # With the bytes of numbers sorted by their weight (see `_spread`) the quickest level is also
    # the best: five times less than plain at 110 MB/s; zlib gave three times less at 23 MB/s.
    return pa.Codec("zstd", compression_level=1)


def _damaged(name: str, how: str) -> StateError:
    return StateError(
        f"a damaged {name}: {how}",
        hint="Take an earlier one, or start the query without its old state.",
    )


# --- arrays -----------------------------------------------------------------------------------


def _pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    parts = [struct.pack("<I", len(arrays))]
    for name, array in arrays.items():
        if array.dtype not in _TYPES:
            raise TypeError(f"no state is kept as {array.dtype}")
        label = name.encode()
        parts.append(_ENTRY.pack(len(label), _TYPES.index(array.dtype), array.ndim))
        parts.append(label)
        parts.append(struct.pack(f"<{array.ndim}Q", *array.shape))
        parts.append(_spread(array))
    return b"".join(parts)


def _unpack(data: memoryview, name: str) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    try:
        (count,) = struct.unpack_from("<I", data)
        at = 4
        for _ in range(count):
            label_length, kind, dimensions = _ENTRY.unpack_from(data, at)
            at += _ENTRY.size
            label = bytes(data[at : at + label_length]).decode()
            at += label_length
            shape = struct.unpack_from(f"<{dimensions}Q", data, at)
            at += 8 * dimensions
            dtype = _TYPES[kind]
            size = math.prod(shape) * dtype.itemsize
            if at + size > len(data):
                raise ValueError("an array ends after its frame")
            found[label] = _gathered(data[at : at + size], dtype, shape)
            at += size
    except (struct.error, IndexError, ValueError) as error:
        raise _damaged(name, str(error)) from error
    return found


def _spread(array: NDArray[Any]) -> bytes:
    """Lay an array out by columns, and its numbers by their bytes: first all lowest, then on.

    Neighbours are then alike: the high bytes of times and row numbers hardly change.
    """
    columns = np.ascontiguousarray(array.T if array.ndim > 1 else array)
    width = array.dtype.itemsize
    if width == 1 or not array.size:
        return columns.tobytes()
    return columns.view(np.uint8).reshape(-1, width).T.tobytes()


def _gathered(data: memoryview, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    plain = np.frombuffer(data, dtype=np.uint8)
    if dtype.itemsize > 1 and len(plain):
        plain = np.ascontiguousarray(plain.reshape(dtype.itemsize, -1).T).reshape(-1)
    array = plain.view(dtype).reshape(shape[::-1])
    # A copy of its own, that can be written to.
    return np.array(array.T, dtype=dtype, order="C")


# --- Arrow columns ----------------------------------------------------------------------------


def write_columns(columns: list[pa.Array]) -> NDArray[np.uint8]:
    """Write columns of spellings; a dictionary that is longer than its column is cut down to it."""
    kept = [_own_size(column) for column in columns]
    batch = pa.record_batch(kept, names=[str(place) for place in range(len(kept))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def read_columns(data: NDArray[np.uint8]) -> list[pa.Array]:
    """Read what `write_columns` wrote; offsets and indices are known to lie within."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(np.ascontiguousarray(data))) as reader:
            batch = reader.read_next_batch()
        batch.validate(full=True)
    except (pa.ArrowException, OSError, StopIteration) as error:
        raise _damaged("delta", str(error)) from error
    return list(batch.columns)


def _own_size(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], "str")
    if pa.types.is_dictionary(column.type) and len(column.dictionary) > len(column):
        return column.dictionary_decode().dictionary_encode()
    return column
