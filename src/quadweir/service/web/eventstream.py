"""A response that goes on: server-sent events, or lines of JSON, until the client or the end comes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, final

from starlette.responses import Response

from quadweir.service.subscriptions import Event, EventBundle, Subscription

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Scope, Send

SSE: Final = "text/event-stream"
NDJSON: Final = "application/x-ndjson"
BEAT_S: Final = 15.0


@final
class EventStream(Response):
    """Sends the events of a subscription.

    Args:
        subscription: the subscription; it is closed with the response.
        first: what is sent at once.
        media_type: `SSE` or `NDJSON`.
        stall_s: after how long a client that reads nothing is dropped.
        beat_s: after how long without events a sign of life is sent.
        follow: whether to go on after what is sent at once.
    """

    def __init__(
        self,
        subscription: Subscription,
        first: EventBundle | None = None,
        *,
        media_type: str = SSE,
        stall_s: float = 20.0,
        beat_s: float = BEAT_S,
        follow: bool = True,
    ) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-store"
        self.headers["x-accel-buffering"] = "no"
        self._subscription = subscription
        self._first = first
        self._stall_s = stall_s
        self._beat_s = beat_s
        self._follow = follow
        self._is_sse = media_type == SSE
        self._spell: Callable[[EventBundle], bytes] = _sse if self._is_sse else _lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the client has gone, or there is nothing more to send."""
        del scope
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._subscription.close()
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(head)
        # The head leaves with the first part of the body only.
        await self._part(send, b": Quadweir\n\n" if self._is_sse else b"")
        if self._first is not None:
            await self._part(send, self._spell(self._first))
        if self._follow:
            async for bundle in self._subscription.bundles(self._beat_s):
                if bundle is not None:
                    await self._part(send, self._spell(bundle))
                elif self._is_sse:
                    await self._part(send, b": beat\n\n")
            if self._subscription.dropped is not None:
                event = Event("", "dropped", _reason(self._subscription.dropped))
                await self._part(send, self._spell(EventBundle([event])))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _part(self, send: Send, body: bytes) -> None:
        # A client that reads nothing fills its buffers, and then `send` waits.
        async with asyncio.timeout(self._stall_s):
            await send({"type": "http.response.body", "body": body, "more_body": True})


def _sse(bundle: EventBundle) -> bytes:
    return bundle.sse


def _lines(bundle: EventBundle) -> bytes:
    return bundle.lines


def _reason(text: str) -> str:
    from quadweir.service.answers import json_text

    found: str = json_text({"reason": text})
    return found


async def _left(receive: Receive) -> None:
    """Wait until the client has gone."""
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            return
