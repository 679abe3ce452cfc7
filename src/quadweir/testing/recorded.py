"""The recent input of a running query, to check its answers again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeAlias, final

from quadweir import rows
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.windows import NowScope, PastScope, TimeScope
from quadweir.errors import UsageError
from quadweir.sources.streamfiles import Element
from quadweir.terms import IRI, BlankNode, Quad, parse_term

RecordKey: TypeAlias = tuple[str, int, int]
"""Stream, event time and position of an element."""
_TAKEN: Final = ".taken"
_BEGIN: Final = "begin"


def reach_ms(query: ContinuousQuery) -> int:
    """How far before a report the oldest element is that it and the report before it use.

    Raises:
        UsageError: a window has no such bound.
    """
    found = [query.tick.every_ms or 0]
    for window in query.windows:
        match window.scope:
            case TimeScope(range_ms=size, step_ms=step) | PastScope(from_ms=size, step_ms=step):
                found.append(size + (step or 0))
            case NowScope():
                found.append(1)
            case _:
                raise UsageError(
                    "a live run can check and explain answers only over time windows",
                    hint="Leave --verify and --why out, or take a recorded run, without --live.",
                    span=window.span,
                )
    return 2 * max(found)


@final
class RecordedElements:
    """The elements that a query has read (`runtime.recording`), until they are forgotten.

    The files are kept as long as their elements are, so that a run that goes on where another
    stopped knows what its windows hold.

    Args:
        folder: where the query's input is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._elements: dict[RecordKey, dict[Quad, None]] = {}
        self._latest: dict[Path, int] = {}
        self._through: int | None = None
        for file in sorted(folder.glob(f"*{_TAKEN}")):
            stamp = file.with_suffix("").suffix[1:]
            through = None if stamp == _BEGIN else int(stamp)
            if through is not None:
                self._through = max(through, self._through or through)
            self._read(file, through)

    def take(self, through: int | None) -> None:
        """Take what was written since the last time.

        Args:
            through: the watermark before that; what is not later is late,
                and left out. None if it is not known: then that of a run before this one counts.
        """
        self._through = through if through is not None else self._through
        stamp = _BEGIN if self._through is None else str(self._through)
        for file in sorted(self._folder.glob("*.parquet")):
            # The name says what was late, for a run that reads the file again.
            taken = file.rename(file.with_suffix(f".{stamp}{_TAKEN}"))
            self._read(taken, self._through)

    def _read(self, file: Path, through: int | None) -> None:
        import pyarrow.parquet as pq

        for row in pq.read_table(file).to_pylist():
            time = row[rows.EVENT_TIME]
            self._latest[file] = max(time, self._latest.get(file, time))
            if through is None or time > through:
                self._add(row)

    def _add(self, row: dict[str, Any]) -> None:
        subject, predicate, end = (parse_term(row[name]) for name in rows.TERMS[:3])
        assert isinstance(subject, IRI | BlankNode)
        assert isinstance(predicate, IRI)
        key = (row[rows.STREAM], row[rows.EVENT_TIME], row[rows.POSITION])
        self._elements.setdefault(key, {})[Quad(subject, predicate, end)] = None

    def elements(self) -> dict[RecordKey, Element]:
        """All of them that are known."""
        return {key: Element(*key, tuple(quads)) for key, quads in self._elements.items()}

    def forget(self, through: int, *, but: RecordKey | None = None) -> None:
        """Forget the elements up to an instant, except for one."""
        for key in [each for each in self._elements if each[1] <= through and each != but]:
            del self._elements[key]
        for file in [each for each, latest in self._latest.items() if latest <= through]:
            file.unlink(missing_ok=True)
            del self._latest[file]
