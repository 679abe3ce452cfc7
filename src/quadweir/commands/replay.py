"""`quadweir replay`: recorded files played as a live stream, or checked."""

from __future__ import annotations

import sys
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from quadweir.commands.output import print_json, printable, stderr_console
from quadweir.errors import DataError, UsageError

if TYPE_CHECKING:
    from quadweir.sources.declare import Pace
    from quadweir.sources.replay import Play, Recording

_SHOWN: Final = 10
_PROGRESS_MS: Final = 1000


class ReplayFormat(StrEnum):
    """The formats of recorded files, as on the command line."""

    TIMED_LINES = "timed-lines"
    TIMED_GRAPHS = "timed-graphs"
    TIMED_FILES = "timed-files"
    NTRIPLES = "ntriples"
    NQUADS = "nquads"
    JSONL = "jsonl"
    CSV = "csv"


_SUFFIXES: Final = {
    ".jsonl": ReplayFormat.JSONL,
    ".ndjson": ReplayFormat.JSONL,
    ".csv": ReplayFormat.CSV,
    ".nt": ReplayFormat.NTRIPLES,
}


def replay(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The file or folder to play.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="-|tcp:HOST:PORT|kafka:BROKERS/TOPIC|FOLDER",
            help="Where to: standard output, clients of a TCP port, a Kafka topic, a folder.",
        ),
    ] = "-",
    speed: Annotated[
        float | None,
        typer.Option(metavar="X", help="Play X times as fast as the event times; default 1."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(metavar="R", help="Play R elements per second, evenly.")
    ] = None,
    burst: Annotated[
        str | None,
        typer.Option(metavar="N/S", help="Play N elements at once, every S seconds."),
    ] = None,
    loop: Annotated[
        bool, typer.Option("--loop", help="Start again at the end, with later times.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=0, help="Stop after this many elements.")] = None,
    written: Annotated[
        ReplayFormat | None,
        typer.Option("--format", help="The format of IN, if its name does not show it."),
    ] = None,
    pattern: Annotated[str, typer.Option(help="Which files of a folder.")] = "*",
    start: Annotated[
        str, typer.Option(metavar="TIME", help="timed-files: the event time of the first file.")
    ] = "0",
    step: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="timed-files: the time between files, such as 10s."),
    ] = None,
    predicate: Annotated[
        str | None,
        typer.Option(metavar="IRI", help="timed-graphs, timed-files: the predicate of the time."),
    ] = None,
    time_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="jsonl, csv: the field with the event time.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only read IN, and report its content and its faults.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Play recorded files as a live stream.

    Stream files (timed lines, timed graphs, timed files) are played as timed lines; JSON Lines, CSV
    and N-Triples record by record. Unreadable records are skipped and counted. With --check nothing
    is played; the exit code is 4 if something in IN cannot be used.
    """
    from quadweir.sources.declare import Format
    from quadweir.sources.replay import Play, Recording
    from quadweir.times import parse_duration, parse_time

    if as_json and to == "-" and not check:
        raise UsageError("--json and the play both want standard output", hint="Add --to FOLDER.")
    try:
        step_ms = parse_duration(step) // timedelta(milliseconds=1) if step is not None else None
        start_ms = parse_time(start)
    except DataError as error:
        raise UsageError(error.message, hint=error.hint) from None
    chosen = written or _guess(source, step_ms)
    recording = Recording(
        path=source,
        format=Format(chosen),
        pattern=pattern,
        start=start_ms,
        step_ms=step_ms,
        predicate=predicate,
        column=time_column,
    )
    if check:
        _check(recording, as_json)
        return
    if chosen is ReplayFormat.CSV and to.startswith(("tcp:", "-")):
        # A CSV record is header and row; a channel of lines would separate the two.
        raise UsageError(
            "CSV cannot be played as lines, since each record needs its header",
            hint="Play it to Kafka or into a folder, or turn it into JSON Lines.",
        )
    play = Play(recording, _pace(speed, rate, burst), loop=loop, limit=limit)
    _run(play, to, as_json)


def _guess(source: Path, step_ms: int | None) -> ReplayFormat:
    from quadweir.sources.rdfdocuments import rdf_suffix
    from quadweir.sources.streamfiles import guess_form, list_files

    first = next(iter(list_files(source)), source) if source.is_dir() else source
    found = _SUFFIXES.get(rdf_suffix(first))
    if found is not None and step_ms is None:
        return found
    step = None if step_ms is None else timedelta(milliseconds=step_ms)
    return ReplayFormat(guess_form(source, step=step))


def _pace(speed: float | None, rate: float | None, burst: str | None) -> Pace:
    from quadweir.sources.declare import Burst, Rate, Speed

    if sum(one is not None for one in (speed, rate, burst)) > 1:
        raise UsageError("--speed, --rate and --burst exclude one another")
    for name, value in (("--speed", speed), ("--rate", rate)):
        if value is not None and not 0 < value <= 1e9:
            raise UsageError(f"{name} must be above zero")
    if rate is not None:
        return Rate(rate)
    if burst is not None:
        count, _, seconds = burst.partition("/")
        try:
            every = timedelta(seconds=float(seconds))
            if int(count) < 1 or every < timedelta(milliseconds=1):
                raise ValueError
        except (ValueError, OverflowError):
            raise UsageError(f"not a burst: {burst}", hint="Write --burst 500/10.") from None
        return Burst(int(count), every)
    return Speed(speed if speed is not None else 1.0)


def _run(play: Play, to: str, as_json: bool) -> None:
    from quadweir.commands.replayoutputs import output_for
    from quadweir.sources.clock import SystemClock
    from quadweir.sources.replay import play_to

    written = play.recording.format
    output = output_for(to, ".stream" if written.is_stream_file else f".{written}")
    clock = SystemClock()
    console = stderr_console()
    shown = 0

    def send(units: list[str]) -> None:
        nonlocal shown
        output.send(units)
        now = clock.now_ms()
        if sys.stderr.isatty() and now - shown >= _PROGRESS_MS:
            shown = now
            rate = play.played / max(1, now - begun) * 1000
            console.print(f"played {play.played:,} ({rate:,.0f}/s)", end="\r")

    begun = clock.now_ms()
    sent = useless = 0
    try:
        output.open()
        begun = clock.now_ms()
        sent, useless = play_to(
            play,
            send,
            now_ms=clock.now_ms,
            wait_until=clock.wait_until,
            tick_ms=output.tick_ms,
        )
    except BrokenPipeError:
        # The reader of standard output has closed it, as `head` does.
        sys.stderr.close()
        return
    finally:
        output.close()
    seconds = (clock.now_ms() - begun) / 1000
    console.print(
        f"played {sent:,} elements in {seconds:.1f} s"
        + (f", left out {useless:,} that cannot be read" if useless else "")
    )
    if as_json:
        print_json({"played": sent, "left_out": useless, "seconds": seconds})


def _check(recording: Recording, as_json: bool) -> None:
    from quadweir.sources.streamfiles import StreamForm, validate
    from quadweir.times import format_time

    if not recording.format.is_stream_file:
        _check_records(recording, as_json)
        return
    report = validate(
        recording.path,
        form=StreamForm(recording.format),
        pattern=recording.pattern,
        start=recording.start,
        step=None if recording.step_ms is None else timedelta(milliseconds=recording.step_ms),
        predicate=recording.predicate,
    )
    found = {
        "format": str(report.form),
        "elements": report.elements,
        "statements": report.statements,
        "first": report.first,
        "last": report.last,
        "out_of_order": report.out_of_order,
        "max_lateness_ms": report.max_lateness_ms,
        "bad": report.bad,
        "bad_shown": [
            {"source": letter.source, "place": letter.place, "reason": letter.reason}
            for letter in report.letters
        ],
    }
    if as_json:
        print_json(found)
    else:
        print(f"{report.form}: {report.elements:,} elements, {report.statements:,} statements")
        if report.first is not None and report.last is not None:
            print(f"from {format_time(report.first)} to {format_time(report.last)}")
        if report.out_of_order:
            print(
                f"{report.out_of_order:,} out of order, by {report.max_lateness_ms:,} ms at most: "
                f'declare delay = "{report.max_lateness_ms + 1}ms" or more'
            )
        for letter in report.letters[:_SHOWN]:
            print(printable(f"{letter.source}: {letter.place}: {letter.reason}"))
    _fail_if_bad(report.bad, recording)


def _check_records(recording: Recording, as_json: bool) -> None:
    import pyarrow.compute as pc

    records = bad = 0
    shown: list[dict[str, str]] = []
    for batch in recording.units():
        useless = batch.filter(pc.is_valid(batch.column("reason")))
        records += batch.num_rows - useless.num_rows
        bad += useless.num_rows
        for row in useless.slice(0, max(0, _SHOWN - len(shown))).to_pylist():
            shown.append({key: row[key] for key in ("source", "place", "reason")})
    if as_json:
        found = {"format": str(recording.format), "records": records, "bad": bad}
        print_json({**found, "bad_shown": shown})
    else:
        print(f"{recording.format}: {records:,} records")
        for row in shown:
            print(printable(f"{row['source']}: {row['place']}: {row['reason']}"))
    _fail_if_bad(bad, recording)


def _fail_if_bad(bad: int, recording: Recording) -> None:
    if bad:
        raise DataError(f"{bad:,} places in {recording.path} cannot be used")
