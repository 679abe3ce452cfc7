"""Static data and schema over HTTP, while no network runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadweir.errors import SourceError
from service_client import served

TURTLE = {"content-type": "text/turtle"}


@pytest.mark.parametrize("kind", ["static", "schema"])
def test_files_are_put_listed_and_removed(tmp_path: Path, kind: str) -> None:
    with served(None, tmp_path) as found:  # type: ignore[arg-type]
        assert found.http.get(f"/{kind}").json() == {"version": 1, "files": []}
        body = "<urn:a> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:b> ."
        put = found.http.put(f"/{kind}/rooms", content=body, headers=TURTLE).json()
        assert (put["version"], put["files"][0]["statements"]) == (2, 1)
        # The same again is no change.
        again = found.http.put(f"/{kind}/rooms", content=body, headers=TURTLE).json()
        assert again["version"] == 2
        assert found.http.get(f"/{kind}/rooms").text == body
        found.problem("PUT", f"/{kind}/rooms", 400, content="oops", headers=TURTLE)
        found.problem("PUT", f"/{kind}/rooms", 415, content="x")
        found.problem("PUT", f"/{kind}/-x", 400, content=body, headers=TURTLE)
        found.problem("DELETE", f"/{kind}/none", 404)
        found.problem("GET", f"/{kind}/none", 404)
    with served(None, tmp_path) as found:  # type: ignore[arg-type]
        assert found.http.get(f"/{kind}").json() == put
        assert found.http.delete(f"/{kind}/rooms").json() == {"version": 3, "files": []}
        assert list((tmp_path / kind).iterdir()) == []


def test_a_graph_has_to_be_an_iri(tmp_path: Path) -> None:
    with served(None, tmp_path) as found:  # type: ignore[arg-type]
        found.problem("PUT", "/static/x?graph=no", 400, content="", headers=TURTLE)
        put = found.http.put("/static/x?graph=urn:g", content="", headers=TURTLE).json()
        assert put["files"][0]["graph"] == "urn:g"


def test_what_networks_cannot_start_with_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(None, tmp_path) as found:  # type: ignore[arg-type]

        def fail() -> None:
            raise SourceError("it cannot start")

        monkeypatch.setattr(found.service.pool, "reload", fail)
        found.problem("PUT", "/static/x", 502, content="", headers=TURTLE)
        assert found.http.get("/static").json() == {"version": 1, "files": []}
