"""Stream files as Arrow tables: statements, and dead letters with the reasons that Spark gives."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from quadweir import rows
from quadweir.errors import DataError
from quadweir.sources.declare import (
    FolderSource,
    Format,
    FromPredicate,
    StreamDeclaration,
)
from quadweir.sources.fileplan import PARSED, FilePlan
from quadweir.sources.parsedlines import parsed_lines
from quadweir.sources.streamfiles import list_files
from quadweir.sources.termtimes import read_time
from quadweir.terms import parse_term


def read_rows(declaration: StreamDeclaration) -> pa.Table:
    """Return the rows of a stream file or folder: statements, and dead letters with a reason.

    The columns are those of `fileplan.PARSED`.

    Raises:
        SourceError: the file or folder does not exist.
    """
    plan = _plan_of(declaration)
    files = list_files(declaration.source.path, plan.pattern)  # type: ignore[union-attr]
    batches = [
        parsed_lines(batch, declaration.iri) if declaration.format is Format.TIMED_LINES else batch
        for parts in plan.groups((index, path, None) for index, path in enumerate(files))
        for batch in plan.read(parts)
    ]
    return pa.Table.from_batches(batches, PARSED)


def _plan_of(declaration: StreamDeclaration) -> FilePlan:
    source, time = declaration.source, declaration.time
    folder = source if isinstance(source, FolderSource) else FolderSource(path=source.path)  # type: ignore[union-attr]
    return FilePlan(
        path=str(folder.path.absolute()),
        stream=declaration.iri,
        format=declaration.format,
        pattern=folder.pattern,
        start=folder.start,
        step_ms=folder.step // timedelta(milliseconds=1) if folder.step is not None else None,
        predicate=time.predicate if isinstance(time, FromPredicate) else None,
        roots=(str(folder.path.absolute()),) if isinstance(source, FolderSource) else None,
    )


def timed_by(table: pa.Table, predicate: str) -> pa.Table:
    """Return a stream whose elements have the value of a predicate as their time (S2).

    `match/feeds.py` has the same as column expressions.
    """
    times, positions, predicates, objects, reasons = (
        table.column(name).to_pylist()
        for name in (rows.EVENT_TIME, rows.POSITION, rows.PREDICATE, rows.OBJECT, rows.REASON)
    )
    values: dict[tuple[int, int], set[str]] = {}
    wanted = f"<{predicate}>"
    for element, named, value in zip(
        zip(times, positions, strict=True), predicates, objects, strict=True
    ):
        found = values.setdefault(element, set())
        if named == wanted:
            found.add(value)
    read = {element: _time_of(found, predicate) for element, found in values.items()}
    stated = [read[element] for element in zip(times, positions, strict=True)]
    why = [given or found for given, (_, found) in zip(reasons, stated, strict=True)]
    return _with(table, {rows.EVENT_TIME: [time for time, _ in stated], rows.REASON: why})


def _time_of(values: set[str], predicate: str) -> tuple[int | None, str | None]:
    """Return the time that an element states, or why it states none."""
    if not values:
        return None, f"no time: <{predicate}> is missing"
    if len(values) > 1:
        return None, f"several times: <{predicate}> has more than one value"
    try:
        return read_time(parse_term(next(iter(values)))), None
    except DataError:
        return None, f"the value of <{predicate}> is not a time"


def with_times_that_can_be(table: pa.Table) -> pa.Table:
    """Return the table with statements of implausible times as dead letters (P5).

    `match/feeds.py` has the same as column expressions.
    """
    times = table.column(rows.EVENT_TIME)
    last = rows.LAST_TIME_MS
    far = pc.or_(pc.less(times, -last), pc.greater(times, last))
    far = pc.fill_null(pc.and_(far, table.column(rows.PREDICATE).is_valid()), False)
    if not pc.any(far).as_py():
        return table
    kept = {name: table.column(name).to_pylist() for name in PARSED.names}
    for row in pc.indices_nonzero(far).to_pylist():
        triple = " ".join(kept[name][row] for name in rows.TERMS[:3])
        said: Mapping[str, str] = {
            rows.SOURCE: kept[rows.STREAM][row],
            rows.PLACE: f"position {kept[rows.POSITION][row]}",
            rows.REASON: f"its time, {kept[rows.EVENT_TIME][row]}, is thousands of years away: "
            "milliseconds since 1970 are meant",
            rows.RECORD: triple[: rows.DEAD_LETTER_TEXT],
        }
        for name, text in said.items():
            kept[name][row] = text if kept[name][row] is None else kept[name][row]
    return _with(table, {name: kept[name] for name in said})


def _with(table: pa.Table, changed: Mapping[str, list[object]]) -> pa.Table:
    for name, values in changed.items():
        place = table.schema.get_field_index(name)
        field = table.schema.field(place)
        table = table.set_column(place, field, pa.array(values, field.type))
    return table
