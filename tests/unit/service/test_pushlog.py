"""The log of pushed records: what was acknowledged is there, once, also after a crash."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from quadweir.errors import SourceError, StateError
from quadweir.service.problems import ConflictError, PressureError
from quadweir.service.pushlog import Pushed, PushLog
from quadweir.sources.pushlog import SUFFIX, PushLogReader, frames_of, records_of


def push(log: PushLog, *values: str, key: str = "") -> Pushed:
    return log.append(list(values), [7] * len(values), now_ms=5, key=key)


def read(folder: Path, start: int = 0, end: int | None = None) -> list[tuple[int, str]]:
    reader = PushLogReader(folder)
    return [
        (frame.first + at, value)
        for piece in reader.read(start, reader.end() if end is None else end)
        for frame in frames_of(piece)
        for batch in records_of(frame)
        for at, value in enumerate(batch.column("value").to_pylist())
    ]


def test_records_are_numbered_and_read_in_order(tmp_path: Path) -> None:
    log = PushLog(tmp_path, segment_bytes=500)
    for number in range(20):
        assert push(log, f"a{number}", f"b{number}").first == 2 * number
    wanted = [(2 * n + at, f"{name}{n}") for n in range(20) for at, name in enumerate("ab")]
    assert read(tmp_path) == wanted
    assert len(list(tmp_path.glob(f"*{SUFFIX}"))) > 3
    log.close()
    again = PushLog(tmp_path, segment_bytes=500)
    assert push(again, "last").first == 40
    assert read(tmp_path)[-1] == (40, "last")


def test_a_batch_ends_with_a_whole_frame(tmp_path: Path) -> None:
    log = PushLog(tmp_path, segment_bytes=700)
    for number in range(10):
        push(log, f"{number}")
    reader = PushLogReader(tmp_path)
    place, found = 0, []
    while place < reader.end():
        end = reader.limit(place, size=600, count=100)
        assert end > place
        found += read(tmp_path, place, end)
        place = end
    assert [value for _, value in found] == [str(number) for number in range(10)]
    assert reader.limit(0, size=10**9, count=3) == reader.limit(0, size=10**9, count=3)
    assert len(read(tmp_path, 0, reader.limit(0, size=10**9, count=3))) == 3


def test_the_time_of_arrival_never_goes_back(tmp_path: Path) -> None:
    log = PushLog(tmp_path)
    for now in (5, 9, 7):
        log.append(["a", "b"], [None, 3], now_ms=now)
    log.close()
    again = PushLog(tmp_path)
    again.append(["a"], [None], now_ms=1)
    times = [
        time
        for piece in PushLogReader(tmp_path).read(0, again.end)
        for frame in frames_of(piece)
        for batch in records_of(frame)
        for time in batch.column("time").to_pylist()
    ]
    assert times == [5, 3, 9, 3, 9, 3, 9]
    again.close()


def test_a_repeated_key_gives_the_first_answer(tmp_path: Path) -> None:
    log = PushLog(tmp_path)
    assert push(log, "a", "b", key="k") == Pushed(0, 2)
    assert push(log, "a", "b", key="k") == Pushed(0, 2, repeated=True)
    with pytest.raises(ConflictError):
        push(log, "c", key="k")
    with pytest.raises(ConflictError):
        log.append(["a", "b"], [7, 7], now_ms=5, key="k", digest=b"other")
    log.close()
    again = PushLog(tmp_path)
    assert push(again, "a", "b", key="k") == Pushed(0, 2, repeated=True)
    assert [value for _, value in read(tmp_path)] == ["a", "b"]


def test_a_frame_that_a_crash_cut_short_is_dropped(tmp_path: Path) -> None:
    log = PushLog(tmp_path)
    push(log, "a")
    end = log.end
    push(log, "b")
    log.close()
    file = next(tmp_path.glob(f"*{SUFFIX}"))
    whole = file.read_bytes()
    for size in range(end, len(whole)):
        file.write_bytes(whole[:size])
        cut = PushLog(tmp_path)
        assert (cut.end, cut.records) == (end, 1)
        assert push(cut, "c").first == 1
        assert [value for _, value in read(tmp_path)] == ["a", "c"]
        cut.close()


def test_nobody_reads_what_is_not_on_disk(tmp_path: Path) -> None:
    log = PushLog(tmp_path)
    push(log, "a")
    end = log.end
    log._write(b"not on disk")
    assert PushLogReader(tmp_path).end() == end
    with pytest.raises(SourceError):
        read(tmp_path, 0, end + 5)


def test_what_all_have_read_goes(tmp_path: Path) -> None:
    log = PushLog(tmp_path, segment_bytes=300, kept_bytes=1, most_bytes=3_000)
    for number in range(8):
        push(log, f"{number}", key=f"k{number}")
    log.forget([("n1", 0)])
    assert PushLogReader(tmp_path).first() == 0
    assert log.unread == log.end
    (tmp_path / "readers").mkdir()
    (tmp_path / "readers" / "n1").write_text(str(log.end))
    log.forget([("n1", 0), ("n2", 0)])
    assert PushLogReader(tmp_path).first() == 0
    log.forget([("n1", 0)])
    assert PushLogReader(tmp_path).first() > 0
    assert log.unread == 0
    with pytest.raises(SourceError):
        read(tmp_path)
    # Its record is gone, so nothing is known of the key.
    assert not push(log, "0", key="k0").repeated


def test_too_much_that_waits_is_refused(tmp_path: Path) -> None:
    log = PushLog(tmp_path, most_bytes=100)
    push(log, "a" * 200)
    log.forget([("n1", 0)])
    with pytest.raises(PressureError):
        push(log, "b")
    log.forget([])
    push(log, "b")


def test_only_one_service_writes_a_log(tmp_path: Path) -> None:
    log = PushLog(tmp_path)
    with pytest.raises(StateError):
        PushLog(tmp_path)
    log.close()
    PushLog(tmp_path).close()


def test_threads_share_the_log(tmp_path: Path) -> None:
    log = PushLog(tmp_path)

    def work(name: int) -> None:
        for number in range(25):
            push(log, f"{name}.{number}")

    threads = [threading.Thread(target=work, args=(each,)) for each in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = read(tmp_path)
    assert [number for number, _ in found] == list(range(100))
    for name in range(4):
        own = [value for _, value in found if value.startswith(f"{name}.")]
        assert own == [f"{name}.{number}" for number in range(25)]
