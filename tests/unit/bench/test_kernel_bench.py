"""`quadweir bench kernel` at small size: every section measures something."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import main
from quadweir.bench.kernel import SECTIONS
from quadweir.bench.kernel_pipeline import Measurement, hash_join
from quadweir.bench.kernel_resources import soak


def test_all_sections_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["bench", "kernel", "--quick", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert list(result["sections"]) == list(SECTIONS)
    for name, figures in result["sections"].items():
        # Compiling everything again takes longer than a quick run may.
        assert figures or name == "compilation"
        for figure in figures:
            assert np.isfinite(figure["value"]), figure
            assert figure["value"] > 0, figure


def test_one_section_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    main(["bench", "kernel", "--quick", "--section", "queries"])
    printed = capsys.readouterr().out
    assert "queries:" in printed
    assert "target at most 2" in printed
    assert "ring:" not in printed


def test_an_unknown_section_is_refused() -> None:
    with pytest.raises(SystemExit) as end:
        main(["bench", "kernel", "--section", "all"])
    assert end.value.code == 2


def test_a_short_soak_holds_no_more_at_its_end_than_in_its_middle() -> None:
    """State, not resident memory, which all tests of the process share."""
    figures = {figure.name: figure for figure in soak(150_000, step=5_000)}
    for query in ("Q4", "Q10"):
        for what in ("mappings held", "terms in the dictionary"):
            assert figures[f"{query}: {what} at the end"].value > 0
            assert figures[f"{query}: {what}, last / first after the windows were full"].met


@given(st.lists(st.lists(st.integers(0, 4), max_size=12), min_size=2, max_size=4))
def test_the_join_that_is_measured_against_joins(windows: list[list[int]]) -> None:
    expected = 0
    for key in range(5):
        product = 1
        for window in windows:
            product *= window.count(key)
        expected += product
    arrays = [np.array(window, dtype=np.int64) for window in windows]
    assert hash_join(arrays, 5) == expected


@pytest.mark.parametrize(
    ("figure", "met"),
    [
        (Measurement("a", 2.0, "/s", at_least=1), True),
        (Measurement("a", 0.5, "/s", at_least=1), False),
        (Measurement("a", 2.0, "s", at_most=1), False),
        (Measurement("a", 2.0, "s"), None),
    ],
)
def test_targets(figure: Measurement, met: bool | None) -> None:
    assert figure.met is met
