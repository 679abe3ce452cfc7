"""The report of the whole benchmark: its content, and how a real browser draws it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from browser import Browser
from command_line import main
from quadweir.bench import report
from quadweir.bench.markdown import write_markdown
from quadweir.bench.page import write
from quadweir.bench.report import Plan, all_pieces, make_report, wrong
from quadweir.errors import UsageError

COMMANDS = [["quadweir", "bench", "report", "bench-report"]]


def speed(rate: float) -> dict[str, Any]:
    return {
        "triples_per_second": rate, "least": 0.9 * rate, "most": 1.2 * rate, "runs": 3,
        "answers": 1234, "batch_ms": 900.0, "kernel_ms": 200.0, "memory_mib": 3210,
        "split_ms": {"addBatch": 800, "walCommit": 5},
    }  # fmt: skip


def agreement(worst: float) -> dict[str, Any]:
    ways = dict.fromkeys(("eager", "eager_back", "periodic", "periodic_back"), 0.0)
    return {"size": 50, "other_size": 50, **ways, "eager": worst}


def fake(section: str, name: str, worst: float) -> Any:
    """A possible result of the piece with that name."""
    match section:
        case "functionality":
            return {"dialect": name.split()[1], "answers": 17, "mismatch": 0.0}
        case "correctness":
            rates = (20.0, 1000.0) if name.startswith("LSBench") else (None,)
            mine = worst if name == "LSBench Q4" else 0.0
            ways = ("kernel, 1 at a time", "Spark, all at once")
            common = {"triples": 1200, **agreement(mine)}
            return [{"rate": rate, "way": way, **common} for rate in rates for way in ways]
        case "latency":
            return {"pass-through": [300.0 + n for n in range(50)], "eager query": [450.0] * 50}
        case "queries":
            apart = {"apart": 1e5} if name.endswith((" 1", " 10")) else {}
            return {
                "count": 1, "seconds_to_make": 0.5, "shards": 1, "triples_per_second": 2e6,
                "answers": 77, **apart,
            }  # fmt: skip
        case "peers":
            row = {
                "triples": 4000, "beyond": 4000, "seconds": 1.5, "triples_per_second": 5e4,
                "least": 4e4, "most": 6e4,
            }  # fmt: skip
            ours = {"peer": "Quadweir", "dialect": "cqels", **row, **agreement(0.0)}
            cannot = {"peer": "another", "dialect": "cqels", "cannot": "not that one"}
            return [ours, cannot if name == "Q1" else {**ours, "peer": "another"}]
        case _:
            return speed(300_000.0)


def result(worst: float = 0.0) -> dict[str, Any]:
    found: dict[str, list[dict[str, Any]]] = {}
    for piece in all_pieces(Plan.of(quick=False)):
        printed = {"name": piece.name, "result": fake(piece.section, piece.name, worst)}
        found.setdefault(piece.section, []).append(printed)
    machine = {"cores": 2, "commit": "0123abc", "pyspark": "4.3.0"}
    return {"machine": machine, "input": {"effort": {"rates": [20, 1000]}}, "sections": found}


def test_correctness_comes_first_and_all_sections_are_there() -> None:
    made = make_report(result(), COMMANDS)
    titles = [section.title for section in made.sections]
    assert titles[:3] == ["Which queries run", "Are the answers right", "Throughput"]
    assert len(titles) == 11
    assert "mismatch is 0.00 %" in made.summary
    # 300,000 triples/s: Q1 and Q10 want three times what CQELS published.
    assert "in 10 of 12 queries" in made.summary


def test_only_measured_figures_are_shown() -> None:
    whole = result()
    few = {"correctness": whole["sections"]["correctness"]}
    made = make_report({**whole, "sections": few})
    assert [section.title for section in made.sections] == ["Are the answers right"]


def test_failures_are_listed_first() -> None:
    whole = result()
    assert wrong(whole) == []
    assert wrong(result(worst=0.1)) == ["LSBench Q4"]
    whole["sections"]["failed"] = [{"name": "performance: Q7", "result": "no memory"}]
    made = make_report(whole)
    assert made.sections[0].title == "What failed"
    assert wrong(whole) == ["performance: Q7"]
    assert made.summary.startswith("Could not be measured: 1.")


def test_a_browser_draws_the_whole_report(browser: Browser, tmp_path: Path) -> None:
    page, data = write(make_report(result(), COMMANDS), result(), tmp_path, "report")
    assert json.loads(data.read_text())["sections"]["queries"]
    for width in (1200, 390):
        seen = browser.look(page, width=width)
        seen.check(
            "the largest mismatch is 0.00 %",
            "0.00 %, reached",
            "118,924 (published)",
            "87.93 (published)",
            "300,000, missed",
            "not that one",
            "0123abc",
            "quadweir bench report bench-report",
        )
        assert len(seen.charts) == 11
        assert "kernel, 1 at a time" in seen.text


def test_a_wrong_answer_is_seen_at_once(browser: Browser, tmp_path: Path) -> None:
    page, _ = write(make_report(result(worst=2.5), COMMANDS), {}, tmp_path, "report")
    browser.look(page).check("the largest mismatch is 2.50 %", "2.50 %, missed")


def test_the_report_as_markdown_has_its_charts_in_a_folder(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    written = write_markdown(make_report(result(), COMMANDS), page)
    text = page.read_text()
    assert text.startswith("# Quadweir") and "| Q1 | all of one user |" in text
    assert "*118,924*" in text and "**(missed)**" in text
    assert max(map(len, text.splitlines())) <= 120
    charts = [path for path in written if path.suffix == ".svg"]
    assert len(charts) == 11
    for chart in charts:
        assert f"(benchmarks/{chart.name})" in text and chart.read_text().startswith("<svg")
    # Charts of an earlier report are removed.
    (tmp_path / "benchmarks" / "old.svg").touch()
    write_markdown(make_report(result(), COMMANDS), page)
    assert not (tmp_path / "benchmarks" / "old.svg").exists()


def test_the_command_measures_once_and_writes_page_and_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = report.all_pieces

    def few(plan: Plan, sections: Any, *, more: Any = ()) -> Any:
        return [each for each in some(plan, sections, more=more) if each.name.startswith("Q2 ")]

    monkeypatch.setattr(report, "all_pieces", few)
    words = ["bench", "report", "--quick", "--section", "functionality", str(tmp_path / "out")]
    main(words)
    out, printed = capsys.readouterr()
    assert "report.html" in out and printed.count("functionality: Q2") == 3
    found = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [each["result"]["mismatch"] for each in found["sections"]["functionality"]] == [0.0] * 3
    main(words)
    assert "functionality" not in capsys.readouterr().err, "nothing is measured twice"


def test_what_is_not_a_section_or_a_peer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "report", "--section", "nonsense", str(tmp_path)])
    from quadweir.commands.benchreport import _peer

    with pytest.raises(UsageError):
        _peer("name only")
    with pytest.raises(UsageError):
        _peer("name:latin=command")
    peer = _peer("other:csparql=java -jar 'my engine.jar'")
    assert (peer.name, peer.dialect) == ("other", "csparql")
