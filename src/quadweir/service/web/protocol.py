"""A connection that does not wait for ever: heads, early ends and answers all have their time.

uvicorn limits neither the size of a head nor how long a client may take to send or to read. A client
that wants to hold the service up (slow loris) would otherwise hold memory and connections.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES: Final = 64 * 2**10
"""How large a head may be, with trailers and all that is around the pieces of a body."""
_MOST_AROUND: Final = 16
# After an answer that came before the end of the body, such as 413: time for the client to read it.
LINGER_S: Final = 3.0
_TOO_LARGE_HEAD: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class ConnectionLimits(Protocol):
    """How long a connection waits: for the head of a request, and for a client that reads nothing."""

    @property
    def head_s(self) -> float: ...
    @property
    def stall_s(self) -> float: ...


def guarded_protocol(limits: ConnectionLimits) -> type[HttpToolsProtocol]:
    """Return uvicorn's protocol, with limits."""

    class Limited(_GuardedProtocol):
        head_s = limits.head_s
        stall_s = limits.stall_s

    return Limited


class _GuardedProtocol(HttpToolsProtocol):
    head_s: float
    stall_s: float

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._received = self._body = 0
        self._is_refused = False

    # --- what comes in ---

    def connection_made(self, transport: Any) -> None:
        """Expect a head soon."""
        super().connection_made(transport)
        self._expect("head", self.head_s)

    def data_received(self, data: bytes) -> None:
        """Read on, unless what is not the body has become too large."""
        if self._is_refused:
            return
        self._received += len(data)
        if not self._timers and (self.cycle is None or self.cycle.response_complete):
            # The next head has begun, also if only with an empty line.
            self._expect("head", self.head_s)
        super().data_received(data)
        if self._received - self._body > MOST_HEAD_BYTES + _MOST_AROUND * self._body:
            self._is_refused = True
            if self.transport is not None and not self.transport.is_closing():
                self.transport.write(_TOO_LARGE_HEAD)
                self.transport.close()

    def on_message_begin(self) -> None:
        """Expect the rest of another head soon."""
        self._received = self._body = 0
        self._expect("head", self.head_s)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Take a whole head."""
        self._forget("head")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of a request."""
        self._forget("linger")
        super().on_message_complete()

    # --- what goes out ---

    def on_response_complete(self) -> None:
        """Let the client read an answer that came before the end of the body, and no longer."""
        super().on_response_complete()
        if self.cycle is not None and self.cycle.response_complete and self.cycle.more_body:
            self._expect("linger", LINGER_S)

    def pause_writing(self) -> None:
        """Expect the client to read soon."""
        super().pause_writing()
        self._expect("stall", self.stall_s)

    def resume_writing(self) -> None:
        """Go on writing."""
        self._forget("stall")
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        for name in tuple(self._timers):
            self._forget(name)
        super().connection_lost(exc)

    # --- timers ---

    def _expect(self, name: str, seconds: float) -> None:
        self._forget(name)
        self._timers[name] = self.loop.call_later(seconds, self._end)

    def _forget(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _end(self) -> None:
        if self.transport is not None:
            self.transport.abort()
