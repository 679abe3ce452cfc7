"""Errors of the machine are not reported as our internal errors."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace

import pytest

from quadweir.cli import main
from quadweir.commands.faults import known_fault, naming_full_disk

# Every Linux has this file system without space: each write fails with ENOSPC.
FULL = Path("/dev/full")


def trial(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], act) -> str:
    """Run a function as a command; return its standard error."""
    import quadweir.commands.doctor as command

    def doctor() -> None:
        act()

    monkeypatch.setattr(command, "doctor", doctor)
    with pytest.raises(SystemExit) as ended:
        main(["doctor"])
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "QW-INTERNAL" not in said
    return said


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_named(monkeypatch, capsys):
    def act() -> None:
        with FULL.open("w") as file:
            file.write("x")

    said = trial(monkeypatch, capsys, act)
    assert "error[QW-ENVIRONMENT]: no space left on" in said
    assert "hint: Free some space" in said


def test_paths_that_cannot_be_opened_are_named(monkeypatch, capsys, tmp_path: Path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "file").write_text("")
    said = trial(monkeypatch, capsys, (tmp_path / "one").read_text)
    assert f"{tmp_path}/one is a link that leads to itself" in said
    said = trial(monkeypatch, capsys, (tmp_path / ("a" * 5000)).read_text)
    assert "the path is too long: " in said
    assert len(said) < 500
    said = trial(monkeypatch, capsys, Path(f"{tmp_path}/a\0b").read_text)
    assert "a path has a NUL character in it" in said
    said = trial(monkeypatch, capsys, (tmp_path / "file" / "inside").read_text)
    assert "goes through a file that is no folder" in said
    said = trial(monkeypatch, capsys, (tmp_path / "gone").read_text)
    assert f"there is no {tmp_path}/gone" in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "java.io.IOException: No space left on device",
            "no space left on a file or folder in use",
        ),
        ("java.io.FileNotFoundException: /c/0 (Permission denied)", "no permission for /c/0"),
        ("java.io.FileNotFoundException: /c/0 (Read-only file system)", "/c/0 can only be read"),
        ("java.nio.file.NoSuchFileException: /proc/offsets", "there is no /proc/offsets"),
        (
            "File file:/proc/commits/.0.tmp does not exist SQLSTATE: XXKST",
            "there is no /proc/commits",
        ),
        (
            "a traceback\nFileNotFoundError: [Errno 2] No such file or directory: 'no-such-out'\n",
            "there is no no-such-out",
        ),
        (
            "FileNotFoundError: [Errno 2] Failed to open local file '/proc/shards/0.arrow'. Detail: ...",
            "there is no /proc/shards",
        ),
        ("FileNotFoundError: [Errno 2] No such file", "a file or folder in use is gone"),
        (
            "OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on",
            "no space left on a file or folder in use",
        ),
    ],
)
def test_what_java_says_of_files_is_understood(monkeypatch, capsys, text: str, expected: str):
    def act() -> None:
        raise RuntimeError(f"job aborted: {text}")

    assert expected in trial(monkeypatch, capsys, act)


def test_the_cause_counts(monkeypatch, capsys):
    def act() -> None:
        try:
            raise OSError(errno.EROFS, "Read-only file system", "/out/part-0")
        except OSError as error:
            raise RuntimeError("the sink ended") from error

    assert "/out/part-0 can only be read" in trial(monkeypatch, capsys, act)


def test_what_the_machine_refuses_a_worker_is_not_our_error(monkeypatch, capsys):
    def act() -> None:
        raise RuntimeError(
            "quadweir.errors.InternalError: a process that holds shards failed\n"
            "FileNotFoundError: [Errno 2] No such file or directory: '/proc/no-such/shards/0'\n"
        )

    assert "there is no /proc/no-such" in trial(monkeypatch, capsys, act)


def test_a_full_disk_that_is_not_named_is_the_fullest_of_those_in_use(monkeypatch, tmp_path: Path):
    free = {tmp_path: 4096, Path("/"): 2**40}
    monkeypatch.setattr(
        "quadweir.commands.faults.shutil.disk_usage",
        lambda place: SimpleNamespace(free=free.get(place, 2**40)),
    )
    with pytest.raises(OSError) as caught, naming_full_disk(tmp_path / "checkpoint", "/out"):
        raise RuntimeError("java.io.IOException: No space left on device")
    assert known_fault(caught.value).message == f"no space left on {tmp_path}/checkpoint"
    with pytest.raises(OSError) as caught, naming_full_disk(Path("/state"), f"{tmp_path}/out"):
        raise RuntimeError("java.io.IOException: No space left on device")
    assert known_fault(caught.value).message == f"no space left on {tmp_path}/out"
    with pytest.raises(RuntimeError, match="something else"), naming_full_disk(tmp_path, None):
        raise RuntimeError("something else")
