"""How the benchmark of mappings ends when a part of it cannot be measured; no Spark."""

from __future__ import annotations

import pytest

from quadweir.bench import mapping
from quadweir.bench.mapping import ReportLine, report, run
from quadweir.bench.morph import Morph, NoMorphError


@pytest.fixture
def morph(tmp_path, monkeypatch):
    monkeypatch.setattr(mapping, "find", lambda **_: tmp_path / "python")


@pytest.mark.usefixtures("morph")
def test_an_interrupt_leaves_what_was_measured(monkeypatch):
    def measured(bench):
        bench.lines.append(ReportLine("CSV, of by hand", 0.9, 0.8))

    def interrupted(_bench):
        raise KeyboardInterrupt

    found = {"csv": measured, "xml": interrupted, "join": measured}
    monkeypatch.setattr(mapping, "SECTIONS", found)
    result = run(None, sections=tuple(found))
    assert [each["name"] for each in result["figures"]] == ["CSV, of by hand"]
    assert result["same_output"] == {"xml": "interrupted"}
    assert report(result)[-1].endswith("interrupted")


@pytest.mark.usefixtures("morph")
def test_a_failure_of_morph_is_reported_and_not_raised(monkeypatch):
    def fails(_self, _form, _records):
        raise NoMorphError("failed: no disk")

    monkeypatch.setattr(Morph, "rate", fails)
    monkeypatch.setattr(mapping, "SECTIONS", {"csv": lambda bench: bench._beside_morph("csv")})
    result = run(None, sections=("csv",))
    assert result["same_output"] == {"CSV, Morph-KGC": "skipped: failed: no disk"}
