"""Quadweir: live data as RDF streams, and continuous SPARQL over them, on Apache Spark.

The public names are loaded on first use, so that `import quadweir` and the command line's help
start without Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from quadweir._version import __version__

if TYPE_CHECKING:
    from quadweir.engine import Engine
    from quadweir.errors import QuadweirError
    from quadweir.functions import Kind, Output, Parameter, register
    from quadweir.terms import IRI, BlankNode, Literal, Quad, TripleTerm

__all__ = [
    "BlankNode",
    "Engine",
    "IRI",
    "Kind",
    "Literal",
    "Output",
    "Parameter",
    "Quad",
    "QuadweirError",
    "TripleTerm",
    "__version__",
    "register",
]

_HOME = {
    "BlankNode": "quadweir.terms",
    "Engine": "quadweir.engine",
    "IRI": "quadweir.terms",
    "Kind": "quadweir.functions",
    "Literal": "quadweir.terms",
    "Output": "quadweir.functions",
    "Parameter": "quadweir.functions",
    "Quad": "quadweir.terms",
    "QuadweirError": "quadweir.errors",
    "TripleTerm": "quadweir.terms",
    "register": "quadweir.functions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'quadweir' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
