"""Webhooks: the service posts signed answers to a URL, and repeats them until they are accepted.

A webhook has a thread. It reads the kept answers from where it was, and notes how far they were
accepted. So an answer arrives at least once, as long as the service keeps it.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import SplitResult, urlsplit

from quadweir.addresses import Address, read_host
from quadweir.errors import QuadweirError, UsageError
from quadweir.service.outgoing import check_allowed, resolved
from quadweir.service.problems import NotFoundError, PressureError

if TYPE_CHECKING:
    from quadweir.service.declarations import Declarations, Declared
    from quadweir.service.subscriptions import Event

MOST_HOOKS: Final = 50
MOST_EVENTS: Final = 500
_FIELDS: Final = ("url", "secret")
_LEAST_SECRET: Final = 16
_POLL_S: Final = 0.5
_FIRST_WAIT_S: Final = 1.0
_MOST_WAIT_S: Final = 300.0
_TIMEOUT_S: Final = 10.0


def signature(secret: str, moment: str, body: bytes) -> str:
    """Return what proves that a body comes from the service: HMAC-SHA256 of the time and the body.

    >>> signature("secret", "1", b"{}")[:20]
    'sha256=1122767b19311'
    """
    signed = hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256)
    return f"sha256={signed.hexdigest()}"


@final
class Webhooks:
    """The webhooks of a service.

    Args:
        declarations: the log of the service.
        kept: returns the answers of a query that are kept after a place, which may be `start`.
        latest: returns the place of the last answer of a query.
        allow_hosts: the hosts that the operator allows.
        wait_s: how long to wait after a first failure; tests pass their own.
    """

    def __init__(
        self,
        declarations: Declarations,
        kept: Callable[[str, str], Sequence[Event]],
        latest: Callable[[str], str],
        allow_hosts: Sequence[str],
        wait_s: float = _FIRST_WAIT_S,
    ) -> None:
        self._declarations = declarations
        self._kept = kept
        self._latest = latest
        self._allow_hosts = tuple(allow_hosts)
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._running: dict[str, _Sender] = {}

    def start(self) -> None:
        """Send what was not taken before."""
        for query in self._declarations.now.webhooks:
            self._begin(query)

    def put(self, query: str, table: dict[str, Any]) -> dict[str, Any]:
        """Send the answers of a query to a URL, from now on.

        Raises:
            UsageError: the request is not as it should be.
            ForbiddenError: the operator does not allow the host.
            PressureError: there are too many webhooks.
        """
        url, secret = (table.get(name) for name in _FIELDS)
        if set(table) - set(_FIELDS) or not isinstance(url, str) or not isinstance(secret, str):
            raise UsageError('a webhook has a "url" and a "secret"')
        if len(secret) < _LEAST_SECRET:
            raise UsageError(f"the secret must have at least {_LEAST_SECRET} characters")
        parts = _url(url)
        if parts is None:
            raise UsageError(f"{url[:100]!r} is no URL of HTTP without a name and password")
        check_allowed(_address(parts), self._allow_hosts)
        with self._lock:
            hooks = self._declarations.now.webhooks
            if query not in hooks and len(hooks) >= MOST_HOOKS:
                raise PressureError(f"there are {MOST_HOOKS} webhooks already", retry_after_s=60)
            entry = {"url": url, "secret": secret, "after": self._latest(query)}

            def note(now: Declared) -> None:
                now.webhooks[query] = entry

            self._declarations.change(note)
            self._end(query)
            self._begin(query)
        return self.one(query)

    def one(self, query: str) -> dict[str, Any]:
        """Say how the webhook of a query is; its secret stays here.

        Raises:
            NotFoundError: there is none.
        """
        entry = self._declarations.now.webhooks.get(query)
        if entry is None:
            raise NotFoundError(f"the query {query!r} has no webhook")
        sender = self._running.get(query)
        return {
            "url": entry["url"],
            "after": entry["after"],
            "failures": sender.failures if sender is not None else 0,
            "error": sender.error if sender is not None else None,
        }

    def delete(self, query: str) -> None:
        """Send no more.

        Raises:
            NotFoundError: there is no webhook.
        """
        self.one(query)
        self.forget(query)

    def forget(self, query: str) -> None:
        """Send no more of a query that is gone."""
        with self._lock:
            self._end(query)
            if query in self._declarations.now.webhooks:

                def drop(now: Declared) -> None:
                    now.webhooks.pop(query, None)

                self._declarations.change(drop)

    def close(self) -> None:
        """Stop sending; it goes on at the next start."""
        with self._lock:
            for query in list(self._running):
                self._end(query)

    def _begin(self, query: str) -> None:
        def note(place: str) -> None:
            def change(now: Declared) -> None:
                if query in now.webhooks:
                    now.webhooks[query]["after"] = place

            self._declarations.change(change)

        entry = dict(self._declarations.now.webhooks[query])
        self._running[query] = _Sender(query, entry, self._kept, note, self._wait_s)

    def _end(self, query: str) -> None:
        sender = self._running.pop(query, None)
        if sender is not None:
            sender.stop()


class _Sender:
    """Sends the answers of one query, in a thread of its own."""

    def __init__(
        self,
        query: str,
        entry: dict[str, Any],
        kept: Callable[[str, str], Sequence[Event]],
        note: Callable[[str], None],
        wait_s: float,
    ) -> None:
        self._query = query
        self._entry = entry
        self._kept = kept
        self._note = note
        self._wait_s = wait_s
        self._ending = threading.Event()
        self.failures = 0
        self.error: str | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="quadweir-webhook")
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join(timeout=_TIMEOUT_S)

    def _run(self) -> None:
        pause = 0.0
        while not self._ending.wait(pause):
            try:
                events = self._kept(self._query, self._entry["after"])
            except QuadweirError as error:
                events, self.error = (), error.message
            answers = [each for each in events if each.kind == "answer"][:MOST_EVENTS]
            if not answers:
                pause = _POLL_S
                continue
            self.error = self._send(answers)
            if self.error is None:
                self.failures, pause = 0, 0.0
                self._entry["after"] = answers[-1].id
                self._note(answers[-1].id)
            else:
                self.failures += 1
                pause = min(self._wait_s * 2 ** min(self.failures - 1, 20), _MOST_WAIT_S)

    def _send(self, answers: Sequence[Event]) -> str | None:
        """Send answers; return what went wrong, if anything did."""
        body = (
            f'{{"query":"{self._query}","answers":[{",".join(each.message for each in answers)}]}}'
        )
        data = body.encode("utf-8", "replace")
        moment = str(time.time_ns() // 1_000_000)
        headers = {
            "content-type": "application/json",
            "quadweir-time": moment,
            "quadweir-signature": signature(self._entry["secret"], moment, data),
        }
        parts = urlsplit(self._entry["url"])
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            address = _address(parts)
            with closing(_connection(parts.scheme == "https", address, resolved(address))) as wire:
                wire.request("POST", path, data, headers)
                # A redirect would lead to a host that nobody allowed: it is a failure like others.
                status = wire.getresponse().status
        except QuadweirError as error:
            return error.message
        except (OSError, ValueError, http.client.HTTPException) as error:
            return f"it cannot be reached: {error}"
        return None if status // 100 == 2 else f"it answered {status}"


def _url(text: str) -> SplitResult | None:
    """Return the parts of a URL of HTTP without a name and password; None if it is none."""
    try:
        parts = urlsplit(text)
        has_user = parts.username is not None or parts.password is not None
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and not has_user
        return parts if is_good and _address(parts).port else None
    except (ValueError, QuadweirError):
        return None


def _address(parts: SplitResult) -> Address:
    port = parts.port if parts.port is not None else 443 if parts.scheme == "https" else 80
    return Address(read_host(parts.hostname or ""), port)


def _connection(
    is_safe: bool, address: Address, addresses: Sequence[str]
) -> http.client.HTTPConnection:
    """Return a connection to an IP address that was checked; the name may change meanwhile."""
    connection = (
        http.client.HTTPSConnection(
            address.host, address.port, timeout=_TIMEOUT_S, context=ssl.create_default_context()
        )
        if is_safe
        else http.client.HTTPConnection(address.host, address.port, timeout=_TIMEOUT_S)
    )

    def connect(_asked: object, timeout: float, *_rest: object) -> socket.socket:
        problem: OSError | None = None
        for each in addresses:
            try:
                return socket.create_connection((each, address.port), timeout)
            except OSError as error:
                problem = error
        raise problem or OSError("it has no address")

    connection._create_connection = connect  # type: ignore[attr-defined]
    return connection
