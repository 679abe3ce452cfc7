"""Sources and targets of YARRRML: where records come from and where triples go."""

from __future__ import annotations

import codecs
from typing import Final
from urllib.parse import unquote, urlsplit

from quadweir.addresses import Address
from quadweir.errors import MappingError, QuadweirError, UnsupportedError
from quadweir.fileformats import Compression
from quadweir.mapping.sources import (
    CsvDialect,
    DatabaseSource,
    DeclaredStream,
    FileStream,
    Formulation,
    FormulationKind,
    KafkaStream,
    LogicalSource,
    LogicalTarget,
    MappedFile,
    MappingSource,
    MqttStream,
    TcpStream,
    ValueRules,
    WebSocketStream,
)
from quadweir.mapping.vocabulary import FORMATS, suggest
from quadweir.mapping.yaml_nodes import Collection, Scalar, YamlNode, YamlSequence
from quadweir.mapping.yarrrml_values import YarrrmlNames
from quadweir.spans import Span

_FORMULATIONS: Final = {
    "csv": FormulationKind.CSV,
    "tsv": FormulationKind.CSV,
    "jsonpath": FormulationKind.JSONPATH,
    "json": FormulationKind.JSONPATH,
    "xpath": FormulationKind.XPATH,
    "xml": FormulationKind.XPATH,
    "sql2008": FormulationKind.SQL_QUERY,
}
_SERIALIZATIONS: Final = {
    "nquads": "N-Quads",
    "ntriples": "N-Triples",
    "turtle": "Turtle",
    "trig": "TriG",
    "jsonld": "JSON-LD",
    "rdfxml": "RDF_XML",
    "rdfjson": "RDF_JSON",
    "n3": "N3",
}
_COMPRESSIONS: Final = {
    "none": Compression.NONE,
    "gzip": Compression.GZIP,
    "zip": Compression.ZIP,
    "targzip": Compression.TAR_GZ,
    "targz": Compression.TAR_GZ,
    "tarxz": Compression.TAR_XZ,
}
_DATABASES: Final = ("mysql", "postgresql", "oracle", "mssql", "sqlserver", "db2", "mongodb")
_PORTS: Final = {"kafka": 9092, "mqtt": 1883, "mqtts": 8883}


def read_source(node: YamlNode, scope: YarrrmlNames) -> LogicalSource:
    """Read a source in its long form, or as `[access~formulation, iterator]`."""
    if isinstance(node, Collection):
        fields = {key.text: _text(value) for key, value in node if isinstance(value, Scalar)}
    else:
        fields = _short_source(node)
    access = fields.get("access", "")
    kind = fields.get("type", "").lower()
    if not access:
        raise MappingError("a source has no access", hint="Give it the key access.", span=node.span)
    try:
        source = _source(access, kind, fields, scope, node.span)
    except QuadweirError as error:
        error.span = error.span or node.span
        raise
    name = fields.get("referenceFormulation", "").lower()
    if isinstance(source, DatabaseSource):
        formulation = Formulation(kind=FormulationKind.SQL_QUERY)
    else:
        found = _FORMULATIONS.get(name)
        if found is None:
            guess = suggest(name, _FORMULATIONS)
            raise MappingError(
                f"a source has the reference formulation {name!r}"
                if name
                else "a source has no reference formulation",
                hint=f"Did you mean {guess!r}?" if guess else "Use csv, jsonpath or xpath.",
                span=node.span,
            )
        formulation = Formulation(kind=found)
    if name == "tsv" and isinstance(source, MappedFile) and source.dialect is None:
        source = MappedFile(
            path=source.path, encoding=source.encoding, dialect=CsvDialect(delimiter="\t")
        )
    return LogicalSource(
        source=source,
        formulation=formulation,
        iterator=fields.get("iterator") or fields.get("query"),
        rules=ValueRules.OLDER,
        span=node.span,
    )


def _short_source(node: YamlNode) -> dict[str, str]:
    items = list(node.items) if isinstance(node, YamlSequence) else [node]
    if not 1 <= len(items) <= 2:
        raise MappingError(
            f"a source in brackets has {len(items)} parts",
            hint="Write [access~formulation, iterator].",
            span=node.span,
        )
    access, tilde, formulation = _text(items[0]).rpartition("~")
    fields = {"access": access if tilde else formulation}
    if tilde:
        fields["referenceFormulation"] = formulation
    if len(items) == 2:
        fields["iterator"] = _text(items[1])
    return fields


def _source(
    access: str, kind: str, fields: dict[str, str], scope: YarrrmlNames, span: Span
) -> MappingSource:
    if kind in ("", "localfile", "file"):
        if access.lower().startswith(("http:", "https:", "ftp:")):
            raise UnsupportedError(
                f"the source {access} is on the network",
                detail="Mappings are not allowed to fetch from the network.",
                hint="Download it first, and name the file.",
                span=span,
            )
        delimiter = fields.get("delimiter")
        dialect = None
        if delimiter is not None:
            dialect = CsvDialect(delimiter="\t" if delimiter == "\\t" else delimiter)
        elif access.lower().endswith((".tsv", ".tsv.gz")):
            dialect = CsvDialect(delimiter="\t")
        return MappedFile(path=access, encoding=_encoding(fields, span), dialect=dialect)
    if kind in _DATABASES:
        return DatabaseSource(dsn=access)
    if kind in ("filestream", "folder"):
        return FileStream(path=access)
    if kind in ("stream", "declared"):
        return DeclaredStream(iri=scope.iri(access, span))
    try:
        url = urlsplit(access if "://" in access else f"//{access}")
        host, port = url.hostname or "", url.port
    except ValueError as error:
        raise MappingError(
            f"the source {access!r} is not an address", detail=f"{error}.", span=span
        ) from None
    path = unquote(url.path).lstrip("/")
    if not host:
        raise MappingError(f"the source {access!r} names no host", span=span)
    if kind in ("kafka", "mqtt", "mqtts") and not path:
        raise MappingError(
            f"the source {access!r} names no topic",
            hint=f"Write host:{_PORTS[kind]}/topic.",
            span=span,
        )
    match kind:
        case "kafka":
            return KafkaStream(
                brokers=str(Address(host, port or _PORTS[kind])),
                topic=path,
                group_id=fields.get("groupId"),
            )
        case "mqtt" | "mqtts":
            return MqttStream(host=host, port=port or _PORTS[kind], topic=path, tls=kind == "mqtts")
        case "tcp":
            if port is None:
                raise MappingError(f"the source {access!r} names no port", span=span)
            return TcpStream(host=host, port=port)
        case "websocket":
            return WebSocketStream(url=access)
        case _:
            known = ("localfile", "filestream", "stream", "kafka", "mqtt", "tcp", "websocket")
            guess = suggest(kind, known)
            raise UnsupportedError(
                f"a source of the type {kind!r} is not supported",
                hint=f"Did you mean {guess!r}?" if guess else f"Use one of {', '.join(known)}.",
                span=span,
            )


def _encoding(fields: dict[str, str], span: Span) -> str:
    name = fields.get("encoding", "UTF-8")
    try:
        codecs.lookup(name)
    except LookupError:
        raise MappingError(
            f"the encoding {name!r} is not known", hint="Use utf-8 or utf-16.", span=span
        ) from None
    return name


def read_target(node: YamlNode, name: str, scope: YarrrmlNames) -> LogicalTarget:
    """Read a target in its long form, or as `[access~type, serialization, compression]`."""
    if isinstance(node, Collection):
        fields = {key.text: _text(value) for key, value in node if isinstance(value, Scalar)}
    else:
        items = list(node.items) if isinstance(node, YamlSequence) else [node]
        texts = [_text(item) for item in items]
        access, tilde, kind = texts[0].rpartition("~") if texts else ("", "", "")
        fields = {"access": access if tilde else kind, "type": kind if tilde else ""}
        fields.update(zip(("serialization", "compression"), texts[1:3], strict=False))
    access, kind = fields.get("access", ""), fields.get("type", "").lower()
    if not access:
        raise MappingError("a target has no access", hint="Give it a path.", span=node.span)
    if kind not in ("", "localfile", "file", "void", "dcat"):
        raise UnsupportedError(
            f"a target of the type {kind!r} is not supported",
            hint="Write to a file, and load it from there.",
            span=node.span,
        )
    serialization = fields.get("serialization", "nquads").lower()
    compression = fields.get("compression", "none").lower()
    if serialization not in _SERIALIZATIONS:
        raise MappingError(
            f"the serialization {serialization!r} is not supported",
            hint=f"Use one of {', '.join(_SERIALIZATIONS)}.",
            span=node.span,
        )
    if compression not in _COMPRESSIONS:
        raise MappingError(
            f"the compression {compression!r} is not known",
            hint=f"Use one of {', '.join(_COMPRESSIONS)}.",
            span=node.span,
        )
    return LogicalTarget(
        name=scope.expand(name),
        path=access,
        serialization=FORMATS[_SERIALIZATIONS[serialization]],
        compression=_COMPRESSIONS[compression],
        span=node.span,
    )


def _text(node: YamlNode) -> str:
    if not isinstance(node, Scalar):
        raise MappingError("a text is expected here", span=node.span)
    return node.text
