"""YARRRML into the model: the same triples maps that its RML translation would have.

Spec: https://w3id.org/kg-construct/yarrrml
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from quadweir.errors import MappingError, QuadweirError, UnsupportedError
from quadweir.mapping.model import (
    ConstantTerm,
    Mapping,
    ObjectMap,
    PerRecord,
    PredicateObjectMap,
    SubjectMap,
    TermMap,
    TermType,
    TriplesMap,
)
from quadweir.mapping.sources import LogicalSource
from quadweir.mapping.vocabulary import suggest
from quadweir.mapping.yaml_nodes import Collection, Scalar, YamlNode, YamlSequence, parse_yaml
from quadweir.mapping.yarrrml_io import read_source, read_target
from quadweir.mapping.yarrrml_terms import KeyForms, YarrrmlTermReader, as_list, text_of
from quadweir.mapping.yarrrml_values import PREFIXES, YarrrmlNames
from quadweir.spans import Span
from quadweir.terms import IRI
from quadweir.vocab import RDF

# Every long key with its short forms.
_ROOT: Final[KeyForms] = {
    "mappings": ("mappings", "mapping", "m"),
    "sources": ("sources", "source"),
    "targets": ("targets", "target"),
    "prefixes": ("prefixes",),
    "base": ("base",),
    "authors": ("authors", "author", "a"),
    "external": ("external",),
}
_MAPPING: Final[KeyForms] = {
    "sources": ("sources", "source"),
    "subjects": ("subjects", "subject", "s"),
    "predicateobjects": ("predicateobjects", "predicateobject", "po"),
    "graphs": ("graphs", "graph", "g"),
    "condition": ("condition", "conditions", "c"),
    "targets": ("targets", "target"),
}
_PAIR: Final[KeyForms] = {
    "predicates": ("predicates", "predicate", "p"),
    "objects": ("objects", "object", "o"),
    "graphs": ("graphs", "graph", "g"),
    "condition": ("condition", "conditions", "c"),
    "inversepredicates": ("inversepredicates", "inversepredicate", "i"),
}


def parse_yarrrml(text: str, *, source: str | None = None) -> Mapping:
    """Read a mapping from YARRRML text.

    >>> parse_yarrrml('''
    ... mappings:
    ...   person:
    ...     sources: [[people.csv~csv]]
    ...     s: http://ex.org/$(id)
    ...     po: [[foaf:name, $(name)]]
    ... ''').triples_maps[0].name
    'person'
    """
    root = parse_yaml(text, source)
    if not isinstance(root, Collection):
        raise MappingError(
            "the mapping is not a YARRRML document",
            hint="Start it with the key mappings.",
            span=root.span if root is not None else Span(1, 1, source=source),
        )
    return _Reader(root).mapping()


class _Reader(YarrrmlTermReader):
    def __init__(self, root: Collection) -> None:
        super().__init__(YarrrmlNames(PREFIXES))
        self._root = root
        self._check_keys(root, _ROOT, "the document")
        prefixes = dict(PREFIXES)
        prefixes.update(self._texts(root.get("prefixes"), "prefixes"))
        external = self._texts(root.get("external"), "external")
        self._scope = YarrrmlNames(prefixes, external)
        self._sources = self._named(root, _ROOT["sources"])
        self._targets = {
            name: read_target(node, name, self._scope)
            for name, node in self._named(root, _ROOT["targets"]).items()
        }

    def mapping(self) -> Mapping:
        found = self._root.get(*_ROOT["mappings"])
        if not isinstance(found, Collection) or not found.entries:
            raise MappingError(
                "the mapping has no mappings",
                hint="Add the key mappings with at least one mapping.",
                span=found.span if found is not None else self._root.span,
            )
        plans = []
        for key, body in found:
            with self._inside(key):
                if not isinstance(body, Collection):
                    raise MappingError(
                        "it is not a collection",
                        hint="Give it the keys sources, subjects and predicateobjects.",
                        span=key.span,
                    )
                self._check_keys(body, _MAPPING, "a mapping")
                sources = self._read_sources(key, body)
                subjects = as_list(body.get(*_MAPPING["subjects"]))
            count = len(sources) * max(1, len(subjects))
            # Each combination of a source and a subject is a triples map.
            names = [key.text if i == 0 else f"{key.text}#{i + 1}" for i in range(count)]
            self._variants[key.text] = names
            plans.append((key, body, sources, subjects, names))
        maps: list[TriplesMap] = []
        for key, body, sources, subjects, names in plans:
            with self._inside(key):
                maps.extend(self._triples_maps(key, body, sources, subjects, names))
        base = self._root.get("base")
        return Mapping(
            triples_maps=tuple(maps),
            base_iri=text_of(base, "base") if base is not None else None,
            findings=tuple(self._findings),
        )

    @contextmanager
    def _inside(self, key: Scalar) -> Iterator[None]:
        """Name the mapping in errors that come out of it."""
        self._current = key.text
        try:
            yield
        except QuadweirError as error:
            error.message = f"mapping {key.text}: {error.message}"
            error.args = (error.message,)
            if error.span is None:
                error.span = key.span
            raise
        finally:
            self._current = None

    # -- parts of a mapping ------------------------------------------------------------------

    def _read_sources(self, key: Scalar, body: Collection) -> list[LogicalSource]:
        node = body.get(*_MAPPING["sources"])
        if node is None:
            raise MappingError(
                "it has no sources",
                hint="Give it the key sources, such as [[data.csv~csv]].",
                span=key.span,
            )
        found = []
        for item in as_list(node) if not isinstance(node, Collection) else [node]:
            if isinstance(item, Scalar) and "~" not in item.text:
                named = self._sources.get(item.text)
                if named is None:
                    guess = suggest(item.text, self._sources)
                    raise MappingError(
                        f"there is no source {item.text!r}",
                        hint=f"Did you mean {guess!r}?"
                        if guess
                        else "Add it under sources, or write [file~csv].",
                        span=item.span,
                    )
                item = named
            found.append(read_source(item, self._scope))
        return found

    def _triples_maps(
        self,
        key: Scalar,
        body: Collection,
        sources: list[LogicalSource],
        subjects: list[YamlNode],
        names: list[str],
    ) -> Iterator[TriplesMap]:
        graphs = self._graphs(body.get(*_MAPPING["graphs"]))
        condition = self._conditions(body.get(*_MAPPING["condition"]))
        targets = self._read_targets(body.get(*_MAPPING["targets"]))
        pairs = tuple(
            pair
            for node in _pairs(body.get(*_MAPPING["predicateobjects"]))
            for pair in self._pair(node)
        )
        terms = [self._term(node, "subject", TermType.IRI) for node in subjects]
        if not terms:
            terms = [TermMap(expression=PerRecord(), term_type=TermType.BLANK_NODE, span=key.span)]
        left = iter(names)
        for source in sources:
            for term in terms:
                if condition is not None:
                    if term.condition is not None:
                        raise MappingError(
                            "both it and its subject have a condition",
                            hint="Join the two with grel:boolean_and.",
                            span=term.span,
                        )
                    term = replace(term, condition=condition)
                if targets:
                    term = replace(term, targets=(*term.targets, *targets))
                yield TriplesMap(
                    name=next(left),
                    source=source,
                    subject=SubjectMap(term=term, graphs=graphs, span=term.span),
                    predicate_objects=pairs,
                    span=key.span,
                )

    def _graphs(self, node: YamlNode | None) -> tuple[TermMap, ...]:
        return tuple(self._term(item, "graph", TermType.IRI) for item in as_list(node))

    def _pair(self, node: YamlNode) -> Iterator[PredicateObjectMap]:
        condition = None
        graphs: tuple[TermMap, ...] = ()
        extra: YamlNode | None = None
        if isinstance(node, YamlSequence):
            if len(node.items) not in (2, 3):
                raise MappingError(
                    f"a predicate and object in brackets have {len(node.items)} parts",
                    hint="Write [predicate, object] or [predicate, object, datatype].",
                    span=node.span,
                )
            predicate_node, object_node = node.items[:2]
            extra = node.items[2] if len(node.items) == 3 else None
        elif isinstance(node, Collection):
            self._check_keys(node, _PAIR, "a predicate and object")
            if node.get(*_PAIR["inversepredicates"]) is not None:
                raise UnsupportedError(
                    "inverse predicates are not supported",
                    hint="Write a mapping whose subject is that object.",
                    span=node.span,
                )
            found_p, found_o = node.get(*_PAIR["predicates"]), node.get(*_PAIR["objects"])
            if found_p is None or found_o is None:
                raise MappingError(
                    f"a predicate and object have no {'predicate' if found_p is None else 'object'}",
                    hint="Give them the keys predicates and objects.",
                    span=node.span,
                )
            predicate_node, object_node = found_p, found_o
            graphs = self._graphs(node.get(*_PAIR["graphs"]))
            condition = self._conditions(node.get(*_PAIR["condition"]))
        else:
            raise MappingError(
                f"{node.text!r} is not a predicate and object",
                hint="Write [predicate, object].",
                span=node.span,
            )
        predicates = tuple(
            self._term(item, "predicate", TermType.IRI) for item in as_list(predicate_node)
        )
        classes = any(p.expression == ConstantTerm(term=IRI(RDF.type)) for p in predicates)
        default = TermType.IRI if classes else TermType.LITERAL
        objects: list[ObjectMap] = []
        for item in _objects(object_node, extra is None):
            for made in self._object(item, default, extra):
                if condition is not None:
                    if made.condition is not None:
                        raise MappingError(
                            "both a predicate and object and the object have a condition",
                            hint="Join the two with grel:boolean_and.",
                            span=made.span,
                        )
                    made = replace(made, condition=condition)
                objects.append(made)
        yield PredicateObjectMap(
            predicates=predicates, objects=tuple(objects), graphs=graphs, span=node.span
        )

    # -- keys --------------------------------------------------------------------------------

    def _named(self, root: Collection, names: Iterable[str]) -> dict[str, YamlNode]:
        found = root.get(*names)
        if found is None:
            return {}
        if not isinstance(found, Collection):
            raise MappingError(
                "sources and targets of the document have names",
                hint="Write a name, a colon and the source.",
                span=found.span,
            )
        return {key.text: value for key, value in found}

    def _texts(self, node: YamlNode | None, what: str) -> dict[str, str]:
        if node is None:
            return {}
        if not isinstance(node, Collection):
            raise MappingError(f"{what} is not a collection", span=node.span)
        return {key.text: text_of(value, f"{what}: {key.text}") for key, value in node}


def _pairs(node: YamlNode | None) -> list[YamlNode]:
    """A single pair may stand without the list around it."""
    if isinstance(node, YamlSequence) and node.items and isinstance(node.items[0], Scalar):
        return [node]
    return as_list(node)


def _objects(node: YamlNode, may_be_typed: bool) -> list[YamlNode]:
    """Whether a node is a list of objects, or one object with its datatype or language.

    `[a, b]` under the key objects is a list of two; `[[a, xsd:date]]` is one object.
    """
    if isinstance(node, YamlSequence) and may_be_typed and len(node.items) == 2:
        second = node.items[1]
        if isinstance(second, Scalar) and second.text.endswith("~lang"):
            return [node]
    return as_list(node)


__all__ = ["parse_yarrrml"]
