"""What a shard makes of static data, as a file of plain arrays that is mapped and not read.

Dictionary, rows and indexes of static relations are the same in every shard of a query and in every
worker. They are made once; a shard maps the file that holds them, which takes as long whatever its size,
and all shards of a machine share its pages in memory. What a shard writes to them, such as the terms
that streams bring, goes to pages of its own and is seen by no other shard.

    8 bytes   magic
    4 bytes   version of the format
    8 bytes   length of what follows
    then      for each array its name, type, shape and place, as JSON
    then      the arrays, each at the start of a page; where all bytes are 0 the file may have a hole
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quadweir.errors import InternalError

VERSION: Final = 4
"""Counts up whenever operators lay their arrays out in another way."""

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

NO_LAYOUT: Final[Arrays] = {}

_MAGIC: Final = b"QWFIXED\n"
_HEAD: Final = struct.Struct("<8sIQ")
_PAGE: Final = 4096
_PIECE: Final = 1 << 16
_TYPES: Final = ("int64", "uint8", "float64")


def write_layout(path: Path, arrays: Arrays) -> None:
    """Write arrays to a new file."""
    places: dict[str, tuple[str, tuple[int, ...], int]] = {}
    end = 0
    for name, array in arrays.items():
        if array.dtype.name not in _TYPES:
            raise TypeError(f"no layout has arrays of {array.dtype}")
        places[name] = array.dtype.name, array.shape, end
        end = _next_page(end + array.nbytes)
    header = json.dumps(places).encode()
    first = _next_page(_HEAD.size + len(header))
    with path.open("wb") as out:
        out.write(_HEAD.pack(_MAGIC, VERSION, len(header)) + header)
        for name, array in arrays.items():
            start = first + places[name][2]
            flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            for at in range(0, len(flat), _PIECE):
                piece = flat[at : at + _PIECE]
                if piece.any():
                    out.seek(start + at)
                    out.write(piece.data)
        out.truncate(first + end)


def map_layout(path: Path) -> Arrays:
    """Map what `write_layout` wrote; the arrays can be written to, and the file stays as it is.

    Raises:
        OSError: it is not there.
    """
    with path.open("rb") as file:
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    magic, version, length = _HEAD.unpack_from(whole)
    if magic != _MAGIC or version != VERSION:
        raise InternalError(f"{path} is no layout of this release")
    header = json.loads(whole[_HEAD.size : _HEAD.size + length])
    first = _next_page(_HEAD.size + length)
    found = {}
    for name, (kind, shape, place) in header.items():
        count = math.prod(shape)
        flat = np.frombuffer(whole, dtype=kind, count=count, offset=first + place)
        found[name] = flat.reshape(shape)
    return found


def _next_page(at: int) -> int:
    return -(-at // _PAGE) * _PAGE
