"""How fast records become triples, beside a Spark job written by hand for the same lines.

The records are like those of road sensors: a subject template with five references and three
object maps. Morph-KGC takes part where it is installed (extra `bench`).
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quadweir.bench.measure import machine, take_turns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_NAMES: Final = ("lane", "lat", "long", "timestamp", "location", "flow", "speed", "period")
_SUBJECT: Final = ("location", "lane", "lat", "long", "timestamp")
_PREFIXES: Final = (
    f"@prefix rml: <http://w3id.org/rml/> . @prefix ex: <http://ex.org/> . @prefix xsd: <{_XSD}> ."
)


def write_records(folder: Path, count: int, *, seed: int = 1) -> None:
    """Write the same records as JSON Lines and CSV; the same seed gives the same bytes."""
    rng = random.Random(seed)
    with (
        (folder / "records.jsonl").open("w", encoding="utf-8") as lines,
        (folder / "records.csv").open("w", encoding="utf-8") as table,
    ):
        table.write(",".join(_NAMES) + "\n")
        for number in range(count):
            values = (
                f"lane{number % 19}",
                round(51 + rng.random(), 6),
                round(4 + rng.random(), 6),
                f"2026-03-03T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z",
                f"RWS01 {number % 1000}",
                number % 120,
                round(rng.random() * 120, 1),
                60,
            )
            lines.write(json.dumps(dict(zip(_NAMES, values, strict=True))) + "\n")
            table.write(",".join(map(str, values)) + "\n")


def mapping_text(form: str, *, maps: int = 1) -> str:
    """The mapping of the benchmark, `maps` times over one source."""
    path, dot = ("records.jsonl", "$.") if form == "json" else ("records.csv", "")
    kind = 'rml:JSONPath; rml:iterator "$"' if form == "json" else "rml:CSV"
    subject = "/".join(f"{{{dot}{name}}}" for name in _SUBJECT)
    source = (
        f'rml:source [ a rml:RelativePathSource; rml:root rml:MappingDirectory; rml:path "{path}" ];'
        f" rml:referenceFormulation {kind}"
    )
    return _PREFIXES + "".join(
        f"""
        <http://ex.org/m{n}> rml:logicalSource [ {source} ];
          rml:subjectMap [ rml:template "http://ex.org/{n}/{subject}" ];
          rml:predicateObjectMap [ rml:predicate ex:flow;
            rml:objectMap [ rml:reference "{dot}flow"; rml:datatype xsd:integer ] ];
          rml:predicateObjectMap [ rml:predicate ex:speed;
            rml:objectMap [ rml:reference "{dot}speed"; rml:datatype xsd:decimal ] ];
          rml:predicateObjectMap [ rml:predicate ex:lane;
            rml:objectMap [ rml:reference "{dot}lane"; rml:datatype xsd:string ] ] ."""
        for n in range(maps)
    )


def by_hand(spark: SparkSession, folder: Path, form: str) -> DataFrame:
    """The lines of the mapping, written as a Spark job for this very input."""
    from pyspark.sql import functions as F

    if form == "json":
        fields = ", ".join(f"{name} string" for name in _NAMES)
        text = spark.read.text(str(folder / "records.jsonl"))
        frame = text.select(F.from_json("value", fields).alias("r")).select("r.*")
    else:
        fields = ", ".join(f"{name} string" for name in _NAMES)
        frame = spark.read.csv(str(folder / "records.csv"), header=True, schema=fields)

    def encoded(name: str) -> Any:
        return F.replace(F.url_encode(name), F.lit("+"), F.lit("%20"))

    parts = [part for name in _SUBJECT for part in (F.lit("/"), encoded(name))]
    subject = F.concat(F.lit("<http://ex.org/0"), *parts, F.lit(">"))
    frame = frame.select(subject.alias("s"), "flow", "speed", "lane")
    return frame.select(
        F.explode(
            F.array(
                F.concat(
                    "s", F.lit(' <http://ex.org/flow> "'), "flow", F.lit(f'"^^<{_XSD}integer> .')
                ),
                F.concat(
                    "s", F.lit(' <http://ex.org/speed> "'), "speed", F.lit(f'"^^<{_XSD}decimal> .')
                ),
                F.concat("s", F.lit(' <http://ex.org/lane> "'), "lane", F.lit('" .')),
            )
        ).alias("value")
    )


def run(
    spark: SparkSession,
    *,
    records: int = 2_000_000,
    rounds: int = 3,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure; every figure is in triples per second, the best of `rounds`, files written."""
    from quadweir.mapping.files import Folders
    from quadweir.mapping.read import parse_mapping
    from quadweir.mapping.run import Job, run_bounded

    with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as name:
        folder = Path(name)
        on_step("writing the input")
        write_records(folder, records)

        def ours(form: str, maps: int) -> Callable[[], object]:
            mapping = parse_mapping(mapping_text(form, maps=maps))
            # One small file must take the way of the large ones too.
            job = Job(
                folders=Folders(mapping=folder), output=folder / "out.nq", driver_characters=0
            )
            return lambda: run_bounded(mapping, spark, job)

        def hand(form: str) -> Callable[[], object]:
            def write() -> None:
                shutil.rmtree(folder / "hand", ignore_errors=True)
                by_hand(spark, folder, form).write.text(str(folder / "hand"))

            return write

        contenders = {
            "quadweir json": ours("json", 1),
            "by hand json": hand("json"),
            "quadweir csv": ours("csv", 1),
            "by hand csv": hand("csv"),
            "quadweir csv, ten maps": ours("csv", 10),
        }
        timings = take_turns(contenders, rounds=rounds, on_step=on_step)
        same = _same_lines(spark, folder, ours("json", 1), "json")
    triples = {one: records * 3 * (10 if "ten" in one else 1) for one in contenders}
    rates = {one: round(triples[one] / timing.best) for one, timing in timings.items()}
    best = {one: timing.best for one, timing in timings.items()}
    return {
        "benchmark": "mapping",
        "machine": machine(),
        "input": {"records": records, "rounds": rounds},
        "lines_per_second": rates,
        "explained": {
            one: "triples written to a file" if "quadweir" in one else "triples written to a folder"
            for one in rates
        },
        "ratios": {
            "json, of by hand": round(best["by hand json"] / best["quadweir json"], 2),
            "csv, of by hand": round(best["by hand csv"] / best["quadweir csv"], 2),
            "ten maps, times one": round(best["quadweir csv, ten maps"] / best["quadweir csv"], 2),
        },
        "same_lines": same,
        "morph_kgc": "installed, not measured" if find_spec("morph_kgc") else "not installed",
    }


def _same_lines(
    spark: SparkSession, folder: Path, write_ours: Callable[[], object], form: str
) -> bool:
    """Tell whether both jobs write the same lines, as bags."""
    write_ours()
    mine = spark.read.text(str(folder / "out.nq"))
    theirs = by_hand(spark, folder, form)
    return mine.exceptAll(theirs).isEmpty() and theirs.exceptAll(mine).isEmpty()
