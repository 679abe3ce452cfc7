"""The page of RML conformance: every case of the suites, and what becomes of it.

`test_rml.py` runs the cases. One that is on neither list passes there as it stands, or the tests
fail; so the page follows from the suites and the lists. `--update-golden` writes it anew.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from conformance.rml_cases import RmlCase, load_cases

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "rml-conformance.md"
KNOWN: dict[str, dict[str, Any]] = tomllib.loads((HERE / "rml_known.toml").read_text())
ERRORS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "rml_errors.toml").read_text())
SUITES = {"rml-core": "RML-Core", "rml-io": "RML-IO", "rml-fnml": "RML-FNML"}
KINDS = {
    "application/json": "JSON",
    "text/csv": "CSV",
    "application/xml": "XML",
    "text/xml": "XML",
    "application/n-triples": "RDF",
    "application/n-quads": "RDF",
    "text/turtle": "RDF",
}
HEAD = """# RML conformance

The cases of the [RML test suites](https://w3id.org/rml/portal) and what becomes of them in
`quadweir map --strict`. They are run by `tests/conformance/test_rml.py`, which fails if a case does
otherwise than this page says; `pytest tests/conformance/test_rml_table.py --update-golden` writes
the page anew.

"""
TAIL = """
Results:

- **passes**: the output is the expected one, logical targets included, blank nodes up to renaming.
- **passes (error)**: the run ends with the error that the case is about, of the kind that is named,
  with its place in the mapping if it is a fault of the mapping.
- **case**: the case contradicts itself or another case, as the reason says, and all but the
  contradiction is checked.
- **never**: out of scope.

The cases of RML-Core pass also when they are rewritten in the older vocabulary (`rr:`, `rml:`,
`ql:`), and those of RML-IO about sources also when their files are read as large ones are, by Spark
and its workers instead of the driver.
"""


def result(case: RmlCase) -> str:
    if case.name in KNOWN:
        return str(KNOWN[case.name]["kind"])
    return "passes (error)" if case.name in ERRORS else "passes"


def row(case: RmlCase) -> str:
    reads = ", ".join(dict.fromkeys(KINDS.get(one, one) for one in case.formats))
    writes = ", ".join(sorted({one.name.partition(".")[2] for one in case.dumps}))
    expects = f"`{ERRORS[case.name]['code']}`" if case.name in ERRORS else "quads"
    reason = str(KNOWN.get(case.name, {}).get("reason", ""))
    return f"| {case.name} | {reads} | {writes} | {expects} | {result(case)} | {reason} |"


def page(suites: Path) -> str:
    parts = [
        HEAD,
        "| suite | cases | pass as they stand | contradicted by themselves or others | never |\n",
        "|---|---|---|---|---|\n",
    ]
    every = {name: load_cases(suites, name) for name in SUITES}
    for name, cases in every.items():
        counts = Counter(result(case).split()[0] for case in cases)
        parts.append(
            f"| {SUITES[name]} | {len(cases)} | {counts['passes']} | {counts['case']} "
            f"| {counts['never']} |\n"
        )
    parts.append(TAIL)
    for name, cases in every.items():
        parts.append(
            f"\n## {SUITES[name]}\n\n| case | reads | targets | expects | result | reason |\n"
        )
        parts.append("|---|---|---|---|---|---|\n")
        parts.extend(f"{row(case)}\n" for case in cases)
    return "".join(parts)


def test_the_page_is_what_the_lists_say(suites: Path, request: pytest.FixtureRequest) -> None:
    wanted = page(suites)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == wanted
