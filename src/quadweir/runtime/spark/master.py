"""Checks of a Spark master before Java starts, which would only fail seconds later, with a stack trace."""

from __future__ import annotations

import re
import socket
from typing import Final

from quadweir.addresses import read_addresses, spell
from quadweir.errors import EnvironmentProblem, UsageError

_STANDALONE: Final = "spark://"
_OTHERS: Final = re.compile(
    r"local(\[([1-9][0-9]*|\*)(, *[1-9][0-9]*)?\])?"
    r"|local-cluster\[ *[1-9][0-9]* *, *[1-9][0-9]* *, *[1-9][0-9]* *\]"
    r"|yarn|k8s://\S+"
)
_WAIT_SECONDS: Final = 5


def check_master(master: str) -> None:
    """Make sure that a master has a form that Spark knows, and that a standalone one answers.

    >>> check_master("local[2]")
    >>> check_master("loca")
    Traceback (most recent call last):
    quadweir.errors.UsageError: 'loca' is not a Spark master
    ...

    Raises:
        UsageError: Spark knows no such master.
        EnvironmentProblem: no master answers there.
    """
    if master.startswith(_STANDALONE):
        addresses = read_addresses(master.removeprefix(_STANDALONE))
        if not any(_answers(each.host, each.port) for each in addresses):
            raise EnvironmentProblem(
                f"no Spark master answers at {spell(addresses)}",
                hint="Start it, check host and port, or leave --master and QUADWEIR_MASTER out.",
            )
    elif not _OTHERS.fullmatch(master):
        raise UsageError(
            f"{master!r} is not a Spark master",
            hint="Write local[*], spark://HOST:PORT, yarn or k8s://URL after --master, or in QUADWEIR_MASTER.",
        )


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_WAIT_SECONDS).close()
    except OSError:
        return False
    return True
