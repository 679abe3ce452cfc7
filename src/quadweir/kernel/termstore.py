"""The arrays in which a dictionary holds its terms, and how they grow, shrink and are saved."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quadweir.errors import InternalError
from quadweir.kernel import interning
from quadweir.kernel.arrays import Ints, ints, power_of_two
from quadweir.kernel.interning import COUNTERS, KEPT, TERM, TermRecords
from quadweir.kernel.layout import Arrays
from quadweir.kernel.memory import address
from quadweir.kernel.spellings import INLINE_LIMIT

_FIRST_SLOTS: Final = 64
_FIRST_BYTES: Final = 4096
_MOST_SLOTS: Final = 2**31


class TermStore:
    """Terms by number: an entry each, its spelling in one store of bytes, and a hash table.

    State: the spellings held, and for each 64 bytes and a place in a hash table.
    Forgets: at `forget`, what is new or was dropped and has no holder.

    Attributes:
        terms: The entry of each term.
        kinds: The kind of each term, as `typed.py` names them.
        floats: The value of each number as a float.
        spellings: The bytes of all spellings.
        granted: The slots up to this one are kept from the start, except for some.
    """

    def __init__(self, layout: Arrays | None = None) -> None:
        self.granted = 0
        self._not_granted = ints(0)
        # An attacker who knew the seed could choose terms that all fall on one place of the
        # table. Numbers do not depend on it.
        self._seed = secrets.randbits(62)
        self.terms: TermRecords = np.zeros(_FIRST_SLOTS, TERM)
        self.kinds = ints(_FIRST_SLOTS)
        self.floats: NDArray[np.float64] = np.zeros(_FIRST_SLOTS)
        self.spellings: NDArray[np.uint8] = np.zeros(_FIRST_BYTES, dtype=np.uint8)
        self._table = ints(2 * _FIRST_SLOTS)
        self._free = ints(_FIRST_SLOTS)
        self._pending = ints(_FIRST_SLOTS)
        self._counters = np.zeros(1, COUNTERS)
        self._counters["fresh"] = 1  # slot 0 stays empty: the number 0 is no term
        if layout is not None:
            self._take(layout)

    def _take(self, layout: Arrays) -> None:
        self.terms = layout["cells"].reshape(-1).view(TERM)
        self.kinds, self.floats = layout["kinds"], layout["floats"]
        self.spellings = layout["store"]
        self._table, self._free = layout["table"], layout["free"]
        self._pending = layout["pending"]
        self._counters = layout["state"].view(COUNTERS)
        self._seed, self.granted = (int(each) for each in layout["numbers"])
        self._not_granted = layout["not_granted"]

    def layout(self) -> Arrays:
        """Return all of it as arrays, for dictionaries that begin with the same terms.

        There is room for as many terms again, so that these need not move it soon.
        """
        if 2 * self.fresh > len(self.terms):
            self._widen(2 * len(self.terms))
        if 2 * self._live > len(self.spellings):
            self._pack(self._live)
        return {
            "cells": self.terms.view(np.int64).reshape(len(self.terms), -1),
            "kinds": self.kinds,
            "floats": self.floats,
            "table": self._table,
            "free": self._free,
            "pending": self._pending,
            "state": self._counters.view(np.int64),
            "store": self.spellings,
            "numbers": np.array([self._seed, self.granted], dtype=np.int64),
            "not_granted": self._not_granted,
        }

    # --- how many there are ---

    @property
    def fresh(self) -> int:
        """The first slot that was never used."""
        return int(self._counters["fresh"][0])

    @property
    def _tail(self) -> int:
        return int(self._counters["tail"][0])

    @property
    def _live(self) -> int:
        return int(self._counters["live"][0])

    def __len__(self) -> int:
        return self.fresh - 1 - int(self._counters["free"][0])

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        tables = (self._table, self._free, self._pending, self.kinds, self.floats)
        return sum(each.nbytes for each in (self.terms, self.spellings, *tables))

    @property
    def place(self) -> int:
        """The address of the spellings; a new term may change it."""
        return address(self.spellings)

    # --- terms that come ---

    def intern(self, data: int, starts: Ints, lengths: Ints) -> Ints:
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
                self.terms,
                self.kinds,
                self._table,
                self._free,
                self._pending,
                self._counters,
                self.place,
                len(self.spellings),
                self._seed,
            )
            if done == len(starts):
                return numbers
            if not self._counters["free"][0] and self.fresh == len(self.terms):
                self._widen(2 * len(self.terms))
            if self._tail + lengths[done] > len(self.spellings):
                self._pack(int(lengths[done]))

    def _widen(self, slots: int) -> None:
        """Make room for more terms; `slots` is a power of two."""
        if slots > _MOST_SLOTS:
            raise InternalError("the dictionary of a shard would pass two thousand million terms")
        more = slots - len(self.terms)
        self.terms = np.concatenate([self.terms, np.zeros(more, TERM)])
        self.kinds = np.concatenate([self.kinds, ints(more)])
        self.floats = np.concatenate([self.floats, np.zeros(more)])
        self._free = np.concatenate([self._free, ints(more)])
        self._pending = np.concatenate([self._pending, ints(more)])
        self._table = ints(2 * slots)
        interning.fill_table(self.terms, self.fresh, self._table)

    def _pack(self, wanted: int) -> None:
        """Move the spellings together, into a store that leaves as much room as they take.

        The store shrinks by half at most, and never below what makes the next move worth looking
        at every slot.
        """
        live = np.flatnonzero(self.terms["length"][: self.fresh])
        enough = max(2 * (self._live + wanted), len(self.spellings) // 2, 16 * self.fresh)
        packed = np.empty(power_of_two(max(_FIRST_BYTES, enough)), dtype=np.uint8)
        ends = self.gather(live, packed)
        self.terms["start"][live] = ends[:-1]
        self._counters["tail"] = ends[-1]
        self.spellings = packed

    def gather(self, slots: Ints, target: NDArray[np.uint8]) -> Ints:
        """Copy the spellings of slots to `target`, and return where each begins, then the end."""
        ends = ints(len(slots) + 1)
        interning.gather(slots, self.terms, self.place, ends, address(target))
        return ends

    # --- terms that go ---

    def count(self, numbers: Ints, sign: int) -> None:
        """Count one holder more or less for each number, as often as it occurs."""
        flat = np.ascontiguousarray(numbers).reshape(-1)
        granted = int(self._not_granted[0]) - 1 if len(self._not_granted) else self.granted
        if not interning.count(flat, sign, granted, self.terms, self._pending, self._counters):
            raise InternalError("a term was held that is forgotten, or dropped without a holder")

    def keep(self, slots: Ints) -> None:
        """Hold terms for ever, each given once."""
        slots = slots[self.terms["count"][slots] < KEPT]
        self.terms["count"][slots] += KEPT

    def forget(self) -> None:
        """Forget what is new or was dropped and has no holder."""
        interning.forget(self.terms, self._table, self._free, self._pending, self._counters)
        if not self._live:
            self._counters["tail"] = 0

    # --- snapshots ---

    def grant(self) -> None:
        """Take it that what is kept now, such as the terms of static data, is in every copy.

        Snapshots leave it out. How many other holders it has does not matter: it is never
        forgotten.
        """
        self.forget()
        is_kept = self.terms["count"][: self.fresh] >= KEPT
        self.granted = int(np.flatnonzero(is_kept).max(initial=0))
        self._not_granted = np.flatnonzero(~is_kept[1 : self.granted + 1]) + 1

    def _own(self) -> Ints:
        """Return the slots in use of what is not granted."""
        after = np.arange(self.granted + 1, self.fresh, dtype=np.int64)
        slots = np.concatenate((self._not_granted, after))
        return slots[self.terms["length"][slots] > 0]

    def arrays(
        self, included: Ints | None = None, released: Ints | None = None
    ) -> dict[str, NDArray[Any]]:
        """Return terms and numbers, for a snapshot; only between steps.

        Args:
            included: Numbers of terms that are not left out even if they are granted.
            released: Numbers, each as often as it counts one holder less there.
        """
        is_in = np.zeros(self.fresh, dtype=bool)
        is_in[self._own()] = True
        counts = self.terms["count"][: self.fresh].copy()
        if released is not None:
            entries = released[(released > 0) & (released < INLINE_LIMIT)]
            counts -= 2 * np.bincount(entries, minlength=self.fresh)
            is_in &= counts > 0
        if included is not None:
            is_in[included[(included > 0) & (included < len(is_in))]] = True
        slots = np.flatnonzero(is_in)
        lengths = self.terms["length"][slots]
        spellings = np.empty(int(lengths.sum()), dtype=np.uint8)
        self.gather(slots, spellings)
        return {
            "spellings": spellings,
            "slots": slots,
            "lengths": lengths,
            "counts": counts[slots],
            "pending": self._pending[: int(self._counters["pending"][0])].copy(),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` returned; every term has the number it had."""
        # What is granted is as it is here; nothing else is.
        own = self._own()
        self.terms["count"][own] = 1
        self._pending[: len(own)] = own
        self._counters["pending"] = len(own)
        self.forget()
        slots, lengths, spellings = arrays["slots"], arrays["lengths"], arrays["spellings"]
        fresh = max(self.granted, int(slots.max(initial=0))) + 1
        if fresh > len(self.terms):
            self._widen(power_of_two(fresh))
        if self._tail + len(spellings) > len(self.spellings):
            self._pack(len(spellings))
        interning.adopt(
            address(spellings),
            slots,
            lengths,
            arrays["counts"],
            self.terms,
            self.kinds,
            self._table,
            self._counters,
            self.place,
            self._seed,
        )
        places = np.concatenate(
            (self._not_granted, np.arange(self.granted + 1, fresh, dtype=np.int64))
        )
        free = places[self.terms["length"][places] == 0][::-1]
        self._free[: len(free)] = free
        self._pending[: len(arrays["pending"])] = arrays["pending"]
        self._counters["fresh"] = fresh
        self._counters["free"] = len(free)
        self._counters["pending"] = len(arrays["pending"])
