"""What requests say about queries, and what the service says about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.algebra.analyze import analyze, refuse_unbounded
from quadweir.algebra.query import AskForm, ConstructForm, DescribeForm
from quadweir.algebra.warn import warnings_of
from quadweir.errors import LimitError, PlanError, QuadweirError, UsageError
from quadweir.optimize.pipeline import optimize
from quadweir.plan.explanation import explanation, planned
from quadweir.plan.query import plan_query
from quadweir.plan.render import render_nodes
from quadweir.plan.shapes import answer_variables
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.pictures import plan_svg
from quadweir.service.poolinputs import streams_of
from quadweir.service.problems import PressureError, UnavailableError, problem_of, warning_of
from quadweir.service.sinks import TAP
from quadweir.sources.declare import undeclared
from quadweir.syntax.parser import TITLES
from quadweir.syntax.scan import detect
from quadweir.syntax.write import declared_prefixes, write
from quadweir.terms import IRI

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery
    from quadweir.runtime.network.graph import TemplateFacts
    from quadweir.runtime.network.status import QueryStatus
    from quadweir.service.networkpool import NetworkPool
    from quadweir.service.overview import Overview
    from quadweir.service.settings import ServiceLimits

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_FIELDS: Final = ("text", "dialect", "content", "base", "allow_unbounded", "backfill")


def check_name(name: str, what: str = "query") -> str:
    """Return a name that a thing may have.

    >>> check_name("warm")
    'warm'

    Raises:
        UsageError: it may not.
    """
    if not NAME.match(name):
        raise UsageError(
            f"{name[:120]!r} cannot be the name of a {what}",
            hint="Use up to 100 letters, digits, dots, dashes and underscores; begin with a letter "
            "or a digit.",
        )
    return name


def query_text(given: Any) -> QueryText:
    """Read a query of a request: its text, or a table.

    >>> query_text({"text": "ASK {}", "base": "urn:x"}).base
    'urn:x'

    Raises:
        UsageError: it is neither.
    """
    if isinstance(given, str):
        return QueryText(given)
    if not isinstance(given, Mapping) or not isinstance(given.get("text"), str):
        raise UsageError('a query is a text, or an object with a member "text"')
    unknown = [each for each in given if each not in _FIELDS]
    if unknown:
        raise UsageError(
            f"a query has no member {unknown[0]!r}", hint=f"It may have {', '.join(_FIELDS)}."
        )
    allowed = given.get("allow_unbounded") or ()
    for name in ("dialect", "content", "base"):
        if not isinstance(given.get(name), str | None):
            raise UsageError(f"{name!r} must be a text")
    if not isinstance(allowed, list | tuple) or not all(isinstance(one, str) for one in allowed):
        raise UsageError("'allow_unbounded' must be a list of IRIs")
    backfill = given.get("backfill", False)
    if not isinstance(backfill, bool):
        raise UsageError("'backfill' must be true or false")
    return QueryText(
        given["text"],
        given.get("dialect"),
        given.get("content"),
        given.get("base"),
        tuple(allowed),
        backfill=backfill,
    )


def form_of(query: ContinuousQuery) -> str:
    """Return the form of a query."""
    match query.form:
        case ConstructForm():
            return "CONSTRUCT"
        case AskForm():
            return "ASK"
        case DescribeForm():
            return "DESCRIBE"
        case _:
            return "SELECT"


def variables_of(query: ContinuousQuery) -> list[str]:
    """Return the variables of the answers of a query; none of a CONSTRUCT."""
    if isinstance(query.form, ConstructForm):
        return []
    return [each.name for each in answer_variables(query)]


@final
class QueryDesk:
    """Answers requests about queries.

    Args:
        pool: the networks.
        overview: the last samples.
        known: returns the streams that queries can read.
        limits: how much requests may ask for.
    """

    def __init__(
        self,
        pool: NetworkPool,
        overview: Overview,
        known: Callable[[], frozenset[str]],
        limits: ServiceLimits,
    ) -> None:
        self._pool = pool
        self._overview = overview
        self._known = known
        self._limits = limits

    # --- before a query is registered ---

    def read(self, text: QueryText) -> ContinuousQuery:
        """Parse a query, and make all checks that need no plan.

        Raises:
            QuadweirError: the query is not valid.
        """
        if len(text.text) > self._limits.query_chars:
            raise LimitError(
                f"the query has {len(text.text):,} characters, and the limit is "
                f"{self._limits.query_chars:,}"
            )
        query = text.parsed()
        analyze(query)
        refuse_unbounded(query, allowed=frozenset(map(IRI, text.allow_unbounded)))
        if not query.windows:
            raise PlanError(
                "the query reads no stream: it would answer once, and the service has no end",
                hint="Add a window over a stream, or run it with `quadweir query`.",
            )
        known = self._known()
        for window in query.windows:
            if isinstance(window.stream, IRI) and window.stream.value not in known:
                raise undeclared(window.stream.value, sorted(known), span=window.span)
        return query

    def check(self, text: QueryText) -> dict[str, Any]:
        """Say everything about a query without registering it."""
        found: dict[str, Any] = {"ok": True, "problem": None, "dialect": None, "warnings": []}
        found |= {"explanation": None, "plan": None, "plan_problem": None, "network": None}
        found |= {"streams": [], "form": None, "variables": []}
        try:
            dialect = text.dialect or detect(text.text)
            found["dialect"] = TITLES.get(dialect, dialect)
            query = text.parsed()
            found["warnings"] = [warning_of(each) for each in warnings_of(query)]
            streams = streams_of(query)
            found |= {
                "streams": sorted(streams),
                "form": form_of(query),
                "variables": variables_of(query),
                "explanation": explanation(query, dialect),
            }
            self.read(text)
        except QuadweirError as error:
            return {**found, "ok": False, "problem": problem_of(error)}
        try:
            found["plan"] = planned(query)
        except QuadweirError as error:
            found["plan_problem"] = problem_of(error)
            return {**found, "ok": False, "problem": found["plan_problem"]}
        home = self._pool.covering(streams)
        found["network"] = home.name if home is not None else None
        return found

    def explain(self, name: str) -> dict[str, Any]:
        """Say how a query runs, with which others it shares what, and what it means.

        Raises:
            NotFoundError: there is none of the name.
        """
        home = self._pool.home_of(name)
        text = home.network.explain(name)
        found = home.query(name)
        if found is None:
            return {"text": text, "network": home.name}
        query = found.text.parsed()
        plan = plan_query(optimize(query).query, streams=())
        facts = next((each for each in home.templates() if each.number == found.template), None)
        return {
            "text": text,
            "network": home.name,
            "meaning": explanation(query, found.text.dialect or detect(found.text.text)),
            "stages": [
                {
                    "key": str(stage.key) if stage.key is not None else None,
                    "tree": render_nodes(stage.program),
                }
                for stage in plan.stages
            ],
            "template": _template_table(facts) if facts is not None else None,
        }

    def drawing(self, name: str) -> str:
        """Draw how a query runs, as SVG.

        Raises:
            NotFoundError: there is none of the name.
        """
        home = self._pool.home_of(name)
        found = home.query(name)
        if found is None:
            raise UnavailableError(f"the network {home.name} has not started yet")
        return plan_svg(plan_query(optimize(found.text.parsed()).query, streams=()))

    def translate(self, text: QueryText, to: str) -> dict[str, Any]:
        """Write a query in another dialect.

        Raises:
            QuadweirError: it is not a query, or the dialect cannot say it.
        """
        written = write(text.parsed(), to, prefixes=declared_prefixes(text.text))
        return {
            "text": written.text,
            "warnings": [
                {"aspect": each.aspect, "message": each.message} for each in written.warnings
            ],
        }

    # --- registering ---

    def register(
        self, given: Mapping[str, QueryText], *, replacing: bool
    ) -> tuple[list[str], dict[str, QuadweirError]]:
        """Register queries; return the names of the new ones, and the errors of the others."""
        texts: dict[str, QueryText] = {}
        streams: dict[str, frozenset[str]] = {}
        refused: dict[str, QuadweirError] = {}
        new = sum(not self._pool.has(name) for name in given)
        if self._pool.count + new > self._limits.queries:
            raise PressureError(
                f"there may be {self._limits.queries:,} queries",
                retry_after_s=60,
                hint="Delete queries that nobody needs.",
            )
        for name, text in given.items():
            try:
                check_name(name)
                streams[name] = streams_of(self.read(text))
                texts[name] = text
            except QuadweirError as error:
                refused[name] = error
        found = self._pool.register(texts, streams, replacing=replacing)
        return list(found.registered), {**refused, **found.refused}

    # --- what there is ---

    def listed(
        self, *, state: str | None = None, after: str | None = None, limit: int = 1000
    ) -> dict[str, Any]:
        """List queries by name."""
        found = {
            status.id: status
            for network in self._pool.networks()
            for status in network.status()
            if (state is None or status.state == state) and not status.id.startswith(TAP)
        }
        names = sorted(name for name in found if self._pool.has(name))
        page = [name for name in names if after is None or name > after][:limit]
        return {"queries": [self.one(name, found[name]) for name in page], "total": len(names)}

    def one(
        self, name: str, status: QueryStatus | None = None, *, whole: bool = False
    ) -> dict[str, Any]:
        """Say how a query is.

        Args:
            name: its name.
            status: how it is, if that is known.
            whole: whether to return its text, too.

        Raises:
            NotFoundError: there is none of the name.
        """
        home = self._pool.home_of(name)
        query = home.query(name)
        found: dict[str, Any] = {"name": name, "network": home.name}
        if query is None:
            return {**found, "state": home.state}
        status = status or self._overview.status_of(name)
        state = "stopped" if query.stopped is not None else "running"
        found |= {
            "state": "paused" if query.is_paused and query.stopped is None else state,
            "reason": query.stopped,
            "template": query.template,
            "shared_with": status.shared_with if status is not None else 0,
            "answers": status.answers if status is not None else 0,
            "rate": self._overview.rate_of(name),
            "backfill": asdict(query.backfill) if query.backfill is not None else None,
            **_facts_of(query.text),
        }
        if whole:
            text = query.text
            found |= {name: getattr(text, name) for name in ("text", "content", "base")}
            found["allow_unbounded"] = list(text.allow_unbounded)
        return found


def _template_table(facts: TemplateFacts) -> dict[str, Any]:
    return {**asdict(facts), "shares": sorted(facts.shares)}


@lru_cache(10_000)
def _facts_of(text: QueryText) -> dict[str, Any]:
    """Return what a query says about itself."""
    query = text.parsed()
    dialect = text.dialect or detect(text.text)
    return {
        "streams": sorted(streams_of(query)),
        "form": form_of(query),
        "variables": variables_of(query),
        "dialect": TITLES.get(dialect, dialect),
    }
