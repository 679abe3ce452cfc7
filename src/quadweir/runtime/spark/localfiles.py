"""File permissions on a local disk, without a process for each file.

Hadoop sets the permissions of every file and folder that it makes. Without its native library,
which pyspark does not include, it starts `chmod` each time: some twenty processes for a small batch
of a stream (`docs/design/0003-spark-session.md`). `LocalFiles.java` makes the system call itself.
Spark's compiler for generated code compiles it.
"""

from __future__ import annotations

import os
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME: Final = "quadweir.LocalFiles"
_CHOICE: Final = "fs.file.impl"


def use_local_files(spark: SparkSession) -> None:
    """Let Spark in this Java read and write `file:` paths with `LocalFiles`.

    Hadoop keeps one file system for all callers, whatever their settings. With a local master,
    tasks run in the same Java, so they get it without knowing its class. If the user chose another
    class, that one stays.
    """
    context: Any = spark.sparkContext
    jvm, settings = context._jvm, context._jsc.hadoopConfiguration()
    if os.name != "posix" or settings.get(_CHOICE) is not None:
        return
    hadoop = jvm.org.apache.hadoop.fs.FileSystem
    local = jvm.java.net.URI("file:///")
    held = hadoop.get(local, settings)
    if held.getClass().getName() == _NAME:
        return
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(held.getClass().getClassLoader())
    compiler.cook((resources.files(__package__) / "LocalFiles.java").read_text(encoding="utf-8"))
    chosen = jvm.org.apache.hadoop.conf.Configuration(settings)
    chosen.setClassLoader(compiler.getClassLoader())
    chosen.set(_CHOICE, _NAME)
    held.close()
    hadoop.get(local, chosen)
