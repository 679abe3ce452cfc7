"""From JSON records over an RML mapping to answers, next to Spark SQL by hand over the same JSON.

The mapping is the motorway's: five quads of each reading. A question needs two of them. The same
question is also asked over statements that are ready in Parquet files. Before anything is measured,
the answers of all three are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir import rows
from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.live import drain
from quadweir.bench.measure import ContenderTimes, in_turns, take_turns
from quadweir.errors import InternalError
from quadweir.rowfilters import good_statements

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from quadweir.engine import Engine

LEAST_OF_HAND: Final = 0.7
LEAST_OF_READY: Final = 0.9
_SENSORS: Final = 500
_START: Final = datetime(2026, 3, 3, tzinfo=UTC)
_STREAMS: Final = ("flow", "speed")
_IRI: Final = "http://example.org/motorway/"
_FILES: Final = 4


@final
@dataclass(frozen=True, slots=True)
class _Question:
    """A question, its file, its streams, and how it is answered by hand."""

    name: str
    file: str
    streams: tuple[str, ...]
    by_hand: Callable[[SparkSession, Path], DataFrame]


def ask_mapped(
    spark: SparkSession, folder: Path, *, records: int, rounds: int
) -> Iterator[Measurement]:
    """Ask each question of mapped records, by hand, and of statements that are ready.

    Args:
        spark: the session.
        folder: where records and statements may lie.
        records: how many records each stream has.
        rounds: how often the three take turns, after two turns that do not count.
    """
    write_records(folder, records)
    ready = _write_ready(spark, folder)
    for question in QUESTIONS:
        count = records * len(question.streams)
        contenders = {
            "mapped": lambda q=question: drain(_answers(_mapped(spark, folder), q)),
            "by hand": lambda q=question: drain(q.by_hand(spark, folder)),
            "ready": lambda q=question: drain(_answers(_over(spark, ready), q)),
        }
        _check(spark, folder, ready, question)
        timings = take_turns(contenders, rounds=rounds, warm_up=2)
        yield from _figures(question, count, timings)


def _figures(
    question: _Question, count: int, timings: dict[str, ContenderTimes]
) -> Iterator[Measurement]:
    for name, timing in timings.items():
        yield Measurement(f"{question.name}, {name}", count / timing.best, "records/s")
    mapped = timings["mapped"]
    for name, least in (("by hand", LEAST_OF_HAND), ("ready", LEAST_OF_READY)):
        ratio = in_turns(timings[name], mapped)
        yield Measurement(f"{question.name}, mapped / {name}", ratio, "x", at_least=least)


def write_records(folder: Path, records: int) -> None:
    """Write the records of both streams, in files of equal size."""
    for place, stream in enumerate(_STREAMS):
        (folder / stream).mkdir(parents=True)
        size = -(-records // _FILES)
        for part in range(_FILES):
            numbers = range(part * size, min((part + 1) * size, records))
            lines = "".join(_record(stream, number, place) for number in numbers)
            (folder / stream / f"{part}.jsonl").write_text(lines, encoding="utf-8")


def _record(stream: str, number: int, place: int) -> str:
    minute, sensor = divmod(number, _SENSORS)
    time = (_START + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")
    value = (number * 7919 + place) % 131
    return (
        f'{{"sensor": "{sensor / 10:.1f}-{sensor % 3}", "time": "{time}", "{stream}": {value}}}\n'
    )


def _mapped(spark: SparkSession, folder: Path) -> Engine:
    from quadweir.engine import Engine
    from quadweir.sources.declare import FolderSource, Format, FromColumn, StreamDeclaration

    engine = Engine(spark)
    engine.declare(
        *(
            StreamDeclaration(
                iri=_IRI + stream,
                source=FolderSource(path=folder / stream),
                format=Format.JSONL,
                time=FromColumn("time"),
            )
            for stream in _STREAMS
        )
    )
    engine.map(Path(str(files("quadweir.bench") / "motorway.ttl")))
    return engine


def _write_ready(spark: SparkSession, folder: Path) -> Path:
    engine, ready = _mapped(spark, folder), folder / "ready"
    for stream in _STREAMS:
        statements = rows.select_statements(good_statements(engine.open_feed(_IRI + stream)))
        statements.write.option("compression", "none").parquet(str(ready / stream))
    return ready


def _over(spark: SparkSession, ready: Path) -> Engine:
    from quadweir.engine import Engine

    engine = Engine(spark)
    for stream in _STREAMS:
        frame = spark.read.schema(rows.STATEMENT_SCHEMA).parquet(str(ready / stream))
        engine.provide(_IRI + stream, frame, canonical=True)
    return engine


def _answers(engine: Engine, question: _Question) -> DataFrame:
    text = files("quadweir.bench").joinpath("queries", f"{question.file}.rq")
    return engine.query(text.read_text(encoding="utf-8")).spelled_answers()


# -- by hand -----------------------------------------------------------------------------------


def _read(spark: SparkSession, folder: Path, stream: str, minutes: int) -> DataFrame:
    """Return the readings with the instant at which their window closes."""
    from pyspark.sql import functions as F

    schema = f"sensor string, time timestamp, {stream} int"
    found = spark.read.schema(schema).json(str(folder / stream))
    length = minutes * 60_000
    close = F.ceil(F.unix_millis("time") / length) * length
    return found.withColumn("t", close.cast("bigint"))


def _count_by_hand(spark: SparkSession, folder: Path) -> DataFrame:
    from pyspark.sql import functions as F

    return (
        _read(spark, folder, "speed", 10)
        .groupBy("t", "sensor")
        .agg(F.count(F.lit(1)).alias("n"))
        .select("t", _sensor(), _integer("n"))
    )


def _join_by_hand(spark: SparkSession, folder: Path) -> DataFrame:
    flow, speed = (_read(spark, folder, stream, 1) for stream in _STREAMS)
    found = flow.join(speed.drop("time"), ["t", "sensor"])
    return found.select("t", _sensor(), _integer("flow"), _integer("speed"))


def _sensor() -> Column:
    from pyspark.sql import functions as F

    return F.concat(F.lit(f"<{_IRI}sensor/"), "sensor", F.lit(">")).alias("sensor")


def _integer(name: str) -> Column:
    from pyspark.sql import functions as F

    from quadweir.vocab import XSD

    text = F.col(name).cast("string")
    return F.concat(F.lit('"'), text, F.lit(f'"^^<{XSD.integer}>')).alias(name)


QUESTIONS: Final = (
    _Question("tumbling count", "counts", ("speed",), _count_by_hand),
    _Question("join of two streams", "pairs", _STREAMS, _join_by_hand),
)


def _check(spark: SparkSession, folder: Path, ready: Path, question: _Question) -> None:
    """Compare the answers of all three.

    Raises:
        InternalError: they differ.
    """
    hand = Counter(map(tuple, question.by_hand(spark, folder).collect()))
    for engine in (_mapped(spark, folder), _over(spark, ready)):
        found = Counter(
            (row["t"], *row["bindings"]) for row in _answers(engine, question).collect()
        )
        if found != hand:
            raise InternalError(
                f"{question.name} has {found.total()} answers, {hand.total()} by hand"
            )
