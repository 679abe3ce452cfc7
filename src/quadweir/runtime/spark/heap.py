"""Keeps Python workers from searching everything that they loaded for garbage after every task.

Spark's workers collect garbage after each task. Searching everything that pandas, Arrow and the
kernel loaded took 50 ms each time, as long as a small batch's work, and found nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Hashable

_FROZEN: set[Hashable] = set()


def freeze_heap(name: Hashable) -> None:
    """Exclude all present objects from later collections; once for each name in a process.

    Objects in reference cycles, such as shards, would then stay forever. Call it when everything is
    loaded and before there are any shards.
    """
    if name not in _FROZEN:
        _FROZEN.add(name)
        gc.collect()
        gc.freeze()
