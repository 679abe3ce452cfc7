"""Streams in the words of others."""

from __future__ import annotations

import json
from pathlib import Path

import pyoxigraph as ox

from quadweir.service.describing import MEDIA_TYPE
from service_client import path_of, served


def test_a_stream_is_described_as_json_ld(tmp_path: Path) -> None:
    with served(None, tmp_path) as found:  # type: ignore[arg-type]
        found.put_stream("urn:rooms", source={"kind": "push"}, format="nquads", description="Rooms")
        found.put_stream("urn:raw", source={"kind": "push"}, format="jsonl")
        headers = {"accept": MEDIA_TYPE}
        one = found.http.get(path_of("urn:rooms"), headers=headers)
        assert one.headers["content-type"] == MEDIA_TYPE
        triples = {
            (str(each.subject), str(each.predicate), str(each.object))
            for each in ox.parse(one.content, ox.RdfFormat.JSON_LD)
        }
        kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
        assert ("<urn:rooms>", kind, "<http://w3id.org/rsp/vocals#RDFStream>") in triples
        assert ("<urn:rooms>", "<http://purl.org/dc/terms/description>", '"Rooms"') in triples
        place = f"<{found.server.url}{path_of('urn:rooms')}/events>"
        assert place in {each[2] for each in triples}
        all_of_them = found.http.get("/streams", headers=headers).text
        assert {each["@id"] for each in json.loads(all_of_them)["dcat:dataset"]} == {
            "urn:rooms",
            "urn:raw",
        }
