"""The control log: what was promised survives, and a batch always runs with the same version."""

from __future__ import annotations

import contextlib
import random
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quadweir.errors import StateError, UsageError
from quadweir.runtime.network.controllog import ControlLog, LogEntry

Queries = dict[int, list[Any]]


def entry(number: int, name: str = "") -> dict[str, Any]:
    """A change that registers a query."""
    return {"register": [[number, name or f"q{number}", number % 3, {"text": f"text {number}"}]]}


Open = Callable[..., ControlLog]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens the log as a new process finds it; the process before has ended."""
    found: list[ControlLog] = []

    def open_log(begun: int = -1) -> ControlLog:
        for each in found:
            each.close()
        found.append(ControlLog(tmp_path, begun))
        return found[-1]

    yield open_log
    for each in found:
        each.close()


@contextlib.contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def queries_of(log: ControlLog) -> Queries:
    """What the base and the changes of a log say together, told in the simplest way."""
    found: Queries = {row[0]: list(row) for row in log.base.get("queries", [])}
    for _, change in log.changes():
        apply(found, change)
    return found


def apply(found: Queries, change: LogEntry) -> None:
    for number in change.get("unregister", []):
        found.pop(number, None)
    for number, reason in change.get("stop", []):
        found[number][5] = reason
    for row in change.get("register", []):
        found[row[0]] = [*row, False, None]
    for number in change.get("pause", []):
        found[number][4] = True
    for number in change.get("resume", []):
        found[number][4] = False


# --- what is on disk ---


def test_a_log_that_is_read_again_has_the_same_changes(tmp_path: Path, opened: Open) -> None:
    log = opened()
    given = [entry(0, 'an "odd" name\n\r\u2028\ud800'), {"pause": [0]}, {"unregister": [0]}]
    assert [log.append(each) for each in given] == [1, 2, 3]
    log = opened()
    assert [*log.changes()] == [(1, given[0]), (2, given[1]), (3, given[2])]
    assert log.version == 3
    assert log.append(entry(1)) == 4


def test_only_the_owner_reads_it(tmp_path: Path, opened: Open) -> None:
    log = opened()
    log.append(entry(0))
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    log.compact(1)
    log.append(entry(1))
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_a_last_line_that_is_not_complete_is_dropped_wherever_it_ends(
    tmp_path: Path, opened: Open
) -> None:
    log = opened()
    log.append(entry(0))
    kept = (tmp_path / "log").read_bytes()
    log.append(entry(1))
    whole = (tmp_path / "log").read_bytes()
    log.close()
    for end in range(len(kept), len(whole)):
        (tmp_path / "log").write_bytes(whole[:end])
        log = opened()
        assert [*log.changes()] == [(1, entry(0))]
        # What comes next is not appended to half a line.
        assert log.append(entry(2)) == 2
        log = opened()
        assert [*log.changes()] == [(1, entry(0)), (2, entry(2))]
        log.close()


def test_a_line_that_was_changed_is_refused(tmp_path: Path, opened: Open) -> None:
    log = opened()
    for number in range(3):
        log.append(entry(number))
    log.close()
    whole = (tmp_path / "log").read_bytes()
    end = whole.index(b"\n", whole.index(b"\n") + 1)
    for place in range(end):
        data = bytearray(whole)
        data[place] ^= 1
        (tmp_path / "log").write_bytes(data)
        with pytest.raises(StateError, match="was changed or is damaged"):
            opened()


def test_a_line_that_is_missing_is_refused(tmp_path: Path, opened: Open) -> None:
    log = opened()
    for number in range(3):
        log.append(entry(number))
    log.close()
    first, _, last = (tmp_path / "log").read_bytes().splitlines(keepends=True)
    (tmp_path / "log").write_bytes(first + last)
    with pytest.raises(StateError, match="was changed or is damaged"):
        opened()


def test_a_base_that_was_changed_is_refused(tmp_path: Path, opened: Open) -> None:
    log = opened()
    log.append(entry(0))
    log.compact(1)
    log.close()
    whole = (tmp_path / "base.json").read_bytes()
    for data in (whole[:-1], whole.replace(b"q0", b"q1"), b"", b"{}\n"):
        (tmp_path / "base.json").write_bytes(data)
        with pytest.raises(StateError, match="was changed or is damaged"):
            opened()


def test_a_change_that_could_not_be_written_leaves_nothing(tmp_path: Path, opened: Open) -> None:
    """Otherwise half of its line would stand before the next change."""
    log = opened()
    log.append(entry(0))
    size = (tmp_path / "log").stat().st_size
    with full_disk(size + 20), pytest.raises(StateError, match="cannot be written"):
        log.append(entry(1))
    assert log.append(entry(2)) == 2
    log = opened()
    assert [*log.changes()] == [(1, entry(0)), (2, entry(2))]


def test_a_log_that_was_closed_takes_no_changes(tmp_path: Path, opened: Open) -> None:
    log = opened()
    log.close()
    with pytest.raises(UsageError, match="does not run"):
        log.append(entry(0))


# --- which batch runs with which version ---


def test_a_change_counts_from_the_next_batch_on(tmp_path: Path, opened: Open) -> None:
    log = opened()
    log.append(entry(0))
    assert log.begin(0) == 1
    log.append(entry(1))  # while batch 0 runs
    assert log.version_of(0) == 1
    assert log.begin(0) == 1  # batch 0 is repeated
    assert log.begin(1) == 2
    assert log.begin(2) == 2
    log.append(entry(2))  # after batch 2, or while it runs
    log.append(entry(3))
    assert log.begin(3) == 4
    assert [log.version_of(batch) for batch in range(-1, 5)] == [0, 1, 2, 2, 4, 4]


@pytest.mark.parametrize("seed", range(5))
def test_every_batch_has_the_same_version_after_restarts_and_compactions(
    tmp_path: Path, opened: Open, seed: int
) -> None:
    """At every point of a random history, as a driver would find it."""
    dice = random.Random(seed)
    log, begun = opened(), -1
    ran: dict[int, int] = {}
    number, oldest = 0, -1
    for _ in range(120):
        match dice.choice(["begin", "begin", "change", "change", "restart", "compact"]):
            case "begin":
                batch = dice.choice([begun, begun + 1]) if begun >= 0 else 0
                begun = max(begun, batch)
                assert log.begin(batch) == ran.setdefault(batch, log.version_of(batch))
            case "change":
                log.append(entry(number))
                number += 1
            case "restart":
                log = opened(begun)
            case "compact":
                oldest = max(oldest, begun - 3)
                log.compact(log.version_of(oldest))
        assert {batch: log.version_of(batch) for batch in range(max(oldest, 0), begun + 1)} == {
            batch: ran[batch] for batch in range(max(oldest, 0), begun + 1)
        }
        assert [*queries_of(log)] == [*range(number)]
        assert log.version == number


# --- compaction ---


def history(seed: int, count: int) -> list[dict[str, Any]]:
    """Changes of all kinds, as a registry would make them."""
    dice = random.Random(seed)
    number = 0
    running: dict[int, bool] = {}
    stopped: list[int] = []
    found: list[dict[str, Any]] = []
    for _ in range(count):
        kind = dice.choice(["register", "register", "replace", "unregister", "stop", "pause"])
        one = dice.choice([*running]) if running else None
        if kind == "register" or one is None:
            rows = [entry(number + place)["register"][0] for place in range(dice.randrange(1, 4))]
            found.append({"register": rows})
            running |= dict.fromkeys(range(number, number + len(rows)), False)
            number += len(rows)
        elif kind == "replace":
            found.append({"register": entry(number)["register"], "unregister": [one]})
            del running[one]
            running[number] = False
            number += 1
        elif kind == "unregister":
            gone = stopped.pop() if stopped and dice.random() < 0.3 else one
            running.pop(gone, None)
            found.append({"unregister": [gone]})
        elif kind == "stop":
            del running[one]
            stopped.append(one)
            found.append({"stop": [[one, "its sink failed: why\n"]]})
        else:
            running[one] = not running[one]
            found.append({"pause" if running[one] else "resume": [one]})
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("crashes", [False, True])
def test_compaction_keeps_the_meaning(
    tmp_path: Path, opened: Open, seed: int, crashes: bool
) -> None:
    """A crash may come after the base was written, and before the log is."""
    changes = history(seed, 60)
    log = opened()
    expected: Queries = {}
    dice = random.Random(seed)
    for number, change in enumerate(changes, start=1):
        assert log.append(change) == number
        apply(expected, change)
        if dice.random() < 0.2:
            before = (tmp_path / "log").read_bytes()
            log.compact(dice.randint(log.first, number))
            if crashes:
                (tmp_path / "log").write_bytes(before)
                log = opened()
        assert queries_of(log) == expected
        assert log.version == number
    log = opened()
    assert queries_of(log) == expected
    assert log.version == len(changes)


def test_numbers_are_not_used_again_after_compaction(tmp_path: Path, opened: Open) -> None:
    log = opened()
    log.append({"register": [[7, "seven", 5, {"text": "x"}]]})
    log.append({"unregister": [7]})
    log.compact(2)
    assert (log.base["next_number"], log.base["next_template"]) == (8, 6)
    log = opened()
    log.append({"register": [[8, "eight", 3, {"text": "x"}]]})
    log.compact(3)
    assert (log.base["next_number"], log.base["next_template"]) == (9, 6)
