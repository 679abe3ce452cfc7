"""The RML suites as lists of cases, and their mappings in the older vocabulary.

The suites are not part of the repository: see the `suites` fixture.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph as ox

RML = "http://w3id.org/rml/"
RR = "http://www.w3.org/ns/r2rml#"
OLD_RML = "http://semweb.mmlab.be/ns/rml#"
QL = "http://semweb.mmlab.be/ns/ql#"
DEFAULT_BASE = "http://example.com/"

# The names of R2RML; the rest of the new vocabulary goes to the old RML namespace.
R2RML_NAMES = frozenset(
    [
        "TriplesMap",
        "SubjectMap",
        "PredicateMap",
        "ObjectMap",
        "GraphMap",
        "PredicateObjectMap",
        "RefObjectMap",
        "Join",
        "IRI",
        "BlankNode",
        "Literal",
        "defaultGraph",
        "subject",
        "subjectMap",
        "predicate",
        "predicateMap",
        "object",
        "objectMap",
        "predicateObjectMap",
        "graph",
        "graphMap",
        "class",
        "constant",
        "template",
        "termType",
        "datatype",
        "language",
        "parentTriplesMap",
        "joinCondition",
        "child",
        "parent",
    ]
)
FORMULATIONS = frozenset(("JSONPath", "CSV", "XPath"))


@dataclass(frozen=True)
class RmlCase:
    """One case of a suite."""

    suite: str
    name: str
    title: str
    folder: Path
    base_iri: str
    expected: Path | None
    """The quads of the default output; None if the folder has none."""
    dumps: tuple[Path, ...]
    """The files that logical targets should produce, as the suite gives them."""
    error: bool
    """Whether the suite's metadata expects an error."""
    formats: tuple[str, ...]
    """The media types of its inputs."""

    @property
    def mapping(self) -> Path:
        return self.folder / "mapping.ttl"

    @property
    def inputs(self) -> tuple[Path, ...]:
        """Every file in the folder that is neither mapping, page nor output."""
        outputs = {self.mapping, self.folder / "README.md", self.expected, *self.dumps}
        return tuple(sorted(p for p in self.folder.iterdir() if p not in outputs))

    def __str__(self) -> str:
        return self.name


def load_cases(suites: Path, suite: str) -> list[RmlCase]:
    """List the cases of `rml-core`, `rml-io` or `rml-fnml`, sorted by name."""
    root = suites / suite
    with (root / "metadata.csv").open(encoding="utf-8", newline="") as lines:
        rows = {row["ID"]: row for row in csv.DictReader(lines)}
    cases = []
    for folder in sorted(path for path in root.iterdir() if (path / "mapping.ttl").is_file()):
        row = rows.get(folder.name, {})
        expected = next(
            (folder / n for n in ("default.nq", "output.nq") if (folder / n).is_file()), None
        )
        cases.append(
            RmlCase(
                suite=suite,
                name=folder.name,
                title=(row.get("title") or folder.name).strip('"'),
                folder=folder,
                base_iri=row.get("base_iri") or DEFAULT_BASE,
                expected=expected,
                dumps=tuple(sorted(folder.glob("dump*"))),
                error=(row.get("error") or "").lower() == "true",
                formats=tuple(kind for n in (1, 2, 3) if (kind := row.get(f"input_format{n}", ""))),
            )
        )
    return cases


def case_names(suites: Path, suite: str) -> list[str]:
    """The names alone, for `pytest.mark.parametrize`; empty where the suites are absent."""
    return [case.name for case in load_cases(suites, suite)] if (suites / suite).is_dir() else []


def to_old_vocabulary(text: str) -> str:
    """Rewrite a mapping from the new vocabulary to `rr:`, the old `rml:` and `ql:`.

    Sources become plain strings, as they were. A text that is not valid Turtle only has its
    namespace replaced, so it stays as invalid as it was.
    """
    try:
        quads = list(ox.parse(text, format=ox.RdfFormat.TURTLE, base_iri="http://example.com/base"))
    except SyntaxError:
        return text.replace(f"<{RML}>", f"<{RR}>")
    paths = {q.subject: q.object for q in quads if q.predicate.value == f"{RML}path"}
    targets = {q.object for q in quads if q.predicate.value == f"{RML}target"}
    lines = []
    for quad in quads:
        if quad.subject in paths and quad.subject not in targets:
            continue
        value = quad.object
        if quad.predicate.value == f"{RML}source":
            value = paths.get(value, value)
        terms = [_old(term) for term in (quad.subject, quad.predicate, value)]
        lines.append(f"{' '.join(str(term) for term in terms)} .")
    return "\n".join(lines) + "\n"


def _old(term: object) -> object:
    if not isinstance(term, ox.NamedNode) or not term.value.startswith(RML):
        return term
    local = term.value.removeprefix(RML)
    if local in R2RML_NAMES:
        return ox.NamedNode(RR + local)
    return ox.NamedNode((QL if local in FORMULATIONS else OLD_RML) + local)
