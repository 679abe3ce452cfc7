"""The namespaces and single names that Quadweir spells out."""

from __future__ import annotations

from typing import Final, final


@final
class Namespace:
    """A prefix of IRIs; attribute and item access append a local name.

    >>> RDF.type
    'http://www.w3.org/1999/02/22-rdf-syntax-ns#type'
    """

    __slots__ = ("base",)

    def __init__(self, base: str) -> None:
        self.base = base

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.base + name

    def __getitem__(self, name: str) -> str:
        return self.base + name

    def __str__(self) -> str:
        return self.base


RDF: Final = Namespace("http://www.w3.org/1999/02/22-rdf-syntax-ns#")
RDFS: Final = Namespace("http://www.w3.org/2000/01/rdf-schema#")
OWL: Final = Namespace("http://www.w3.org/2002/07/owl#")
XSD: Final = Namespace("http://www.w3.org/2001/XMLSchema#")
PROV: Final = Namespace("http://www.w3.org/ns/prov#")
