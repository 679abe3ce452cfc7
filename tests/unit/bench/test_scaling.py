"""Many queries of one template: a group gives the same answers as its members alone."""

from __future__ import annotations

from pathlib import Path

from quadweir.bench import scaling, workloads
from quadweir.bench.lsbench.parameters import Parameters
from quadweir.bench.method import QUICK
from quadweir.bench.scaling import Range, instances, many_queries
from quadweir.bench.suite import Workbench

SPAN = Range(queries=(3,), apart=3, elements=2_000)


def test_instances_differ_in_whom_they_ask_about() -> None:
    made = instances(workloads.lsbench()["Q3"].text, 3)
    assert len(set(made)) == 3
    assert "person/p2" in str(made[2]) and "p984" not in str(made)


def test_a_group_answers_as_its_members_apart(tmp_path: Path, monkeypatch) -> None:
    small = Parameters(users=60, days=7, max_posts=200)
    monkeypatch.setattr(workloads, "LARGE", small)
    for piece in many_queries(SPAN):
        # The piece itself asserts that both give the same number of answers.
        found = piece.work(Workbench(tmp_path))
        assert found["shards"] == 1
        assert found["answers"] > 0
        assert found["triples_per_second"] > 0 and found["apart"] > 0


def test_every_size_is_a_piece_of_its_own() -> None:
    span = Range()
    keys = [piece.key for piece in scaling.scaling(QUICK, span)]
    assert len(set(keys)) == len(keys)
    static, windows = len(span.asked) * len(span.users), 2 * len(span.windows)
    assert len(keys) == static + 2 * len(span.queries) + windows + len(span.cores)
