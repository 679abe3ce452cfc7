"""Templates as data: a query with parameters, and the queries that it stands for.

Which queries are of one template is decided in `quadweir.sharing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from quadweir.algebra.query import ContinuousQuery
from quadweir.terms import Ground, Variable


@final
@dataclass(frozen=True, slots=True)
class TemplateMember:
    """One query of a template.

    Attributes:
        number: Names the query in answers; no two members of a template have the same.
        constants: Its values of the template's parameters.
        ranges: The lengths, in milliseconds, of the template's open windows.
        since: It sees only elements later than this instant (J1).
    """

    number: int
    constants: tuple[Ground, ...]
    ranges: tuple[int, ...]
    since: int


@final
@dataclass(frozen=True, slots=True)
class QueryTemplate:
    """A query that stands for all queries of one shape.

    Attributes:
        query: The query with parameters; its open windows have the length 1 ms.
        parameters: Variables that no query text can spell.
        windows: The places of the open windows: each member has its own lengths.
        one_since: Whether all members must have the same `since`.
        members: The first members; others may come and go while it runs.
    """

    query: ContinuousQuery
    parameters: tuple[Variable, ...] = ()
    windows: tuple[int, ...] = ()
    one_since: bool = False
    members: tuple[TemplateMember, ...] = ()
