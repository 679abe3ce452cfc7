"""A mapping over a stream that it names itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quadweir.mapping.files import Folders
from quadweir.mapping.live import Streams, compile_live
from quadweir.mapping.model import Mapping
from quadweir.sinks.files import FileSink
from quadweir.sinks.start import start

pytestmark = pytest.mark.spark

MAPPING = """
@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix rml: <http://semweb.mmlab.be/ns/rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> . @prefix rmls: <http://semweb.mmlab.be/ns/rmls#> .
<#m> a rr:TriplesMap ;
  rml:logicalSource [ rml:source [ a rmls:FileStream ; rmls:path "in" ] ;
    rml:referenceFormulation ql:JSONPath ; rml:iterator "$" ] ;
  rr:subjectMap [ rr:template "http://e.org/{id}" ] ;
  rr:predicateObjectMap [ rr:predicate <http://e.org/v> ; rr:objectMap [ rml:reference "v" ] ] .
"""


def test_files_that_appear_are_mapped_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "m.ttl").write_text(MAPPING)
    mapping = Mapping.read(tmp_path / "m.ttl")
    for number in range(2):
        (tmp_path / "in" / f"{number}.jsonl").write_text(f'{{"id": {number}, "v": "x"}}\n')
        streams = Streams(spark=spark, folders=Folders(mapping=tmp_path), spool=tmp_path / "spool")
        query = start(
            compile_live(mapping, streams).quads(),
            FileSink(tmp_path / "out"),
            checkpoint=tmp_path / "checkpoint",
            available_now=True,
        )
        assert query.awaitTermination(120)
    lines = [
        line for path in (tmp_path / "out").glob("*.nq") for line in path.read_text().splitlines()
    ]
    assert sorted(lines) == [f'<http://e.org/{n}> <http://e.org/v> "x" .' for n in range(2)]
