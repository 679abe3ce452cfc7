"""Streams in the words of others: DCAT and VoCaLS, as JSON-LD.

Spec: https://www.w3.org/TR/vocab-dcat-3/ and https://w3id.org/rsp/vocals
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

MEDIA_TYPE: Final = "application/ld+json"
_CONTEXT: Final = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "vocals": "http://w3id.org/rsp/vocals#",
    "accessURL": {"@id": "dcat:accessURL", "@type": "@id"},
    "mediaType": "dcat:mediaType",
    "title": "dct:title",
    "description": "dct:description",
}


def stream_description(stream: Mapping[str, Any], base: str) -> dict[str, Any]:
    """Return the description of a stream.

    Args:
        stream: the stream, as the service says how it is.
        base: where the service is.
    """
    return {"@context": _CONTEXT, **_descriptor(stream, base)}


def catalogue(streams: Iterable[Mapping[str, Any]], base: str) -> dict[str, Any]:
    """Return the descriptions of all streams."""
    return {
        "@context": _CONTEXT,
        "@id": f"{base}/streams",
        "@type": ["dcat:Catalog", "vocals:StreamDescriptor"],
        "dcat:dataset": [_stream(each, base) for each in streams],
    }


def _descriptor(stream: Mapping[str, Any], base: str) -> dict[str, Any]:
    return {
        "@id": _place(stream, base),
        "@type": "vocals:StreamDescriptor",
        "dcat:dataset": _stream(stream, base),
    }


def _stream(stream: Mapping[str, Any], base: str) -> dict[str, Any]:
    # Records are no RDF before they are mapped.
    is_rdf = stream["format"] not in ("jsonl", "csv", "xml")
    found: dict[str, Any] = {
        "@id": stream["iri"],
        "@type": ["dcat:Dataset", "vocals:RDFStream" if is_rdf else "vocals:Stream"],
        "title": stream["iri"],
    }
    if stream.get("description"):
        found["description"] = stream["description"]
    if is_rdf:
        found["vocals:hasEndpoint"] = {
            "@type": ["vocals:StreamEndpoint", "dcat:Distribution"],
            "accessURL": f"{_place(stream, base)}/events",
            "mediaType": "text/event-stream",
        }
    return found


def _place(stream: Mapping[str, Any], base: str) -> str:
    return f"{base}/streams/{quote(stream['iri'], safe='')}"
