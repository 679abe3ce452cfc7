"""The input of `bench endtoend`: the same lines in every form, and batches that lose none."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from quadweir.bench import workloads
from quadweir.bench.endtoend import QUICK, SECTIONS, Size, sized
from quadweir.bench.linespeed import write_forms
from quadweir.bench.tables import head
from quadweir.bench.textqueries import LEAST, write_text
from quadweir.sources.rdfdocuments import read_quads
from quadweir.sources.streamfiles import read_elements


def test_every_form_has_the_same_statements(tmp_path: Path) -> None:
    given = write_forms(tmp_path / "lines", users=40, days=1)
    timed = [element for element in read_elements(given.timed) if element.quads]
    triples = [element.quads[0] for element in timed]
    assert len(triples) == given.count > 1000
    assert [element.quads for element in read_elements(given.packed)] == [
        element.quads for element in timed
    ]
    # Adjacent lines of an instant are one element, which has all of them.
    quads = list(read_elements(given.quads, form="timed-lines"))
    assert len(quads) < len(timed)
    assert [triple for element in quads for triple in element.triples] == triples
    read = [quad for file in sorted(given.triples.iterdir()) for quad in read_quads(file)]
    assert read == triples
    values = [
        line
        for file in sorted(given.records.iterdir())
        for value in pq.read_table(file).column("value").to_pylist()
        for line in value.split("\n")
    ]
    assert values == [f"{element.event_time} {element.quads[0]}" for element in timed]


def test_batches_hold_all_lines_in_order(tmp_path: Path) -> None:
    question = workloads.lsbench()["Q5"]
    tables = head(workloads.lsbench_data(workloads.SMALL, question).streams, 500)
    found = write_text(tables, tmp_path, batches=3)
    for iri, folder in found.items():
        assert len(list(folder.iterdir())) == 6
        times = [element.event_time for element in read_elements(folder)]
        assert times == tables[iri].column("time").to_pylist()


def test_sizes_and_names() -> None:
    assert sized(quick=False) == Size()
    assert sized(quick=True, days=9, triples=12_345, names=["Q7"]) == Size(
        users=QUICK.users, days=9, rounds=QUICK.rounds, triples=12_345, records=QUICK.records,
        batches=QUICK.batches, queries=("Q7",),
    )  # fmt: skip
    assert set(LEAST) == set(workloads.lsbench())
    assert list(SECTIONS) == ["lines", "queries", "mapping"]
