"""The form in which answers leave: columns of a DataFrame.

Shards give plain columns, one for each variable, and rows that hold the facts of a shard instead of
an answer. `present` turns them into what users see. It also fills in the template of a CONSTRUCT,
with column expressions.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import LongType, StringType, StructField, StructType

from quadweir import rows, spelling
from quadweir.algebra.query import ConstructForm, ContinuousQuery, TemplateTerm, TripleTemplate
from quadweir.errors import InternalError
from quadweir.kernel.answers import Answers
from quadweir.kernel.arrays import ALWAYS
from quadweir.kernel.shard import Shard
from quadweir.runtime.shard.facts import QUERY_FACTS
from quadweir.runtime.wire.deadletters import LETTER
from quadweir.terms import BlankNode, Variable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SIZE: Final = "_size"
SOLUTION: Final = "_solution"
"""Identifies a solution, if a template makes blank nodes for each."""


@final
@dataclass(frozen=True)
class AnswerForm:
    """The columns of a query's answers on their way out of the workers."""

    variables: tuple[Variable, ...]
    numbered: bool

    @staticmethod
    def of(query: ContinuousQuery, variables: tuple[Variable, ...]) -> AnswerForm:
        return AnswerForm(variables, _makes_blank_nodes(query))

    @property
    def schema(self) -> StructType:
        """Report instant, sign, a column for each variable, and the facts."""
        return StructType(
            [
                StructField(rows.REPORT, LongType()),
                StructField(rows.SIGN, StringType()),
                *(StructField(_column(place), StringType()) for place in range(self.width)),
                StructField(SOLUTION, StringType()),
                StructField(LETTER, StringType()),
                *(StructField(name, LongType()) for name in QUERY_FACTS),
            ]
        )

    @property
    def width(self) -> int:
        return len(self.variables)

    def write(self, shard: Shard, answers: Answers, after: int, salt: str) -> pa.RecordBatch:  # noqa: ARG002 - as for changes
        """Return the answers of a shard in that form; `salt` identifies the step of the shard."""
        count = len(answers)
        signs = pc.if_else(pa.array(answers.sign > 0), "+", "-")
        names = self.solution_names(answers, salt)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(answers.t, pa.int64()),
                signs.cast(pa.string()),
                *(column.cast(pa.string()) for column in answers.values),
                pa.nulls(count, pa.string()) if names is None else names,
                pa.nulls(count, pa.string()),
                *(pa.nulls(count, pa.int64()) for _ in QUERY_FACTS),
            ],
            names=self.schema.names,
        )

    def facts(self, facts: Mapping[str, int]) -> pa.RecordBatch:
        """Return the row with the facts of a shard."""
        texts = [pa.nulls(1, pa.string()) for _ in range(self.width + 3)]
        numbers = [pa.array([facts.get(name)], pa.int64()) for name in QUERY_FACTS]
        return pa.RecordBatch.from_arrays(
            [pa.nulls(1, pa.int64()), *texts, *numbers], names=self.schema.names
        )

    def letters(self, letters: Sequence[str]) -> pa.RecordBatch:
        """Return dead letters as rows."""
        columns = [
            pa.array(letters, pa.string())
            if field.name == LETTER
            else pa.nulls(len(letters), to_arrow_type(field.dataType))
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, names=self.schema.names)

    def solution_names(self, answers: Answers, salt: str) -> pa.Array | None:
        """Name each solution, if the query needs it; a repeated step gives the same names."""
        if not self.numbered:
            return None
        columns = [column.to_pylist() for column in answers.values]
        seen: Counter[str] = Counter()
        found = []
        for place in range(len(answers)):
            values = [column[place] for column in columns]
            text = repr((salt, int(answers.t[place]), int(answers.sign[place]), values))
            found.append(hashlib.sha256(f"{seen[text]}{text}".encode()).hexdigest()[:24])
            seen[text] += 1
        return pa.array(found, pa.string())


def present(raw: DataFrame, query: ContinuousQuery, form: AnswerForm) -> DataFrame:
    """Return answers as users see them.

    Returns:
        Report instant, sign, and either `bindings`, a struct of canonical spellings with NULL for
        what is not bound, or, for CONSTRUCT, `graph`, an array of quads with NULL for the default
        graph.
    """
    answers = raw.where(F.col(rows.SIGN).isNotNull())
    named = {variable: F.col(_column(place)) for place, variable in enumerate(form.variables)}
    if isinstance(query.form, ConstructForm):
        graph = _filled(query.form, named).alias(rows.TRIPLES)
        found = answers.select(rows.REPORT, rows.SIGN, graph)
        return found.where(F.size(rows.TRIPLES) > 0)
    bindings = F.struct(*[column.alias(each.name) for each, column in named.items()])
    return answers.select(rows.REPORT, rows.SIGN, bindings.alias(rows.BINDINGS))


def with_times(raw: DataFrame, query: ContinuousQuery, form: AnswerForm, stream: str) -> DataFrame:
    """Return the triples of a CONSTRUCT as statements, and how far time has come in their stream.

    Shards report in every batch through which instant everything is known: all answers until then
    have left. That becomes a row without a triple. A reader of the stream need not guess it from the
    answers, which may be missing, or leave before earlier ones.
    """
    if not isinstance(query.form, ConstructForm):
        raise InternalError("only a CONSTRUCT makes statements")
    named = {variable: F.col(_column(place)) for place, variable in enumerate(form.variables)}
    is_answer = F.col(rows.SIGN).isNotNull()
    nothing = F.array(F.struct(*[F.lit(None).cast("string").alias(n) for n in rows.TERMS]))
    graph = F.when(is_answer, _filled(query.form, named)).otherwise(nothing)
    found = raw.where(is_answer | (F.col("through") > ALWAYS)).select(
        F.coalesce(rows.REPORT, "through").alias(rows.REPORT),
        rows.SIGN,
        graph.alias(rows.TRIPLES),
    )
    return as_statements(found, stream)


def as_statements(answers: DataFrame, stream: str, *, named: bool = True) -> DataFrame:
    """Return the triples of CONSTRUCT answers as statements of a stream (A5).

    Args:
        answers: what `present` returns.
        stream: the stream.
        named: give the triples that the template puts into no graph a common graph name, if there are
            several. In timed lines it shows that they are one element.
    """
    number = F.xxhash64(rows.REPORT, rows.SIGN, rows.TRIPLES)
    found = answers.select(
        F.lit(stream).alias(rows.STREAM),
        F.col(rows.REPORT).alias(rows.EVENT_TIME),
        number.alias(rows.POSITION),
        F.size(rows.TRIPLES).alias(_SIZE),
        F.inline(rows.TRIPLES),
    )
    graph = F.col(rows.GRAPH)
    if named:
        name = F.concat(F.lit("_:a"), F.lower(F.hex(rows.POSITION)))
        graph = F.coalesce(graph, F.when(F.col(_SIZE) > 1, name))
    return found.select(*rows.ELEMENT, *rows.TERMS[:3], graph.alias(rows.GRAPH))


def _column(place: int) -> str:
    return f"v{place}"


def _makes_blank_nodes(query: ContinuousQuery) -> bool:
    return isinstance(query.form, ConstructForm) and any(
        isinstance(term, BlankNode) for triple in query.form.template for term in triple.parts
    )


def _filled(form: ConstructForm, named: Mapping[Variable, Column]) -> Column:
    """Fill in a template; blank nodes are new for each solution (S3), and bad triples are left out."""
    nothing = F.lit(None).cast("string")

    def value(term: TemplateTerm | None) -> Column:
        match term:
            case None:
                return nothing
            case Variable():
                return named.get(term, nothing)
            case BlankNode():
                return F.concat(F.lit("_:c"), F.col(SOLUTION), F.lit(f"-{term.label}"))
            case TripleTemplate():
                return spelling.triple_term(
                    value(term.subject), value(term.predicate), value(term.object)
                )
            case _:
                return F.lit(str(term))

    found = []
    for triple in form.template:
        subject, predicate, end, graph = terms = [value(term) for term in triple.terms]
        is_quad = spelling.is_resource(subject) & spelling.is_iri(predicate) & end.isNotNull()
        if triple.graph is not None:
            is_quad = is_quad & spelling.is_resource(graph)
        named_terms = zip(rows.TERMS, terms, strict=True)
        found.append(F.when(is_quad, F.struct(*[term.alias(name) for name, term in named_terms])))
    return F.array_distinct(F.array_compact(F.array(*found)))
