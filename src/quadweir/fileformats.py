"""The formats and compressions of RDF files, by the names in options, mappings and file names."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

import pyoxigraph as ox

from quadweir.errors import UsageError

JELLY: Final = "jelly"
"""The format that `quadweir.jelly` reads and writes."""
FORMATS: Final = {
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "nquads": ox.RdfFormat.N_QUADS,
    "turtle": ox.RdfFormat.TURTLE,
    "trig": ox.RdfFormat.TRIG,
    "rdfxml": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
    "n3": ox.RdfFormat.N3,
}
"""The formats that pyoxigraph reads and writes."""
_BY_SUFFIX: Final = {
    "nt": "ntriples",
    "nq": "nquads",
    "ttl": "turtle",
    "trig": "trig",
    "rdf": "rdfxml",
    "xml": "rdfxml",
    "owl": "rdfxml",
    "jsonld": "jsonld",
    "n3": "n3",
    "jelly": JELLY,
}


class Compression(StrEnum):
    """The compression of a file."""

    NONE = "none"
    GZIP = "gzip"
    ZIP = "zip"
    TAR_GZ = "targz"
    TAR_XZ = "tarxz"


def format_of(name: str) -> str:
    """The format of a file name's extension.

    >>> format_of("a/b.TTL.gz")
    'turtle'

    Raises:
        UsageError: the extension is not known.
    """
    plain = name.lower().removesuffix(".gz")
    suffix = plain.rpartition(".")[2] if "." in plain else ""
    try:
        return _BY_SUFFIX[suffix]
    except KeyError:
        raise UsageError(
            f"the name {Path(name).name} does not say the format",
            hint=f"Known endings: {', '.join(f'.{one}' for one in _BY_SUFFIX)}, each also with .gz; "
            "or name the format with --from and --to.",
        ) from None
