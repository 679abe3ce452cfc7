"""Every W3C SPARQL 1.1 evaluation test through our parser, optimiser and evaluator."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from conformance.results import (
    BASE,
    Case,
    as_csv,
    describe,
    order_keys,
    read_cases,
    read_dataset,
    read_result,
    same_answer,
    same_order,
)
from quadweir.algebra.evaluate import Evaluated, Solutions, evaluate
from quadweir.algebra.moments import from_epoch_ms
from quadweir.algebra.query import ConstructForm, ContinuousQuery
from quadweir.algebra.signatures import Context
from quadweir.optimize.pipeline import optimize
from quadweir.syntax import parse

FOLDERS = [
    "aggregates",
    "bind",
    "bindings",
    "cast",
    "construct",
    "csv-tsv-res",
    "exists",
    "functions",
    "grouping",
    "json-res",
    "negation",
    "project-expression",
    "property-path",
    "subquery",
]
REPO = Path(__file__).resolve().parents[2]
SUITE = Path(os.environ.get("QUADWEIR_SUITES", REPO.parent / "shared" / "conformance")) / "sparql11"
KNOWN = tomllib.loads((Path(__file__).parent / "known.toml").read_text("utf-8"))

CASES = [
    case
    for folder in FOLDERS
    if (SUITE / folder / "manifest.ttl").is_file()
    for case in read_cases(SUITE / folder / "manifest.ttl")
]


def identify(case: Case) -> str:
    return f"{case.folder.name}/{case.name}"


def parametrize() -> list[object]:
    exceptions = KNOWN.get("sparql-eval", {})
    return [
        pytest.param(
            case,
            id=identify(case),
            marks=[pytest.mark.xfail(reason=exceptions[identify(case)]["reason"])]
            if identify(case) in exceptions
            else [],
        )
        for case in CASES
    ]


def read_query(case: Case) -> ContinuousQuery:
    text = (case.folder / case.query).read_text("utf-8")
    base = f"{BASE}{case.folder.name}/{case.query}"
    names = [f"{BASE}{case.folder.name}/{name}" for name in case.graph_data]
    return parse(text, dialect="sparql", base=base, allow=names)


def answer(query: ContinuousQuery, case: Case) -> Evaluated:
    context = Context(now=from_epoch_ms(1_700_000_000_000))
    return evaluate(query, read_dataset(case), context=context)


def check(got: Evaluated, case: Case, query: ContinuousQuery) -> None:
    construct = isinstance(query.form, ConstructForm)
    expected = read_result(case.folder / case.result, construct=construct)
    if case.kind == "CSVResultFormatTest":
        got, expected = as_csv(got), as_csv(expected)
    if isinstance(got, Solutions) and isinstance(expected, Solutions):
        assert set(got.variables) == set(expected.variables)
        assert same_order(got, expected, query)
    if not same_answer(got, expected):
        assert describe(got) == describe(expected)


def test_the_suite_is_there(suites: Path) -> None:
    assert len(CASES) == 235
    assert {case.folder.name for case in CASES} == set(FOLDERS)


def test_answers_are_compared_in_order_where_the_query_orders(suites: Path) -> None:
    ordered = [case for case in CASES if order_keys(read_query(case))]
    assert len(ordered) == 17
    for case in ordered:
        query = read_query(case)
        got = answer(query, case)
        assert isinstance(got, Solutions)
        assert not same_order(got, Solutions(got.variables, got.rows[::-1]), query)


def test_every_exception_names_a_case(suites: Path) -> None:
    assert set(KNOWN.get("sparql-eval", {})) <= {identify(case) for case in CASES}


@pytest.mark.parametrize("case", parametrize())
def test_as_parsed(case: Case) -> None:
    query = read_query(case)
    check(answer(query, case), case, query)


@pytest.mark.parametrize("case", parametrize())
def test_optimized(case: Case) -> None:
    query = optimize(read_query(case)).query
    check(answer(query, case), case, query)
