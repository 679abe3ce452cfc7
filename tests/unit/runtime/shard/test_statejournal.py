"""What a shard keeps in Spark's state store, outside of a run."""

from __future__ import annotations

import pytest

from quadweir.errors import StateError
from quadweir.runtime.shard.journal import KeptShard
from quadweir.runtime.shard.statejournal import as_values, of_values
from quadweir.sources.streamfiles import Element
from query_hosts import Host
from streaming import quads

QUERY = """SELECT ?x ?z {
  STREAM <urn:s> [RANGE 60ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 60ms] { ?y <urn:q> ?z } }"""


def feed(count: int) -> list[Element]:
    texts = ("a p b", "b q c")
    names = ("urn:s", "urn:t")
    return [Element(names[n % 2], 1000 + 2 * n, n, quads(texts[n % 2])) for n in range(count)]


def values_of(host: Host, key: int) -> dict[int, bytes]:
    return {
        number: bytes(each) for (number,), (each,) in host.tester.peekMapState("kept", key).items()
    }


@pytest.mark.parametrize("batches", [1, 3, 120])
def test_a_run_goes_on_with_what_was_read_and_written_again(batches: int) -> None:
    """A hundred and twenty batches have a snapshot."""
    elements = feed(8 + batches)
    whole, stopped, resumed = (Host(QUERY, shards=1, name=f"{batches}{n}") for n in "abc")
    for start in range(batches):
        for host in (whole, stopped):
            host.push(elements[start : start + 1])
    kept = of_values(values_of(stopped, 0), batches)
    assert kept.batch == batches
    assert (kept.snapshot is not None) == (batches == 120)
    written = {(number,): (each,) for number, each in as_values(kept).items()}
    resumed.tester.updateMapState("kept", 0, written)
    for host in (whole, resumed):
        host.push(elements[batches:])
        host.finish()
    before = len(whole.answers) - len(resumed.answers)
    assert resumed.answers
    assert resumed.answers == whole.answers[before:]


def test_a_large_snapshot_has_parts() -> None:
    kept = KeptShard(7, "note", bytes(20_000_000), (b"one", b"two"), 6)
    values = as_values(kept)
    assert sorted(values) == [-3, -2, -1, 0, 6, 7]
    assert of_values(values, 7) == kept


@pytest.mark.parametrize("missing", [-1, 0, 7])
def test_what_is_not_complete_is_refused(missing: int) -> None:
    values = as_values(KeptShard(7, "note", b"data", (b"one", b"two"), 6))
    del values[missing]
    with pytest.raises(StateError, match="is not complete"):
        of_values(values, 7)


def test_the_state_of_another_batch_is_refused() -> None:
    values = as_values(KeptShard(7, "note", b"data", (b"one", b"two"), 6))
    with pytest.raises(StateError) as raised:
        of_values(values, 8)
    assert "that of batch 7, and not of batch 8" in str(raised.value.detail)


def test_nothing_is_kept_before_the_first_batch() -> None:
    assert as_values(KeptShard(0, None, None, ())) == {}
