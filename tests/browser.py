"""A real browser for tests of rendered pages: Debian's Chromium, controlled over a pipe."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_PATIENCE_S = 120
_AS_3_AND_4 = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
for wanted, end in zip((3, 4), ends):
    os.dup2(end, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""

_LOOK = """
(() => {
  const box = r => [r.left, r.top, r.right, r.bottom];
  const charts = [...document.querySelectorAll('svg.qw-chart')].map(svg => ({
    title: svg.querySelector('title').textContent,
    described: svg.querySelector('desc').textContent,
    box: box(svg.getBoundingClientRect()),
    texts: [...svg.querySelectorAll('text')].map(
      t => ({text: t.textContent, box: box(t.getBoundingClientRect())})),
    shapes: [...svg.querySelectorAll('path, polyline, polygon, rect')].filter(s => {
      const r = s.getBoundingClientRect(); return r.width + r.height > 1; }).length,
  }));
  return {
    text: document.body.innerText,
    title: document.title,
    charts,
    overflow: document.documentElement.scrollWidth - window.innerWidth,
    ground: getComputedStyle(document.documentElement).backgroundColor,
    ink: getComputedStyle(document.body).color,
  };
})()
"""


def chromium() -> str:
    """The browser's path; the test skips where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("chromium is not installed; as root: apt-get install chromium")
    return found


@dataclass
class Rendered:
    """The state of a rendered page."""

    text: str
    title: str
    charts: list[dict[str, Any]]
    overflow: float
    ground: str
    ink: str
    said: list[str]
    fetched: list[str]

    def check(self, *wanted: str) -> None:
        """Check every report: its texts, no console messages, complete charts, legible labels."""
        assert not self.fetched, f"the page asked for {self.fetched}"
        assert not self.said, f"the browser's console: {self.said}"
        assert self.overflow <= 0, f"{self.overflow} pixels wider than the screen"
        assert self.ground != self.ink
        for text in wanted:
            assert text in self.text, f"{text!r} is not on the page"
        for chart in self.charts:
            _check_chart(chart)


def _check_chart(chart: dict[str, Any]) -> None:
    left, top, right, bottom = chart["box"]
    name = chart["title"]
    assert right - left > 100 and bottom - top > 50, f"{name}: no size"
    assert chart["described"], f"{name}: no description"
    assert chart["shapes"], f"{name}: nothing drawn"
    for place, one in enumerate(chart["texts"]):
        box = one["box"]
        inside = box[0] >= left - 1 and box[2] <= right + 1 and box[1] >= top - 1
        assert inside and box[3] <= bottom + 1, f"{name}: {one['text']!r} is cut off"
        for other in chart["texts"][place + 1 :]:
            across = min(box[2], other["box"][2]) - max(box[0], other["box"][0])
            down = min(box[3], other["box"][3]) - max(box[1], other["box"][1])
            # Boxes of adjacent lines touch; only letters over letters are an error.
            assert across <= 1 or down <= 4, f"{name}: {one['text']!r} over {other['text']!r}"


@dataclass
class Browser:
    """One headless Chromium; `look` opens a page, waits for it and returns its rendered state."""

    process: subprocess.Popen[bytes]
    to: int
    back: int
    number: int = 0
    pending: bytes = b""
    events: list[dict[str, Any]] = field(default_factory=list)

    def look(
        self, page: Path, *, width: int = 1200, dark: bool = False, picture: Path | None = None
    ) -> Rendered:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.events.clear()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", session, features=[scheme])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", session, **size)
        address = page.resolve().as_uri()
        self.call("Page.navigate", session, url=address)
        while not any(each["method"] == "Page.loadEventFired" for each in self.events):
            self._read()
        answer = self.call("Runtime.evaluate", session, expression=_LOOK, returnByValue=True)
        found = answer["result"]["value"]
        if picture is not None:
            shot = self.call("Page.captureScreenshot", session, captureBeyondViewport=True)
            picture.write_bytes(base64.b64decode(shot["data"]))
        said, fetched = _complaints(self.events), _requests(self.events, address)
        self.call("Target.closeTarget", targetId=target)
        return Rendered(**found, said=said, fetched=fetched)

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE_S
        while b"\0" not in self.pending:
            ready, _, _ = select.select([self.back], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                pytest.fail(f"Chromium said nothing for {_PATIENCE_S} s")
            if not (read := os.read(self.back, 1 << 16)):
                pytest.fail(f"Chromium ended with {self.process.wait()}")
            self.pending += read
        text, _, self.pending = self.pending.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message


def _complaints(events: list[dict[str, Any]]) -> list[str]:
    found = []
    for each in events:
        match each:
            case {"method": "Runtime.exceptionThrown", "params": {"exceptionDetails": details}}:
                found.append(json.dumps(details))
            case {"method": "Runtime.consoleAPICalled", "params": {"type": kind, "args": args}}:
                found.append(f"{kind} {json.dumps(args)}")
            case {"method": "Log.entryAdded", "params": {"entry": entry}}:
                found.append(f"{entry['level']} {entry['text']}")
    return found


def _requests(events: list[dict[str, Any]], address: str) -> list[str]:
    asked = [
        each["params"]["request"]["url"]
        for each in events
        if each["method"] == "Network.requestWillBeSent"
    ]
    return [url for url in asked if url != address and not url.startswith("data:")]


@contextlib.contextmanager
def running_browser() -> Iterator[Browser]:
    program = chromium()
    theirs_in, to = os.pipe()
    back, theirs_out = os.pipe()
    with tempfile.TemporaryDirectory(prefix="quadweir-chromium-") as folder:
        # Chromium reads its commands from descriptor 3 and answers on 4. Its sandbox needs a user
        # other than root; the pages are our own.
        process = subprocess.Popen(
            [
                sys.executable, "-c", _AS_3_AND_4, str(theirs_in), str(theirs_out),
                program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe",
                "--hide-scrollbars", f"--user-data-dir={folder}", "about:blank",
            ],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        browser = Browser(process, to, back)
        try:
            yield browser
        finally:
            with contextlib.suppress(OSError):
                browser.call("Browser.close")
            process.wait(30)
            os.close(to)
            os.close(back)
