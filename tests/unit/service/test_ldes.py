"""A pushed stream as a Linked Data Event Stream."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest

from quadweir.service import ldes
from service_client import Served, path_of, served

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
        pages = sorted(objects(running.http.get(view).content, f"{TREE}node"))
        assert len(pages) == 3
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
