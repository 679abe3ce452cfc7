"""The page of RML conformance: every case of the suites, and its result.

`test_rml.py` runs the cases. One that is on neither list passes there as it stands, or the tests
fail; so the page follows from the suites and the lists. `--update-golden` writes it again.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from textwrap import fill
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

This page lists the cases of the [RML test suites](https://w3id.org/rml/portal) and their results with
`quadweir map --strict`. `tests/conformance/test_rml.py` runs them, and fails if a case does
otherwise than this page says; `pytest tests/conformance/test_rml_table.py --update-golden` writes
the page again.

"""
TAIL = """
Results:

- **passes**: the output is the expected one, logical targets included, blank nodes up to renaming.
- **passes (error)**: the run ends with the error that the case is about, with the code that is named,
  and with its place in the mapping if the mapping is wrong.
- **case**: the case contradicts itself or another case. The reasons stand below the table.
  Everything except the contradiction is checked.
- **never**: out of scope.

The cases of RML-Core also pass when they are rewritten in the older vocabulary (`rr:`, `rml:`,
`ql:`). The cases of RML-IO about sources also pass when Spark and its workers read the files, as they
read large ones, instead of the driver.
"""


def result(case: RmlCase) -> str:
    if case.name in KNOWN:
        return str(KNOWN[case.name]["kind"])
    return "passes (error)" if case.name in ERRORS else "passes"


def row(case: RmlCase) -> str:
    reads = ", ".join(dict.fromkeys(KINDS.get(one, one) for one in case.formats))
    writes = ", ".join(sorted({one.name.partition(".")[2] for one in case.dumps}))
    expects = f"`{ERRORS[case.name]['code']}`" if case.name in ERRORS else "quads"
    return f"| {case.name} | {reads} | {writes} | {expects} | {result(case)} |"


def reason(case: RmlCase) -> str:
    text = f"- {case.name}: {KNOWN[case.name]['reason']}"
    return fill(text, 118, subsequent_indent="  ", break_on_hyphens=False)


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
        parts.append(f"\n## {SUITES[name]}\n\n| case | reads | targets | expects | result |\n")
        parts.append("|---|---|---|---|---|\n")
        parts.extend(f"{row(case)}\n" for case in cases)
        if known := [case for case in cases if case.name in KNOWN]:
            parts.append("\nReasons:\n\n")
            parts.extend(f"{reason(case)}\n" for case in known)
    return "".join(parts)


def test_the_page_is_what_the_lists_say(suites: Path, request: pytest.FixtureRequest) -> None:
    wanted = page(suites)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == wanted
