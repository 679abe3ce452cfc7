"""How much the benchmark of many queries measures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, final


@final
@dataclass(frozen=True, slots=True)
class CloudSize:
    """How much is measured.

    Attributes:
        constants: numbers of queries that differ in a constant.
        windows: numbers of queries that differ in window lengths.
        mixed: the number of queries of all templates together.
        registered: how many queries are registered in one call.
        triples: triples in a batch.
        few: triples in a batch where answers are many.
        batches: batches that count.
        users: users of the streams; there are as many as constants, if that is more.
        soaked: queries at a time while others come and go.
        soak_minutes: for how long.
        seed: of constants and lengths.
    """

    constants: tuple[int, ...] = (1, 100, 1_000, 10_000, 100_000)
    windows: tuple[int, ...] = (1, 10, 100, 1_000, 10_000)
    mixed: int = 1_000
    registered: int = 10_000
    triples: int = 1_000_000
    few: int = 40_000
    batches: int = 3
    users: int = 10_000
    soaked: int = 2_000
    soak_minutes: float = 30
    seed: int = 4


QUICK: Final = CloudSize(
    constants=(1, 100),
    windows=(1, 10),
    mixed=24,
    registered=200,
    triples=50_000,
    few=10_000,
    batches=1,
    soaked=100,
    soak_minutes=0.5,
)


def sized(
    *, quick: bool, most: int | None = None, triples: int | None = None, batches: int | None = None
) -> CloudSize:
    """The size that was asked for."""
    size = QUICK if quick else CloudSize()
    if most is not None:
        size = replace(
            size,
            constants=tuple(each for each in size.constants if each <= most),
            windows=tuple(each for each in size.windows if each <= most),
            mixed=min(size.mixed, most),
            registered=min(size.registered, most),
            soaked=min(size.soaked, most),
        )
    if triples is not None:
        size = replace(size, triples=triples, few=min(size.few, triples))
    return replace(size, batches=batches) if batches is not None else size
