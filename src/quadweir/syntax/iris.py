"""References resolved against a base, by the letter of RFC 3986.

`urllib.parse.urljoin` only resolves against the schemes that it knows, and would leave a reference
alone under `urn:` or `app:`.
"""

from __future__ import annotations

import re
from typing import Final

_PARTS: Final = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?"
)


def has_scheme(reference: str) -> bool:
    """Whether a reference is absolute.

    >>> has_scheme("http://example.org/"), has_scheme("a/b")
    (True, False)
    """
    match = _PARTS.match(reference)
    return match is not None and match[1] is not None


def resolve(reference: str, base: str) -> str:
    """Resolve a reference against an absolute base.

    Spec: https://www.rfc-editor.org/rfc/rfc3986#section-5.2

    >>> resolve("../c?x", "http://example.org/a/b")
    'http://example.org/c?x'
    """
    scheme, authority, path, query, fragment = _split(reference)
    if scheme is not None:
        return reference
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is not None:
        path = _remove_dots(path)
    else:
        authority = base_authority
        if not path:
            path = base_path
            query = query if query is not None else base_query
        elif path.startswith("/"):
            path = _remove_dots(path)
        else:
            if base_authority is not None and not base_path:
                path = f"/{path}"
            else:
                path = base_path[: base_path.rfind("/") + 1] + path
            path = _remove_dots(path)
    start = "" if authority is None else f"//{authority}"
    return f"{base_scheme}:{start}{path}{query or ''}{fragment or ''}"


def _split(text: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.match(text)
    if match is None:  # a line break, which no IRI token holds
        return None, None, text, None, None
    return match[1], match[2], match[3], match[4], match[5]


def _remove_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if segment == "..":
            if len(kept) > 1 or (kept and kept[0]):
                kept.pop()
            if last:
                kept.append("")
        elif segment == ".":
            if last:
                kept.append("")
        else:
            kept.append(segment)
    return "/".join(kept)
