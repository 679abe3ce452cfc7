"""Logical sources and targets out of a mapping graph."""

from __future__ import annotations

import codecs
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import pyoxigraph as ox

from quadweir.addresses import Address
from quadweir.errors import MappingError, QuadweirError, UnsupportedError
from quadweir.fileformats import Compression
from quadweir.mapping.graph import FALLBACK_FOLDER, GraphTerm, MappingGraph, Statement
from quadweir.mapping.read_terms import TermReader
from quadweir.mapping.sources import (
    CsvDialect,
    DatabaseSource,
    DeclaredStream,
    FileStream,
    Formulation,
    FormulationKind,
    FrameSource,
    KafkaStream,
    LogicalSource,
    LogicalTarget,
    MappedFile,
    MappingSource,
    MqttStream,
    PathRoot,
    TcpStream,
    ValueRules,
    WebSocketStream,
)
from quadweir.mapping.vocabulary import (
    DCAT,
    FORMATS,
    OLD_RML,
    VOID,
    short_name,
    shown_name,
    suggest,
)
from quadweir.spans import Span

_FORMULATIONS: Final = {
    "CSV": FormulationKind.CSV,
    "TSV": FormulationKind.CSV,
    "JSONPath": FormulationKind.JSONPATH,
    "XPath": FormulationKind.XPATH,
    "SaxonXPath": FormulationKind.XPATH,
    "XPathReferenceFormulation": FormulationKind.XPATH,
    "SQL2008Table": FormulationKind.SQL_TABLE,
    "SQL2008Query": FormulationKind.SQL_QUERY,
    "SQL2008": FormulationKind.SQL_QUERY,
    "formats:SPARQL_Results_CSV": FormulationKind.SPARQL_CSV,
}
_COMPRESSIONS: Final = {
    "none": Compression.NONE,
    "gzip": Compression.GZIP,
    "gz": Compression.GZIP,
    "zip": Compression.ZIP,
    "targz": Compression.TAR_GZ,
    "targzip": Compression.TAR_GZ,
    "tarxz": Compression.TAR_XZ,
}
SERIALIZATIONS: Final = (
    "N-Quads",
    "N-Triples",
    "Turtle",
    "TriG",
    "JSON-LD",
    "RDF_XML",
    "RDF_JSON",
    "N3",
)
"""Local names under `http://www.w3.org/ns/formats/` that a target may be written in."""


class SourceReader:
    """Reads logical sources and targets of one mapping graph, each node once."""

    def __init__(self, graph: MappingGraph) -> None:
        self._graph = graph
        self._terms: TermReader | None = None
        self._sources: dict[GraphTerm, LogicalSource] = {}
        self._targets: dict[GraphTerm, LogicalTarget] = {}

    def attach(self, terms: TermReader) -> None:
        """Set the term reader, which records the visited nodes."""
        self._terms = terms

    def _visit(self, node: GraphTerm, kind: str, span: Span | None) -> None:
        if self._terms is not None:
            self._terms.visit(node, kind, span)

    # -- sources -----------------------------------------------------------------------------

    def logical_source(self, statement: Statement) -> LogicalSource:
        """Read the value of `rml:logicalSource` or `rr:logicalTable`."""
        node = statement.value
        if node not in self._sources:
            span = statement.value_span or statement.property_span
            try:
                self._sources[node] = self._logical_source(node, span)
            except QuadweirError as error:
                if error.span is None:
                    error.span = span
                raise
        return self._sources[node]

    def _logical_source(self, node: GraphTerm, span: Span | None) -> LogicalSource:
        graph = self._graph
        self._visit(node, "logical source", span)
        table = graph.one(node, "tableName", "sqlQuery", "query")
        found = graph.one(node, "source")
        if found is None and table is None:
            raise MappingError(
                "a logical source has no source",
                hint="Give it rml:source with a file or a stream.",
                span=span,
            )
        iterator = graph.one(node, "iterator")
        formulation = self._formulation(node, table, span)
        source: MappingSource
        if found is None or (table is not None and table.name != "query"):
            source = DatabaseSource(dsn="")
        else:
            source = self._source(found, node, formulation)
        text = iterator or table
        return LogicalSource(
            source=source,
            formulation=formulation,
            iterator=self._text(text) if text is not None else None,
            nulls=self._nulls(node, found.value if found else node),
            rules=ValueRules.OLDER
            if found is not None and found.iri.startswith(str(OLD_RML))
            else ValueRules.CURRENT,
            span=span,
        )

    def _formulation(
        self, node: GraphTerm, table: Statement | None, span: Span | None
    ) -> Formulation:
        found = self._graph.one(node, "referenceFormulation")
        if found is None:
            if table is not None:
                by_table = table.name == "tableName"
                return Formulation(
                    kind=FormulationKind.SQL_TABLE if by_table else FormulationKind.SQL_QUERY
                )
            raise MappingError(
                "a logical source has no reference formulation",
                hint="Give it rml:referenceFormulation: rml:CSV, rml:JSONPath or rml:XPath.",
                span=span,
            )
        where = found.value_span or found.property_span
        value = found.value
        names = [short_name(value.value)] if isinstance(value, ox.NamedNode) else []
        names.extend(self._graph.types(value))
        for name in names:
            if name in _FORMULATIONS:
                self._visit(value, "reference formulation", where)
                return Formulation(kind=_FORMULATIONS[name], namespaces=self._namespaces(value))
        shown = names[0] if names else str(value)
        guess = suggest(shown, _FORMULATIONS)
        raise MappingError(
            f"{shown} is not a reference formulation that is supported",
            hint=f"Did you mean {shown_name(guess)}?"
            if guess
            else "Use rml:CSV, rml:JSONPath or rml:XPath.",
            span=where,
        )

    def _namespaces(self, node: GraphTerm) -> tuple[tuple[str, str], ...]:
        pairs = []
        for statement in self._graph.values(node, "namespace"):
            span = statement.value_span or statement.property_span
            self._visit(statement.value, "namespace", span)
            prefix = self._graph.one(statement.value, "namespacePrefix")
            url = self._graph.one(statement.value, "namespaceURL")
            if prefix is None or url is None:
                raise MappingError(
                    "a namespace lacks its prefix or its URL",
                    hint="Give it rml:namespacePrefix and rml:namespaceURL.",
                    span=span,
                )
            pairs.append((prefix.value.value, url.value.value))
        return tuple(sorted(pairs))

    def _nulls(self, *nodes: GraphTerm) -> tuple[str, ...] | None:
        found = [s.value.value for n in nodes for s in self._graph.values(n, "null", "csvw:null")]
        return tuple(sorted(set(found))) if found else None

    def _source(
        self, statement: Statement, owner: GraphTerm, formulation: Formulation
    ) -> MappingSource:
        node = statement.value
        span = statement.value_span or statement.property_span
        if isinstance(node, ox.Literal):
            text = node.value
            if text.startswith("{") and text.endswith("}") and len(text) > 2:
                return FrameSource(name=text[1:-1])
            return self._file(text, PathRoot.MAPPING_DIRECTORY, (owner,), span)
        graph = self._graph
        self._visit(node, "source", span)
        access = graph.one(node, "access")
        if access is not None:  # an earlier draft of RML-IO put the access one node deeper
            return self._source(access, owner, formulation)
        types = graph.types(node)
        if not graph.about(node):
            if isinstance(node, ox.BlankNode):
                raise MappingError(
                    "a source is an empty node",
                    hint="Say what it is: rml:path for a file, rmls:KafkaStream for a topic, ...",
                    span=span,
                )
            if node.value.startswith("file:"):
                return self._file(_path_of(node.value), PathRoot.MAPPING_DIRECTORY, (owner,), span)
            return DeclaredStream(iri=node.value)
        if "rmls:KafkaStream" in types:
            offset = graph.one(node, "rmls:offset")
            group = graph.one(node, "rmls:groupId")
            return KafkaStream(
                brokers=self._needed(node, "rmls:broker", "a Kafka stream", span),
                topic=self._needed(node, "rmls:topic", "a Kafka stream", span),
                group_id=group.value.value if group else None,
                offset=offset.value.value if offset else None,
            )
        if "rmls:TCPSocketStream" in types:
            port = self._needed(node, "rmls:port", "a TCP stream", span)
            if not port.isascii() or not port.isdigit():
                raise MappingError(f"the port {port!r} is not a number", span=span)
            host = graph.one(node, "rmls:hostName")
            return TcpStream(host=host.value.value if host else "localhost", port=int(port))
        if "rmls:FileStream" in types:
            return FileStream(path=self._needed(node, "rmls:path", "a file stream", span))
        unknown = sorted(t for t in types if t.startswith("rmls:"))
        if unknown:
            known = ("rmls:KafkaStream", "rmls:TCPSocketStream", "rmls:FileStream")
            guess = suggest(unknown[0], known)
            raise MappingError(
                f"{unknown[0]} is not a kind of stream that is known",
                hint=f"Did you mean {guess}?" if guess else f"Use one of {', '.join(known)}.",
                span=span,
            )
        if "wot:Thing" in types or graph.values(node, "wot:hasPropertyAffordance", "wot:hasForm"):
            return self._thing(node, span)
        if graph.values(node, "csvw:url"):
            return self._csvw(node, owner, span)
        if "d2rq:Database" in types or graph.values(node, "d2rq:jdbcDSN"):
            return DatabaseSource(dsn=self._needed(node, "d2rq:jdbcDSN", "a database", span))
        download = graph.values(node, DCAT.downloadURL, DCAT.accessURL)
        if download:
            return self._file_url(download[0], (node, owner))
        path = graph.one(node, "path")
        if path is not None:
            return self._file(self._text(path), self._root(node), (node, owner), span)
        raise UnsupportedError(
            f"the source {graph.name(node)} is of a kind that is not supported",
            detail=f"Its types: {', '.join(sorted(types)) or 'none'}. Formulation: "
            f"{formulation.kind}.",
            hint="Use a file (rml:path), a stream (rmls:KafkaStream, rmls:TCPSocketStream, "
            "rmls:FileStream, a td:Thing), or the IRI of a declared stream.",
            span=span,
        )

    def _file(
        self,
        path: str,
        root: PathRoot | str,
        nodes: tuple[GraphTerm, ...],
        span: Span | None,
        dialect: CsvDialect | None = None,
    ) -> MappedFile:
        if not path:
            raise MappingError("a file's path is empty", span=span)
        if dialect is None and path.lower().split(".")[1:2] == ["tsv"]:
            dialect = CsvDialect(delimiter="\t")
        return MappedFile(
            path=path,
            root=root,
            encoding=self._encoding(*nodes),
            compression=self._compression(*nodes),
            dialect=dialect,
        )

    def _file_url(self, statement: Statement, nodes: tuple[GraphTerm, ...]) -> MappedFile:
        span = statement.value_span or statement.property_span
        url = _url(statement.value.value, span)
        if url.scheme != "file":
            raise UnsupportedError(
                f"the source {statement.value.value} is on the network",
                detail="Mappings are not allowed to fetch from the network.",
                hint="Download it first, and name the file with rml:path.",
                span=span,
            )
        path = _path_of(statement.value.value)
        return self._file(path, PathRoot.MAPPING_DIRECTORY, nodes, span)

    def _csvw(self, node: GraphTerm, owner: GraphTerm, span: Span | None) -> MappedFile:
        graph = self._graph
        url = self._needed(node, "csvw:url", "a CSVW table", span)
        found = graph.one(node, "csvw:dialect")
        nodes: tuple[GraphTerm, ...] = (node, owner)
        dialect = None
        if found is not None:
            nodes = (found.value, *nodes)
            try:
                dialect = self._dialect(found.value)
            except MappingError as error:
                error.span = error.span or found.value_span or found.property_span
                raise
        if "://" in url and not url.startswith("file:"):
            raise UnsupportedError(
                f"the source {url} is on the network",
                hint="Download it first, and name the file.",
                span=span,
            )
        path = _path_of(url) if url.startswith("file:") else url
        return self._file(path, self._root(node), nodes, span, dialect)

    def _dialect(self, node: GraphTerm) -> CsvDialect:
        def text(name: str) -> str | None:
            found = self._graph.one(node, f"csvw:{name}")
            return found.value.value if found else None

        def flag(name: str, default: bool) -> bool:
            value = text(name)
            if value is None:
                return default
            if value not in ("true", "false", "1", "0"):
                raise MappingError(f"csvw:{name} is {value!r}, neither true nor false")
            return value in ("true", "1")

        def count(name: str, default: int) -> int:
            value = text(name)
            if value is None:
                return default
            if not value.isascii() or not value.isdigit():
                raise MappingError(f"csvw:{name} is {value!r}, not a number of rows or columns")
            return int(value)

        quote = text("quoteChar")
        delimiter = text("delimiter")
        terminators = [s.value.value for s in self._graph.values(node, "csvw:lineTerminators")]
        header_rows = count("headerRowCount", 1 if flag("header", True) else 0)
        if header_rows > 1:
            raise UnsupportedError("a CSV file with several header rows is not supported")
        return CsvDialect(
            delimiter="\t" if delimiter == "\\t" else delimiter or ",",
            quote=(quote or None) if quote is not None else '"',
            double_quote=flag("doubleQuote", True),
            header=header_rows == 1,
            comment_prefix=text("commentPrefix") or None,
            skip_rows=count("skipRows", 0),
            skip_columns=count("skipColumns", 0),
            skip_blank_rows=flag("skipBlankRows", False),
            skip_initial_space=flag("skipInitialSpace", False),
            trim=text("trim") in ("true", "1", "start", "end"),
            line_terminators=tuple(terminators) or ("\r\n", "\n"),
        )

    # -- Web of Things -----------------------------------------------------------------------

    def _thing(self, node: GraphTerm, span: Span | None) -> MappingSource:
        graph = self._graph
        forms = [
            form.value
            for holder in (
                node,
                *(s.value for s in graph.values(node, "wot:hasPropertyAffordance")),
            )
            for form in graph.values(holder, "wot:hasForm")
        ]
        if not forms:
            raise MappingError(
                "a Web of Things description has no form",
                hint="Give it td:hasPropertyAffordance with a td:hasForm that has a target.",
                span=span,
            )
        form = forms[0]
        target = self._needed(form, "wot:hasTarget", "a form", span)
        url = _url(target, span)
        host, path = url.hostname or "", unquote(url.path).lstrip("/")
        try:
            port = url.port
        except ValueError:
            raise MappingError(f"the target {target!r} has no valid port", span=span) from None
        if not host:
            raise MappingError(
                f"the target {target!r} names no host",
                hint="Write it as mqtt://host:1883/topic, kafka://host:9092/topic or ws://host/.",
                span=span,
            )
        match url.scheme:
            case "tcp":
                if port is None:
                    raise MappingError(f"the TCP target {target!r} names no port", span=span)
                return TcpStream(host=host, port=port)
            case "mqtt" | "mqtts":
                topic = path or self._any(form, "filter", "topic") or ""
                if not topic:
                    raise MappingError(f"the MQTT target {target!r} names no topic", span=span)
                tls = url.scheme == "mqtts"
                return MqttStream(
                    host=host,
                    port=port or (8883 if tls else 1883),
                    topic=topic,
                    tls=tls,
                    options=self._options(form),
                )
            case "kafka":
                if not path:
                    raise MappingError(f"the Kafka target {target!r} names no topic", span=span)
                return KafkaStream(
                    brokers=str(Address(host, port or 9092)),
                    topic=path,
                    group_id=self._any(form, "groupId"),
                )
            case "ws" | "wss":
                return WebSocketStream(url=target)
            case scheme:
                raise UnsupportedError(
                    f"the target {target!r} uses {scheme or 'no scheme'}",
                    hint="MQTT, Kafka, TCP and WebSocket targets can be read.",
                    span=span,
                )

    def _options(self, form: GraphTerm) -> tuple[tuple[str, str], ...]:
        """Read `mqv:options`: a list or set of nodes with an option name and value."""
        pairs = []
        for statement in self._graph.about(form):
            if _local(statement.name) != "options":
                continue
            for option in self._members(statement.value):
                name = self._any(option, "optionName")
                value = self._any(option, "optionValue")
                if name is not None:
                    pairs.append((name, value or ""))
        return tuple(sorted(pairs))

    def _members(self, node: GraphTerm) -> list[GraphTerm]:
        first = [s for s in self._graph.about(node) if s.name.endswith("#first")]
        if not first:
            return [node]
        members: list[GraphTerm] = []
        seen: set[GraphTerm] = set()
        while first and node not in seen:
            seen.add(node)
            members.append(first[0].value)
            rest = [s for s in self._graph.about(node) if s.name.endswith("#rest")]
            if not rest:
                break
            node = rest[0].value
            first = [s for s in self._graph.about(node) if s.name.endswith("#first")]
        return members

    def _any(self, node: GraphTerm, *locals_: str) -> str | None:
        """Find a property by its local name in any namespace."""
        for statement in self._graph.about(node):
            if _local(statement.name) in locals_:
                return statement.value.value
        return None

    # -- targets -----------------------------------------------------------------------------

    def target(self, statement: Statement) -> LogicalTarget:
        """Read the value of `rml:logicalTarget`."""
        node = statement.value
        if node not in self._targets:
            span = statement.value_span or statement.property_span
            try:
                self._targets[node] = self._target(node, span)
            except QuadweirError as error:
                if error.span is None:
                    error.span = span
                raise
        return self._targets[node]

    def _target(self, node: GraphTerm, span: Span | None) -> LogicalTarget:
        graph = self._graph
        self._visit(node, "logical target", span)
        found = graph.one(node, "target")
        if found is None:
            raise MappingError(
                f"the logical target {graph.name(node)} has no target",
                hint="Give it rml:target with an rml:path.",
                span=span,
            )
        inner = found.value
        where = found.value_span or found.property_span
        root: PathRoot | str = PathRoot.WORKING_DIRECTORY
        if isinstance(inner, ox.Literal):
            path = inner.value
        else:
            self._visit(inner, "target", where)
            dump = graph.one(inner, VOID.dataDump)
            if dump is not None:
                url = _url(dump.value.value, where)
                if url.scheme not in ("", "file"):
                    raise UnsupportedError(
                        f"the target {dump.value.value} is not a file", span=where
                    )
                # `file://data/dump.nt` is how YARRRML's translator writes a relative path.
                path = unquote(url.netloc + url.path)
            else:
                path = self._needed(inner, "path", "a target", where)
                root = self._root(inner, PathRoot.WORKING_DIRECTORY)
        serialization = graph.one(node, "serialization")
        iri = serialization.value.value if serialization else FORMATS["N-Quads"]
        local = iri.removeprefix(str(FORMATS))
        if local not in SERIALIZATIONS:
            guess = suggest(local, SERIALIZATIONS)
            raise MappingError(
                f"{iri} is not a serialization that is supported",
                hint=f"Did you mean formats:{guess}?"
                if guess
                else f"Use one of {', '.join(f'formats:{known}' for known in SERIALIZATIONS)}.",
                span=serialization.value_span if serialization else span,
            )
        return LogicalTarget(
            name=graph.name(node),
            path=path,
            root=root,
            serialization=iri,
            encoding=self._encoding(node, inner),
            compression=self._compression(node, inner),
            span=span,
        )

    # -- small parts -------------------------------------------------------------------------

    def _root(
        self, node: GraphTerm, default: PathRoot = PathRoot.MAPPING_DIRECTORY
    ) -> PathRoot | str:
        found = self._graph.one(node, "root")
        if found is None:
            return default
        if isinstance(found.value, ox.Literal):
            return found.value.value
        name = short_name(found.value.value)
        for root in PathRoot:
            if root.value == name:
                return root
        raise MappingError(
            f"{found.value.value} is not a root of relative paths",
            hint="Use rml:MappingDirectory, rml:CurrentWorkingDirectory or a folder as a string.",
            span=found.value_span or found.property_span,
        )

    def _encoding(self, *nodes: GraphTerm) -> str:
        for node in nodes:
            found = self._graph.one(node, "encoding", "csvw:encoding")
            if found is None:
                continue
            name = found.value.value.rsplit("/", 1)[-1].rsplit("#", 1)[-1]
            try:
                # The lookup also finds codecs that are not text encodings; they are refused.
                if not codecs.lookup(name)._is_text_encoding:
                    raise LookupError
            except LookupError:
                raise MappingError(
                    f"the encoding {name!r} is not known",
                    hint="Use rml:UTF-8, rml:UTF-16 or another name that IANA lists.",
                    span=found.value_span or found.property_span,
                ) from None
            return name
        return "UTF-8"

    def _compression(self, *nodes: GraphTerm) -> Compression:
        for node in nodes:
            found = self._graph.one(node, "compression")
            if found is None:
                continue
            name = short_name(found.value.value).lower()
            if name not in _COMPRESSIONS:
                raise MappingError(
                    f"the compression {name!r} is not known",
                    hint="Use rml:gzip, rml:zip, rml:targz, rml:tarxz or rml:none.",
                    span=found.value_span or found.property_span,
                )
            return _COMPRESSIONS[name]
        return Compression.NONE

    def _needed(self, node: GraphTerm, name: str, what: str, span: Span | None) -> str:
        found = self._graph.one(node, name)
        if found is None or not found.value.value:
            raise MappingError(
                f"{what} has no {shown_name(name)}", hint=f"Give it {shown_name(name)}.", span=span
            )
        return found.value.value

    def _text(self, statement: Statement) -> str:
        if not isinstance(statement.value, ox.Literal):
            raise MappingError(
                f"{shown_name(statement.name)} is given {statement.value}, not a string",
                hint="Put it in quotes.",
                span=statement.value_span or statement.property_span,
            )
        return statement.value.value


def _local(name: str) -> str:
    return name.replace("#", "/").replace(":", "/").rsplit("/", 1)[-1]


def _path_of(url: str) -> str:
    """The path of a file: URL; a path in the document's folder stays relative."""
    if url.startswith(FALLBACK_FOLDER):
        return unquote(url.removeprefix(FALLBACK_FOLDER))
    return unquote(_url(url).path)


def _url(text: str, span: Span | None = None) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError as error:
        raise MappingError(f"{text!r} is not a URL", detail=f"{error}.", span=span) from None
