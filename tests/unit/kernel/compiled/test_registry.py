"""Every compiled function of the kernel has a test against a plain-Python version of it."""

from __future__ import annotations

import ast
from pathlib import Path

from quadweir.kernel.warm import dispatchers


def compared() -> dict[str, Path]:
    """The functions that tests marked with `compares` name, and where."""
    found: dict[str, Path] = {}
    for path in sorted(Path(__file__).parents[1].rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            for mark in node.decorator_list:
                if (
                    isinstance(mark, ast.Call)
                    and isinstance(mark.func, ast.Name)
                    and mark.func.id == "compares"
                ):
                    for name in mark.args:
                        found[ast.literal_eval(name)] = path
    return found


def test_every_compiled_function_is_compared_with_plain_python() -> None:
    every = {name for name, _ in dispatchers()}
    named = set(compared())
    assert every - named == set(), "compiled functions without a test marked by `compares`"
    assert named - every == set(), "tests that compare functions which do not exist"


def test_a_test_that_compares_a_function_mentions_it() -> None:
    for name, path in compared().items():
        text = path.read_text(encoding="utf-8").replace(f'"{name}"', "")
        assert name.rpartition(".")[2] in text, (name, path.name)
