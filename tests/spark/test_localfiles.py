"""Spark's files on a local disk, made without a process for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from quadweir.runtime.spark.localfiles import use_local_files


@pytest.fixture
def hadoop(spark: SparkSession) -> Any:
    context: Any = spark.sparkContext
    return context._jvm.org.apache.hadoop.fs


@pytest.fixture
def files(spark: SparkSession, hadoop: Any) -> Any:
    context: Any = spark.sparkContext
    settings = context._jsc.hadoopConfiguration()
    return hadoop.FileSystem.get(context._jvm.java.net.URI("file:///"), settings)


def test_a_session_has_them_and_keeps_them(spark: SparkSession, hadoop: Any, files: Any) -> None:
    assert files.getClass().getName() == "quadweir.LocalFiles"
    use_local_files(spark)
    assert files.exists(hadoop.Path("/"))


@pytest.mark.parametrize("mode", [0o640, 0o755, 0o1777])
def test_permissions_are_those_asked_for(
    hadoop: Any, files: Any, tmp_path: Path, mode: int
) -> None:
    permission = hadoop.permission.FsPermission.createImmutable(mode)
    folder, file = tmp_path / "folder", tmp_path / "a file"
    files.mkdirs(hadoop.Path(str(folder)))
    files.create(hadoop.Path(str(file))).close()
    for each in (folder, file):
        files.setPermission(hadoop.Path(str(each)), permission)
        assert each.stat().st_mode & 0o7777 == mode


def test_what_spark_writes_has_checksums_as_before(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).coalesce(1).write.csv(str(tmp_path / "out"))
    (part,) = (tmp_path / "out").glob("part-*.csv")
    assert part.read_text() == "0\n1\n2\n"
    assert (part.parent / f".{part.name}.crc").is_file()
