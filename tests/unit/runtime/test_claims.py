"""One process at a time has a checkpoint."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quadweir.errors import StateError, UsageError
from quadweir.runtime.claims import Claim

HOLDER = """
import sys
from pathlib import Path
from quadweir.runtime.claims import Claim
claim = Claim(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def other_process(checkpoint: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(checkpoint)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_process_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with (
        other_process(tmp_path / "checkpoint") as process,
        pytest.raises(StateError, match=f"process {process.pid} runs with the checkpoint"),
    ):
        Claim(tmp_path / "checkpoint")


def test_also_by_another_name_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "checkpoint")
    with other_process(tmp_path / "checkpoint"), pytest.raises(StateError):
        Claim(tmp_path / "link")


def test_a_process_that_was_killed_has_it_no_longer(tmp_path: Path) -> None:
    with other_process(tmp_path / "checkpoint") as process:
        process.kill()
        process.wait()
        with Claim(tmp_path / "checkpoint") as claim:
            assert claim.is_held


def test_one_process_may_claim_it_several_times_and_lets_go_once(tmp_path: Path) -> None:
    first, second = Claim(tmp_path), Claim(tmp_path)
    first.release()
    first.release()
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(
            [sys.executable, "-c", HOLDER, str(tmp_path)],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
    second.release()
    with other_process(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_or_is_none_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "checkpoint"):
        with pytest.raises(StateError, match="cannot be used"):
            Claim(place)


@pytest.mark.parametrize("text", ["s3a://bucket/state", "hdfs://node:8020/state", "abfss://a@b/c"])
def test_a_checkpoint_on_another_file_system_is_refused_and_no_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is not on this machine"):
        Claim(Path(text))
    assert not list(tmp_path.iterdir())
