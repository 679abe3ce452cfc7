"""`quadweir demo`: motorway sensors, played live, become an RDF stream; a query answers over it."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from quadweir.commands.interrupts import Interrupts
from quadweir.commands.output import print_json, stderr_console
from quadweir.errors import QuadweirError, SourceError, UsageError
from quadweir.vocab import RDF, XSD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.commands.dashboard import Dashboard, ProgressMeter
    from quadweir.commands.demoquery import JamQuery

BASE: Final = "http://example.org/motorway/"
QUANTITIES: Final = ("flow", "speed")

_MARKER: Final = ".quadweir-demo"
_RECORDING: Final = "recording"
_RDF: Final = "rdf"
_CHECKPOINT: Final = "checkpoint"
_ANSWERS: Final = "answers"
_QUERY_STATE: Final = "query-checkpoint"
_WARM_UP: Final = "warm-up"
_PAGE: Final = "page"
_SOSA: Final = "http://www.w3.org/ns/sosa/"
_PREFIXES: Final = {
    "sosa": _SOSA,
    "rdf": str(RDF),
    "xsd": str(XSD),
    "": BASE,
}
_TAIL_BYTES: Final = 8192
_DELAY: Final = "2 minutes"
_LOOK_SECONDS: Final = 0.25
# The recording is over, but the last batch does not arrive: something is stuck.
_PATIENCE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The summary of a demo run; `--json` prints it."""

    records: dict[str, int]
    triples: int
    bad_records: int
    seconds: float
    records_per_second: float
    triples_per_second: float
    batches: int
    batch_ms_median: float
    batch_ms_max: int
    watermark: str | None
    latest: str
    answers: int
    latest_answers: str
    output: str
    complete: bool


def demo(
    seconds: Annotated[
        float, typer.Option(min=1, max=3600, help="How long the sensors play.")
    ] = 40.0,
    rate: Annotated[
        int,
        typer.Option(
            min=100, max=50_000, help="Sensor records per second, of both streams together."
        ),
    ] = 2_000,
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the RDF goes; replaces an earlier run.")
    ] = Path("out/demo"),
    page: Annotated[
        bool,
        typer.Option(
            "--page", help="Serve the motorway, and open the page that shows it, until Ctrl-C."
        ),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port of the page; 0 for a free one.")
    ] = 7474,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Watch motorway sensors become an RDF stream, live.

    Sensors along a made-up motorway measure flow and speed on each lane. The demo plays their
    readings as two live streams, many times faster than real time. An RML mapping turns each reading
    into an RDF observation, and files hold every observation exactly once. A continuous query
    reports where cars crawl. The demo needs no network. With --page, the motorway is played two
    minutes a second and without end, and a page in the browser shows streams, queries and answers.
    """
    from quadweir.bench.motorway import write_recording
    from quadweir.runtime.spark.session import build

    _clear(output)
    if page:
        from quadweir.commands.demopage import serve_motorway

        serve_motorway(output / _PAGE, port)
        return
    console = stderr_console()
    console.print("generating sensor readings", style="dim")
    recording = write_recording(output / _RECORDING, round(seconds * rate))
    console.print("starting Spark, which takes 5 to 20 seconds", style="dim")
    with ExitStack() as stack:
        kernel = stack.enter_context(_compiling())
        spark = build(app_name="quadweir-demo")
        interrupts = stack.enter_context(Interrupts())
        try:
            if kernel.poll() is None:
                console.print("compiling the query kernel, once on this machine", style="dim")
            while kernel.poll() is None and not interrupts.seen:
                time.sleep(_LOOK_SECONDS)
            console.print("warming up: Spark compiles the pipeline", style="dim")
            _warm_up(spark, output / _WARM_UP, interrupts)
            if interrupts.seen:
                raise KeyboardInterrupt
            summary = run(spark, recording, rate, output, interrupts)
        finally:
            spark.stop()
    if as_json:
        print_json(asdict(summary))
    elif summary.batches:
        _print_summary(summary)
    if not summary.complete:
        # Print a summary of the work so far; the exit code still reports the error.
        raise KeyboardInterrupt


def run(
    spark: SparkSession,
    recording: tuple[Path, Path],
    rate: int,
    output: Path,
    interrupts: Interrupts,
) -> Summary:
    """Play a recording to its end, or until interrupted; return a summary."""
    from quadweir.commands.dashboard import Dashboard

    total = sum(_count_lines(path) for path in recording)
    question = _question(spark, output)
    query = _start(spark, recording, rate, output)
    with Dashboard("motorway sensors, live", QUANTITIES, prefixes=_PREFIXES) as dashboard:
        try:
            _watch(query, dashboard, question, total, output, interrupts)
            seconds = dashboard.elapsed
            question.finish(interrupts)
            dashboard.meter.answers = question.latest()
        finally:
            query.stop()
            question.stop()
    return _summarise(dashboard.meter, seconds, output, question, complete=not interrupts.seen)


@contextmanager
def _compiling() -> Iterator[subprocess.Popen[bytes]]:
    """Compile the query kernel while Spark starts, if it is not in the cache, so that the first
    batch need not wait.

    If this fails, the first batch compiles it.
    """
    command = [sys.executable, "-m", "quadweir.kernel.warm"]
    # In its own session: Ctrl-C goes to the demo, and the demo ends this process.
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _warm_up(spark: SparkSession, folder: Path, interrupts: Interrupts) -> None:
    """Send one minute of readings through the pipeline first; otherwise half of the play waits for
    Spark.
    """
    from quadweir.bench.motorway import write_recording

    recording = write_recording(folder / _RECORDING, 1)
    question = _question(spark, folder)
    query = _start(spark, recording, 50_000, folder)
    try:
        while query.isActive and not interrupts.seen and not question.was_tried:
            question.start_when_ready()
            time.sleep(_LOOK_SECONDS)
    finally:
        query.stop()
        question.stop()
        shutil.rmtree(folder)


def _question(spark: SparkSession, output: Path) -> JamQuery:
    """Start the query over the stream whose files are in a folder."""
    from quadweir.commands.demoquery import JamQuery

    return JamQuery(
        spark,
        BASE + QUANTITIES[-1],
        output / _RDF / QUANTITIES[-1],
        output / _ANSWERS,
        output / _QUERY_STATE,
    )


def _start(
    spark: SparkSession, recording: tuple[Path, Path], rate: int, output: Path
) -> StreamingQuery:
    """Connect the two replays through the mapping to the files, and start."""
    from pyspark.sql import functions as F

    from quadweir import rows
    from quadweir.commands.dashboard import DEMO_METRICS
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.lineformat import LineFormat
    from quadweir.sinks.start import Split, start

    flow, speed = (
        _play(spark, path, quantity, rate)
        for path, quantity in zip(recording, QUANTITIES, strict=True)
    )
    statements = observe_streams(flow, speed)
    watched = statements.observe(
        DEMO_METRICS,
        F.count(F.lit(1)).alias("triples"),
        # Each usable reading has one type.
        F.count_if(F.col(rows.PREDICATE) == f"<{RDF.type}>").alias("used"),
    )
    return start(
        watched,
        Split(
            lambda frame: [frame.where(F.col(rows.STREAM) == BASE + name) for name in QUANTITIES],
            [FileSink(output / _RDF / name, LineFormat.TIMED_LINES) for name in QUANTITIES],
        ),
        checkpoint=output / _CHECKPOINT,
        name="demo",
    )


def observe_streams(flow: DataFrame, speed: DataFrame) -> DataFrame:
    """Turn sensor records into RDF observations by the RML mapping `bench/motorway.ttl`.

    Args:
        flow: record rows of the flow stream, with event time, position and reason.
        speed: the same for the speed stream.

    Returns:
        The statements of both streams (`rows.STATEMENT_SCHEMA`).
    """
    from importlib.resources import files

    from pyspark.sql import functions as F

    from quadweir import rows
    from quadweir.mapping.apply import apply
    from quadweir.mapping.read import parse_mapping

    frames = {
        BASE + name: records.withColumn("at", F.timestamp_millis(rows.EVENT_TIME)).withWatermark(
            "at", _DELAY
        )
        for name, records in zip(QUANTITIES, (flow, speed), strict=True)
    }
    text = files("quadweir.bench").joinpath("motorway.ttl").read_text(encoding="utf-8")
    return apply(parse_mapping(text, source="motorway.ttl"), frames)


def _play(spark: SparkSession, path: Path, quantity: str, rate: int) -> DataFrame:
    from quadweir.bench.motorway import STEP, Motorway
    from quadweir.sources.declare import Format, FromColumn, ReplaySource, Speed, StreamDeclaration
    from quadweir.sources.replaysource import open_replay

    # A step has one record of each sensor in each of the two streams.
    steps_a_second = rate / (2 * len(Motorway().sensors))
    declaration = StreamDeclaration(
        iri=BASE + quantity,
        source=ReplaySource(path=path, pace=Speed(steps_a_second * STEP.total_seconds())),
        format=Format.JSONL,
        time=FromColumn("time"),
        in_order=True,
    )
    return open_replay(spark, declaration)


def _latest(folder: Path) -> str:
    """The last element written, without its time and graph name."""
    newest = max(folder.glob("*.stream"), default=None)
    if newest is None:
        return ""
    with newest.open("rb") as file:
        file.seek(max(0, newest.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    end = " ".join(lines[-1].rsplit(" ", 2)[1:])  # the graph name and the full stop
    return "\n".join(
        f"{line.partition(' ')[2].removesuffix(end)}." for line in lines if line.endswith(end)
    )


def _watch(
    query: StreamingQuery,
    dashboard: Dashboard,
    question: JamQuery,
    total: int,
    output: Path,
    interrupts: Interrupts,
) -> None:
    """Show progress until every record has become RDF, or until an interrupt."""
    last_change = time.monotonic()
    while dashboard.meter.total_records < total and not interrupts.seen:
        before = dashboard.meter.total_records
        time.sleep(_LOOK_SECONDS)
        active = query.isActive  # checked first, so that no later progress is missed
        question.start_when_ready()
        dashboard.meter.latest = _latest(output / _RDF / QUANTITIES[-1])
        dashboard.meter.answers = question.latest()
        dashboard.update(query)
        if dashboard.meter.total_records != before:
            last_change = time.monotonic()
        # Ctrl-C reaches Spark's Python workers too, and may end the query before this check.
        elif not interrupts.seen and (
            not active or time.monotonic() - last_change > _PATIENCE_SECONDS
        ):
            raise _explain(query, before, total)


def _explain(query: StreamingQuery, done: int, total: int) -> QuadweirError:
    from quadweir.failures import explain_failure

    problem = query.exception()
    known = explain_failure(problem) if problem is not None else None
    return known or SourceError(
        "the stream stopped before its recording ended",
        detail=f"{done:,} of {total:,} records were processed. {problem or ''}".strip(),
        hint="`quadweir doctor` checks what it needs.",
    )


def _clear(output: Path) -> None:
    """Delete the output of an earlier run, and nothing else: the folder may be mistyped."""
    if output.exists() and not output.is_dir():
        raise UsageError(f"{output} is not a folder")
    if output.is_dir() and any(output.iterdir()) and not (output / _MARKER).is_file():
        raise UsageError(
            f"{output} is not empty, and no earlier run of the demo made it",
            hint="Name another folder with --output.",
        )
    for part in (_RECORDING, _RDF, _CHECKPOINT, _WARM_UP, _ANSWERS, _QUERY_STATE, _PAGE):
        shutil.rmtree(output / part, ignore_errors=True)
    output.mkdir(parents=True, exist_ok=True)
    (output / _MARKER).touch()


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _summarise(
    meter: ProgressMeter, seconds: float, output: Path, question: JamQuery, complete: bool
) -> Summary:
    return Summary(
        records=meter.records,
        triples=meter.triples,
        bad_records=meter.bad,
        seconds=round(seconds, 1),
        records_per_second=round(meter.total_records / max(seconds, 1e-3), 1),
        triples_per_second=round(meter.triples / max(seconds, 1e-3), 1),
        batches=len(meter.batch_ms),
        batch_ms_median=statistics.median(meter.batch_ms or [0]),
        batch_ms_max=max(meter.batch_ms, default=0),
        watermark=meter.watermark,
        latest=meter.latest,
        answers=question.count,
        latest_answers=question.latest(),
        output=str(output.resolve() / _RDF),
        complete=complete,
    )


def _page_command() -> str:
    """Return what opens the page, as whoever called the demo can type it."""
    own = Path(sys.argv[0])
    return f"{own if own.parent.name == 'bin' and '.venv' in own.parts else 'quadweir'} demo --page"


def _print_summary(summary: Summary) -> None:
    counts = " and ".join(f"{count:,} of {name}" for name, count in summary.records.items())
    print(
        f"""
{counts} records became {summary.triples:,} triples in {summary.seconds:.0f} s
({summary.records_per_second:,.0f} records and {summary.triples_per_second:,.0f} triples a second),
in {summary.batches} batches, half of them within {summary.batch_ms_median:,.0f} ms, none over {summary.batch_ms_max:,} ms.
{summary.bad_records:,} records could not be used.

The last observation:

{summary.latest}

Where did cars crawl? {summary.answers:,} answers; the last:

{summary.latest_answers or "none"}

The RDF stream is in {summary.output}, with the answers.
Next: quadweir replay {summary.output}/speed --check

To see it live on a page in the browser: {_page_command()}"""
    )
