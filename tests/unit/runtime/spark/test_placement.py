"""Where shards are, from what Spark says about batches and executors."""

from __future__ import annotations

from quadweir.runtime.spark.placement import BatchPlaces, ExecutorNote, Placement


def batch(job: int, names: str, ended: int = 0) -> BatchPlaces:
    return BatchPlaces(job, ended or 1000 * job, dict(enumerate(names)))


def test_shards_that_are_on_another_executor_have_moved() -> None:
    found = Placement()
    found.note([ExecutorNote("a", 0)], [batch(1, "aaaa")])
    assert found.moves == 0
    both = [ExecutorNote("a", 0), ExecutorNote("b", 1500)]
    found.note(both, [batch(1, "aaaa"), batch(3, "aabb"), batch(2, "aaaa")])
    assert found.moves == 2
    assert found.metrics()["executor_shards"] == {"a": 2, "b": 2}
    found.note(both, [batch(4, "abab")])
    assert found.moves == 4


def test_the_time_from_a_loss_to_a_batch_is_that_of_recovery() -> None:
    found = Placement()
    found.note([ExecutorNote("a", 0), ExecutorNote("b", 0)], [batch(1, "ab")])
    gone = [ExecutorNote("a", 0), ExecutorNote("b", 0, 1200)]
    found.note(gone, [])
    assert found.metrics()["recovery_ms"] is None
    found.note(gone, [batch(2, "aa", ended=4200), batch(3, "aa")])
    assert (found.lost, found.recovery_ms, found.moves) == (1, 3000, 1)
    found.note(gone, [batch(5, "aa")])
    assert (found.lost, found.recovery_ms) == (1, 3000)
    assert found.present == ("a",)


def test_an_executor_without_shards_is_no_loss() -> None:
    found = Placement()
    found.note([ExecutorNote("a", 0), ExecutorNote("b", 0)], [batch(1, "aa")])
    found.note([ExecutorNote("a", 0), ExecutorNote("b", 0, 1200)], [batch(2, "aa")])
    assert (found.lost, found.recovery_ms) == (0, None)
