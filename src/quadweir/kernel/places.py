"""What a shared shard needs, each once, and which of its heads needs it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import final

import numpy as np

from quadweir.kernel.arrivals import matches_of
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.events import Events
from quadweir.kernel.heads import Head
from quadweir.kernel.window import Leaf
from quadweir.plan.nodes import Match, Source


@final
class Places:
    """The leaves and sources of some heads.

    Attributes:
        leaves: The matches needed, by the places of `Events.matches`.
        sources: The windows over streams, by the places of `Events.seen`.
        holders: What holds the matches of each leaf.
    """

    def __init__(self, heads: Iterable[Head]) -> None:
        self._heads = tuple(heads)
        self._sources: dict[tuple[str, object], Source] = {}
        places: dict[Leaf, int] = {}
        leaves: list[Match] = []
        self._users: list[list[tuple[Head, int]]] = []
        for head in self._heads:
            for each in head.program.sources:
                own = replace(each, window=len(self._sources))
                self._sources.setdefault((each.stream, each.event_time), own)
            for place, (match, leaf) in enumerate(
                zip(head.program.matches, head.leaves, strict=True)
            ):
                if leaf not in places:
                    places[leaf] = len(leaves)
                    source = self._sources[match.source.stream, match.source.event_time]
                    leaves.append(replace(match, source=source))
                    self._users.append([])
                self._users[places[leaf]].append((head, place))
        self.leaves, self.sources = tuple(leaves), tuple(self._sources.values())
        self.holders = tuple(places)
        self._of = {head.name: [places[leaf] for leaf in head.leaves] for head in self._heads}

    def of(self, head: str) -> list[int]:
        """Return the places here of the leaves of a head, in its own order."""
        return self._of[head]

    def admitted(self, events: Events) -> Events:
        """Leave out what no member sees, and the matches that no member asks for."""
        matches = {}
        for place, columns in events.matches.items():
            wanted = np.zeros(len(columns.time), dtype=bool)
            for head, own in self._users[place]:
                later = columns.time > head.router.since
                asked = head.router.are_wanted(own, columns) if later.any() else None
                wanted |= later if asked is None else later & asked
            if wanted.any():
                matches[place] = columns.pick(wanted)
        return Events(matches, {}, events.seen)

    def hear(self, events: Events, dictionary: Dictionary) -> None:
        """Hand what has arrived to leaves and heads."""
        for place, columns in events.matches.items():
            self.holders[place].hear(matches_of(self.leaves[place], columns, dictionary))
        for head in self._heads:
            seen = {}
            for place, source in enumerate(head.program.sources):
                number = self._sources[source.stream, source.event_time].window
                if number in events.seen:
                    seen[place] = events.seen[number]
            head.reporter.hear(Events(seen=seen).later(head.router.since))
