"""The ring of answers: what is kept has its place for ever, also after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quadweir.service.answerring import AnswerBlock, AnswerPlace, AnswerRing


def line(query: str, t: int) -> str:
    return f'{{"query":"{query}","t":{t},"sign":"+","bindings":{{}}}}'


def times(ring: AnswerRing, query: str, place: AnswerPlace | None = None) -> list[int]:
    found, _ = ring.after(query, place)
    return [int(text.split('"t":')[1].split(",")[0]) for _, text in found]


@pytest.fixture
def ring_in(tmp_path: Path) -> Iterator[Callable[..., AnswerRing]]:
    made: list[AnswerRing] = []

    def make(**options: Any) -> AnswerRing:
        made.append(AnswerRing(tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


Make = Callable[..., AnswerRing]


def test_answers_have_places_by_batch_and_number(tmp_path: Path, ring_in: Make) -> None:
    ring = ring_in()
    ring.add([line("a", 1), line("b", 2), line("a", 3)], 4)
    ring.add([line("a", 5)], 7)
    assert [place for place, _ in ring.after("a", None)[0]] == [(4, 1), (4, 2), (7, 1)]
    assert times(ring, "a", AnswerPlace(4, 1)) == [3, 5]
    assert times(ring, "b") == [2]
    assert times(ring, "c") == []


def test_a_repeated_batch_changes_nothing(tmp_path: Path, ring_in: Make) -> None:
    told: list[AnswerBlock] = []
    ring = ring_in(tell=told.append)
    ring.add([line("a", 1)], 0)
    ring.close()
    again = ring_in(tell=told.append)
    again.add([line("a", 1)], 0)
    assert times(again, "a") == [1]
    assert len(told) == 1


def test_a_block_that_a_crash_cut_short_is_written_again(tmp_path: Path, ring_in: Make) -> None:
    ring = ring_in()
    ring.add([line("a", 1)], 0)
    ring.add([line("a", 2)], 1)
    ring.close()
    file = next(tmp_path.glob("*.ring"))
    whole = file.read_bytes()
    for end in range(whole.index(b"\n", 60), len(whole)):
        file.write_bytes(whole[:end])
        cut = ring_in()
        cut.add([line("a", 2)], 1)
        cut.add([line("a", 3)], 2)
        assert times(cut, "a") == [1, 2, 3]
        cut.close()


def test_old_answers_go_from_memory_and_disk(tmp_path: Path, ring_in: Make) -> None:
    ring = ring_in(most_bytes=4_000)
    for batch in range(500):
        ring.add([line("a", batch)], batch)
    kept = times(ring, "a")
    assert kept == list(range(500 - len(kept), 500))
    assert 20 < len(kept) < 120
    assert ring.lost == 499 - len(kept)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 10_000
    ring.close()
    again = ring_in(most_bytes=4_000)
    assert times(again, "a")[-1] == 499
    assert again.lost >= 0


def test_a_query_of_the_same_name_does_not_have_the_answers_of_another(
    tmp_path: Path, ring_in: Make
) -> None:
    ring = ring_in()
    ring.add([line("a", 1), line("b", 1)], 0)
    ring.forget(["a"])
    ring.add([line("a", 2)], 1)
    assert (times(ring, "a"), times(ring, "b")) == ([2], [1])
    ring.close()
    again = ring_in()
    assert (times(again, "a"), times(again, "b")) == ([2], [1])
