"""A social network that is fast to generate: posts, photos and likes for measuring queries.

The shapes of elements, friendships and likes are LSBench's. The numbers are random, from a seed,
without the correlations of LSBench, so thousands of users and millions of triples take seconds.
Streams are Parquet files of statements, one for each batch.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quadweir.bench.live import FILES
from quadweir.kernel.arrays import Ints

SIB: Final = "http://www.ins.cwi.nl/sib/"
STREAM: Final = f"{SIB}stream/"
_VOCABULARY: Final = f"{SIB}vocabulary/"
_SIOC: Final = "http://rdfs.org/sioc/ns#"
_FOAF: Final = "http://xmlns.com/foaf/0.1/"
_DC: Final = "http://purl.org/dc/"
_DBPPROP: Final = "http://dbpedia.org/property/"
_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

START: Final = 1_700_000_000_000
FIRST_USER: Final = 900
"""LSBench's queries ask for user 984 and person 984."""
_FRIENDS: Final = 5
_TAGS: Final = 2_000
POST_TRIPLES: Final = 11
PHOTO_TRIPLES: Final = 8


@final
@dataclass(frozen=True, slots=True)
class SocialNetworkSize:
    """The size and the speed of a network.

    Attributes:
        users: how many there are.
        posts_a_ms: posts (or photos) in a millisecond of event time.
        likes: likes for each of them.
        seed: the same seed gives the same bytes.
    """

    users: int = 10_000
    posts_a_ms: int = 2
    likes: int = 4
    seed: int = 1

    def posts(self, first: int, count: int) -> pa.Table:
        """The statements of posts, eleven triples each."""
        random = np.random.default_rng((self.seed, first))
        number = np.arange(first, first + count)
        post = _names("post/po", number)
        author = _names("user/u", self._users(random, count))
        tags = random.integers(0, _TAGS, (2, count))
        columns: list[tuple[pa.Array, str, pa.Array]] = [
            (post, _TYPE, _same(f"<{_VOCABULARY}Post>", count)),
            (post, _TYPE, _same(f"<{_SIOC}Post>", count)),
            (post, f"<{_DC}terms/title>", _texts("title ", number % 997)),
            (post, f"<{_DC}elements/1.1/created>", _texts("2026-05-", number % 28 + 1)),
            (post, f"<{_VOCABULARY}browser>", _texts("browser ", number % 5)),
            (post, f"<{_SIOC}ip_address>", _texts("10.0.0.", number % 251)),
            (post, f"<{_SIOC}content>", _texts("what there is to say of number ", number)),
            (post, f"<{_VOCABULARY}hashtag>", _texts("tag ", tags[0])),
            (post, f"<{_VOCABULARY}hashtag>", _texts("tag ", tags[1])),
            (_names("forum/fo", self._users(random, count)), f"<{_SIOC}container_of>", post),
            (author, f"<{_SIOC}creator_of>", post),
        ]
        return _statements("posts", self._times(number), number, columns)

    def photos(self, first: int, count: int) -> pa.Table:
        """The statements of photos, eight triples each."""
        random = np.random.default_rng((self.seed, first, 1))
        number = np.arange(first, first + count)
        photo = _names("photo/ph", number)
        album = _names("album/a", number // 20)
        columns: list[tuple[pa.Array, str, pa.Array]] = [
            (photo, _TYPE, _same(f"<{_VOCABULARY}Photo>", count)),
            (photo, _TYPE, _same(f"<{_SIOC}Item>", count)),
            (photo, "<http://dbpedia.org/ontology/location>", _texts("place ", number % 503)),
            (photo, f"<{_DBPPROP}latd>", _texts("50.", number % 1000)),
            (photo, f"<{_DBPPROP}longd>", _texts("4.", number % 1000)),
            (photo, f"<{_VOCABULARY}usertag>", _names("user/u", self._users(random, count))),
            (photo, f"<{_VOCABULARY}usertag>", _names("user/u", self._users(random, count))),
            (album, f"<{_SIOC}container_of>", photo),
        ]
        return _statements("photos", self._times(number), number, columns)

    def likes_of(self, what: str, first: int, count: int) -> pa.Table:
        """The likes of posts (`post`) or photos (`photo`), each a little after its item."""
        random = np.random.default_rng((self.seed, first, 2))
        number = np.repeat(np.arange(first, first + count), self.likes)
        kind = "post/po" if what == "post" else "photo/ph"
        liked = _names(kind, number)
        user = _names("user/u", self._users(random, len(number)))
        # Likes stay in the batch of their item, so that files do not overlap in time.
        times = np.minimum(
            self._times(number) + random.integers(1, 90, len(number)),
            self._times(np.array([first + count - 1])),
        )
        position = np.arange(first * self.likes, first * self.likes + len(number))
        return _statements(
            f"{what}-likes", times, position, [(user, f"<{_VOCABULARY}like>", liked)]
        )

    def static(self, *, folder: Path) -> int:
        """Write accounts, names, friends and subscriptions as N-Triples; return the number of
        triples.
        """
        random = np.random.default_rng((self.seed, 3))
        folder.mkdir(parents=True, exist_ok=True)
        count = 0
        step = 100_000
        for number, first in enumerate(range(0, self.users, step)):
            users = np.arange(first, min(first + step, self.users)) + FIRST_USER
            many = np.repeat(users, _FRIENDS)
            own, person = _names("user/u", users), _names("person/p", users)
            parts = [
                (own, f"<{_SIOC}account_of>", person),
                (person, f"<{_FOAF}name>", _texts("Person ", users)),
                (
                    _names("user/u", many),
                    f"<{_FOAF}knows>",
                    _names("user/u", self._users(random, len(many))),
                ),
                (
                    _names("user/u", many),
                    f"<{_SIOC}subscriber_of>",
                    _names("forum/fo", self._users(random, len(many))),
                ),
            ]
            with (folder / f"part-{number:04}.nt").open("w", encoding="utf-8") as file:
                for subject, predicate, end in parts:
                    lines = pc.binary_join_element_wise(subject, predicate, end, ".", " ")
                    file.write("\n".join(lines.to_pylist()) + "\n")
                    count += len(subject)
        return count

    def _users(self, random: np.random.Generator, count: int) -> Ints:
        return random.integers(FIRST_USER, FIRST_USER + self.users, count)

    def _times(self, number: Ints) -> Ints:
        return START + number // self.posts_a_ms


def write_streams(
    network: SocialNetworkSize,
    streams: Sequence[str],
    folder: Path,
    *,
    batches: int,
    triples: int,
    first: int = 0,
) -> int:
    """Write the streams of a query, `FILES` of each for every batch; return the triples in a batch.

    Args:
        network: the network to generate from.
        streams: the names of the streams after LSBench's.
        folder: each stream gets a folder in it.
        batches: the number of batches.
        triples: about how many triples all streams have in a batch.
        first: the number of the first batch.
    """
    weights = {
        "posts": POST_TRIPLES,
        "photos": PHOTO_TRIPLES,
        "post-likes": network.likes,
        "photo-likes": network.likes,
    }
    items = max(1, triples // sum(weights[each] for each in streams))
    written = 0
    for batch in range(first, first + batches):
        item = batch * items
        for name in streams:
            table = {
                "posts": lambda at: network.posts(at, items),
                "photos": lambda at: network.photos(at, items),
                "post-likes": lambda at: network.likes_of("post", at, items),
                "photo-likes": lambda at: network.likes_of("photo", at, items),
            }[name](item)
            (folder / name).mkdir(parents=True, exist_ok=True)
            size = -(-table.num_rows // FILES)
            for part in range(FILES):
                file = folder / name / f"{batch:05}-{part}.parquet"
                pq.write_table(table.slice(part * size, size), file, compression="snappy")
                # Spark reads files in the order of their modification times.
                at = START // 1000 + batch * FILES + part
                os.utime(file, (at, at))
            written += table.num_rows
    return written // batches


def _statements(
    stream: str,
    times: Ints,
    positions: Ints,
    columns: list[tuple[pa.Array, str, pa.Array]],
) -> pa.Table:
    """Interleave the triples of elements, in order of time."""
    count, width = len(times), len(columns)
    # Triple k of element e stands at e * width + k once all are interleaved.
    order = np.arange(count * width).reshape(width, count).T.ravel()
    arrays = [
        pa.concat_arrays([subject for subject, _, _ in columns]),
        pa.array(np.repeat(np.arange(width), count)),
        pa.concat_arrays([end for _, _, end in columns]),
    ]
    predicates = pa.array([predicate for _, predicate, _ in columns])
    taken = pa.array(order)
    table = pa.table(
        {
            "stream": _same(f"{STREAM}{stream}", count * width),
            "event_time": np.repeat(times, width),
            "position": np.repeat(positions, width),
            "subject": arrays[0].take(taken),
            "predicate": predicates.take(arrays[1].take(taken)),
            "object": arrays[2].take(taken),
            "graph": pa.nulls(count * width, pa.string()),
        }
    )
    return table.sort_by("event_time") if stream.endswith("-likes") else table


def _names(kind: str, numbers: Ints) -> pa.Array:
    return pc.binary_join_element_wise(
        f"<{SIB}{kind}", pa.array(numbers).cast(pa.string()), ">", ""
    )


def _texts(words: str, numbers: Ints) -> pa.Array:
    return pc.binary_join_element_wise(f'"{words}', pa.array(numbers).cast(pa.string()), '"', "")


def _same(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)
