"""The remarks of a check on a mapping that is valid but doubtful."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import final

from quadweir.spans import Span


class Level(StrEnum):
    """How bad a finding is: an error cannot run, a warning probably does not do what is meant."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One remark about a mapping.

    >>> print(Finding(level=Level.WARNING, code="unused-map", message="no one uses it"))
    warning: no one uses it [unused-map]
    """

    level: Level
    code: str
    """A stable name for the kind of remark, such as `unknown-property`."""
    message: str
    hint: str | None = None
    triples_map: str | None = None
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span else ""
        hint = f"\n  Hint: {self.hint}" if self.hint else ""
        return f"{place}{self.level}: {self.message} [{self.code}]{hint}"
