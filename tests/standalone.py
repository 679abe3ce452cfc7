"""Spark's standalone cluster on this machine, whose workers come and go."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Self

from brokers import answers, until
from quadweir.runtime.spark.java import ensure_java

_DEPLOY = "org.apache.spark.deploy"
_HERE = ("--host", "127.0.0.1", "--webui-port", "0")


class Standalone:
    """A master, and as many workers as are added; all end with the block."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._log = folder, folder / "spark.log"
        self._parts: list[subprocess.Popen[bytes]] = []
        self._workers = 0
        self.url = ""

    def __enter__(self) -> Self:
        with socket.create_server(("127.0.0.1", 0)) as held:
            port = held.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        self._start(f"{_DEPLOY}.master.Master", *_HERE, "--port", str(port))
        until(lambda: answers(port), "the master")
        return self

    def __exit__(self, *error: object) -> None:
        for part in self._parts:
            self.kill(part)

    def add_worker(self, *, cores: int = 1, memory: str = "1g") -> subprocess.Popen[bytes]:
        """Start a worker, and wait until the master knows it."""
        own = ("--cores", str(cores), "--memory", memory)
        place = ("--work-dir", str(self._folder / f"w{self._workers}"))
        self._workers += 1
        found = self._start(f"{_DEPLOY}.worker.Worker", *_HERE, *own, *place, self.url)
        text = "Successfully registered with master"
        until(lambda: self._log.read_text().count(text) == self._workers, "a worker")
        return found

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a part, and all that it has started."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a part as the leader of a session, so that what it starts goes with it."""
        import pyspark

        home = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            **ensure_java().environment(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with self._log.open("ab") as file:
            found = subprocess.Popen(
                [str(home / "bin" / "spark-class"), *words],
                stdout=file,
                stderr=file,
                start_new_session=True,
                env=environment,
            )
        self._parts.append(found)
        return found
