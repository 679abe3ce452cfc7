"""A tab of a real browser in which tests act as users do: they click, type and press keys."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from browser import Browser

_KEYS = {
    "Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "ArrowRight": (39, ""),
    "ArrowLeft": (37, ""), "ArrowDown": (40, ""), "ArrowUp": (38, ""), "Backspace": (8, ""),
    "Space": (32, " "), "a": (65, "a"),
}  # fmt: skip
_CONTROL, _SHIFT = 2, 8
_PATIENCE_S = 120
# Headless Chromium asks at each look whether something has changed, so a look may be soon again.
_LOOK_MS = 100

# The element of an accessible name or a selector, which may be in a shadow tree.
_FIND = """
((selector) => {
  const within = (root) => {
    const found = root.querySelector(selector);
    if (found) return found;
    for (const each of root.querySelectorAll('*')) {
      const inner = each.shadowRoot && within(each.shadowRoot);
      if (inner) return inner;
    }
    return null;
  };
  return within(document);
})
"""
_NAMED = """
((role, name) => {
  const selectors = {
    button: 'button, a.button, [role=button]', link: 'a[href]', tab: '[role=tab]', field: 'input, select, textarea, [role=textbox]',
  };
  const nameOf = (each) => (each.getAttribute('aria-label') || each.labels?.[0]?.textContent || each.textContent || '').trim().replace(/\\s+/g, ' ');
  const all = [...document.querySelectorAll(selectors[role])].filter(each => each.getBoundingClientRect().width > 0);
  return all.find(each => nameOf(each) === name) || all.find(each => nameOf(each).startsWith(name)) || null;
})
"""


def editor(name: str) -> str:
    """Return an expression for an editor, which is in a shadow tree."""
    return (
        "[...document.querySelectorAll('.editor')].map(each => each.shadowRoot?.querySelector("
        f"`[aria-label={json.dumps(name)}]`)).find(Boolean)"
    )


@dataclass
class Tab:
    """One tab.

    Attributes:
        browser: the browser.
        target: its target.
        session: its session.
        context: its browser context, which shares nothing with others.
        host: the only host that it may ask, with the port.
        events: what the tab reported, the console and requests among it.
    """

    browser: Browser
    target: str
    session: str
    context: str
    host: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)

    # --- going somewhere ---

    def open(self, url: str) -> None:
        self.host = urlsplit(url).netloc
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def size(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def dark(self, is_dark: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def view(self, url: str, view: str) -> None:
        """Open a view of the service's page."""
        self.open(f"{url}/#/{view}")
        self.until("document.querySelector('main h1')")

    # --- looking ---

    def js(self, expression: str) -> Any:
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, condition: str, seconds: float = _PATIENCE_S) -> Any:
        """Wait until an expression is true in the page; return its value."""
        deadline = time.monotonic() + seconds
        pause = f"new Promise(done => setTimeout(done, {_LOOK_MS}))"
        while time.monotonic() < deadline:
            if found := self.js(
                f"(() => {{ try {{ const found = {condition};"
                " return found instanceof Element || found; } catch { return 0 } })()"
            ):
                return found
            self.js(pause)
        pytest.fail(f"{condition} is not true after {seconds} s; the page says:\n{self.text()}")

    def text(self) -> str:
        found: str = self.js("document.body.innerText")
        return found

    def until_text(self, text: str, seconds: float = _PATIENCE_S) -> None:
        self.until(f"document.body.innerText.includes({json.dumps(text)})", seconds)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    # --- acting ---

    def click(self, name: str, role: str = "button") -> None:
        self._click(f"{_NAMED}({json.dumps(role)}, {json.dumps(name)})")

    def click_on(self, selector: str) -> None:
        self._click(f"{_FIND}({json.dumps(selector)})")

    def _click(self, element: str) -> None:
        self.until(f"({element}) && !({element}).disabled")
        x, y = self.js(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}});"
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def focus(self, selector: str) -> None:
        self.until(f"{_FIND}({json.dumps(selector)})")
        self.js(f"{_FIND}({json.dumps(selector)}).focus()")

    def type(self, text: str) -> None:
        """Type into what has the focus, letter by letter."""
        for letter in text:
            if letter == "\n":
                self.press("Enter")
            else:
                self.call("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
                self.call("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def insert(self, text: str) -> None:
        """Put a text where the focus is, as pasting does."""
        self.call("Input.insertText", text=text)

    def press(self, key: str, *, control: bool = False, shift: bool = False) -> None:
        code, text = _KEYS[key]
        name = " " if key == "Space" else key
        given = {
            "key": name,
            "code": f"Key{key.upper()}" if len(key) == 1 else key,
            "windowsVirtualKeyCode": code,
            "modifiers": _CONTROL * control + _SHIFT * shift,
        }
        typed = {"text": text} if text and not control else {}
        self.call(
            "Input.dispatchKeyEvent", type="keyDown" if typed else "rawKeyDown", **given, **typed
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    def replace_text(self, selector: str, text: str) -> None:
        """Replace all text of an editor or a field."""
        self.click_on(selector)
        self.press("a", control=True)
        self.press("Backspace")
        self.insert(text)

    def focus_editor(self, name: str) -> None:
        self.until(editor(name))
        self.js(f"{editor(name)}.focus()")

    def write(self, name: str, text: str) -> None:
        """Replace the text of an editor, as somebody who selects all and pastes."""
        self.focus_editor(name)
        self.press("a", control=True)
        self.press("Backspace")
        self.insert(text)

    # --- what the page should never do ---

    def complaints(self) -> list[str]:
        """What the console said, exceptions among it."""
        self._gather()
        found = []
        for each in self.events:
            match each:
                case {"method": "Runtime.exceptionThrown", "params": {"exceptionDetails": details}}:
                    found.append(json.dumps(details))
                case {"method": "Runtime.consoleAPICalled", "params": {"type": kind, "args": args}}:
                    found.append(f"{kind} {json.dumps(args)}")
                case {"method": "Log.entryAdded", "params": {"entry": entry}}:
                    found.append(f"{entry['level']} {entry['text']} {entry.get('url', '')}")
                case {"method": "Page.javascriptDialogOpening", "params": params}:
                    found.append(f"dialog {params['message']}")
        return found

    def elsewhere(self) -> list[str]:
        """The requests to other hosts."""
        self._gather()
        asked = [
            each["params"]["request"]["url"]
            for each in self.events
            if each["method"] == "Network.requestWillBeSent"
        ]
        own = ("data:", "blob:", "about:")
        return [
            url for url in asked if not url.startswith(own) and urlsplit(url).netloc != self.host
        ]

    def check(self) -> None:
        assert self.complaints() == []
        assert self.elsewhere() == []

    def excuse_missing(self, path: str) -> None:
        """Forget that something at a path was not found: it was removed while the page asked."""
        self._gather()
        self.events[:] = [each for each in self.events if not _is_missing(each, path)]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def _gather(self) -> None:
        self.js("0")
        own = [each for each in self.browser.events if each.get("sessionId") == self.session]
        self.events += own
        for each in own:
            self.browser.events.remove(each)


@contextmanager
def opened_tab(browser: Browser, *, width: int = 1280, dark: bool = False) -> Iterator[Tab]:
    context = browser.call("Target.createBrowserContext")["browserContextId"]
    target = browser.call("Target.createTarget", url="about:blank", browserContextId=context)[
        "targetId"
    ]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    tab = Tab(browser, target, session, context)
    for domain in ("Page", "Runtime", "Log", "Network"):
        tab.call(f"{domain}.enable")
    tab.size(width)
    tab.dark(dark)
    try:
        yield tab
    finally:
        browser.call("Target.closeTarget", targetId=target)
        browser.call("Target.disposeBrowserContext", browserContextId=context)


def _is_missing(event: dict[str, Any], path: str) -> bool:
    entry = event.get("params", {}).get("entry", {})
    is_404 = event["method"] == "Log.entryAdded" and "status of 404" in entry["text"]
    return is_404 and urlsplit(entry.get("url", "")).path.startswith(path)
