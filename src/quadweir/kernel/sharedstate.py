"""A step of a shared shard as bytes: places are named, since they change with the templates."""

from __future__ import annotations

import json
from collections.abc import Sequence

from quadweir.errors import StateError
from quadweir.kernel import state
from quadweir.kernel.events import Recorded
from quadweir.plan.nodes import Source

_LENGTH = 8


def write_shared_delta(
    fingerprint: bytes, step: Recorded, leaves: Sequence[str], sources: Sequence[Source]
) -> bytes:
    """Write down a step, with the names of leaves and sources by their places."""
    streams = [[each.stream, str(each.event_time)] for each in sources]
    text = json.dumps([list(leaves), streams]).encode()
    return len(text).to_bytes(_LENGTH, "little") + text + state.write_delta(fingerprint, step)


def read_shared_delta(
    fingerprint: bytes, data: bytes
) -> tuple[Recorded, list[str], list[tuple[str, str]]]:
    """Read a step with the names of leaves and sources; raises `StateError` where it does not fit."""
    end = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    try:
        leaves, streams = json.loads(data[_LENGTH:end])
    except ValueError as error:
        raise StateError("a delta without the names of its places", detail=str(error)) from error
    sources = [(stream, event_time) for stream, event_time in streams]
    return state.read_delta(fingerprint, data[end:]), leaves, sources
