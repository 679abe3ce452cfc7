"""Which rules for values a mapping has: by vocabulary, or by choice."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from tests.rml_texts import PREFIXES, SOURCE, only, read

from quadweir.mapping.formats.csvfile import quoted_cells, read_rows
from quadweir.mapping.model import Mapping
from quadweir.mapping.sources import CsvDialect, ValueRules
from quadweir.mapping.yarrrml import parse_yarrrml

OLD_SOURCE = 'orml:logicalSource [ orml:source "a.csv" ; orml:referenceFormulation ql:CSV ]'
YARRRML = "mappings: {m: {sources: [[a.csv~csv]], s: 'http://ex.org/$(id)'}}"


def test_the_vocabulary_of_the_source_decides() -> None:
    assert only(f"ex:t {SOURCE} ; rml:subject ex:s .").source.rules is ValueRules.CURRENT
    # R2RML's names have no rules of their own.
    assert only(f"ex:t {SOURCE} ; rr:subject ex:s .").source.rules is ValueRules.CURRENT
    assert only(f"ex:t {OLD_SOURCE} ; rml:subject ex:s .").source.rules is ValueRules.OLDER
    assert parse_yarrrml(YARRRML).triples_maps[0].source.rules is ValueRules.OLDER


def test_a_mapping_may_mix_vocabularies() -> None:
    mixed = read(f"ex:a {SOURCE} ; rr:subject ex:s . ex:b {OLD_SOURCE} ; rr:subject ex:s .")
    found = {one.name[-1]: one.source.rules for one in mixed.triples_maps}
    assert found == {"a": ValueRules.CURRENT, "b": ValueRules.OLDER}
    older = mixed.with_rules(ValueRules.OLDER)
    assert {one.source.rules for one in older.triples_maps} == {ValueRules.OLDER}


def test_rules_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "m.ttl"
    path.write_text(PREFIXES + f"ex:t {SOURCE} ; rml:subject ex:s .")
    for rules in ("older", ValueRules.OLDER):
        assert Mapping.read(path, rules=rules).triples_maps[0].source.rules is ValueRules.OLDER
    with pytest.raises(ValueError, match="newest"):
        Mapping.read(path, rules="newest")


@pytest.mark.parametrize(
    ("record", "dialect", "expected"),
    [
        ('"",,a', CsvDialect(), [True, False, False]),
        ('"a,b",""\n', CsvDialect(), [True, True]),
        ('"a\n,""","",\n', CsvDialect(), [True, True, False]),
        ('a"",""', CsvDialect(), [False, True]),
        (' "", ', CsvDialect(skip_initial_space=True), [True, False]),
        ("'';;\"\"", CsvDialect(delimiter=";", quote="'"), [True, False, False]),
        ('"a\\",b",""', CsvDialect(double_quote=False), [True, True]),
        ('"",', CsvDialect(quote=None), [False, False]),
        ('"open', CsvDialect(), [True]),
    ],
)
def test_cells_in_quotes(record: str, dialect: CsvDialect, expected: list[bool]) -> None:
    assert quoted_cells(record, dialect) == expected


def test_an_empty_cell_without_quotes_is_missing_where_the_rules_say_so() -> None:
    text = 'skipped\nx,a,b\n0,"",\n0,,"\n"\n\n0," ",x\n'
    dialect = CsvDialect(skip_rows=1, skip_columns=1, trim=True)

    def values(*, empty_is_missing: bool) -> list[object]:
        lines = io.StringIO(text, newline="")
        rows = read_rows(lines, dialect, ["b", "a"], empty_is_missing=empty_is_missing)
        return [row.values for row in rows]

    assert values(empty_is_missing=True) == [(None, ""), ("", None), ("x", "")]
    assert values(empty_is_missing=False) == [("", ""), ("", ""), ("x", "")]
