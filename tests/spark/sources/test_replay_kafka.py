"""What `quadweir replay --to kafka:...` sends arrives in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from brokers import KafkaBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_units_become_messages_in_order(spark: SparkSession, kafka: KafkaBroker) -> None:
    from quadweir.commands.replayoutputs import output_for

    topic = kafka.topic()
    output = output_for(f"kafka:{kafka.address}/{topic}", ".stream")
    output.open()
    output.send([f"{n} <urn:a> <urn:p> <urn:b> ." for n in range(20)])
    output.send(["20 <urn:a> <urn:p> <urn:b> <urn:g> .\n20 <urn:a> <urn:p> <urn:c> <urn:g> ."])
    output.close()
    messages = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", kafka.address)
        .option("subscribe", topic)
        .load()
        .orderBy("offset")
        .selectExpr("cast(value as string)")
        .collect()
    )
    assert [int(row.value.split(" ")[0]) for row in messages] == list(range(21))
    assert messages[-1].value.count("\n") == 1
