"""How a join is described to compiled code: records with named fields.

The record of a join says where its parts lie, and how far a call has come. Compiled functions call
each other for every event and every match, and a record is passed on as one word. The parts are
arrays whose sizes differ from join to join; `memory.py` says why they are stored as places.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quadweir.kernel.memory import NUMBER, PLACE, records

JOIN: Final = np.dtype(
    [
        # What the join is.
        ("inputs", NUMBER),
        ("shared", NUMBER),  # number of shared variables, at least 1
        ("lists", NUMBER),  # number of lists that a result is in
        ("buffers", PLACE),  # a `BUFFER` for each input
        ("indexes", PLACE),  # an `INDEX` for each index, those of one input together
        ("first_index", PLACE),  # for each input the number of its first index; then their number
        ("index_of", PLACE),  # for each set of bound inputs, by which index every other is probed
        ("has_key", PLACE),  # and whether that index has a key
        ("first_binding", PLACE),  # for each input its first pair of ...
        ("bound_column", PLACE),  # ... a column
        ("bound_variable", PLACE),  # ... and the shared variable that it binds
        # Room for the work.
        ("frames", PLACE),  # a `FRAME` for each input
        ("bound", PLACE),  # for each frame what the shared variables are bound to
        ("key", PLACE),
        ("places", PLACE),  # for each input the place of the mapping that is in the combination
        ("hashes", PLACE),  # of what the next events look for, by event and input
        # Results.
        ("result_cells", PLACE),  # references to the parts, then links to other results
        ("result_width", NUMBER),  # number of words of a result
        ("free_rows", PLACE),  # a stack of rows for results
        ("free", NUMBER),  # how many there are
        # Changes of the output.
        ("output", PLACE),  # times, signs, rows, ends
        ("room", NUMBER),  # how many changes fit
        ("made", NUMBER),  # how many there are
        # Events.
        ("events", PLACE),  # times, signs, inputs, places
        ("count", NUMBER),
        ("event", NUMBER),  # the next one
        ("depth", NUMBER),  # of the frame to go on with; -1 between two events
        ("full_index", NUMBER),  # the index that stopped a call
        ("far", NUMBER),  # 1 if indexes are too large for the processor's nearer caches
        ("work", NUMBER),  # how many mappings may still be tried
    ],
    align=True,
)

BUFFER: Final = np.dtype(
    [
        ("cells", PLACE),
        ("width", NUMBER),  # words of a row
        ("capacity", NUMBER),  # number of places
        ("pointers", NUMBER),  # column: the first result made from a mapping, then the rings
        ("copies", NUMBER),  # 1 if the row of the input is kept in a cell and is not the place
        ("head", NUMBER),  # the oldest row ...
        ("head_place", NUMBER),  # ... and its place; later rows follow, and wrap round the end
    ],
    align=True,
)
"""What a join holds of one input."""

FRAME: Final = np.dtype(
    [
        ("input", NUMBER),
        ("next", NUMBER),  # the place of the next mapping
        ("left", NUMBER),  # how many are left
        ("ring", NUMBER),  # column of the ring
        ("enter", NUMBER),  # what is bound so far shares the instants from here ...
        ("leave", NUMBER),  # ... to before here
        ("chosen", NUMBER),  # the inputs bound before, as bits
        ("unused", NUMBER),  # a frame takes a whole line of the processor's cache
    ],
    align=True,
)
"""The mappings of one buffer that are still to be tried."""

JoinRecord: TypeAlias = NDArray[np.void]
"""An array of type `JOIN` and of length 1."""

buffer_at = records(BUFFER)
frame_at = records(FRAME)

# How many events are remembered between the prefetch of entries and that of matches: a power of two.
EVENTS_AHEAD: Final = 16
