"""What has arrived, from columns of terms to the numbers that a shard works with, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.spellings import ZERO
from quadweir.kernel.window import Matches
from quadweir.plan.nodes import Match

# How many changes run through the operators at once: enough to make each cheap, few enough that
# what they touch stays in the processor's caches.
CHUNK: Final = 1 << 16
_FEWEST: Final = 16


def chunk_of(classes: int) -> int:
    """Return how many matches to take at once: each may become a row for every class of members."""
    return max(_FEWEST, CHUNK // max(1, classes))


def matches_of(match: Match, columns: MatchColumns, dictionary: Dictionary) -> Matches:
    """Return the matches of a pattern with the numbers of their terms, then their times."""
    width = len(match.variables) + len(match.times)
    values = np.empty((len(columns.time), width), dtype=np.int64)
    for place, column in enumerate(columns.columns):
        is_encoded = isinstance(column, np.ndarray)
        values[:, place] = column if is_encoded else dictionary.encode(column)
    for place in range(len(match.variables), width):
        values[:, place] = columns.time + ZERO
    return Matches(columns.time, columns.position, values)


def spelled_out(events: Events, dictionary: Dictionary) -> Events:
    """Turn the numbers of terms into spellings: a number is valid only in this shard and step."""
    matches = {place: _spelled(each, dictionary) for place, each in events.matches.items()}
    return replace(events, matches=matches)


def _spelled(columns: MatchColumns, dictionary: Dictionary) -> MatchColumns:
    spelled = [
        dictionary.decode(each).dictionary_encode() if isinstance(each, np.ndarray) else each
        for each in columns.columns
    ]
    return replace(columns, columns=spelled)


def cuts_of(events: Events, chunk: int, start: int, through: int) -> list[int]:
    """Return instants at which to cut a long step into parts of about `chunk` matches.

    An eager join drops what has left only after all that came was joined. With cuts, it holds the
    content of the windows and at most one chunk, however long the step.

    Args:
        events: What has arrived.
        chunk: How many matches a part has.
        start: The instant at which the step before ended.
        through: The instant at which this one ends.
    """
    count = sum(len(columns.time) for columns in events.matches.values())
    if count <= chunk:
        return []
    times = np.sort(np.concatenate([each.time for each in events.matches.values()]))
    cuts = np.unique(times[chunk::chunk])
    return [int(cut) for cut in cuts if start < cut < through]
