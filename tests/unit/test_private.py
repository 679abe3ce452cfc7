"""Other users of the machine can neither read our files and folders nor create them first."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from quadweir.errors import UsageError
from quadweir.fileformats import Compression
from quadweir.private import make_folder, private_files, replaced, umask
from quadweir.runtime.host.pool import WorkerProcess
from quadweir.runtime.spark.session import _quiet_logs
from quadweir.sinks.rdf_documents import opened

SOURCES = Path(__file__).parents[2] / "src" / "quadweir"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_new_folders_are_private_and_those_that_are_there_stay(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    make_folder(there / "a" / "b")
    assert [mode(each) for each in (there, there / "a", there / "a" / "b")] == [0o755, 0o700, 0o700]
    make_folder(there)
    assert mode(there) == 0o755


def test_a_file_where_a_folder_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        make_folder(tmp_path / "file")
    with pytest.raises(OSError):
        make_folder(tmp_path / "file" / "below")


def test_a_replaced_file_is_private_and_its_scratch_cannot_be_guessed(tmp_path: Path) -> None:
    names = set()
    for text in ("one", "two"):
        with replaced(tmp_path / "out") as scratch:
            assert mode(scratch) == 0o600
            names.add(scratch.name)
            scratch.write_text(text)
    assert len(names) == 2
    assert mode(tmp_path / "out") == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_text() == "two"


def test_a_replacement_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old")
    with pytest.raises(RuntimeError), replaced(tmp_path / "out"):
        raise RuntimeError
    assert [each.read_text() for each in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("compression", Compression)
def test_a_document_does_not_follow_a_link_planted_beside_it(
    tmp_path: Path, compression: Compression
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    out = tmp_path / "out.nt"
    for name in (f".{out.name}.part", f".{out.name}.part.plain"):
        (tmp_path / name).symlink_to(victim)
    with opened(out, compression) as file:
        file.write(b"<urn:a> <urn:b> <urn:c> .\n")
    assert victim.read_text() == "mine"
    assert mode(out) == 0o600


def test_the_environment_can_let_others_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("QUADWEIR_UMASK", "022")
    make_folder(tmp_path / "folder")
    with replaced(tmp_path / "file"):
        pass
    assert (mode(tmp_path / "folder"), mode(tmp_path / "file")) == (0o755, 0o644)


@pytest.mark.parametrize("text", ["9", "rw", "0777", "-1", "100"])
def test_what_is_no_umask_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("QUADWEIR_UMASK", text)
    with pytest.raises(UsageError, match="is not a umask"):
        umask()


def test_a_process_started_meanwhile_makes_private_files(tmp_path: Path) -> None:
    former = os.umask(0o022)
    try:
        with private_files():
            program = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()"
            subprocess.run([sys.executable, "-c", program, tmp_path / "file"], check=True)
        (tmp_path / "later").touch()
    finally:
        os.umask(former)
    assert (mode(tmp_path / "file"), mode(tmp_path / "later")) == (0o600, 0o644)


def test_the_logging_configuration_is_in_a_private_folder_with_a_random_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    planted = tmp_path / f"quadweir-log4j2-{os.getuid()}.properties"
    planted.write_text("rootLogger.level = off")
    places = set()
    for _ in range(2):
        with _quiet_logs() as option:
            place = Path(option.removeprefix("-Dlog4j2.configurationFile=file://"))
            assert "rootLogger.level = error" in place.read_text()
            assert mode(place.parent) == 0o700
            assert place.parent.parent == tmp_path
            places.add(place.parent)
    assert len(places) == 2
    assert [each.name for each in tmp_path.iterdir()] == [planted.name]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_processes_that_hold_shards_make_private_files() -> None:
    process = WorkerProcess()
    try:
        proc_status = Path(f"/proc/{process.number}/status").read_text()
    finally:
        process.end()
    assert re.search(r"^Umask:\s*0077$", proc_status, re.M)


def test_no_code_names_a_place_in_the_shared_folder_for_temporary_files() -> None:
    # `mkdtemp`, `mkstemp` and what builds on them make private files under names that others cannot
    # guess.
    named = re.compile(r"gettempdir|tempfile\.mktemp|[\"'f]/(var/)?tmp\b|/dev/shm")
    found = {
        f"{path.relative_to(SOURCES)}: {line.strip()}"
        for path in SOURCES.rglob("*")
        if path.suffix in (".py", ".java", ".sh")
        for line in path.read_text(encoding="utf-8").splitlines()
        if named.search(line)
    }
    # It only says how much room there is.
    assert {each for each in found if not each.startswith("commands/doctor.py")} == set()


@pytest.mark.parametrize("text", ["s3a://bucket/a", "hdfs://node:8020/a", "file:///tmp/a"])
def test_no_folder_is_named_after_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is an address"):
        make_folder(Path(text))
    assert not list(tmp_path.iterdir())
