"""What programs and people read about the requests: `/openapi.json`, and `/docs` made from it.

The page has no script and asks nobody for anything, so it works without network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse

if TYPE_CHECKING:
    from fastapi import FastAPI

router = APIRouter(include_in_schema=False)
_PROBLEM: Final = {
    "type": "object",
    "description": "What is wrong, where, and what to do (RFC 9457).",
    "required": ["status", "code", "message"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {
            "type": "string",
            "description": "One of the codes of Quadweir, such as QW-SYNTAX.",
        },
        "message": {"type": "string"},
        "detail": {"type": ["string", "null"]},
        "hint": {"type": ["string", "null"]},
        "places": {"type": "array", "items": {"type": "object"}},
    },
}
_PLAIN: Final = {"type": "string"}


def takes(*types: str, example: Any = None, is_required: bool = True) -> dict[str, Any]:
    """Return what the description of a route says about its body.

    Args:
        types: the content types that it takes.
        example: a body.
        is_required: whether there must be one.
    """
    content = {}
    for each in types:
        is_json = each == "application/json"
        content[each] = {"schema": {"type": "object"} if is_json else _PLAIN}
        if example is not None and (is_json or not isinstance(example, dict | list)):
            content[each]["example"] = example
    return {"requestBody": {"required": is_required, "content": content}}


def named(place: str, **names: str) -> dict[str, Any]:
    """Return what the description of a route says about headers or members of the query.

    Args:
        place: `header` or `query`.
        names: what each is for; an underscore is a dash of a header.
    """
    return {
        "parameters": [
            {
                "name": name.strip("_").replace("_", "-") if place == "header" else name.strip("_"),
                "in": place,
                "required": False,
                "description": text,
                "schema": _PLAIN,
            }
            for name, text in names.items()
        ]
    }


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the description of an application for programs."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title,
            version=app.version,
            description="Streams, continuous queries and answers over HTTP.",
            routes=app.routes,
        )
        parts = found.setdefault("components", {})
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        # Those of the framework: what does not fit is a problem like others.
        parts["schemas"] = {"Problem": _PROBLEM}
        found["security"] = [{}, {"token": []}]
        for _, _, operation in operations(found):
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = {
                "description": "A problem.",
                "content": {
                    "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                },
            }
        app.openapi_schema = found
    return app.openapi_schema


def operations(description: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the path, the method and the description of each operation."""
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


@router.get("/docs")
def docs(request: Request) -> HTMLResponse:
    """Return a page about all requests."""
    return HTMLResponse(_page(json.dumps(request.app.openapi())))


@lru_cache(1)
def _page(text: str) -> str:
    description = json.loads(text)
    groups: dict[str, list[str]] = {}
    for path, method, operation in operations(description):
        tag = (operation.get("tags") or ["service"])[0]
        groups.setdefault(tag, []).append(_operation(path, method, operation))
    links = "".join(f"<a href='#{escape(tag)}'>{escape(tag)}</a>" for tag in groups)
    sections = "".join(
        f"<section id='{escape(tag)}'><h2>{escape(tag)}</h2>{''.join(parts)}</section>"
        for tag, parts in groups.items()
    )
    info = description["info"]
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(info['title'])}: requests</title><style>{_STYLE}</style>"
        f"<header><h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        f"<p>{escape(info['description'])} For programs: <a href='/openapi.json'>/openapi.json</a>."
        f"</p><nav aria-label='Groups'>{links}</nav></header><main>{sections}</main></html>"
    )


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    first, _, rest = operation.get("description", "").partition("\n\n")
    parts = [f"<p>{_words(rest)}</p>" if rest else ""]
    asked = operation.get("parameters", ())
    if asked:
        rows = "".join(
            f"<tr><td><code>{escape(each['name'])}</code><td>{escape(each['in'])}"
            f"<td>{_words(each.get('description', ''))}"
            for each in asked
        )
        parts.append(f"<table><tr><th>name<th>where<th>what it is{rows}</table>")
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<p>Body: <code>{escape(kind)}</code></p>")
        if (example := body.get("example")) is not None:
            shown = example if isinstance(example, str) else json.dumps(example, indent=2)
            parts.append(f"<pre>{escape(shown)}</pre>")
    return (
        f"<details><summary><b class='{method.lower()}'>{method}</b> <code>{escape(path)}</code> "
        f"{_words(first)}</summary>{''.join(parts)}</details>"
    )


def _words(text: str) -> str:
    """Return text with `code` marked."""
    parts = escape(text).split("`")
    return "".join(f"<code>{each}</code>" if n % 2 else each for n, each in enumerate(parts))


_STYLE: Final = """
:root{color-scheme:light dark;--line:#8884}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:auto;padding:1rem}
nav a{margin-right:1rem}h2{margin-top:2rem;text-transform:capitalize}
details{border-bottom:1px solid var(--line);padding:.4rem 0}summary{cursor:pointer}
summary:focus-visible,a:focus-visible{outline:2px solid #4285f4}
b{display:inline-block;min-width:4.5rem}b.delete{color:#d33}b.put,b.post,b.patch{color:#b60}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .8rem .2rem 0}
pre{background:#8882;padding:.6rem;overflow:auto}code{font-family:ui-monospace,monospace}
"""
