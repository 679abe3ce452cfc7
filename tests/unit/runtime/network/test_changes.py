"""Changes and notes of a network, as blobs: read back as they were written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.errors import StateError
from quadweir.kernel.arrays import ALWAYS
from quadweir.runtime.network.changes import (
    BatchNote,
    Joining,
    NetworkChange,
    split_change,
    split_note,
)

numbers = st.integers(0, 2**40)
many = st.lists(numbers, max_size=4).map(tuple)
instants = st.just(ALWAYS) | st.integers(-(2**50), 2**50)
# Spellings of terms; a blank, a quotation mark and a lone surrogate are the hard ones.
spellings = st.text() | st.sampled_from(['"1 \\"\\n"@en', "<urn:\U0001f600>", '"\ud800"', ""])
units = st.tuples(numbers, instants)


@st.composite
def joinings(draw: st.DrawFn) -> Joining:
    found = draw(many)
    constants = tuple(tuple(draw(st.lists(spellings, max_size=3))) for _ in found)
    return Joining(draw(numbers), found, constants, tuple(draw(many) for _ in found))


changes = st.builds(
    NetworkChange,
    version=numbers,
    bits=st.none() | st.dictionaries(numbers, many, max_size=4),
    joining=st.lists(joinings(), max_size=3).map(tuple),
    leaving=many,
    paused=many,
    resumed=many,
)
notes = st.builds(
    BatchNote,
    change=st.none() | changes,
    since=st.dictionaries(numbers, instants, max_size=3),
    through=st.dictionaries(units, instants, max_size=3),
    failed=st.dictionaries(units, st.text(), max_size=3),
)


@given(changes)
def test_a_change_is_found_among_other_blobs(change: NetworkChange) -> None:
    assert split_change([b"rows", change.to_bytes(), b"more"]) == (change, [b"rows", b"more"])


def test_most_batches_have_no_change() -> None:
    assert split_change([b"rows", b""]) == (None, [b"rows", b""])


@given(notes, st.lists(st.binary(), max_size=3))
def test_a_note_is_read_as_it_was_written(note: BatchNote, others: list[bytes]) -> None:
    assert split_note([note.to_bytes(), *others]) == (note, others)


def test_the_journal_of_a_single_query_is_refused() -> None:
    with pytest.raises(StateError, match="not written by a network"):
        split_note([b"ARROW1", b"rows"])


def test_a_note_is_no_change_and_a_change_is_no_note() -> None:
    assert split_change([BatchNote().to_bytes()]) == (None, [BatchNote().to_bytes()])
    with pytest.raises(StateError):
        split_note([NetworkChange(1).to_bytes()])
