"""A social network of a dozen users and twenty seconds: enough for every LSBench query to answer.

Everything follows from the seed, and little is random: friends form a ring with chords, everybody
posts in turn, and every post and photo is liked by a friend and by a stranger soon after.
"""

from __future__ import annotations

import random
from dataclasses import replace

from quadweir.sources.streamfiles import Element
from quadweir.terms import IRI, Literal, Quad
from quadweir.vocab import RDF, XSD

SIB = "http://www.ins.cwi.nl/sib/"
VOCABULARY = f"{SIB}vocabulary/"
SIOC = "http://rdfs.org/sioc/ns#"
FOAF = "http://xmlns.com/foaf/0.1/"
DBPPROP = "http://dbpedia.org/property/"
STATIC_GRAPH = IRI("urn:lsbench:static")
START = 1_700_000_000_000
USERS = range(980, 992)
TAGS = ("rain", "football", "cheese", "jazz")


def user(number: int) -> IRI:
    return IRI(f"{SIB}user/u{number}")


def friends(number: int) -> list[int]:
    """The neighbours in the ring, and those three seats away."""
    place, size = number - USERS.start, len(USERS)
    return [USERS.start + (place + step) % size for step in (-3, -1, 1, 3)]


def static() -> list[Quad]:
    quads = []
    for number in USERS:
        person = IRI(f"{SIB}person/p{number}")
        quads.append(Quad(user(number), IRI(f"{SIOC}account_of"), person))
        quads.append(Quad(person, IRI(f"{FOAF}name"), Literal(f"Person {number}")))
        for friend in friends(number):
            quads.append(Quad(user(number), IRI(f"{FOAF}knows"), user(friend)))
            forum = IRI(f"{SIB}forum/fo{friend}")
            quads.append(Quad(user(number), IRI(f"{SIOC}subscriber_of"), forum))
    return quads


def static_by_name() -> list[Quad]:
    """The same data in the graph that the C-SPARQL queries name."""
    return [replace(quad, graph=STATIC_GRAPH) for quad in static()]


def feed(seed: int = 1, *, posts: int = 40) -> list[Element]:
    """All five streams, in order of event time."""
    dice = random.Random(seed)
    events: list[tuple[int, str, tuple[Quad, ...]]] = []
    for index in range(posts):
        time = START + index * 500 + dice.randrange(100)
        author = USERS[index % len(USERS)]
        post = IRI(f"{SIB}post/po{index}")
        events.append((time, "posts", _post(post, author, dice)))
        for liker in (dice.choice(friends(author)), dice.choice(USERS)):
            events.append((time + dice.randrange(10, 90), "post-likes", (_like(liker, post),)))
        if index % 4 == 0:
            tagged = USERS[(index * 5) % len(USERS)]
            photo = IRI(f"{SIB}photo/ph{index}")
            events.append((time + 5, "photos", _photo(photo, tagged, index)))
            for liker in (dice.choice(friends(tagged)), dice.choice(USERS)):
                like_time = time + dice.randrange(20, 90)
                events.append((like_time, "photo-likes", (_like(liker, photo),)))
            near = dice.choice(friends(tagged))
            events.append((time + 1, "gps", _gps(near, index)))
    elements = []
    positions: dict[str, int] = {}
    for time, stream, quads in sorted(events, key=lambda event: event[0]):
        position = positions[stream] = positions.get(stream, -1) + 1
        elements.append(Element(f"{SIB}stream/{stream}", time, position, quads))
    return elements


def _post(post: IRI, author: int, dice: random.Random) -> tuple[Quad, ...]:
    tags = dice.sample(TAGS, 2)
    return (
        Quad(post, IRI(RDF.type), IRI(f"{VOCABULARY}Post")),
        Quad(user(author), IRI(f"{SIOC}creator_of"), post),
        Quad(IRI(f"{SIB}forum/fo{author}"), IRI(f"{SIOC}container_of"), post),
        *(Quad(post, IRI(f"{VOCABULARY}hashtag"), Literal(tag)) for tag in tags),
    )


def _like(liker: int, item: IRI) -> Quad:
    return Quad(user(liker), IRI(f"{VOCABULARY}like"), item)


def _photo(photo: IRI, tagged: int, place: int) -> tuple[Quad, ...]:
    return (
        Quad(photo, IRI(RDF.type), IRI(f"{VOCABULARY}Photo")),
        Quad(photo, IRI(f"{VOCABULARY}usertag"), user(tagged)),
        *_position(photo, 50 + place, 4 + place),
    )


def _gps(tracked: int, place: int) -> tuple[Quad, ...]:
    fix = IRI(f"{SIB}gps/g{place}")
    tracked_at = Quad(user(tracked), IRI(f"{VOCABULARY}trackedAt"), fix)
    return (tracked_at, *_position(fix, 50.002 + place, 4.003 + place))


def _position(subject: IRI, latitude: float, longitude: float) -> tuple[Quad, Quad]:
    decimal = IRI(XSD.decimal)
    return (
        Quad(subject, IRI(f"{DBPPROP}latd"), Literal(f"{latitude:.3f}", decimal)),
        Quad(subject, IRI(f"{DBPPROP}longd"), Literal(f"{longitude:.3f}", decimal)),
    )
