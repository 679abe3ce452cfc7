"""Logical targets replace nothing that the run did not write."""

from pathlib import Path

import pytest

from quadweir.errors import MappingError, SourceError, UsageError
from quadweir.mapping.files import Folders
from quadweir.mapping.model import Mapping
from quadweir.mapping.read import parse_mapping
from quadweir.mapping.targets import target_paths
from quadweir.sinks.rdf_batches import DocumentSink
from quadweir.sinks.rdf_documents import Syntax


def mapping(*targets: str, source: str = "in.csv") -> Mapping:
    nodes = " , ".join(
        f'[ rml:target [ rml:path "{path}" ] ; rml:serialization formats:N-Quads ]'
        for path in targets
    )
    return parse_mapping(f"""
    @prefix rml: <http://w3id.org/rml/> . @prefix formats: <http://www.w3.org/ns/formats/> .
    <http://e.org/m> rml:logicalSource [
        rml:source "{source}" ; rml:referenceFormulation rml:CSV ] ;
      rml:subjectMap [ rml:template "http://e.org/{{id}}" ; rml:logicalTarget {nodes} ] .""")


def test_a_file_that_is_there_is_replaced_only_where_that_is_allowed(tmp_path: Path):
    folders = Folders(mapping=tmp_path, working=tmp_path)
    assert target_paths(mapping("out.nq"), folders) == [tmp_path / "out.nq"]
    (tmp_path / "out.nq").touch()
    with pytest.raises(MappingError, match="there before the run") as caught:
        target_paths(mapping("out.nq"), folders)
    assert caught.value.span is not None and "--overwrite" in str(caught.value.hint)
    assert target_paths(mapping("out.nq"), folders, overwrite=True) == [tmp_path / "out.nq"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_the_run_reads_or_writes_otherwise_is_never_a_target(tmp_path: Path, overwrite: bool):
    folders = Folders(mapping=tmp_path, working=tmp_path)
    (tmp_path / "in.csv").touch()
    (tmp_path / "link.nq").symlink_to("in.csv")
    (tmp_path / "m.ttl").touch()
    (tmp_path / "folder").mkdir()
    files = {"own": [tmp_path / "own.nq"], "read": [tmp_path / "m.ttl"]}
    for path in ("in.csv", "./folder/../in.csv", "link.nq", "m.ttl", "own.nq", "folder"):
        with pytest.raises(MappingError, match="logical target"):
            target_paths(mapping(path), folders, overwrite=overwrite, **files)
    with pytest.raises(MappingError, match="for another purpose"):
        target_paths(mapping("a.nq", "./a.nq"), folders, overwrite=overwrite)
    with pytest.raises(UsageError, match="cannot be its output"):
        target_paths(mapping("a.nq"), folders, own=[tmp_path / "in.csv"], overwrite=overwrite)


def test_documents_of_batches_replace_no_file_that_was_there_before(tmp_path: Path):
    (tmp_path / "dump-00000003.nt.gz").touch()
    sink = DocumentSink(tmp_path / "dump.nt.gz", Syntax.NTRIPLES)
    with pytest.raises(SourceError, match="dump-00000003.nt.gz is older than the query"):
        sink.claim("one")
    DocumentSink(tmp_path / "dump.nt.gz", Syntax.NTRIPLES, overwrite=True).claim("one")
    sink.claim("one")  # Now they are the query's own.
    with pytest.raises(SourceError, match="another query"):
        sink.claim("two")
    DocumentSink(tmp_path / "other.nt", Syntax.NTRIPLES).claim("two")
