"""Events and users as N-Triples: one text for each event, with the lines of its triples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quadweir.bench.lsbench import words
from quadweir.bench.lsbench.activity import COMMENT, FIRST_PHOTO, POST
from quadweir.bench.lsbench.draw import Dice, repeat_each
from quadweir.bench.lsbench.network import FriendNetwork, interests_of, nth_interest
from quadweir.bench.lsbench.parameters import DAY_MS
from quadweir.vocab import RDF, XSD

if TYPE_CHECKING:
    from quadweir.bench.lsbench.draw import Floats, Ints

SIB: Final = "http://www.ins.cwi.nl/sib/"
_VOCABULARY: Final = f"{SIB}vocabulary/"
_SIOC: Final = "http://rdfs.org/sioc/ns#"
_SIOC_TYPES: Final = "http://rdfs.org/sioc/types#"
_FOAF: Final = "http://xmlns.com/foaf/0.1/"
_DC: Final = "http://purl.org/dc/elements/1.1/"
_TERMS: Final = "http://purl.org/dc/terms/"
_PROPERTY: Final = "http://dbpedia.org/property/"
_ONTOLOGY: Final = "http://dbpedia.org/ontology/"
_RESOURCE: Final = "http://dbpedia.org/resource/"
_TYPE: Final = f"<{RDF.type}>"
_DECIMAL: Final = f'"^^<{XSD.decimal}>'
_DATE_TIME: Final = f'"^^<{XSD.dateTime}>'
_DATE: Final = f'"^^<{XSD.date}>'

_SPREAD_DEGREES: Final = 0.02
_EVENT_DEGREES: Final = 0.002
_MICRO: Final = 1_000_000
_ELSEWHERE: Final = 0.3
_OFF_TOPIC: Final = 0.25
_GROUP_SIZE: Final = 12
_NAMES: Final = pa.array([name for name, _, _, _ in words.PLACES])
_WHERE: Final = np.array([(latitude, longitude) for _, _, latitude, longitude in words.PLACES])


def spell_events(network: FriendNetwork, stream: str, events: pa.RecordBatch) -> pa.Array:
    """The timed lines of events, each text ending with a line feed."""
    return _SPELLERS[stream](network, _Columns(network, events))


class _Columns:
    """The columns of events, as numbers and as what lines are made of."""

    def __init__(self, network: FriendNetwork, events: pa.RecordBatch) -> None:
        self.time, self.kind, self.item, self.actor, self.parent = (
            column.to_numpy() for column in events.columns
        )
        first = network.parameters.first_user
        self.at = _text(self.time)
        self.user = _join(f"<{SIB}user/u", _text(self.actor + first), ">")

    def only(self, network: FriendNetwork, chosen: Ints) -> _Columns:
        columns = (self.time, self.kind, self.item, self.actor, self.parent)
        arrays = [pa.array(each[chosen]) for each in columns]
        names = ["time", "kind", "item", "actor", "parent"]
        return _Columns(network, pa.RecordBatch.from_arrays(arrays, names))


def _posts(network: FriendNetwork, events: _Columns) -> pa.Array:
    is_post = events.kind == POST
    posts = events.only(network, np.flatnonzero(is_post))
    comments = events.only(network, np.flatnonzero(events.kind == COMMENT))
    texts = pa.concat_arrays([_post(network, posts), _comment(network, comments)])
    # Restore the original order.
    order = np.argsort(np.concatenate((np.flatnonzero(is_post), np.flatnonzero(~is_post))))
    return texts.take(pa.array(order))


def _post(network: FriendNetwork, events: _Columns) -> pa.Array:
    parameters = network.parameters
    dice = Dice(parameters.seed)
    item, actor = events.item, events.actor
    post = _join(f"<{SIB}post/po", _text(item), ">")
    forum = _join(f"<{SIB}forum/fo", _text(actor + parameters.first_user), ">")
    main = nth_interest(network, actor, dice.below(network.interests[actor], "topic", item))
    topic = _pick(words.INTERESTS, main)
    title = _join(
        _pick(words.OPENINGS, dice.below(len(words.OPENINGS), "opening", item)), ": ", topic
    )
    content = _join(
        _pick(words.OPENINGS, dice.below(len(words.OPENINGS), "opening", item)), " ",
        _pick(words.DOINGS, dice.below(len(words.DOINGS), "doing", item)), " ", topic, " ",
        _pick(words.CLOSINGS, dice.below(len(words.CLOSINGS), "closing", item)),
    )  # fmt: skip
    return _lines(
        events.at,
        (post, _TYPE, f"<{_VOCABULARY}Post>"),
        (post, _TYPE, f"<{_SIOC}Post>"),
        (post, f"<{_TERMS}title>", ('"', title, '"')),
        (post, f"<{_DC}created>", ('"', _moment(events.time), _DATE_TIME)),
        (post, f"<{_VOCABULARY}browser>", ('"', _browser(dice, actor), '"')),
        (post, f"<{_SIOC}ip_address>", ('"', _address(dice, actor), '"')),
        (post, f"<{_SIOC}content>", ('"', content, '"')),
        after=(
            _hashtags(network, dice, events, post),
            *_line(events.at, forum, f"<{_SIOC}container_of>", post),
            *_line(events.at, events.user, f"<{_SIOC}creator_of>", post),
        ),
    )


def _hashtags(network: FriendNetwork, dice: Dice, events: _Columns, post: pa.Array) -> pa.Array:
    """The hashtags of posts, all different: interests of the author, or popular topics."""
    parameters = network.parameters
    most = min(parameters.max_hashtags, len(words.INTERESTS))
    owners, number = repeat_each(1 + dice.below(most, "hashtags", events.item))
    item, actor = events.item[owners], events.actor[owners]
    first = dice.below(network.interests[events.actor], "first tag", events.item)[owners]
    own = nth_interest(network, actor, first + number)
    other = dice.skewed(len(words.INTERESTS), "other tag", item, number)
    tag = np.where(dice.unit("off topic", item, number) < _OFF_TOPIC, other, own)
    # A post has each hashtag once.
    order = np.lexsort((number, tag, owners))
    again = np.zeros(len(tag), dtype=bool)
    again[order[1:]] = (tag[order[1:]] == tag[order[:-1]]) & (
        owners[order[1:]] == owners[order[:-1]]
    )
    owners, tag = owners[~again], tag[~again]
    at = pa.array(owners)
    line = _line(
        events.at.take(at),
        post.take(at),
        f"<{_VOCABULARY}hashtag>",
        ('"', _pick(words.INTERESTS, tag), '"'),
    )
    return _grouped(_join(*line), owners, len(events.item))


def _comment(network: FriendNetwork, events: _Columns) -> pa.Array:
    dice = Dice(network.parameters.seed)
    comment = _join(f"<{SIB}comment/co", _text(events.item), ">")
    post = _join(f"<{SIB}post/po", _text(events.parent), ">")
    reply = _pick(words.REPLIES, dice.below(len(words.REPLIES), "reply", events.item))
    return _lines(
        events.at,
        (comment, _TYPE, f"<{_VOCABULARY}Comment>"),
        (comment, _TYPE, f"<{_SIOC}Item>"),
        (comment, f"<{_SIOC}reply_of>", post),
        (comment, f"<{_SIOC}content>", ('"', reply, '"')),
        (events.user, f"<{_SIOC}creator_of>", comment),
    )


def _post_likes(network: FriendNetwork, events: _Columns) -> pa.Array:
    del network
    kinds = _pick(("post/po", "comment/co"), (events.kind == COMMENT).astype(np.int64))
    item = (f"<{SIB}", kinds, _text(events.item), ">")
    return _lines(events.at, (events.user, f"<{_VOCABULARY}like>", item))


def _photo_likes(network: FriendNetwork, events: _Columns) -> pa.Array:
    del network
    photo = (f"<{SIB}photo/ph", _text(events.item), ">")
    return _lines(events.at, (events.user, f"<{_VOCABULARY}like>", photo))


def _photos(network: FriendNetwork, events: _Columns) -> pa.Array:
    parameters = network.parameters
    dice = Dice(parameters.seed)
    photo = _join(f"<{SIB}photo/ph", _text(events.item), ">")
    album = _join(f"<{SIB}album/al", _text(events.parent), ">")
    owner = events.actor
    away = dice.unit("away", events.parent) < _ELSEWHERE
    place = np.where(
        away, dice.skewed(len(words.PLACES), "where", events.parent), network.place[owner]
    )
    latitude, longitude = _near(dice, place, "album", events.parent, _SPREAD_DEGREES)
    latitude = latitude + dice.normal(_EVENT_DEGREES, "photo latitude", events.item)
    longitude = longitude + dice.normal(_EVENT_DEGREES, "photo longitude", events.item)

    degree = network.degree[owner]
    tags = np.minimum(1 + dice.below(parameters.max_usertags, "usertags", events.item), degree)
    first = dice.below(degree, "tagged", events.item)
    owners, number = repeat_each(tags)
    tagged = network.friend(owner[owners], (first[owners] + number) % degree[owners])
    at = pa.array(owners)
    usertag = _line(
        events.at.take(at),
        photo.take(at),
        f"<{_VOCABULARY}usertag>",
        (f"<{SIB}user/u", _text(tagged + parameters.first_user), ">"),
    )
    opened = _join(*_line(events.at, album, _TYPE, f"<{_SIOC_TYPES}ImageGallery>"))
    opening = pc.if_else(pa.array(events.kind == FIRST_PHOTO), opened, "")
    lines = _lines(
        events.at,
        (photo, _TYPE, f"<{_VOCABULARY}Photo>"),
        (photo, _TYPE, f"<{_SIOC}Item>"),
        (photo, f"<{_ONTOLOGY}location>", (f"<{_RESOURCE}", _NAMES.take(pa.array(place)), ">")),
        (photo, f"<{_PROPERTY}latd>", ('"', _decimal(latitude), _DECIMAL)),
        (photo, f"<{_PROPERTY}longd>", ('"', _decimal(longitude), _DECIMAL)),
        after=(
            _grouped(_join(*usertag), owners, len(owner)),
            *_line(events.at, album, f"<{_SIOC}container_of>", photo),
        ),
    )
    return _join(opening, lines)


def _gps(network: FriendNetwork, events: _Columns) -> pa.Array:
    parameters = network.parameters
    dice = Dice(parameters.seed)
    fix = _join(f"<{SIB}gps/g", _text(events.item), ">")
    # Users at an event are where its first guest lives; others are at home.
    centre = network.by_location[dice.below(parameters.users, "centre", events.parent)]
    place = network.place[np.where(events.parent >= 0, centre, events.actor)]
    latitude, longitude = _near(dice, place, "event", events.parent, _SPREAD_DEGREES)
    latitude = latitude + dice.normal(_EVENT_DEGREES, "latitude", events.item)
    longitude = longitude + dice.normal(_EVENT_DEGREES, "longitude", events.item)
    return _lines(
        events.at,
        (events.user, f"<{_VOCABULARY}trackedAt>", fix),
        (fix, f"<{_PROPERTY}latd>", ('"', _decimal(latitude), _DECIMAL)),
        (fix, f"<{_PROPERTY}longd>", ('"', _decimal(longitude), _DECIMAL)),
        (fix, f"<{_VOCABULARY}trackedTime>", ('"', _moment(events.time), _DATE_TIME)),
        (
            fix,
            f"<{_VOCABULARY}trackedLocation>",
            (f"<{_RESOURCE}", _NAMES.take(pa.array(place)), ">"),
        ),
    )


_SPELLERS: Final = {
    "posts": _posts,
    "post-likes": _post_likes,
    "photos": _photos,
    "photo-likes": _photo_likes,
    "gps": _gps,
}


# --- static data ------------------------------------------------------------------------------


def spell_users(network: FriendNetwork, users: Ints) -> pa.Array:
    """The static N-Triples of users: persons, accounts, forums, friendships, memberships."""
    parameters = network.parameters
    dice = Dice(parameters.seed)
    number = _text(users + parameters.first_user)
    person = _join(f"<{SIB}person/p", number, ">")
    user = _join(f"<{SIB}user/u", number, ">")
    forum = _join(f"<{SIB}forum/fo", number, ">")
    first = _pick(words.FIRST_NAMES, dice.below(len(words.FIRST_NAMES), "first name", users))
    last = _pick(words.LAST_NAMES, dice.below(len(words.LAST_NAMES), "last name", users))
    place = _NAMES.take(pa.array(network.place[users]))
    born = -dice.below(17_000, "born", users) * DAY_MS + 1_136_073_600_000
    joined = parameters.start - 1 - dice.below(1000 * DAY_MS, "joined", users)
    employer = _pick(words.EMPLOYERS, dice.below(len(words.EMPLOYERS), "employer", users))
    return _lines(
        None,
        (person, _TYPE, f"<{_FOAF}Person>"),
        (person, f"<{_FOAF}firstName>", ('"', first, '"')),
        (person, f"<{_FOAF}lastName>", ('"', last, '"')),
        (person, f"<{_FOAF}name>", ('"', first, " ", last, '"')),
        (person, f"<{_FOAF}gender>", ('"', _some(dice, ("female", "male"), users, "gender"), '"')),
        (person, f"<{_FOAF}birthday>", ('"', _day(born), _DATE)),
        (person, f"<{_FOAF}based_near>", (f"<{_RESOURCE}", place, ">")),
        (person, f"<{_FOAF}mbox>", ("<mailto:p", number, "@example.org>")),
        (person, f"<{_VOCABULARY}works_at>", ('"', place, " ", employer, '"')),
        (person, f"<{_VOCABULARY}studied_at>", ('"University of ', place, '"')),
        (
            person,
            f"<{_VOCABULARY}status>",
            ('"', _some(dice, words.STATUSES, users, "status"), '"'),
        ),
        (user, _TYPE, f"<{_SIOC}UserAccount>"),
        (user, f"<{_SIOC}account_of>", person),
        (user, f"<{_FOAF}accountName>", ('"', first, number, '"')),
        (user, f"<{_DC}created>", ('"', _moment(joined), _DATE_TIME)),
        (user, f"<{_VOCABULARY}browser>", ('"', _browser(dice, users), '"')),
        (user, f"<{_SIOC}ip_address>", ('"', _address(dice, users), '"')),
        (user, f"<{_SIOC}subscriber_of>", forum),
        (user, f"<{_SIOC}moderator_of>", forum),
        (forum, _TYPE, f"<{_SIOC}Forum>"),
        (forum, f"<{_TERMS}title>", ('"The wall of ', first, " ", last, '"')),
        (forum, f"<{_DC}created>", ('"', _moment(joined), _DATE_TIME)),
        (forum, f"<{_SIOC}has_creator>", user),
        after=(
            _interests(network, users, user),
            _friends(network, users, user),
            _groups(network, dice, users, user),
        ),
    )


def _interests(network: FriendNetwork, users: Ints, user: pa.Array) -> pa.Array:
    owners, interest = interests_of(network, users)
    line = _line(
        None,
        user.take(pa.array(owners)),
        f"<{_VOCABULARY}interest>",
        (f"<{SIB}interest/", _pick(words.INTERESTS, interest), ">"),
    )
    return _grouped(_join(*line), owners, len(users))


def _friends(network: FriendNetwork, users: Ints, user: pa.Array) -> pa.Array:
    """The users that a user knows and follows; the lower of two users writes the friendship
    itself.
    """
    parameters = network.parameters
    dice = Dice(parameters.seed)
    owners, which = repeat_each(network.degree[users])
    one = users[owners]
    other = network.friend(one, which)
    number = _text(other + parameters.first_user)
    friend = _join(f"<{SIB}user/u", number, ">")
    forum = _join(f"<{SIB}forum/fo", number, ">")
    me = user.take(pa.array(owners))
    low, high = np.minimum(one, other), np.maximum(one, other)
    bond = _join(f"<{SIB}friendship/fr", _text(low * parameters.users + high), ">")
    since = parameters.start - 1 - dice.below(500 * DAY_MS, "befriended", low, high)
    described = _lines(
        None,
        (bond, _TYPE, f"<{_VOCABULARY}Friendship>"),
        (bond, f"<{_VOCABULARY}initiator>", me),
        (bond, f"<{_VOCABULARY}memb>", me),
        (bond, f"<{_VOCABULARY}memb>", friend),
        (bond, f"<{_DC}created>", ('"', _moment(since), _DATE_TIME)),
    )
    lines = _lines(
        None,
        (me, f"<{_FOAF}knows>", friend),
        (me, f"<{_SIOC}subscriber_of>", forum),
        (forum, f"<{_SIOC}has_subscriber>", me),
        after=(pc.if_else(pa.array(one < other), described, ""),),
    )
    return _grouped(lines, owners, len(users))


def _groups(network: FriendNetwork, dice: Dice, users: Ints, user: pa.Array) -> pa.Array:
    """Groups of users with one interest; of every dozen users the first founds a group and
    describes it.
    """
    interest = network.interest[users]
    first = network.parameters.first_user
    named = _text(users // _GROUP_SIZE * len(words.INTERESTS) + interest + first)
    group = _join(f"<{SIB}group/gr", named, ">")
    topic = _pick(words.INTERESTS, interest)
    founded = network.parameters.start - 1 - dice.below(900 * DAY_MS, "founded", users)
    described = _lines(
        None,
        (group, _TYPE, f"<{_SIOC}Usergroup>"),
        (group, f"<{_TERMS}title>", ('"Friends of ', topic, '"')),
        (group, f"<{_DC}created>", ('"', _moment(founded), _DATE_TIME)),
        (group, f"<{_SIOC}has_owner>", user),
    )
    return _lines(
        None,
        (user, f"<{_SIOC}member_of>", group),
        (group, f"<{_SIOC}has_member>", user),
        after=(pc.if_else(pa.array(users % _GROUP_SIZE == 0), described, ""),),
    )


# --- text -------------------------------------------------------------------------------------


def _lines(at: pa.Array | None, *triples: tuple[Any, Any, Any], after: tuple[Any, ...] = ()) -> Any:
    parts: list[Any] = []
    for triple in triples:
        parts += _line(at, *triple)
    return _join(*parts, *after)


def _line(at: pa.Array | None, subject: Any, predicate: str, obj: Any) -> tuple[Any, ...]:
    objects = obj if isinstance(obj, tuple) else (obj,)
    start = () if at is None else (at, " ")
    return (*start, subject, f" {predicate} ", *objects, " .\n")


def _join(*parts: Any) -> pa.Array:
    """Text from columns and constants; neighbouring constants are merged."""
    merged: list[Any] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return pc.binary_join_element_wise(*merged, "")


def _text(numbers: Ints) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _pick(choices: Any, places: Ints) -> pa.Array:
    return pa.array(choices).take(pa.array(places))


def _some(dice: Dice, choices: tuple[str, ...], users: Ints, purpose: str) -> pa.Array:
    return _pick(choices, dice.below(len(choices), purpose, users))


def _grouped(texts: pa.Array, owners: Ints, count: int) -> pa.Array:
    """Join the texts of each owner; texts are sorted by owner."""
    bounds = np.searchsorted(owners, np.arange(count + 1)).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(bounds), texts), "")


def _browser(dice: Dice, users: Ints) -> pa.Array:
    return _pick(words.BROWSERS, dice.skewed(len(words.BROWSERS), "browser", users))


def _address(dice: Dice, users: Ints) -> pa.Array:
    bits = dice.below(1 << 24, "address", users)
    parts = [_text((bits >> shift) & 255) for shift in (16, 8, 0)]
    return _join("10.", parts[0], ".", parts[1], ".", parts[2])


def _near(dice: Dice, place: Ints, what: str, keys: Ints, spread: float) -> tuple[Floats, Floats]:
    latitude = _WHERE[place, 0] + dice.normal(spread, f"{what} latitude", keys)
    return latitude, _WHERE[place, 1] + dice.normal(spread, f"{what} longitude", keys)


def _decimal(degrees: Floats) -> pa.Array:
    """Degrees with six digits after the point."""
    micro = np.round(degrees * _MICRO).astype(np.int64)
    sign = np.where(micro < 0, "-", "")
    fraction = pc.utf8_lpad(_text(np.abs(micro) % _MICRO), 6, "0")
    return _join(pa.array(sign), _text(np.abs(micro) // _MICRO), ".", fraction)


def _moment(times: Ints) -> pa.Array:
    stamps = pa.array(times).cast(pa.timestamp("ms"))
    return _join(pc.replace_substring(stamps.cast(pa.string()), " ", "T", max_replacements=1), "Z")


def _day(times: Ints) -> pa.Array:
    return pa.array(times).cast(pa.timestamp("ms")).cast(pa.date32(), safe=False).cast(pa.string())
