"""Each check reports what it finds, and how to fix what is missing."""

import json
import socket
import threading
from collections import namedtuple
from contextlib import contextmanager, suppress

import pytest

from fakekafka import fake_broker
from quadweir.cli import main
from quadweir.commands import doctor
from quadweir.commands.doctor import Status
from quadweir.errors import EnvironmentProblem
from quadweir.runtime.spark import java


@contextmanager
def listener(answer):
    """A server on loopback that answers each client's first request with the result of `answer`."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(ConnectionError):
                        connection.sendall(answer(connection.recv(1000)))

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_broker_that_speaks_kafka_is_found():
    with fake_broker() as address:
        assert doctor.check_kafka_broker(address).status is Status.OK


def test_a_listener_that_does_not_speak_kafka_is_recognised():
    with listener(lambda request: b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        finding = doctor.check_kafka_broker(f"127.0.0.1:{port}")
    assert finding.status is Status.BROKEN
    assert "does not speak Kafka" in finding.found


def test_a_listener_that_hangs_up_is_recognised():
    with listener(lambda request: b"") as port:
        assert doctor.check_kafka_broker(f"127.0.0.1:{port}").status is Status.BROKEN


def test_a_port_without_a_listener_is_broken():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        finding = doctor.check_kafka_broker(f"127.0.0.1:{reserved.getsockname()[1]}")
    assert finding.status is Status.BROKEN
    assert "make kafka" in (finding.todo or "")


@pytest.mark.parametrize(
    "address", ["nonsense", ":9092", "host:", "host:0", "host:70000", "h:9x", "a:1,b"]
)
def test_wrong_addresses_end_with_2(address, capsys):
    with pytest.raises(SystemExit) as end:
        main(["doctor", "--quick", "--kafka", address])
    assert end.value.code == 2
    assert "HOST:PORT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("gib", "status"), [(0.1, Status.BROKEN), (2, Status.OPTIONAL), (9, Status.OK)]
)
def test_little_space_and_no_space_are_distinguished(gib, status, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage(0, 0, int(gib * 2**30)))
    assert {finding.status for finding in doctor.check_disk()} == {status}


def test_a_scratch_folder_that_is_not_there_is_broken(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "gone"))
    scratch = next(iter(doctor.check_disk()))
    assert scratch.status is Status.BROKEN
    assert "SPARK_LOCAL_DIRS" in (scratch.todo or "")


def test_a_package_of_the_wrong_version_is_named(monkeypatch):
    real = doctor.metadata.version
    monkeypatch.setattr(
        doctor.metadata, "version", lambda name: "3.0.1" if name == "pandas" else real(name)
    )
    finding = doctor.check_packages()
    assert finding.status is Status.BROKEN
    assert "pandas is 3.0.1, wanted" in finding.found


def test_all_is_well_here(capsys):
    with pytest.raises(SystemExit) as end:
        main(["doctor", "--quick", "--json"])
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert (end.value.code, answer["ok"], said.err) == (0, True, "")
    assert {"python", "packages", "java"} <= {check["name"] for check in answer["checks"]}


def test_without_java_it_fails_says_what_to_do_and_does_not_try_spark(monkeypatch, capsys):
    def none(environment):
        raise EnvironmentProblem("found no Java 17 or newer", hint="Install one.")

    monkeypatch.setattr(java, "find_java", none)
    with pytest.raises(SystemExit) as end:
        main(["doctor"])
    out = capsys.readouterr().out
    assert end.value.code == 1
    assert "broken   java: found no Java 17 or newer" in out
    assert "-> Install one." in out
    assert "broken   spark: not tried" in out


def test_a_check_that_falls_over_is_a_finding():
    def fall():
        raise RuntimeError("first line\nlast line")

    finding = doctor._attempt("spark", fall)
    assert (finding.status, finding.found) == (Status.BROKEN, "last line")
