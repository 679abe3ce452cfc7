"""Sinks that write statements and dead letters to different places, in one pass.

Every source has its statements and its dead letters in one frame; dead letters have a reason. The
batch is cached while both sinks write, so the source is read and parsed once (semantics P5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadweir.rowfilters import dead_letters, good_statements
from quadweir.sinks.base import Sink
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.start import Split, start

if TYPE_CHECKING:
    from datetime import timedelta
    from pathlib import Path

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def with_dead_letters(good: Sink, dead: Sink) -> Split:
    """Return a sink that writes statements to `good` and dead letters to `dead`.

    `dead` must accept any columns. It is for frames of `sources.filesource.open_statements`,
    `sources.replaysource.open_replay` and `sources.live.open_live`.
    """
    return Split(lambda parsed: [good_statements(parsed), dead_letters(parsed)], [good, dead])


def start_writing(
    parsed: DataFrame,
    good: Sink,
    *,
    dead_letters: Path | None,
    checkpoint: Path,
    every: timedelta | None = None,
    available_now: bool = False,
) -> StreamingQuery:
    """Start a Spark query that writes statements to a sink, and dead letters to a folder.

    Args:
        parsed: statements and dead letters, as a streaming frame.
        good: where statements go.
        dead_letters: the folder for dead letters, as JSON Lines; None drops them.
        checkpoint: the folder of offsets and state.
        every: how often a batch begins; default: as soon as the last one is done.
        available_now: take what is there now and end.
    """
    frame, sink = good_statements(parsed), good
    if dead_letters is not None:
        frame, sink = parsed, with_dead_letters(good, FileSink(dead_letters, LineFormat.JSONL))
    return start(frame, sink, checkpoint=checkpoint, every=every, available_now=available_now)
