"""`quadweir bench lsbench`: the social network of LSBench."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from quadweir.commands.output import print_json, stderr_console
from quadweir.errors import UsageError

if TYPE_CHECKING:
    from quadweir.bench.lsbench.parameters import Parameters
    from quadweir.commands.replayoutputs import ReplayOutput

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The social network of LSBench."
)

# From this number of user days on, Spark writes in parallel.
_MANY: Final = 300_000


@app.callback()
def _root() -> None:
    """The social network of LSBench."""


@app.command()
def generate(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A folder that does not exist yet.")],
    users: Annotated[int, typer.Option(min=2, help="How many users.")] = 1000,
    days: Annotated[int, typer.Option(min=1, help="How long.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same bytes.")] = 1,
    start: Annotated[
        str, typer.Option(metavar="TIME", help="The first instant.")
    ] = "2026-01-01T00:00:00Z",
    first_user: Annotated[int, typer.Option(min=0, help="The number of the first user.")] = 0,
    max_posts: Annotated[int, typer.Option(min=0, help="Most posts of a user in a week.")] = 22,
    max_comments: Annotated[
        int, typer.Option(min=0, help="Most comments on a user's wall in a week.")
    ] = 22,
    max_photos: Annotated[int, typer.Option(min=0, help="Most photos of a user in a week.")] = 80,
    min_friends: Annotated[int, typer.Option(min=1, help="Fewest friends of a user.")] = 5,
    max_friends: Annotated[int, typer.Option(min=1, help="Most friends of a user.")] = 40,
    friend_exponent: Annotated[float, typer.Option(help="Power law of the friends.")] = 2.0,
    location_share: Annotated[float, typer.Option(help="Part of friendships by location.")] = 0.3,
    interest_share: Annotated[float, typer.Option(help="Part of friendships by interest.")] = 0.3,
    friend_probability: Annotated[
        float,
        typer.Option(
            help="A friendship at distance n has the probability P times D to the power of n."
        ),
    ] = 0.8,
    friend_decay: Annotated[
        float, typer.Option(help="D in the probability of a friendship.")
    ] = 0.8,
    friend_window: Annotated[
        int, typer.Option(min=1, help="How far apart in the order of a pass friends may be.")
    ] = 32,
    friend_rounds: Annotated[
        int, typer.Option(min=1, help="How often a pass visits users who still need friends.")
    ] = 16,
    like_probability: Annotated[
        float, typer.Option(help="How likely a friend likes a post or a comment.")
    ] = 0.95,
    photo_like_probability: Annotated[
        float, typer.Option(help="How likely a friend likes a photo.")
    ] = 0.75,
    reaction_hours: Annotated[
        float, typer.Option(help="Mean time until a friend likes or comments.")
    ] = 2.0,
    max_hashtags: Annotated[int, typer.Option(min=1, help="Most hashtags of a post.")] = 4,
    max_usertags: Annotated[int, typer.Option(min=1, help="Most users tagged in a photo.")] = 5,
    max_album: Annotated[int, typer.Option(min=1, help="Most photos of an album.")] = 20,
    gps_events: Annotated[
        float, typer.Option(min=0, help="Events among 1,000 users in 30 days.")
    ] = 50.0,
    min_attendance: Annotated[int, typer.Option(min=1, help="Fewest users at an event.")] = 20,
    max_attendance: Annotated[int, typer.Option(min=1, help="Most users at an event.")] = 119,
    lone_trackers: Annotated[float, typer.Option(help="Part of users tracked alone.")] = 0.1,
    with_spark: Annotated[
        bool | None,
        typer.Option(
            "--spark/--no-spark", help="Write in parallel; default: if the network is large."
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(metavar="R", help="Then play it live, R triples per second over all streams."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="tcp:HOST:PORT|kafka:BROKERS/PREFIX|FOLDER",
            help="Where to play: five ports from this one on, topics PREFIX-STREAM, or a folder "
            "for each stream; by default OUT/live.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Generate a social network: five streams in the order of time, and its static data.

    OUT gets a folder for each stream with a file for each day, static/ with N-Triples, streams.toml
    with the declarations, and lsbench.json with the parameters and the numbers of triples.
    """
    from quadweir.bench.lsbench.parameters import Parameters
    from quadweir.errors import DataError
    from quadweir.times import parse_time

    given = dict(locals())
    if to is not None and rate is None:
        raise UsageError("--to says where to play, and nothing is played", hint="Add --rate R.")
    if rate is not None and not 0 < rate <= 1e9:
        raise UsageError("--rate must be above zero")
    try:
        given["start"] = parse_time(start)
    except DataError as error:
        raise UsageError(error.message, hint=error.hint) from None
    parameters = Parameters(**{each.name: given[each.name] for each in fields(Parameters)})
    manifest = _generate(parameters, out, with_spark)
    if as_json:
        print_json(manifest)
    else:
        for name, count in manifest["triples"].items():
            print(f"{name:<12}{count:>14,} triples")
    if rate is not None:
        _play(out, rate, to or str(out / "live"))


def _generate(parameters: Parameters, out: Path, with_spark: bool | None) -> dict[str, Any]:
    from quadweir.bench.lsbench.write import generate as write

    with stderr_console().status("friendships") as status:

        def tell(step: str) -> None:
            status.update(step)

        if with_spark is None:
            with_spark = parameters.users * parameters.days > _MANY
        if not with_spark:
            return write(parameters, out, on_step=tell)
        from quadweir.bench.lsbench.cluster import generate_with_spark
        from quadweir.runtime.spark.session import build

        tell("starting Spark")
        spark = build(app_name="quadweir-lsbench")
        try:
            return generate_with_spark(spark, parameters, out, on_step=tell)
        finally:
            spark.stop()


def _play(folder: Path, rate: float, to: str) -> None:
    from quadweir.bench.lsbench.parameters import STREAMS
    from quadweir.bench.lsbench.play import play
    from quadweir.sources.clock import SystemClock

    outputs = {stream: _output(to, number, stream) for number, stream in enumerate(STREAMS)}
    clock = SystemClock()
    console = stderr_console()
    try:
        for stream, output in outputs.items():
            console.print(f"{stream}: {_target(to, STREAMS.index(stream), stream)}")
            output.open()
        begun = clock.now_ms()
        sent = play(
            folder,
            rate,
            {stream: output.send for stream, output in outputs.items()},
            now_ms=clock.now_ms,
            wait_until=clock.wait_until,
            tick_ms=max(output.tick_ms for output in outputs.values()),
        )
    finally:
        for output in outputs.values():
            output.close()
    console.print(f"played {sent:,} triples in {(clock.now_ms() - begun) / 1000:.1f} s")


def _output(to: str, number: int, stream: str) -> ReplayOutput:
    from quadweir.commands.replayoutputs import output_for

    if to == "-":
        raise UsageError(
            "standard output cannot take five streams",
            hint="Name a folder, a first TCP port or a prefix of Kafka topics.",
        )
    return output_for(_target(to, number, stream), ".stream")


def _target(to: str, number: int, stream: str) -> str:
    """The target of one stream.

    >>> _target("tcp::9000", 2, "photos"), _target("kafka:b:1/ls", 2, "photos")
    ('tcp::9002', 'kafka:b:1/ls-photos')
    """
    if to.startswith("kafka:"):
        return f"{to}-{stream}"
    if to.startswith("tcp:"):
        host, _, port = to.rpartition(":")
        return f"{host}:{int(port) + number}" if port.isdecimal() else to
    return str(Path(to) / stream)
