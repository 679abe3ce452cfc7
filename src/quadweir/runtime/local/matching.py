"""The match tests of a plan over Arrow tables: which statements pass which test.

`match/matching.py` does this with column expressions, for streams of any size. Here, terms become
small integers, and each test compares whole columns of them. What the tests only leave out early
(`MatchTest.conditions`) stays in; the kernel decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quadweir import rows
from quadweir.entailment.table import End, Table
from quadweir.entailment.ways import Way
from quadweir.plan.matchtests import Matching, MatchTest, StatementTerm
from quadweir.runtime.match.bits import word_of
from quadweir.runtime.match.rowform import HASH, VALUES
from quadweir.sources.labels import stream_prefix
from quadweir.sources.statements import parse_statement
from quadweir.terms import parse_term, relabelled_term

Mask: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.int64]

_CARRIED: Final = "carried"
_ABSENT: Final = -2
_NULL: Final = -1
_OBJECT: Final = 2
_GRAPH: Final = 3


@final
class StatementMatcher:
    """Statements of the streams of a query, and the tests that each of them passes.

    Args:
        statements: rows with the columns of `rows.ELEMENT` and `rows.TERMS`, of all streams.
        matching: the tests.
    """

    def __init__(self, statements: pa.Table, matching: Matching) -> None:
        self._matching = matching
        table = _with_consequences(_scoped(statements), matching)
        self._table = table
        self._streams = table.column(rows.STREAM)
        self._carried: Mask = table.column(_CARRIED).to_numpy(zero_copy_only=False)
        terms = pa.chunked_array(
            [chunk for name in rows.TERMS for chunk in table.column(name).chunks], pa.string()
        )
        encoded = terms.combine_chunks().dictionary_encode()
        codes = pc.fill_null(encoded.indices.cast(pa.int64()), _NULL).to_numpy()
        self._codes: Sequence[Codes] = codes.reshape(len(rows.TERMS), -1)
        self._texts = encoded.dictionary
        self.passed: list[Mask] = [self._passes(test) for test in matching.wanted]
        """For each test, which rows pass it."""

    def matched(self) -> pa.Table:
        """Return the rows that pass a test, in the form in which blobs have them (`wire/pack.py`)."""
        some = np.logical_or.reduce([np.zeros(self._table.num_rows, dtype=bool), *self.passed])
        columns = {
            rows.EVENT_TIME: self._table.column(rows.EVENT_TIME).to_numpy()[some],
            rows.POSITION: self._table.column(rows.POSITION).to_numpy()[some],
        }
        words: dict[str, Codes] = {}
        for number, mask in enumerate(self.passed):
            name, bit = word_of(number)
            word = words.setdefault(name, np.zeros(np.count_nonzero(some), dtype=np.int64))
            word |= mask[some].astype(np.int64) << bit
        found = {name: pa.array(values) for name, values in (columns | words).items()}
        for name, codes in zip(VALUES, self._codes, strict=True):
            kept = codes[some]
            indices = pa.array(kept, pa.int64(), mask=kept == _NULL)
            found[name] = pa.DictionaryArray.from_arrays(indices, self._texts)
        if any(test.elements for test in self._matching.wanted):
            found[HASH] = pa.array(self._triple_numbers()[some])
        return pa.table(found)

    def _triple_numbers(self) -> Codes:
        """Number the different triples."""
        triples = np.stack(self._codes[:_GRAPH], axis=1)
        numbers: Codes = np.unique(triples, axis=0, return_inverse=True)[1].reshape(-1)
        return numbers

    def _passes(self, test: MatchTest) -> Mask:
        found: Mask = pc.equal(self._streams, test.stream).to_numpy(zero_copy_only=False)
        if test.way is not None:
            found = found & self._follows(test.way)
        if test.elements or not test.follows:
            found = found & self._carried
        if test.is_named:
            found = found & (self._codes[_GRAPH] >= 0)
        for place, constant in enumerate(test.constants):
            if constant is not None:
                found = found & self._equal(test.view[place], str(constant))
        for one, other in test.equal:
            found = found & self._equal(test.view[one], test.view[other])
        return found

    def _follows(self, way: Way) -> Mask:
        """Return whether a consequence follows from each statement in this way."""
        found = self._among(1, way.predicates)
        if way.classes is not None:
            found = found & self._among(0 if way.turned else _OBJECT, way.classes)
        if way.derived.subject is End.OBJECT:
            found = found & self._is_resource(self._codes[_OBJECT])
        return found

    def _is_resource(self, codes: Codes) -> Mask:
        is_other = pc.match_substring_regex(self._texts, '^("|<<)')
        # One more, for what is not there.
        resource = np.append(~is_other.to_numpy(zero_copy_only=False), False)
        return resource[codes]

    def _among(self, place: int, terms: Iterable[object]) -> Mask:
        return np.isin(self._codes[place], self._numbers(map(str, terms)))

    def _equal(self, one: StatementTerm, other: StatementTerm) -> Mask:
        a, b = (self._column(each) for each in (one, other))
        return np.broadcast_to(a == b, len(self._carried))

    def _column(self, part: StatementTerm) -> Codes:
        return self._codes[part] if isinstance(part, int) else self._numbers([part])

    def _numbers(self, texts: Iterable[str]) -> Codes:
        """Return the numbers of terms; another one for those that no statement has."""
        spelled = pa.array(list(texts), self._texts.type)
        places = pc.index_in(spelled, self._texts).cast(pa.int64())
        numbers: Codes = pc.fill_null(places, _ABSENT).to_numpy()
        return numbers


# --- blank nodes belong to their stream (S3) ---


def _scoped(table: pa.Table) -> pa.Table:
    """Put the prefix of the stream before the labels of blank nodes."""
    if table.num_rows == 0:
        return table
    streams = table.column(rows.STREAM).combine_chunks().dictionary_encode()
    prefixes = [stream_prefix(each) for each in streams.dictionary.to_pylist()]
    numbers = streams.indices.to_pylist()
    for name in (rows.SUBJECT, rows.OBJECT, rows.GRAPH):
        column = table.column(name)
        has_labels = pc.fill_null(pc.match_substring_regex(column, "^(_:|<<)"), False)
        if not pc.any(has_labels).as_py():
            continue
        texts = column.to_pylist()
        for row in pc.indices_nonzero(has_labels).to_pylist():
            texts[row] = _labelled(texts[row], prefixes[numbers[row]])
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(texts, pa.string()))
    return table


def _labelled(term: str, prefix: str) -> str:
    if term.startswith("_:"):
        return f"_:{prefix}{term[2:]}"
    return str(relabelled_term(parse_term(term), lambda label: prefix + label))


# --- entailment by lookup (N1) ---


def _with_consequences(table: pa.Table, matching: Matching) -> pa.Table:
    """Add the consequences of statements as more rows, if a pattern has to look at all of them."""
    count = table.num_rows
    carried = table.append_column(_CARRIED, pa.array(np.ones(count, dtype=bool)))
    if matching.table is None or not matching.looks_up:
        return carried
    places, triples = [], []
    known: dict[tuple[str, ...], tuple[tuple[str, ...], ...]] = {}
    given = zip(*(table.column(name).to_pylist() for name in rows.TERMS[:_GRAPH]), strict=True)
    for place, triple in enumerate(given):
        if triple not in known:
            known[triple] = tuple(_consequences(triple, matching.table))
        for derived in known[triple]:
            places.append(place)
            triples.append(derived)
    if not triples:
        return carried
    more = table.take(pa.array(places))
    for name, column in zip(rows.TERMS, zip(*triples, strict=True), strict=False):
        index = more.schema.get_field_index(name)
        more = more.set_column(index, name, pa.array(column, pa.string()))
    more = more.append_column(_CARRIED, pa.array(np.zeros(len(places), dtype=bool)))
    return pa.concat_tables([carried, more]).combine_chunks()


def _consequences(triple: tuple[str, ...], table: Table) -> Iterator[tuple[str, ...]]:
    for each in table.consequences(parse_statement(f"{' '.join(triple)} .")):
        yield str(each.subject), str(each.predicate), str(each.object)
