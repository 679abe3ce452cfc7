"""Pieces run once; only interrupted, damaged or changed ones run again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quadweir.bench.suite import BenchmarkPiece, Workbench, run
from quadweir.errors import SourceError


def pieces(done: list[str], *, size: int = 1, stop_at: str = "") -> list[BenchmarkPiece]:
    def work(name: str):  # type: ignore[no-untyped-def]
        def do(_bench: Workbench) -> dict[str, str]:
            if name == stop_at:
                raise KeyboardInterrupt
            done.append(name)
            return {"reported": name}

        return do

    return [BenchmarkPiece("section", name, {"size": size}, work(name)) for name in ("a", "b", "c")]


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    done: list[str] = []
    bench = Workbench(tmp_path / "data")
    with pytest.raises(KeyboardInterrupt):
        run(pieces(done, stop_at="b"), tmp_path / "pieces", bench)
    reported: list[tuple[str, bool]] = []
    found = run(
        pieces(done),
        tmp_path / "pieces",
        bench,
        on_piece=lambda piece, known: reported.append((piece.name, known)),
    )
    assert done == ["a", "b", "c"]
    assert reported == [("a", True), ("b", False), ("c", False)]
    assert [piece["result"]["reported"] for piece in found["section"]] == ["a", "b", "c"]


def test_other_inputs_are_measured_again_and_damaged_results_too(tmp_path: Path) -> None:
    done: list[str] = []
    bench = Workbench(tmp_path / "data")
    run(pieces(done), tmp_path, bench)
    run(pieces(done, size=2), tmp_path, bench)
    assert done == ["a", "b", "c"] * 2
    for file in tmp_path.glob("*-b-*.json"):
        file.write_text(json.dumps({"name": "b"})[:-2])
    run(pieces(done), tmp_path, bench)
    assert done == ["a", "b", "c"] * 2 + ["b"]
    assert not list(tmp_path.glob(".*"))


def test_a_piece_that_fails_is_reported_and_tried_again(tmp_path: Path) -> None:
    def fail(_bench: Workbench) -> None:
        raise ValueError("no such luck")

    done: list[str] = []
    broken = BenchmarkPiece("section", "b", {}, fail)
    some = pieces(done)
    found = run([some[0], broken, some[2]], tmp_path, Workbench(tmp_path / "data"))
    assert done == ["a", "c"] and [each["name"] for each in found["section"]] == ["a", "c"]
    assert found["failed"] == [{"name": "section: b", "result": "ValueError: no such luck"}]
    with pytest.raises(KeyboardInterrupt):
        run(pieces(done, size=3, stop_at="a"), tmp_path, Workbench(tmp_path / "data"))
    assert not list(tmp_path.glob("*-b-*.json"))


def test_data_that_was_not_made_to_the_end_is_made_again(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    with pytest.raises(ValueError), bench.made("data", {"x": 1}) as (folder, is_new):
        assert is_new
        (folder / "half").touch()
        raise ValueError
    with bench.made("data", {"x": 1}) as (folder, is_new):
        assert is_new and not (folder / "half").exists()
    with bench.made("data", {"x": 1}) as (again, is_new):
        assert again == folder and not is_new
    with bench.made("data", {"x": 2}) as (other, is_new):
        assert other != folder and is_new


def test_where_nothing_can_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SourceError):
        run([], tmp_path / "file" / "pieces", Workbench(tmp_path))
