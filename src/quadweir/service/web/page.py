"""The page. It is static files, and gets its data from the same API as all clients."""

from __future__ import annotations

import mimetypes
import os
from pathlib import Path
from typing import Final

from fastapi import APIRouter
from fastapi.responses import FileResponse, PlainTextResponse, Response

from quadweir.service.problems import NotFoundError
from quadweir.service.web.context import Served, decoded

router = APIRouter(include_in_schema=False)
VARIABLE: Final = "QUADWEIR_PAGE"
_HASHED: Final = "assets/"
_OWN: Final = Path(__file__).parent.parent / "page"
# The content types of the page's files. The machine's own table of types may differ.
_TYPES: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".map": "application/json",
}


@router.get("/")
@router.get("/{path:path}")
def page(service: Served, path: str = "") -> Response:
    """Return a file of the page."""
    folder = page_folder(service.settings.page)
    name = decoded(path) or "index.html"
    file = (folder / name).resolve()
    if not file.is_relative_to(folder) or not file.is_file():
        if name == "index.html":
            return PlainTextResponse("Quadweir: the page is not built; see /openapi.json\n")
        raise NotFoundError("there is nothing at this path", hint="GET / or /openapi.json")
    kind = _TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0]
    is_hashed = name.startswith(_HASHED)
    age = "public, max-age=31536000, immutable" if is_hashed else "no-cache"
    return FileResponse(
        file, media_type=kind or "application/octet-stream", headers={"cache-control": age}
    )


def page_folder(given: Path | None) -> Path:
    """Return the folder of the page."""
    named = os.environ.get(VARIABLE)
    return (given or (Path(named) if named else _OWN)).resolve()
