"""A folder of queries: what is new, changed, gone or bad since the last look."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from quadweir.commands.queryfolder import FolderWatch, QueryFolder
from quadweir.errors import QuadweirError, QuerySyntaxError, UsageError
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.network.status import Registration

QUERY = "SELECT ?x { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } }"


@pytest.fixture
def folder(tmp_path: Path) -> QueryFolder:
    (tmp_path / "q").mkdir()
    return QueryFolder(tmp_path / "q", ["urn:s"], ["taken"])


def write(folder: QueryFolder, name: str, text: str = QUERY) -> Path:
    file = folder.folder / name
    file.write_text(text)
    return file


def test_files_come_change_and_go(folder: QueryFolder) -> None:
    assert not folder.look()
    file = write(folder, "a.rq")
    write(folder, "b.rq")
    write(folder, ".c.rq")
    write(folder, "d.txt")
    (folder.folder / "e.rq").mkdir()
    assert [each.name for each in folder.look().queries] == ["a", "b"]
    assert not folder.look()
    write(folder, "a.rq", QUERY.replace("5s", "7s"))
    (changed,) = folder.look().queries
    assert (changed.name, changed.query.windows[0].scope.range_ms) == ("a", 7000)
    file.unlink()
    assert folder.look().gone == ("a",)
    assert folder.names() == ["b"]


def test_a_file_that_was_only_touched_is_as_before(folder: QueryFolder) -> None:
    file = write(folder, "a.rq")
    folder.look()
    os.utime(file, (1, 1))
    assert not folder.look()


def test_a_file_of_equal_size_and_another_time_is_read_again(folder: QueryFolder) -> None:
    file = write(folder, "a.rq")
    folder.look()
    write(folder, "a.rq", QUERY.replace("5s", "6s"))
    os.utime(file, (1, 1))
    assert len(folder.look().queries) == 1


def test_a_bad_file_is_said_once_with_its_place(folder: QueryFolder) -> None:
    file = write(folder, "a.rq", "SELECT ?x\n WHER {}")
    (error,) = folder.look().errors
    assert isinstance(error, QuerySyntaxError)
    assert str(error.span).startswith(f"{file}:2:2")
    assert not folder.look()
    assert folder.names() == ["a"], "its query of before stays"
    write(folder, "a.rq")
    assert len(folder.look().queries) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a b.rq", "a b cannot be the name of a query"),
        ("-a.rq", "-a cannot be the name"),
        ("ä.rq", "ä cannot be the name"),
        (f"{'a' * 101}.rq", "cannot be the name"),
        ("taken.rq", "there is a query taken in the file of the application"),
    ],
)
def test_only_safe_and_free_names_are_taken(folder: QueryFolder, name: str, message: str) -> None:
    write(folder, name)
    change = folder.look()
    (error,) = change.errors
    assert message in error.message
    assert not change.queries
    assert not folder.look()


def test_links_may_not_lead_out_of_the_folder(folder: QueryFolder, tmp_path: Path) -> None:
    (tmp_path / "secret.rq").write_text(QUERY)
    (folder.folder / "a.rq").symlink_to(tmp_path / "secret.rq")
    (folder.folder / "b.rq").symlink_to(folder.folder / "c.rq")
    (folder.folder / "c.rq").write_text(QUERY)
    (folder.folder / "d.rq").symlink_to(folder.folder / "nowhere.rq")
    os.mkfifo(folder.folder / "pipe.rq")
    change = folder.look()
    assert [each.name for each in change.queries] == ["b", "c"]
    out, nowhere = change.errors
    assert out.message.endswith("a.rq is a link that leads out of the folder")
    assert nowhere.message.startswith("no such file")


def test_a_query_may_read_only_the_streams_of_the_network(folder: QueryFolder) -> None:
    file = write(folder, "a.rq", QUERY.replace("urn:s", "urn:t"))
    (error,) = folder.look().errors
    assert "the query reads the stream <urn:t>, which is not declared" in error.message
    assert error.span is not None
    assert error.span.source == str(file)


def test_a_folder_that_cannot_be_listed_loses_no_query(folder: QueryFolder) -> None:
    write(folder, "a.rq")
    folder.look()
    folder.folder.rename(folder.folder.with_name("away"))
    change = folder.look()
    assert (change.queries, change.gone) == ((), ())
    assert "cannot list" in change.errors[0].message


class Calls:
    """What a network is asked for; it refuses the queries named `refused`."""

    def __init__(self) -> None:
        self.made: list[tuple[str, ...]] = []
        self.is_full = False

    def register_all(self, queries: Mapping[str, QueryText], *, replacing: bool) -> Registration:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "log")
        assert replacing
        self.made.append(("register", *queries))
        refused = {name: UsageError("no") for name in queries if name == "refused"}
        return Registration(tuple(name for name in queries if name not in refused), refused)

    def unregister(self, *queries: str) -> None:
        self.made.append(("unregister", *queries))


def test_changes_are_made_in_whole_calls_and_told(folder: QueryFolder) -> None:
    network, told, errors = Calls(), list[str](), list[QuadweirError]()
    watch = FolderWatch(folder, network, ["a"], tell=told.append, report=errors.append)
    write(folder, "a.rq")
    write(folder, "b.rq")
    file = write(folder, "refused.rq")
    watch.apply(folder.look())
    assert network.made == [("register", "a", "b", "refused")]
    assert told == ["quadweir: registered the query b", "quadweir: replaced the query a"]
    assert [str(each.span) for each in errors] == ["None"]
    file.unlink()
    (folder.folder / "a.rq").unlink()
    watch.apply(folder.look())
    assert network.made[1:] == [("unregister", "a")], "what was refused was never there"
    assert told[2:] == ["quadweir: unregistered the query a"]


def test_changes_that_could_not_be_made_are_made_later(folder: QueryFolder) -> None:
    network, told, errors = Calls(), list[str](), list[QuadweirError]()
    watch = FolderWatch(folder, network, [], tell=told.append, report=errors.append)
    write(folder, "a.rq")
    write(folder, "b.rq", "bad")
    network.is_full = True
    watch.look()
    watch.look()
    assert [each.message for each in errors[1:]] == ["no space left on log"], "said once"
    network.is_full = False
    watch.look()
    watch.look()
    assert network.made == [("register", "a")]
    assert told == ["quadweir: registered the query a"]
    assert len(errors) == 2
