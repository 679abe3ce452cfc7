"""The description of the requests is whole, and its page needs nobody else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from quadweir.service.web.openapi import operations
from service_client import Served, served


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(None, tmp_path_factory.mktemp("service")) as found:  # type: ignore[arg-type]
        yield found


def test_every_operation_says_what_it_takes(running: Served) -> None:
    found = running.http.get("/openapi.json").json()
    described = list(operations(found))
    assert len(described) > 40
    for path, method, operation in described:
        assert operation["description"].strip(), path
        assert "default" in operation["responses"]
        assert "422" not in operation["responses"]
        is_asking = path.endswith("/verify")
        if method in ("PUT", "POST", "PATCH") and not is_asking:
            assert operation["requestBody"]["content"], (method, path)
    push = found["paths"]["/streams/{iri}"]["post"]
    assert "application/x-jelly-rdf" in push["requestBody"]["content"]
    assert {"quadweir-time", "idempotency-key"} <= {each["name"] for each in push["parameters"]}
    listening = found["paths"]["/queries/{name}/answers"]["get"]["parameters"]
    assert {"as", "from", "follow", "last-event-id"} <= {each["name"] for each in listening}


class Page(HTMLParser):
    """The tags of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [text or "" for name, text in attrs if name in ("src", "href")]


def test_the_page_of_requests_asks_nobody(running: Served) -> None:
    found = running.http.get("/docs")
    assert found.headers["content-type"].startswith("text/html")
    page = Page()
    page.feed(found.text)
    assert "script" not in page.tags
    assert all(each.startswith(("#", "/")) and not each.startswith("//") for each in page.links)
    assert not re.search(r"https?://(?!\.\.\.)", found.text.replace("https://...", ""))
    for path, _, _ in operations(running.http.get("/openapi.json").json()):
        assert f"<code>{path}</code>" in found.text


def test_no_secret_is_in_the_description(tmp_path: Path) -> None:
    with served(None, tmp_path) as found:  # type: ignore[arg-type]
        assert str(tmp_path) not in found.http.get("/openapi.json").text
