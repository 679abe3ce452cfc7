"""What tests of live commands do from outside: elements arrive, and metrics are read."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path


def arrive(folder: Path, number: int) -> None:
    """Let three elements arrive, later than all before."""
    lines = [f"{10_000 * number + n} <urn:a{number}{n}> <urn:p> <urn:b> .\n" for n in range(3)]
    arriving(folder, str(number), "".join(lines))


def arriving(folder: Path, name: str, text: str) -> None:
    """Let a file appear whole, as a stream's files must."""
    hidden = folder / f".{name}"
    hidden.write_text(text)
    hidden.rename(folder / f"{name}.stream")


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


def metrics_of(port: int) -> str:
    """What a run serves to Prometheus; nothing as long as it does not."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            return str(answer.read().decode())
    except OSError:
        return ""
