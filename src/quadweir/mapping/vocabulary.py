"""The vocabularies of mappings, and one short name for what several of them spell.

`short_name` folds R2RML, the older RML vocabularies and the W3C community group's RML into the
local names of the last, so the reader asks for `subjectMap` and finds `rr:subjectMap` as well.
Other namespaces keep a prefix: `rmls:topic`, `wot:hasTarget`, `qw:size`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from quadweir.vocab import RDF, Namespace

RML: Final = Namespace("http://w3id.org/rml/")
R2RML: Final = Namespace("http://www.w3.org/ns/r2rml#")
OLD_RML: Final = Namespace("http://semweb.mmlab.be/ns/rml#")
QL: Final = Namespace("http://semweb.mmlab.be/ns/ql#")
FNML: Final = Namespace("http://semweb.mmlab.be/ns/fnml#")
RMLT: Final = Namespace("http://semweb.mmlab.be/ns/rml-target#")
COMP: Final = Namespace("http://semweb.mmlab.be/ns/rml-compression#")
ENC: Final = Namespace("http://semweb.mmlab.be/ns/rml-encoding#")
RMLS: Final = Namespace("http://semweb.mmlab.be/ns/rmls#")
FNO: Final = Namespace("https://w3id.org/function/ontology#")
HTTP_FNO: Final = Namespace("http://w3id.org/function/ontology#")
"""The function ontology as many mappings spell it."""
FORMATS: Final = Namespace("http://www.w3.org/ns/formats/")
CSVW: Final = Namespace("http://www.w3.org/ns/csvw#")
D2RQ: Final = Namespace("http://www.wiwiss.fu-berlin.de/suhl/bizer/D2RQ/0.1#")
VOID: Final = Namespace("http://rdfs.org/ns/void#")
DCAT: Final = Namespace("http://www.w3.org/ns/dcat#")
QW: Final = Namespace("urn:quadweir:mapping#")
"""Our own properties: the parameters of join windows."""

GREL: Final = Namespace("http://users.ugent.be/~bjdmeest/function/grel.ttl#")
IDLAB: Final = Namespace("https://w3id.org/imec/idlab/function#")

# `https://w3id.org/rml/` and `http://w3id.org/rml` without the slash's scheme occur in the wild.
_FOLDED: Final = tuple(
    str(namespace)
    for namespace in (RML, "https://w3id.org/rml/", R2RML, OLD_RML, QL, FNML, RMLT, COMP, ENC)
)
_PREFIXED: Final = (
    (str(RMLS), "rmls:"),
    (str(CSVW), "csvw:"),
    (str(QW), "qw:"),
    (str(D2RQ), "d2rq:"),
    (str(FORMATS), "formats:"),
)
_USUAL_PREFIXES: Final = (
    (str(R2RML), "rr:"),
    (str(QL), "ql:"),
    (str(FNML), "fnml:"),
    (str(RMLT), "rmlt:"),
)
_RENAMED: Final = {"column": "reference", "logicalTable": "logicalSource"}
# Web of Things vocabularies moved between dated namespaces; the local names stayed.
_WOT: Final = "/wot/"


def short_name(iri: str) -> str:
    """Name a property, class or value in one way for all vocabularies; others keep their IRI.

    >>> short_name("http://www.w3.org/ns/r2rml#column"), short_name("http://w3id.org/rml/reference")
    ('reference', 'reference')
    >>> short_name("http://semweb.mmlab.be/ns/rmls#topic")
    'rmls:topic'
    """
    if iri == RDF.type:
        return "a"
    for namespace in _FOLDED:
        if iri.startswith(namespace):
            local = iri[len(namespace) :]
            return _RENAMED.get(local, local)
    for namespace, prefix in _PREFIXED:
        if iri.startswith(namespace):
            return prefix + iri[len(namespace) :]
    if _WOT in iri and "w3.org" in iri:
        return "wot:" + iri[max(iri.rfind("#"), iri.rfind("/")) + 1 :]
    return iri


def shown_name(name: str, iri: str = "") -> str:
    """Write a short name as a user would, with the usual prefix of the namespace it was found in.

    >>> shown_name("template"), shown_name("rmls:topic"), shown_name("objctMap", R2RML.objctMap)
    ('rml:template', 'rmls:topic', 'rr:objctMap')
    """
    if ":" in name:
        return name
    prefixes = (prefix for namespace, prefix in _USUAL_PREFIXES if iri.startswith(namespace))
    return next(prefixes, "rml:") + name


EXPRESSIONS: Final = ("constant", "reference", "template", "functionExecution", "functionValue")
_EXPRESSION_MAP: Final = frozenset((*EXPRESSIONS, "return", "returnMap", "condition"))
_TERM_MAP: Final = _EXPRESSION_MAP | {"termType", "logicalTarget", "inverseExpression"}

UNSUPPORTED: Final = {
    "gather": "collections and containers (RML-CC)",
    "gatherAs": "collections and containers (RML-CC)",
    "quotedTriplesMap": "quoted triples (RML-star)",
    "starMap": "quoted triples (RML-star)",
    "viewOn": "logical views (RML-LV)",
    "structuralAnnotation": "logical views (RML-LV)",
}
"""Properties of RML modules that are not read, and what they are for."""

ALLOWED: Final[dict[str, frozenset[str]]] = {
    "triples map": frozenset(
        ("logicalSource", "subject", "subjectMap", "predicateObjectMap", "baseIRI")
    ),
    "subject map": _TERM_MAP | {"class", "graph", "graphMap"},
    "predicate-object map": frozenset(
        ("predicate", "predicateMap", "object", "objectMap", "graph", "graphMap")
    ),
    "predicate map": _TERM_MAP,
    "graph map": _TERM_MAP,
    "object map": _TERM_MAP
    | {
        "language",
        "languageMap",
        "datatype",
        "datatypeMap",
        "parentTriplesMap",
        "joinCondition",
        "rmls:joinConfig",
        "rmls:windowType",
    },
    "language map": _TERM_MAP,
    "datatype map": _TERM_MAP,
    "join condition": frozenset(("child", "childMap", "parent", "parentMap")),
    "join operand": _EXPRESSION_MAP,
    "join configuration": frozenset(("rmls:joinType", "rmls:windowType")),
    "function execution": frozenset(
        ("function", "functionMap", "input", "logicalSource", "predicateObjectMap", "subjectMap")
    ),
    "input value map": _TERM_MAP | {"language", "datatype"},
    "function input": frozenset(("parameter", "parameterMap", "inputValue", "inputValueMap")),
    "condition": _EXPRESSION_MAP,
    "logical source": frozenset(
        (
            "source",
            "iterator",
            "referenceFormulation",
            "query",
            "tableName",
            "sqlQuery",
            "sqlVersion",
            "null",
            "encoding",
            "compression",
        )
    ),
    "source": frozenset(
        (
            "root",
            "path",
            "access",
            "encoding",
            "compression",
            "null",
            "rmls:broker",
            "rmls:groupId",
            "rmls:topic",
            "rmls:offset",
            "rmls:hostName",
            "rmls:port",
            "rmls:path",
            "rmls:type",
        )
    ),
    "reference formulation": frozenset(("namespace",)),
    "namespace": frozenset(("namespacePrefix", "namespaceURL")),
    "logical target": frozenset(("target", "serialization", "encoding", "compression", "mode")),
    "target": frozenset(("root", "path", "encoding", "compression")),
}
"""The properties that each kind of node may have, by short name."""

JOIN_PARAMETERS: Final = frozenset(
    (
        "size",
        "slide",
        "delay",
        "minSize",
        "maxSize",
        "lowerThreshold",
        "upperThreshold",
        "growFactor",
        "shrinkFactor",
        "initialLimit",
        "leastLimit",
        "distance",
        "timestamp",
        "parentTimestamp",
        "variant",
        "policy",
        "count",
        "idle",
    )
)
"""Local names in our own namespace; see `docs/reference/rml.md`."""

DURATION_PARAMETERS: Final = frozenset(
    ("size", "slide", "delay", "minSize", "maxSize", "distance", "idle")
)
NUMBER_PARAMETERS: Final = frozenset(
    (
        "lowerThreshold",
        "upperThreshold",
        "growFactor",
        "shrinkFactor",
        "initialLimit",
        "leastLimit",
        "count",
    )
)


def suggest(name: str, known: Iterable[str]) -> str | None:
    """Find the known name that `name` is most likely a misspelling of.

    >>> suggest("tempalte", ["template", "reference"])
    'template'
    """
    candidates = list(known)
    folded = {candidate.casefold(): candidate for candidate in candidates}
    if name.casefold() in folded:
        return folded[name.casefold()]
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=0.7)
    return close[0] if close else None


def is_mapping_name(name: str) -> bool:
    """Whether a short name belongs to a vocabulary that we know completely."""
    return name.startswith(("rmls:", "qw:")) or (":" not in name and name != "a")
