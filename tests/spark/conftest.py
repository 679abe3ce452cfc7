"""Real brokers for the tests that talk to them; where one cannot be had, its tests skip."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers import KafkaBroker, MqttBroker, running_kafka
from quadweir.kafkaclient import broker_folder, connector_jars


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    if not connector_jars() or not broker_folder().is_dir():
        pytest.skip("Kafka's jars are not here; `python scripts/kafkabroker.py fetch` needs Maven")


@pytest.fixture(scope="session")
def kafka(kafka_jars: None) -> Iterator[KafkaBroker]:
    """The broker that tests share; each takes topics of its own."""
    with running_kafka() as broker:
        yield broker


@pytest.fixture
def own_kafka(kafka_jars: None) -> Iterator[KafkaBroker]:
    """A broker that the test may stop."""
    with running_kafka() as broker:
        yield broker


@pytest.fixture
def mqtt(tmp_path: Path) -> Iterator[MqttBroker]:
    program = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("mosquitto is not installed; as root: apt-get install mosquitto")
    pytest.importorskip("paho.mqtt.client", reason="needs quadweir[mqtt]")
    folder = tmp_path / "mosquitto"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    broker = MqttBroker(program, folder, port)
    broker.start()
    yield broker
    broker.stop()
