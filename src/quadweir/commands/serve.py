"""`quadweir serve`: streams, queries and answers over HTTP, and a page that shows what runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from quadweir.commands.queryfolder import QueryFolder
from quadweir.commands.querymappings import AllowNetOption
from quadweir.errors import EnvironmentProblem, UsageError

if TYPE_CHECKING:
    from quadweir.commands.application import Application, NamedQuery
    from quadweir.engine import Engine
    from quadweir.service.access import TokenRecord
    from quadweir.service.settings import AppMapping, ServedApplication
    from quadweir.sinks.base import TextSink

_PACKAGES: Final = ("fastapi", "uvicorn", "httptools", "websockets")
_ROLES: Final = ("read", "push", "admin")
_MOST_SUBSCRIBERS: Final = 10_000
# Of Spark, of other requests, and of what the service keeps.
_OTHER_FILES: Final = 800
# These mean every address of the machine. Clients reach it by another name.
_ANY: Final = ("0.0.0.0", "::")  # noqa: S104 - it is compared with, not bound to


def serve(
    application: Annotated[
        Path | None,
        typer.Argument(
            metavar="APP.toml",
            help="A file of streams, mappings and queries.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 7474,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the service keeps everything for a restart."),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The address; any but this machine's own needs tokens, and TLS or --behind-proxy.",
        ),
    ] = "127.0.0.1",
    host_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name by which clients reach it; repeatable."),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The certificate, with its chain.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The key of the certificate.")
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy on this network does TLS.")
    ] = False,
    tokens: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Who may do what: hashes and roles of tokens, as TOML."),
    ] = None,
    new_token: Annotated[
        str | None,
        typer.Option(metavar="ROLE", help="Make a token of the role read, push or admin, and end."),
    ] = None,
    most_networks: Annotated[
        int, typer.Option(min=1, max=100, help="How many networks may run at once.")
    ] = 8,
    allow_dir: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER", help="Let declarations and mappings name this folder; repeatable."
        ),
    ] = None,
    allow_net: AllowNetOption = None,
) -> None:
    """Serve streams, queries and answers over HTTP, until Ctrl-C.

    Without a file it begins empty. What clients declare and register is in the folder of --data,
    or of the file's checkpoint, and survives a restart. It listens on this machine only.
    """
    check_packages()
    from quadweir.commands.application import load
    from quadweir.commands.run import check
    from quadweir.service.settings import ServiceLimits
    from quadweir.service.tokens import read_tokens

    if new_token is not None:
        _make_token(new_token)
        return
    known = read_tokens(tokens) if tokens is not None else ()
    options = _tls(tls_cert, tls_key)
    check_exposure(host, has_tokens=bool(known), is_safe=bool(options) or behind_proxy)
    app = None
    if application is not None:
        app = load(application, allow_dirs=allow_dir or (), allow_hosts=allow_net or ())
        check(app, None)
    serve_application(
        app,
        data or (app.checkpoint if app is not None else None),
        tokens=known,
        host=host,
        port=port,
        hosts=(*(host_name or ()), *((host,) if host not in _ANY else ())),
        limits=ServiceLimits(networks=most_networks, subscribers=allow_subscribers()),
        behind_proxy=behind_proxy,
        options=options,
        allow_dirs=tuple(allow_dir or ()),
        allow_hosts=tuple(allow_net or ()),
    )


def serve_application(
    app: Application | None,
    data: Path | None,
    *,
    tokens: Iterable[TokenRecord] = (),
    when_served: Callable[[str], None] = lambda _url: None,
    **settings: Any,
) -> None:
    """Serve an application until Ctrl-C.

    Args:
        app: what its file says; None for nothing.
        data: the folder of everything that survives a restart; None for a temporary one.
        tokens: who may do what.
        when_served: called with the address once the queries run.
        settings: the other settings of `ServiceSettings`.
    """
    from quadweir.commands.livesession import claimed_checkpoint, live_session
    from quadweir.service.access import Access
    from quadweir.service.server import ServiceServer, listen
    from quadweir.service.service import LiveService
    from quadweir.service.settings import ServiceSettings

    with ExitStack() as stack:
        place = stack.enter_context(claimed_checkpoint(data, "serve", None, "--data"))
        served_with = ServiceSettings(data=place, **settings)
        # Before Spark starts, which takes a while.
        listening = stack.enter_context(listen(served_with.host, served_with.port))
        live = stack.enter_context(
            live_session("serve", "starting the service", shards=app.shards if app else None)
        )
        board = live.board
        service = LiveService(live.spark, served(app), served_with, report=board.say)
        stack.callback(service.stop)
        access = Access(tokens, served_with.hosts)
        server = stack.enter_context(ServiceServer(service, access, listening))
        board.start("starting the queries")
        service.start()
        board.say(f"quadweir: serving at {server.url}")
        when_served(server.url)
        board.start(f"serving at {server.url}; Ctrl-C ends")
        live.watch(lambda poll: server.wait(poll.total_seconds()), lambda: None)


def allow_subscribers() -> int:
    """Let this process open as many files as the system allows; return how many subscribers fit.

    Each subscriber is a connection, which counts as a file.
    """
    try:
        import resource
    except ImportError:  # there are no such limits here
        return _MOST_SUBSCRIBERS
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_SUBSCRIBERS + _OTHER_FILES
    wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return max(1, wanted - _OTHER_FILES)


def check_packages() -> None:
    """Make sure that the packages of the extra `serve` are there.

    Raises:
        EnvironmentProblem: they are not.
    """
    missing = [each for each in _PACKAGES if find_spec(each) is None]
    if missing:
        raise EnvironmentProblem(
            f"the service needs more packages: {', '.join(missing)}",
            hint="Run: pip install 'quadweir[serve]'",
        )


def check_exposure(host: str, *, has_tokens: bool, is_safe: bool) -> None:
    """Refuse an address that others can reach, if they could do anything or overhear others.

    >>> check_exposure("127.0.0.1", has_tokens=False, is_safe=False)

    Raises:
        UsageError: it is one.
    """
    if _is_loopback(host):
        return
    if not has_tokens:
        raise UsageError(
            f"others can reach {host}, and without tokens they could do everything",
            hint="Make a token with `quadweir serve --new-token admin`, and name the file with "
            "--tokens.",
        )
    if not is_safe:
        raise UsageError(
            f"others can reach {host}, and without TLS they could overhear tokens",
            hint="Give --tls-cert and --tls-key, or --behind-proxy if a proxy does TLS.",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(certificate: Path | None, key: Path | None) -> dict[str, str]:
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert and --tls-key go together")
    if certificate is None or key is None:
        return {}
    for file in (certificate, key):
        if not file.is_file():
            raise UsageError(f"there is no file {file}")
    return {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}


def _make_token(role: str) -> None:
    from quadweir.service.tokens import new_token, token_table

    if role not in _ROLES:
        raise UsageError(f"there is no role {role!r}", hint="Use read, push or admin.")
    token = new_token()
    print(f"# The token is {token}: nothing shows it again. For the file of --tokens:")
    print(token_table("NAME", role, token), end="")


def served(app: Application | None) -> ServedApplication:
    """Return what the file of an application says, as the service needs it.

    Raises:
        UsageError: the file asks for something that the service does not do.
    """
    from quadweir.service.settings import AppQuery, ServedApplication

    if app is None:
        return ServedApplication()

    def declare(engine: Engine) -> None:
        for mappings in app.mappings:
            mappings.provide(engine, bounded=False)

    return ServedApplication(
        name=app.name,
        streams=app.streams,
        read=app.read,
        map=declare,
        mappings=_mappings(app),
        queries={
            name: AppQuery(
                text=each.text,
                sink=each.target.sink(name) if each.target is not None else None,
                is_paused=each.is_paused,
            )
            for name, each in _queries(app).items()
        },
        schema=app.schema,
        static=app.static,
        shards=app.shards,
        every=app.every,
        most_held=app.most_held,
        most_answers=app.most_answers,
        output=_output(app),
    )


def _queries(app: Application) -> dict[str, NamedQuery]:
    """Return the queries of the file and, as they are now, those of its folder.

    Raises:
        QuadweirError: a file of the folder is no query.
    """
    if app.folder is None:
        return dict(app.queries)
    change = QueryFolder(app.folder, app.read, frozenset(app.queries)).look()
    for error in change.errors:
        raise error
    return {**app.queries, **{each.name: each for each in change.queries}}


def _mappings(app: Application) -> dict[str, AppMapping]:
    from quadweir.mapping.sources import DeclaredStream
    from quadweir.service.settings import AppMapping

    found = {}
    for mappings in app.mappings:
        for each in mappings.mapped:
            path = each.mapping.path
            assert path is not None, "it was read from a file"
            sources = [
                one.source.source.iri
                for one in each.mapping.triples_maps
                if isinstance(one.source.source, DeclaredStream)
            ]
            found[path.stem] = AppMapping(
                text=path.read_text(encoding="utf-8"),
                streams=each.iris,
                sources=tuple(dict.fromkeys(sources)),
            )
    return found


def _output(app: Application) -> TextSink | None:
    """Return where all answers go; standard output is for what the operator should know."""
    if app.target is None or app.output == "-":
        return None
    found = app.target.sink(app.name).text
    if found is None:
        raise UsageError(
            f"the service does not write all answers to {app.output}",
            hint="Write those of single queries there, or name a folder.",
        )
    return found
