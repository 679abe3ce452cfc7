"""Terms as numbers, and forgetting the terms that nobody needs any more.

Equal terms have equal numbers and different terms different ones, so that operators compare, hash
and join integers only. A small canonical `xsd:integer` is its own number and takes no room; every
other term has an entry: its spelling in one store of bytes, found by hash, and how many hold it.
An entry that nobody holds when the step is settled is forgotten, and its number is used again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quadweir.algebra.values import Value, single_precision, value_of
from quadweir.errors import InternalError
from quadweir.kernel import interning, numerals, typed
from quadweir.kernel.arrays import Ints, ints, power_of_two
from quadweir.kernel.interning import (
    COUNT,
    FREE,
    FRESH,
    HIGH,
    INLINE_LIMIT,
    INTEGER_SUFFIX,
    KEPT,
    LENGTH,
    LIVE,
    LOW,
    PENDING,
    START,
    TAIL,
    WIDTH,
    ZERO,
)
from quadweir.kernel.layout import Arrays
from quadweir.kernel.memory import address
from quadweir.kernel.typed import Typed
from quadweir.terms import Literal, Term, parse_term

_FIRST_SLOTS: Final = 64
_FIRST_BYTES: Final = 4096
_MOST_SLOTS: Final = 2**31
_SHORT: Final = 1_000
# Up to so many terms are spelled faster one by one than as a column.
_FEW: Final = 64
# What makes up a dictionary.
_PARTS: Final = ("cells", "kinds", "floats", "table", "free", "pending", "state", "store")


class Dictionary:
    """The terms of one shard.

    State: the spellings held, and for each 64 bytes and a place in a hash table.
    Forgets: at `settle`, what is new or was dropped and is not held.

    >>> dictionary = Dictionary()
    >>> dictionary.numbers(["<urn:a>", '"b"@en', "<urn:a>"]).tolist()
    [1, 2, 1]
    >>> dictionary.decode(np.array([2, 0])).to_pylist()
    ['"b"@en', None]
    """

    def __init__(self, layout: Arrays | None = None) -> None:
        self.generation = 0  # how often it was restored: constants have to be numbered anew
        # The slots up to this one are kept from the start, but for some.
        self._granted = 0
        self._not_granted = ints(0)
        # An adversary who knew the seed could choose terms that all fall on one place of the
        # table. Numbers do not depend on it.
        self._seed = secrets.randbits(62)
        self._cells: Ints = np.zeros((_FIRST_SLOTS, WIDTH), dtype=np.int64)
        self._kinds = ints(_FIRST_SLOTS)
        self._floats: NDArray[np.float64] = np.zeros(_FIRST_SLOTS)
        self._table = ints(2 * _FIRST_SLOTS)
        self._free = ints(_FIRST_SLOTS)
        self._pending = ints(_FIRST_SLOTS)
        self._state = ints(5)
        self._state[FRESH] = 1  # slot 0 stays empty: the number 0 is no term
        self._use_store(np.zeros(_FIRST_BYTES, dtype=np.uint8))
        if layout is not None:
            for name in _PARTS:
                setattr(self, f"_{name}", layout[name])
            self._use_store(self._store)
            self._seed, self._granted = (int(each) for each in layout["numbers"])
            self._not_granted = layout["not_granted"]

    def layout(self) -> Arrays:
        """Give all of it as arrays, for dictionaries that begin where this one is.

        There is room for as many terms again, so that these need not move it soon.
        """
        if 2 * int(self._state[FRESH]) > len(self._cells):
            self._widen(2 * len(self._cells))
        if 2 * int(self._state[LIVE]) > len(self._store):
            self._pack(int(self._state[LIVE]))
        found: dict[str, NDArray[Any]] = {name: getattr(self, f"_{name}") for name in _PARTS}
        numbers = np.array([self._seed, self._granted], dtype=np.int64)
        return {**found, "numbers": numbers, "not_granted": self._not_granted}

    def _use_store(self, store: NDArray[np.uint8]) -> None:
        self._store = store
        self._place = address(store)

    def __len__(self) -> int:
        return int(self._state[FRESH] - 1 - self._state[FREE])

    @property
    def size(self) -> int:
        """How many bytes the dictionary takes."""
        tables = (self._table, self._free, self._pending, self._kinds, self._floats)
        return sum(each.nbytes for each in (self._cells, self._store, *tables))

    # --- from terms to numbers ----------------------------------------------------------------

    def number(self, term: Term) -> int:
        """Give the number of a term."""
        return int(self.numbers((str(term),))[0])

    def numbers(self, spellings: Sequence[str]) -> Ints:
        """Give the numbers of canonical spellings; 0 for one that is empty."""
        encoded = [spelling.encode("utf-8", "surrogatepass") for spelling in spellings]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        starts = np.cumsum(lengths) - lengths
        return self._intern(address(data), starts, lengths)

    def encode(self, column: pa.Array | pa.ChunkedArray) -> Ints:
        """Give the numbers of an Arrow column of canonical spellings; 0 for null.

        A column with a dictionary of its own costs what the dictionary costs.
        """
        if isinstance(column, pa.ChunkedArray):
            if column.num_chunks == 1:
                return self.encode(column.chunk(0))
            return np.concatenate([ints(0), *(self.encode(each) for each in column.chunks)])
        if pa.types.is_dictionary(column.type):
            # One place more, for null.
            distinct = np.append(self.encode(column.dictionary), 0)
            indices = column.indices
            if indices.null_count:
                indices = pc.fill_null(indices.cast(pa.int64()), len(distinct) - 1)
            places: NDArray[np.int64] = indices.to_numpy(zero_copy_only=False)
            return distinct[places]
        if pa.types.is_null(column.type):
            return ints(len(column))
        return self._encode_plain(column)

    def _encode_plain(self, column: pa.Array) -> Ints:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            width: Any = np.int32
        elif pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type):
            width = np.int64
        elif pa.types.is_string_view(column.type):
            return self._encode_plain(column.cast(pa.large_string()))
        else:
            raise InternalError(f"a column of terms came as {column.type}")
        if len(column) == 0:
            return ints(0)
        _, offsets_buffer, data_buffer = column.buffers()
        offsets = np.frombuffer(offsets_buffer, dtype=width)
        offsets = offsets[column.offset : column.offset + len(column) + 1].astype(np.int64)
        lengths = np.diff(offsets)
        if column.null_count:
            lengths[column.is_null().to_numpy(zero_copy_only=False)] = 0
        data = 0 if data_buffer is None else data_buffer.address
        return self._intern(data, np.ascontiguousarray(offsets[:-1]), lengths)

    def _intern(self, data: int, starts: Ints, lengths: Ints) -> Ints:
        """Number the spellings that lie at `data`, which the caller keeps alive."""
        numbers = ints(len(starts))
        done = 0
        while True:
            done = interning.intern(
                data,
                starts,
                lengths,
                done,
                numbers,
                self._cells,
                self._kinds,
                self._table,
                self._free,
                self._pending,
                self._state,
                self._place,
                len(self._store),
                self._seed,
            )
            if done == len(starts):
                return numbers
            if not self._state[FREE] and self._state[FRESH] == len(self._cells):
                self._widen(2 * len(self._cells))
            if self._state[TAIL] + lengths[done] > len(self._store):
                self._pack(int(lengths[done]))

    def _widen(self, slots: int) -> None:
        """Make room for more terms; `slots` is a power of two."""
        if slots > _MOST_SLOTS:
            raise InternalError("the dictionary of a shard would pass two thousand million terms")
        cells = np.zeros((slots, WIDTH), dtype=np.int64)
        more = slots - len(self._cells)
        cells[: len(self._cells)] = self._cells
        self._cells = cells
        self._kinds = np.concatenate([self._kinds, ints(more)])
        self._floats = np.concatenate([self._floats, np.zeros(more)])
        self._free = np.concatenate([self._free, ints(more)])
        self._pending = np.concatenate([self._pending, ints(more)])
        self._table = ints(2 * slots)
        interning.fill_table(self._cells, int(self._state[FRESH]), self._table)

    def _pack(self, wanted: int) -> None:
        """Move the spellings together, into a store that leaves as much room as they take.

        The store shrinks by half at most, and never below what makes the next move worth looking
        at every slot.
        """
        fresh = int(self._state[FRESH])
        live = np.flatnonzero(self._cells[:fresh, LENGTH])
        enough = max(2 * (int(self._state[LIVE]) + wanted), len(self._store) // 2, 16 * fresh)
        room = power_of_two(max(_FIRST_BYTES, enough))
        store = np.empty(room, dtype=np.uint8)
        ends = self._gather(live, store)
        self._cells[live, START] = ends[:-1]
        self._state[TAIL] = ends[-1]
        self._use_store(store)

    def _gather(self, slots: Ints, target: NDArray[np.uint8]) -> Ints:
        ends = ints(len(slots) + 1)
        interning.gather(slots, self._cells, self._place, ends, address(target))
        return ends

    # --- from numbers to terms ----------------------------------------------------------------

    def spell(self, number: int) -> str:
        """Give the canonical spelling of a term."""
        if number >= INLINE_LIMIT:
            return f'"{number - ZERO}{INTEGER_SUFFIX}'
        if not 0 < number < self._state[FRESH] or not self._cells[number, LENGTH]:
            raise InternalError(f"the dictionary has no term {number}")
        start = self._cells[number, START]
        end = start + self._cells[number, LENGTH]
        return str(self._store[start:end].tobytes(), "utf-8", "surrogatepass")

    def term(self, number: int) -> Term:
        """Give a term."""
        return parsed(self.spell(int(number)))

    def spellings(self, numbers: Ints) -> list[str]:
        """Give canonical spellings; an empty one for 0."""
        if len(numbers) > _FEW:
            return ["" if each is None else each for each in self._texts(numbers).to_pylist()]
        return [self.spell(each) if each else "" for each in numbers.tolist()]

    def value(self, number: int) -> Value | None:
        """Give the value of a literal; None for one that has none, and for other terms."""
        term = self.term(number)
        return value_of(term) if isinstance(term, Literal) else None

    def decode(self, numbers: Ints) -> pa.Array:
        """Give the spellings as an Arrow column of strings; null for 0."""
        codes, distinct = distinct_of(numbers)
        return self._texts(distinct).take(pa.array(codes))

    def _texts(self, numbers: Ints) -> pa.Array:
        """Spell numbers, each once."""
        is_inline = numbers >= INLINE_LIMIT
        is_entry = (numbers > 0) & ~is_inline
        slots = numbers[is_entry]
        if len(slots) and (
            slots.max() >= self._state[FRESH] or not self._cells[slots, LENGTH].all()
        ):
            raise InternalError("the dictionary was asked for a term that it has forgotten")
        store = np.empty(int(self._cells[slots, LENGTH].sum()), dtype=np.uint8)
        ends = self._gather(slots, store).astype(np.int32)
        entries = pa.StringArray.from_buffers(len(slots), pa.py_buffer(ends), pa.py_buffer(store))
        if len(slots) == len(numbers):
            return entries
        digits = pa.array(numbers[is_inline] - ZERO).cast(pa.string())
        inline = pc.binary_join_element_wise('"', digits, INTEGER_SUFFIX, "")
        places = ints(len(numbers))
        places[is_entry] = np.arange(len(slots))
        places[is_inline] = np.arange(len(slots), len(slots) + len(digits))
        return pa.concat_arrays([entries, inline]).take(pa.array(places, mask=numbers == 0))

    def typed(self, numbers: Ints) -> Typed:
        """Give what terms are worth, as arrays."""
        self.look_at(numbers)
        count = len(numbers)
        found = Typed(ints(count), np.empty(count), ints(count), ints(count), ints(count))
        typed.read_typed(np.ascontiguousarray(numbers), *self.entries, *found)
        return found

    @property
    def entries(self) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Entries, kinds and floats as compiled functions read them, until the next term comes."""
        return self._cells, self._kinds, self._floats

    def look_at(self, numbers: Ints) -> None:
        """Make sure that the kind and value of each term are known to `entries`."""
        found = ints(len(numbers))
        count = typed.unknown(np.ascontiguousarray(numbers), self._kinds, found)
        if not count:
            return
        left = ints(count)
        count = numerals.read_numbers(
            found[:count],
            *self.entries,
            self._place,
            numerals.TAIL_PLACE,
            numerals.TAILS,
            left,
        )
        for code in left[:count].tolist():
            slot = code // 2
            if code % 2 == numerals.LONG:
                described = self._long_double(slot)
            else:
                described = typed.describe(self.value(slot))
            kind, approximate, high, low = described
            self._kinds[slot] = kind
            self._floats[slot] = approximate
            self._cells[slot, HIGH] = high
            self._cells[slot, LOW] = low

    def _long_double(self, slot: int) -> tuple[int, float, int, int]:
        """Read a float or double that is known to be of good lexical form."""
        _, lexical, datatype = self.spell(slot).split('"')
        if datatype.endswith("float>"):
            return typed.FLOAT, single_precision(float(lexical)), 0, 0
        return typed.DOUBLE, float(lexical), 0, 0

    # --- forgetting ---------------------------------------------------------------------------

    def hold(self, numbers: Ints) -> None:
        """Count one more holder for each number, as often as it stands there."""
        self._count(numbers, 1)

    def drop(self, numbers: Ints) -> None:
        """Count one holder less for each number, as often as it stands there."""
        self._count(numbers, -1)

    def _count(self, numbers: Ints, sign: int) -> None:
        flat = np.ascontiguousarray(numbers).reshape(-1)
        granted = int(self._not_granted[0]) - 1 if len(self._not_granted) else self._granted
        if not interning.count(flat, sign, granted, self._cells, self._pending, self._state):
            raise InternalError("a term was held that is forgotten, or dropped by one who had none")

    def keep(self, numbers: Ints) -> None:
        """Hold forever."""
        self.hold(np.unique(numbers))
        slots = np.unique(numbers[(numbers > 0) & (numbers < INLINE_LIMIT)])
        slots = slots[self._cells[slots, COUNT] < KEPT]
        self._cells[slots, COUNT] += KEPT

    def settle(self) -> None:
        """Forget what is new or was dropped and is held by nobody."""
        interning.forget(self._cells, self._table, self._free, self._pending, self._state)
        if not self._state[LIVE]:
            self._state[TAIL] = 0

    # --- snapshots ----------------------------------------------------------------------------

    def grant(self) -> None:
        """Take it that what is kept now, such as the terms of static data, is there in any copy.

        Snapshots leave it out. How often it is held besides does not matter: it is never forgotten.
        """
        self.settle()
        is_kept = self._cells[: int(self._state[FRESH]), COUNT] >= KEPT
        self._granted = int(np.flatnonzero(is_kept).max(initial=0))
        self._not_granted = np.flatnonzero(~is_kept[1 : self._granted + 1]) + 1

    def _own(self) -> Ints:
        """Give the slots in use of what is not granted."""
        after = np.arange(self._granted + 1, int(self._state[FRESH]), dtype=np.int64)
        slots = np.concatenate((self._not_granted, after))
        return slots[self._cells[slots, LENGTH] > 0]

    def arrays(self, told: Ints | None = None) -> dict[str, NDArray[Any]]:
        """Give terms and numbers, for a snapshot; only between steps.

        Args:
            told: Numbers of terms that are not left out even if they are granted.
        """
        is_told = np.zeros(int(self._state[FRESH]), dtype=bool)
        is_told[self._own()] = True
        if told is not None:
            is_told[told[(told > 0) & (told < len(is_told))]] = True
        slots = np.flatnonzero(is_told)
        lengths = self._cells[slots, LENGTH]
        spellings = np.empty(int(lengths.sum()), dtype=np.uint8)
        self._gather(slots, spellings)
        return {
            "spellings": spellings,
            "slots": slots,
            "lengths": lengths,
            "counts": self._cells[slots, COUNT],
            "pending": self._pending[: self._state[PENDING]].copy(),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` gave; every term has the number it had."""
        # What is granted is as it is here; nothing else is.
        own = self._own()
        self._cells[own, COUNT] = 1
        self._pending[: len(own)] = own
        self._state[PENDING] = len(own)
        self.settle()
        slots, lengths, spellings = arrays["slots"], arrays["lengths"], arrays["spellings"]
        fresh = max(self._granted, int(slots.max(initial=0))) + 1
        if fresh > len(self._cells):
            self._widen(power_of_two(fresh))
        if self._state[TAIL] + len(spellings) > len(self._store):
            self._pack(len(spellings))
        interning.adopt(
            address(spellings),
            slots,
            lengths,
            arrays["counts"],
            self._cells,
            self._kinds,
            self._table,
            self._state,
            self._place,
            self._seed,
        )
        places = np.concatenate(
            (self._not_granted, np.arange(self._granted + 1, fresh, dtype=np.int64))
        )
        free = places[self._cells[places, LENGTH] == 0][::-1]
        self._free[: len(free)] = free
        self._pending[: len(arrays["pending"])] = arrays["pending"]
        self._state[FRESH] = fresh
        self._state[FREE] = len(free)
        self._state[PENDING] = len(arrays["pending"])
        self.generation += 1


_parsed_short = lru_cache(maxsize=16_384)(parse_term)


def parsed(spelling: str) -> Term:
    """Read a term, if it is short only once: what asks for terms asks for the same again."""
    return _parsed_short(spelling) if len(spelling) <= _SHORT else parse_term(spelling)


def distinct_of(numbers: Ints) -> tuple[Ints, Ints]:
    """Give the distinct numbers in the order they come, and the place of each number among them.

    >>> [each.tolist() for each in distinct_of(np.array([7, 5, 7]))]
    [[0, 1, 0], [7, 5]]
    """
    encoded = pa.array(np.ascontiguousarray(numbers)).dictionary_encode()
    return (
        encoded.indices.to_numpy().astype(np.int64),
        encoded.dictionary.to_numpy(),
    )
