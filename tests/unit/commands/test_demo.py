"""The steps of the demo before Spark starts."""

import pytest

from quadweir.cli import main
from quadweir.commands import demo
from quadweir.errors import UsageError


def test_a_folder_that_no_demo_made_is_left_alone(tmp_path):
    (tmp_path / "rdf").mkdir()
    (tmp_path / "rdf" / "precious.nt").touch()
    with pytest.raises(UsageError, match="not empty"):
        demo._clear(tmp_path)
    assert (tmp_path / "rdf" / "precious.nt").exists()


def test_an_earlier_run_is_removed_and_other_files_are_not(tmp_path):
    demo._clear(tmp_path / "new")
    for part in ("recording", "rdf", "checkpoint"):
        (tmp_path / "new" / part).mkdir()
    (tmp_path / "new" / "notes.txt").touch()
    demo._clear(tmp_path / "new")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"notes.txt", ".quadweir-demo"}


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="not a folder"):
        demo._clear(tmp_path / "file")


@pytest.mark.parametrize("words", [("--seconds", "0"), ("--rate", "1"), ("--rate", "many")])
def test_impossible_numbers_end_with_2(words, capsys):
    with pytest.raises(SystemExit) as end:
        main(["demo", *words])
    assert end.value.code == 2
