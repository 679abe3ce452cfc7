"""A connection that does not wait for ever for the head of a request (slow loris)."""

from __future__ import annotations

import asyncio
from typing import Any, Final, final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_S: Final = 10.0
"""After how long a connection is closed whose request has not said what it wants."""


@final
class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol; it closes connections whose heads come too slowly."""

    _guard: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Expect a head soon."""
        super().connection_made(transport)
        self._expect()

    def on_message_begin(self) -> None:
        """Expect the rest of another head soon."""
        self._expect()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Take a whole head."""
        self._forget()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        self._forget()
        super().connection_lost(exc)

    def _expect(self) -> None:
        self._forget()
        self._guard = self.loop.call_later(HEAD_S, self._close)

    def _forget(self) -> None:
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None

    def _close(self) -> None:
        if self.transport is not None:
            self.transport.abort()
