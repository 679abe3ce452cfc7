"""Fetch Apache Kafka and Spark's connector to it, and run a real broker on loopback.

    python scripts/kafkabroker.py fetch           fetch what is missing, with Maven
    python scripts/kafkabroker.py run [--port N]  start a broker, print its address, stop on Ctrl-C
    python scripts/kafkabroker.py path            print where the jars lie

No Docker and no ZooKeeper: one JVM runs Kafka's broker and controller (KRaft) from a class path
that Maven filled.
"""

from __future__ import annotations

import argparse
import base64
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn
from xml.sax.saxutils import escape

from quadweir.errors import QuadweirError, SourceError
from quadweir.kafkaclient import CONNECTOR_NOTE, broker_folder, check_broker, connector_folder
from quadweir.runtime.spark.java import find_java

SCALA = "2.13"
KAFKA = "4.3.1"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
START_SECONDS = 180
STOP_SECONDS = 20


@dataclass(frozen=True)
class Artifact:
    group: str
    name: str
    version: str
    alone: bool = False  # without what it depends on

    def xml(self) -> str:
        nothing_else = (
            "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
            "</exclusions>"
        )
        return (
            f"<dependency><groupId>{escape(self.group)}</groupId>"
            f"<artifactId>{escape(self.name)}</artifactId>"
            f"<version>{escape(self.version)}</version>"
            f"{nothing_else if self.alone else ''}</dependency>"
        )


def connector(spark: str) -> tuple[Artifact, ...]:
    return (Artifact("org.apache.spark", f"spark-sql-kafka-0-10_{SCALA}", spark),)


# Registries that do not carry the connector of Spark 4.3 yet do carry this older one, whose source
# and sink the tests run on Spark 4.3 (docs/reference/source-kafka.md). Each artifact stands alone: its
# parent names a mirror that some networks do not reach, and Spark brings the rest itself.
OLDER_CONNECTOR = (
    Artifact("org.apache.spark", f"spark-sql-kafka-0-10_{SCALA}", "4.2.0", alone=True),
    Artifact(
        "org.apache.spark", f"spark-token-provider-kafka-0-10_{SCALA}", "4.1.0-preview1", alone=True
    ),
    Artifact("org.apache.kafka", "kafka-clients", "3.9.2", alone=True),
    Artifact("org.apache.commons", "commons-pool2", "2.13.1", alone=True),
)

BROKER = (
    Artifact("org.apache.kafka", f"kafka_{SCALA}", KAFKA),
    # Without a logger behind it, a broker that cannot start would not say why.
    Artifact("org.slf4j", "slf4j-simple", "1.7.36", alone=True),
)


def say(text: str) -> None:
    print(f"kafka: {text}", file=sys.stderr, flush=True)


def fetch(*, refresh: bool = False) -> None:
    """Fill both folders; each appears whole or not at all."""
    folder = connector_folder()
    if refresh or not folder.is_dir():
        spark = version("pyspark")
        note = f"the connector of Spark {spark}"
        try:
            copy_jars(connector(spark), folder, note)
        except SourceError as error:
            names = ", ".join(f"{one.name} {one.version}" for one in OLDER_CONNECTOR)
            note = f"an older connector than Spark {spark}: {names}"
            say(f"{error.message}; taking {note}")
            copy_jars(OLDER_CONNECTOR, folder, note)
    if refresh or not broker_folder().is_dir():
        copy_jars(BROKER, broker_folder(), f"Apache Kafka {KAFKA}")


def copy_jars(artifacts: Iterable[Artifact], folder: Path, note: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise SourceError("Maven is not installed", hint="As root: apt-get install maven")
    say(f"fetching {note}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>quadweir</groupId><artifactId>kafka</artifactId><version>1</version>"
            f"<dependencies>{''.join(one.xml() for one in artifacts)}</dependencies></project>",
            encoding="utf-8",
        )
        jars = Path(scratch) / "jars"
        options = [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        done = subprocess.run(
            # -U: a release that was missing yesterday may be there today.
            [maven, "-B", "-q", "-U", "-C", "-f", str(pom), COPY, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode != 0 or not any(jars.glob("*.jar")):
            raise SourceError(f"Maven could not fetch {note}", detail=first_error(done.stdout))
        drop_what_spark_has(jars, keep=folder == broker_folder())
        (jars / CONNECTOR_NOTE).write_text(note + "\n", encoding="utf-8")
        if folder.is_dir():
            shutil.rmtree(folder)
        jars.rename(folder)


def first_error(output: str) -> str:
    return next((line for line in output.splitlines() if "ERROR" in line), output.strip())[:600]


def drop_what_spark_has(jars: Path, *, keep: bool) -> None:
    """A second copy of a library that Spark brings in another version could shadow Spark's."""
    if keep:
        return
    import pyspark

    def artifact(jar: Path) -> str:
        return jar.name.rpartition("-")[0]

    spark = {artifact(jar) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    for jar in jars.glob("*.jar"):
        if artifact(jar) in spark:
            jar.unlink()


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago; held together, so that they differ."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def configure(folder: Path, port: int, controller: int) -> Path:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(folder / "data"),
        "num.partitions": "2",
        # So that tests can send messages that are too long for Quadweir.
        "message.max.bytes": str(32 * 2**20),
        # One broker cannot keep the three copies that these topics have by default.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    file = folder / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return file


def die_with_parent() -> None:
    """A broker must not outlive the script that was killed before it could stop it (Linux)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def run(port: int, data: Path | None) -> int:
    """Run a broker until SIGINT or SIGTERM; its address is the one line on standard output."""
    fetch()
    java = find_java(os.environ).executable
    folder = data or Path(tempfile.mkdtemp(prefix="quadweir-kafka-"))
    folder.mkdir(parents=True, exist_ok=True)
    chosen, controller = free_ports(2)
    port = port or chosen
    properties = configure(folder, port, controller)
    command = [str(java), "-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{broker_folder()}/*"]

    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    log = folder / "broker.log"
    broker: subprocess.Popen[bytes] | None = None
    try:
        with log.open("wb") as out:
            if not (folder / "data" / "meta.properties").is_file():
                cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
                format_it = ["format", "-t", cluster, "-c", str(properties)]
                subprocess.run(
                    [*command, "kafka.tools.StorageTool", *format_it],
                    stdout=out,
                    stderr=out,
                    check=True,
                )
            broker = subprocess.Popen(
                [*command, "kafka.Kafka", str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                # Ctrl-C reaches this script alone, which then stops the broker in order.
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        wait_until_it_answers(broker, f"127.0.0.1:{port}")
        print(f"127.0.0.1:{port}", flush=True)
        say(f"running; its log is {log}; Ctrl-C stops it")
        broker.wait()
        raise SourceError("the broker ended by itself", detail=tail(log))
    except (SourceError, subprocess.CalledProcessError) as error:
        say(f"{error}\n{tail(log)}")
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        if broker is not None:
            stop_in_order(broker)
        if data is None:
            shutil.rmtree(folder, ignore_errors=True)


def wait_until_it_answers(broker: subprocess.Popen[bytes], address: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        if broker.poll() is not None:
            raise SourceError("the broker ended before it answered")
        try:
            check_broker(address, timeout_s=2)
            return
        except SourceError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def stop_in_order(broker: subprocess.Popen[bytes]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave it running
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if broker.poll() is None:
        broker.terminate()
        try:
            broker.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            broker.kill()
            broker.wait()


def tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log.is_file() else ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("fetch", help="fetch what is missing, with Maven")
    fetching.add_argument("--refresh", action="store_true", help="fetch again what is there")
    running = commands.add_parser("run", help="start a broker, print its address, stop on Ctrl-C")
    running.add_argument("--port", type=int, default=0, help="default: one that is free")
    running.add_argument("--data", type=Path, help="keep the topics there; default: forget them")
    commands.add_parser("path", help="print where the jars lie")
    given = parser.parse_args(arguments)
    try:
        if given.command == "fetch":
            fetch(refresh=given.refresh)
        elif given.command == "run":
            return run(given.port, given.data)
        print(f"connector {connector_folder()}\nbroker {broker_folder()}")
    except QuadweirError as error:
        say(str(error))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
