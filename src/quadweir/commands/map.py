"""`quadweir map`: records to RDF by an RML mapping, once or continuously."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadweir.commands.output import print_json, printable, stderr_console
from quadweir.errors import MappingError, UsageError

if TYPE_CHECKING:
    from quadweir.mapping.files import Folders
    from quadweir.mapping.model import Mapping


class Format(StrEnum):
    """The formats as the command line names them."""

    NQUADS = "nquads"
    NTRIPLES = "ntriples"
    TURTLE = "turtle"
    TRIG = "trig"
    JSONLD = "jsonld"


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
    form: Annotated[Format | None, typer.Option("--format", help="How to write.")] = None,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Write every quad only once.")
    ] = False,
    base: Annotated[
        str | None, typer.Option(metavar="IRI", help="Put relative IRIs after this one.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Go on as records arrive, until Ctrl-C.")
    ] = False,
    realtime: Annotated[
        bool,
        typer.Option("--realtime", help="From Kafka to Kafka in Spark's real-time mode."),
    ] = False,
    streams: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The TOML file that declares streams named by IRI."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where a live run keeps its progress, to go on from."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with 4 if a record cannot be used.")
    ] = False,
    validate: Annotated[
        bool, typer.Option("--validate", help="Only say what is wrong or doubtful.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what is read how, on standard error.")
    ] = False,
    allow_dir: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Let the mapping touch files there; repeatable."),
    ] = None,
    allow_net: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST", help="Let the mapping connect to this host; repeatable. With --live."
        ),
    ] = None,
    dead_letters: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep what cannot be used here, as JSON Lines."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Turn records into RDF with an RML mapping.

    Without --live everything is read, written once, and the command ends. Files that the mapping
    names are looked for in its own folder and may not lie outside of it. A record that cannot be
    used is left out, counted, and kept with its reason if --dead-letters names a file.
    """
    from quadweir.mapping.files import Folders
    from quadweir.mapping.model import Mapping

    if not mapping.is_file():
        raise UsageError(f"there is no mapping file {mapping}", hint="Check the path.")
    if output is None and as_json:
        raise UsageError("--json and the quads both want standard output", hint="Add -o FILE.")
    model = Mapping.read(mapping)
    folders = Folders(mapping=mapping.resolve().parent, allowed=tuple(allow_dir or ()))
    if validate:
        _validate(model, folders, as_json)
        return
    if live or realtime:
        from quadweir.commands.maplive import LiveOptions, run

        run(
            model,
            LiveOptions(
                output=output,
                form=str(form or Format.NQUADS),
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
            ),
        )
        return
    _bounded(model, folders, output, form, distinct, base, strict, dead_letters, explain, as_json)


def _bounded(
    model: Mapping,
    folders: Folders,
    output: str | None,
    form: Format | None,
    distinct: bool,
    base: str | None,
    strict: bool,
    dead_letters: Path | None,
    explain: bool,
    as_json: bool,
) -> None:
    from quadweir.mapping.check import check_mapping
    from quadweir.mapping.run import Job, run_bounded
    from quadweir.runtime.session import build
    from quadweir.sinks.rdf_documents import Syntax

    check_mapping(model)
    path = Path(output) if output is not None and output != "-" else None
    job = Job(
        folders=folders,
        output=path,
        syntax=Syntax(str(form or _format_of(path))),
        distinct=distinct,
        base=base,
        strict=strict,
        dead_letters=dead_letters,
    )
    console = stderr_console()
    with console.status("starting Spark") as status:
        spark = build(app_name="quadweir-map")
        status.update("mapping")
        try:
            outcome = run_bounded(model, spark, job)
        finally:
            spark.stop()
    sys.stdout.flush()
    if explain:
        console.print(printable(outcome.explanation), markup=False)
    if outcome.bad_records:
        kept = f"; see {dead_letters}" if dead_letters is not None else ""
        console.print(
            f"{outcome.bad_records} of {outcome.records} records could not be used{kept}",
            markup=False,
        )
    if as_json:
        print_json(
            {
                "records": outcome.records,
                "bad_records": outcome.bad_records,
                "outputs": [str(one) for one in outcome.outputs],
                "dead_letters": str(dead_letters) if dead_letters and outcome.bad_records else None,
            }
        )


def _format_of(path: Path | None) -> Format:
    """What the name of a file says about its format; N-Quads if it says nothing."""
    suffixes = {
        ".nt": Format.NTRIPLES,
        ".ttl": Format.TURTLE,
        ".trig": Format.TRIG,
        ".jsonld": Format.JSONLD,
    }
    return suffixes.get(path.suffix.lower(), Format.NQUADS) if path is not None else Format.NQUADS


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
