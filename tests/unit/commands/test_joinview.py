"""The windows of stream joins on a terminal, and in a log."""

from __future__ import annotations

import io
import json

from rich.console import Console

from quadweir.commands.joinview import JOIN_METRICS, read_reports, tables_of
from quadweir.runtime.joins import frames

WINDOW = {
    "key": "a-\x1b1, 52.5",
    "size_ms": 4000,
    "child_limit": 500,
    "parent_limit": 600,
    "child_records": 30,
    "parent_records": 31,
    "evictions": 2,
}
OTHER = {**WINDOW, "key": "fullest", "child_records": 400}
JOIN_TOTALS = {
    "late": 1,
    "without_key": 0,
    "pairs": 1234,
    "held": 461,
    "keys": 2,
    "evictions": 4,
    "through": 1_000,
    "windows": [json.dumps([WINDOW]), json.dumps([OTHER])],
}


def progress(**metrics: object) -> dict[str, object]:
    return {
        "observedMetrics": {f"{JOIN_METRICS}1": {**JOIN_TOTALS, **metrics}, "quadweir_answers": {}}
    }


def test_reports_hold_the_fullest_windows_first() -> None:
    (report,) = read_reports(progress())
    assert report.totals["held"] == 461
    assert [window["key"] for window in report.windows] == ["fullest", WINDOW["key"]]
    assert read_reports(progress(held=None)) == []
    assert frames.JOIN_METRICS == JOIN_METRICS


def test_the_table_shows_size_limits_fill_and_evictions() -> None:
    out = io.StringIO()
    Console(file=out, width=120).print(*tables_of(read_reports(progress())))
    text = out.getvalue()
    for part in (
        "1,234 pairs",
        "461 records held",
        "4,000 ms",
        "400 of 500",
        "31 of 600",
        "1 late",
    ):
        assert part in text
    # A key comes from data; a terminal must not obey it.
    assert "\x1b" not in text


def test_windows_that_do_not_adapt_show_only_their_records() -> None:
    plain = {
        **WINDOW,
        "size_ms": None,
        "child_limit": None,
        "parent_limit": None,
        "evictions": None,
    }
    out = io.StringIO()
    reports = read_reports(progress(windows=[json.dumps([plain])]))
    Console(file=out, width=120).print(*tables_of(reports))
    assert "30" in out.getvalue()
    assert "None" not in out.getvalue()
