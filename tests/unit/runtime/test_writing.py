"""Arguments of `write_stream`: which sink they mean, and what is refused."""

from datetime import timedelta
from pathlib import Path

import pytest

from quadweir.errors import UsageError
from quadweir.runtime.writing import WriteRequest, letters_to, trigger_of
from quadweir.sinks.files import FileSink
from quadweir.sinks.kafka import KafkaSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.memory import MemorySink
from quadweir.sinks.tables import ParquetSink, TableSink


def sink(**asked):
    return WriteRequest(**asked).sink(None)


def test_each_format_has_its_sink() -> None:
    assert sink(form="parquet", path="file:///data/a") == ParquetSink(Path("/data/a"))
    assert sink(form="jsonl", path="a") == FileSink(Path("a"), LineFormat.JSONL)
    assert sink(form="delta", path="s3a://b/a") == TableSink(form="delta", path="s3a://b/a")
    assert sink(form="delta", path="/a").path == "/a"
    assert sink(form="delta", table="x.y") == TableSink(form="delta", table="x.y")
    assert sink(table="y", options={"a": "b"}) == TableSink(table="y", options={"a": "b"})
    kafka = sink(form="kafka", servers="h:1", topic="t", name="q", options={"kafka.acks": "all"})
    assert isinstance(kafka, KafkaSink)
    assert (kafka.form, kafka.time, kafka.name, kafka.topic) == (LineFormat.JSONL, "t", "q", "t")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "nothing says where answers go"),
        ({"form": "orc", "path": "a"}, "there is no format 'orc'"),
        ({"form": "table"}, "there is no format 'table'"),
        ({"form": "parquet"}, "parquet needs path"),
        ({"form": "parquet", "path": "s3a://bucket/a"}, "is not a local path"),
        ({"form": "jsonl", "path": "a", "topic": "t"}, "jsonl has no topic"),
        ({"form": "kafka", "servers": "h:1"}, "kafka needs topic"),
        ({"form": "kafka", "servers": "h:1", "topic": "t", "path": "a"}, "kafka and path exclude"),
        ({"form": "memory"}, "memory needs name"),
        ({"form": "console", "options": {"a": "b"}}, "console has no options"),
        ({"form": "console", "function": print}, "foreach_batch and format exclude"),
        ({"table": "t", "path": "a"}, "table and path exclude"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(asked, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        sink(**asked)
    assert caught.value.hint


def test_answers_that_are_kept_need_a_checkpoint() -> None:
    for asked in ({"form": "parquet"}, {"form": "kafka"}, {"table": "t"}):
        with pytest.raises(UsageError, match="needs a checkpoint"):
            WriteRequest(**asked).checkpoint(None)
    for asked in ({"form": "memory"}, {"form": "console"}, {"function": print}):
        assert WriteRequest(**asked).checkpoint(None).is_dir()
    assert WriteRequest(form="parquet").checkpoint("file:///a") == Path("/a")


def test_a_trigger_is_a_duration_or_available_now() -> None:
    assert trigger_of(None) == (None, False)
    assert trigger_of(timedelta(seconds=1)) == (timedelta(seconds=1), False)
    with pytest.raises(UsageError, match="not a duration: sometimes"):
        trigger_of("sometimes")


def test_dead_letters_go_to_a_sink_or_a_folder() -> None:
    memory = MemorySink()
    assert letters_to(memory) is memory
    assert letters_to(None) is None
    assert letters_to("dead") == FileSink(Path("dead"), LineFormat.JSONL)
