"""The wheel and the sdist: complete, small, and usable outside of the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from pages import ROOT

PACKAGE = ROOT / "src" / "quadweir"
MOST_BYTES = 3_000_000
DOORS = """\
2026-03-03T08:00:00Z <urn:door:1> <urn:openedBy> <urn:ann> .
2026-03-03T08:00:30Z <urn:door:2> <urn:openedBy> <urn:bob> .
"""
QUERY = "SELECT ?who { STREAM <urn:doors> [RANGE 1m] { ?door <urn:openedBy> ?who } }"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was made from it."""
    for name in ("build", "hatchling"):
        pytest.importorskip(name, reason="needs quadweir[dev]")
    folder = tmp_path_factory.mktemp("dist")
    # Without isolation: what the build needs is installed, and nothing is fetched.
    run("-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT), cwd=folder)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel alone; what it depends on is taken from this environment."""
    folder = tmp_path_factory.mktemp("installed")
    (wheel,) = built.glob("*.whl")
    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile")
    run(*pip, "--target", str(folder), str(wheel), cwd=folder)
    return folder


def run(*words: str, cwd: Path, **variables: str) -> str:
    """Run Python in an environment that knows nothing of the repository."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-P", *words],
        cwd=cwd,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sources() -> set[str]:
    return {
        str(each.relative_to(PACKAGE.parent))
        for each in PACKAGE.rglob("*")
        if each.is_file() and "__pycache__" not in each.parts
    }


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        read = Parser().parsestr(archive.read(metadata).decode())
    assert names == sources()
    assert wheel.stat().st_size < MOST_BYTES
    extras = {"kafka", "mqtt", "java", "bench", "geo", "dev"}
    assert extras <= set(read.get_all("Provides-Extra") or [])
    needed = [each for each in read.get_all("Requires-Dist") or [] if "extra ==" not in each]
    assert any(each.startswith("pyspark") for each in needed)
    assert not any(each.startswith(("pytest", "kafka-python", "paho")) for each in needed)


def test_the_sdist_has_the_sources_and_the_tests_and_no_scratch(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in sources()} <= names
    assert {"pyproject.toml", "README.md", "LICENSE", "tests/conftest.py"} <= names
    assert not [name for name in names if ".venv" in name or "__pycache__" in name]
    assert sdist.stat().st_size < MOST_BYTES


def test_the_installed_wheel_answers_a_query_elsewhere(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "doors.stream").write_text(DOORS)
    (tmp_path / "doors.rq").write_text(QUERY)
    variables = {"PYTHONPATH": str(installed)}
    where = run("-c", "import quadweir; print(quadweir.__file__)", cwd=tmp_path, **variables)
    assert Path(where.strip()).is_relative_to(installed)
    script = installed / "bin" / "quadweir"
    # The oracle computes the same answers without compiled code, which takes long to compile.
    answers = run(
        str(script), "query", "doors.rq", "--stream", "urn:doors=doors.stream", "--oracle",
        cwd=tmp_path, **variables,
    )  # fmt: skip
    assert [line.count("urn:ann") for line in answers.splitlines()] == [1, 0]
    plan = run(str(script), "explain", "doors.rq", "--plan", cwd=tmp_path, **variables)
    assert "matched before the shuffle" in plan


def test_every_public_name_is_in_the_installed_wheel(installed: Path, tmp_path: Path) -> None:
    code = (
        "import quadweir\n"
        "for name in quadweir.__all__: getattr(quadweir, name)\n"
        "from importlib.resources import files\n"
        "print(files('quadweir.schemas').joinpath('streams.schema.json').is_file())"
    )
    assert run("-c", code, cwd=tmp_path, PYTHONPATH=str(installed)).strip() == "True"
