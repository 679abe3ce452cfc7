"""RML texts for tests of reading, and parts of what they become."""

from __future__ import annotations

import textwrap

from quadweir.mapping.model import (
    Mapping,
    RefObjectMap,
)
from quadweir.mapping.read import parse_mapping

PREFIXES = """@prefix rml: <http://w3id.org/rml/> .
@prefix rr: <http://www.w3.org/ns/r2rml#> .
@prefix orml: <http://semweb.mmlab.be/ns/rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> .
@prefix rmls: <http://semweb.mmlab.be/ns/rmls#> .
@prefix qw: <urn:quadweir:mapping#> .
@prefix fnml: <http://semweb.mmlab.be/ns/fnml#> .
@prefix fno: <https://w3id.org/function/ontology#> .
@prefix grel: <http://users.ugent.be/~bjdmeest/function/grel.ttl#> .
@prefix csvw: <http://www.w3.org/ns/csvw#> .
@prefix td: <https://www.w3.org/2019/wot/td#> .
@prefix hctl: <https://www.w3.org/2019/wot/hypermedia#> .
@prefix mqv: <http://www.w3.org/2018/wot/mqtt#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix ex: <http://ex.org/> .
"""
FIRST_LINE = PREFIXES.count("\n") + 1
SOURCE = 'rml:logicalSource [ rml:source "a.csv" ; rml:referenceFormulation rml:CSV ]'
JSON = 'rml:logicalSource [ rml:source "a.json" ; rml:referenceFormulation rml:JSONPath ]'


def read(body: str) -> Mapping:
    return parse_mapping(PREFIXES + textwrap.dedent(body), source="m.ttl")


def only(body: str):
    (triples_map,) = read(body).triples_maps
    return triples_map


def read_object(object_map: str):
    return (
        only(
            f"ex:t {SOURCE} ; rml:subject ex:s ;"
            f" rml:predicateObjectMap [ rml:predicate ex:p ; rml:objectMap [ {object_map} ] ] ."
        )
        .predicate_objects[0]
        .objects[0]
    )


def read_source(source: str, formulation: str = "rml:JSONPath"):
    return only(
        f"ex:t rml:logicalSource [ rml:source {source} ; rml:referenceFormulation {formulation} ] ;"
        " rml:subject ex:s ."
    ).source


PARENT = f"ex:parent {JSON} ; rml:subject ex:s ."


def join(body: str, source: str = JSON) -> RefObjectMap:
    mapping = read(
        f"ex:t {source} ; rml:subject ex:s ; rml:predicateObjectMap [ rml:predicate ex:p ;"
        f" rml:objectMap [ rml:parentTriplesMap ex:parent ; {body} ] ] . {PARENT}"
    )
    return mapping.triples_map("http://ex.org/t").predicate_objects[0].objects[0]
