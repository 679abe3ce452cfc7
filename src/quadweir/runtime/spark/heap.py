"""What a Python worker has loaded need not be looked through after every task.

Spark has its workers collect garbage after each task. Going through all that pandas, Arrow and the
kernel have loaded took 50 ms each time, as long as a small batch's work, and found nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Hashable

_SETTLED: set[Hashable] = set()


def settle(what: Hashable) -> None:
    """Leave all that is there now out of later collections; once for each name in a process.

    What refers to itself in a circle would then stay for ever, as shards do: ask for it when all is
    loaded, and before there is any of them.
    """
    if what not in _SETTLED:
        _SETTLED.add(what)
        gc.collect()
        gc.freeze()
