"""Quads from and to Jelly, a binary form of RDF that is several times smaller than text.

`read_jelly` and `write_jelly` are for files, messages and HTTP bodies alike: they take and give
bytes, and know nothing of where these come from. `CONTENT_TYPE` is the media type, `SUFFIX` the
ending of file names. A stream of Jelly is a sequence of frames, each with its length before it. A
message may also be one frame alone, without its length.

The package pyjelly (extra `jelly`) has Jelly's messages and tables of terms for writing. Reading is
our own, since input is not trusted: frames, tables and what a frame unpacks to are limited.

Spec: https://w3id.org/jelly/1.1.x/specification/serialization
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.errors import DataError, EnvironmentProblem
from quadweir.terms import (
    IRI,
    LANGUAGE,
    MOST_NESTED,
    TOO_DEEP,
    BlankNode,
    Literal,
    Quad,
    Resource,
    Term,
    TripleTerm,
    nesting,
)

if TYPE_CHECKING:
    from typing import BinaryIO

CONTENT_TYPE: Final = "application/x-jelly-rdf"
SUFFIX: Final = ".jelly"
MOST_FRAME_BYTES: Final = 16 * 2**20
"""The length of the longest frame that is read."""
MOST_CHARACTERS: Final = 256 * 2**20
"""How many characters the terms of one frame may have: a few bytes can repeat a long term."""
MOST_ENTRIES: Final = 4096
"""The greatest size of a table, as other readers of Jelly have it."""
FRAME_ROWS: Final = 256
"""After how many rows a new frame is begun."""
_TABLES: Final = (4000, 150, 32)
_VERSIONS: Final = (1, 2)
_FLAT: Final = (1, 2)
"""The numbers of the logical types that are flat."""
_QUADS: Final = 2
"""The number of this type of streams, both physical and logical."""
# A label may be any text in Jelly; one that N-Triples cannot write is spelled in hexadecimals.
_PLAIN_LABEL: Final = re.compile(r"(?!j-)[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?")
_PLACES: Final = ("subject", "predicate", "object")


def read_jelly(
    source: BinaryIO | bytes, *, max_frame_bytes: int = MOST_FRAME_BYTES
) -> Iterator[Quad]:
    """Yield the quads of a stream of Jelly, frame by frame.

    >>> data = write_jelly([Quad(IRI("urn:s"), IRI("urn:p"), Literal("o"))])
    >>> [str(quad) for quad in read_jelly(b"".join(data))]
    ['<urn:s> <urn:p> "o" .']

    Args:
        source: the bytes, or a file of them.
        max_frame_bytes: a longer frame is refused.

    Raises:
        DataError: the bytes are not Jelly, or have what RDF does not (generalized statements); the
            quads before that were yielded.
        EnvironmentProblem: pyjelly is not installed.
    """
    for quads in read_frames(source, max_frame_bytes=max_frame_bytes):
        yield from quads


def read_frames(
    source: BinaryIO | bytes, *, max_frame_bytes: int = MOST_FRAME_BYTES
) -> Iterator[list[Quad]]:
    """Yield the quads of each frame; the arguments and errors are those of `read_jelly`."""
    messages = _messages()
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    reader: _Reader | None = None
    for number, data in enumerate(_cut(file, max_frame_bytes), 1):
        frame = messages.RdfStreamFrame()
        try:
            frame.ParseFromString(data)
        except Exception as error:  # protobuf has an own class in each implementation
            raise DataError(f"frame {number} is not Jelly: {error}") from None
        if not frame.rows:
            continue
        if reader is None:
            reader = _Reader(_options(frame.rows[0]))
        try:
            yield reader.quads(frame)
        except DataError as error:
            raise DataError(f"frame {number}: {error.message}") from None


def is_flat(source: bytes) -> bool:
    """Return whether the frames of a stream mean nothing: its statements only come in portions.

    In other streams each frame is a graph or a dataset of its own.

    >>> is_flat(b"".join(write_jelly([Quad(IRI("urn:s"), IRI("urn:p"), Literal("o"))])))
    True

    Args:
        source: the bytes of a stream that `read_jelly` reads.
    """
    frame = _messages().RdfStreamFrame()
    for data in _cut(io.BytesIO(source), MOST_FRAME_BYTES):
        frame.ParseFromString(data)
        if frame.rows:
            return frame.rows[0].options.logical_type in _FLAT
    return True


def write_jelly(quads: Iterable[Quad], *, delimited: bool = True) -> Iterator[bytes]:
    """Yield the frames of a stream of Jelly, each of `FRAME_ROWS` rows or a few more.

    Args:
        quads: the quads.
        delimited: put its length before each frame, as files and HTTP need it. If not, there is one
            frame of everything, for a message.

    Raises:
        EnvironmentProblem: pyjelly is not installed.
    """
    writer = _Writer()
    for quad in quads:
        writer.add(quad)
        if delimited and len(writer.rows) >= FRAME_ROWS:
            yield _with_length(writer.frame())
    if writer.rows:
        yield _with_length(writer.frame()) if delimited else writer.frame()


def _messages() -> Any:
    try:
        from pyjelly.jelly import rdf_pb2
    except ImportError as error:
        raise EnvironmentProblem(
            "Jelly needs the package pyjelly", hint="pip install 'quadweir[jelly]'"
        ) from error
    return rdf_pb2


# -- frames ----------------------------------------------------------------------------------------


def _with_length(data: bytes) -> bytes:
    length, head = len(data), bytearray()
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + data


def _cut(file: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield the bytes of each frame."""
    start = _read(file, 3)
    if not start:
        return
    # A frame begins with the field of its first row, 0x0a. If that is the length of the first
    # frame, the field follows.
    if start[0] == 0x0A and (start[1:2] != b"\x0a" or start[2:3] == b"\x0a"):
        data = start + _read(file, most + 1 - len(start))
        _check_length(len(data), most)
        yield data
        return
    held = start
    while True:
        length, shift = 0, 0
        while True:
            one, held = (held[:1], held[1:]) if held else (file.read(1), b"")
            if not one:
                if shift:
                    raise DataError("the stream ends inside the length of a frame")
                return
            length |= (one[0] & 0x7F) << shift
            shift += 7
            if not one[0] & 0x80:
                break
            if shift > 35:
                raise DataError("no frame of Jelly begins here")
        _check_length(length, most)
        if length < len(held):
            data, held = held[:length], held[length:]
        else:
            data, held = held + _read(file, length - len(held)), b""
        if len(data) < length:
            raise DataError(f"the stream ends inside a frame of {length} bytes")
        yield data


def _read(file: BinaryIO, size: int) -> bytes:
    """Read so many bytes; fewer only at the end."""
    parts: list[bytes] = []
    while size > 0 and (data := file.read(min(size, 2**20))):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _check_length(length: int, most: int) -> None:
    if length > most:
        raise DataError(f"a frame of more than {most} bytes, or no Jelly")


def _options(row: Any) -> Any:
    if row.WhichOneof("row") != "options":
        raise DataError("the first frame does not begin with the options of the stream")
    options = row.options
    sizes = (
        options.max_name_table_size,
        options.max_prefix_table_size,
        options.max_datatype_table_size,
    )
    if max(sizes) > MOST_ENTRIES:
        raise DataError(f"a table of {max(sizes)} entries; at most {MOST_ENTRIES} are read")
    if options.version > max(_VERSIONS):
        raise DataError(f"version {options.version} of Jelly; the versions up to 2 are read")
    return options


# -- reading ---------------------------------------------------------------------------------------


@final
class _Table:
    """Names, prefixes or datatypes by their numbers."""

    def __init__(self, size: int) -> None:
        self._entries: list[str | None] = [None] * (size + 1)
        self._last_set = 0
        self.last = 0

    def set(self, number: int, value: str) -> None:
        number = number or self._last_set + 1
        if number >= len(self._entries):
            raise DataError(f"entry {number} of a table of {len(self._entries) - 1}")
        self._entries[number] = value
        self._last_set = number

    def get(self, number: int) -> str:
        self.last = number
        value = self._entries[number] if number < len(self._entries) else None
        if value is None:
            raise DataError(f"entry {number} of a table is used before it is set")
        return value


@final
class _Reader:
    """Reads the rows of one stream's frames."""

    def __init__(self, options: Any) -> None:
        self._given = options
        self._names = _Table(options.max_name_table_size)
        self._prefixes = _Table(options.max_prefix_table_size)
        self._datatypes = _Table(options.max_datatype_table_size)
        self._repeated: dict[str, Any] = {}
        """The last term of each place, and the last graph."""
        self._iris: dict[str, IRI] = {}
        self._graph: Resource | None = None
        self._left = 0

    def quads(self, frame: Any) -> list[Quad]:
        """Return the quads of a frame."""
        found: list[Quad] = []
        self._left = MOST_CHARACTERS
        for row in frame.rows:
            kind = row.WhichOneof("row")
            match kind:
                case "triple":
                    if self._given.physical_type == _QUADS:
                        raise DataError("a triple in a stream of quads")
                    found.append(self._quad(self._triple_of(row.triple), self._graph))
                case "quad":
                    # In the order in which terms were written: each moves places in the tables.
                    triple = self._triple_of(row.quad)
                    found.append(self._quad(triple, self._graph_of(row.quad, "quad")))
                case "name":
                    self._names.set(row.name.id, row.name.value)
                case "prefix":
                    self._prefixes.set(row.prefix.id, row.prefix.value)
                case "datatype":
                    self._datatypes.set(row.datatype.id, row.datatype.value)
                case "graph_start":
                    self._graph = self._graph_of(row.graph_start, "start")
                case "graph_end":
                    self._graph = None
                case "options":
                    if row.options != self._given:
                        raise DataError("the options change inside the stream")
                case "namespace":
                    # Prefixes are not data, but reading one moves the places in the tables.
                    self._spend(IRI(self._value(row.namespace.value)))
                case _:
                    raise DataError("a row that this version does not know")
        return found

    def _triple_of(self, message: Any) -> list[Term]:
        return [self._place(message, place) for place in _PLACES]

    def _quad(self, terms: list[Term], graph: Resource | None) -> Quad:
        subject, predicate, obj = terms
        if not isinstance(subject, IRI | BlankNode) or not isinstance(predicate, IRI):
            raise DataError("a generalized statement, which RDF does not have")
        if graph is not None:
            self._spend(graph)
        return Quad(subject, predicate, obj, graph)

    def _place(self, message: Any, place: str) -> Term:
        field = message.WhichOneof(place)
        if field is not None:
            self._repeated[place] = self._term(getattr(message, field), field)
        elif place not in self._repeated:
            raise DataError(f"the first statement has no {place}")
        term: Term = self._repeated[place]
        self._spend(term)
        return term

    def _graph_of(self, message: Any, place: str) -> Resource | None:
        field = message.WhichOneof("graph")
        if field is None:
            if place not in self._repeated:
                raise DataError("the first statement has no graph")
            found: Resource | None = self._repeated[place]
            return found
        graph: Resource | None = None
        if field != "g_default_graph":
            term = self._term(getattr(message, field), field)
            if not isinstance(term, IRI | BlankNode):
                raise DataError("a literal as the name of a graph, which RDF does not have")
            graph = term
        if place == "quad":
            self._repeated[place] = graph
        return graph

    def _spend(self, term: Term) -> None:
        match term:
            case IRI(value=text) | BlankNode(label=text):
                self._left -= len(text)
            case Literal():
                self._left -= len(term.lexical) + len(term.datatype.value)
            case TripleTerm():
                for part in (term.subject, term.predicate, term.object):
                    self._spend(part)
        if self._left < 0:
            raise DataError(f"its terms have more than {MOST_CHARACTERS} characters")

    def _term(self, message: Any, field: str) -> Term:
        kind = field[2:]
        if kind == "iri":
            return self._iri(message)
        if kind == "literal":
            return self._literal(message)
        if kind == "bnode":
            if _PLAIN_LABEL.fullmatch(message):
                return BlankNode(message)
            return BlankNode(f"j-{message.encode().hex()}")
        return self._triple(message)

    def _iri(self, message: Any) -> IRI:
        return self._checked(self._value(message))

    def _value(self, message: Any) -> str:
        number = message.prefix_id or self._prefixes.last
        prefix = self._prefixes.get(number) if number else ""
        return prefix + self._names.get(message.name_id or self._names.last + 1)

    def _checked(self, value: str) -> IRI:
        known = self._iris.get(value)
        if known is not None:
            return known
        iri = IRI(value)
        if not iri.is_valid() or "\ufffe" in value or "\uffff" in value:
            raise DataError(f"<{value[:100]}> is not an absolute IRI")
        if len(self._iris) >= MOST_ENTRIES:
            self._iris.clear()
        # A long IRI would make this larger than the frames themselves.
        if len(value) <= 256:
            self._iris[value] = iri
        return iri

    def _literal(self, message: Any) -> Literal:
        match message.WhichOneof("literalKind"):
            case "langtag":
                if not LANGUAGE.fullmatch(message.langtag):
                    raise DataError(f"{message.langtag[:40]!r} is not a language tag")
                return Literal(message.lex, language=message.langtag)
            case "datatype":
                if not message.datatype:
                    raise DataError("entry 0 of a table is used before it is set")
                return Literal(message.lex, self._checked(self._datatypes.get(message.datatype)))
            case _:
                return Literal(message.lex)

    def _triple(self, message: Any) -> TripleTerm:
        parts = []
        for place in _PLACES:
            field = message.WhichOneof(place)
            if field is None:
                raise DataError(f"a triple term has no {place}")
            parts.append(self._term(getattr(message, field), field))
        subject, predicate, end = parts
        if not isinstance(subject, IRI | BlankNode) or not isinstance(predicate, IRI):
            raise DataError("a generalized triple term, which RDF does not have")
        if nesting(end) >= MOST_NESTED:
            raise DataError(TOO_DEEP)
        return TripleTerm(subject, predicate, end)


# -- writing ---------------------------------------------------------------------------------------


@final
class _Writer:
    """Makes rows of quads, with pyjelly's tables."""

    def __init__(self) -> None:
        self._messages = _messages()
        from pyjelly.options import LookupPreset
        from pyjelly.serialize.encode import TermEncoder

        names, prefixes, datatypes = _TABLES
        self._encoder: Any = TermEncoder(
            LookupPreset(max_names=names, max_prefixes=prefixes, max_datatypes=datatypes)
        )
        options = self._messages.RdfStreamOptions(
            physical_type=_QUADS,
            logical_type=_QUADS,
            rdf_star=True,
            max_name_table_size=names,
            max_prefix_table_size=prefixes,
            max_datatype_table_size=datatypes,
            version=_VERSIONS[0],
        )
        self._options = options
        self.rows: list[Any] = []
        self._is_begun = False
        self._last: list[Any] = [None, None, None, None]

    def add(self, quad: Quad) -> None:
        """Add the rows of a quad."""
        if not self._is_begun:
            self.rows.append(self._messages.RdfStreamRow(options=self._options))
            self._is_begun = True
        message = self._messages.RdfQuad()
        for place, term in enumerate((quad.subject, quad.predicate, quad.object)):
            if self._last[place] != term:
                self._put(term, message, "spo"[place])
                self._last[place] = term
        graph = quad.graph if quad.graph is not None else False
        if self._last[3] is None or self._last[3] != graph:
            if quad.graph is None:
                message.g_default_graph.SetInParent()
            else:
                self._put(quad.graph, message, "g")
            self._last[3] = graph
        self.rows.append(self._messages.RdfStreamRow(quad=message))

    def _put(self, term: Term, message: Any, place: str) -> None:
        match term:
            case IRI():
                self.rows += self._encoder.encode_iri(term.value, getattr(message, f"{place}_iri"))
            case BlankNode():
                setattr(message, f"{place}_bnode", term.label)
            case Literal():
                field = getattr(message, f"{place}_literal")
                # An empty literal has no field that is set by itself.
                field.SetInParent()
                datatype = term.datatype.value if term.language is None else None
                self.rows += self._encoder.encode_literal(
                    lex=term.lexical, language=term.language, datatype=datatype, literal=field
                )
            case TripleTerm():
                inner = getattr(message, f"{place}_triple_term")
                for part, name in zip(
                    (term.subject, term.predicate, term.object), "spo", strict=True
                ):
                    self._put(part, inner, name)

    def frame(self) -> bytes:
        """Return the rows as one frame, and begin the next."""
        frame = self._messages.RdfStreamFrame(rows=self.rows)
        self.rows = []
        data: bytes = frame.SerializeToString(deterministic=True)
        return data
