"""The activity of users as columns of numbers: who acts, at which instant, on which item.

The numbers of a range of users do not depend on other ranges; `spell.py` turns them into text. An
item's number identifies its owner: each user has an own range of numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from quadweir.bench.lsbench.draw import Dice, repeat_each
from quadweir.bench.lsbench.parameters import DAY_MS, HOUR_MS, MINUTE_MS, Parameters

if TYPE_CHECKING:
    from quadweir.bench.lsbench.draw import Floats, Ints
    from quadweir.bench.lsbench.network import FriendNetwork

EVENTS: Final = pa.schema(
    [
        pa.field("time", pa.int64(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("item", pa.int64(), nullable=False),
        pa.field("actor", pa.int64(), nullable=False),
        pa.field("parent", pa.int64(), nullable=False),
    ]
)
"""An event of a stream: its instant; what kind of item; its number; the user who acts; and what the
item belongs to: the post of a comment, the album of a photo, the event of a position."""

POST: Final = 0
COMMENT: Final = 1
PHOTO: Final = 2
FIRST_PHOTO: Final = 3
"""A photo that opens its album."""
POSITION: Final = 4

_WEEK_MS: Final = 7 * DAY_MS
_LEAST_FIXES: Final = 60
_MOST_FIXES: Final = 180
_LEAST_WALK: Final = 10
_MOST_WALK: Final = 45
_UPLOAD_MS: Final = 20_000


def user_events(network: FriendNetwork, users: Ints) -> dict[str, pa.RecordBatch]:
    """All events of users' posts and photos, with the reactions of their friends."""
    posts, post_likes = _posts(network, users)
    photos, photo_likes = _photos(network, users)
    return {
        "posts": posts,
        "post-likes": post_likes,
        "photos": photos,
        "photo-likes": photo_likes,
        "gps": _walks(network, users),
    }


def in_order(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Merge events and sort them by time, then kind, item and actor."""
    table = pa.Table.from_batches(batches, schema=EVENTS).combine_chunks()
    if table.num_rows == 0:
        return pa.RecordBatch.from_pylist([], schema=EVENTS)
    keys = [table.column(name).to_numpy() for name in ("actor", "item", "kind", "time")]
    return table.take(pa.array(np.lexsort(keys))).combine_chunks().to_batches()[0]


def _batch(time: Ints, kind: Ints | int, item: Ints, actor: Ints, parent: Ints) -> pa.RecordBatch:
    kinds = np.broadcast_to(np.asarray(kind, dtype=np.int8), time.shape)
    columns = [pa.array(np.ascontiguousarray(each)) for each in (time, kinds, item, actor, parent)]
    return pa.RecordBatch.from_arrays(columns, schema=EVENTS)


def _weekly(
    network: FriendNetwork, users: Ints, most: int, purpose: str
) -> tuple[Ints, Ints, Ints]:
    """The number of items of each user in each week: users, weeks and counts, one row for each
    pair.

    The number is uniform from 0 to `most`, scaled by the number of friends. A fraction is the
    chance of one more item. A last week that is cut short gets its share.
    """
    parameters = network.parameters
    dice = Dice(parameters.seed)
    who = np.repeat(users, parameters.weeks)
    week = np.tile(np.arange(parameters.weeks), len(users))
    length = np.minimum(_WEEK_MS, parameters.days * DAY_MS - week * _WEEK_MS) / _WEEK_MS
    drawn = dice.below(most + 1, purpose, who, week)
    mean = drawn * network.degree[who] / parameters.max_friends * length
    return who, week, np.floor(mean + dice.unit(f"{purpose} more", who, week)).astype(np.int64)


def _instants(parameters: Parameters, week: Ints, units: Floats) -> Ints:
    start = week * _WEEK_MS
    length = np.minimum(_WEEK_MS, parameters.days * DAY_MS - start)
    return parameters.start + start + np.floor(units * length).astype(np.int64)


def _ordinals(who: Ints, counts: Ints, weeks: int) -> Ints:
    """For each user and week, the number of items in the user's earlier weeks."""
    table = counts.reshape(-1, weeks)
    return np.asarray(np.cumsum(table, axis=1) - table).reshape(len(who))


def _posts(network: FriendNetwork, users: Ints) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    parameters = network.parameters
    dice = Dice(parameters.seed)
    who, week, counts = _weekly(network, users, parameters.max_posts, "posts")
    before = _ordinals(who, counts, parameters.weeks)
    pair, number = repeat_each(counts)
    author = who[pair]
    post = author * item_range(parameters.max_posts, parameters) + before[pair] + number
    time = _instants(parameters, week[pair], dice.unit("post time", post))

    # Comments on a user's wall in a week: each is on one of that week's posts.
    _, _, wall = _weekly(network, users, parameters.max_comments, "comments")
    wall = np.where(counts > 0, wall, 0)
    first = np.cumsum(counts) - counts
    earlier = _ordinals(who, wall, parameters.weeks)
    on_wall, place = repeat_each(wall)
    owner = who[on_wall]
    comment = owner * item_range(parameters.max_comments, parameters) + earlier[on_wall] + place
    on = first[on_wall] + dice.below(counts[on_wall], "commented", comment)
    writer = network.friend(owner, dice.below(network.degree[owner], "writer", comment))
    said = time[on] + _reaction(parameters, dice, "comment time", comment)
    inside = said < parameters.end
    owner, comment, on, writer, said = (each[inside] for each in (owner, comment, on, writer, said))
    posts = _batch(time, POST, post, author, post)
    comments = _batch(said, COMMENT, comment, writer, post[on])
    likes = [
        _likes(network, author, time, POST, post, parameters.like_probability),
        _likes(network, owner, said, COMMENT, comment, parameters.like_probability),
    ]
    return _joined([posts, comments]), _joined(likes)


def _photos(network: FriendNetwork, users: Ints) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    parameters = network.parameters
    dice = Dice(parameters.seed)
    who, week, counts = _weekly(network, users, parameters.max_photos, "photos")
    before = _ordinals(who, counts, parameters.weeks)
    pair, number = repeat_each(counts)
    owner = who[pair]
    photo = owner * item_range(parameters.max_photos, parameters) + before[pair] + number
    # An album never crosses a week: its name contains the week.
    most = parameters.max_photos // parameters.max_album + 1
    page = number // parameters.max_album
    album = (owner * parameters.weeks + week[pair]) * most + page
    place = number % parameters.max_album
    begun = _instants(parameters, week[pair], dice.unit("album time", album))
    time = begun + place * _UPLOAD_MS + dice.below(_UPLOAD_MS, "photo time", photo)
    inside = time < parameters.end
    owner, photo, album, place, time = (each[inside] for each in (owner, photo, album, place, time))
    kind = np.where(place == 0, FIRST_PHOTO, PHOTO)
    probability = parameters.photo_like_probability
    likes = _likes(network, owner, time, PHOTO, photo, probability)
    return _batch(time, kind, photo, owner, album), likes


def _likes(
    network: FriendNetwork, owner: Ints, time: Ints, kind: int, item: Ints, probability: float
) -> pa.RecordBatch:
    """Likes of items by the friends of their owners, some time later."""
    parameters = network.parameters
    dice = Dice(parameters.seed)
    at, number = repeat_each(network.degree[owner])
    liked = item[at]
    chosen = dice.unit(f"like {kind}", liked, number) < probability
    at, number, liked = at[chosen], number[chosen], liked[chosen]
    when = time[at] + _reaction(parameters, dice, f"like time {kind}", liked, number)
    inside = when < parameters.end
    at, number, liked, when = at[inside], number[inside], liked[inside], when[inside]
    return _batch(when, kind, liked, network.friend(owner[at], number), liked)


def _reaction(parameters: Parameters, dice: Dice, purpose: str, *keys: Ints) -> Ints:
    mean = parameters.reaction_hours * HOUR_MS
    return 1 + np.floor(dice.exponential(mean, purpose, *keys)).astype(np.int64)


def gathering_events(network: FriendNetwork, gatherings: Ints) -> pa.RecordBatch:
    """The positions of users at events, minute by minute; each event is attended by users who live
    close together.
    """
    parameters = network.parameters
    dice = Dice(parameters.seed)
    span = parameters.max_attendance - parameters.min_attendance + 1
    size = parameters.min_attendance + dice.below(span, "attendance", gatherings)
    size = np.minimum(size, parameters.users)
    centre = dice.below(parameters.users, "centre", gatherings)
    fixes = _LEAST_FIXES + dice.below(_MOST_FIXES - _LEAST_FIXES, "length", gatherings)
    lasting = np.maximum(1, parameters.days * DAY_MS - fixes * MINUTE_MS)
    begun = parameters.start + dice.below(lasting, "event time", gatherings)
    at, seat = repeat_each(size)
    actor = network.by_location[(centre[at] + seat) % parameters.users]
    seated, number = repeat_each(fixes[at])
    actor, at, seat = actor[seated], at[seated], seat[seated]
    event = gatherings[at]
    item = (event * parameters.max_attendance + seat) * _MOST_FIXES + number
    jitter = dice.below(MINUTE_MS, "fix time", item)
    time = begun[at] + number * MINUTE_MS + jitter
    inside = time < parameters.end
    return _batch(time[inside], POSITION, item[inside], actor[inside], event[inside])


def _walks(network: FriendNetwork, users: Ints) -> pa.RecordBatch:
    """One walk a day for each user who is tracked alone."""
    parameters = network.parameters
    dice = Dice(parameters.seed)
    lone = users[dice.unit("lone", users) < parameters.lone_trackers]
    who = np.repeat(lone, parameters.days)
    day = np.tile(np.arange(parameters.days), len(lone))
    fixes = _LEAST_WALK + dice.below(_MOST_WALK - _LEAST_WALK + 1, "walk", who, day)
    begun = parameters.start + day * DAY_MS
    begun += dice.below(DAY_MS - _MOST_WALK * MINUTE_MS, "walk time", who, day)
    at, number = repeat_each(fixes)
    walk = who[at] * parameters.days + day[at]
    item = first_walk(parameters) + walk * _MOST_WALK + number
    time = begun[at] + number * MINUTE_MS + dice.below(MINUTE_MS, "fix time", item)
    return _batch(time, POSITION, item, who[at], -1 - walk)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(batches)


def item_range(most: int, parameters: Parameters) -> int:
    """How many numbers of items each user has."""
    return (most + 1) * parameters.weeks


def first_walk(parameters: Parameters) -> int:
    """The first position number outside events."""
    return parameters.events * parameters.max_attendance * _MOST_FIXES
