"""How fast N-Triples becomes quad rows, compared with a plain scan of the text and with pyoxigraph.

The lines are sensor readings in canonical N-Triples, the form of nearly all N-Triples in the world.
One line in `escaped_every` has an escape and takes the slow path.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quadweir.bench.measure import machine, take_turns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_XSD = "http://www.w3.org/2001/XMLSchema#"
_NS = "http://example.org/road#"


def write_lines(path: Path, count: int, *, seed: int = 1, escaped_every: int = 100) -> None:
    """Write the benchmark's lines; the same seed gives the same bytes."""
    rng = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            sensor = f"<http://example.org/sensor/{rng.randrange(100_000)}>"
            match number % 4:
                case 0:
                    rdf_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
                    line = f"{sensor} {rdf_type} <{_NS}Sensor>"
                case 1:
                    value = f'"{rng.random() * 120:.2f}"^^<{_XSD}decimal>'
                    line = f"{sensor} <{_NS}speed> {value}"
                case 2:
                    note = 'said \\"stop\\"' if number % escaped_every == 2 else "on the road"
                    line = f'{sensor} <{_NS}label> "sensor number {number} {note}"@en'
                case _:
                    at = f'"2026-05-04T08:{rng.randrange(60):02d}:00Z"^^<{_XSD}dateTime>'
                    line = f"{sensor} <{_NS}at> {at}"
            file.write(f"{line} .\n")


def run(
    spark: SparkSession,
    *,
    lines: int = 2_000_000,
    rounds: int = 3,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure; every figure is in lines per second, the best of `rounds`."""
    from pyspark.sql import functions as F

    from quadweir.sources.ntriples import parse_lines

    with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as folder:
        path = Path(folder) / "readings.nt"
        on_step("writing the input")
        write_lines(path, lines)
        text = spark.read.text(str(path))
        ours = parse_lines(text, F.col("value")).drop("value")
        cut = F.split("value", " ", 3)
        work: dict[str, list[int]] = {}

        def in_jvm(name: str, frame: DataFrame) -> Callable[[], None]:
            def run_once() -> None:
                before = _cpu_nanoseconds(spark)
                _drain(frame)
                work.setdefault(name, []).append(_cpu_nanoseconds(spark) - before)

            return run_once

        timings = take_turns(
            {
                "scan": in_jvm("scan", text),
                "split": in_jvm("split", text.select(cut[0], cut[1], cut[2])),
                "quadweir": in_jvm("quadweir", ours),
                "pyoxigraph": lambda: _drain(text.mapInArrow(_parse_with_pyoxigraph, _SCHEMA)),
            },
            rounds=rounds,
            on_step=on_step,
        )
        size = path.stat().st_size
    rates = {name: round(lines / timing.best) for name, timing in timings.items()}
    return {
        "benchmark": "ntriples",
        "machine": machine(),
        "input": {"lines": lines, "bytes": size, "rounds": rounds},
        "lines_per_second": rates,
        # CPU time is less disturbed by other programs. Pyoxigraph works outside the JVM, so it has
        # none here.
        "cpu_ns_per_line": {name: round(min(spent) / lines) for name, spent in work.items()},
        "explained": {
            "scan": "Spark reads the lines and does nothing with them",
            "split": "Spark cuts each line at two spaces and checks nothing",
            "quadweir": "each line checked, cut into canonical terms, faults with a reason",
            "pyoxigraph": "the same quads by pyoxigraph in Spark's Python workers",
        },
        "ratios": {
            "quadweir / scan": round(rates["quadweir"] / rates["scan"], 3),
            "quadweir / split": round(rates["quadweir"] / rates["split"], 3),
            "quadweir / pyoxigraph": round(rates["quadweir"] / rates["pyoxigraph"], 3),
        },
    }


_SCHEMA = "subject string, predicate string, object string"


def _cpu_nanoseconds(spark: SparkSession) -> int:
    """The CPU time of Spark's JVM so far, on all cores, with its compiler and garbage collector."""
    process = spark._jvm.java.lang.ProcessHandle.current()  # type: ignore[union-attr]
    return int(process.info().totalCpuDuration().get().toNanos())


def _drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _parse_with_pyoxigraph(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyoxigraph as ox

    for batch in batches:
        document = "\n".join(batch.column(0).to_pylist())
        quads = list(ox.parse(document, ox.RdfFormat.N_TRIPLES))
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([str(quad.subject) for quad in quads], pa.string()),
                pa.array([str(quad.predicate) for quad in quads], pa.string()),
                pa.array([str(quad.object) for quad in quads], pa.string()),
            ],
            names=["subject", "predicate", "object"],
        )
