"""Entailment inside matching, as paper 003 measured it: throughput, memory, schemas, static data.

Every query runs twice in turn: over the stream as it is, with the schema, and without one over a
stream that has the consequences in it already. Both must give as many answers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.bench.bsbm import LARGE, OFFER_TRIPLES, SMALL, STREAM, Shop, pattern
from quadweir.bench.kernel_pipeline import Figure
from quadweir.bench.live import WARM_BATCHES, Throughput, measure_query
from quadweir.bench.measure import machine
from quadweir.errors import InternalError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTAILED: Final = "with entailment"
IN_STREAM: Final = "consequences in the stream"

_RATIO: Final = 0.95
_LEAST: Final = 200_000
_WINDOW: Final = 5


@final
@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured.

    Attributes:
        offers: offers in a batch.
        batches: batches that count.
        rounds: how often contenders take turns; the best of each counts.
        windows: lengths of windows, in seconds.
        static: numbers of static triples.
    """

    offers: int = 50_000
    batches: int = 4
    rounds: int = 2
    windows: tuple[int, ...] = (1, 5, 10, 15, 20, 25)
    static: tuple[int, ...] = (0, 10_000, 100_000, 1_000_000)


QUICK: Final = Size(offers=5_000, batches=1, rounds=1, windows=(1, 5), static=(0, 20_000))


@final
@dataclass(frozen=True, slots=True)
class Point:
    """One query measured in both ways.

    Attributes:
        section: of what.
        pattern: which of the three.
        seconds: the length of its window.
        classes: how many there are in the schema.
        below: how many are below the one asked for.
        static: how many static triples there are.
        answers: how many there were.
        rates: triples of the stream a second, by way.
        offers: offers a second, by way.
        memory_mib: the most that all processes held, by way.
    """

    section: str
    pattern: int
    seconds: int
    classes: int
    below: int
    static: int
    answers: int
    rates: dict[str, float]
    offers: dict[str, float]
    memory_mib: dict[str, int]

    @property
    def ratio(self) -> float:
        """Entailment beside consequences in the stream, by triples a second."""
        return self.rates[ENTAILED] / self.rates[IN_STREAM]

    @property
    def name(self) -> str:
        return (
            f"pattern {self.pattern}, {self.seconds} s, {self.classes:,} classes, "
            f"{self.below:,} below, {self.static:,} static triples"
        )


@final
class Measured:
    """Streams and schemas on disk, made when they are first asked for, and runs over them."""

    def __init__(self, spark: SparkSession, folder: Path, size: Size) -> None:
        self._spark = spark
        self._folder = folder
        self.size = size

    def point(
        self,
        section: str,
        number: int,
        shop: Shop,
        level: int,
        *,
        seconds: int,
        static: int = 0,
    ) -> Point:
        """Measure one query in both ways, in turn.

        Raises:
            InternalError: the two do not give as many answers.
        """
        text = pattern(number, shop.target(level), seconds)
        files = self._static(shop, number, static)
        best: dict[str, Throughput] = {}
        for turn in range(self.size.rounds):
            # Whoever comes first finds less of Spark warm: so each does, in turn.
            for way in (ENTAILED, IN_STREAM) if turn % 2 == 0 else (IN_STREAM, ENTAILED):
                found = measure_query(
                    self._spark,
                    text,
                    {STREAM: self._stream(shop, closed=way is IN_STREAM)},
                    static=[file for file, _ in files],
                    schema=[self._schema(shop)] if way is ENTAILED else [],
                )
                known = best.get(way)
                if known is None or found.triples_per_second > known.triples_per_second:
                    best[way] = found
        answers = {way: each.answers for way, each in best.items()}
        if len(set(answers.values())) > 1:
            raise InternalError(f"the two ways give different numbers of answers: {answers}")
        wide = {ENTAILED: OFFER_TRIPLES, IN_STREAM: OFFER_TRIPLES + len(shop.branching)}
        return Point(
            section,
            number,
            seconds,
            sum(shop.sizes),
            shop.below(level),
            sum(count for _, count in files),
            answers[ENTAILED],
            {way: each.triples_per_second for way, each in best.items()},
            {way: each.triples_per_second / wide[way] for way, each in best.items()},
            {way: each.memory_mib for way, each in best.items()},
        )

    def _name(self, shop: Shop) -> str:
        return "-".join(map(str, shop.branching))

    def _stream(self, shop: Shop, *, closed: bool) -> Path:
        folder = self._folder / f"{'closed' if closed else 'open'}-{self._name(shop)}"
        if not folder.exists():
            batches = WARM_BATCHES + self.size.batches
            shop.write(folder, batches=batches, offers=self.size.offers, closed=closed)
        return folder

    def _schema(self, shop: Shop) -> Path:
        file = self._folder / f"{self._name(shop)}.ttl"
        if not file.exists():
            shop.schema(file)
        return file

    def _static(self, shop: Shop, number: int, triples: int) -> list[tuple[Path, int]]:
        if number == 1 and not triples:
            return []
        file = self._folder / f"static-{number}-{triples}.nt"
        count = shop.static(file, triples=triples, producers=number == 3)
        return [(file, count)]


# --- sections -----------------------------------------------------------------------------------


def windows(measured: Measured) -> Iterator[Point]:
    """Pattern 1 over windows of growing length: the paper's Figures 7 and 8."""
    for seconds in measured.size.windows:
        yield measured.point("windows", 1, Shop(SMALL), 1, seconds=seconds)


def schemas(measured: Measured) -> Iterator[Point]:
    """Pattern 1 for classes with none to all of a small and a large schema below them."""
    for shop in (Shop(SMALL), Shop(LARGE)):
        for level in range(len(shop.branching) + 1):
            yield measured.point("schemas", 1, shop, level, seconds=_WINDOW)


def static_data(measured: Measured) -> Iterator[Point]:
    """Patterns 2 and 3 with growing static data: the paper's Figure 9."""
    for number in (2, 3):
        for triples in measured.size.static:
            yield measured.point("static", number, Shop(SMALL), 1, seconds=1, static=triples)


SECTIONS: Final[dict[str, Callable[[Measured], Iterator[Point]]]] = {
    "windows": windows,
    "schemas": schemas,
    "static": static_data,
}


def run(
    sections: Sequence[str] = tuple(SECTIONS),
    *,
    size: Size | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure sections."""
    from quadweir.runtime.session import build

    size, about = size or Size(), machine()
    found: list[Point] = []
    on_step("starting Spark")
    spark = build(app_name="quadweir-bench", master="local[2]", shards=2)
    try:
        with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as folder:
            measured = Measured(spark, Path(folder), size)
            # The first run of a session loads and compiles; it counts for nobody.
            measured.point("warm", 1, Shop(SMALL), 1, seconds=1)
            for name in sections:
                for point in SECTIONS[name](measured):
                    found.append(point)
                    on_step(f"{name}: {point.name}")
    finally:
        spark.stop()
    return {
        "benchmark": "sparkwave",
        "machine": about,
        "input": asdict(size),
        "points": [asdict(each) for each in found],
        "sections": {
            name: [each.as_json() for each in figures] for name, figures in _figures(found).items()
        },
    }


def _figures(points: Sequence[Point]) -> dict[str, list[Figure]]:
    """Set what was measured beside its targets."""
    found: dict[str, list[Figure]] = {}
    for each in points:
        own = found.setdefault(each.section, [])
        note = f"{each.answers:,} answers, {each.memory_mib[ENTAILED]:,} MiB"
        rate = each.rates[ENTAILED]
        own.append(Figure(each.name, rate, "triples/s", at_least=_LEAST, note=note))
        offers = each.offers[ENTAILED] / each.offers[IN_STREAM]
        own.append(
            Figure(
                "  beside consequences in the stream",
                each.ratio,
                "x",
                at_least=_RATIO,
                note=f"by offers {offers:.2f}",
            )
        )
    trees = [each for each in points if each.section == "schemas"]
    whole = {each.classes: each.rates[ENTAILED] for each in trees if each.below + 1 == each.classes}
    if len(whole) > 1:
        few, many = whole[min(whole)], whole[max(whole)]
        found["schemas"].append(
            Figure(f"{max(whole):,} / {min(whole):,} classes", many / few, "x", at_least=_RATIO)
        )
    for number in sorted({each.pattern for each in points if each.section == "static"}):
        own_points = [p for p in points if p.section == "static" and p.pattern == number]
        few, many = own_points[0].rates[ENTAILED], own_points[-1].rates[ENTAILED]
        found["static"].append(
            Figure(
                f"pattern {number}, {own_points[-1].static:,} / {own_points[0].static:,} static",
                many / few,
                "x",
                at_least=_RATIO,
            )
        )
    return found


def sized(*, quick: bool, offers: int | None = None, rounds: int | None = None) -> Size:
    """The size that was asked for."""
    size = QUICK if quick else Size()
    if offers is not None:
        size = replace(size, offers=offers)
    return replace(size, rounds=rounds) if rounds is not None else size


def generate(folder: Path, *, offers: int, large: bool = False) -> list[Path]:
    """Write schema, static data, a stream of offers and the three queries, for `quadweir query`."""
    shop = Shop(LARGE if large else SMALL)
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / name for name in ("types.ttl", "countries.nt", "offers.stream")]
    shop.schema(written[0])
    shop.static(written[1])
    with written[2].open("w", encoding="utf-8") as out:
        for first in range(0, offers, 10_000):
            table = shop.offers(first, min(10_000, offers - first))
            for row in table.to_pylist():
                out.write(
                    f"{row['event_time']} {row['subject']} {row['predicate']} {row['object']} .\n"
                )
    for number in (1, 2, 3):
        file = folder / f"pattern{number}.rq"
        file.write_text(pattern(number, shop.target(1), _WINDOW), encoding="utf-8")
        written.append(file)
    return written
