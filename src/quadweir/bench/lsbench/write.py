"""A network as files: a folder for each stream with a file for each day, and the static data.

The files are the same whether one process writes them, or Spark with a task for each range of users
and then for each day.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from quadweir._version import __version__
from quadweir.bench.lsbench.activity import gathering_events, in_order, user_events
from quadweir.bench.lsbench.network import FriendNetwork, make_network
from quadweir.bench.lsbench.parameters import DAY_MS, STREAM_IRI, STREAMS, Parameters
from quadweir.bench.lsbench.spell import spell_events, spell_users
from quadweir.bench.tables import text_of
from quadweir.errors import SourceError

if TYPE_CHECKING:
    from quadweir.bench.lsbench.draw import Ints

USERS_OF_FILE: Final = 1000
EVENTS_OF_TASK: Final = 50
MANIFEST: Final = "lsbench.json"
STATIC_GRAPH: Final = "urn:lsbench:static"


def generate(
    parameters: Parameters, folder: Path, *, on_step: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Make a network and write it in this process; return the content of the manifest.

    Raises:
        SourceError: the folder is not empty, or cannot be written.
    """
    prepare(folder)
    on_step("friendships")
    network = make_network(parameters)
    on_step("events")
    made: dict[str, list[pa.RecordBatch]] = {stream: [] for stream in STREAMS}
    for stream, batch in all_events(network):
        made[stream].append(batch)
    counts = {"static": 0}
    for users in ranges(parameters.users, USERS_OF_FILE):
        on_step("static data")
        counts["static"] += write_static(network, folder, users)
    for stream in STREAMS:
        events = in_order(made.pop(stream))
        counts[stream] = 0
        for day in range(parameters.days):
            on_step(f"{stream}, day {day + 1} of {parameters.days}")
            counts[stream] += write_day(network, folder, stream, day, of_day(network, events, day))
    return finish(parameters, folder, counts)


def all_events(network: FriendNetwork) -> Iterator[tuple[str, pa.RecordBatch]]:
    """All events of a network, stream by stream, in unsorted pieces."""
    for users in ranges(network.parameters.users, USERS_OF_FILE):
        yield from user_events(network, users).items()
    for gatherings in ranges(network.parameters.events, EVENTS_OF_TASK):
        yield "gps", gathering_events(network, gatherings)


def ranges(count: int, size: int) -> Iterator[Ints]:
    """Numbers from 0 to a count, so many at a time."""
    for start in range(0, count, size):
        yield np.arange(start, min(count, start + size))


def of_day(network: FriendNetwork, events: pa.RecordBatch, day: int) -> pa.RecordBatch:
    """The events of one day; all events are sorted."""
    start = network.parameters.start + day * DAY_MS
    times = events.column("time").to_numpy()
    first, last = np.searchsorted(times, (start, start + DAY_MS))
    return events.slice(first, last - first)


def prepare(folder: Path) -> None:
    """Make the folders.

    Raises:
        SourceError: there is something in them already.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise SourceError(f"{folder} is not empty", hint="Name a folder that is not there yet.")
        for name in (*STREAMS, "static"):
            (folder / name).mkdir()
    except OSError as error:
        raise SourceError(f"cannot write to {folder}: {error.strerror or error}") from error


def write_static(network: FriendNetwork, folder: Path, users: Ints) -> int:
    """Write the static data of a range of users; return the number of triples."""
    number = int(users[0]) // USERS_OF_FILE
    return _write(folder / "static" / f"users-{number:05}.nt", spell_users(network, users))


def write_day(
    network: FriendNetwork, folder: Path, stream: str, day: int, events: pa.RecordBatch
) -> int:
    """Write the sorted events of one day of a stream; return the number of triples."""
    return _write(folder / stream / f"day-{day:05}.stream", spell_events(network, stream, events))


def _write(path: Path, texts: pa.Array) -> int:
    data = text_of(texts)
    path.write_bytes(data)
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == 10))


def finish(parameters: Parameters, folder: Path, counts: dict[str, int]) -> dict[str, Any]:
    """Write the declarations of the streams and the manifest."""
    tables = [
        f'[streams."{STREAM_IRI}{stream}"]\n'
        f'source = {{ kind = "folder", path = "{stream}" }}\n'
        'format = "timed-lines"\nin_order = true\n'
        for stream in STREAMS
    ]
    (folder / "streams.toml").write_text("\n".join(tables), encoding="utf-8")
    manifest = {
        "workload": "lsbench",
        "quadweir": __version__,
        "parameters": parameters.as_json(),
        "triples": {name: counts[name] for name in ("static", *STREAMS)},
    }
    text = json.dumps(manifest, indent=2) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    return manifest
