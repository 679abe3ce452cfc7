"""The journal of a shard in a folder: it is read back as it was written, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quadweir.errors import StateError
from quadweir.runtime.shard import journal
from quadweir.runtime.shard.folderjournal import FolderJournal

LAST = 7


class Kept:
    """A shard that holds the blobs it was given, and makes a checksum of nothing."""

    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self.noted = ""

    def take(self, blobs: list[bytes], step: str, replayed: int) -> Iterator[Any]:
        del step, replayed
        self.replay(blobs, len(self.blobs))
        yield from ()

    def lasting(self, blobs: list[bytes]) -> list[bytes]:
        return blobs

    def mark(self) -> int:
        return len(self.blobs)

    def replay(self, blobs: list[bytes], mark: int) -> None:
        del mark
        self.blobs += blobs
        self.noted = f"after {len(self.blobs)}"

    def note(self) -> str:
        return self.noted

    def resume(self, note: str) -> None:
        self.noted = note

    def snapshot(self) -> bytes:
        return b"|".join(self.blobs)

    def restore(self, data: bytes) -> None:
        self.blobs = data.split(b"|")


def blob(batch: int) -> bytes:
    return f"blob {batch}".encode()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shard's folder with a snapshot in it and a log after that."""
    monkeypatch.setattr(journal, "LONGEST_LOG", 5)
    log, shard = FolderJournal(tmp_path), Kept()
    log.recover(shard, 0)
    for batch in range(LAST + 1):
        list(shard.take([blob(batch)], "", 0))
        log.append(shard, batch, [blob(batch)])
    log.close()
    assert {each.name for each in tmp_path.iterdir()} == {"lock", "snapshot-4", "log-4"}
    return tmp_path


def taken_up(folder: Path) -> bool:
    """Take the shard up as it was before the next batch; tells whether it was not refused."""
    log, shard = FolderJournal(folder), Kept()
    try:
        log.recover(shard, LAST + 1)
    except StateError:
        return False
    finally:
        log.close()
    assert shard.blobs == [blob(batch) for batch in range(LAST + 1)]
    assert shard.noted == f"after {LAST + 1}"
    return True


def test_files_that_are_as_they_were_are_taken_up(folder: Path) -> None:
    assert taken_up(folder)


@pytest.mark.parametrize("name", ["snapshot-4", "log-4"])
def test_a_file_that_was_changed_cut_or_removed_is_refused(folder: Path, name: str) -> None:
    file = folder / name
    whole = file.read_bytes()
    for at in range(len(whole)):
        for bit in range(8):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
            assert not taken_up(folder)
        file.write_bytes(whole[:at])
        assert not taken_up(folder)
    file.unlink()
    assert not taken_up(folder)
    file.write_bytes(whole)
    assert taken_up(folder)


def test_a_lock_that_was_removed_is_made_again(folder: Path) -> None:
    (folder / "lock").unlink()
    assert taken_up(folder)
