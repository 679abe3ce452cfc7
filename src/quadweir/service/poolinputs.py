"""What networks are made from, and which streams a query needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from quadweir.terms import IRI

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery
    from quadweir.engine import Engine


@final
@dataclass(frozen=True, slots=True)
class PoolInputs:
    """What networks are made from, as it is declared now.

    Attributes:
        engine: an engine on which all streams are declared.
        known: the streams that queries can read.
        static: static data of all queries.
        digest: what the state of a network over some streams depends on.
        starts: where a new network begins to read pushed streams.
        read_by: up to where a network has read them.
    """

    engine: Engine
    known: frozenset[str]
    static: Sequence[Any]
    digest: Callable[[Iterable[str]], str]
    starts: Callable[[], Mapping[str, int]]
    read_by: Callable[[str], Mapping[str, int]]


def streams_of(query: ContinuousQuery) -> frozenset[str]:
    """Return the streams that a query reads.

    >>> from quadweir.syntax.read import parse
    >>> sorted(streams_of(parse("SELECT ?x { STREAM <urn:s> [NOW] { ?x ?y ?z } }")))
    ['urn:s']
    """
    return frozenset(each.stream.value for each in query.windows if isinstance(each.stream, IRI))


def digest_of(table: Any) -> str:
    """Return a name of something that JSON can hold.

    >>> digest_of([1])[:8]
    '080a9ed4'
    """
    data = json.dumps(table, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()
