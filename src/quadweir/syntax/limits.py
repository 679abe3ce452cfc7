"""How large a query text may be: queries come from people we do not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on one query text and on the tree that it becomes.

    The defaults are far above what people write and templates make, and low enough that every
    later pass can recurse over a tree without running out of stack.
    """

    length: int = 262_144  # characters of text
    nesting: int = 64  # brackets of any kind inside one another
    depth: int = 120  # levels of the tree; a chain of OPTIONALs or of additions counts
    operators: int = 10_000  # nodes of the tree


DEFAULT_LIMITS: Final = Limits()
