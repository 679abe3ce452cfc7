"""Relative references made absolute, by RFC 3986 and for every scheme.

`urllib.parse.urljoin` knows a list of schemes and leaves references against all others alone.

Spec: https://www.rfc-editor.org/rfc/rfc3986#section-5.2
"""

from __future__ import annotations

import re
from typing import Final

_PARTS: Final = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<authority>[^/?#]*))?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.DOTALL,
)


def resolve_iri(base: str | None, reference: str) -> str | None:
    """Resolve a reference against a base; None if it is relative and there is no base.

    >>> resolve_iri("http://a/b/c/d;p?q", "../g")
    'http://a/b/g'
    >>> resolve_iri("urn:x:y", "http://a/")
    'http://a/'
    """
    found = _PARTS.fullmatch(reference)
    assert found is not None  # every text has the five parts
    if found["scheme"] is not None:
        return reference
    if base is None:
        return None
    origin = _PARTS.fullmatch(base)
    assert origin is not None
    if origin["scheme"] is None:
        return None
    path, query = found["path"], found["query"]
    authority = found["authority"]
    if authority is None:
        authority = origin["authority"]
        if not path:
            path = origin["path"]
            query = origin["query"] if query is None else query
        elif not path.startswith("/"):
            if origin["authority"] is not None and not origin["path"]:
                path = "/" + path
            else:
                path = (
                    origin["path"].rpartition("/")[0]
                    + ("/" if "/" in origin["path"] else "")
                    + path
                )
            path = _remove_dots(path)
        else:
            path = _remove_dots(path)
    else:
        path = _remove_dots(path)
    result = f"{origin['scheme']}:"
    if authority is not None:
        result += f"//{authority}"
    result += path
    if query is not None:
        result += f"?{query}"
    if found["fragment"] is not None:
        result += f"#{found['fragment']}"
    return result


def _remove_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")
    for position, segment in enumerate(segments):
        last = position == len(segments) - 1
        if segment == ".":
            if last:
                kept.append("")
        elif segment == "..":
            # The empty segment before a leading slash stays.
            if len(kept) > 1 or (kept and kept[0] != ""):
                kept.pop()
            if last:
                kept.append("")
        else:
            kept.append(segment)
    return "/".join(kept)
