"""The HTTP server of a service, in a thread of its own."""

from __future__ import annotations

import errno
import socket
import threading
from typing import TYPE_CHECKING, Final, Self, final

import uvicorn

from quadweir.errors import EnvironmentProblem
from quadweir.service.web.app import make_app
from quadweir.service.web.protocol import guarded_protocol

if TYPE_CHECKING:
    from types import TracebackType

    from quadweir.service.access import Access
    from quadweir.service.service import LiveService

_OTHER_REQUESTS: Final = 500
_HINTS: Final = {
    errno.EADDRINUSE: "Another program has it. Choose another port with --port.",
    errno.EACCES: "Ports below 1024 are for root. Choose another port with --port.",
}
_MOST_SAID: Final = 2**16


@final
class ServiceServer:
    """Serves a service until it is closed.

    Args:
        service: the service.
        access: who may do what.
        listening: the socket of `listen`, if there is one already.

    Attributes:
        port: the port that it listens on.

    Raises:
        EnvironmentProblem: the address cannot be used.
    """

    def __init__(
        self, service: LiveService, access: Access, listening: socket.socket | None = None
    ) -> None:
        settings = service.settings
        self._hub = service.hub
        self._socket = listening or listen(settings.host, settings.port)
        self.host = settings.host
        self.port = int(self._socket.getsockname()[1])
        access.port = self.port
        config = uvicorn.Config(
            make_app(service, access),
            # Warnings are about bad requests, and whoever sends those must not fill a disk.
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            # Close idle connections, and those on which a request's head comes slowly.
            timeout_keep_alive=15,
            timeout_graceful_shutdown=2,
            http=guarded_protocol(settings.limits),
            limit_concurrency=settings.limits.subscribers + _OTHER_REQUESTS,
            ws="websockets-sansio",
            # Clients have nothing to say; compressing for each of them would cost more than sending.
            ws_max_size=_MOST_SAID,
            ws_per_message_deflate=False,
            proxy_headers=False,
            **settings.options,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), daemon=True, name="quadweir-http"
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it is."""
        scheme = "https" if self._server.config.is_ssl else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"

    def connections(self) -> int:
        """How many connections there are now."""
        return len(self._server.server_state.connections)

    def wait(self, seconds: float) -> bool:
        """Wait for its end for some time; return whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def close(self) -> None:
        """End it; subscribers are let go."""
        self._hub.run(self._hub.let_all_go)
        self._server.should_exit = True
        self._thread.join(timeout=10)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def listen(host: str, port: int) -> socket.socket:
    """Take an address; clients that connect wait until somebody serves them.

    Raises:
        EnvironmentProblem: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(2048)
    except OSError as error:
        found.close()
        raise EnvironmentProblem(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            hint=_HINTS.get(error.errno or 0, "Choose another address with --host."),
        ) from None
    found.set_inheritable(False)
    return found
