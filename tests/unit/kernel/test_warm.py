"""Warming up reaches every compiled function."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from quadweir import kernel
from quadweir.kernel.warm import dispatchers

# In a process of its own, where no other test has called anything.
ALONE = "import json; from quadweir.kernel.warm import *; warm_up(); print(json.dumps(compiled()))"

# Only measured with; no stream calls it.
FOR_MEASUREMENTS = {"ringentries.probe_all"}


def called_from_python() -> set[str]:
    """The compiled functions that are called by code which is not itself compiled."""
    every = {name for name, _ in dispatchers()}
    names = {name.rpartition(".")[2]: name for name in every}
    found = set()
    root = Path(kernel.__path__[0])
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef) or _is_compiled(node):
                continue
            for call in ast.walk(node):
                if isinstance(call, ast.Call):
                    called = call.func
                    name = called.attr if isinstance(called, ast.Attribute) else None
                    name = called.id if isinstance(called, ast.Name) else name
                    own = f"{module}.{name}"
                    if own in every:
                        found.add(own)
                    elif isinstance(called, ast.Name) and name in names and name != "find":
                        found.add(names[name])
                    elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                        full = f"{called.value.id}.{name}"
                        if full in every:
                            found.add(full)
    return found


def _is_compiled(node: ast.FunctionDef) -> bool:
    return any("njit" in ast.dump(each) for each in node.decorator_list)


def test_warming_up_runs_all_that_python_calls_in_one_form_each() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    forms = json.loads(done.stdout)
    wanted = called_from_python() - FOR_MEASUREMENTS
    assert {"probing.advance", "interning.intern", "grouprows.group_pass"} <= wanted
    assert {"streamjoin.dynamic._meet", "streamjoin.timed._meet"} <= wanted
    assert {name: forms[name] for name in wanted if forms[name] != 1} == {}
