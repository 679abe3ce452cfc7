"""The mismatch measure, against its definition and against examples worked by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quadweir.bench.mismatch import compare, mismatch
from quadweir.terms import IRI
from quadweir.testing import Answer


def literally(blocks: list[list[str]], other: list[str]) -> float:
    """The definition of the paper, with slices and maximal remainders."""
    slice_start = 1
    kept = total = 0
    for block in blocks:
        remaining = other[slice_start - 1 :]
        remainder = [answer for answer in block if answer in remaining]
        if remainder:
            slice_start = min(slice_start + remaining.index(answer) for answer in remainder)
        kept += len(remainder)
        total += len(block)
    return 100.0 * (total - kept) / total if total else 0.0


letters = st.lists(st.sampled_from("abcd"), max_size=8)


@given(blocks=st.lists(letters, max_size=6), other=letters)
def test_it_is_what_the_definition_says(blocks: list[list[str]], other: list[str]) -> None:
    assert mismatch(blocks, other) == literally(blocks, other)


def test_duplicates_are_tolerated_in_one_direction() -> None:
    # A periodic engine that answers again and again: its output is covered, and covers.
    again = [["a"], ["a"], ["a"], ["b"], ["b"]]
    assert mismatch(again, ["a", "b"]) == 0.0
    assert mismatch([["a"], ["b"]], [answer for block in again for answer in block]) == 0.0


def test_what_comes_in_another_order_is_a_mismatch() -> None:
    assert mismatch([["a"], ["b"]], ["b", "a"]) == 50.0


def test_the_slice_begins_at_the_earliest_match_of_the_block_before() -> None:
    # The block a, c keeps both and moves to a, the earlier one, so that b is still there.
    assert mismatch([["a", "c"], ["b"]], ["a", "b", "c"]) == 0.0
    # One by one, c has been passed when b is looked for.
    assert mismatch([["a"], ["c"], ["b"]], ["a", "b", "c"]) == 100 / 3


def test_an_empty_output_has_no_mismatch_and_is_all_missing() -> None:
    assert mismatch([], ["a"]) == 0.0
    assert mismatch([["a"]], []) == 100.0


def answer(t: int, name: str) -> Answer:
    return Answer.of(t, "+", {"x": IRI(f"urn:{name}")})


def test_comparing_is_by_instant_and_does_not_mind_the_order_within_one() -> None:
    one = [answer(1, "a"), answer(1, "b"), answer(2, "a")]
    same = compare(one, [one[1], one[0], one[2]])
    assert same.worst == 0.0 and same.size == same.other_size == 3
    moved = compare(one, [answer(1, "a"), answer(1, "b"), answer(3, "a")])
    assert moved.eager == moved.periodic_back == 100 / 3
    short = compare(one[:2], one)
    assert short.eager == 0.0 and short.eager_back == 100 / 3
