"""The reference page agrees with the code: its examples parse, its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quadweir.kernel.streamjoin.policies import Subwindow, named
from quadweir.mapping.check import lint
from quadweir.mapping.functions import FUNCTIONS, Function, Kind
from quadweir.mapping.read import parse_mapping
from quadweir.mapping.vocabulary import GREL, IDLAB, JOIN_PARAMETERS
from quadweir.mapping.yarrrml import parse_yarrrml

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "rml.md"
JOINS = PAGE.with_name("stream-joins.md")
TABLE = re.compile(r"(<!-- functions:[^\n]*-->\n)(.*?)(<!-- end of functions -->)", re.DOTALL)


def blocks(language: str, page: Path = PAGE) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def test_the_examples_are_mappings_without_a_fault():
    examples = [parse_mapping(text) for text in blocks("turtle")]
    examples += [parse_mapping(text) for text in blocks("turtle", JOINS)]
    examples += [parse_yarrrml(text) for text in blocks("yaml")]
    assert len(examples) == 3
    for mapping in examples:
        assert lint(mapping) == []


def test_the_python_example_runs():
    # The other block needs Spark; the tests of pages run it.
    (code,) = (each for each in blocks("python") if "def lane" in each)
    names: dict[str, object] = {}
    try:
        exec(code, names)
        assert names["lane"]("a-12") == 12
        assert FUNCTIONS.get("http://example.org/lane") is not None
    finally:
        FUNCTIONS.remove("http://example.org/lane")


def short(iri: str) -> str:
    return iri.replace(str(GREL), "grel:").replace(str(IDLAB), "idlab-fn:")


def row(function: Function) -> str:
    parameters = ", ".join(
        f"`{short(p.iris[0])}`"
        + (" (list)" if p.kind is Kind.LIST else "")
        + ("" if p.required else "?")
        for p in function.parameters
    )
    dagger = "" if function.deterministic else " †"
    return f"| `{short(function.iri)}`{dagger} | {parameters} | {function.outputs[0].kind} |"


def test_the_table_of_functions_is_complete(request: pytest.FixtureRequest):
    text = PAGE.read_text("utf-8")
    rows = [row(function) for function in FUNCTIONS if function.code is None]
    table = "\n".join(["| function | parameters | gives |", "|---|---|---|", *rows]) + "\n"
    found = TABLE.search(text)
    assert found is not None
    if request.config.getoption("--update-golden"):
        PAGE.write_text(TABLE.sub(lambda m: m[1] + table + m[3], text), "utf-8")
    else:
        assert found[2] == table, "run pytest --update-golden"


def test_every_finding_and_every_parameter_is_on_the_page():
    text = PAGE.read_text("utf-8")
    source = Path(__file__).resolve().parents[3] / "src" / "quadweir" / "mapping"
    code = "".join(p.read_text("utf-8") for p in source.glob("*.py"))
    named = set(re.findall(r'"((?:[a-z]+-)+[a-z]+)",\n', code))
    wanted = {
        name
        for name in named
        if name.split("-")[0]
        in ("unknown", "unused", "unmatched", "unbounded", "cross", "constant", "template", "bad", "foreign", "blank", "literal")
    }  # fmt: skip
    assert wanted
    for name in wanted:
        assert f"`{name}`" in text, name
    joins = JOINS.read_text("utf-8")
    for parameter in JOIN_PARAMETERS:
        assert f"`qw:{parameter}`" in joins, parameter


def test_the_policy_of_the_page_about_joins_runs():
    (code,) = blocks("python", JOINS)
    exec(code, {})
    adapted = named("calm").adapt(Subwindow(1_000, (500, 500), (1, 1), 0))
    assert (adapted.size_ms, adapted.carry_ms) == (1_500, 1_000)
