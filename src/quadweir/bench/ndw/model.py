"""A plain model of how many pairs windows must give; runs of the engine must match it.

Nothing is joined here: within a key and a piece of time the pairs are a product of two counts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quadweir.bench.ndw.publisher import Ints, SendSchedule


def bounded(records: SendSchedule) -> int:
    """How many pairs the join of all records has.

    >>> from quadweir.bench.ndw.publisher import Workload, play
    >>> bounded(play(Workload(seconds=180)))
    3069450
    """
    return _products(records, records.keys())


def tumbling(records: SendSchedule, size_ms: int = 2_000, *, last: bool = True) -> int:
    """How many of them fall into one tumbling window; if `last` is false, the last window never
    closes.

    >>> from quadweir.bench.ndw.publisher import Workload, play
    >>> records = play(Workload(seconds=180))
    >>> tumbling(records), tumbling(records, last=False)
    (2308500, 2282850)
    """
    window = records.sent_ms // size_ms
    keys = records.keys() + (window - window.min()) * (int(records.keys().max()) + 1)
    if last:
        return _products(records, keys)
    return _products(records, keys, kept=window < window.max())


def interval(records: SendSchedule, most_ms: int) -> int:
    """How many of them are of records not more than `most_ms` apart."""
    keys = records.keys()
    order = np.lexsort((records.sent_ms, keys))
    keys, side, sent = keys[order], records.side[order], records.sent_ms[order]
    # All keys lie on one line, too far apart to meet.
    line = sent - sent.min() + keys * (int(sent.max() - sent.min()) + 2 * most_ms + 2)
    child, parent = line[side == 0], line[side == 1]
    first = np.searchsorted(parent, child - most_ms, side="left")
    after = np.searchsorted(parent, child + most_ms, side="right")
    return int((after - first).sum())


def _products(records: SendSchedule, keys: Ints, kept: npt.NDArray[np.bool_] | None = None) -> int:
    side = records.side
    if kept is not None:
        keys, side = keys[kept], side[kept]
    _, number = np.unique(keys, return_inverse=True)
    count = int(number.max(initial=-1)) + 1
    child, parent = (np.bincount(number[side == one], minlength=count) for one in (0, 1))
    return int((child * parent).sum())
