"""Checks what a mapping reads, before Spark starts: hosts, files, declarations and options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from quadweir.addresses import Address, is_allowed, read_addresses
from quadweir.errors import MappingError
from quadweir.kafkaclient import check_broker
from quadweir.mapping.files import Folders, missing
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.readfile import find_file
from quadweir.mapping.sources import (
    DeclaredStream,
    FileStream,
    FormulationKind,
    KafkaStream,
    LogicalSource,
    MappedFile,
    MqttStream,
    TcpStream,
)
from quadweir.sources.declare import Format, StreamDeclaration
from quadweir.sources.reach import check_source
from quadweir.spans import Span

FORMATS: Final = {
    FormulationKind.CSV: Format.CSV,
    FormulationKind.JSONPATH: Format.JSONL,
    FormulationKind.XPATH: Format.XML,
}
"""How the files of a reference formulation are written."""


def check_hosts(addresses: tuple[Address, ...], hosts: tuple[str, ...], span: Span | None) -> None:
    """Refuse addresses of other machines that the run does not allow.

    Raises:
        MappingError: an address is not allowed.
    """
    for address in addresses:
        if not is_allowed(address, hosts):
            raise MappingError(
                f"the mapping connects to {address.host}, which is not this machine",
                hint=f"Allow it with --allow-net {address.host}.",
                span=span,
            )


def declaration_of(
    logical: LogicalSource, source: DeclaredStream, declarations: Mapping[str, StreamDeclaration]
) -> StreamDeclaration:
    """Return the declaration of a stream that a mapping reads.

    Raises:
        MappingError: it is not declared, or its format is not the one that the mapping reads.
    """
    found = declarations.get(source.iri)
    if found is None:
        known = ", ".join(f"<{iri}>" for iri in sorted(declarations)) or "none"
        raise MappingError(
            f"the mapping reads the stream <{source.iri}>, which is not declared",
            hint=f"Declare it in the file given with --streams. Declared are: {known}.",
            span=logical.span,
        )
    _check_format(logical, found)
    return found


def existing_path(logical: LogicalSource, source: FileStream, folders: Folders) -> Path:
    """Return the folder or file of a stream of files.

    Raises:
        SourceError: it does not exist.
    """
    path = folders.resolve(source.path, source.root, span=logical.span)
    if not path.exists():
        raise missing(path, source.path, logical.span)
    return path


def check_sources(
    mapping: RmlMapping,
    folders: Folders,
    declarations: Mapping[str, StreamDeclaration],
    hosts: tuple[str, ...] = (),
) -> None:
    """Check, before Spark starts, that the inputs of a mapping exist and may be read.

    Raises:
        MappingError: the mapping connects to a host or names a file that is not allowed, or reads a
            stream that is not declared.
        SourceError: a file is not there, no broker answers, or the topic does not exist.
    """
    for logical in dict.fromkeys(each.source for each in mapping.triples_maps):
        match logical.source:
            case MappedFile() as file:
                find_file(logical, file, folders)
            case FileStream() as files:
                existing_path(logical, files, folders)
            case KafkaStream(brokers=brokers, topic=topic):
                check_hosts(read_addresses(brokers), hosts, logical.span)
                check_broker(brokers, topic=topic, hosts=hosts)
            case TcpStream(host=host, port=port) | MqttStream(host=host, port=port):
                check_hosts((Address(host, port),), hosts, logical.span)
            case DeclaredStream() as named:
                check_source(declaration_of(logical, named, declarations))


def quality(source: MqttStream, span: Span | None = None) -> int:
    """The quality of service of a form, for a subscriber.

    >>> quality(MqttStream(host="h", topic="t", options=(("qos", "0"),)))
    0

    Raises:
        MappingError: an option is not known, or its value is not valid.
    """
    found = 1
    for name, value in source.options:
        match name.lower():
            case "qos":
                if value not in ("0", "1", "2"):
                    raise MappingError(
                        f"the MQTT option qos is {value!r}", hint="Use 0, 1 or 2.", span=span
                    )
                # Level 2 gives at least once, as level 1 does: see `read_mqtt`.
                found = min(int(value), 1)
            case "dup" | "retain":
                pass  # These are for publishers; a subscriber ignores them.
            case _:
                raise MappingError(
                    f"the MQTT option {name!r} is not known",
                    hint="Known are qos, retain and dup.",
                    span=span,
                )
    return found


def _check_format(logical: LogicalSource, declaration: StreamDeclaration) -> None:
    wanted = FORMATS.get(logical.formulation.kind)
    if declaration.format is wanted:
        return
    if declaration.format.is_rdf:
        raise MappingError(
            f"<{declaration.iri}> is declared as {declaration.format}, which is RDF already",
            hint="Only records need a mapping.",
            span=logical.span,
        )
    raise MappingError(
        f"<{declaration.iri}> is declared as {declaration.format}, but read as "
        f"{logical.formulation.kind}",
        hint="Let the declaration and the reference formulation agree.",
        span=logical.span,
    )
