"""Terms as numbers, and forgetting the terms that nothing needs any more.

Equal terms have equal numbers and different terms different ones, so that operators compare, hash
and join integers only. A small canonical `xsd:integer` is its own number and takes no room; every
other term has an entry: its spelling in one store of bytes, found by hash, and how many hold it.
An entry without a holder when the step is settled is forgotten, and its number is used again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quadweir.algebra.values import Value, single_precision, value_of
from quadweir.algebra.work import TextCounter
from quadweir.errors import InternalError
from quadweir.kernel import interning, numerals, typed
from quadweir.kernel.arrays import Ints, ints, power_of_two
from quadweir.kernel.interning import TermRecords
from quadweir.kernel.layout import Arrays
from quadweir.kernel.memory import address
from quadweir.kernel.spellings import INLINE_LIMIT, INTEGER_SUFFIX, ZERO
from quadweir.kernel.termstore import TermStore
from quadweir.kernel.typed import Typed
from quadweir.terms import Literal, Term, parse_term

_SHORT: Final = 1_000
# Up to so many terms are spelled faster one by one than as a column.
_FEW: Final = 64


class Dictionary:
    """The terms of one shard.

    State: a `TermStore`.
    Forgets: at `settle`, what is new or was dropped and has no holder.

    Attributes:
        texts: Counts the characters of the new texts of a step; whoever makes texts tells it.

    >>> dictionary = Dictionary()
    >>> dictionary.numbers(["<urn:a>", '"b"@en', "<urn:a>"]).tolist()
    [1, 2, 1]
    >>> dictionary.decode(np.array([2, 0])).to_pylist()
    ['"b"@en', None]
    """

    def __init__(self, layout: Arrays | None = None) -> None:
        self._generation = 0
        self.texts = TextCounter()
        self._store = TermStore(layout)

    @property
    def generation(self) -> int:
        """How often it was restored: constants then get other numbers."""
        return self._generation

    def layout(self) -> Arrays:
        """Return all of it as arrays, for dictionaries that begin with the same terms."""
        return self._store.layout()

    def __len__(self) -> int:
        return len(self._store)

    @property
    def size(self) -> int:
        """How many bytes the dictionary takes."""
        return self._store.size

    # --- from terms to numbers ----------------------------------------------------------------

    def number(self, term: Term) -> int:
        """Return the number of a term."""
        return int(self.numbers((str(term),))[0])

    def numbers(self, spellings: Sequence[str]) -> Ints:
        """Return the numbers of canonical spellings; 0 for one that is empty."""
        encoded = [spelling.encode("utf-8", "surrogatepass") for spelling in spellings]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        starts = np.cumsum(lengths) - lengths
        return self._store.intern(address(data), starts, lengths)

    def encode(self, column: pa.Array | pa.ChunkedArray) -> Ints:
        """Return the numbers of an Arrow column of canonical spellings; 0 for null.

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
        return self._store.intern(data, np.ascontiguousarray(offsets[:-1]), lengths)

    # --- from numbers to terms ----------------------------------------------------------------

    def spell(self, number: int) -> str:
        """Return the canonical spelling of a term."""
        if number >= INLINE_LIMIT:
            return f'"{number - ZERO}{INTEGER_SUFFIX}'
        store = self._store
        entry = store.terms[number] if 0 < number < store.fresh else None
        if entry is None or not entry["length"]:
            raise InternalError(f"the dictionary has no term {number}")
        start = int(entry["start"])
        spelling = store.spellings[start : start + int(entry["length"])]
        return str(spelling.tobytes(), "utf-8", "surrogatepass")

    def term(self, number: int) -> Term:
        """Return a term."""
        return parsed(self.spell(int(number)))

    def spellings(self, numbers: Ints) -> list[str]:
        """Return canonical spellings; an empty one for 0."""
        if len(numbers) > _FEW:
            return ["" if each is None else each for each in self._texts(numbers).to_pylist()]
        return [self.spell(each) if each else "" for each in numbers.tolist()]

    def value(self, number: int) -> Value | None:
        """Return the value of a literal; None for one that has none, and for other terms."""
        term = self.term(number)
        return value_of(term) if isinstance(term, Literal) else None

    def renumber(self, numbers: Ints, other: Dictionary) -> None:
        """Replace the numbers that terms have in another dictionary by their numbers here."""
        known, places = np.unique(numbers, return_inverse=True)
        again = self.encode(other.decode(known))
        numbers[...] = again[places].reshape(numbers.shape)

    def decode(self, numbers: Ints) -> pa.Array:
        """Return the spellings as an Arrow column of strings; null for 0."""
        codes, distinct = distinct_of(numbers)
        return self._texts(distinct).take(pa.array(codes))

    def _texts(self, numbers: Ints) -> pa.Array:
        """Spell numbers, each once."""
        is_inline = numbers >= INLINE_LIMIT
        is_entry = (numbers > 0) & ~is_inline
        slots = numbers[is_entry]
        if len(slots) and slots.max() >= self._store.fresh:
            raise InternalError("the dictionary was asked for a term that it does not have")
        lengths = self._store.terms["length"][slots]
        if not lengths.all():
            raise InternalError("the dictionary was asked for a term that it has forgotten")
        store = np.empty(int(lengths.sum()), dtype=np.uint8)
        ends = self._store.gather(slots, store).astype(np.int32)
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
        """Return what terms are worth, as arrays."""
        self.look_at(numbers)
        count = len(numbers)
        found = Typed(ints(count), np.empty(count), ints(count), ints(count), ints(count))
        typed.read_typed(np.ascontiguousarray(numbers), *self.entries, *found)
        return found

    @property
    def entries(self) -> tuple[TermRecords, Ints, NDArray[np.float64]]:
        """Entries, kinds and floats as compiled functions read them, until the next term comes."""
        return self._store.terms, self._store.kinds, self._store.floats

    def look_at(self, numbers: Ints) -> None:
        """Make sure that the kind and value of each term are known to `entries`."""
        found = ints(len(numbers))
        terms, kinds, floats = self.entries
        count = typed.unknown(np.ascontiguousarray(numbers), kinds, found)
        if not count:
            return
        left = ints(count)
        count = numerals.read_numbers(
            found[:count],
            terms,
            kinds,
            floats,
            self._store.place,
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
            kinds[slot] = kind
            floats[slot] = approximate
            terms["high"][slot] = high
            terms["low"][slot] = low

    def _long_double(self, slot: int) -> tuple[int, float, int, int]:
        """Read a float or double that is known to be of good lexical form."""
        _, lexical, datatype = self.spell(slot).split('"')
        if datatype.endswith("float>"):
            return typed.FLOAT, single_precision(float(lexical)), 0, 0
        return typed.DOUBLE, float(lexical), 0, 0

    # --- forgetting ---------------------------------------------------------------------------

    def hold(self, numbers: Ints) -> None:
        """Count one more holder for each number, as often as it occurs."""
        self._store.count(numbers, 1)

    def drop(self, numbers: Ints) -> None:
        """Count one holder less for each number, as often as it occurs."""
        self._store.count(numbers, -1)

    def keep(self, numbers: Ints) -> None:
        """Hold for ever."""
        self.hold(np.unique(numbers))
        self._store.keep(np.unique(numbers[(numbers > 0) & (numbers < INLINE_LIMIT)]))

    def settle(self) -> None:
        """Forget what is new or was dropped and has no holder."""
        self._store.forget()
        self.texts.settle()

    # --- snapshots ----------------------------------------------------------------------------

    def grant(self) -> None:
        """Take it that what is kept now, such as the terms of static data, is in every copy."""
        self._store.grant()

    def arrays(
        self, included: Ints | None = None, released: Ints | None = None
    ) -> dict[str, NDArray[Any]]:
        """Return terms and numbers, for a snapshot; only between steps.

        Args:
            included: Numbers of terms that are not left out even if they are granted.
            released: Numbers, each as often as it counts one holder less there.
        """
        return self._store.arrays(included, released)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` returned; every term has the number it had."""
        self._store.restore(arrays)
        self._generation += 1


class DictionaryScope(Dictionary):
    """The terms of a dictionary, with an account of those that one part of a shard holds.

    State: how often each term is held.
    Forgets: all of it when the part goes, with `let_go`.
    """

    def __init__(self, whole: Dictionary) -> None:
        self._whole = whole
        self._store = whole._store
        self.texts = TextCounter()
        self._held = np.zeros(64, dtype=np.int64)

    @property
    def generation(self) -> int:
        """How often the dictionary was restored."""
        return self._whole.generation

    def _account(self, numbers: Ints, sign: int) -> None:
        left = np.ascontiguousarray(numbers).reshape(-1)
        while len(left := left[interning.account(left, sign, self._held) :]):
            size = max(power_of_two(int(left[0]) + 1), power_of_two(self._store.fresh))
            more = np.zeros(size - len(self._held), dtype=np.int64)
            self._held = np.concatenate((self._held, more))

    def hold(self, numbers: Ints) -> None:
        super().hold(numbers)
        self._account(numbers, 1)

    def drop(self, numbers: Ints) -> None:
        super().drop(numbers)
        self._account(numbers, -1)

    def keep(self, numbers: Ints) -> None:
        self.hold(np.unique(numbers))

    def settle(self) -> None:
        """Begin to count texts again; the whole dictionary forgets terms."""
        self.texts.settle()

    def held(self) -> Ints:
        """Return the numbers of the terms held, and how often, as two columns."""
        numbers = np.flatnonzero(self._held)
        return np.column_stack((numbers, self._held[numbers]))

    def take(self, held: Ints) -> None:
        """Take what `held` returned, once the dictionary is restored."""
        size = int(held[:, 0].max(initial=0)) + 1
        self._held = np.zeros(max(64, power_of_two(size)), dtype=np.int64)
        self._held[held[:, 0]] = held[:, 1]

    def let_go(self) -> None:
        """Drop all that is held."""
        held = self.held()
        super().drop(np.repeat(held[:, 0], held[:, 1]))
        self._held[:] = 0


_parsed_short = lru_cache(maxsize=16_384)(parse_term)


def parsed(spelling: str) -> Term:
    """Read a term, if it is short only once: what asks for terms asks for the same again."""
    return _parsed_short(spelling) if len(spelling) <= _SHORT else parse_term(spelling)


def distinct_of(numbers: Ints) -> tuple[Ints, Ints]:
    """Return the distinct numbers in the order they come, and the place of each number among them.

    >>> [each.tolist() for each in distinct_of(np.array([7, 5, 7]))]
    [[0, 1, 0], [7, 5]]
    """
    encoded = pa.array(np.ascontiguousarray(numbers)).dictionary_encode()
    return (
        encoded.indices.to_numpy().astype(np.int64),
        encoded.dictionary.to_numpy(),
    )
