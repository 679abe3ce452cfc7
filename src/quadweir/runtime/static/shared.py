"""Solutions of static sub-patterns that the queries of a network share.

Queries of different templates often ask static data the same. It is read once, and each sub-pattern
is solved once; the files of its solutions have several names.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import EVERY_INSTANT, ON_CHANGE, OutputOperator
from quadweir.runtime.static.files import relation_file

if TYPE_CHECKING:
    from quadweir.plan.nodes import StaticRelation
    from quadweir.terms import Quad


@final
@dataclass(frozen=True, slots=True)
class Solved:
    """The solutions of a sub-pattern.

    Attributes:
        file: where they are.
        digest: names them.
        count: how many there are.
    """

    file: Path
    digest: bytes
    count: int


@final
class SharedSolutions:
    """What was solved for the queries of a network."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="quadweir-shared-"))
        self._removal = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._solved: dict[str, Solved] = {}
        self._quads: Sequence[Quad] | None = None

    def quads(self, read: Callable[[], Sequence[Quad]]) -> Sequence[Quad]:
        """Return the static quads; `read` is called the first time."""
        if self._quads is None:
            self._quads = read()
        return self._quads

    def find(self, relation: StaticRelation) -> Solved | None:
        """Return the solutions of a sub-pattern, if another query asked for them."""
        return self._solved.get(_key(relation))

    def keep(self, relation: StaticRelation, solved: Solved) -> None:
        """Keep solutions for other queries."""
        key = _key(relation)
        file = self._folder / key
        file.hardlink_to(solved.file)
        self._solved[key] = replace(solved, file=file)


def _key(relation: StaticRelation) -> str:
    """Name a sub-pattern and the graphs that it sees, whatever the query around it reports."""
    query: ContinuousQuery = replace(
        relation.query, output=OutputOperator.RSTREAM, report=ON_CHANGE, tick=EVERY_INSTANT
    )
    return relation_file(query, relation.variables)
