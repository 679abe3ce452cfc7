"""Static data in every RDF format, a folder of it."""

from __future__ import annotations

from pathlib import Path

FILES = ("a.ttl", "b.nt", "c.nq", "d.trig", "e.rdf", "f.jsonld")


def write_static(folder: Path) -> None:
    """Write a few triples in each format; some are there twice."""
    contents = {
        "a.ttl": '<urn:b0> <urn:r> <urn:c0> , <urn:c1> . <urn:c0> <urn:name> "zero" .',
        "b.nt": '<urn:b1> <urn:r> <urn:c0> .\n<urn:c1> <urn:name> "one\\t1" .\n'
        "<urn:b0> <urn:r> <urn:c0> .\n<urn:c0> <urn:r> <urn:c2> .\n",
        "c.nq": "<urn:b2> <urn:r> <urn:c1> <urn:g> .\n<urn:b2> <urn:r> <urn:b2> .\n",
        "d.trig": "<urn:g> { <urn:b2> <urn:r> <urn:c0> } <urn:k> { <urn:b3> <urn:r> <urn:c1> }",
        "e.rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns:u="urn:"><rdf:Description rdf:about="urn:c1"><u:age rdf:datatype='
        '"http://www.w3.org/2001/XMLSchema#integer">7</u:age></rdf:Description></rdf:RDF>',
        "f.jsonld": '{"@id": "urn:c2", "urn:name": "two", "urn:age": 8}',
    }
    for name in FILES:
        (folder / name).write_text(contents[name], encoding="utf-8")
