"""`quadweir map`: records to RDF by an RML mapping, once or continuously."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadweir.commands.board import STARTING, Board
from quadweir.commands.mappingtimes import TimeOption, parse_times
from quadweir.commands.output import print_json, printable, stderr_console
from quadweir.commands.preflight import check_file
from quadweir.errors import MappingError, UsageError

if TYPE_CHECKING:
    from quadweir.mapping.files import Folders
    from quadweir.mapping.model import Mapping
    from quadweir.runtime.mappings.bounded import MappingJob


class MapFormat(StrEnum):
    """The formats as the command line names them."""

    NQUADS = "nquads"
    NTRIPLES = "ntriples"
    TURTLE = "turtle"
    TRIG = "trig"
    JSONLD = "jsonld"
    TIMED_LINES = "timed-lines"


class Rules(StrEnum):
    """The rules for values as the command line names them; see `quadweir.mapping.sources`."""

    CURRENT = "current"
    OLDER = "older"


def map(  # noqa: A001 - the verb's own name
    mapping: Annotated[Path, typer.Argument(metavar="MAPPING", help="RML in RDF, or YARRRML.")],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="Where to write: a file; with --live a folder, or kafka:BROKERS/TOPIC. "
            "Default: standard output.",
        ),
    ] = None,
    form: Annotated[MapFormat | None, typer.Option("--format", help="The output format.")] = None,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Write every quad only once.")
    ] = False,
    base: Annotated[
        str | None, typer.Option(metavar="IRI", help="Resolve relative IRIs against this one.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Continue as records arrive, until Ctrl-C.")
    ] = False,
    realtime: Annotated[
        bool,
        typer.Option("--realtime", help="From Kafka to Kafka in Spark's real-time mode."),
    ] = False,
    time: TimeOption = None,
    streams: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The TOML file that declares streams named by IRI."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where a live run keeps its progress for a restart."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 4 if a record cannot be used.")
    ] = False,
    validate: Annotated[
        bool, typer.Option("--validate", help="Only list errors and doubtful places.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say on standard error how each source is read.")
    ] = False,
    allow_dir: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER", help="Let the mapping use files in this folder; repeatable."
        ),
    ] = None,
    allow_net: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="Let the mapping connect to this host; repeatable."),
    ] = None,
    dead_letters: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Keep unusable records here, as JSON Lines: a file; with --live a folder, or "
            "kafka:BROKERS/TOPIC.",
        ),
    ] = None,
    value_rules: Annotated[
        Rules | None,
        typer.Option(
            help="How values become terms where vocabularies differ. "
            "Default: by the vocabulary of each source."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Let logical targets replace files.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Turn records into RDF with an RML mapping.

    Without --live, the command reads everything, writes once, and ends. Files that the mapping names
    must be in its own folder, unless --allow-dir allows another. A record that cannot be used
    is skipped, counted, and kept with its reason if --dead-letters is given.
    """
    from quadweir.mapping.files import Folders
    from quadweir.mapping.model import Mapping
    from quadweir.terms import IRI

    if not mapping.is_file():
        raise UsageError(f"there is no mapping file {mapping}", hint="Check the path.")
    if base is not None and not IRI(base).is_valid():
        raise UsageError(f"--base {base} is not an absolute IRI", hint="Write http://.../.")
    model = Mapping.read(mapping, rules=value_rules)
    folders = Folders(mapping=mapping.resolve().parent, allowed=tuple(allow_dir or ()))
    if validate:
        _validate(model, folders, as_json)
        return
    _warn(model)
    _check_together(live or realtime, output, dead_letters, checkpoint, as_json)
    written = str(form or (MapFormat.NQUADS if live or realtime else _format_of(output)))
    is_timed = written == MapFormat.TIMED_LINES
    times = parse_times(time or [], [model])
    if times and not is_timed:
        raise UsageError("--time goes with --format timed-lines", hint="Add it, or drop --time.")
    if is_timed and distinct:
        raise UsageError(
            "--distinct would remove quads from their elements",
            hint="Leave it out, or write nquads.",
        )
    if live or realtime:
        from quadweir.commands.maplive import LiveOptions, run

        run(
            model,
            LiveOptions(
                output=output,
                form=written,
                times=times,
                distinct=distinct,
                base=base,
                realtime=realtime,
                streams=streams,
                checkpoint=checkpoint,
                strict=strict,
                explain=explain,
                hosts=tuple(allow_net or ()),
                dead_letters=dead_letters,
                folders=folders,
                overwrite=overwrite,
            ),
        )
        return
    from quadweir.runtime.mappings.bounded import MappingJob
    from quadweir.sinks.rdf_documents import Syntax
    from quadweir.sources.declare import load

    path = Path(output) if output is not None and output != "-" else None
    job = MappingJob(
        folders=folders,
        output=path,
        syntax=Syntax.NQUADS if is_timed else Syntax(written),
        is_timed=is_timed,
        times=times,
        distinct=distinct,
        base=base,
        strict=strict,
        dead_letters=Path(dead_letters) if dead_letters is not None else None,
        declarations=load(streams) if streams is not None else {},
        hosts=tuple(allow_net or ()),
        mapping_file=mapping,
        overwrite=overwrite,
    )
    _bounded(model, job, explain, as_json)


def _warn(model: Mapping) -> None:
    """Print the doubtful places of a mapping on standard error."""
    from quadweir.mapping.findings import Level

    console = stderr_console()
    for one in model.findings:
        if one.level is Level.WARNING:
            console.print(printable(str(one)), markup=False, highlight=False)


def _check_together(
    live: bool,
    output: str | None,
    dead_letters: str | None,
    checkpoint: Path | None,
    as_json: bool,
) -> None:
    """Refuse options that do not go together, before Spark starts."""
    if live:
        if as_json:
            raise UsageError("a live run has no summary, since it has no end", hint="Drop --json.")
        return
    if as_json and output in (None, "-"):
        raise UsageError("--json and the quads both want standard output", hint="Add -o FILE.")
    for option, value in (("-o", output), ("--dead-letters", dead_letters)):
        if value is not None and value.startswith("kafka:"):
            raise UsageError(f"{option} {value} needs --live", hint="Name a file, or add --live.")
    if checkpoint is not None:
        raise UsageError(
            "a run to the end has no checkpoint", hint="Drop --checkpoint, or add --live."
        )


def _bounded(model: Mapping, job: MappingJob, explain: bool, as_json: bool) -> None:
    from quadweir.mapping.check import check_mapping
    from quadweir.runtime.mappings.bounded import check_graphs, run_bounded
    from quadweir.runtime.mappings.checks import check_sources
    from quadweir.runtime.spark.session import build

    check_mapping(model)
    check_graphs(model, job.syntax)
    check_sources(model, job.folders, job.declarations, job.hosts)
    for path in (job.output, job.dead_letters, *job.target_paths(model)):
        if path is not None:
            check_file(path)
    console = stderr_console()
    with Board.of_bounded(prints=job.output is None) as board:
        board.start(STARTING)
        spark = build(app_name="quadweir-map")
        board.start("mapping")
        try:
            outcome = run_bounded(model, spark, job)
        finally:
            spark.stop()
    sys.stdout.flush()
    if explain:
        console.print(printable(outcome.explanation), markup=False)
    kept = str(job.dead_letters) if job.dead_letters and outcome.bad_records else None
    if outcome.bad_records:
        console.print(
            printable(
                f"{outcome.bad_records} of {outcome.records} records could not be used"
                + (f"; see {kept}" if kept else "")
            ),
            markup=False,
        )
    if as_json:
        print_json(
            {
                "records": outcome.records,
                "bad_records": outcome.bad_records,
                "outputs": [str(one) for one in outcome.outputs],
                "dead_letters": kept,
            }
        )


def _format_of(output: str | None) -> str:
    """The format by the extension of a file; N-Quads if the extension is unknown."""
    if output in (None, "-"):
        return MapFormat.NQUADS
    from quadweir.fileformats import format_of

    name = Path(str(output)).name
    if name.lower().removesuffix(".gz").endswith(".stream"):
        return MapFormat.TIMED_LINES
    try:
        found = format_of(name)
    except UsageError:
        return MapFormat.NQUADS
    if found not in list(MapFormat):
        raise UsageError(
            f"{found} is not a format of `quadweir map`",
            hint="Write nquads, ntriples, turtle, trig, jsonld or timed-lines; `quadweir convert` does "
            "the rest.",
        )
    return found


def _validate(model: Mapping, folders: Folders, as_json: bool) -> None:
    from quadweir.mapping.check import lint
    from quadweir.mapping.findings import Level
    from quadweir.mapping.samples import sample_matches

    findings = lint(model, sample_matches(model, folders))
    if as_json:
        print_json(
            [
                {
                    "level": str(one.level),
                    "code": one.code,
                    "message": one.message,
                    "hint": one.hint,
                    "place": str(one.span) if one.span else None,
                }
                for one in findings
            ]
        )
    else:
        for one in findings:
            print(printable(str(one)))
    wrong = sum(one.level is Level.ERROR for one in findings)
    if wrong:
        raise MappingError(f"the mapping has {wrong} error{'s' if wrong > 1 else ''}")
    if not as_json and not findings:
        print("the mapping is valid", file=sys.stderr)
