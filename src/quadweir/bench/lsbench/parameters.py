"""The parameters of a network; every field is an option of `quadweir bench lsbench generate`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, final

from quadweir.errors import UsageError

STREAMS: Final = ("posts", "post-likes", "photos", "photo-likes", "gps")
"""The five streams, in the order in which events of one instant are written."""
STREAM_IRI: Final = "http://www.ins.cwi.nl/sib/stream/"
DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000
_SHARES: Final = ("location_share", "interest_share", "friend_probability", "friend_decay",
                  "like_probability", "photo_like_probability", "lone_trackers")  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The size of the network, its activity, and its probabilities.

    Attributes:
        users: how many users.
        days: how long.
        seed: the seed of all random numbers.
        start: the first instant, in milliseconds since 1970.
        first_user: the number of the first user.
        max_posts, max_comments, max_photos: the most in a week for a user with the most friends;
        the number is uniform below that, and in proportion to the friends.
        min_friends, max_friends, friend_exponent: the power law of the number of friends.
        location_share, interest_share: which parts of the friendships come from the passes by
            location and by interest; the last pass, in random order, makes the rest.
        friend_probability, friend_decay: users at distance d in the order of a pass become friends
            with the probability `friend_probability` times `friend_decay` to the power of d.
        friend_window: how far apart in the order users may be at most.
        friend_rounds: how often, at most, a pass goes over the users for those still short.
        like_probability, photo_like_probability: how likely a friend likes a post or a comment,
            or a photo.
        reaction_hours: how long, on average, until a friend likes or comments.
        max_hashtags, max_usertags, max_album: the most hashtags of a post, user tags of a photo,
        and photos of an album.
        gps_events: how many events there are among 1,000 users in 30 days.
        min_attendance, max_attendance: how many users are tracked at an event.
        lone_trackers: which part of the users is tracked on its own.

    >>> Parameters(users=10, days=1).weeks
    1
    """

    users: int = 1000
    days: int = 30
    seed: int = 1
    start: int = 1_767_225_600_000
    first_user: int = 0
    max_posts: int = 22
    max_comments: int = 22
    max_photos: int = 80
    min_friends: int = 5
    max_friends: int = 40
    friend_exponent: float = 2.0
    location_share: float = 0.3
    interest_share: float = 0.3
    friend_probability: float = 0.8
    friend_decay: float = 0.8
    friend_window: int = 32
    friend_rounds: int = 16
    like_probability: float = 0.95
    photo_like_probability: float = 0.75
    reaction_hours: float = 2.0
    max_hashtags: int = 4
    max_usertags: int = 5
    max_album: int = 20
    gps_events: float = 50.0
    min_attendance: int = 20
    max_attendance: int = 119
    lone_trackers: float = 0.1

    def __post_init__(self) -> None:
        def wrong(name: str, what: str) -> UsageError:
            return UsageError(f"{name.replace('_', ' ')} must be {what}: {getattr(self, name)}")

        for name in _SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise wrong(name, "between 0 and 1")
        if self.location_share + self.interest_share > 1:
            raise wrong("interest_share", "no more than the location share leaves of 1")
        for name in ("days", "min_friends", "friend_window", "friend_rounds", "max_hashtags",
                     "max_usertags", "max_album", "min_attendance"):  # fmt: skip
            if getattr(self, name) < 1:
                raise wrong(name, "at least 1")
        for name in ("seed", "start", "first_user", "max_posts", "max_comments", "max_photos",
                     "gps_events"):  # fmt: skip
            if getattr(self, name) < 0:
                raise wrong(name, "at least 0")
        if self.users < 2:
            raise wrong("users", "at least 2")
        if self.max_friends < self.min_friends:
            raise wrong("max_friends", "no less than the least number of friends")
        if self.max_attendance < self.min_attendance:
            raise wrong("max_attendance", "no less than the least attendance")
        if self.friend_exponent <= 1:
            raise wrong("friend_exponent", "above 1")
        if self.reaction_hours <= 0:
            raise wrong("reaction_hours", "above 0")

    @property
    def end(self) -> int:
        """The instant after the last."""
        return self.start + self.days * DAY_MS

    @property
    def weeks(self) -> int:
        """The weeks, the last of which may be cut short."""
        return -(-self.days // 7)

    @property
    def events(self) -> int:
        """How many events are tracked, at least one."""
        return max(1, round(self.gps_events * self.users / 1000 * self.days / 30))

    def as_json(self) -> dict[str, Any]:
        """The fields as JSON."""
        return asdict(self)
