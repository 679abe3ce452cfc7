"""`quadweir query --live`: answers as streams go on."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.commands.interrupts import Interrupts, quieten_gateway
from quadweir.commands.output import printable, stderr_console
from quadweir.commands.schemas import tell_of
from quadweir.errors import UsageError

if TYPE_CHECKING:
    from quadweir.commands.queryoutput import Target
    from quadweir.runtime.query import RegisteredQuery
    from quadweir.sources.declare import StreamDeclaration

_POLL: Final = timedelta(seconds=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveQuery:
    """What the command line asked for."""

    text: str
    dialect: str | None
    content: str | None
    declarations: tuple[StreamDeclaration, ...]
    streams_file: Path | None
    static: tuple[str, ...]
    schema: tuple[str, ...]
    target: Target
    shards: int | None
    checkpoint: Path | None
    allow_unbounded: tuple[str, ...]
    every: timedelta | None = None


def run(asked: LiveQuery) -> None:
    """Answer until Ctrl-C, or until a source fails."""
    from quadweir.engine import Engine
    from quadweir.runtime.query import ANSWERS
    from quadweir.runtime.session import build
    from quadweir.sinks.start import wait

    with ExitStack() as stack:
        checkpoint = asked.checkpoint or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="quadweir-query-"))
        )
        spark = build(app_name="quadweir-query", shards=asked.shards)
        stack.callback(spark.stop)
        quieten_gateway()
        interrupts = stack.enter_context(Interrupts())
        engine = Engine(spark)
        if asked.streams_file is not None:
            engine.load_streams(asked.streams_file)
        engine.declare(*asked.declarations)
        engine.schema(*asked.schema)
        tell_of(engine.schema_warnings)
        registered = engine.query(
            asked.text,
            dialect=asked.dialect,
            content=asked.content,
            static=asked.static,
            shards=asked.shards,
            allow_unbounded=asked.allow_unbounded,
        )
        if not registered.plan.sources:
            raise UsageError("the query reads no stream", hint="Run it without --live.")
        registered.start(
            asked.target.sink(registered.query.name or "query"),
            checkpoint=checkpoint,
            every=asked.every,
            statements=ANSWERS if asked.target.statements else None,
        )
        stack.callback(registered.stop)
        told = 0
        while not interrupts.seen:
            if wait(registered.streaming, _POLL):
                break
            told = _tell(registered, told)


def _tell(registered: RegisteredQuery, told: int) -> int:
    """Say on standard error how it goes, if there is news; gives the batch that was told of."""
    progress = registered.lastProgress
    if progress is None or progress.batchId + 1 == told:
        return told
    stderr_console().print(printable(line_of(registered.metrics())), markup=False, style="dim")
    return int(progress.batchId) + 1


def line_of(found: dict[str, Any]) -> str:
    """Say in one line how a run fares.

    >>> line_of({"statements": 1200, "answers": 3, "late": 0, "dead_letters": 1, "held": 40,
    ...     "lag_ms": 1500, "batch_ms": 300, "kernel_ms": 20, "input_rate": 4000.0,
    ...     "state_bytes": 2_000_000})
    '1,200 statements (4,000/s), 3 answers, 1 dead letters, watermark 1.5 s behind, 40 mappings in 2.0 MB of state, batch 300 ms (kernel 20)'
    """
    rate = found["input_rate"]
    parts = [
        f"{found['statements']:,} statements" + (f" ({rate:,.0f}/s)" if rate else ""),
        f"{found['answers']:,} answers",
    ]
    parts += [f"{found[key]:,} {name}" for key, name in _COUNTS if found[key]]
    if found["lag_ms"] is not None:
        parts.append(f"watermark {found['lag_ms'] / 1000:,.1f} s behind")
    parts.append(f"{found['held']:,} mappings in {found['state_bytes'] / 1e6:.1f} MB of state")
    parts.append(f"batch {found['batch_ms']} ms (kernel {found['kernel_ms']})")
    return ", ".join(parts)


_COUNTS: Final = (("late", "late matches"), ("dead_letters", "dead letters"))
