"""What the page does in a real browser without a network: errors, colours, tokens, policies.

`tests/spark/test_page.py` looks at everything that runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from browser import Browser, running_browser
from quadweir.service.access import Access, Role, TokenRecord, digest_of_token
from quadweir.service.server import ServiceServer
from quadweir.service.service import LiveService
from quadweir.service.settings import ServedApplication, ServiceSettings
from quadweir.service.tokens import new_token
from tab import Tab, editor, opened_tab

ENTERS = "SELECT ?who ?room { STREAM <urn:doors> [NOW] { ?who <urn:enters> ?room } }"


@contextmanager
def served(folder: Path, *tokens: TokenRecord, port: int = 0) -> Iterator[ServiceServer]:
    """Run a service without Spark: it has streams, and no queries."""
    spark: Any = None
    settings = ServiceSettings(data=folder, port=port)
    service = LiveService(spark, ServedApplication(shards=2), settings)
    service.streams.declare("urn:doors", None)
    try:
        with ServiceServer(service, Access(tokens)) as server:
            service.start()
            yield server
    finally:
        service.stop()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceServer]:
    with served(tmp_path_factory.mktemp("page")) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as found:
        yield found


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    with opened_tab(browser) as found:
        yield found
        found.check()


def test_an_error_is_underlined_where_it_is(tab: Tab, running: ServiceServer) -> None:
    tab.view(running.url, "queries")
    tab.write("The query", ENTERS.replace("SELECT", "SELEC"))
    find = "[...document.querySelectorAll('.editor')].map(e => e.shadowRoot.querySelector('.cm-lintRange-error')).find(Boolean)"
    tab.until(find)
    assert tab.js(f"{find}.textContent") == "SELEC"
    assert tab.js(f"getComputedStyle({find}).textDecorationStyle") == "wavy"
    tab.until_text("Did you mean SELECT?")
    tab.until_text("line 1, column 1")
    tab.focus("#query-name")
    tab.type("bad")
    assert tab.js("document.querySelector('.register button[type=submit]').disabled")
    tab.write("The query", ENTERS)
    tab.until(f"!({find})")
    tab.until("!document.querySelector('.register button[type=submit]').disabled")


def test_the_place_of_an_error_moves_the_cursor(tab: Tab, running: ServiceServer) -> None:
    tab.view(running.url, "queries")
    tab.write("The query", "SELECT ?x {\n  oops\n}")
    tab.click("line 2, column 3")
    assert tab.js(f"{editor('The query')}.getRootNode().activeElement?.ariaLabel") == "The query"


def test_only_own_scripts_may_run(tab: Tab, running: ServiceServer) -> None:
    policy = httpx.get(running.url).headers["content-security-policy"]
    assert "unsafe" not in policy
    tab.view(running.url, "overview")
    # Not even the page's own code can make markup or scripts of a text.
    for code in (
        "document.body.innerHTML = '<b>b</b>'",
        "document.createElement('script').textContent = '1'",
        "document.createElement('script').src = '/x.js'",
    ):
        with pytest.raises(AssertionError, match="Trusted"):
            tab.js(code)
    assert tab.complaints()
    tab.events.clear()


@pytest.mark.parametrize("is_dark", [False, True])
def test_colours_have_contrast(tab: Tab, running: ServiceServer, is_dark: bool) -> None:
    tab.dark(is_dark)
    tab.view(running.url, "queries")
    ground = tab.js("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 384) is is_dark
    weak = {name: ratio for name, ratio in tab.js(_CONTRASTS).items() if ratio < 4.5}
    assert not weak


def test_the_theme_is_chosen_and_kept(tab: Tab, running: ServiceServer) -> None:
    tab.view(running.url, "overview")
    assert tab.js("document.documentElement.dataset.theme") == "light"
    tab.click("Colours: as the system says")
    tab.click("Colours: light")
    assert tab.js("document.documentElement.dataset.theme") == "dark"
    tab.open(f"{running.url}/")
    tab.until("document.documentElement.dataset.theme === 'dark'")


def test_a_token_is_asked_for_and_kept_in_this_tab(browser: Browser, tmp_path: Path) -> None:
    admin, reader = new_token(), new_token()
    tokens = (
        TokenRecord("a", Role.ADMIN, digest_of_token(admin)),
        TokenRecord("r", Role.READ, digest_of_token(reader)),
    )
    with served(tmp_path, *tokens) as found, opened_tab(browser) as tab:
        tab.open(f"{found.url}/#/queries")
        tab.until_text("This service wants a token")
        tab.focus("input[type=password]")
        tab.type("wrong")
        tab.press("Enter")
        tab.until_text("does not know this token")
        tab.replace_text("input[type=password]", reader)
        tab.press("Enter")
        tab.until_text("No queries yet")
        assert not tab.js("document.querySelector('.register')")
        tab.click("Forget the token")
        tab.until_text("This service wants a token")
        tab.replace_text("input[type=password]", admin)
        tab.press("Enter")
        tab.until("document.querySelector('.register')")
        assert tab.js("Object.values(sessionStorage)") == [admin]
        assert admin not in tab.js("JSON.stringify(localStorage) + document.cookie + location.href")
        tab.open(f"{found.url}/#/overview")
        tab.until("document.querySelector('.box')")
        tab.check()


def test_the_page_lives_on_when_the_service_was_gone(browser: Browser, tmp_path: Path) -> None:
    with opened_tab(browser) as tab:
        with served(tmp_path) as found:
            port = found.port
            tab.open(f"{found.url}/#/overview")
            tab.until("document.querySelector('.box')")
        tab.until_text("not connected")
        with served(tmp_path, port=port) as found:
            put = httpx.put(f"{found.url}/streams/urn:late")
            assert put.status_code == 201
            tab.until("document.querySelector('[data-id=\"stream:urn:late\"]')")
            tab.until_text("live")


def test_paths_of_the_page(running: ServiceServer) -> None:
    index = httpx.get(running.url)
    assert index.headers["content-type"].startswith("text/html")
    assert index.headers["cache-control"] == "no-cache"
    script = index.text.partition('src="')[2].partition('"')[0]
    found = httpx.get(f"{running.url}/{script}")
    assert found.headers["content-type"].startswith("text/javascript")
    assert "immutable" in found.headers["cache-control"]
    for path in ("/assets/../../app.py", "/assets/%2e%2e/%2e%2e/service.py", "/assets", "/nothing"):
        assert httpx.get(f"{running.url}{path}").status_code == 404


# Each colour of texts over each ground that texts stand on.
_CONTRASTS = """(() => {
  const style = getComputedStyle(document.documentElement);
  const probe = document.body.appendChild(document.createElement('i'));
  const light = (name) => {
    probe.style.color = style.getPropertyValue('--' + name);
    const parts = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(each => each / 255)
      .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const found = {};
  const pairs = [['main-ink', 'main'], ['main', 'main-soft'], ['good', 'good-soft'], ['warn', 'warn-soft'], ['bad', 'bad-soft']];
  for (const ink of ['ink', 'ink-soft', 'iri', 'literal', 'number', 'keyword', 'comment'])
    for (const ground of ['ground', 'panel', 'raised', 'code']) pairs.push([ink, ground]);
  for (const [ink, ground] of pairs) {
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
    found[ink + ' on ' + ground] = (a + 0.05) / (b + 0.05);
  }
  probe.remove();
  return found;
})()"""


def test_dialects_plans_and_translations(tab: Tab, running: ServiceServer) -> None:
    tab.view(running.url, "queries")
    tab.until_text("RSP-QL")
    tab.write("The query", ENTERS)
    tab.until_text("CQELS-QL")
    tab.until_text("Remembers")
    tab.click("Plan", "tab")
    tab.until("document.querySelector('.diagram .box[aria-label^=\"window\"]')")
    tab.click("In words", "tab")
    tab.until_text("matched before the shuffle")
    tab.click("Translate", "tab")
    tab.js(
        "(() => { const s = [...document.querySelectorAll('select')].find(e => e.value === 'cqels');"
        "s.value = 'rspql'; s.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    tab.until(f"{editor('The translated query')}?.textContent.includes('FROM NAMED WINDOW')")
    tab.click("Go on with this")
    tab.until(f"{editor('The query')}?.textContent.includes('FROM NAMED WINDOW')")


def test_words_are_offered_while_typing(tab: Tab, running: ServiceServer) -> None:
    tab.view(running.url, "queries")
    tab.write("The query", "")
    tab.type("SELECT ?x { STREAM <urn")
    offered = (
        "document.querySelector('.editor').shadowRoot.querySelector('.cm-tooltip-autocomplete')"
    )
    tab.until(f"{offered}?.textContent.includes('<urn:doors>')")


def test_the_keyboard_reaches_everything(tab: Tab, running: ServiceServer) -> None:
    tab.view(running.url, "overview")
    tab.until("document.querySelector('[data-id=\"stream:urn:doors\"]')")
    tab.press("Tab")
    assert tab.js("document.activeElement.textContent.trim()") == "Skip to the content"
    tab.press("Enter")
    assert tab.js("document.activeElement.id") == "main"
    for _ in range(60):
        tab.press("Tab")
        if tab.js("document.activeElement.dataset?.id") == "stream:urn:doors":
            break
    assert tab.js("document.activeElement.dataset.id") == "stream:urn:doors"
    tab.press("Enter")
    tab.until_text("Look into the stream")
    tab.view(running.url, "queries")
    tab.until("document.querySelector('[role=tab]')")
    tab.focus("[role=tab][aria-selected=true]")
    tab.press("ArrowRight")
    assert tab.js("document.activeElement.textContent") == "Plan"
    assert tab.js("document.activeElement.ariaSelected") == "true"
    # The editor is no trap.
    tab.js(f"{editor('The query')}.focus()")
    tab.press("Tab")
    assert tab.js("document.activeElement.shadowRoot") is None
