"""Which networks there are, and which network each query is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadweir.service.problems import NotFoundError

if TYPE_CHECKING:
    from quadweir.service.servednetwork import ServedNetwork


class NetworkBook:
    """Networks by id, and the homes of queries by name."""

    def __init__(self) -> None:
        self._networks: dict[str, ServedNetwork] = {}
        self._homes: dict[str, ServedNetwork] = {}

    def networks(self) -> list[ServedNetwork]:
        """List the networks."""
        return list(self._networks.values())

    def get(self, name: str) -> ServedNetwork:
        """Return a network.

        Raises:
            NotFoundError: there is none of the id.
        """
        found = self._networks.get(name)
        if found is None:
            raise NotFoundError(f"there is no network {name!r}")
        return found

    def home_of(self, query: str) -> ServedNetwork:
        """Return the network of a query.

        Raises:
            NotFoundError: there is no query of the name.
        """
        found = self._homes.get(query)
        if found is None:
            raise NotFoundError(
                f"there is no query {query!r}", hint="GET /queries lists the queries."
            )
        return found

    def has(self, query: str) -> bool:
        """Whether there is a query of a name."""
        return query in self._homes

    @property
    def count(self) -> int:
        """How many queries there are."""
        return len(self._homes)

    def covering(self, streams: frozenset[str]) -> ServedNetwork | None:
        """Return the smallest network that reads some streams, if there is one."""
        found = [
            each
            for each in self._networks.values()
            if streams <= each.streams and each.state != "stopped"
        ]
        return min(found, key=lambda each: (len(each.streams), each.number), default=None)

    def readers(self, stream: str) -> list[ServedNetwork]:
        """Return the networks that read a stream."""
        return [each for each in self._networks.values() if stream in each.streams]
