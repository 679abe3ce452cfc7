"""A SparkSession with good settings, or checks on the user's own session.

Measurements support every setting here (`docs/design/0003-spark-session.md`). A session that the
user passes in keeps the settings that the user chose.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir.algebra.work import VARIABLE as MOST_WORK
from quadweir.errors import EnvironmentProblem
from quadweir.logs import wants_json
from quadweir.private import private_files, umask
from quadweir.runtime.spark.callbacks import guard_callbacks
from quadweir.runtime.spark.master import check_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUPPORTED_SPARK: Final = (4, 3)

LOCAL_CHECKPOINTS: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# Settings that can change while a session runs, so an adopted session can have them too.
STREAMING: Final[Mapping[str, str]] = {
    # The kernel keeps its state as a log of deltas; the heap-based default holds all of it in the
    # JVM and writes full snapshots.
    "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Rows cross to Python in Arrow batches; larger ones amortise the per-batch cost of the worker.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Event times are milliseconds since 1970 in UTC everywhere (semantics S2).
    "spark.sql.session.timeZone": "UTC",
    # Java only interprets methods of more than 8,000 bytes; past this limit Spark gives up the one
    # long method and cuts the work into short ones, which was measured to halve a mapping's time.
    "spark.sql.codegen.hugeMethodLimit": "8000",
}
# On a local disk the default file manager forks `readlink` and `chmod` for each log file, which
# makes up most of a small batch's time. On HDFS and object stores the default is right.
LOCAL_ONLY: Final[Mapping[str, str]] = {
    "spark.sql.streaming.checkpointFileManagerClass": LOCAL_CHECKPOINTS,
}

# Rows are many and short-lived, and the parallel collector is made for that. Spark's own patterns
# make Java assume that the character classes of a pattern are of many kinds, so it calls them one
# by one unless these options make it use the most frequent kind. What this saves for N-Triples is
# in docs/design/0005-ntriples-columns.md.
_JVM_FOR_ROWS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UseParallelGC",
    "-XX:TypeProfileWidth=8",
    "-XX:TypeProfileMajorReceiverPercent=20",
)

# The next batch needs the memory that a batch frees. By default, the allocators of Java and Python
# return it to the system in between, and the system has to zero all pages again
# (docs/design/0003-spark-session.md). Arrow's own allocator always returns it, so it is not used.
KEEP_MEMORY: Final[Mapping[str, str]] = {
    "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOG4J2: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = @pattern@
# A task that fails is reported once, by the error that reaches the caller.
logger.task.name = org.apache.spark.executor.Executor
logger.task.level = off
logger.taskset.name = org.apache.spark.scheduler.TaskSetManager
logger.taskset.level = off
logger.microbatch.name = org.apache.spark.sql.execution.streaming
logger.microbatch.level = off
# When a real-time query is stopped, its interrupted tasks are logged here as errors.
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = off
logger.writer.name = org.apache.spark.sql.execution.datasources
logger.writer.level = off
logger.codegen.name = org.apache.spark.sql.catalyst.expressions.codegen
logger.codegen.level = off
# The same level as the root: otherwise pyspark's gateway prints its level on every start.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""
_TEXT_LINE: Final = "spark: %d{HH:mm:ss} %p %c{1}: %m%n%ex{short}%n"
# As `quadweir.logs` writes messages.
_JSON_LINE: Final = (
    """{"time":"%d{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}{UTC}","level":"%p{WARN=warning, lowerCase=true}","""
    """"source":"%enc{%c{1}}{JSON}","message":"%enc{%m %ex{short}}{JSON}"}%n"""
)


@dataclass(frozen=True, slots=True)
class SessionReport:
    """What `adopt` changed in the user's session, and what it only points out."""

    changed: Mapping[str, tuple[str | None, str]]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"set {key} = {new}" + (f" (was {old})" if old is not None else "")
            for key, (old, new) in self.changed.items()
        ]
        return "\n".join([*lines, *self.notes]) or "nothing to change"


def build(
    *,
    master: str | None = None,
    shards: int | None = None,
    app_name: str = "quadweir",
    jars: Sequence[Path] | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
) -> SparkSession:
    """Return a new session, embedded unless `master` (or QUADWEIR_MASTER) names a cluster.

    Args:
        master: any Spark master URL; default `local[*]`.
        shards: how many partitions a shuffle has, and so how many shards a query has; default: one
            for each core.
        app_name: the name of the application on Spark's own pages.
        jars: extra jars; default: Spark's Kafka connector, if it has been fetched.
        config: settings that replace ours.
        verbose: keep Spark's own logging.

    Raises:
        UsageError: Spark knows no such master.
        EnvironmentProblem: no usable Java was found, no master answers, or a session with other settings is
            running.
    """
    from quadweir.runtime.spark.java import ensure_java

    if os.environ.get("SPARK_REMOTE"):
        raise EnvironmentProblem(
            "SPARK_REMOTE asks for Spark Connect, over which the engine cannot run",
            detail=_NO_GATEWAY,
            hint="Unset SPARK_REMOTE; QUADWEIR_MASTER or master= names a cluster.",
        )
    master = master or os.environ.get("QUADWEIR_MASTER") or "local[*]"
    check_master(master)
    os.environ.update(ensure_java().environment())
    # Workers must run this Python: another one lacks our packages. Those of a cluster may have them in
    # an archive (docs/deploy.md).
    if master.startswith("local") or not os.environ.get("PYSPARK_PYTHON"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

    from pyspark.sql import SparkSession

    _check_version()
    settings = _settings(master, shards, jars)
    builder = SparkSession.builder.appName(app_name).master(master)
    try:
        with (
            _starting_with(KEEP_MEMORY if sys.platform == "linux" else {}),
            private_files(),
            _quiet_logs() as quiet,
        ):
            if not verbose:
                settings[_JAVA_OPTIONS] += f" {quiet}"
            for key, value in {**settings, **(config or {})}.items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
    except Exception as error:
        raise EnvironmentProblem(
            f"Spark could not start on {master}",
            detail=str(error).splitlines()[0] if str(error) else type(error).__name__,
            hint="Run `quadweir doctor` to see what is missing.",
        ) from error
    guard_callbacks(session)
    _pass_limit(session)
    if not verbose:
        from quadweir.runtime.spark.quietlogs import sift

        session.sparkContext.setLogLevel("ERROR")
        sift(session)
    if master.startswith("local"):
        from quadweir.runtime.spark.localfiles import use_local_files

        use_local_files(session)
    return session


def adopt(spark: SparkSession) -> SessionReport:
    """Check the user's own session, set what it leaves at Spark's defaults, and report both.

    A setting that the user chose stays; the report names those that cost speed.

    Raises:
        EnvironmentProblem: Quadweir does not support this version of Spark, the session is one of
            Spark Connect, or it has been stopped.
    """
    _check_version()
    _refuse_connect(spark)
    if spark.sparkContext._jsc is None:
        raise EnvironmentProblem(
            "the given SparkSession has been stopped", hint="Pass a session that is running."
        )
    guard_callbacks(spark)
    _pass_limit(spark)
    wanted = dict(STREAMING)
    is_local = str(spark.sparkContext.master).startswith("local")
    if is_local:
        wanted.update(LOCAL_ONLY)
    changed: dict[str, tuple[str | None, str]] = {}
    notes: list[str] = []
    # The user set every key that is listed, at the start or later; the rest are Spark's defaults.
    chosen = set(spark.conf.getAll)
    for key, value in wanted.items():
        old = spark.conf.get(key, None)
        if old == value:
            continue
        if key in chosen:
            notes.append(f"kept your {key} = {old}; Quadweir would set {value}")
            continue
        spark.conf.set(key, value)
        changed[key] = (old, value)
    worker = spark.conf.get("spark.pyspark.python", None) or os.environ.get("PYSPARK_PYTHON")
    if worker is None and is_local:
        spark.sparkContext.pythonExec = sys.executable
        changed["PYSPARK_PYTHON"] = (None, sys.executable)
    cores = spark.sparkContext.defaultParallelism
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 200)
    if partitions > 4 * cores and "spark.sql.shuffle.partitions" not in chosen:
        spark.conf.set("spark.sql.shuffle.partitions", str(cores))
        changed["spark.sql.shuffle.partitions"] = (str(partitions), str(cores))
    return SessionReport(changed=changed, notes=tuple(notes))


_NO_GATEWAY: Final = (
    "Shards, stream files and static data need Java in the same process group, which a client of "
    "Spark Connect does not have."
)


def _refuse_connect(spark: SparkSession) -> None:
    # By its name: the module of Spark Connect cannot be imported without its extra.
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        raise EnvironmentProblem(
            "this session is one of Spark Connect, over which the engine cannot run",
            detail=_NO_GATEWAY,
            hint="Pass a classic session, or none. Over Spark Connect, register_formats(spark) "
            "lets spark.read read stream files.",
        )


def _pass_limit(session: SparkSession) -> None:
    """Pass the limit on work to Python workers; the environment of Java may be another."""
    # Spark sends this dictionary to every worker; a running session has no setting for it.
    if MOST_WORK in os.environ:
        session.sparkContext.environment[MOST_WORK] = os.environ[MOST_WORK]


@contextmanager
def _starting_with(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for what is started in the block; the user's own values stay."""
    added = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _check_version() -> None:
    import pyspark

    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) != SUPPORTED_SPARK:
        raise EnvironmentProblem(
            f"pyspark {pyspark.__version__} is installed, and Quadweir runs on 4.3",
            hint='pip install "pyspark>=4.3,<4.4"',
        )


def _settings(master: str, shards: int | None, jars: Sequence[Path] | None) -> dict[str, str]:
    settings = dict(STREAMING)
    settings["spark.sql.shuffle.partitions"] = str(shards or _cores(master))
    settings["spark.ui.showConsoleProgress"] = "false"
    # Hadoop sets permissions itself and ignores the umask of the process.
    settings["spark.hadoop.fs.permissions.umask-mode"] = f"{umask():03o}"
    # Over TCP, small batches between Java and its Python workers wait for acknowledgements.
    if hasattr(socket, "AF_UNIX"):
        settings["spark.python.unix.domain.socket.enabled"] = "true"
    # Nothing reads the SQL history of an embedded run, and a stream would fill it forever.
    settings["spark.sql.ui.retainedExecutions"] = "20"
    settings["spark.ui.retainedJobs"] = "50"
    settings["spark.ui.retainedStages"] = "50"
    if not master.startswith("local") and sys.platform == "linux":
        for name, value in KEEP_MEMORY.items():
            settings[f"spark.executorEnv.{name}"] = os.environ.get(name, value)
    if jars is None:
        from quadweir.kafkaclient import connector_jars

        jars = connector_jars()
    if jars:
        settings["spark.jars"] = ",".join(str(jar) for jar in jars)
    # When a query is stopped inside `foreachBatch`, Spark searches the error with a pattern that
    # recurses for each character, and a default stack overflows. Stacks grow on demand.
    options = ["-Xss16m"]
    if master.startswith("local"):
        options += _JVM_FOR_ROWS
    settings[_JAVA_OPTIONS] = " ".join(options)
    if master.startswith(("local", "spark://127.0.0.1:", "spark://localhost:")):
        # On one machine nothing has to listen on other addresses, and the run does not depend on a
        # host name, which may not resolve or may change its address.
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
    if master.startswith("local"):
        settings.update(LOCAL_ONLY)
        settings["spark.ui.enabled"] = "false"
        if not master.startswith("local-cluster"):
            # Java accepts executors from anywhere, and here there are none; Spark generates a
            # secret.
            settings["spark.authenticate"] = "true"
        # Spark writes out the plan of every job and micro-batch, although no page shows it. With
        # the long patterns of N-Triples (0005), this was visible in stack samples of a small job.
        settings["spark.sql.ui.explainMode"] = "simple"
        memory = _driver_memory_mib()
        settings["spark.driver.memory"] = f"{memory}m"
        # The matches of a batch are collected on the driver (docs/design/0011), larger ones through
        # files. Spark's limit for them, 1 GiB by default, is lower on a small driver.
        settings["spark.driver.maxResultSize"] = f"{min(1024, memory // 4)}m"
    return settings


def _cores(master: str) -> int:
    inside = master.removeprefix("local[").rstrip("]").split(",")[0]
    if master.startswith("local[") and inside.isdecimal():
        return int(inside)
    if master == "local":
        return 1
    if master.startswith("local-cluster["):
        workers, cores, *_ = master.removeprefix("local-cluster[").rstrip("]").split(",")
        return int(workers) * int(cores)
    return os.cpu_count() or 1


def _driver_memory_mib() -> int:
    """Return a quarter of the machine's memory, 1 to 8 GiB: Python workers need the rest."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return max(1024, min(8192, total // 4))


@contextmanager
def _quiet_logs() -> Iterator[str]:
    """Yield the option that makes Java log little; Java has to start in the block.

    A logging configuration can make Java run code. So the file is in a folder that only this user
    can write to.
    """
    with tempfile.TemporaryDirectory(prefix="quadweir-") as folder:
        path = Path(folder, "log4j2.properties")
        path.write_text(_LOG4J2.replace("@pattern@", _JSON_LINE if wants_json() else _TEXT_LINE))
        yield f"-Dlog4j2.configurationFile={path.as_uri()}"
