"""A shard takes over what the windows of another held: one over other static data, or of another plan.

All that stands above the windows is made once more, as if it had always been this shard's. So no
operator has to read the state of another.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quadweir.errors import StateError
from quadweir.kernel.answers import Answers
from quadweir.kernel.arrays import FOREVER
from quadweir.kernel.codec import StateKind, read_frame, written_for
from quadweir.kernel.dataflow import part
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.shard import Shard
from quadweir.kernel.tables import ENTER, LEAVE
from quadweir.plan.inherit import Inheritance

ADMITTED: Final = "admitted"
"""In state of another plan: matches up to this instant are answered."""


def take_over(shard: Shard, snapshot: bytes) -> Answers:
    """Take the state of a shard over other static data.

    What its windows held, and what the last report saw of them, comes once more. Returned are
    the answers that this shard would have given by then: a first stage sends them to the second;
    those of a last stage are ignored.

    Raises:
        StateError: Bytes are damaged, or belong to another query or release; or the query holds
            something else over the new static data.
    """
    shard.check_new()
    arrays = read_frame(StateKind.SNAPSHOT, written_for(snapshot), snapshot)
    if arrays["windows"].tobytes() != shard.windows:
        raise StateError(
            "a snapshot of another query, or of one that its static data changed",
            hint="Start the query without its old state.",
        )
    shard.restore_times(arrays)
    before = Dictionary()
    before.restore(part("dictionary.", arrays))
    for number, clock in enumerate(shard.dataflow.clocks.values()):
        clock.restore(part(f"network.clock.{number}.", arrays))
    admitted = int(arrays[ADMITTED][0]) if ADMITTED in arrays else FOREVER
    return shard.come_again(shard.held_by_leaves(arrays), before, admitted)


def upgraded(old: Shard, new: Shard, inherited: Inheritance) -> dict[str, NDArray[Any]]:
    """Return the state of a shard as that of a shard of another plan, as far as it goes.

    A snapshot of it is read by `take_over`. Answers later than `old.through` that the old shard could
    not give yet come with the next step.

    Args:
        old: The shard.
        new: A new shard of the other plan; it is used up.
        inherited: What the other plan continues with.
    """
    new.begin_after(old, inherited.sources)
    found = new.arrays()
    for (_, leaf), taken in zip(new.dataflow.leaves, inherited.leaves, strict=True):
        if taken is None:
            continue
        held = old.dataflow.leaves[taken.place][1].arrays()
        place = new.dataflow.place(leaf)
        for name, array in held.items():
            own = array.copy()
            if taken.length_ms is not None and name in ("cells", "left", "waiting"):
                own[:, LEAVE] = own[:, ENTER] + taken.length_ms
            found[f"network.operator.{place}.{name}"] = own
    terms = part("dictionary.", old.arrays())
    found = {name: each for name, each in found.items() if not name.startswith("dictionary.")}
    # What an eager shard has taken is answered, even if it is later.
    admitted = FOREVER if old.program.eager else old.through
    found[ADMITTED] = np.array([admitted], dtype=np.int64)
    return found | {f"dictionary.{name}": each for name, each in terms.items()}
