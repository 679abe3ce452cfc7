"""The queries of a network by name and number, and the templates that they share."""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, final

from quadweir.algebra.query import ConstructForm
from quadweir.errors import InternalError, QuadweirError, UsageError
from quadweir.plan.shapes import answer_variables
from quadweir.runtime.network.queries import (
    Backfilled,
    NetworkQuery,
    VersionChange,
    of_query,
)
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.network.templates import Templates

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery
    from quadweir.runtime.network.controllog import ControlLog, LogEntry
    from quadweir.runtime.network.spec import TemplateSpec
    from quadweir.runtime.network.templates import TemplateKey


@final
class QueryRegistry:
    """All queries of a network as of the last change, whether it counts already or not.

    Args:
        templates: plans what queries share.
        log: keeps every change.

    Attributes:
        specs: the templates, by number.
    """

    def __init__(self, templates: Templates, log: ControlLog) -> None:
        self._templates = templates
        self._log = log
        self._lock = threading.RLock()
        # Held while queries are planned; only one call at a time plans.
        self._planning = threading.Lock()
        self._by_id: dict[str, NetworkQuery] = {}
        self._by_number: dict[int, NetworkQuery] = {}
        self._stopped: dict[str, NetworkQuery] = {}
        self._keys: dict[TemplateKey, int] = {}
        self._of_template: dict[int, TemplateKey] = {}
        self._members: Counter[int] = Counter()
        # The groups that templates had before a restart, where these have others' numbers.
        self._groups: dict[int, int] = {}
        self.specs: dict[int, TemplateSpec] = {}
        self.pending: dict[int, VersionChange] = {}
        """The changes that no batch ran with yet, by version."""
        self._next_number = self._next_template = 0
        self._load()

    # --- reading ---

    def __len__(self) -> int:
        return len(self._by_id)

    def queries(self) -> list[NetworkQuery]:
        """List the queries that run or are paused, in the order in which they were registered."""
        with self._lock:
            return list(self._by_id.values())

    def stopped(self) -> list[NetworkQuery]:
        """List the queries that were stopped because they failed."""
        with self._lock:
            return list(self._stopped.values())

    def get(self, query: str) -> NetworkQuery | None:
        """Return a query by its name."""
        return self._by_id.get(query)

    def by_number(self, number: int) -> NetworkQuery | None:
        """Return a query by its number."""
        return self._by_number.get(number)

    # --- changes ---

    def register(
        self, given: Mapping[str, QueryText], *, replacing: bool
    ) -> tuple[list[NetworkQuery], dict[str, QuadweirError]]:
        """Register queries, as one change: after a crash, all of them are there or none.

        Args:
            given: the queries, by name. One that is there already with the same text stays.
            replacing: whether a query of the same name is replaced if its text differs.

        Returns:
            The queries that are new, and the errors of those that were refused.
        """
        made: list[NetworkQuery] = []
        refused: dict[str, QuadweirError] = {}
        # Planning takes long for many queries. Batches begin meanwhile.
        with self._planning:
            for name, text in given.items():
                known = self._by_id.get(name)
                if known is not None and known.text == text:
                    continue
                if known is not None and not replacing:
                    refused[name] = UsageError(
                        f"there is a query {name!r} already",
                        hint="Choose another name, or replace it.",
                    )
                    continue
                try:
                    made.append(self._made(name, text))
                except QuadweirError as error:
                    refused[name] = error
                except Exception:  # a fault of ours; it must not cost the other queries
                    refused[name] = InternalError(
                        f"the query {name!r} cannot be planned", detail=traceback.format_exc()
                    )
            if made:
                self._join(made)
        return made, refused

    def _join(self, made: list[NetworkQuery]) -> None:
        """Let queries join, in place of those that have their names."""
        with self._lock:
            leaving = [each for new in made if (each := self._by_id.get(new.id)) is not None]
            entry = {
                "register": [
                    [each.number, each.id, each.template, each.text.table()] for each in made
                ],
                "unregister": [each.number for each in leaving],
                "groups": self._groups_of({each.template for each in made}),
            }
            self._take(self._logged(entry), VersionChange(joining=made, leaving=leaving))

    def unregister(self, names: Iterable[str]) -> list[str]:
        """Let queries leave; return their names.

        Raises:
            UsageError: there is no query of a name; then all stay.
        """
        with self._lock:
            found = self._known(names, among={**self._stopped, **self._by_id})
            if found:
                leaving = [each for each in found if each.number in self._by_number]
                version = self._logged({"unregister": [each.number for each in found]})
                for each in found:
                    if self._stopped.get(each.id) is each:
                        del self._stopped[each.id]
                self._take(version, VersionChange(leaving=leaving))
        return [each.id for each in found]

    def stop(self, reasons: Mapping[int, str]) -> list[NetworkQuery]:
        """Stop queries that failed, by number; those that left meanwhile are ignored."""
        with self._lock:
            found = [
                query
                for number in reasons
                if (query := self._by_number.get(number)) is not None and query.stopped is None
            ]
            if found:
                stopped = [[each.number, reasons[each.number]] for each in found]
                version = self._logged({"stop": stopped})
                for each in found:
                    each.stopped = reasons[each.number]
                self._take(version, VersionChange(leaving=found))
        return found

    def pause(self, names: Iterable[str], *, is_paused: bool) -> None:
        """Let queries give no answers for now, or let them give answers again.

        Raises:
            UsageError: there is no query of a name.
        """
        with self._lock:
            found = [each for each in self._known(names) if each.is_paused != is_paused]
            if not found:
                return
            numbers = [each.number for each in found]
            version = self._logged({"pause" if is_paused else "resume": numbers})
            for each in found:
                each.is_paused = is_paused
            if is_paused:
                self._take(version, VersionChange(paused=numbers))
            else:
                self._take(version, VersionChange(resumed=numbers))

    def _known(
        self, names: Iterable[str], *, among: Mapping[str, NetworkQuery] | None = None
    ) -> list[NetworkQuery]:
        queries = self._by_id if among is None else among
        found = []
        for name in dict.fromkeys(names):
            query = queries.get(name)
            if query is None:
                raise UsageError(
                    f"there is no query {name!r}", hint="`network.status()` lists the queries."
                )
            found.append(query)
        return found

    def _logged(self, entry: LogEntry) -> int:
        """Log a change and return its version; if that fails, nothing has changed."""
        return self._log.append({name: value for name, value in entry.items() if value})

    def _take(self, version: int, change: VersionChange) -> None:
        self.pending[version] = change
        self._apply(change)

    def _apply(self, change: VersionChange) -> None:
        for query in change.leaving:
            del self._by_number[query.number]
            self._members[query.template] -= 1
            if self._by_id.get(query.id) is query:
                del self._by_id[query.id]
            if query.stopped is not None:
                self._stopped[query.id] = query
        for query in change.joining:
            self._stopped.pop(query.id, None)
            self._by_id[query.id] = self._by_number[query.number] = query
            self._members[query.template] += 1

    # --- templates ---

    def _groups_of(self, templates: Iterable[int]) -> list[tuple[int, int]]:
        """Return the groups of templates that have that of another one."""
        groups = [(each, self.specs[each].group) for each in sorted(templates)]
        return [(each, group) for each, group in groups if group not in (None, each)]

    def _made(self, name: str, text: QueryText) -> NetworkQuery:
        """Make a query, and its template if it is the first of it."""
        query = text.parsed()
        key, constants, ranges = self._shaped(query, text)
        template = self._keys.get(key)
        if template is None:
            template = self._plan(key, self._next_template, longest_ms=max(ranges, default=1))
        found = self._query(self._next_number, name, text, query, template, constants, ranges)
        self._next_number += 1
        return found

    def _shaped(
        self, query: ContinuousQuery, text: QueryText
    ) -> tuple[TemplateKey, tuple[str, ...], tuple[int, ...]]:
        key, shaped = self._templates.shape_of(query, text.allow_unbounded)
        return key, tuple(map(str, shaped.constants)), shaped.ranges

    def _plan(
        self, key: TemplateKey, number: int, *, longest_ms: int, group: int | None = None
    ) -> int:
        spec = self._templates.plan(key, number, longest_ms=longest_ms, group=group)
        with self._lock:
            self.specs[number] = spec
            self._keys[key], self._of_template[number] = number, key
            self._next_template = max(self._next_template, number + 1)
        return number

    def _query(
        self,
        number: int,
        name: str,
        text: QueryText,
        query: ContinuousQuery,
        template: int,
        constants: tuple[str, ...],
        ranges: tuple[int, ...],
    ) -> NetworkQuery:
        form = query.form
        return NetworkQuery(
            number,
            name,
            text,
            template,
            constants,
            ranges,
            tuple(each.name for each in answer_variables(query)),
            form if isinstance(form, ConstructForm) else None,
            backfill=Backfilled() if text.backfill else None,
        )

    def forget(self, templates: Iterable[int]) -> list[int]:
        """Let templates go that no query uses; return which have gone.

        None of them goes while queries are planned, which may need them.
        """
        if not self._planning.acquire(blocking=False):
            return []
        try:
            with self._lock:
                gone = [
                    number
                    for number in templates
                    if not self._members[number] and number in self._of_template
                ]
                for number in gone:
                    self._forget(number)
            return gone
        finally:
            self._planning.release()

    def _forget(self, number: int) -> None:
        key = self._of_template.pop(number)
        # The log may name two templates of a shape: the first one was forgotten once.
        if self._keys.get(key) == number:
            del self._keys[key]
        del self.specs[number], self._members[number]
        self._templates.drop(number)

    # --- the log ---

    def _load(self) -> None:
        """Take the registry from the log, as of its last change."""
        base = self._log.base
        self._next_number = int(base.get("next_number", 0))
        self._next_template = int(base.get("next_template", 0))
        self._groups.update(base.get("groups", []))
        for row in base.get("queries", []):
            query = self._again(*row)
            if query.stopped is None:
                self._apply(VersionChange(joining=[query]))
            else:
                self._stopped[query.id] = query
        for version, entry in self._log.changes():
            self._groups.update(entry.get("groups", []))
            change = self._read(entry)
            self.pending[version] = change
            self._apply(change)

    def _read(self, entry: LogEntry) -> VersionChange:
        """Return what a change in the log changes; queries that were stopped before are let go."""
        change = VersionChange(paused=entry.get("pause", []), resumed=entry.get("resume", []))
        for number in entry.get("unregister", []):
            if number in self._by_number:
                change.leaving.append(self._by_number[number])
            else:
                for name in [n for n, each in self._stopped.items() if each.number == number]:
                    del self._stopped[name]
        for number, reason in entry.get("stop", []):
            query = self._by_number[number]
            query.stopped = reason
            change.leaving.append(query)
        change.joining = [self._again(*row) for row in entry.get("register", [])]
        for numbers, is_paused in ((change.paused, True), (change.resumed, False)):
            for number in numbers:
                self._by_number[number].is_paused = is_paused
        return change

    def _again(
        self,
        number: int,
        name: str,
        template: int,
        table: dict[str, Any],
        is_paused: bool = False,
        stopped: str | None = None,
    ) -> NetworkQuery:
        """Make a query that the log has."""
        text = QueryText.of_table(table)
        try:
            query = text.parsed()
            key, constants, ranges = self._shaped(query, text)
            if template not in self.specs:
                group = self._groups.get(template, template)
                self._plan(key, template, longest_ms=max(ranges, default=1), group=group)
        except QuadweirError as error:
            raise of_query(name, error) from None
        self._next_number = max(self._next_number, number + 1)
        found = self._query(number, name, text, query, template, constants, ranges)
        found.is_paused, found.stopped = is_paused, stopped
        return found

    def templates(self) -> dict[int, TemplateSpec]:
        """Return the templates that there are now, by number; others may come at any time."""
        with self._lock:
            return dict(self.specs)

    def members_of(self, template: int) -> int:
        """Return how many queries use a template."""
        return self._members[template]

    def queries_at(self, version: int) -> dict[int, NetworkQuery]:
        """Return the queries that ran at a version that is not long ago, by number."""
        with self._lock:
            found = dict(self._by_number)
            for of in sorted(self.pending, reverse=True):
                if of > version:
                    change = self.pending[of]
                    for query in change.joining:
                        found.pop(query.number, None)
                    found |= {query.number: query for query in change.leaving}
            return found

    def take_changes(self, after: int, through: int) -> VersionChange | None:
        """Return what some versions change, if there are any; they are no longer pending."""
        with self._lock:
            found = [self.pending[each] for each in range(after + 1, through + 1)]
            for each in [version for version in self.pending if version <= through]:
                del self.pending[each]
            return VersionChange.of(found) if found else None
