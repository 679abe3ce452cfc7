"""Everything that is mapped from one source: the terms of its triples maps, and their frames.

The terms of all triples maps are columns of one projection, so that a record is parsed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.mapping.elements import apart_by_graph
from quadweir.mapping.functions.registry import MappingFunctions
from quadweir.mapping.generate import Generator, Made
from quadweir.mapping.joinframes import (
    OBJECT,
    REASONS,
    SEVERAL,
    call_problems,
    join_keys,
    operands_of,
)
from quadweir.mapping.model import (
    ConstantTerm,
    FunctionExecution,
    ObjectMap,
    PerRecord,
    PredicateObjectMap,
    RefObjectMap,
    TermMap,
    TriplesMap,
    constant,
    walk_term,
)
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.prune import MayMatch, Witness
from quadweir.mapping.quads import TARGET, Entry, all_reasons, flatten, flatten_elements, join_lines
from quadweir.mapping.records import Records
from quadweir.mapping.sources import LogicalSource, LogicalTarget
from quadweir.mapping.staticjoins import StaticJoin
from quadweir.mapping.values import ColumnForm, Terms
from quadweir.mapping.windowjoins import Hosting, WindowJoin
from quadweir.terms import IRI
from quadweir.vocab import RDF

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

BAD: Final = "bad_records"
GOOD: Final = "records"
_IS_BAD: Final = "_quadweir_bad"
_REASON: Final = "_quadweir_reason"
_SHARED: Final = "_quadweir_shared"
_TEXT: Final = "_quadweir_plain"
_TYPED: Final = "_quadweir_typed"
_WITNESS: Final = "_quadweir_witness"
_TYPES: Final = {TARGET: "int", rows.EVENT_TIME: "bigint", rows.POSITION: "bigint"}
"""The types of columns that are not texts."""


@final
@dataclass(slots=True)
class SourceGroup:
    """Everything that is mapped from one source."""

    records: Records
    logical: LogicalSource
    base: str | None
    registry: MappingFunctions
    target_numbers: Mapping[LogicalTarget, int]
    is_timed: bool = False
    """Whether the records have the columns of `rows.ELEMENT`."""
    has_several_graphs: bool = False
    """Whether a record can make quads in more than one graph."""
    entries: list[Entry] = field(default_factory=list)
    _columns: dict[str, Column] = field(default_factory=dict)
    _made: dict[tuple[object, ...], Terms] = field(default_factory=dict)
    _entire: list[str] = field(default_factory=list)
    """The names of columns that have no pieces."""
    _problems: list[Column] = field(default_factory=list)
    _shared: dict[tuple[str, str], tuple[str, Column, Column]] = field(default_factory=dict)
    _second: dict[tuple[str, str], tuple[str, Column, Column]] = field(default_factory=dict)
    _witness: Witness | None = None
    left_out: int = 0
    """How many quads of each record are not made, since nobody asks for them."""

    @property
    def made(self) -> int:
        """How many quads a record makes at most, with those that are left out."""
        return len(self.entries) + self.left_out - (self._witness is not None)

    def prune(self, is_asked: MayMatch) -> None:
        """Leave out quads that nobody asks for, after all triples maps were added.

        Records that cannot be mapped stay dead letters, also if only such a quad is at fault (P5).
        """
        kept = [entry for entry in self.entries if is_asked(entry)]
        left_out = [entry for entry in self.entries if not is_asked(entry)]
        if not left_out:
            return
        self._witness = Witness.of(kept, left_out, lambda one: self.records.values[one])
        self.entries, self.left_out = kept, len(left_out)
        if self._witness is not None:
            self.entries = [*kept, Witness.entry(F.col(_WITNESS))]

    @property
    def frame(self) -> DataFrame:
        """The records with the shared columns of terms; available when all triples maps are
        added.
        """
        return self._with_shared(self.records.frame)

    def _with_shared(self, frame: DataFrame) -> DataFrame:
        for kept in (self._shared, self._second):
            if kept:
                frame = frame.withColumns({name: column for name, column, _ in kept.values()})
        return frame

    def share(self, done: str, to: str, column: Column, *, is_second: bool = False) -> Column:
        """Share an operation on references, so that it runs once for all triples maps."""
        kept = self._second if is_second else self._shared
        name = f"{_SHARED}{int(is_second)}_{len(kept)}"
        return kept.setdefault((done, to), (name, column, F.col(name)))[2]

    @property
    def columns(self) -> Mapping[str, Column]:
        """The requested terms, by the names of their columns."""
        return self._columns

    def add_problem(self, problem: Column) -> None:
        """Report records for which `problem` has a reason."""
        self._problems.append(problem)

    # -- terms -----------------------------------------------------------------------------------

    def generator(self, triples_map: TriplesMap) -> Generator:
        """The term generator of one triples map."""
        records = self.records
        if records.is_placed:
            label = F.concat(
                F.lit("r_"),
                F.md5(
                    F.concat_ws("\n", F.lit(records.shown), F.lit(triples_map.name), records.place)
                ),
            )
        else:
            label = F.concat(F.lit("r_"), F.replace(F.uuid(), F.lit("-"), F.lit("")))
        return Generator(records.values, self._base(triples_map), label, self.registry, self.share)

    def _base(self, triples_map: TriplesMap) -> str | None:
        return triples_map.base_iri if triples_map.base_iri is not None else self.base

    def term(self, term_map: TermMap, triples_map: TriplesMap) -> Terms:
        """The column of a term map's terms; equal term maps share one."""
        if isinstance(term_map.expression, ConstantTerm) and term_map.condition is None:
            return self.generator(triples_map).term(term_map).terms
        own = triples_map.name if _has_own_node(term_map) else None
        key = (replace(term_map, targets=()), self._base(triples_map), own)
        if key not in self._made:
            generator = self.generator(triples_map)
            made = self._keep(generator.term(term_map))
            self._made[key] = replace(made, needs=generator.needs(term_map))
        return self._made[key]

    def _keep(self, made: Made) -> Terms:
        name = f"t{len(self._columns)}"
        self._columns[name] = made.terms.column
        self._problems.extend(made.problems)
        column, terms, several = F.col(name), made.terms, None
        if terms.several is not None:
            self._columns[f"{name}{SEVERAL}"] = terms.several
            self._entire.append(f"{name}{SEVERAL}")
            several = F.col(f"{name}{SEVERAL}")
        if not terms.many and not terms.pieces:
            self._entire.append(name)
            return Terms(column, pieces=(column,), several=several)
        return Terms(column, terms.many, terms.pieces, several)

    def subject(self, triples_map: TriplesMap) -> Terms:
        """The column of a triples map's subjects; an unusable record has none."""
        term_map = triples_map.subject.term
        if self.records.reason is None:
            return self.term(term_map, triples_map)
        own = triples_map.name if _has_own_node(term_map) else None
        key = ("subject", replace(term_map, targets=()), self._base(triples_map), own)
        if key not in self._made:
            generator = self.generator(triples_map)
            made = generator.term(term_map)
            # Not a filter on the records: Spark would move it below the parsing, and parse twice.
            guarded = made.terms.when(self.records.reason.isNull())
            guarded = replace(guarded, pieces=made.terms.pieces)
            kept = self._keep(replace(made, terms=guarded))
            self._made[key] = replace(kept, needs=generator.needs(term_map))
        return self._made[key]

    def _number(self, *terms: TermMap | RefObjectMap | None) -> tuple[int | None, ...]:
        found: dict[int, None] = {}
        for term in terms:
            if term is None:
                continue
            inner = walk_term(term) if isinstance(term, TermMap) else (term,)
            for one in inner:
                found.update({self.target_numbers[target]: None for target in one.targets})
        return tuple(found) or (None,)

    # -- triples ---------------------------------------------------------------------------------

    def add(
        self,
        triples_map: TriplesMap,
        mapping: RmlMapping,
        groups: Mapping[LogicalSource, SourceGroup],
        hosting: Hosting,
    ) -> list[StaticJoin | WindowJoin]:
        """Add a triples map; return the joins that it needs."""
        joins: list[StaticJoin | WindowJoin] = []
        subject_map = triples_map.subject
        subject = self.subject(triples_map)
        is_a = constant(IRI(RDF.type))
        for one in subject_map.classes:
            for graph in subject_map.graphs or (None,):
                self.entries.append(
                    Entry(
                        subject,
                        self.term(is_a, triples_map),
                        self.term(constant(one), triples_map),
                        self._graph(graph, triples_map),
                        self._number(subject_map.term, graph),
                    )
                )
        for pair in triples_map.predicate_objects:
            for item in pair.objects:
                if isinstance(item, RefObjectMap) and not self._is_own(item, mapping):
                    joins.append(self._join(triples_map, pair, item, mapping, groups, hosting))
                    continue
                objects = self._object(item, triples_map, mapping)
                self.entries.extend(
                    replace(entry, object=objects)
                    for entry in self.pairs(triples_map, pair, item, objects)
                )
        return joins

    def _is_own(self, item: RefObjectMap, mapping: RmlMapping) -> bool:
        return not item.conditions and mapping.triples_map(item.parent).source == self.logical

    def _object(self, item: ObjectMap, triples_map: TriplesMap, mapping: RmlMapping) -> Terms:
        if isinstance(item, TermMap):
            return self.term(item, triples_map)
        parent = mapping.triples_map(item.parent)
        terms = self.subject(parent)
        if item.condition is None:
            return terms
        return self._guarded(terms, item.condition, triples_map)

    def _guarded(
        self, terms: Terms, condition: FunctionExecution, triples_map: TriplesMap
    ) -> Terms:
        found = self.generator(triples_map).condition(condition)
        holds = self._keep(Made(Terms(found.holds), found.problems))
        return terms.when(holds.column)

    def pairs(
        self, triples_map: TriplesMap, pair: PredicateObjectMap, item: ObjectMap, objects: Terms
    ) -> Iterable[Entry]:
        """The triples of a predicate-object map with these objects, in all its graphs."""
        subject_map = triples_map.subject
        subject = self.subject(triples_map)
        graphs = tuple(dict.fromkeys((*subject_map.graphs, *pair.graphs))) or (None,)
        for predicate in pair.predicates:
            for graph in graphs:
                yield Entry(
                    subject,
                    self.term(predicate, triples_map),
                    objects,
                    self._graph(graph, triples_map),
                    self._number(subject_map.term, predicate, item, graph),
                )

    def _graph(self, graph: TermMap | None, triples_map: TriplesMap) -> Terms | None:
        if graph is None or graph.is_default_graph:
            return None
        return self.term(graph, triples_map)

    # -- joins -----------------------------------------------------------------------------------

    def _join(
        self,
        triples_map: TriplesMap,
        pair: PredicateObjectMap,
        item: RefObjectMap,
        mapping: RmlMapping,
        groups: Mapping[LogicalSource, SourceGroup],
        hosting: Hosting,
    ) -> StaticJoin | WindowJoin:
        parent = mapping.triples_map(item.parent)
        other = groups[parent.source]
        if self.records.frame.isStreaming and other.records.frame.isStreaming:
            return hosting.join(self, other, triples_map, pair, item, parent)
        mine = self.generator(triples_map)
        theirs = other.generator(parent)
        keys = [join_keys(condition, item, mine, theirs) for condition in item.conditions]
        found = other.subject(parent).as_many()
        placeholder = Terms(F.col(OBJECT))
        guard = mine.condition(item.condition) if item.condition is not None else None
        for group, maker, operands in zip(
            (self, other), (mine, theirs), operands_of(item), strict=True
        ):
            for problem in call_problems(maker, operands):
                group.add_problem(problem)
        for problem in guard.problems if guard is not None else ():
            self.add_problem(problem)
        return StaticJoin(
            child=self,
            parent=other,
            found=found,
            keys=keys,
            guard=guard.holds if guard is not None else None,
            entries=list(self.pairs(triples_map, pair, item, placeholder)),
            how=f"join of {self.records.shown} with {other.records.shown} "
            + (f"on {len(keys)} conditions" if keys else "without conditions: every pair"),
        )

    def alone(self) -> SourceGroup:
        """A new empty group over the same records."""
        return SourceGroup(
            self.records,
            self.logical,
            self.base,
            self.registry,
            self.target_numbers,
            self.is_timed,
        )

    # -- frames ----------------------------------------------------------------------------------

    def terms(self, observation: Observation | None, carry: Sequence[str]) -> DataFrame:
        """The terms of each record that need no join, after columns of the record to keep."""
        reason = self.records.reason
        columns = [column.alias(name) for name, column in self._columns.items()] or [F.lit(1)]
        if observation is None:
            return self.frame.select(*carry, *columns)
        if not self._problems:
            # Counted where rows are smallest: each row is copied for it.
            is_bad = reason.isNotNull() if reason is not None else F.lit(False)
            counted = _counted(self.records.frame, observation, is_bad)
            return self._with_shared(counted).select(*carry, *columns)
        # Counted after the terms are made, so that both come from one evaluation.
        terms = self.frame.select(*carry, *columns, self._is_bad().alias(_IS_BAD))
        return _counted(terms, observation, F.col(_IS_BAD))

    def _is_bad(self) -> Column:
        reasons = [self.records.reason] if self.records.reason is not None else []
        faults = [one.isNotNull() for one in reasons + self._problems]
        # A CASE, not an OR: Spark computes what several parts of an OR share before it needs it.
        return reduce(lambda rest, one: F.when(one, True).otherwise(rest), faults, F.lit(False))

    @property
    def is_counted(self) -> bool:
        """Whether the number of records is known, and all can be used."""
        return self.records.count is not None and not self._problems

    @property
    def is_flat(self) -> bool:
        """Whether every quad has one term in each place, made of known pieces."""
        return all(part.pieces for entry in self.entries for part in entry.terms)

    def texts(self, observation: Observation | None) -> DataFrame:
        """The lines of each record's quads that need no join, as one text; `is_flat` holds."""
        if not self.entries:
            return nothing(self.terms(observation, ()), [rows.LINE])
        reason = self.records.reason
        frame = self.records.frame
        if observation is not None and not self._problems:
            is_bad = reason.isNotNull() if reason is not None else F.lit(False)
            frame = _counted(frame, observation, is_bad)
        frame = self._with_shared(frame)
        columns = {name: self._columns[name] for name in self._entire}
        if observation is not None and self._problems:
            frame = frame.withColumns({**columns, _IS_BAD: self._is_bad()})
            frame = _counted(frame, observation, F.col(_IS_BAD))
        elif columns:
            frame = frame.withColumns(columns)
        ends, text = join_lines(self.entries, reason.isNull() if reason is not None else None)
        return frame.withColumns(ends).select(text.alias(rows.LINE)).where(F.col(rows.LINE) != "")

    def tagged(self, with_target: bool) -> DataFrame:
        """The quads that need no join, and the dead letters."""
        frame, reasons, usable = self.with_reasons()
        shown = F.lit(self.records.shown)
        element = self.element
        return self.apart(
            flatten(frame, reasons, usable, self.entries, with_target, shown, element)
        )

    def with_reasons(self) -> tuple[DataFrame, Column, Column]:
        """The terms of each record; the reasons why it cannot be used completely; whether it can be
        used at all.
        """
        records = self.records
        names = [f"p{number}" for number in range(len(self._problems))]
        reason = records.reason if records.reason is not None else F.lit(None)
        frame = self.frame.select(
            F.coalesce(records.place, F.lit("")).alias(rows.PLACE),
            F.substring(records.text, 1, rows.DEAD_LETTER_TEXT).alias(rows.RECORD),
            reason.cast("string").alias(_REASON),
            *self.element,
            *[one.alias(name) for name, one in zip(names, self._problems, strict=True)],
            *[column.alias(name) for name, column in self._columns.items()],
            *([self._witness.made.alias(_WITNESS)] if self._witness is not None else []),
        )
        if self._witness is not None:
            is_needed = self._witness.is_needed(F.col(_WITNESS))
            frame = frame.withColumn(_WITNESS, is_needed)
        return frame, all_reasons(_REASON, names), F.col(_REASON).isNull()

    def apart(self, quads: DataFrame) -> DataFrame:
        """Set a position for each graph of one record's quads."""
        return apart_by_graph(quads) if self.is_timed and self.has_several_graphs else quads

    @property
    def element(self) -> tuple[str, ...]:
        """The columns that identify a quad's element."""
        return rows.ELEMENT if self.is_timed else ()

    def with_letters(self, *, reports_bad: bool) -> DataFrame:
        """The records, each with its place, its text, and the reasons why it cannot be used
        completely.

        Args:
            reports_bad: whether to report the reasons here; a record can still turn out to be late.
        """
        records = self.records
        names = [f"_quadweir_problem{number}" for number in range(len(self._problems))]
        reason = records.reason if records.reason is not None else F.lit(None)
        problems = dict(zip(names, self._problems, strict=True))
        frame = self.frame.withColumns({**problems, _REASON: reason.cast("string")})
        reasons = all_reasons(_REASON, names)
        is_bad = (F.size(reasons) > 0) & F.lit(reports_bad)
        return frame.withColumns(
            {
                REASONS: F.when(is_bad, reasons),
                rows.SOURCE: F.lit(records.shown),
                rows.PLACE: F.coalesce(records.place, F.lit("")),
                rows.RECORD: F.substring(records.text, 1, rows.DEAD_LETTER_TEXT),
            }
        ).drop(*names)

    def dead_letters(self) -> DataFrame:
        """The records that have a fault, once for each fault."""
        records = self.records
        reasons = ([records.reason] if records.reason is not None else []) + self._problems
        if not reasons:
            return _no_letters(records.frame)
        found = F.array_distinct(F.array_compact(F.array(*reasons)))
        if records.reason is not None:
            found = F.when(records.reason.isNotNull(), F.array(records.reason)).otherwise(found)
        return self.frame.select(
            F.lit(records.shown).alias(rows.SOURCE),
            F.coalesce(records.place, F.lit("")).alias(rows.PLACE),
            F.explode(found).alias(rows.REASON),
            F.substring(records.text, 1, rows.DEAD_LETTER_TEXT).alias(rows.RECORD),
        )


def tagged_element(group: SourceGroup) -> DataFrame:
    """The element of each record as timed lines, and the dead letters; see `Compiled`."""
    frame, reasons, usable = group.with_reasons()
    return flatten_elements(frame, reasons, usable, group.entries, F.lit(group.records.shown))


def _has_own_node(term: TermMap) -> bool:
    return any(isinstance(one.expression, PerRecord) for one in walk_term(term))


def _counted(frame: DataFrame, observation: Observation, is_bad: Column) -> DataFrame:
    return frame.observe(observation, F.count(F.lit(1)).alias(GOOD), F.count_if(is_bad).alias(BAD))


def nothing(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """An empty frame with these columns; Spark still evaluates `frame` for it."""
    # Never true, but the optimizer does not know that; otherwise it would drop the counting with
    # the rows.
    return frame.where(F.spark_partition_id() < 0).select(
        *[F.lit(None).cast(_TYPES.get(name, "string")).alias(name) for name in names]
    )


def _no_letters(frame: DataFrame) -> DataFrame:
    return frame.where(F.lit(False)).select(
        *[F.lit(None).cast("string").alias(name) for name in rows.DEAD_LETTER_SCHEMA.names]
    )


def prepared(records: Records) -> Records:
    """Give the reason, every text and every typed join key its own column.

    Subjects ask for the reason, and encoding and escaping name a text several times; Spark would
    copy the whole expression to each place, and run code that is too long for Java to compile.
    Spark drops unused columns.
    """
    columns: dict[str, Column] = {}
    values = dict(records.values)
    for number, (reference, value) in enumerate(records.values.items()):
        if not value.many:
            name = f"{_TEXT}{number}"
            columns[name] = value.text().column
            key = None
            if value.form is ColumnForm.VARIANT:
                columns[f"{_TYPED}{number}"] = value.keyed().column
                key = F.col(f"{_TYPED}{number}")
            several = value.several()
            if several is not None:
                columns[f"{name}{SEVERAL}"] = several
                several = F.col(f"{name}{SEVERAL}")
            values[reference] = replace(value, plain=F.col(name), key=key, rest=several)
    reason = records.reason
    if reason is not None:
        columns[_REASON] = reason.cast("string")
        reason = F.col(_REASON)
    frame = records.frame.withColumns(columns) if columns else records.frame
    return replace(records, frame=frame, values=values, reason=reason)
