"""The suites' mappings as texts: valid ones, invalid ones, and the same in the older vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.rml_cases import load_cases, to_old_vocabulary
from quadweir.errors import MappingError
from quadweir.mapping.check import check_mapping
from quadweir.mapping.model import Mapping
from quadweir.mapping.read import parse_mapping
from quadweir.mapping.sources import ValueRules

# Error cases whose fault is in the data or the file system, so that only a run can find it.
RUN_TIME = {
    "RMLTC0002e-JSON",  # the file does not exist
    "RMLTC0019b-JSON",  # a value is no IRI
    "RMLTC0025b-JSON",  # a reference yields an array
    "RMLFNMLTC0101-CSV",  # a column does not exist
    "RMLSTC0010a",  # a row is too short
    "RMLSTC0010b",
}


@pytest.mark.parametrize("suite", ["rml-core", "rml-io", "rml-fnml"])
def test_valid_mappings_are_read_and_the_others_refused_with_a_place(suites: Path, suite: str):
    cases = load_cases(suites, suite)
    assert cases
    for case in cases:
        if case.expected is not None or case.name in RUN_TIME:
            mapping = Mapping.read(case.mapping)
            check_mapping(mapping)
            assert not mapping.findings, case.name
            assert all(t.span is not None for t in mapping.triples_maps), case.name
        else:
            with pytest.raises(MappingError) as caught:
                check_mapping(Mapping.read(case.mapping))
            assert caught.value.exit_code == 3
            assert caught.value.span is not None, case.name
            assert caught.value.hint or caught.value.detail, case.name


def test_the_old_vocabulary_says_the_same(suites: Path):
    for case in load_cases(suites, "rml-core"):
        text = case.mapping.read_text("utf-8")
        old = to_old_vocabulary(text)
        assert "w3id.org/rml" not in old
        if case.expected is None:
            try:
                expected = parse_mapping(text)
                check_mapping(expected)
            except MappingError:
                with pytest.raises(MappingError):
                    check_mapping(parse_mapping(old))
                continue
        read, expected = parse_mapping(old), parse_mapping(text)
        rules = {one.source.rules for one in read.triples_maps}
        # What is read from a source of the older vocabulary becomes terms by its rules.
        assert rules == {ValueRules.OLDER}, case.name
        assert _comparable(read.with_rules(ValueRules.CURRENT)) == _comparable(expected), case.name


def _comparable(mapping: Mapping) -> frozenset[object]:
    # Statement order differs between the two texts, and with it the order of equal parts.
    return frozenset(
        (
            t.name,
            t.source,
            t.subject.term,
            frozenset(t.subject.classes),
            frozenset(t.subject.graphs),
            frozenset(
                (frozenset(p.predicates), frozenset(p.objects), frozenset(p.graphs))
                for p in t.predicate_objects
            ),
            t.base_iri,
        )
        for t in mapping.triples_maps
    )
