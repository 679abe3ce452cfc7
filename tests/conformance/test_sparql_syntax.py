"""Every W3C SPARQL 1.1 syntax test: accepted or rejected as its manifest says."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, RdfFormat, Store

from quadweir.algebra.render import render
from quadweir.errors import QuerySyntaxError
from quadweir.syntax import DIALECTS, parse
from rendered_trees import read_query

REPO = Path(__file__).resolve().parents[2]
SUITE = Path(os.environ.get("QUADWEIR_SUITES", REPO.parent / "shared" / "conformance")) / "sparql11"
MANIFEST = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QUERY = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#query"
TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
BASE = "http://www.w3.org/2009/sparql/docs/tests/data-sparql11/"


@dataclass(frozen=True)
class Case:
    path: Path
    accepted: bool

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"


def read_cases() -> list[Case]:
    """All syntax tests, and the queries of all evaluation tests, which must parse too."""
    cases: dict[Path, Case] = {}
    for manifest in sorted(SUITE.glob("*/manifest.ttl")):
        store = Store()
        base = f"{BASE}{manifest.parent.name}/manifest.ttl"
        store.load(path=str(manifest), format=RdfFormat.TURTLE, base_iri=base)
        for quad in store.quads_for_pattern(None, TYPE, None):
            kind = quad.object.value.removeprefix(MANIFEST)
            if "Syntax" not in kind and kind != "QueryEvaluationTest":
                continue
            (action,) = store.quads_for_pattern(quad.subject, NamedNode(f"{MANIFEST}action"), None)
            node = action.object
            if "Evaluation" in kind:
                (query,) = store.quads_for_pattern(node, NamedNode(QUERY), None)
                node = query.object
            path = manifest.parent / node.value.rpartition("/")[2]
            cases[path] = Case(path, not kind.startswith("Negative"))
    return sorted(cases.values(), key=str)


CASES = read_cases()


@pytest.mark.skipif(not SUITE.is_dir(), reason=f"no {SUITE}; set QUADWEIR_SUITES")
def test_the_suite_is_whole() -> None:
    assert len([case for case in CASES if case.path.parent.name == "syntax-query"]) >= 94


@pytest.mark.parametrize("case", CASES, ids=str)
def test_syntax(case: Case) -> None:
    text = case.path.read_bytes().decode()
    base = f"{BASE}{case.path.parent.name}/{case.path.name}"
    if case.accepted:
        query = parse(text, base=base, allow=("FROM",))
        assert read_query(render(query)) == query
    else:
        with pytest.raises(QuerySyntaxError) as caught:
            parse(text, base=base)
        assert caught.value.span is not None


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.path.parent.name == "syntax-query"], ids=str
)
def test_every_dialect_reads_plain_sparql_alike(case: Case) -> None:
    text = case.path.read_bytes().decode()
    if not case.accepted:
        for dialect in DIALECTS:
            with pytest.raises(QuerySyntaxError):
                parse(text, base=BASE, dialect=dialect, allow=("FROM",))
        return
    plain = parse(text, base=BASE, dialect="sparql", allow=("FROM",))
    for dialect in DIALECTS:
        assert parse(text, base=BASE, dialect=dialect, allow=("FROM",)) == plain
