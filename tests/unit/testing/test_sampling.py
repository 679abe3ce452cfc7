"""Samples of a running query's reports against the oracle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quadweir import rows
from quadweir.errors import UsageError
from quadweir.sources.streamfiles import Element
from quadweir.syntax import parse
from quadweir.testing import Oracle
from quadweir.testing.recorded import RecordedElements, reach_ms
from quadweir.testing.sampling import Sampled
from spark_queries import statement_rows
from streaming import stream

QUERIES = {
    "on change": "SELECT ?x ?z { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } "
    "STREAM <urn:s> [RANGE 30ms] { ?y <urn:q> ?z } }",
    "on close": "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <urn:s> "
    "[RANGE PT0.02S STEP PT0.01S] { WINDOW <urn:w> { ?x <urn:p> ?y } }",
}
FEED = stream(*((1000 + 3 * n, f"a{n % 5} p b{n % 3} . b{n % 3} q c{n}") for n in range(60)))


def record(folder: Path, elements: list[Element], name: str) -> None:
    names = rows.STATEMENT_SCHEMA.names
    columns = list(zip(*statement_rows(elements), strict=True))
    pq.write_table(
        pa.table(dict(zip(names, map(pa.array, columns), strict=True))), folder / f"{name}.parquet"
    )


def sampled(text: str, folder: Path, *, lose: int | None = None, resumed: bool = False) -> Sampled:
    """Play a run in batches of ten elements; leaves out the answers at one instant if asked."""
    oracle = Oracle(text)
    answers = [each for each in oracle.answers(FEED) if each.t != lose]
    found = Sampled(oracle, folder, resumed=resumed)
    through: int | None = None
    for start in range(0, len(FEED), 10):
        batch = FEED[start : start + 10]
        record(folder, batch, f"{start}")
        now = batch[-1].event_time - 1
        record(folder, batch[:1], f"{start}-again")
        late = through or 0
        found.take([each for each in answers if late < each.t <= now], through)
        found.check(now)
        through = now
    return found


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_reports_that_agree(text: str, tmp_path: Path) -> None:
    found = sampled(text, tmp_path)
    assert found.different == []
    assert found.reports >= 15
    assert not list(tmp_path.glob("*.parquet"))
    assert len(found._recorded.elements()) < 40, "what no report can see is forgotten"


def test_a_report_that_was_lost(tmp_path: Path) -> None:
    text = QUERIES["on close"]
    found = sampled(text, tmp_path, lose=1050)
    assert len(found.different) == 1
    assert "1050" in found.different[0]


def test_after_a_restart_reports_count_once_windows_hold_nothing_from_before(
    tmp_path: Path,
) -> None:
    found = sampled(QUERIES["on change"], tmp_path, lose=1003, resumed=True)
    assert found.different == []
    assert found.reports


def test_late_elements_are_not_seen(tmp_path: Path) -> None:
    text = QUERIES["on close"]
    late = [replace(FEED[0], event_time=999, position=77)]
    found = Sampled(Oracle(text), tmp_path)
    record(tmp_path, FEED[:10], "first")
    found.take(Oracle(text).answers(FEED[:10]), None)
    record(tmp_path, late, "late")
    found.take([], 1020)
    found.check(1026)
    assert found.different == []
    assert found.reports


def test_windows_without_a_reach_are_refused() -> None:
    with pytest.raises(UsageError, match="time windows"):
        reach_ms(parse("SELECT ?x { STREAM <urn:s> [TRIPLES 5] { ?x <urn:p> ?y } }"))


def test_what_was_recorded_outlives_the_run_and_then_is_forgotten(tmp_path: Path) -> None:
    before = RecordedElements(tmp_path)
    record(tmp_path, FEED[:10], "one")
    before.take(None)
    record(tmp_path, [*FEED[3:5], *FEED[10:12]], "two")
    before.take(FEED[9].event_time)
    late = replace(FEED[0], event_time=FEED[9].event_time - 1, position=77)
    record(tmp_path, [late], "three")
    after = RecordedElements(tmp_path)
    assert after.elements() == before.elements()
    # How far time had come is known from the run before.
    after.take(None)
    assert [each.position for each in after.elements().values()] == list(range(12))
    after.forget(FEED[9].event_time)
    assert [each.position for each in after.elements().values()] == [10, 11]
    assert len(list(tmp_path.iterdir())) == 1
    assert RecordedElements(tmp_path).elements() == after.elements()
