"""Webhooks: signed, sent again until they are taken, and only to hosts that are allowed."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from quadweir.errors import UsageError
from quadweir.service.declarations import Declarations
from quadweir.service.problems import ForbiddenError, NotFoundError
from quadweir.service.subscriptions import Event
from quadweir.service.webhooks import Webhooks, signature

SECRET = "a secret of some length"


class Receiver:
    """A server that takes what is sent, after it has refused some of it."""

    def __init__(self) -> None:
        self.bodies: list[tuple[dict[str, str], bytes]] = []
        self.refuse: list[int] = []
        self.news = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                with receiver.news:
                    status = receiver.refuse.pop(0) if receiver.refuse else 204
                    if status == 204:
                        receiver.bodies.append((dict(self.headers.items()), body))
                    receiver.news.notify_all()
                self.send_response(status)
                if status == 302:
                    self.send_header("location", "http://169.254.169.254/")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?x=1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def wait_for(self, count: int) -> list[str]:
        with self.news:
            assert self.news.wait_for(lambda: len(self.ids()) >= count, 30)
        return self.ids()

    def ids(self) -> list[str]:
        return [each["id"] for _, body in self.bodies for each in json.loads(body)["answers"]]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


class Answers:
    """The kept answers of a query."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, number: int) -> None:
        self.events.append(Event(f"1.{number}.1", "answer", f'{{"t":{number}}}'))

    def after(self, _query: str, place: str) -> list[Event]:
        at = int(place.split(".")[1])
        return [each for each in self.events if int(each.id.split(".")[1]) > at]


def hooks(folder: Path, answers: Answers, *hosts: str) -> Webhooks:
    return Webhooks(Declarations(folder), answers.after, lambda _query: "1.0.0", hosts, wait_s=0.01)


def test_answers_are_sent_signed_and_again_until_they_are_taken(
    tmp_path: Path, receiver: Receiver
) -> None:
    answers = Answers()
    answers.add(1)
    receiver.refuse = [500, 302]
    found = hooks(tmp_path, answers, "127.0.0.1")
    shown = found.put("q", {"url": receiver.url, "secret": SECRET})
    assert SECRET not in str(shown)
    assert receiver.wait_for(1) == ["1.1.1"]
    headers, body = receiver.bodies[0]
    known = {name.lower(): text for name, text in headers.items()}
    assert known["quadweir-signature"] == signature(SECRET, known["quadweir-time"], body)
    assert json.loads(body)["query"] == "q"
    found.close()
    answers.add(2)
    # What was taken is known after a restart.
    again = hooks(tmp_path, answers, "127.0.0.1")
    again.start()
    assert receiver.wait_for(2) == ["1.1.1", "1.2.1"]
    again.delete("q")
    with pytest.raises(NotFoundError):
        again.one("q")
    again.close()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://169.254.169.254/latest", "https://evil.example/x"]
)
def test_only_hosts_that_are_allowed_are_called(tmp_path: Path, url: str) -> None:
    found = hooks(tmp_path, Answers(), "hooks.example")
    with pytest.raises(ForbiddenError):
        found.put("q", {"url": url, "secret": SECRET})


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"url": "http://hooks.example/"},
        {"url": "http://hooks.example/", "secret": "short"},
        {"url": "file:///etc/passwd", "secret": SECRET},
        {"url": "http://user:pass@hooks.example/", "secret": SECRET},
        {"url": 5, "secret": SECRET},
        {"url": "http://hooks.example/", "secret": SECRET, "method": "DELETE"},
    ],
)
def test_what_is_no_webhook_is_refused(tmp_path: Path, table: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        hooks(tmp_path, Answers(), "hooks.example").put("q", table)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example:0/",
        "http://hooks.example:99999/",
        "http://hooks.example:x/",
        "http://:pass@hooks.example/",
        "http://hooks.example\\@evil.example/",
        "http://[::1/",
        "http:///x",
        "ftp://hooks.example/",
        "http://hooks.example%2eevil.example/",
    ],
)
def test_odd_urls_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises((UsageError, ForbiddenError)):
        hooks(tmp_path, Answers(), "hooks.example").put("q", {"url": url, "secret": SECRET})


def test_a_name_that_leads_to_this_machine_gets_nothing(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = receiver.server.server_address[1]
    asked = threading.Event()

    def found(*_given: Any, **_options: Any) -> list[Any]:
        asked.set()
        return [(0, 0, 0, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    answers = Answers()
    answers.add(1)
    hook = hooks(tmp_path, answers, "hooks.example")
    hook.put("q", {"url": f"http://hooks.example:{port}/", "secret": SECRET})
    assert asked.wait(30)
    hook.close()
    assert receiver.bodies == []
