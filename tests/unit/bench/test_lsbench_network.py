"""Friendships against the distributions that the generator states."""

from __future__ import annotations

import numpy as np
import pytest

from quadweir.bench.lsbench.draw import Dice
from quadweir.bench.lsbench.network import FriendNetwork, make_network
from quadweir.bench.lsbench.parameters import Parameters
from quadweir.errors import UsageError


@pytest.fixture(scope="module")
def network() -> FriendNetwork:
    return make_network(Parameters(users=20_000))


def pairs(network: FriendNetwork) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(network.parameters.users), network.degree), network.friends


def test_the_number_of_friends_follows_the_power_law(network: FriendNetwork) -> None:
    numbers = np.arange(5, 41)
    expected = numbers**-2.0 / np.sum(numbers**-2.0) * 20_000
    found = np.bincount(network.degree, minlength=41)
    assert found[:5].sum() == 0 and len(found) == 41
    # Chi squared with 35 degrees of freedom is above 80 once in 25,000 times.
    assert np.sum((found[5:] - expected) ** 2 / expected) < 80


def test_friendship_goes_both_ways_and_no_user_is_their_own_friend(network: FriendNetwork) -> None:
    one, other = pairs(network)
    size = network.parameters.users
    assert not np.any(one == other)
    forward = one * size + other
    assert len(np.unique(forward)) == len(forward)
    assert np.array_equal(np.sort(forward), np.sort(other * size + one))


def test_friendship_falls_with_the_distance_along_the_order() -> None:
    # One pass, one round, and more friends wanted than there can be: each pair is drawn by itself.
    wanted = {"min_friends": 500, "max_friends": 500, "location_share": 1.0, "interest_share": 0.0}
    network = make_network(Parameters(users=20_000, friend_rounds=1, friend_window=12, **wanted))
    rank = np.empty(20_000, dtype=np.int64)
    rank[network.by_location] = np.arange(20_000)
    one, other = pairs(network)
    distance = np.abs(rank[one] - rank[other])
    first_pass = distance <= 12
    for apart in range(1, 8):
        share = np.count_nonzero(distance[first_pass] == apart) / 2 / (20_000 - apart)
        # Two more passes may add a pair now and then; they do not depend on the distance here.
        assert share == pytest.approx(0.8 * 0.8**apart, abs=0.015), apart


def test_friends_have_a_place_or_an_interest_in_common_more_often_than_strangers(
    network: FriendNetwork,
) -> None:
    one, other = pairs(network)
    stranger = other[np.argsort(Dice(9).words("strangers", np.arange(len(other))))]
    for trait in (network.place, network.interest):
        among_friends = np.mean(trait[one] == trait[other])
        among_strangers = np.mean(trait[one] == trait[stranger])
        assert among_friends > among_strangers + 0.2


def test_passes_make_their_shares_of_the_friendships() -> None:
    # With more users than friends could reach by chance, near in the order means by that pass.
    network = make_network(Parameters(users=20_000))
    rank = np.empty(20_000, dtype=np.int64)
    rank[network.by_location] = np.arange(20_000)
    one, other = pairs(network)
    near = np.mean(np.abs(rank[one] - rank[other]) <= 100)
    assert near == pytest.approx(0.3, abs=0.05)


def test_the_seed_decides() -> None:
    one, same, other = (
        make_network(Parameters(users=300, seed=seed)).friends.tolist() for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_a_tiny_network_is_complete() -> None:
    network = make_network(Parameters(users=3))
    assert network.degree.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"users": 1},
        {"days": 0},
        {"like_probability": 1.5},
        {"location_share": 0.7, "interest_share": 0.7},
        {"max_friends": 2},
        {"friend_exponent": 1.0},
        {"max_attendance": 3},
        {"reaction_hours": 0.0},
        {"seed": -1},
    ],
)
def test_what_makes_no_network_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Parameters(**wrong)  # type: ignore[arg-type]
