"""The checks that need a running Spark."""

import sys

import pytest

from quadweir.commands import doctor

pytestmark = pytest.mark.spark


def test_workers_run_this_python(spark):
    finding = doctor._check_workers(spark)
    assert finding.status is doctor.Status.OK
    assert sys.executable in finding.found


def test_workers_of_another_python_are_broken(spark, monkeypatch):
    monkeypatch.setattr(doctor.platform, "python_version", lambda: "3.99.1")
    finding = doctor._check_workers(spark)
    assert finding.status is doctor.Status.BROKEN
    assert "PYSPARK_PYTHON" in (finding.todo or "")


def test_the_jvm_counts(spark):
    assert doctor._check_jvm_job(spark, began=0.0).status is doctor.Status.OK
