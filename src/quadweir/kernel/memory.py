"""Memory by address: the one module of the kernel that works with pointers.

Compiled functions take arrays and records. Three things need an address, and only these use this
module:

- A join has any number of buffers and indexes, and a compiled function has a fixed number of
  arguments. So the record of a join (`joinrecords.py`) holds where each of them begins, and
  `records` and `words` turn such a place into something with named fields or an index. A record
  and a pointer are passed on as one word. An array is passed on as seven words and its owner is
  counted; with arrays throughout, calls took longer than the work (docs/design/0007-kernel.md).
- Spellings begin at any byte of an Arrow buffer, and are compared and copied eight bytes at a time.
- A large table is never in the processor's cache. `prefetch` requests what a later event needs.

The owner of a record keeps the arrays alive whose places it stores.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numpy.typing import NDArray

Record: TypeAlias = Any
"""A record in compiled code: its fields are attributes, and setting one changes the memory."""
Words: TypeAlias = Any
"""A pointer to 64-bit integers in compiled code; `words[n]` is the n-th, and n is not checked."""

PLACE: Final = "i8"
"""The type of a record's field that holds where an array begins."""
NUMBER: Final = "i8"
"""The type of a record's field that holds a number."""

_WORD: Final = ir.IntType(64)
_BYTE: Final = ir.IntType(8)


def address(array: NDArray[Any]) -> int:
    """Return where an array begins, to be stored in a record."""
    return int(array.ctypes.data)


def _data_of(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return the pointer behind an array, a pointer, or an address."""
    if isinstance(kind, types.Array):
        return context.make_array(kind)(context, builder, value).data
    if isinstance(kind, types.Integer):
        return builder.inttoptr(value, _WORD.as_pointer())
    return value


@intrinsic  # type: ignore[untyped-decorator]
def words(typing_context: Any, place: Any) -> Any:
    """Return a pointer to the 64-bit integers at a place, or to those of an array."""
    if not (
        place == types.int64 or (isinstance(place, types.Array) and place.dtype == types.int64)
    ):
        raise TypingError(f"words of {place}")
    pointer = types.CPointer(types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _data_of(context, builder, signature.args[0], arguments[0])

    return pointer(place), generate


@intrinsic  # type: ignore[untyped-decorator]
def words_from(typing_context: Any, pointer: Any, first: Any) -> Any:
    """Return a pointer to the words from `first` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [arguments[1]])

    kind = types.CPointer(types.int64)
    return kind(kind, types.int64), generate


def records(dtype: np.dtype[Any]) -> Any:
    """Return a function for compiled code: from a place and a number to the record there."""
    kind = from_dtype(dtype)

    @intrinsic  # type: ignore[untyped-decorator]
    def record_at(typing_context: Any, place: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            size = ir.Constant(_WORD, dtype.itemsize)
            begins = builder.add(arguments[0], builder.mul(arguments[1], size))
            return builder.inttoptr(begins, context.get_value_type(kind))

        return kind(types.int64, types.int64), generate

    return record_at


def _request(builder: Any, pointer: Any) -> None:
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), *[number] * 3])
    function = builder.module.declare_intrinsic("llvm.prefetch", (_BYTE.as_pointer(),), kind)
    pointer = builder.bitcast(pointer, _BYTE.as_pointer())
    # To be read, kept in all caches, data rather than code.
    builder.call(function, [pointer, number(0), number(3), number(1)])


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing_context: Any, start: Any, number: Any) -> Any:
    """Request the n-th word of an array or a pointer, without waiting for it.

    A request for memory that does not exist is ignored, so the number is not checked.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _data_of(context, builder, signature.args[0], arguments[0])
        data = builder.bitcast(data, _WORD.as_pointer())
        _request(builder, builder.gep(data, [arguments[1]]))
        return context.get_constant(types.int64, 0)

    return types.int64(start, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def prefetch_record(typing_context: Any, record: Any) -> Any:
    """Request the start of a record, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _request(builder, arguments[0])
        return context.get_constant(types.int64, 0)

    return types.int64(record), generate


# --- bytes ----------------------------------------------------------------------------------------


def _loading(bits: int) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Spellings are not aligned: a load that claims to be may be compiled to one that faults.
        pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
        value = builder.load(pointer, align=1)
        return value if bits == 64 else builder.zext(value, _WORD)

    return generate


def _storing(bits: int) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
        value = arguments[1] if bits == 64 else builder.trunc(arguments[1], ir.IntType(bits))
        builder.store(value, pointer, align=1)
        return context.get_constant(types.int64, 0)

    return generate


@intrinsic  # type: ignore[untyped-decorator]
def load_word(typing_context: Any, place: Any) -> Any:
    """Read eight bytes at a place."""
    return types.int64(types.int64), _loading(64)


@intrinsic  # type: ignore[untyped-decorator]
def load_byte(typing_context: Any, place: Any) -> Any:
    """Read one byte at a place."""
    return types.int64(types.int64), _loading(8)


@intrinsic  # type: ignore[untyped-decorator]
def store_word(typing_context: Any, place: Any, value: Any) -> Any:
    """Write eight bytes at a place."""
    return types.int64(types.int64, types.int64), _storing(64)


@intrinsic  # type: ignore[untyped-decorator]
def store_byte(typing_context: Any, place: Any, value: Any) -> Any:
    """Write one byte at a place."""
    return types.int64(types.int64, types.int64), _storing(8)
