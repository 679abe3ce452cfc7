"""A query as it was registered: its text, and how the text is meant."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, final

from quadweir.algebra.windowing import Windowing, with_windowing
from quadweir.algebra.windows import Content
from quadweir.errors import UsageError
from quadweir.syntax.read import parse

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery


@final
@dataclass(frozen=True, slots=True)
class QueryText:
    """A query of a network.

    Attributes:
        text: the query.
        dialect: its language; None to recognise it from the text.
        content: what windows contain, `bag` or `graph`; None for the dialect's own choice.
        base: the base of relative IRIs.
        allow_unbounded: IRIs of windows or streams that may be kept as a whole.
        windowing: where windows begin and when they report; None for as in the text.
        backfill: whether it sees what windows hold already when it joins (J5). It does not tell two
            texts apart.
    """

    text: str
    dialect: str | None = None
    content: str | None = None
    base: str | None = None
    allow_unbounded: tuple[str, ...] = ()
    windowing: Windowing | None = None
    backfill: bool = field(default=False, compare=False)

    def parsed(self) -> ContinuousQuery:
        """Return the query.

        Raises:
            QuerySyntaxError: the text is not a query.
            UsageError: `windowing` does not fit its windows, or there is no such content.
        """
        if self.content not in (None, *(each.value for each in Content)):
            raise UsageError(
                f"there is no window content {self.content!r}", hint="Use `bag` or `graph`."
            )
        query = parse(
            self.text,
            dialect=self.dialect,
            base=self.base,
            content=Content(self.content) if self.content is not None else None,
            allow=("FROM",),
        )
        return query if self.windowing is None else with_windowing(query, self.windowing)

    def table(self) -> dict[str, Any]:
        """Return it as JSON can hold it, without what is not set."""
        found: dict[str, Any] = {
            each.name: getattr(self, each.name) for each in fields(self) if each.name != "windowing"
        }
        if self.windowing is not None:
            found["windowing"] = [
                self.windowing.start_ms,
                self.windowing.full,
                self.windowing.report,
            ]
        return {name: value for name, value in found.items() if value}

    @staticmethod
    def of_table(table: dict[str, Any]) -> QueryText:
        """Read what `table` returned."""
        from quadweir.algebra.windowing import ReportOn

        given = dict(table)
        if "windowing" in given:
            start_ms, full, report = given["windowing"]
            on = None if report is None else ReportOn(report)
            given["windowing"] = Windowing(start_ms=start_ms, full=full, report=on)
        given["allow_unbounded"] = tuple(given.get("allow_unbounded", ()))
        return QueryText(**given)
