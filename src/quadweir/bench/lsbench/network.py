"""Users and their friends: the structure that everything else follows.

As in S3G2, friendships are made in passes: users are put in an order in which those with something
in common stand close together, and a window slides along it. Two users in the window become friends
with a probability that falls with their distance, as long as both want more friends in this pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from quadweir.bench.lsbench.draw import Dice, power_law, repeat_each
from quadweir.bench.lsbench.parameters import Parameters
from quadweir.bench.lsbench.words import COUNTRIES, INTERESTS, PLACES

if TYPE_CHECKING:
    from quadweir.bench.lsbench.draw import Ints

LEAST_INTERESTS: Final = 2
MOST_INTERESTS: Final = 8
_COUNTRY: Final = np.array([COUNTRIES.index(country) for _, country, _, _ in PLACES])


@final
@dataclass(frozen=True, slots=True)
class FriendNetwork:
    """The users by their places from 0, and their friends.

    Attributes:
        parameters: what it was made from.
        place: for each user a place in `words.PLACES`.
        interest: for each user their first interest, a place in `words.INTERESTS`.
        interests: how many interests each has.
        starts: where each user's friends begin in `friends`; one more than there are users.
        friends: the friends of all users, one user after another, ascending.
        by_location: the users in the order of the pass by location.
    """

    parameters: Parameters
    place: Ints
    interest: Ints
    interests: Ints
    starts: Ints
    friends: Ints
    by_location: Ints

    @property
    def degree(self) -> Ints:
        """How many friends each user has."""
        return np.diff(self.starts)

    def friend(self, users: Ints, which: Ints) -> Ints:
        """The friends of users by their numbers in the lists of friends."""
        return np.asarray(self.friends[self.starts[users] + which])


def make_network(parameters: Parameters) -> FriendNetwork:
    """Make users and friendships."""
    dice = Dice(parameters.seed)
    users = np.arange(parameters.users)
    place = dice.skewed(len(PLACES), "place", users)
    # Interests depend on the place: each country has its own order of interests.
    rank = dice.skewed(len(INTERESTS), "interest", users)
    interest = (rank + 7 * _COUNTRY[place]) % len(INTERESTS)
    count = LEAST_INTERESTS + dice.below(MOST_INTERESTS - LEAST_INTERESTS + 1, "interests", users)
    wanted = np.minimum(
        power_law(
            dice.unit("friends", users),
            parameters.min_friends,
            parameters.max_friends,
            parameters.friend_exponent,
        ),
        parameters.users - 1,
    )
    by_location = np.lexsort((dice.words("by location", users), place, _COUNTRY[place]))
    by_interest = np.lexsort((dice.words("by interest", users), interest))
    at_random = np.argsort(dice.words("shuffle", users), kind="stable")
    edges = _befriend(parameters, dice, wanted, (by_location, by_interest, at_random))
    both = np.concatenate((edges, edges[:, ::-1]))
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    starts = np.searchsorted(both[:, 0], np.arange(parameters.users + 1))
    return FriendNetwork(parameters, place, interest, count, starts, both[:, 1].copy(), by_location)


def _befriend(parameters: Parameters, dice: Dice, wanted: Ints, orders: tuple[Ints, ...]) -> Ints:
    """Pairs of friends, the lower user first."""
    size = len(wanted)
    have = np.zeros(size, dtype=np.int64)
    known = np.zeros(0, dtype=np.int64)
    reach = np.cumsum((parameters.location_share, parameters.interest_share))
    for number, order in enumerate(orders):
        # Later passes make the friendships that this pass could not.
        goal = wanted if number == 2 else np.round(wanted * reach[number]).astype(np.int64)
        known = _pass(parameters, dice, number, order, goal, have, known)
    return np.column_stack((known // size, known % size))


def _pass(
    parameters: Parameters,
    dice: Dice,
    number: int,
    order: Ints,
    goal: Ints,
    have: Ints,
    known: Ints,
) -> Ints:
    """Slide a window along an order; count friends in `have`, and return all pairs, each as one
    number.

    Each round looks only at users who still need friends, and counts distances among them. The
    nearest pairs come first. At a distance d, even and odd multiples of d take turns, so that no
    user is in two pairs at once.
    """
    size = len(order)
    pairs = known
    for turn in range(parameters.friend_rounds):
        short = order[have[order] < goal[order]]
        place = np.arange(len(short))
        found: list[Ints] = []
        for distance in range(1, min(parameters.friend_window, len(short) - 1) + 1):
            probability = parameters.friend_probability * parameters.friend_decay**distance
            first = place[:-distance]
            lucky = dice.unit("friendship", number, turn, distance, first) < probability
            for parity in (0, 1):
                at = np.flatnonzero(lucky & ((first // distance) % 2 == parity))
                one, other = short[at], short[at + distance]
                free = (have[one] < goal[one]) & (have[other] < goal[other])
                one, other = one[free], other[free]
                key = np.minimum(one, other) * size + np.maximum(one, other)
                new = ~_contains(pairs, key)
                have[one[new]] += 1
                have[other[new]] += 1
                found.append(key[new])
        if not found:
            break
        pairs = np.sort(np.concatenate((pairs, *found)))
    return pairs


def _contains(ordered: Ints, keys: Ints) -> np.ndarray:
    if not len(ordered):
        return np.zeros(len(keys), dtype=bool)
    at = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.asarray(ordered[at] == keys)


def interests_of(network: FriendNetwork, users: Ints) -> tuple[Ints, Ints]:
    """All interests of users: the user and the interest."""
    owners, number = repeat_each(network.interests[users])
    return owners, nth_interest(network, users[owners], number)


def nth_interest(network: FriendNetwork, users: Ints, number: Ints) -> Ints:
    """One interest of each user: steps of 11 from the first, so that all are different."""
    return (network.interest[users] + 11 * number) % len(INTERESTS)
