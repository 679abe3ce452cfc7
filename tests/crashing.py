"""A driver of its own for the crash tests, killed by them.

    python crashing.py OUT live|rest files FOLDER
    python crashing.py OUT live|rest kafka ADDRESS TOPIC

Takes what the source holds in small batches and writes statements to OUT/good and dead letters to
OUT/dead. `live` never ends, so that it cannot end before it is killed; `rest` ends at the source's end.
"""

from __future__ import annotations

import sys
from pathlib import Path

from quadweir.runtime.spark.session import build
from quadweir.sinks.deadletters import with_dead_letters
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.start import start, wait
from quadweir.sources.declare import FolderSource, Format, KafkaSource, StreamDeclaration
from quadweir.sources.filesource import open_statements
from quadweir.sources.live import open_live

STREAM = "http://example.org/s"


def main(out: Path, how: str, kind: str, *where: str) -> None:
    config = {"spark.driver.memory": "600m"}
    spark = build(master="local[2]", shards=2, app_name="crashing", config=config)
    if kind == "files":
        folder = FolderSource(path=Path(where[0]), watch=True)
        declaration = StreamDeclaration(iri=STREAM, source=folder, format=Format.TIMED_LINES)
        frame = open_statements(
            spark, declaration, max_files_per_batch=1, index=out.with_name("index")
        )
    else:
        address, topic = where
        source = KafkaSource(servers=address, topic=topic, options={"maxOffsetsPerTrigger": "50"})
        declaration = StreamDeclaration(iri=STREAM, source=source, format=Format.TIMED_LINES)
        frame = open_live(spark, declaration, spool=out / "unused")
    sink = with_dead_letters(
        FileSink(out / "good", LineFormat.TIMED_LINES), FileSink(out / "dead", LineFormat.JSONL)
    )
    wait(start(frame, sink, checkpoint=out / "checkpoint", available_now=how == "rest"))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
