"""`quadweir bench`: one subcommand for each published question."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from quadweir.commands import benchcloud, benchendtoend, benchreport, benchserve, lsbench
from quadweir.commands.output import print_json, stderr_console
from quadweir.errors import SourceError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure performance, next to a baseline in the same run. Ratios count; absolute figures are the machine's.",
)

app.add_typer(lsbench.app, name="lsbench")
app.command()(benchreport.report)
app.command()(benchendtoend.endtoend)
app.command()(benchcloud.cloud)
app.command()(benchserve.serve)


SectionsOption: TypeAlias = Annotated[
    list[str] | None, typer.Option("--section", help="Measure only this; may be repeated.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def _chosen(sections: list[str] | None, known: Iterable[str]) -> tuple[str, ...]:
    """Return the sections to measure; all if none is named."""
    for section in sections or ():
        if section not in known:
            raise typer.BadParameter(f"{section}; there are {', '.join(known)}")
    return tuple(sections or known)


def _show(result: dict[str, Any], text: Callable[[dict[str, Any]], str], as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        print(text(result))


@app.callback()
def _root() -> None:
    """Measure performance, next to a baseline in the same run."""


@app.command()
def ntriples(
    lines: Annotated[int, typer.Option(min=1000, help="How many lines to parse.")] = 2_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How many measured rounds.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """N-Triples to quad rows, next to a plain scan and pyoxigraph."""
    from quadweir.bench.ntriples import run
    from quadweir.runtime.spark.session import build

    console = stderr_console()
    with console.status("starting Spark") as status:
        spark = build(app_name="quadweir-bench")
        try:
            result = run(
                spark, lines=lines, rounds=rounds, on_step=lambda name: status.update(name)
            )
        finally:
            spark.stop()
    if as_json:
        print_json(result)
    else:
        print_rates(result)


@app.command()
def mapping(
    records: Annotated[int, typer.Option(min=1000, help="How many records to map.")] = 2_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How many measured rounds.")] = 3,
    sections: SectionsOption = None,
    install_morph: Annotated[
        bool, typer.Option(help="Fetch Morph-KGC from PyPI into ~/.cache/quadweir.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Records to triples by RML, next to hand-written Spark jobs and Morph-KGC."""
    from quadweir.bench.mapping import SECTIONS, report, run
    from quadweir.runtime.spark.session import build

    chosen = _chosen(sections, SECTIONS)
    console = stderr_console()
    with console.status("starting Spark") as status:
        spark = build(app_name="quadweir-bench")
        try:
            result = run(
                spark,
                records=records,
                rounds=rounds,
                sections=chosen,
                install_morph=install_morph,
                on_step=lambda name: status.update(name),
            )
        finally:
            spark.stop()
    if as_json:
        print_json(result)
    else:
        print("\n".join(report(result)))


@app.command("mapping-latency")
def mapping_latency(
    kafka: Annotated[str, typer.Option(metavar="HOST:PORT", help="A broker; see `make kafka`.")],
    rate: Annotated[int, typer.Option(min=1, help="Records per second.")] = 1000,
    seconds: Annotated[int, typer.Option(min=1, help="How long to measure.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """From Kafka to Kafka through a mapping: real-time mode and micro-batches."""
    from quadweir.bench.latency import SLOTS, run
    from quadweir.kafkaclient import check_broker
    from quadweir.runtime.spark.session import build

    check_broker(kafka)
    console = stderr_console()
    with console.status("starting Spark") as status:
        spark = build(app_name="quadweir-bench", master=f"local[{SLOTS}]", shards=2)
        try:
            result = run(
                spark, kafka, rate=rate, seconds=seconds, on_step=lambda name: status.update(name)
            )
        finally:
            spark.stop()
    if as_json:
        print_json(result)
        return
    print(f"{result['benchmark']}: " + ", ".join(f"{k} {v:,}" for k, v in result["input"].items()))
    print(", ".join(f"{key} {value}" for key, value in result["machine"].items()))
    for name, found in result["latency"].items():
        print(f"  {name:<12}" + ", ".join(f"{key} {value:,}" for key, value in found.items()))
    for name, ratio in result["ratios"].items():
        print(f"  {name:<40}{ratio:>8}")


@app.command()
def kernel(
    sections: SectionsOption = None,
    quick: Annotated[bool, typer.Option(help="Small sizes: seconds instead of minutes.")] = False,
    soak: Annotated[
        int | None,
        typer.Option(min=1000, metavar="N", help="Instead, run N elements and watch memory."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """The incremental kernel on one core, in the set-ups of the paper it follows."""
    from quadweir.bench.kernel import SECTIONS, as_text, run, run_soak

    chosen = _chosen(sections, SECTIONS)
    console = stderr_console()
    with console.status("compiling") as status:

        def tell(step: str) -> None:
            status.update(step)

        if soak is not None:
            result = run_soak(soak, on_step=tell)
        else:
            result = run(chosen, quick=quick, on_step=tell)
    _show(result, as_text, as_json)


@app.command()
def queries(
    sections: SectionsOption = None,
    quick: Annotated[bool, typer.Option(help="Small sizes, which show fixed costs only.")] = False,
    triples: Annotated[
        int | None, typer.Option(min=10_000, help="Triples in a batch; default 1,000,000.")
    ] = None,
    batches: Annotated[
        int | None, typer.Option(min=1, help="Batches that count, after two that do not.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Continuous queries on Spark: throughput, latency, cores, static data."""
    from quadweir.bench.continuous import SECTIONS, run, sized
    from quadweir.bench.kernel import as_text

    chosen = _chosen(sections, SECTIONS)
    console = stderr_console()
    with console.status("starting") as status:
        result = run(
            chosen,
            size=sized(quick=quick, triples=triples, batches=batches),
            on_step=lambda name: status.update(name),
        )
    _show(result, as_text, as_json)


@app.command()
def sparkwave(
    sections: SectionsOption = None,
    quick: Annotated[bool, typer.Option(help="Small sizes, which show fixed costs only.")] = False,
    offers: Annotated[
        int | None, typer.Option(min=1_000, help="Offers in a batch; default 50,000.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="How often each contender runs; default 2.")
    ] = None,
    windows: Annotated[
        list[int] | None,
        typer.Option(
            "--window", min=1, help="Measure windows of this many seconds; may be repeated."
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a page with charts there.")
    ] = None,
    earlier: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Measure nothing; merge the --json results of earlier runs; repeatable.",
        ),
    ] = None,
    generate: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Measure nothing; write schema, static data, offers and queries."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Entailment inside matching, next to a stream that contains the consequences."""
    from quadweir.bench import sparkwave as bench
    from quadweir.bench.kernel import as_text

    if report is not None:
        # The packages of the page must be there before anything is measured.
        from quadweir.bench.page import write
        from quadweir.bench.sparkwave_report import report as page

    if generate is not None:
        for file in bench.generate(generate, offers=offers or 10_000):
            print(file)
        return
    chosen = _chosen(sections, bench.SECTIONS)
    if earlier:
        results = [read_result(each, "sparkwave") for each in earlier]
    else:
        console = stderr_console()
        with console.status("starting") as status:
            measured = bench.run(
                chosen,
                size=bench.sized(quick=quick, offers=offers, rounds=rounds, windows=windows or ()),
                on_step=lambda name: status.update(name),
            )
        words = ["quadweir", "bench", "sparkwave", *(["--quick"] if quick else [])]
        given: dict[str, Sequence[object]] = {
            "--section": sections or (),
            "--window": windows or (),
            "--offers": () if offers is None else (offers,),
            "--rounds": () if rounds is None else (rounds,),
        }
        words += [
            str(one) for name, all_of in given.items() for each in all_of for one in (name, each)
        ]
        results = [{**measured, "commands": [words]}]
    result = bench.merged(results)
    if report is not None:
        write(page(result), result, report, "sparkwave")
    _show(result, as_text, as_json)


@app.command()
def ndw(
    sections: SectionsOption = None,
    out: Annotated[
        Path, typer.Option("--out", help="The folder for ndw.html and ndw.json.")
    ] = Path("out"),
    kafka: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Feed live runs through this broker; see `make kafka`."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="The folder with the recording; default QUADWEIR_DATA or ../shared/data."
        ),
    ] = None,
    seconds: Annotated[
        int | None, typer.Option(min=4, help="Stream time of the plays for completeness.")
    ] = None,
    live_seconds: Annotated[
        int | None, typer.Option(min=2, help="How long each live run counts.")
    ] = None,
    trigger_ms: Annotated[
        int | None, typer.Option(min=1, help="How often live runs take a batch.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small sizes, which show fixed costs only.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Joins of two streams in windows of every kind, as paper 000 evaluated them; writes a page."""
    import sys
    from dataclasses import replace

    from quadweir.bench.kernel import as_text
    from quadweir.bench.ndw.bench import QUICK, SECTIONS, NdwSize, run
    from quadweir.bench.ndw.report import build as build_report
    from quadweir.bench.page import write
    from quadweir.kafkaclient import check_broker
    from quadweir.runtime.spark.session import build

    chosen = _chosen(sections, SECTIONS)
    if kafka is not None:
        check_broker(kafka)
    given = {"seconds": seconds, "live_seconds": live_seconds, "every_ms": trigger_ms}
    size = replace(
        QUICK if quick else NdwSize(),
        **{key: each for key, each in given.items() if each is not None},
    )
    console = stderr_console()
    with console.status("starting Spark") as status:
        spark = build(app_name="quadweir-bench", master="local[2]", shards=2)
        try:
            result = run(
                spark,
                chosen,
                size=size,
                kafka=kafka,
                data=data,
                on_step=lambda name: status.update(name),
            )
        finally:
            spark.stop()
    report = build_report(result, ["quadweir", *sys.argv[1:]])
    page, _ = write(report, result, out, "ndw")
    _show(result, as_text, as_json)
    console.print(f"written: {page}")


def read_result(file: Path, name: str) -> dict[str, Any]:
    """Read what `--json` of a benchmark wrote.

    Raises:
        SourceError: the file is not that.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"cannot read {file}: {error.strerror}") from None
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("benchmark") != name:
        raise SourceError(
            f"{file} is not a result of bench {name}",
            hint=f"Write one with: quadweir bench {name} --json > FILE",
        )
    return found


def print_rates(result: dict[str, Any]) -> None:
    """Print the rates of a result, each with what it measures, then the ratios."""
    machine, given = result["machine"], result["input"]
    print(
        f"{result['benchmark']}: " + ", ".join(f"{key} {value:,}" for key, value in given.items())
    )
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    for name, rate in result["lines_per_second"].items():
        print(f"  {name:<12}{rate:>12,} lines/s   {result['explained'][name]}")
    for name, spent in result.get("cpu_ns_per_line", {}).items():
        print(f"  {name:<12}{spent:>12,} ns a line on all cores")
    for name, ratio in result["ratios"].items():
        print(f"  {name:<24}{ratio:>8}")
