"""Elements of which only the latest between two instants of a grid is sent."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from quadweir import rows
from quadweir.plan.matchtests import Grid
from quadweir.runtime.match.bits import BITS, word_of
from quadweir.runtime.wire.pack import latest_on_grids

GRIDS = st.builds(Grid, st.integers(1, 7), st.integers(-9, 9))
ROWS = st.lists(st.tuples(st.integers(-30, 30), st.integers(0, 7)), max_size=40)


def batch_of(given_rows: list[tuple[int, int]], shift: int) -> pa.RecordBatch:
    """Rows of a time and the bits of three tests."""
    columns = {
        rows.EVENT_TIME: [time for time, _ in given_rows],
        "passed0": [0 if shift else bits for _, bits in given_rows],
        "passed1": [bits for _, bits in given_rows],
    }
    return pa.RecordBatch.from_pydict(
        columns, schema=pa.schema([(name, pa.int64()) for name in columns])
    )


@given(ROWS, GRIDS, GRIDS, st.sampled_from([0, BITS]))
def test_the_latest_of_each_span_passes_and_other_tests_are_left_alone(
    given_rows: list[tuple[int, int]], one: Grid, other: Grid, first: int
) -> None:
    batch = batch_of(given_rows, first)
    kept = latest_on_grids(batch, [(first, one), (first + 2, other)])
    name, _ = word_of(first)
    for test, grid in [(0, one), (2, other)]:
        before = [time for time, bits in given_rows if bits >> test & 1]
        after = [
            time
            for time, bits in zip(
                kept.column(rows.EVENT_TIME).to_pylist(), kept.column(name).to_pylist(), strict=True
            )
            if bits >> test & 1
        ]
        # An instant of the grid belongs to the span that it ends.
        latest: dict[int, int] = {}
        for time in before:
            span = -((grid.origin_ms - time) // grid.step_ms)
            latest[span] = max(latest.get(span, time), time)
        assert sorted(after) == sorted(latest.values())
    untouched = [bits & 2 for bits in batch.column(name).to_pylist()]
    assert [bits & 2 for bits in kept.column(name).to_pylist()] == untouched


def test_a_batch_without_rows_stays_so() -> None:
    assert latest_on_grids(batch_of([], 0), [(0, Grid(5, 0))]).num_rows == 0
