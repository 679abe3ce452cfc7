"""How much a batch takes from a source."""

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from quadweir.errors import DeclarationError
from quadweir.sources import filesource, live
from quadweir.sources.declare import (
    Arrival,
    FolderSource,
    Format,
    KafkaSource,
    MqttSource,
    StreamDeclaration,
    TcpSource,
    loads,
)
from quadweir.sources.fileplan import FilePlan


def ends(reader: filesource.WatchingReader) -> list[int]:
    """Where the batches end that take all that is there."""
    found = [0]
    while (
        end := reader.latestOffset({"files": found[-1]}, reader.getDefaultReadLimit())["files"]
    ) > found[-1]:
        found.append(end)
    return found[1:]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(7):
        (tmp_path / f"{number}.stream").write_text("x" * 40)
    (tmp_path / "3.stream").write_text("x" * 500)
    return tmp_path


def reader(folder: Path, most: int | None = None) -> filesource.WatchingReader:
    plan = FilePlan(str(folder), "urn:s", Format.TIMED_LINES, max_files_per_batch=most)
    return filesource.WatchingReader(plan)


def test_files_end_a_batch_by_their_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ends(reader(folder)) == [7]
    monkeypatch.setattr(filesource, "BATCH_BYTES", 100)
    assert ends(reader(folder)) == [3, 4, 7]


def test_files_end_a_batch_by_their_number(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesource, "BATCH_BYTES", 100)
    assert ends(reader(folder, 2)) == [2, 4, 6, 7]


def test_a_run_over_what_is_there_now_has_several_batches(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filesource, "BATCH_BYTES", 100)
    found = reader(folder)
    found.prepareForTriggerAvailableNow()
    (folder / "8.stream").write_text("x")
    assert found.latestOffset({"files": 4}, ReadAllAvailable()) == {"files": 7}
    assert found.latestOffset({"files": 7}, ReadAllAvailable()) == {"files": 7}


@pytest.mark.parametrize(("most", "wanted"), [(None, 100_000), (50, 50)])
def test_live_sources_take_so_many_records(
    monkeypatch: pytest.MonkeyPatch, most: int | None, wanted: int
) -> None:
    seen = {}
    for name in ("kafka", "mqtt", "tcp"):
        monkeypatch.setattr(
            live, f"read_{name}", lambda _, _name=name, **options: seen.update({_name: options})
        )

    def opened(source) -> None:
        declared = StreamDeclaration(
            iri="urn:s",
            source=source,
            format=Format.JSONL,
            time=Arrival(),
            max_per_batch=most,
        )
        live.open_live(None, declared, spool=Path())

    opened(KafkaSource(servers="h:1", topic="t"))
    opened(TcpSource(port=1))
    opened(MqttSource(topic="t"))
    assert seen["kafka"]["options"]["maxOffsetsPerTrigger"] == str(wanted)
    assert seen["tcp"]["max_records_per_trigger"] == wanted
    assert seen["mqtt"]["max_records_per_trigger"] == wanted
    opened(KafkaSource(servers="h:1", topic="t", options={"maxOffsetsPerTrigger": "7"}))
    assert seen["kafka"]["options"]["maxOffsetsPerTrigger"] == "7"


def test_it_is_declared_as_other_rules_are() -> None:
    table = 'source = { kind = "folder", path = "a", watch = true }\nformat = "timed-lines"\n'
    declared = loads(f'[streams."urn:s"]\n{table}max_per_batch = 5', base=Path())["urn:s"]
    assert declared.max_per_batch == 5
    assert declared.as_table()["max_per_batch"] == 5
    for bad in (0, -1, 10**10):
        with pytest.raises(DeclarationError, match="max_per_batch is"):
            StreamDeclaration(
                iri="urn:s",
                source=FolderSource(path=Path("a"), watch=True),
                format=Format.TIMED_LINES,
                max_per_batch=bad,
            )
