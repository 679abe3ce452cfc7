"""A pushed stream as a Linked Data Event Stream."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest

from quadweir.service import ldes
from quadweir.service.ldes import EventPages
from quadweir.service.problems import GoneError, NotFoundError
from quadweir.service.pushlog import PushLog
from service_client import Served, path_of, served

LDES = "https://w3id.org/ldes#"
TREE = "https://w3id.org/tree#"


def objects(text: bytes, predicate: str) -> list[str]:
    found = ox.parse(text, ox.RdfFormat.TRIG)
    return [each.object.value for each in found if each.predicate.value == predicate]


def push(running: Served, begin: int, end: int) -> None:
    for number in range(begin, end):
        running.push("urn:s", f"<urn:a{number}> <urn:p> {number} .", **{"quadweir-time": "5"})


def test_pages_have_all_elements_once_and_whole_pages_do_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ldes, "PAGE", 4)
    with served(None, tmp_path) as running:  # type: ignore[arg-type]
        running.put_stream("urn:s")
        running.put_stream("urn:raw", source={"kind": "push"}, format="jsonl")
        view = f"{path_of('urn:s')}/ldes"
        assert objects(running.http.get(view).content, f"{TREE}node") == []
        push(running, 0, 10)
        found = running.http.get(view)
        pages = sorted(set(objects(found.content, f"{TREE}node")))
        assert len(pages) == 3
        tag = {"if-none-match": f'"other", W/{found.headers["etag"]}'}
        assert running.http.get(view, headers=tag).status_code == 304
        (root,) = objects(found.content, f"{TREE}view")
        assert running.http.get(root).content == found.content
        for name, path in (
            ("timestampPath", "http://purl.org/dc/terms/issued"),
            ("sequencePath", "http://purl.org/dc/terms/identifier"),
            ("versionOfPath", "http://purl.org/dc/terms/isVersionOf"),
        ):
            assert objects(found.content, f"{LDES}{name}") == [path]
        members = []
        for place in pages:
            found = running.http.get(place)
            members += objects(found.content, f"{TREE}member")
            tag = {"if-none-match": found.headers["etag"]}
            assert running.http.get(place, headers=tag).status_code == 304
        assert len(members) == len(set(members)) == 10
        first, last = (running.http.get(each) for each in (pages[0], pages[-1]))
        assert "immutable" in first.headers["cache-control"]
        assert "immutable" not in last.headers["cache-control"]
        assert objects(first.content, f"{LDES}immutable") == ["true"]
        assert objects(last.content, f"{LDES}immutable") == []
        triples = [
            each.subject.value
            for each in ox.parse(first.content, ox.RdfFormat.TRIG)
            if each.predicate.value == "urn:p"
        ]
        assert triples == [f"urn:a{n}" for n in range(4)]
        push(running, 10, 12)
        assert running.http.get(pages[0]).headers["etag"] == first.headers["etag"]
        assert running.http.get(pages[-1]).headers["etag"] != last.headers["etag"]
        running.problem("GET", f"{view}/99", 404)
        running.problem("GET", f"{view}/x", 400)
        running.problem("GET", f"{path_of('urn:none')}/ldes", 404)
        running.problem("GET", f"{path_of('urn:raw')}/ldes", 409)


def test_pages_that_are_no_longer_kept_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ldes, "PAGE", 4)
    log = PushLog(tmp_path, segment_bytes=2_000, kept_bytes=4_000)
    pages = EventPages(tmp_path)
    seen: dict[int, str] = {}
    for number in range(60):
        statement = f'<urn:a> <urn:p> "{number}" .'
        log.append([statement], [number], now_ms=1_000 + number)
        log.forget([])
        listed = {int(each.rpartition("/")[2]) for each in objects(view(pages), f"{TREE}node")}
        assert max(listed) == number // 4
        for page in range(number // 4):
            if page not in listed:
                with pytest.raises(GoneError):
                    pages.page(PLACE, page)
                continue
            found = pages.page(PLACE, page)
            assert found.is_whole
            assert seen.setdefault(page, found.text) == found.text
        with pytest.raises(NotFoundError):
            pages.page(PLACE, number // 4 + 1)
    assert min(listed) > 3
    # Somebody who asks for the first time sees the same.
    assert view(EventPages(tmp_path)) == view(pages)
    log.close()


PLACE = "http://localhost/ldes"


def view(pages: EventPages) -> bytes:
    return pages.view(PLACE).text.encode()


def test_members_keep_all_that_rdf_allows(tmp_path: Path) -> None:
    log = PushLog(tmp_path)
    graphs = '_:b <urn:p> "x"@en .\n_:b <urn:p> <<( <urn:s> <urn:p> _:b )>> <urn:g> .'
    log.append([graphs, '<urn:a> <urn:p> "\\"" .'], [5, 6], now_ms=7)
    text = EventPages(tmp_path).page(PLACE, 0).text
    log.close()
    quads = list(ox.parse(text, ox.RdfFormat.TRIG))
    inside = [each for each in quads if str(each.graph_name) == f"<{PLACE}/members/0>"]
    assert len(inside) == 2
    assert objects(text.encode(), "http://purl.org/dc/terms/isVersionOf") == ["urn:a"]


def test_behind_a_proxy_that_does_tls_pages_are_at_https(tmp_path: Path) -> None:
    with served(None, tmp_path, behind_proxy=True) as running:  # type: ignore[arg-type]
        running.put_stream("urn:s")
        (root,) = objects(running.http.get(f"{path_of('urn:s')}/ldes").content, f"{TREE}view")
        assert root.startswith("https://")
