"""The streams of a network: distributions, references, order, files."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from command_line import main
from quadweir.bench.lsbench import activity
from quadweir.bench.lsbench.network import FriendNetwork, make_network
from quadweir.bench.lsbench.parameters import DAY_MS, STREAMS, Parameters
from quadweir.bench.lsbench.play import play
from quadweir.bench.lsbench.tables import make_tables, static_table
from quadweir.bench.lsbench.write import all_events, generate, ranges
from quadweir.bench.tables import at_rate, head, write_table
from quadweir.errors import SourceError
from quadweir.sources.declare import load
from quadweir.sources.streamfiles import read_elements, validate

SIB = "http://www.ins.cwi.nl/sib/"
VOCABULARY = f"{SIB}vocabulary/"
SIOC = "http://rdfs.org/sioc/ns#"


@pytest.fixture(scope="module")
def network() -> FriendNetwork:
    return make_network(Parameters(users=400, days=14, first_user=900))


@pytest.fixture(scope="module")
def events(network: FriendNetwork) -> dict[str, pa.RecordBatch]:
    made = defaultdict(list)
    for stream, batch in all_events(network):
        made[stream].append(batch)
    return {stream: activity.in_order(batches) for stream, batches in made.items()}


@pytest.fixture(scope="module")
def tables(network: FriendNetwork) -> dict[str, pa.Table]:
    return make_tables(network)


def column(batch: pa.RecordBatch, name: str) -> np.ndarray:
    return batch.column(name).to_numpy()


# --- distributions ----------------------------------------------------------------------------


def test_posts_a_week_are_uniform_and_in_proportion_to_the_friends() -> None:
    network = make_network(Parameters(users=5000, days=7, max_posts=20))
    users = np.arange(5000)
    posts = activity.user_events(network, users)["posts"]
    authors = column(posts, "actor")[column(posts, "kind") == activity.POST]
    count = np.bincount(authors, minlength=5000)
    degree = network.degree
    for low, high in ((5, 6), (7, 12), (13, 40)):
        chosen = (degree >= low) & (degree <= high)
        expected = 10 * degree[chosen].mean() / 40
        assert count[chosen].mean() == pytest.approx(expected, rel=0.06)
    # Uniform below the most: a third of those with nearly all friends is in each third.
    many = make_network(Parameters(users=3000, days=7, max_posts=29, min_friends=38))
    posts = activity.user_events(many, np.arange(3000))["posts"]
    authors = column(posts, "actor")[column(posts, "kind") == activity.POST]
    thirds = np.bincount(np.bincount(authors, minlength=3000) // 10, minlength=3)
    assert thirds[:3] / 3000 == pytest.approx([1 / 3] * 3, abs=0.04)


def test_friends_like_with_the_stated_probability_and_delay(
    network: FriendNetwork, events: dict[str, pa.RecordBatch]
) -> None:
    posts, likes = events["posts"], events["post-likes"]
    is_post = column(posts, "kind") == activity.POST
    early = is_post & (column(posts, "time") < network.parameters.start + 12 * DAY_MS)
    friends = network.degree[column(posts, "actor")[early]].sum()
    of_post = column(likes, "kind") == activity.POST
    time_of = dict(zip(column(posts, "item")[early], column(posts, "time")[early], strict=True))
    delays = [
        time - time_of[item]
        for item, time in zip(
            column(likes, "item")[of_post], column(likes, "time")[of_post], strict=True
        )
        if item in time_of
    ]
    assert len(delays) / friends == pytest.approx(0.95, abs=0.01)
    assert np.mean(delays) / 3_600_000 == pytest.approx(2.0, rel=0.05)
    assert np.median(delays) / 3_600_000 == pytest.approx(2.0 * np.log(2), rel=0.06)


def test_events_are_attended_by_users_near_one_place(
    network: FriendNetwork, events: dict[str, pa.RecordBatch], tables: dict[str, pa.Table]
) -> None:
    gps = events["gps"]
    assert set(column(gps, "parent")[column(gps, "parent") >= 0]) == set(
        range(network.parameters.events)
    )
    where: dict[int, list[tuple[float, float]]] = defaultdict(list)
    guests: dict[int, set[int]] = defaultdict(set)
    rows = tables["gps"].column("object").to_pylist()
    for index, (event, actor) in enumerate(
        zip(column(gps, "parent").tolist(), column(gps, "actor").tolist(), strict=True)
    ):
        if event >= 0:
            guests[event].add(actor)
            latitude, longitude = (rows[5 * index + at].split('"')[1] for at in (1, 2))
            where[event].append((float(latitude), float(longitude)))
    for event, users in guests.items():
        assert 20 <= len(users) <= 119
        assert np.all(np.std(where[event], axis=0) < 0.003)
        rank = {user: place for place, user in enumerate(network.by_location.tolist())}
        ranks = sorted(rank[user] for user in users)
        gaps = np.diff([*ranks, ranks[0] + network.parameters.users])
        # A window of the order by location, which may go around its end.
        assert np.count_nonzero(gaps > 1) <= 1
    alone = set(column(gps, "actor")[column(gps, "parent") < 0].tolist())
    assert len(alone) / network.parameters.users == pytest.approx(0.1, abs=0.05)


def test_the_sizes_are_about_those_of_the_paper() -> None:
    network = make_network(Parameters(users=1000, days=30))
    triples = {"posts": 9.1, "post-likes": 1, "photos": 9.0, "photo-likes": 1, "gps": 5}
    paper = {"posts": 202, "post-likes": 395, "photos": 462, "photo-likes": 592, "gps": 2500}
    found = Counter[str]()
    for stream, batch in all_events(network):
        found[stream] += batch.num_rows
    for stream in STREAMS:
        assert found[stream] * triples[stream] / 1000 == pytest.approx(paper[stream], rel=0.2)


# --- references -------------------------------------------------------------------------------


def test_every_reference_is_to_what_came_before(
    network: FriendNetwork, tables: dict[str, pa.Table]
) -> None:
    static = static_table(network).to_pydict()
    knows: dict[str, set[str]] = defaultdict(set)
    users, forums = set(), set()
    triples = zip(static["subject"], static["predicate"], static["object"], strict=True)
    for subject, predicate, end in triples:
        if predicate == "<http://xmlns.com/foaf/0.1/knows>":
            knows[subject].add(end)
        elif predicate == f"<{SIOC}account_of>":
            users.add(subject)
        elif predicate == f"<{SIOC}subscriber_of>":
            forums.add(end)
    assert len(users) == 400 and f"<{SIB}user/u900>" in users
    assert all(one in knows[other] for one, others in knows.items() for other in others)

    made: dict[str, int] = {}
    owner: dict[str, str] = {}
    album_of: dict[str, str] = {}
    tagged: dict[str, list[str]] = defaultdict(list)
    for row in (*tables["posts"].to_pylist(), *tables["photos"].to_pylist()):
        subject, predicate, end = row["subject"], row["predicate"], row["object"]
        if end in (f"<{VOCABULARY}Post>", f"<{VOCABULARY}Comment>", f"<{VOCABULARY}Photo>"):
            assert subject not in made
            made[subject] = row["time"]
        elif predicate == f"<{SIOC}creator_of>":
            assert subject in users
            owner[end] = subject
        elif predicate == f"<{SIOC}container_of>" and "/forum/" in subject:
            assert subject in forums
        elif predicate == f"<{SIOC}container_of>":
            assert subject in made
            album_of[end] = subject
        elif predicate == f"<{SIOC}reply_of>":
            assert made[end] < row["time"]
        elif end == "<http://rdfs.org/sioc/types#ImageGallery>":
            made[subject] = row["time"]
        elif predicate == f"<{VOCABULARY}usertag>":
            tagged[subject].append(end)
    assert set(album_of) == {item for item in made if "/photo/" in item}
    assert all(1 <= len(set(each)) == len(each) <= 5 for each in tagged.values())
    for stream, kinds in (("post-likes", ("/post/", "/comment/")), ("photo-likes", ("/photo/",))):
        seen = set()
        for row in tables[stream].to_pylist():
            item, liker = row["object"], row["subject"]
            assert made[item] < row["time"] and any(kind in item for kind in kinds)
            assert (liker, item) not in seen
            seen.add((liker, item))
            if "/post/" in item:
                assert liker in knows[owner[item]]
        assert seen
    assert {row["subject"] for row in tables["gps"].to_pylist() if "/user/" in row["subject"]} <= (
        users
    )


def test_posts_have_their_triples_and_different_hashtags(tables: dict[str, pa.Table]) -> None:
    of_post: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in tables["posts"].to_pylist():
        if "/post/" in row["subject"]:
            of_post[row["subject"]].append((row["predicate"], row["object"]))
    sizes = set()
    for said in of_post.values():
        tags = [end for predicate, end in said if predicate == f"<{VOCABULARY}hashtag>"]
        assert len(set(tags)) == len(tags)
        sizes.add(len(tags))
        assert len(said) == 7 + len(tags)
    assert sizes == {1, 2, 3, 4}


# --- order, files, rates ----------------------------------------------------------------------


def test_bytes_depend_on_the_seed_alone(tmp_path: Path) -> None:
    digests = []
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        generate(Parameters(users=60, days=2, seed=seed), tmp_path / name)
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        data = b"".join(
            str(path.relative_to(tmp_path / name)).encode() + path.read_bytes() for path in files
        )
        digests.append(hashlib.sha256(data).hexdigest())
    assert digests[0] == digests[1] != digests[2]


def test_how_users_are_split_does_not_matter(network: FriendNetwork) -> None:
    whole = activity.user_events(network, np.arange(400))
    pieces = [activity.user_events(network, users) for users in ranges(400, 37)]
    for stream in STREAMS:
        parts = activity.in_order([piece[stream] for piece in pieces])
        assert parts.equals(activity.in_order([whole[stream]]))


def test_files_are_stream_files_in_order_and_declared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "net"
    main(["bench", "lsbench", "generate", "--users", "60", "--days", "2", "--json", str(out)])
    manifest = json.loads((out / "lsbench.json").read_text())
    assert json.loads(capsys.readouterr().out) == manifest
    declared = load(out / "streams.toml")
    for stream in STREAMS:
        report = validate(out / stream)
        assert report.bad == report.out_of_order == 0
        assert report.statements == report.elements == manifest["triples"][stream] > 0
        assert f"{SIB}stream/{stream}" in declared
    assert (out / "static" / "users-00000.nt").read_text().count("\n") == (
        manifest["triples"]["static"]
    )
    with pytest.raises(SourceError, match="not empty"):
        generate(Parameters(users=60, days=2), out)


def test_tables_hold_what_the_files_hold(tmp_path: Path) -> None:
    parameters = Parameters(users=60, days=2)
    generate(parameters, tmp_path / "files")
    for stream, table in make_tables(make_network(parameters)).items():
        write_table(table, tmp_path / "one.stream")
        days = sorted((tmp_path / "files" / stream).iterdir())
        assert (tmp_path / "one.stream").read_bytes() == b"".join(d.read_bytes() for d in days)


def test_a_rate_keeps_the_order_and_spaces_events_evenly(tables: dict[str, pa.Table]) -> None:
    some = head({name: tables[name] for name in ("posts", "post-likes")}, 5000)
    assert abs(sum(each.num_rows for each in some.values()) - 5000) < 20
    played = at_rate(some, 100.0, start=7)
    merged = []
    for name, table in played.items():
        times = table.column("time").to_numpy()
        assert np.all(np.diff(times) >= 0)
        same_event = np.diff(table.column("event").to_numpy()) == 0
        assert np.all(np.diff(times)[same_event] == 0)
        old = some[name].column("time").to_numpy()
        merged += list(zip(old.tolist(), times.tolist(), strict=True))
    merged.sort()
    new = [time for _, time in merged]
    assert new[0] == 7 and new == sorted(new)
    # The k-th triple is due 10 ms after the one before, at most an event's triples early.
    for place, time in enumerate(new):
        assert place * 10 + 7 - 150 <= time <= place * 10 + 7


def test_playing_sends_all_streams_at_the_rate(tmp_path: Path) -> None:
    generate(Parameters(users=20, days=1, gps_events=0), tmp_path / "net")
    clock = [1_000_000]
    sent: dict[str, list[tuple[int, str]]] = {stream: [] for stream in STREAMS}

    def sender(stream: str):  # type: ignore[no-untyped-def]
        return lambda lines: sent[stream].extend((clock[0], line) for line in lines)

    def wait(until: int) -> None:
        clock[0] = max(clock[0], until)

    count = play(
        tmp_path / "net",
        500.0,
        {stream: sender(stream) for stream in STREAMS},
        now_ms=lambda: clock[0],
        wait_until=wait,
        tick_ms=50,
    )
    lines = [line for each in sent.values() for line in each]
    assert count == len(lines) > 300
    for arrived, line in lines:
        due = int(line.split(" ", 1)[0])
        assert due <= arrived <= due + 50
    assert clock[0] - 1_000_000 == pytest.approx(count * 2, abs=200)
    texts = [line.split(" ", 1)[1] for _, line in sent["posts"]]
    days = (tmp_path / "net" / "posts").iterdir()
    wanted = [line.split(" ", 1)[1] for day in days for line in day.read_text().splitlines()]
    assert texts == wanted


def test_playing_into_folders(tmp_path: Path) -> None:
    out = tmp_path / "net"
    options = ["--users", "20", "--days", "1", "--gps-events", "0", "--lone-trackers", "0"]
    main(["bench", "lsbench", "generate", *options, "--rate", "100000", str(out)])
    played = list(read_elements(out / "live" / "posts"))
    assert len(played) == len(list(read_elements(out / "posts")))
    assert played[0].event_time > 1_767_225_600_000
