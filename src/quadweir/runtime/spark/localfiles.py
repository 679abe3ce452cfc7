"""Files on a local disk without a process for each of them.

Hadoop sets the permissions of every file and folder that it makes, and where its own native library is
missing, as it is beside pyspark, it starts `chmod` to do so: some twenty processes for a small batch of
a stream (`docs/design/0003-spark-session.md`). `LocalFiles.java` makes the call
itself; the compiler that Spark has for its generated code compiles it.
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
    """Make `LocalFiles` what Spark in this Java reads and writes `file:` paths with.

    Hadoop keeps one file system for all that ask for it, whatever their settings; so tasks, which run
    in the same Java where the master is local, get it without having to know its class. Where
    somebody chose another, that stays.
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
