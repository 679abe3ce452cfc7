"""A Kafka topic as a sink, through Spark's own connector.

After a crash, the messages of the last batch may be in the topic twice. The key of each message is
made of the stream or query, the time and a hash of the line. So a reader can drop repeated
messages, and a compacted topic drops them by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from quadweir import rows
from quadweir.addresses import read_addresses, spell
from quadweir.errors import UsageError
from quadweir.kafkaclient import check_broker, is_missing, is_secured, missing_connector
from quadweir.sinks.base import KeyedSink, SinkNeeds
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.lines import element_lines, with_line

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from quadweir.sinks.base import Batch

_HASH_BITS: Final = 256


@final
@dataclass(frozen=True, slots=True)
class KafkaSink(KeyedSink):
    """Writes lines as messages of a topic.

    Guarantee: at least once, with a key to deduplicate on.

    Attributes:
        servers: brokers as `HOST:PORT`, separated by commas.
        topic: the name of the topic.
        form: how a row becomes a line.
        name: the first part of keys if rows have no stream: the name of the query.
        key: a column to use as the key instead.
        time: the column with the time that goes into the key; default: the event time, if there is
            one.
        options: any option of Spark's connector, such as `kafka.security.protocol`.

    Raises:
        UsageError: `servers` is not a list of addresses.
    """

    servers: str
    topic: str
    form: LineFormat = LineFormat.NQUADS
    name: str = ""
    key: str | None = None
    time: str = rows.EVENT_TIME
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "servers", spell(read_addresses(self.servers)))

    @property
    def needs(self) -> SinkNeeds:
        return SinkNeeds(reads_all=True, wants_empty=False)

    def prepare(self) -> None:
        if not is_secured(self.options):
            check_broker(self.servers)

    def messages(self, frame: DataFrame) -> DataFrame:
        """Return the rows as keys and values, for `writeStream.format("kafka")` too."""
        lined = with_line(frame, self.form)
        return lined.select(self._key(frame).alias("key"), lined[rows.LINE].alias("value"))

    def elements(self, frame: DataFrame) -> DataFrame:
        """Return the elements of a batch as keys and values, one message for each."""
        lined = element_lines(frame, named=False)
        return lined.select(self._key(lined).alias("key"), lined[rows.LINE].alias("value"))

    def _key(self, frame: DataFrame) -> Column:
        """Return the key of a row that has the column `rows.LINE`."""
        from pyspark.sql import functions as F

        if self.key is not None:
            if self.key not in frame.columns:
                raise UsageError(f"the rows have no column {self.key} to use as the key")
            return F.col(self.key).cast("string")
        parts = [F.col(rows.STREAM)] if rows.STREAM in frame.columns else [F.lit(self.name)]
        if self.time in frame.columns:
            parts.append(F.col(self.time).cast("string"))
        if rows.POSITION in frame.columns and self.form is LineFormat.TIMED_LINES:
            # The position distinguishes equal elements of the same time.
            parts.append(F.hex(rows.POSITION))
        return F.concat_ws("|", *parts, F.sha2(F.col(rows.LINE), _HASH_BITS))

    def _numbered(self, frame: DataFrame, batch: Batch) -> DataFrame:
        """Return the rows as keys and values, with whole elements; equal answers get different keys.

        A solution counts as often as it was found, in one batch or in several. A repeated batch
        finds it equally often, so it gets the same keys.
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        if self.form is LineFormat.TIMED_LINES and rows.POSITION in frame.columns:
            return self.elements(frame)
        found = self.messages(frame)
        if rows.REPORT not in frame.columns or self.key is not None:
            return found
        number = F.row_number().over(Window.partitionBy("key").orderBy("key"))
        which = F.concat(F.lit(f"{batch.number}."), number.cast("string"))
        return found.withColumn("key", F.concat_ws("|", "key", which))

    def write(self, frame: DataFrame, batch: Batch) -> None:
        self.write_messages(self._numbered(frame, batch))

    def write_messages(self, frame: DataFrame) -> None:
        from pyspark.errors import AnalysisException

        options = {"kafka.bootstrap.servers": self.servers, "topic": self.topic, **self.options}
        try:
            frame.write.format("kafka").options(**options).save()
        except AnalysisException as error:
            if not is_missing(error):
                raise
            raise missing_connector() from error
