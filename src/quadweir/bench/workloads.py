"""The questions of the papers, with their streams and the published figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Final, final

import pyarrow as pa

from quadweir.bench import taxis, weather
from quadweir.bench.lsbench.network import FriendNetwork, make_network
from quadweir.bench.lsbench.parameters import STREAM_IRI, Parameters
from quadweir.bench.lsbench.tables import make_tables, static_table

DIALECTS: Final = ("rspql", "csparql", "cqels")
CQELS_2012: Final = "CQELS (2012)"
CQELS_2016: Final = "CQELS operator-aware (2016)"
C_SPARQL: Final = "C-SPARQL"
JTALIS: Final = "JTALIS"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query of a workload.

    Attributes:
        name: Q1 and so on.
        asks: the question in a few words.
        text: the query.
        streams: the IRIs of the streams that it reads.
        published: input triples a second that others reported, by their names.
        memory: megabytes used by CQELS (2016).
        share: the share of the input that it gets in speed measurements; a query that recomputes
        much at every instant gets less.
    """

    name: str
    asks: str
    text: str
    streams: tuple[str, ...]
    published: Mapping[str, float] = field(default_factory=dict)
    memory: float | None = None
    share: float = 1.0

    @property
    def at_least(self) -> float | None:
        """The target: the best published figure, or three times that for simple queries."""
        best = self.published.get(CQELS_2016)
        return None if best is None else best * (3 if self.memory is not None else 1)


@final
@dataclass(frozen=True, slots=True)
class Data:
    """Streams by their IRIs, in the order of time, and static triples."""

    streams: Mapping[str, pa.Table]
    static: pa.Table | None = None

    def of(self, question: Question) -> Data:
        """The data of a question."""
        return Data({iri: self.streams[iri] for iri in question.streams}, self.static)


def _text(*path: str) -> str:
    folder = resources.files("quadweir.bench") / "queries"
    return folder.joinpath(*path).read_text(encoding="utf-8")


# --- LSBench ----------------------------------------------------------------------------------

# The question, its streams, and from papers 001 and 002: triples a second and megabytes.
_LSBENCH: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "Q1": ("all of one user", ("posts",)),
    "Q2": ("posts of a person", ("posts",)),
    "Q3": ("posts of friends", ("posts",)),
    "Q4": ("two posts, one hashtag", ("posts",)),
    "Q5": ("photos a friend liked", ("photo-likes", "photos")),
    "Q6": ("posts a friend liked", ("post-likes", "posts")),
    "Q7": ("friends tagged nearby", ("gps", "photos", "photo-likes")),
    "Q8": ("likes by strangers", ("photo-likes", "photos")),
    "Q9": ("friends of friends", ("post-likes", "posts", "photo-likes", "photos")),
    "Q10": ("posts for each hashtag", ("posts",)),
    "Q11": ("average likes of an author", ("posts", "post-likes")),
    "Q12": ("ten most used hashtags", ("posts",)),
}
_FIGURES: Final = {
    #      C-SPARQL, JTALIS, CQELS 2012, CQELS 2016, MB
    "Q1": (10, 3_790, 24_122, 118_924, 374),
    "Q2": (1.68, 3_857, 8_462, 96_789, 370),
    "Q3": (1.63, 1_062, 9_828, 88_647, 380),
    "Q4": (10, 99, 1_304, 60_467, 398),
    "Q5": (1.72, None, 7_459, 52_890, 389),
    "Q6": (1.71, None, 3_491, 44_391, 402),
    "Q10": (10, 87, 2_326, 103_698, 370),
}
_SHARES: Final = {"Q7": 1 / 40, "Q9": 1 / 8}
RUNS_ELSEWHERE: Final[dict[str, dict[str, str]]] = {
    "CQELS 1": {"Q8": "not supported", "Q11": "not supported", "Q12": "not supported"},
    C_SPARQL: {"Q7": "syntax error", "Q8": "syntax error", "Q9": "error"},
    JTALIS: {
        **dict.fromkeys(("Q5", "Q6", "Q7", "Q8", "Q9"), "no answer"),
        **dict.fromkeys(("Q11", "Q12"), "not supported"),
    },
}
"""From paper 002: the queries that other engines could not answer, and why."""
STATIC_GRAPH: Final = "urn:lsbench:static"
"""The graph in which C-SPARQL's queries look for the static data."""


def lsbench(dialect: str = "cqels") -> dict[str, Question]:
    """The twelve queries of LSBench in a dialect, by their names."""
    found = {}
    for name, (asks, streams) in _LSBENCH.items():
        figures = _FIGURES.get(name)
        names = (C_SPARQL, JTALIS, CQELS_2012, CQELS_2016)
        published = dict(zip(names, figures, strict=False)) if figures is not None else {}
        found[name] = Question(
            name=name,
            asks=asks,
            text=_text("lsbench", dialect, f"q{int(name[1:]):02}.rq"),
            streams=tuple(STREAM_IRI + stream for stream in streams),
            published={who: value for who, value in published.items() if value is not None},
            memory=figures[4] if figures is not None else None,
            share=_SHARES.get(name, 1.0),
        )
    return found


SMALL: Final = Parameters(
    users=30, days=7, first_user=980, min_friends=3, max_friends=12, max_posts=40,
    max_comments=10, max_photos=20, gps_events=200, min_attendance=4, max_attendance=10,
    lone_trackers=0.2, reaction_hours=0.2,
)  # fmt: skip
"""A network in which every query has answers after a few hundred triples."""
LARGE: Final = Parameters(
    users=1000, days=30, max_posts=220, max_comments=220, max_photos=220,
    like_probability=0.3, photo_like_probability=0.3, gps_events=10,
)  # fmt: skip
"""As many users as in the paper, who post more: two million triples of each stream except gps."""


def lsbench_data(parameters: Parameters, *questions: Question) -> Data:
    """The streams that questions read, and the static data, of a network."""
    network = make_network(parameters)
    return Data(lsbench_streams(network, *questions), static_table(network))


def lsbench_streams(network: FriendNetwork, *questions: Question) -> dict[str, pa.Table]:
    """The streams that questions read, by their IRIs."""
    read = {iri.removeprefix(STREAM_IRI) for question in questions for iri in question.streams}
    return {STREAM_IRI + name: table for name, table in make_tables(network, sorted(read)).items()}


# --- SRBench ----------------------------------------------------------------------------------

_SRBENCH: Final = {
    "Q1": ("rainfall of the last hour", 25_147),
    "Q4": ("wind where it is warm", 20_161),
    "Q5": ("storms", 13_966),
    "Q8": ("temperatures near a place", 22_278),
    "Q10": ("heavy rain and where", 29_463),
}


def srbench() -> dict[str, Question]:
    """The five queries of SRBench that paper 001 measured, by their names."""
    return {
        name: Question(
            name=name,
            asks=asks,
            text=_text("srbench", f"q{int(name[1:]):02}.rq"),
            streams=(weather.OBSERVATIONS,),
            published={CQELS_2016: figure},
        )
        for name, (asks, figure) in _SRBENCH.items()
    }


def srbench_data(stations: int, hours: int) -> Data:
    """Observations of stations, and static data about the stations."""
    streams = {weather.OBSERVATIONS: weather.make_observations(stations, hours)}
    return Data(streams, weather.make_stations(stations))


# --- taxis ------------------------------------------------------------------------------------


def taxi() -> Question:
    """The query of paper 001 about the hourly rate of taxis."""
    return Question(
        name="taxi",
        asks="hourly rate of active taxis",
        text=_text("taxi.rq"),
        streams=tuple(taxis.STREAM + name for name in taxis.STREAMS),
        # With the whole input, each triple would give a hundred answers.
        share=0.05,
    )


def taxi_data(count: int, rides: int) -> Data:
    """Rides of so many taxis."""
    return Data(taxis.make_rides(count, rides))
