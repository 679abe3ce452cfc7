"""Functions that users registered in the driver, on their way to the processes that hold shards."""

from __future__ import annotations

import pickle

from pyspark import cloudpickle

from quadweir.algebra.analyze import called_by_iri
from quadweir.algebra.query import ContinuousQuery
from quadweir.errors import UsageError
from quadweir.functions import REGISTERED, Function


def packed_functions(query: ContinuousQuery) -> bytes:
    """Pack the registered functions that a query calls, code included; nothing if it calls none.

    Raises:
        UsageError: the code of one cannot be sent to another process.
    """
    called = (REGISTERED.get(name.value) for name in called_by_iri(query))
    packed = [_packed(function) for function in called if function is not None]
    return pickle.dumps(packed) if packed else b""


def _packed(function: Function) -> bytes:
    try:
        packed: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise UsageError(
            f"the function {function.iri} cannot be sent to other processes: {error}",
            hint="Make what it needs inside of it: locks, files and connections stay here.",
        ) from None
    return packed


def install_functions(packed: bytes) -> None:
    """Register in this process what `packed_functions` made in the driver."""
    if not packed:
        return
    # It comes from the driver with the task, through Spark or a pipe; it is never kept on disk.
    for each in pickle.loads(packed):  # noqa: S301
        REGISTERED.add(pickle.loads(each))  # noqa: S301
