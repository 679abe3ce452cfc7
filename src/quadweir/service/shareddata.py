"""Static data and schema that requests put: files of the service, in versions.

All queries read them, so a change starts their networks again: queries stay, windows begin empty.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pyoxigraph as ox

from quadweir.errors import QuadweirError, UsageError
from quadweir.private import make_folder, write_file
from quadweir.service.declarations import sync_folder
from quadweir.service.problems import ForbiddenError, MediaTypeError, NotFoundError
from quadweir.service.queries import check_name
from quadweir.service.rdfbody import read_rdf
from quadweir.sources.staticfiles import StaticFile
from quadweir.terms import IRI

if TYPE_CHECKING:
    from quadweir.service.declarations import Declarations, Declared

FORMATS: Final = {
    "text/turtle": (ox.RdfFormat.TURTLE, ".ttl"),
    "application/n-triples": (ox.RdfFormat.N_TRIPLES, ".nt"),
    "application/n-quads": (ox.RdfFormat.N_QUADS, ".nq"),
    "application/trig": (ox.RdfFormat.TRIG, ".trig"),
    "application/ld+json": (ox.RdfFormat.JSON_LD, ".jsonld"),
    "application/rdf+xml": (ox.RdfFormat.RDF_XML, ".rdf"),
}


@final
class SharedFiles:
    """Files of one kind: static data, or the schema.

    Args:
        kind: `static` or `schema`.
        folder: where they are kept.
        own: the files of the application, with their graphs.
        declarations: the log of the service.
        reload: starts the networks again with what is there now; if it fails, nothing has changed.
    """

    def __init__(
        self,
        kind: str,
        folder: Path,
        own: Sequence[tuple[Path, IRI | None]],
        declarations: Declarations,
        reload: Callable[[], None],
    ) -> None:
        self._kind = kind
        self._folder = folder
        self._own = own
        self._declarations = declarations
        self._reload = reload
        self._changing = threading.Lock()

    def _table(self, now: Declared | None = None) -> dict[str, Any]:
        found: dict[str, Any] = getattr(now or self._declarations.now, self._kind)
        found.setdefault("version", 1)
        found.setdefault("files", {})
        return found

    def files(self) -> Iterator[StaticFile]:
        """Yield all files."""
        for path, graph in self._own:
            yield StaticFile(path, graph)
        for table in self._table()["files"].values():
            graph = table["graph"]
            path = self._folder / table["file"]
            yield StaticFile(path, IRI(graph) if graph is not None else None)

    def listed(self) -> dict[str, Any]:
        """List the files, and say which version they are."""
        table = self._table()
        return {
            "version": table["version"],
            "files": [
                *(
                    {
                        "name": path.name,
                        "graph": graph.value if graph is not None else None,
                        "statements": None,
                        "declared_by": "app",
                    }
                    for path, graph in self._own
                ),
                *(
                    {
                        "name": name,
                        "graph": each["graph"],
                        "statements": each["statements"],
                        "declared_by": "api",
                    }
                    for name, each in table["files"].items()
                ),
            ],
        }

    def one(self, name: str) -> tuple[bytes, str]:
        """Return a file and its content type.

        Raises:
            NotFoundError: there is none of the name.
        """
        table = self._known(name)
        return (self._folder / table["file"]).read_bytes(), table["type"]

    def put(self, name: str, body: bytes, media_type: str, graph: str | None) -> dict[str, Any]:
        """Put a file, and start the networks again.

        Raises:
            QuadweirError: it is no RDF, or a network cannot start with it; then nothing has changed.
        """
        check_name(name, "file")
        if graph is not None and not IRI(graph).is_valid():
            raise UsageError(f"the graph {graph[:100]!r} is not an absolute IRI")
        if any(path.name == name for path, _ in self._own):
            raise ForbiddenError(
                f"{name} is named by the application's file", hint="Choose another name."
            )
        statements = _checked(body, media_type)
        digest = hashlib.sha256(body).hexdigest()[:32]
        # A version is a file of its own, so that the one before can come back.
        file = f"{digest}{FORMATS[media_type][1]}"
        entry = {"file": file, "type": media_type, "graph": graph, "statements": statements}
        with self._changing:
            make_folder(self._folder)
            write_file(self._folder / file, body)
            sync_folder(self._folder)
            if self._table()["files"].get(name) != entry:
                self._change(lambda files: files.update({name: entry}))
        return self.listed()

    def delete(self, name: str) -> dict[str, Any]:
        """Remove a file, and start the networks again.

        Raises:
            NotFoundError: there is none of the name.
        """
        with self._changing:
            self._known(name)
            self._change(lambda files: files.pop(name))
        return self.listed()

    def _known(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] | None = self._table()["files"].get(name)
        if found is None:
            raise NotFoundError(
                f"there is no file {name[:100]!r} that was put here",
                hint=f"GET /{self._kind} lists the files.",
            )
        return found

    def _change(self, make: Callable[[dict[str, Any]], object]) -> None:
        former = dict(self._table()["files"])

        def change(now: Declared) -> None:
            table = self._table(now)
            make(table["files"])
            table["version"] += 1

        def undo(now: Declared) -> None:
            table = self._table(now)
            table["files"] = former
            table["version"] -= 1

        self._declarations.change(change)
        try:
            self._reload()
        except QuadweirError:
            self._declarations.change(undo)
            raise
        wanted = {each["file"] for each in self._table()["files"].values()}
        for path in self._folder.iterdir():
            if path.name not in wanted:
                path.unlink()


def _checked(body: bytes, media_type: str) -> int:
    """Return how many statements a document has.

    Raises:
        MediaTypeError: it is in no format of RDF.
        DataError: it is no RDF; the error has the place.
    """
    if media_type not in FORMATS:
        raise MediaTypeError(
            f"{media_type or 'a body without a content type'} is no RDF that is known here",
            hint=f"Send {', '.join(FORMATS)}.",
        )
    return sum(1 for _ in read_rdf(body, FORMATS[media_type][0]))
