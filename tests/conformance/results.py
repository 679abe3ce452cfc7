"""Reads the W3C suites' manifests, data and result files, and compares answers.

Two answers are compared as graphs: every solution becomes a node with one triple for each binding,
and both graphs are put into canonical form. So blank nodes match up to renaming and equal rows are
counted. Literals are compared by value within their datatype (1.0 is 1.00).
"""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyoxigraph as ox

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import Evaluated, Solutions
from quadweir.algebra.expressions import Expression
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.patterns import Distinct, OrderBy, OrderKey, Project, Reduced, Slice
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.scalar import evaluate_expression
from quadweir.algebra.scopes import mentioned
from quadweir.algebra.signatures import Context
from quadweir.algebra.values import literal_of, value_of
from quadweir.terms import IRI, BlankNode, Literal, Quad, Term, Variable, parse_term
from quadweir.vocab import RDF, XSD

MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
SRX = "{http://www.w3.org/2005/sparql-results#}"

# Documents are given this address, so that relative IRIs resolve alike in data, query and result.
BASE = "http://conformance.example/"


@dataclass(frozen=True)
class Case:
    """One evaluation test of a manifest."""

    name: str
    kind: str
    folder: Path
    query: str
    result: str
    data: tuple[str, ...] = ()
    graph_data: tuple[str, ...] = ()
    comment: str = field(default="", compare=False)


def read_cases(manifest: Path) -> Iterator[Case]:
    """The evaluation tests that a manifest lists."""
    folder = manifest.parent
    base = BASE + folder.name + "/"
    store = ox.Store()
    store.bulk_load(manifest.read_bytes(), format=ox.RdfFormat.TURTLE, base_iri=base + "manifest")

    def objects(subject: object, predicate: str) -> list[object]:
        found = store.quads_for_pattern(subject, ox.NamedNode(predicate), None, None)
        return [quad.object for quad in found]

    def file(node: object) -> str:
        return node.value.removeprefix(base)

    for start in objects(None, MF + "entries"):
        while start.value != RDF.nil:
            (entry,) = objects(start, RDF.first)
            (start,) = objects(start, RDF.rest)
            (kind,) = objects(entry, RDF.type)
            if not kind.value.endswith(("QueryEvaluationTest", "CSVResultFormatTest")):
                continue
            (action,) = objects(entry, MF + "action")
            yield Case(
                name=entry.value.rpartition("#")[2],
                kind=kind.value.removeprefix(MF),
                folder=folder,
                query=file(objects(action, QT + "query")[0]),
                result=file(objects(entry, MF + "result")[0]),
                data=tuple(map(file, objects(action, QT + "data"))),
                graph_data=tuple(map(file, objects(action, QT + "graphData"))),
            )


def read_graph(path: Path) -> tuple[Quad, ...]:
    """Read an RDF file."""
    form = {".nt": ox.RdfFormat.N_TRIPLES, ".rdf": ox.RdfFormat.RDF_XML}.get(
        path.suffix, ox.RdfFormat.TURTLE
    )
    base = BASE + path.parent.name + "/" + path.name
    quads = ox.parse(path.read_bytes(), format=form, base_iri=base)
    return tuple(
        Quad(_from_ox(quad.subject), _from_ox(quad.predicate), _from_ox(quad.object))
        for quad in quads
    )


def read_dataset(case: Case) -> Dataset:
    """Load a case's data: default graph, and named graphs under the address of their file."""
    quads = [quad for name in case.data for quad in read_graph(case.folder / name)]
    names = []
    for name in case.graph_data:
        iri = IRI(BASE + case.folder.name + "/" + name)
        names.append(iri)
        for quad in read_graph(case.folder / name):
            # A blank node belongs to its file: the same file may be loaded twice.
            subject, object_ = (_scoped(term, name) for term in (quad.subject, quad.object))
            quads.append(Quad(subject, quad.predicate, object_, iri))
    return Dataset.of(quads, named=names)


def _scoped(term: Term, name: str) -> Term:
    if isinstance(term, BlankNode):
        return BlankNode(f"{name.replace('.', '-')}-{term.label}")
    return term


def _from_ox(term: object) -> Term:
    match term:
        case ox.NamedNode():
            return IRI(term.value)
        case ox.BlankNode():
            return BlankNode(term.value)
        case ox.Literal():
            if term.language:
                return Literal(term.value, language=term.language)
            return Literal(term.value, IRI(term.datatype.value))
    raise TypeError(term)


def _to_ox(term: Term) -> object:
    match term:
        case IRI():
            return ox.NamedNode(term.value)
        case BlankNode():
            return ox.BlankNode(term.label)
        case Literal():
            if term.language is not None:
                return ox.Literal(term.lexical, language=term.language)
            return ox.Literal(term.lexical, datatype=ox.NamedNode(term.datatype.value))


# --- results ----------------------------------------------------------------------------------


def read_result(path: Path, *, construct: bool = False) -> Evaluated:
    """Read a result file of any of the suites' formats."""
    match path.suffix:
        case ".srx":
            return _read_srx(path.read_text("utf-8"))
        case ".srj":
            return _read_srj(path.read_text("utf-8"))
        case ".tsv":
            return _read_tsv(path.read_text("utf-8"))
        case ".csv":
            return _read_csv(path.read_text("utf-8"))
        case ".ttl" | ".nt" | ".rdf":
            quads = read_graph(path)
            return frozenset(quads) if construct else _read_result_set(quads)
    raise ValueError(f"no reader for {path}")


def _read_srx(text: str) -> Evaluated:
    root = ElementTree.fromstring(text)
    truth = root.find(f"{SRX}boolean")
    if truth is not None:
        return (truth.text or "").strip() == "true"
    names = tuple(Variable(each.attrib["name"]) for each in root.iter(f"{SRX}variable"))
    rows = []
    for result in root.iter(f"{SRX}result"):
        row = {}
        for binding in result.iter(f"{SRX}binding"):
            (node,) = binding
            row[Variable(binding.attrib["name"])] = _srx_term(node)
        rows.append(row)
    return Solutions(names, tuple(rows))


def _srx_term(node: ElementTree.Element) -> Term:
    text = node.text or ""
    match node.tag.removeprefix(SRX):
        case "uri":
            return IRI(text)
        case "bnode":
            return BlankNode(text)
        case "literal":
            language = node.attrib.get("{http://www.w3.org/XML/1998/namespace}lang")
            if language:
                return Literal(text, language=language)
            return Literal(text, IRI(node.attrib.get("datatype", XSD.string)))
    raise ValueError(node.tag)


def _read_srj(text: str) -> Evaluated:
    document = json.loads(text)
    if "boolean" in document:
        return bool(document["boolean"])
    names = tuple(map(Variable, document["head"].get("vars", ())))
    rows = [
        {Variable(name): _srj_term(term) for name, term in binding.items()}
        for binding in document["results"]["bindings"]
    ]
    return Solutions(names, tuple(rows))


def _srj_term(term: dict[str, str]) -> Term:
    match term["type"]:
        case "uri":
            return IRI(term["value"])
        case "bnode":
            return BlankNode(term["value"])
        case _:
            if "xml:lang" in term:
                return Literal(term["value"], language=term["xml:lang"])
            return Literal(term["value"], IRI(term.get("datatype", XSD.string)))


def _read_tsv(text: str) -> Evaluated:
    header, *lines = text.splitlines()
    names = tuple(Variable(name.lstrip("?")) for name in header.split("\t"))
    rows = []
    for line in lines:
        cells = line.split("\t")
        pairs = zip(names, cells, strict=True)
        rows.append({name: _tsv_term(cell) for name, cell in pairs if cell})
    return Solutions(names, tuple(rows))


def _tsv_term(cell: str) -> Term:
    if cell[0] in '<"_':
        return parse_term(cell)
    for datatype in (XSD.integer, XSD.decimal, XSD.double):
        literal = Literal(cell, IRI(datatype))
        if value_of(literal) is not None:
            return literal
    raise ValueError(cell)


def _read_csv(text: str) -> Evaluated:
    header, *lines = csv.reader(io.StringIO(text, newline=""))
    names = tuple(map(Variable, header))
    rows = [
        {name: Literal(cell) for name, cell in zip(names, line, strict=True) if cell}
        for line in lines
    ]
    return Solutions(names, tuple(rows))


def _read_result_set(quads: tuple[Quad, ...]) -> Evaluated:
    """Read a result written down as RDF, in the vocabulary of the first SPARQL working group."""

    def objects(subject: Term, local: str) -> list[Term]:
        return [q.object for q in quads if q.subject == subject and q.predicate.value == RS + local]

    def place(solution: Term) -> int:
        return min((int(index.lexical) for index in objects(solution, "index")), default=0)

    (root,) = {
        q.subject
        for q in quads
        if q.predicate.value == RDF.type and q.object == IRI(RS + "ResultSet")
    }
    for truth in objects(root, "boolean"):
        return truth.lexical == "true"
    names = tuple(sorted(Variable(name.lexical) for name in objects(root, "resultVariable")))
    rows = []
    for solution in sorted(objects(root, "solution"), key=place):
        row = {}
        for binding in objects(solution, "binding"):
            (name,) = objects(binding, "variable")
            (row[Variable(name.lexical)],) = objects(binding, "value")
        rows.append(row)
    return Solutions(names, tuple(rows))


def as_csv(answer: Evaluated) -> Evaluated:
    """Drop what CSV cannot express: every term is its bare text, and all blank nodes are equal."""
    assert isinstance(answer, Solutions)
    return Solutions(
        answer.variables,
        tuple({name: _csv_text(term) for name, term in row.items()} for row in answer.rows),
    )


def _csv_text(term: Term) -> Term:
    match term:
        case IRI():
            return Literal(term.value)
        case BlankNode():
            return Literal("_:")
        case Literal():
            return Literal("_:" if term.lexical.startswith("_:") else term.lexical)


# --- comparison -------------------------------------------------------------------------------


def same_answer(left: Evaluated, right: Evaluated) -> bool:
    """Whether two answers are the same up to blank nodes and the spelling of values."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return describe(left) == describe(right)


def same_order(got: Solutions, expected: Solutions, query: ContinuousQuery) -> bool:
    """Whether two answers to a query with ORDER BY give its keys in the same order.

    Solutions with equal keys may stand in any order among themselves; so may blank nodes, since
    SPARQL has no order for them.
    """
    return _keys(got, query) == _keys(expected, query)


def order_keys(query: ContinuousQuery) -> tuple[OrderKey, ...]:
    """The keys of a query's own ORDER BY; those of its subqueries are no order of answers."""
    pattern = query.pattern
    while isinstance(pattern, Slice | Distinct | Reduced | Project):
        pattern = pattern.input
    return pattern.keys if isinstance(pattern, OrderBy) else ()


def _keys(answer: Solutions, query: ContinuousQuery) -> list[list[Term | None]]:
    keys = [key.expression for key in order_keys(query)]
    # A key that is not in the answer cannot be compared.
    assert all(mentioned(key) <= set(answer.variables) for key in keys)
    return [[_key(key, row) for key in keys] for row in answer.rows]


def _key(expression: Expression, row: dict[Variable, Term]) -> Term | None:
    try:
        term = evaluate_expression(expression, row, Context(), lambda *_: False)
    except ExpressionError:
        return None
    return BlankNode("any") if isinstance(term, BlankNode) else normal(term)


def describe(answer: Evaluated) -> list[str]:
    """A canonical text of an answer, for comparing and for reading when two differ."""
    if isinstance(answer, bool):
        return [str(answer).lower()]
    quads = answer if isinstance(answer, frozenset) else tuple(_rows_as_quads(answer.rows))
    dataset = ox.Dataset(
        ox.Quad(*(_to_ox(normal(t)) for t in (quad.subject, quad.predicate, quad.object)))
        for quad in quads
    )
    dataset.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return sorted(map(str, dataset))


def _rows_as_quads(rows: Iterable[dict[Variable, Term]]) -> Iterator[Quad]:
    for number, row in enumerate(rows):
        node = BlankNode(f"row{number}")
        yield Quad(node, IRI(RDF.type), IRI(RS + "ResultRow"))
        for variable, term in row.items():
            yield Quad(node, IRI(RS + "var-" + variable.name), term)


def normal(term: Term) -> Term:
    """Spell a literal canonically where its value is known."""
    if isinstance(term, Literal) and term.datatype.value in (
        XSD.integer,
        XSD.decimal,
        XSD.double,
        XSD.float,
        XSD.boolean,
        XSD.dateTime,
    ):
        value = value_of(term)
        return literal_of(value) if value is not None else term
    return term
