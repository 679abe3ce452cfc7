"""The queries of a network that does not run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, final

from quadweir.errors import QuadweirError, UsageError
from quadweir.runtime.network.status import Registration

if TYPE_CHECKING:
    from quadweir.runtime.network.querytext import QueryText


@final
class WaitingQueries:
    """Queries that join when the network starts.

    Attributes:
        texts: the queries, by name.
        paused: the names of those that are paused.
    """

    def __init__(self) -> None:
        self.texts: dict[str, QueryText] = {}
        self.paused: set[str] = set()

    def register(self, texts: Mapping[str, QueryText], *, replacing: bool) -> Registration:
        """Take queries that parse; they are planned when the network starts."""
        refused: dict[str, QuadweirError] = {}
        for name, text in texts.items():
            if self.texts.get(name, text) != text and not replacing:
                refused[name] = UsageError(
                    f"there is a query {name!r} already",
                    hint="Choose another name, or replace it.",
                )
                continue
            try:
                text.parsed()
            except QuadweirError as error:
                refused[name] = error
                continue
            self.texts[name] = text
        return Registration(tuple(name for name in texts if name not in refused), refused)

    def unregister(self, names: Iterable[str]) -> list[str]:
        """Drop queries; return their names.

        Raises:
            UsageError: there is no query of a name; then all stay.
        """
        found = self._known(names)
        for name in found:
            del self.texts[name]
            self.paused.discard(name)
        return found

    def pause(self, names: Iterable[str], *, is_paused: bool) -> None:
        """Let queries begin paused, or not.

        Raises:
            UsageError: there is no query of a name.
        """
        found = self._known(names)
        self.paused = self.paused | {*found} if is_paused else self.paused - {*found}

    def _known(self, names: Iterable[str]) -> list[str]:
        found = list(dict.fromkeys(names))
        for name in found:
            if name not in self.texts:
                raise UsageError(
                    f"there is no query {name!r}", hint="`network.queries()` lists the queries."
                )
        return found
