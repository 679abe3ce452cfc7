"""Responses that go on until the client or the end comes: server-sent events, lines, WebSockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, final

from starlette.responses import Response
from starlette.websockets import WebSocketDisconnect

from quadweir.service.subscriptions import Event, EventBundle, Subscription, json_text

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send
    from starlette.websockets import WebSocket

SSE: Final = "text/event-stream"
NDJSON: Final = "application/x-ndjson"
BEAT_S: Final = 15.0
_BEAT: Final = '{"event":"beat","data":{}}'
_GOING_AWAY: Final = 1001
_LONGEST_REASON: Final = 100


@final
class EventStream(Response):
    """Sends the events of a subscription as server-sent events, or as lines of JSON.

    Args:
        subscription: the subscription; it is closed with the response.
        media_type: `SSE` or `NDJSON`.
        beat_s: after how long without events a sign of life is sent.
        follow: whether to go on after what is kept.
    """

    def __init__(
        self,
        subscription: Subscription,
        *,
        media_type: str = SSE,
        beat_s: float = BEAT_S,
        follow: bool = True,
    ) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-store"
        self.headers["x-accel-buffering"] = "no"
        self.headers["connection"] = "close"
        self._subscription = subscription
        self._beat_s = beat_s
        self._follow = follow
        self._is_sse = media_type == SSE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the client has gone, or there is nothing more to send."""
        del scope

        async def left() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        await until_left(self._subscription, self._send(send), left())

    async def _send(self, send: Send) -> None:
        async def part(body: bytes) -> None:
            await send({"type": "http.response.body", "body": body, "more_body": True})

        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        # The head leaves with the first part of the body only.
        await part(b": Quadweir\n\n" if self._is_sse else b"")
        if self._follow:
            async for bundle in self._subscription.bundles(self._beat_s):
                if bundle is not None:
                    await part(self._spelled(bundle))
                elif self._is_sse:
                    await part(b": beat\n\n")
            if self._subscription.dropped is not None:
                await part(self._spelled(EventBundle([_dropped(self._subscription.dropped)])))
        else:
            for bundle in self._subscription.kept():
                await part(self._spelled(bundle))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _spelled(self, bundle: EventBundle) -> bytes:
        return bundle.sse if self._is_sse else bundle.lines


async def send_messages(socket: WebSocket, subscription: Subscription, stall_s: float) -> None:
    """Send the events of a subscription as messages of a WebSocket.

    Args:
        socket: the socket, which is open.
        subscription: the subscription; it is closed with the socket.
        stall_s: after how long a client that reads nothing is dropped.
    """

    async def tell(text: str) -> None:
        async with asyncio.timeout(stall_s):
            await socket.send_text(text)

    async def sending() -> None:
        async for bundle in subscription.bundles(BEAT_S):
            for message in bundle.messages if bundle is not None else (_BEAT,):
                await tell(message)
        if subscription.dropped is not None:
            await tell(_dropped(subscription.dropped).message)
        reason = subscription.dropped or "no more answers"
        await socket.close(_GOING_AWAY, reason[:_LONGEST_REASON])

    async def left() -> None:
        # What a client says is not listened to.
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass

    await until_left(subscription, sending(), left())


async def until_left(
    subscription: Subscription, sending: Awaitable[None], left: Awaitable[None]
) -> None:
    """Send the events of a subscription until that ends, or the client has gone."""
    tasks = (asyncio.ensure_future(sending), asyncio.ensure_future(left))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        subscription.close()
        for task in tasks:
            task.cancel()
        for found in await asyncio.gather(*tasks, return_exceptions=True):
            # Those of a client that has gone, or that reads nothing, are expected.
            if isinstance(found, Exception) and not isinstance(found, _EXPECTED):
                raise found


_EXPECTED: Final[tuple[type[Exception], ...]] = (OSError, RuntimeError, WebSocketDisconnect)


def _dropped(reason: str) -> Event:
    return Event("", "dropped", json_text({"reason": reason}))
