"""Entailment inside matching, as paper 003 measured it: throughput, memory, schemas, static data.

Every query runs in three ways, in turn: over the original stream with the schema; without a schema
over the stream and its consequences; and without a schema over a stream in which the type in
question replaces the type of each product. All must give the same number of answers.

The second stream has more triples for each offer, and most of them match nothing. So triples a
second favour it, and offers a second favour entailment. The first and the third stream have the
same number of triples, so their difference in time is the cost of entailment.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import geometric_mean, median
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.bench.bsbm import LARGE, OFFER_TRIPLES, SMALL, STREAM, Shop, pattern
from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.live import WARM_BATCHES, Throughput, measure_query
from quadweir.bench.measure import machine
from quadweir.errors import InternalError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTAILED: Final = "with entailment"
IN_STREAM: Final = "consequences in the stream"
IN_PLACE: Final = "consequences in place of types"
WAYS: Final = (ENTAILED, IN_PLACE, IN_STREAM)

_RATIO: Final = 0.95
_LEAST: Final = 200_000
_WINDOW: Final = 5


@final
@dataclass(frozen=True, slots=True)
class SparkwaveSize:
    """How much is measured.

    Attributes:
        offers: offers in a batch.
        batches: batches that count.
        rounds: how often each contender runs.
        windows: lengths of windows, in seconds.
        static: numbers of static triples.
    """

    offers: int = 50_000
    batches: int = 6
    rounds: int = 2
    windows: tuple[int, ...] = (1, 5, 10, 15, 20, 25)
    static: tuple[int, ...] = (0, 20_000, 100_000, 1_000_000)


QUICK: Final = SparkwaveSize(offers=5_000, batches=1, rounds=1, windows=(1, 5), static=(0, 20_000))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One query to measure.

    Attributes:
        number: which of the three patterns.
        shop: the shop that makes the offers.
        level: the level of the class in the query.
        seconds: the length of its window.
        static: the least number of static triples.
        ways: the ways to measure it in.
    """

    number: int = 1
    shop: Shop
    level: int = 1
    seconds: int
    static: int = 0
    ways: tuple[str, ...] = WAYS


@final
@dataclass(frozen=True, slots=True)
class Point:
    """One query measured in several ways.

    Attributes:
        section: the section of the report.
        pattern: which of the three.
        seconds: the length of its window.
        classes: how many there are in the schema.
        below: the number of classes below the one in the query.
        static: how many static triples there are.
        answers: the number of answers.
        rates: triples of the stream a second, by way, in the median batch.
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
    def name(self) -> str:
        return (
            f"pattern {self.pattern}, {self.seconds} s, {self.classes:,} classes, "
            f"{self.below:,} below, {self.static:,} static triples"
        )


@final
class Measured:
    """Streams and schemas on disk, made when they are first asked for, and runs over them."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        size: SparkwaveSize,
        on_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._on_step = on_step
        self._written: dict[str, tuple[Path, int]] = {}
        self.size = size

    def points(self, section: str, cases: Sequence[Case]) -> list[Point]:
        """Measure queries in all their ways, in turn, so that a disturbance affects all of them.

        Raises:
            InternalError: the ways give different numbers of answers.
        """
        found: list[dict[str, list[Throughput]]] = [
            {way: [] for way in case.ways} for case in cases
        ]
        # The first way finds Spark less warm, so the ways take turns at being first.
        in_order = [
            (case, way, known[way])
            for case, known in zip(cases, found, strict=True)
            for way in case.ways
        ]
        for turn in range(self.size.rounds):
            for case, way, runs in in_order if turn % 2 == 0 else reversed(in_order):
                self._on_step(
                    f"{section}: pattern {case.number}, {case.seconds} s, {way}, "
                    f"round {turn + 1} of {self.size.rounds}"
                )
                runs.append(self._measure(case, way))
        return [self._point(section, case, known) for case, known in zip(cases, found, strict=True)]

    def _measure(self, case: Case, way: str) -> Throughput:
        return measure_query(
            self._spark,
            pattern(case.number, case.shop.target(case.level), case.seconds),
            {STREAM: self._stream(case.shop, way, case.level)},
            static=[file for file, _ in self._static(case)],
            schema=[self._schema(case.shop)] if way is ENTAILED else [],
        )

    def _point(self, section: str, case: Case, found: Mapping[str, list[Throughput]]) -> Point:
        answers = {way: {each.answers for each in runs} for way, runs in found.items()}
        if len(set.union(*answers.values())) > 1:
            raise InternalError(f"the ways give different numbers of answers: {answers}")
        shop = case.shop
        wide = {
            way: OFFER_TRIPLES + (len(shop.branching) if way is IN_STREAM else 0) for way in found
        }
        # The median batch of all rounds: it ignores batches that were disturbed or favoured.
        rates = {
            way: median([rate for each in runs for rate in each.rates])
            for way, runs in found.items()
        }
        return Point(
            section,
            case.number,
            case.seconds,
            sum(shop.sizes),
            shop.below(case.level),
            sum(count for _, count in self._static(case)),
            set.union(*answers.values()).pop(),
            rates,
            {way: rate / wide[way] for way, rate in rates.items()},
            {way: max(each.memory_mib for each in runs) for way, runs in found.items()},
        )

    def _name(self, shop: Shop) -> str:
        return "-".join(map(str, shop.branching))

    def _stream(self, shop: Shop, way: str, level: int) -> Path:
        kind = {ENTAILED: "open", IN_STREAM: "closed", IN_PLACE: f"level{level}"}[way]
        folder = self._folder / f"{kind}-{self._name(shop)}"
        if not folder.exists():
            shop.write(
                folder,
                batches=WARM_BATCHES + self.size.batches,
                offers=self.size.offers,
                closed=way is IN_STREAM,
                level=level if way is IN_PLACE else None,
            )
        return folder

    def _schema(self, shop: Shop) -> Path:
        file = self._folder / f"{self._name(shop)}.ttl"
        if not file.exists():
            shop.schema(file)
        return file

    def _static(self, case: Case) -> list[tuple[Path, int]]:
        if case.number == 1 and not case.static:
            return []
        name = f"{case.number}-{case.static}"
        if name not in self._written:
            file = self._folder / f"static-{name}.nt"
            count = case.shop.static(file, triples=case.static, producers=case.number == 3)
            self._written[name] = file, count
        return [self._written[name]]


# --- sections -----------------------------------------------------------------------------------


def windows(size: SparkwaveSize) -> list[Case]:
    """Pattern 1 over windows of growing length: the paper's Figures 7 and 8."""
    return [Case(shop=Shop(SMALL), seconds=seconds) for seconds in size.windows]


def patterns(size: SparkwaveSize) -> list[Case]:
    """Patterns 2 and 3 over the shortest and the longest window."""
    return [
        Case(number=number, shop=Shop(SMALL), seconds=seconds)
        for number in (2, 3)
        for seconds in (size.windows[0], size.windows[-1])
    ]


def schemas(_size: SparkwaveSize) -> list[Case]:
    """Pattern 1 for classes with none to all of a small and a large schema below them."""
    return [
        Case(shop=shop, level=level, seconds=_WINDOW, ways=(ENTAILED, IN_PLACE))
        for shop in (Shop(SMALL), Shop(LARGE))
        for level in range(len(shop.branching) + 1)
    ]


def static_data(size: SparkwaveSize) -> list[Case]:
    """Patterns 2 and 3 with growing static data: the paper's Figure 9."""
    return [
        Case(number=number, shop=Shop(SMALL), seconds=1, static=triples, ways=(ENTAILED, IN_PLACE))
        for number in (2, 3)
        for triples in size.static
    ]


def flatness(size: SparkwaveSize) -> list[Case]:
    """The smallest and the largest schema and static data, only with entailment."""
    ways = (ENTAILED,)
    trees = [Case(shop=Shop(tree), level=0, seconds=_WINDOW, ways=ways) for tree in (SMALL, LARGE)]
    return trees + [
        Case(number=number, shop=Shop(SMALL), seconds=1, static=triples, ways=ways)
        for number in (2, 3)
        for triples in (size.static[0], size.static[-1])
    ]


SECTIONS: Final[dict[str, Callable[[SparkwaveSize], list[Case]]]] = {
    "windows": windows,
    "patterns": patterns,
    "schemas": schemas,
    "static": static_data,
    "flatness": flatness,
}


def run(
    sections: Sequence[str] = tuple(SECTIONS),
    *,
    size: SparkwaveSize | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure sections; `merged` adds the targets to the result."""
    from quadweir.runtime.spark.session import build

    size, about = size or SparkwaveSize(), machine()
    found: list[Point] = []
    on_step("starting Spark")
    spark = build(app_name="quadweir-bench", master="local[2]", shards=2)
    try:
        with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as folder:
            # The first runs of a session load and compile; they do not count.
            warm = Case(shop=Shop(SMALL), seconds=1, ways=(ENTAILED, IN_STREAM))
            Measured(spark, Path(folder), replace(size, rounds=1)).points("warm-up", [warm])
            measured = Measured(spark, Path(folder), size, on_step)
            for name in sections:
                found += measured.points(name, SECTIONS[name](size))
    finally:
        spark.stop()
    return {
        "benchmark": "sparkwave",
        "machine": about,
        "input": asdict(size),
        "points": [asdict(each) for each in found],
    }


def merged(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Merge the results of several runs, and add their targets.

    If two runs measured the same section, the last one counts.
    """
    latest = {point["section"]: each for each in results for point in each["points"]}
    points = [
        point
        for name, each in latest.items()
        for point in each["points"]
        if point["section"] == name
    ]
    figures = _figures([Point(**each) for each in points])
    machines = [each["machine"] for each in results]
    return {
        **results[-1],
        "machine": {
            key: texts[0] if len(texts) == 1 else ", ".join(map(str, texts))
            for key in machines[-1]
            for texts in [list(dict.fromkeys(each[key] for each in machines))]
        },
        "commands": [words for each in results for words in each["commands"]],
        "points": points,
        "sections": {name: [each.as_json() for each in some] for name, some in figures.items()},
    }


def _figures(points: Sequence[Point]) -> dict[str, list[Measurement]]:
    """The measurements with their targets."""
    found: dict[str, list[Measurement]] = {}
    for each in points:
        own = found.setdefault(each.section, [])
        note = f"{each.answers:,} answers, {each.memory_mib[ENTAILED]:,} MiB"
        rate = each.rates[ENTAILED]
        own.append(Measurement(each.name, rate, "triples/s", at_least=_LEAST, note=note))
        if IN_PLACE in each.rates:
            cost = rate / each.rates[IN_PLACE]
            own.append(Measurement(f"  compared with {IN_PLACE}", cost, "x", at_least=_RATIO))
        if IN_STREAM in each.rates:
            ratio = each.offers[ENTAILED] / each.offers[IN_STREAM]
            note = f"by triples {rate / each.rates[IN_STREAM]:.2f}"
            name = f"  compared with {IN_STREAM}, by offers"
            own.append(Measurement(name, ratio, "x", at_least=_RATIO, note=note))
    for name, own in found.items():
        costs = [
            each.rates[ENTAILED] / each.rates[IN_PLACE]
            for each in points
            if each.section == name and IN_PLACE in each.rates
        ]
        if len(costs) > 1:
            # Single ratios vary by more than entailment costs.
            note = f"{min(costs):.2f} to {max(costs):.2f}"
            texts = f"all {len(costs)} compared with {IN_PLACE}, geometric mean"
            own.append(Measurement(texts, geometric_mean(costs), "x", at_least=_RATIO, note=note))
    ends = [each for each in points if each.section == "flatness"]
    for number in sorted({each.pattern for each in ends}):
        few, *_, many = (each for each in ends if each.pattern == number)
        if number == 1:
            name = f"{many.classes:,} / {few.classes:,} classes"
        else:
            name = f"pattern {number}, {many.static:,} / {few.static:,} static"
        ratio = many.rates[ENTAILED] / few.rates[ENTAILED]
        found["flatness"].append(Measurement(name, ratio, "x", at_least=_RATIO))
    return found


def sized(
    *,
    quick: bool,
    offers: int | None = None,
    rounds: int | None = None,
    windows: Sequence[int] = (),
) -> SparkwaveSize:
    """The size that was asked for."""
    size = QUICK if quick else SparkwaveSize()
    if offers is not None:
        size = replace(size, offers=offers)
    if windows:
        size = replace(size, windows=tuple(windows))
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
