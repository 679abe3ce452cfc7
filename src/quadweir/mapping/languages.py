"""Language tags: which texts are well-formed tags, and which of these are registered.

Spec: https://www.rfc-editor.org/rfc/rfc5646
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from quadweir.mapping.findings import Finding, Level
from quadweir.spans import Span

# RFC 5646, section 2.1: a primary subtag has two to eight letters, or is "x" or "i".
_LANGUAGE: Final = re.compile(r"(?:[A-Za-z]{2,8}|[xXiI])(?:-[A-Za-z0-9]{1,8})*")
_BARE_TAG: Final = re.compile(r"[xXiI]")


def is_language_tag(text: str) -> bool:
    """Whether a text is a well-formed language tag (registered or not).

    >>> is_language_tag("nl-BE"), is_language_tag("a-english")
    (True, False)
    """
    return bool(_LANGUAGE.fullmatch(text)) and not _BARE_TAG.fullmatch(text)


def unregistered_tag(text: str, triples_map: str | None, span: Span | None) -> Iterator[Finding]:
    """A remark on a well-formed language tag with an unregistered part.

    >>> [finding.message for finding in unregistered_tag("english", None, None)]
    ["the language tag 'english' is not registered"]
    """
    from langcodes import tag_is_valid

    if not tag_is_valid(text):
        yield Finding(
            level=Level.WARNING,
            code="unregistered-language",
            message=f"the language tag {text!r} is not registered",
            hint='Use a registered tag, such as "en" or "nl-BE".',
            triples_map=triples_map,
            span=span,
        )
