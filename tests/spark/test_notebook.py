"""The tutorial notebook runs from its first cell to its last, and its values show themselves.

A light runner: cells run in this process, over the one session, and the last expression of a cell is
displayed as Jupyter does. What needs a kernel of Jupyter's is not tested.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import quadweir.runtime.spark.session
from pages import ROOT

pytestmark = pytest.mark.spark

NOTEBOOK = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text(encoding="utf-8"))
CODE = ["".join(each["source"]) for each in NOTEBOOK["cells"] if each["cell_type"] == "code"]


def shown(code: str, variables: dict[str, Any]) -> str:
    """Run a cell; return what Jupyter would show of its last expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), variables)
    if last is None:
        return ""
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), variables)
    return value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


def test_it_is_a_notebook_without_outputs() -> None:
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert len({each["id"] for each in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])
    for each in NOTEBOOK["cells"]:
        if each["cell_type"] == "code":
            assert each["outputs"] == []


def test_its_cells_run_and_show_their_values(
    spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quadweir.runtime.spark.session, "build", lambda **_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _self: None)
    monkeypatch.chdir(tmp_path)
    variables = vars(ModuleType("notebook"))
    try:
        pages = [shown(code, variables) for code in CODE]
    finally:
        for query in spark.streams.active:
            query.stop()
        spark.catalog.dropTempView("minutes")
    found = "\n".join(pages)
    assert found.count("<td>registered</td>") == 1
    assert found.count("<td>running</td>") == 1
    assert found.count("<table border") == 3, "three tables of pandas"
    assert "<td>urn:ann</td>" in found
    assert "<td>Bob</td>" in found
