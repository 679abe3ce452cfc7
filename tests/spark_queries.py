"""What the Spark tests of queries share: elements as frames and files, answers read back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from quadweir import Engine, rows
from quadweir.runtime.match.rowform import END
from quadweir.sources.streamfiles import Element
from quadweir.terms import IRI, Quad
from quadweir.testing import Answer
from quadweir.testing.answers import answers_from_json

LAST = Element(END, 0, 0, (Quad(IRI("urn:a"), IRI("urn:b"), IRI("urn:c")),))
"""Ends all streams."""


def statement_rows(elements: Iterable[Element]) -> list[tuple[Any, ...]]:
    return [
        (
            each.stream,
            each.event_time,
            each.position,
            str(quad.subject),
            str(quad.predicate),
            str(quad.object),
            None if quad.graph is None else str(quad.graph),
        )
        for each in elements
        for quad in each.quads
    ]


def statements(spark: SparkSession, elements: Iterable[Element]) -> DataFrame:
    return spark.createDataFrame(statement_rows(elements), rows.STATEMENT_SCHEMA)


def provide(engine: Engine, frame: DataFrame, streams: Iterable[str]) -> None:
    """Make the streams of a frame known to an engine, each by its IRI."""
    for iri in sorted(streams):
        engine.provide(iri, frame.where(frame[rows.STREAM].isin(iri, END)), canonical=True)


def write_batches(folder: Path, elements: Sequence[Element], size: int, *, first: int = 1) -> int:
    """Write elements as JSON files, `size` in each, to be read one after the other.

    Gives the number of the file that would be next; `first` is that of the first one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = first - 1
    for number, start in enumerate(range(0, len(elements), size), start=first):
        file = folder / f".{number:06}.json"
        part = statement_rows(elements[start : start + size])
        names = rows.STATEMENT_SCHEMA.names
        file.write_text(
            "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in part)
        )
        # Spark takes files in the order of their times, and must not see one that is not whole.
        os.utime(file, (1e9 + number, 1e9 + number))
        file.rename(folder / f"{number:06}.json")
    return number + 1


def engine_over(spark: SparkSession, folder: Path) -> Engine:
    """Read statements from a folder as they come, a file in each batch."""
    engine = Engine(spark)
    frame = spark.readStream.schema(rows.STATEMENT_SCHEMA).option("maxFilesPerTrigger", 1)
    provide(engine, frame.json(str(folder)), ("urn:s", "urn:t"))
    return engine


def lines_of(folder: Path) -> list[Any]:
    """Read lines of JSON back that a sink has written."""
    return [
        json.loads(line)
        for file in sorted(folder.glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]


def written(folder: Path) -> list[Answer]:
    """Read answers back."""
    found = []
    for file in sorted(folder.glob("*.jsonl")):
        found += answers_from_json(file.read_text(encoding="utf-8").splitlines())
    return found
