"""The benchmark of the service runs, and counts what it sent."""

from __future__ import annotations

from quadweir.bench.serving import QUICK, ServeSize, run


def test_subscribers_and_pushes_are_measured() -> None:
    found = run(("subscribers", "pushing"), size=ServeSize(3, 1, 4_000))
    names = {
        name: [each["name"] for each in figures] for name, figures in found["sections"].items()
    }
    assert len(names["subscribers"]) == 4
    assert len(names["pushing"]) == 2
    assert all(each["value"] > 0 for own in found["sections"].values() for each in own)
    assert found["input"]["subscribers"] == 3 < QUICK.subscribers
