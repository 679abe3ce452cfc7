"""Labels of blank nodes: those of a stream are kept apart from those of others (S3)."""

from __future__ import annotations

import hashlib


def stream_prefix(stream: str) -> str:
    """Return the prefix that keeps the blank nodes of a stream apart from those of others (S3).

    >>> stream_prefix("urn:s")
    'se2219d44-'
    """
    return f"s{hashlib.sha256(stream.encode()).hexdigest()[:8]}-"
