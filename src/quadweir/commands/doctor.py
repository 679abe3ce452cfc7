"""`quadweir doctor`: check what Quadweir needs of this machine, and say what to do."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from quadweir.addresses import read_addresses
from quadweir.commands.output import print_json, stderr_console
from quadweir.errors import QuadweirError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REQUIRED_PACKAGES: Final = ("pyspark", "pandas", "pyarrow", "numpy", "numba", "pyoxigraph")
_GIB: Final = 2**30
_ENOUGH_DISK: Final = 5 * _GIB
_LEAST_DISK: Final = _GIB // 2
_ENOUGH_MEMORY: Final = 3 * _GIB


class Status(StrEnum):
    """The result of a check; only `BROKEN` makes the verb fail."""

    OK = "ok"
    OPTIONAL = "optional"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The finding of one check, and its remedy."""

    name: str
    status: Status
    found: str
    todo: str | None = None


def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Do not start Spark.")] = False,
    kafka: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT[,...]", help="Also check that a Kafka broker answers there."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check this machine for what Quadweir needs, and say how to fix it.

    The exit code is 1 if something that Quadweir always needs is broken. What is marked
    optional is needed for some sources or tests only.
    """
    if kafka is not None:
        read_addresses(kafka)
    findings = []
    for finding in _run_checks(quick, kafka):
        findings.append(finding)
        if not as_json:
            _print(finding)
    broken = sum(finding.status is Status.BROKEN for finding in findings)
    if as_json:
        print_json({"ok": not broken, "checks": [asdict(finding) for finding in findings]})
    elif broken:
        print(f"\n{broken} of {len(findings)} checks failed; start with the first.")
    else:
        print("\nEverything that Quadweir always needs is there.")
    if broken:
        raise typer.Exit(1)


def _run_checks(quick: bool, kafka: str | None) -> Iterator[CheckResult]:
    yield check_python()
    yield check_packages()
    java = check_java()
    yield java
    yield check_memory()
    yield from check_disk()
    if not quick:
        if java.status is Status.OK:
            yield from check_spark()
        else:
            yield CheckResult("spark", Status.BROKEN, "not tried: it needs Java", java.todo)
    yield check_kafka_jars()
    if kafka is not None:
        yield check_kafka_broker(kafka)
    yield check_mqtt()


def check_python() -> CheckResult:
    """Look at the Python that runs this."""
    found = f"{platform.python_version()} at {sys.executable}"
    if sys.maxsize < 2**32:
        return CheckResult("python", Status.BROKEN, f"{found}, 32 bits", "Use a 64-bit Python.")
    return CheckResult("python", Status.OK, found)


def check_packages() -> CheckResult:
    """Compare the installed packages with the requirements of this version of Quadweir."""
    from packaging.requirements import Requirement

    wrong = []
    for line in metadata.requires("quadweir") or []:
        wanted = Requirement(line)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            version = metadata.version(wanted.name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{wanted.name} is missing")
            continue
        if not wanted.specifier.contains(version, prereleases=True):
            wrong.append(f"{wanted.name} is {version}, wanted {wanted.specifier}")
    if wrong:
        return CheckResult(
            "packages",
            Status.BROKEN,
            "; ".join(wrong),
            f"{sys.executable} -m pip install --upgrade --upgrade-strategy=eager quadweir",
        )
    shown = ", ".join(f"{name} {metadata.version(name)}" for name in _REQUIRED_PACKAGES)
    return CheckResult("packages", Status.OK, shown)


def check_java() -> CheckResult:
    """Find a Java and run it."""
    from quadweir.runtime.spark.java import find_java

    try:
        java = find_java(os.environ)
    except QuadweirError as problem:
        found = f"{problem.message}. {problem.detail or ''}".strip()
        return CheckResult("java", Status.BROKEN, found, problem.hint)
    done = _run([str(java.executable), "-version"])
    if isinstance(done, str):
        return CheckResult(
            "java",
            Status.BROKEN,
            f"{java.executable} does not run: {done}",
            "Set JAVA_HOME to another Java, or unset it.",
        )
    found = f"{java.version} at {java.real} (by {java.origin})"
    if java.path != java.real:
        found += f", started by {java.executable}"
    if java.passed_over:
        found += f"; passed over: {'; '.join(java.passed_over)}"
    return CheckResult("java", Status.OK, found)


def check_memory() -> CheckResult:
    """Compare the machine's memory with the needs of a JVM and its Python workers."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = f"{total / _GIB:.1f} GiB, {os.cpu_count()} cores"
    if total < _ENOUGH_MEMORY:
        todo = "Expect slow runs below 3 GiB; close other programs."
        return CheckResult("memory", Status.OPTIONAL, found, todo)
    return CheckResult("memory", Status.OK, found)


def check_disk() -> Iterator[CheckResult]:
    """Check the free space for Spark's scratch files, and for checkpoints and output."""
    scratch = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    for name, folder, todo in (
        (
            "scratch disk",
            Path(scratch),
            "Set SPARK_LOCAL_DIRS or TMPDIR to a folder with more space.",
        ),
        ("working disk", Path.cwd(), "Run from, or write to, a folder with more space."),
    ):
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            yield CheckResult(name, Status.BROKEN, f"{folder} cannot be written", todo)
            continue
        free = shutil.disk_usage(folder).free
        found = f"{free / _GIB:.1f} GiB free in {folder}"
        if free < _LEAST_DISK:
            yield CheckResult(name, Status.BROKEN, found, todo)
        elif free < _ENOUGH_DISK:
            yield CheckResult(name, Status.OPTIONAL, f"{found}, enough for small runs only", todo)
        else:
            yield CheckResult(name, Status.OK, found)


def check_spark() -> Iterator[CheckResult]:
    """Start a session, run a job in the JVM and one in the Python workers."""
    from quadweir.runtime.spark.session import build

    stderr_console().print("starting Spark ...", style="dim")
    began = time.monotonic()
    try:
        session = build(app_name="quadweir-doctor")
    except QuadweirError as problem:
        found = f"{problem.message}. {problem.detail or ''}".strip()
        yield CheckResult("spark", Status.BROKEN, found, problem.hint)
        return
    try:
        yield _attempt("spark", lambda: _check_jvm_job(session, began))
        yield _attempt("workers", lambda: _check_workers(session))
    finally:
        session.stop()


def _check_jvm_job(session: SparkSession, began: float) -> CheckResult:
    count = session.range(0, 1000, numPartitions=2).count()
    seconds = time.monotonic() - began
    found = f"{session.version} on {session.sparkContext.master}, started in {seconds:.0f} s"
    if count != 1000:
        return CheckResult("spark", Status.BROKEN, f"{found}, counts 1000 rows as {count}", _RERUN)
    return CheckResult("spark", Status.OK, found)


def _check_workers(session: SparkSession) -> CheckResult:
    answers = {
        tuple(json.loads(row.value))
        for row in session.range(0, 2, numPartitions=2)
        .mapInArrow(_describe_worker, "value string")
        .collect()
    }
    here = platform.python_version()
    for python, executable, problem in answers:
        if problem:
            return CheckResult(
                "workers",
                Status.BROKEN,
                f"{executable} cannot import quadweir: {problem}",
                "Install Quadweir for that Python, or set PYSPARK_PYTHON to this one.",
            )
        if python.split(".")[:2] != here.split(".")[:2]:
            return CheckResult(
                "workers",
                Status.BROKEN,
                f"Python {python} at {executable}, but {here} drives them",
                f"Set PYSPARK_PYTHON to a Python {here[: here.rindex('.')]}.",
            )
    python, executable, _ = min(answers)
    return CheckResult("workers", Status.OK, f"Python {python} at {executable}")


def _describe_worker(batches: Iterator[object]) -> Iterator[object]:
    """Runs in a Spark worker: report its Python, and whether it has Quadweir."""
    import pyarrow

    problem = ""
    try:
        import quadweir  # noqa: F401
    except ImportError as error:
        problem = str(error)
    for _ in batches:
        said = json.dumps([platform.python_version(), sys.executable, problem])
        yield pyarrow.RecordBatch.from_pydict({"value": [said]})


def check_kafka_jars() -> CheckResult:
    """Look for the Kafka client, and for Spark's connector, which is not part of pyspark."""
    from quadweir.kafkaclient import connector_folder, connector_jars, connector_note

    if importlib.util.find_spec("kafka") is None:
        return CheckResult(
            "kafka connector",
            Status.OPTIONAL,
            "kafka-python is not installed",
            "For Kafka sources and sinks: pip install 'quadweir[kafka]'.",
        )
    if connector_jars():
        found = f"{connector_note() or 'a connector'} in {connector_folder()}"
        return CheckResult("kafka connector", Status.OK, found)
    return CheckResult(
        "kafka connector",
        Status.OPTIONAL,
        "not fetched",
        "For Kafka sources and sinks: run `make kafka` once (it needs Maven: apt-get install maven).",
    )


def check_kafka_broker(brokers: str) -> CheckResult:
    """Ask the broker for the versions of Kafka's protocol that it supports."""
    from quadweir.kafkaclient import check_broker

    name = f"kafka at {brokers}"
    try:
        check_broker(brokers)
    except QuadweirError as problem:
        return CheckResult(name, Status.BROKEN, problem.detail or problem.message, problem.hint)
    return CheckResult(name, Status.OK, "a broker answers")


def check_mqtt() -> CheckResult:
    """Look for the MQTT client and for a broker to test with."""
    if importlib.util.find_spec("paho") is None:
        return CheckResult(
            "mqtt",
            Status.OPTIONAL,
            "paho-mqtt is not installed",
            "For MQTT sources: pip install 'quadweir[mqtt]'.",
        )
    found = f"paho-mqtt {metadata.version('paho-mqtt')}"
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))
    broker = shutil.which("mosquitto", path=places)
    if broker is None:
        todo = "For the MQTT tests: apt-get install mosquitto."
        return CheckResult("mqtt", Status.OPTIONAL, f"{found}, no mosquitto", todo)
    return CheckResult("mqtt", Status.OK, f"{found}, {broker}")


_RERUN: Final = "Run `quadweir --debug doctor` and report what it prints."


def _attempt(name: str, check: Callable[[], CheckResult]) -> CheckResult:
    try:
        return check()
    except Exception as error:  # an unexpected error in a check is a finding too
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return CheckResult(name, Status.BROKEN, lines[-1].strip()[:300], _RERUN)


def _run(command: list[str]) -> str | None:
    """Run a program; None if it succeeds, else its last line of output."""
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return said[-1] if said else f"exit code {done.returncode}"


def _print(finding: CheckResult) -> None:
    from rich.console import Console
    from rich.text import Text

    style = {Status.OK: "green", Status.OPTIONAL: "yellow", Status.BROKEN: "bold red"}
    line = Text(f"{finding.status:<9}", style=style[finding.status])
    line.append(f"{finding.name}: ", style="bold")
    line.append(finding.found, style="default")
    if finding.todo:
        line.append(f"\n{'':<9}-> {finding.todo}", style="default")
    Console(highlight=False, soft_wrap=True).print(line)
