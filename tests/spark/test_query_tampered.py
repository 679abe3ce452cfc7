"""A checkpoint whose files were changed, cut or removed is refused, or gives the right answers.

Three changes for each host by default; `QUADWEIR_FAULTS=long` makes it every file in every way.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from killed_query import QUERY, answer, make_feed
from quadweir.errors import QuadweirError
from quadweir.testing import diff_answers
from query_hosts import run_bounded
from spark_queries import LAST, write_batches, written

LONG = os.environ.get("QUADWEIR_FAULTS") == "long"
HALF, IN_BATCH = 3, 8

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(7200 if LONG else 900)]


def untouched(file: Path) -> None:
    """Change nothing: what is as it was is taken up."""


def flipped(file: Path) -> None:
    """Change a bit in the midst of a file: of a digit, if there is one near."""
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    at = next((n for n in range(middle, len(data)) if 48 <= data[n] <= 57), middle)
    if data:
        data[at] ^= 1
    file.write_bytes(bytes(data))


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def removed(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize("shards_in", ["driver", "executors"])
def test_a_checkpoint_that_was_tampered_with_gives_no_wrong_answer(
    spark: SparkSession, tmp_path: Path, shards_in: str
) -> None:
    feed = make_feed(2 * HALF * IN_BATCH)
    expected = run_bounded(QUERY, feed, tasks=1, shards=2)
    folder, kept = tmp_path / "run", tmp_path / "kept"
    number = write_batches(folder / "in", feed[: HALF * IN_BATCH], IN_BATCH)
    answer(spark, folder, shards_in)
    number = write_batches(folder / "in", feed[HALF * IN_BATCH :], IN_BATCH, first=number)
    write_batches(folder / "in", [LAST], 1, first=number)
    # Back to the same place: a checkpoint names the files that were read.
    folder.rename(kept)
    files = sorted(
        each.relative_to(kept) for each in (kept / "checkpoint").rglob("*") if each.is_file()
    )
    changes = [(change, file) for file in files for change in (flipped, cut, removed)]
    if not LONG:
        changes = random.Random(f"changes {shards_in}").sample(changes, 3)
    refused = 0
    for change, file in [(untouched, files[0]), *changes]:
        shutil.copytree(kept, folder)
        change(folder / file)
        what = f"{change.__name__} {file}"
        try:
            answer(spark, folder, shards_in)
        except (QuadweirError, PySparkException) as error:
            assert change is not untouched, error
            refused += 1
            said = " ".join(str(error).split())
            print(f"{shards_in}: {what}: {said[:300]}")
            # What was said before it was noticed is right.
            wrong = Counter(written(folder / "out")) - Counter(expected)
            assert not wrong, what
        else:
            print(f"{shards_in}: {what}: right")
            assert diff_answers(expected, written(folder / "out")) == "", what
        shutil.rmtree(folder)
    print(f"{shards_in}: {len(changes)} changes, {refused} refused")
