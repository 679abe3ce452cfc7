"""Warming up reaches every compiled function."""

from __future__ import annotations

import ast
from pathlib import Path

from quadweir import kernel
from quadweir.kernel.warm import compiled, dispatchers, warm_up

# Only measured with; no stream calls it.
FOR_MEASUREMENTS = {"ring.probe_all"}


def called_from_python() -> set[str]:
    """The compiled functions that are called by code which is not itself compiled."""
    names = {name.partition(".")[2]: name for name, _ in dispatchers()}
    found = set()
    for path in sorted(Path(kernel.__path__[0]).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef) or _is_compiled(node):
                continue
            for call in ast.walk(node):
                if isinstance(call, ast.Call):
                    called = call.func
                    name = called.attr if isinstance(called, ast.Attribute) else None
                    name = called.id if isinstance(called, ast.Name) else name
                    own = f"{path.stem}.{name}"
                    if own in names.values():
                        found.add(own)
                    elif isinstance(called, ast.Name) and name in names and name != "find":
                        found.add(names[name])
                    elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                        full = f"{called.value.id}.{name}"
                        if full in names.values():
                            found.add(full)
    return found


def _is_compiled(node: ast.FunctionDef) -> bool:
    return any("njit" in ast.dump(each) for each in node.decorator_list)


def test_warming_up_leaves_nothing_to_be_compiled() -> None:
    warm_up()
    forms = compiled()
    wanted = called_from_python()
    assert {"probing.advance", "interning.intern", "aggregate.group_pass"} <= wanted
    missed = {name for name in wanted if forms.get(name) == 0} - FOR_MEASUREMENTS
    assert missed == set()


def test_what_python_calls_has_one_form() -> None:
    warm_up()
    forms = compiled()
    several = {name: forms[name] for name in called_from_python() if forms.get(name, 1) > 1}
    assert several == {}
