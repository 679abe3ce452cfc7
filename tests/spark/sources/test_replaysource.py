"""A play in Spark brings what is due, once, also after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quadweir import rows
from quadweir.errors import DeclarationError
from quadweir.sources.declare import (
    Arrival,
    Format,
    FromColumn,
    MemorySource,
    Rate,
    ReplaySource,
    Speed,
    StreamDeclaration,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def test_a_play_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    from quadweir.sources.replaysource import open_replay

    recording, clock = tmp_path / "r.jsonl", tmp_path / "clock"
    recording.write_text("".join(f'{{"at": {t}}}\n' for t in range(5000, 5010)) + "bad\n")
    declaration = StreamDeclaration(
        iri="urn:s",
        source=ReplaySource(path=recording, pace=Speed(0.001)),
        format=Format.JSONL,
        time=FromColumn("at"),
    )
    batches: list[list[tuple[int | None, str | None]]] = []

    def note(frame: DataFrame, _: int) -> None:
        batches.append([(row[rows.EVENT_TIME], row[rows.REASON]) for row in frame.collect()])

    def run_until(now: int) -> dict[str, int]:
        import json

        batches.clear()
        clock.write_text(str(now))
        frame = open_replay(spark, declaration, clock=clock, max_units_per_batch=4)
        query = (
            frame.writeStream.foreachBatch(note)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        progress = query.lastProgress
        return dict(json.loads(progress["sources"][0]["endOffset"])) if progress else {}

    # A unit is due each second; the play began at the first look.
    assert run_until(100_000)["units"] == 1
    assert batches == [[(5000, None)]]
    offset = run_until(106_500)
    assert offset == {"started": 100_000, "units": 7, "over": 0}
    assert batches == [[(t, None) for t in range(5001, 5005)], [(5005, None), (5006, None)]]
    assert run_until(900_000)["over"] == 1
    assert batches == [[(5007, None), (5008, None), (5009, None), (None, "not JSON")]]


def test_an_unfinished_batch_is_played_again_the_same(tmp_path: Path) -> None:
    from quadweir.sources.replaysource import Replay

    recording, clock = tmp_path / "r.jsonl", tmp_path / "clock"
    recording.write_text("".join(f'{{"n": {n}}}\n' for n in range(100)))
    clock.write_text("50000")
    options = {"path": str(recording), "format": "jsonl", "rate": "10", "clock": str(clock)}
    options["max_units_per_batch"] = "1000"

    def rows_of(
        reader: object, start: dict[str, int], end: dict[str, int]
    ) -> list[dict[str, object]]:
        partitions = reader.partitions(start, end)  # type: ignore[attr-defined]
        return [
            row
            for partition in partitions
            for batch in reader.read(partition)  # type: ignore[attr-defined]
            for row in batch.to_pylist()
        ]

    reader = Replay(options).streamReader(None)
    begin = reader.initialOffset()
    clock.write_text("51000")
    first = reader.latestOffset(begin, reader.getDefaultReadLimit())
    clock.write_text("53000")
    second = reader.latestOffset(first, reader.getDefaultReadLimit())
    played = rows_of(reader, first, second)
    assert [row["arrival"] for row in played] == list(range(51_100, 53_001, 100))
    assert played[0]["value"] == '{"n": 11}'

    clock.write_text("99000")
    again = Replay(options).streamReader(None)
    assert rows_of(again, first, second) == played
    # The start of the very first batch is made up again, and does not count.
    assert rows_of(again, again.initialOffset(), first)[0]["arrival"] == 50_000
    assert again.latestOffset(second, again.getDefaultReadLimit())["units"] == 100


def test_a_play_must_have_times_to_play_by(spark: SparkSession, tmp_path: Path) -> None:
    from quadweir.sources.replaysource import open_replay

    def declared(source: ReplaySource | MemorySource) -> StreamDeclaration:
        return StreamDeclaration(iri="urn:s", source=source, format=Format.JSONL, time=Arrival())

    path = tmp_path / "r.jsonl"
    with pytest.raises(DeclarationError):
        open_replay(spark, declared(ReplaySource(path=path)))
    with pytest.raises(DeclarationError):
        open_replay(spark, declared(MemorySource()))
    path.write_text("")
    frame = open_replay(spark, declared(ReplaySource(path=path, pace=Rate(5))))
    assert set(rows.RECORD_SCHEMA.names) < set(frame.columns)
