"""Quadweir: live data as RDF streams, and continuous SPARQL over them, on Apache Spark.

Everything public is here, and nothing else is public. The names are loaded on first use, so that
`import quadweir` and the command line's help start without Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from quadweir._version import __version__

if TYPE_CHECKING:
    from quadweir.algebra.windowing import ReportOn, Windowing
    from quadweir.client import Client, RefusedError, ServedAnswer
    from quadweir.engine import Engine
    from quadweir.entailment.schema import Schema
    from quadweir.errors import (
        DataError,
        DeclarationError,
        EnvironmentProblem,
        InternalError,
        LimitError,
        MappingError,
        NotImplementedYetError,
        PlanError,
        QuadweirError,
        QuerySyntaxError,
        SourceError,
        StateError,
        UnboundedStateError,
        UnsupportedError,
        UsageError,
    )
    from quadweir.functions import Kind, Output, Parameter, register
    from quadweir.kernel.streamjoin.policies import Next, Policy, Subwindow, register_policy
    from quadweir.mapping.model import Mapping
    from quadweir.rows import DEAD_LETTER_SCHEMA, QUAD_SCHEMA, STATEMENT_SCHEMA
    from quadweir.runtime.match.mapped import MappedQuads
    from quadweir.runtime.network.delivery import NetworkAnswer
    from quadweir.runtime.network.network import Network
    from quadweir.runtime.network.querytext import QueryText
    from quadweir.runtime.query import RegisteredQuery
    from quadweir.sinks.base import Batch, Sink
    from quadweir.sinks.console import ConsoleSink
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.kafka import KafkaSink
    from quadweir.sinks.lineformat import LineFormat
    from quadweir.sinks.memory import MemorySink
    from quadweir.sinks.rdf_files import write_rdf
    from quadweir.sinks.start import Call
    from quadweir.sources.declare import (
        Arrival,
        Burst,
        Envelope,
        FileSource,
        FolderSource,
        Format,
        FromColumn,
        FromPredicate,
        KafkaSource,
        MqttSource,
        Rate,
        ReplaySource,
        Speed,
        StreamDeclaration,
        TcpSource,
    )
    from quadweir.sources.sparkformat import register_formats
    from quadweir.sources.streamfiles import read_elements
    from quadweir.streambuilder import StreamBuilder
    from quadweir.terms import IRI, BlankNode, Literal, Quad, TripleTerm

__all__ = [
    "DEAD_LETTER_SCHEMA",
    "IRI",
    "QUAD_SCHEMA",
    "STATEMENT_SCHEMA",
    "Arrival",
    "Batch",
    "BlankNode",
    "Burst",
    "Call",
    "Client",
    "ConsoleSink",
    "DataError",
    "DeclarationError",
    "Engine",
    "Envelope",
    "EnvironmentProblem",
    "FileSink",
    "FileSource",
    "FolderSource",
    "Format",
    "FromColumn",
    "FromPredicate",
    "InternalError",
    "KafkaSink",
    "KafkaSource",
    "Kind",
    "LimitError",
    "LineFormat",
    "Literal",
    "MappedQuads",
    "Mapping",
    "MappingError",
    "MemorySink",
    "MqttSource",
    "Network",
    "NetworkAnswer",
    "Next",
    "NotImplementedYetError",
    "Output",
    "Parameter",
    "PlanError",
    "Policy",
    "Quad",
    "QuadweirError",
    "QuerySyntaxError",
    "QueryText",
    "Rate",
    "RegisteredQuery",
    "RefusedError",
    "ReplaySource",
    "ReportOn",
    "Schema",
    "ServedAnswer",
    "Sink",
    "SourceError",
    "Speed",
    "StateError",
    "StreamBuilder",
    "StreamDeclaration",
    "Subwindow",
    "TcpSource",
    "TripleTerm",
    "UnboundedStateError",
    "UnsupportedError",
    "UsageError",
    "Windowing",
    "__version__",
    "read_elements",
    "register",
    "register_formats",
    "register_policy",
    "write_rdf",
]

_NAMES: Final = {
    "algebra.windowing": "ReportOn Windowing",
    "client": "Client RefusedError ServedAnswer",
    "engine": "Engine",
    "entailment.schema": "Schema",
    "errors": (
        "DataError DeclarationError EnvironmentProblem InternalError LimitError MappingError "
        "NotImplementedYetError PlanError QuadweirError QuerySyntaxError SourceError StateError "
        "UnboundedStateError UnsupportedError UsageError"
    ),
    "functions": "Kind Output Parameter register",
    "kernel.streamjoin.policies": "Next Policy Subwindow register_policy",
    "mapping.model": "Mapping",
    "rows": "DEAD_LETTER_SCHEMA QUAD_SCHEMA STATEMENT_SCHEMA",
    "runtime.match.mapped": "MappedQuads",
    "runtime.network.delivery": "NetworkAnswer",
    "runtime.network.network": "Network",
    "runtime.network.querytext": "QueryText",
    "runtime.query": "RegisteredQuery",
    "sinks.base": "Batch Sink",
    "sinks.console": "ConsoleSink",
    "sinks.files": "FileSink",
    "sinks.kafka": "KafkaSink",
    "sinks.lineformat": "LineFormat",
    "sinks.memory": "MemorySink",
    "sinks.rdf_files": "write_rdf",
    "sinks.start": "Call",
    "sources.declare": (
        "Arrival Burst Envelope FileSource FolderSource Format FromColumn FromPredicate "
        "KafkaSource MqttSource Rate ReplaySource Speed StreamDeclaration TcpSource"
    ),
    "sources.sparkformat": "register_formats",
    "sources.streamfiles": "read_elements",
    "streambuilder": "StreamBuilder",
    "terms": "IRI BlankNode Literal Quad TripleTerm",
}
_HOME: Final = {
    name: f"quadweir.{module}" for module, names in _NAMES.items() for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'quadweir' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
