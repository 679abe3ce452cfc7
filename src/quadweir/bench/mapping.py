"""How fast records become triples, compared with hand-written Spark jobs and with Morph-KGC.

Every comparison is made in one run: contenders take turns, and the best time of each counts. The
outputs of two contenders are compared as well, as bags of lines by their hashes, or as sets.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.bench import roadsensors
from quadweir.bench.measure import machine, take_turns
from quadweir.bench.memory import peak_mib
from quadweir.bench.morph import Morph, NoMorphError, find
from quadweir.bench.roadsensors import TRIPLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAIN: Final = "from quadweir.cli import main; main()"
_MORPH_RECORDS: Final = {"jsonl": 100_000, "csv": 200_000, "xml": 20_000}
"""How many records Morph-KGC maps: enough to last some seconds. It reads no JSON Lines, so it gets
the same records as one JSON document."""
_TITLES: Final = {"jsonl": "JSON Lines", "csv": "CSV", "xml": "XML"}
_XML: Final = {"XML": "xml", "XML with comments, by lxml": "comments.xml"}
"""Spark cannot split the second kind of XML, so it has no target."""
_HEAP_MIB: Final = 1024
_TIMES_MORPH: Final = {"jsonl": 5.0, "csv": 5.0, "xml": 3.0}


@final
@dataclass(frozen=True, slots=True)
class ReportLine:
    """One figure of the report."""

    name: str
    value: float
    target: float | None = None
    at_least: bool = True

    @property
    def is_met(self) -> bool | None:
        """Whether the target is reached; None if there is none."""
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        sign = ">=" if self.at_least else "<="
        target = f"{sign} {self.target}" if self.target is not None else None
        return {"name": self.name, "value": self.value, "target": target, "met": self.is_met}


@final
@dataclass(slots=True)
class _Bench:
    spark: SparkSession
    folder: Path
    records: int
    rounds: int
    on_step: Callable[[str], None]
    morph: Path | None = None
    """The Python that has Morph-KGC."""
    lines: list[ReportLine] = field(default_factory=list)
    same: dict[str, bool | str] = field(default_factory=dict)
    rates: dict[str, int] = field(default_factory=dict)

    # -- contenders --------------------------------------------------------------------------

    def ours(self, text: str, folder: Path | None = None) -> Callable[[], object]:
        """A whole run of a mapping, to a file."""
        from quadweir.mapping.files import Folders
        from quadweir.mapping.read import parse_mapping
        from quadweir.runtime.mappings.bounded import MappingJob, run_bounded

        where = folder or self.folder
        # A small file must take the same path as a large one.
        job = MappingJob(
            folders=Folders(mapping=where), output=self.folder / "ours.nq", driver_characters=0
        )
        return lambda: run_bounded(parse_mapping(text), self.spark, job)

    def no_output(self, text: str) -> Callable[[], object]:
        """A mapping that makes its lines and does not write them: the time of one pass over the
        source.
        """
        from quadweir.mapping.compile import compile_mapping
        from quadweir.mapping.files import Folders
        from quadweir.mapping.read import parse_mapping
        from quadweir.mapping.readfile import read_file

        folders = Folders(mapping=self.folder)
        compiled = compile_mapping(
            parse_mapping(text),
            lambda logical, references: read_file(
                self.spark, logical, references, folders, driver_characters=0
            ),
        )

        def run() -> None:
            compiled.texts().write.format("noop").mode("overwrite").save()

        return run

    def written(self, make: Callable[[], DataFrame]) -> Callable[[], object]:
        """A hand-written job that writes to a folder."""

        def write() -> None:
            shutil.rmtree(self.folder / "hand", ignore_errors=True)
            make().write.text(str(self.folder / "hand"))

        return write

    def compare(self, name: str, ours: Callable[[], object], theirs: DataFrame) -> None:
        """Whether both write the same bag of lines, by count and sum of hashes."""
        self.on_step(f"comparing the lines of {name}")
        ours()
        mine = self.spark.read.text(str(self.folder / "ours.nq"))
        self.same[f"{name}, by hand"] = _digest(mine) == _digest(theirs)

    # -- questions ---------------------------------------------------------------------------

    def jsonl(self) -> None:
        """JSON Lines, compared with a hand-written job and with Morph-KGC."""
        self._beside_hand("jsonl")
        self._beside_morph("jsonl")

    def csv(self) -> None:
        """CSV, compared with a hand-written job and with Morph-KGC."""
        self._beside_hand("csv")
        self._beside_morph("csv")

    def xml(self) -> None:
        """XML, compared with Morph-KGC alone: plain, as exports are, and with comments."""
        count = max(self.records // 4, 1000)
        for title, form in _XML.items():
            self.on_step(f"writing {title}")
            roadsensors.write_records(self.folder, count, form)
            run = self.ours(roadsensors.mapping_text(form))
            timing = take_turns({title: run}, rounds=self.rounds, on_step=self.on_step)[title]
            self.rates[title] = round(TRIPLES * count / timing.best)
        self._beside_morph("xml")

    def _beside_hand(self, form: str) -> None:
        title = _TITLES[form]
        self.on_step(f"writing {title}")
        roadsensors.write_records(self.folder, self.records, form)

        def by_hand() -> DataFrame:
            return roadsensors.by_hand(self.spark, self.folder, form)

        ours = self.ours(roadsensors.mapping_text(form))
        contenders = {title: ours, f"{title} by hand": self.written(by_hand)}
        timings = take_turns(contenders, rounds=self.rounds, on_step=self.on_step)
        for name, timing in timings.items():
            self.rates[name] = round(TRIPLES * self.records / timing.best)
        ratio = self.rates[title] / self.rates[f"{title} by hand"]
        self.lines.append(ReportLine(f"{title}, of by hand", round(ratio, 2), 0.8))
        self.compare(title, ours, by_hand())

    def many_maps(self) -> None:
        """Ten triples maps over one source."""
        count = max(self.records // 4, 1000)
        roadsensors.write_records(self.folder, count, "csv")
        contenders = {
            "one map": self.no_output(roadsensors.mapping_text("csv")),
            "one map of as many triples": self.no_output(
                roadsensors.mapping_text("csv", repeats=10)
            ),
            "ten maps": self.no_output(roadsensors.mapping_text("csv", maps=10)),
        }
        timings = take_turns(contenders, rounds=self.rounds, on_step=self.on_step)
        ten = timings["ten maps"].best
        same = ten / timings["one map of as many triples"].best
        self.lines += [
            ReportLine(
                "ten maps, times one map", round(ten / timings["one map"].best, 2), 2.0, False
            ),
            ReportLine("ten maps, times one map of as many triples", round(same, 2), 2.0, False),
        ]

    def join(self) -> None:
        """A join of two files on two conditions."""
        count = max(self.records // 2, 1000)
        self.on_step("writing the files of the join")
        roadsensors.write_join(self.folder, count)

        def by_hand() -> DataFrame:
            return roadsensors.join_by_hand(self.spark, self.folder)

        ours = self.ours(roadsensors.JOIN_MAPPING)
        contenders = {"join": ours, "join by hand": self.written(by_hand)}
        timings = take_turns(contenders, rounds=self.rounds, on_step=self.on_step)
        for name, timing in timings.items():
            self.rates[name] = round(count / timing.best)
        ratio = timings["join"].best / timings["join by hand"].best
        self.lines.append(
            ReportLine(
                f"join of {count:,} with {count:,}, times by hand", round(ratio, 2), 1.5, False
            )
        )
        self.compare("join", ours, by_hand())

    def memory(self) -> None:
        """The peak memory of whole runs over files, and over files four times as large."""
        for form in ("jsonl", "csv", "xml"):
            found: list[int] = []
            for count in (max(self.records // 8, 1000), max(self.records // 2, 4000)):
                name = f"{_TITLES[form]}, {count:,} records: MiB"
                self.on_step(name)
                roadsensors.write_records(self.folder, count, form)
                mapping = self.folder / "memory.ttl"
                mapping.write_text(roadsensors.mapping_text(form), encoding="utf-8")
                command = [sys.executable, "-c", _MAIN, "map", mapping.name, "-o", "memory.nq"]
                found.append(peak_mib(command, self.folder, heap_mib=_HEAP_MIB))
                self.lines.append(ReportLine(name, found[-1]))
            grown = round(found[1] / found[0], 2)
            self.lines.append(
                ReportLine(f"{_TITLES[form]}, memory for four times the input", grown, 1.25, False)
            )

    def _beside_morph(self, form: str) -> None:
        title = _TITLES[form]
        if self.morph is None:
            return
        folder = self.folder / "morph"
        morph = Morph(self.morph, folder)
        count = min(_MORPH_RECORDS[form], self.records)
        known = "json" if form == "jsonl" else form
        self.on_step(f"Morph-KGC, {title}")
        try:
            rate = morph.rate(known, count)
        except NoMorphError as error:
            self.same[f"{title}, Morph-KGC"] = f"skipped: {error}"
            return
        self.rates[f"{title} by Morph-KGC, {count:,} records"] = rate
        for name in _XML if form == "xml" else (title,):
            times, wanted = self.rates[name] / rate, _TIMES_MORPH[form] if name == title else None
            self.lines.append(ReportLine(f"{name}, times Morph-KGC", round(times, 1), wanted))
        self.on_step(f"comparing the triples of {title}")
        self.ours(roadsensors.mapping_text(known), folder)()
        mine = set((self.folder / "ours.nq").read_bytes().splitlines())
        self.same[f"{title}, Morph-KGC"] = mine == morph.lines(known)


SECTIONS: Final[dict[str, Callable[[_Bench], None]]] = {
    "json": _Bench.jsonl,
    "csv": _Bench.csv,
    "xml": _Bench.xml,
    "maps": _Bench.many_maps,
    "join": _Bench.join,
    "memory": _Bench.memory,
}


def run(
    spark: SparkSession,
    *,
    records: int = 2_000_000,
    rounds: int = 3,
    sections: Sequence[str] = tuple(SECTIONS),
    install_morph: bool = False,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure `sections`; rates are triples per second, the best of `rounds`, files written."""
    about = machine()
    with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as name:
        bench = _Bench(spark, Path(name), records, rounds, on_step)
        try:
            bench.morph = find(install=install_morph, on_step=on_step)
        except NoMorphError as error:
            bench.same["Morph-KGC"] = f"skipped: {error}"
        for section in sections:
            try:
                SECTIONS[section](bench)
            except KeyboardInterrupt:
                # The figures so far took long to measure: report them.
                bench.same[section] = "interrupted"
                break
    return {
        "benchmark": "mapping",
        "machine": about,
        "input": {"records": records, "rounds": rounds},
        "triples_per_second": bench.rates,
        "figures": [line.as_dict() for line in bench.lines],
        "same_output": bench.same,
    }


def _digest(lines: DataFrame) -> tuple[int, int]:
    from pyspark.sql import functions as F

    value = F.col(lines.columns[0])
    found = lines.agg(F.count(F.lit(1)), F.sum(F.xxhash64(value).cast("decimal(38,0)"))).first()
    assert found is not None
    return int(found[0]), int(found[1] or 0)


def report(result: dict[str, Any]) -> list[str]:
    """The lines to print for a result: rates, then each figure with its target.

    >>> report({"input": {"records": 5}, "machine": {"cores": 2}, "triples_per_second": {"CSV": 9},
    ...     "figures": [ReportLine("CSV, of by hand", 0.9, 0.8).as_dict()], "same_output": {"CSV": True}})
    ... # doctest: +NORMALIZE_WHITESPACE
    ['mapping: records 5', 'cores 2', '  CSV  9 triples/s',
     '  CSV, of by hand  0.9  wanted >= 0.8  reached', '  same output: CSV  yes']
    """
    lines = [
        "mapping: " + ", ".join(f"{key} {value:,}" for key, value in result["input"].items()),
        ", ".join(f"{key} {value}" for key, value in result["machine"].items()),
    ]
    lines += [
        f"  {name:<48}{rate:>12,} triples/s" for name, rate in result["triples_per_second"].items()
    ]
    for figure in result["figures"]:
        line = f"  {figure['name']:<48}{figure['value']:>12,}"
        if figure["target"] is not None:
            line += f"   wanted {figure['target']}   {'reached' if figure['met'] else 'MISSED'}"
        lines.append(line)
    for name, same in result["same_output"].items():
        verdict = same if isinstance(same, str) else "yes" if same else "NO"
        lines.append(f"  same output: {name:<35}{verdict:>12}")
    return lines
