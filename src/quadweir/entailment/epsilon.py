"""The epsilon network of a schema: properties and classes, and the links between them.

As in Sparkwave, a link from a property to a class passes the subject (S) or the object (O) of a
statement on. A link from a property to a property passes both on, in order (SO) or swapped (OS). A
link from a class to a class passes the instance on (S). The full epsilon network is the whole schema; the
reduced one is the flattened part that a query uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from quadweir.entailment.schema import TYPE, AxiomKind, Class, Schema
from quadweir.entailment.table import Derived, End, Table


@final
@dataclass(frozen=True, slots=True, order=True)
class EpsilonNode:
    """A property or a class, by its spelling."""

    is_class: bool
    name: str


@final
@dataclass(frozen=True, slots=True, order=True)
class EpsilonLink:
    """A link from one node to another, with its kind: S, O, SO or OS."""

    source: EpsilonNode
    kind: str
    target: EpsilonNode


@final
@dataclass(frozen=True)
class EpsilonNetwork:
    """Nodes and links, each once, in order."""

    nodes: tuple[EpsilonNode, ...]
    links: tuple[EpsilonLink, ...]

    @staticmethod
    def full(schema: Schema) -> EpsilonNetwork:
        """The full epsilon network: a node for each property and class, a link for each axiom."""
        nodes = [_property(each) for each in schema.properties]
        nodes += [_class(each) for each in schema.classes]
        return _sorted_network(nodes, _axiom_links(schema))

    @staticmethod
    def reduced(table: Table) -> EpsilonNetwork:
        """The reduced epsilon network."""
        links = list(_table_links(table))
        return _sorted_network([end for link in links for end in (link.source, link.target)], links)

    def count(self) -> str:
        """The numbers of nodes and links, in words.

        >>> EpsilonNetwork((), ()).count()
        '0 properties, 0 classes; no links'
        """
        classes = sum(node.is_class for node in self.nodes)
        properties = len(self.nodes) - classes
        kinds = Counter(link.kind for link in self.links)
        links = ", ".join(
            f"{kinds[kind]:,} {kind}-link{'' if kinds[kind] == 1 else 's'}"
            for kind in ("S", "O", "SO", "OS")
            if kinds[kind]
        )
        return (
            f"{properties:,} propert{'y' if properties == 1 else 'ies'}, "
            f"{classes:,} class{'' if classes == 1 else 'es'}; {links or 'no links'}"
        )


def _sorted_network(
    nodes: list[EpsilonNode], links: Iterator[EpsilonLink] | list[EpsilonLink]
) -> EpsilonNetwork:
    return EpsilonNetwork(tuple(sorted(set(nodes))), tuple(sorted(set(links))))


def _property(each: object) -> EpsilonNode:
    return EpsilonNode(False, str(each))


def _class(each: object) -> EpsilonNode:
    return EpsilonNode(True, str(each))


def _axiom_links(schema: Schema) -> Iterator[EpsilonLink]:
    for each in schema.axioms:
        match each.kind:
            case AxiomKind.SUBCLASS:
                yield EpsilonLink(_class(each.subject), "S", _class(each.object))
            case AxiomKind.DOMAIN:
                yield EpsilonLink(_property(each.subject), "S", _class(each.object))
            case AxiomKind.RANGE:
                yield EpsilonLink(_property(each.subject), "O", _class(each.object))
            case AxiomKind.SUBPROPERTY:
                yield EpsilonLink(_property(each.subject), "SO", _property(each.object))
            case AxiomKind.INVERSE | AxiomKind.SYMMETRIC:
                yield EpsilonLink(_property(each.subject), "OS", _property(each.object))
                yield EpsilonLink(_property(each.object), "OS", _property(each.subject))
            case AxiomKind.TRANSITIVE:
                pass  # no link: nothing follows from one statement


def _table_links(table: Table) -> Iterator[EpsilonLink]:
    for predicate, found in table.predicates.items():
        for derived in found:
            yield from _derived_links(_property(predicate), derived)
    for one, found in table.classes.items():
        for derived in found:
            yield from _derived_links(_class(one), derived)


def _derived_links(source: EpsilonNode, derived: Derived) -> Iterator[EpsilonLink]:
    ends = (derived.subject, derived.object)
    if derived.predicate == TYPE and not isinstance(derived.object, End):
        if isinstance(derived.subject, End):
            yield EpsilonLink(source, _letter(derived.subject), _class(derived.object))
        return
    if all(isinstance(each, End) for each in ends):
        yield EpsilonLink(source, "".join(map(_letter, ends)), _property(derived.predicate))
    elif isinstance(derived.subject, End):
        yield EpsilonLink(source, _letter(derived.subject), _property(derived.predicate))
    elif isinstance(derived.object, End):
        yield EpsilonLink(source, _letter(derived.object), _property(derived.predicate))


def _letter(atom: End | Class) -> str:
    return "S" if atom is End.SUBJECT else "O"
