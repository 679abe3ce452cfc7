"""The answers of a network as lines of text."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from quadweir import rows
from quadweir.errors import UsageError
from quadweir.runtime.constructing import SpelledQuad, filled_template, statement_line
from quadweir.sinks.answertext import Spelled, answer_text, json_term
from quadweir.sinks.lineformat import LineFormat
from quadweir.terms import BlankNode, Variable

if TYPE_CHECKING:
    from quadweir.algebra.query import ConstructForm
    from quadweir.runtime.network.delivery import NetworkAnswer


@final
class SolutionNames:
    """Names the solutions of a batch, whose templates may make blank nodes for each.

    No two solutions have the same name, and a repeated batch gives the same names, in whatever order.

    Args:
        batch: the number of the batch.
    """

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._seen: Counter[str] = Counter()

    def of(
        self,
        queries: Sequence[int],
        t: Sequence[int],
        sign: Sequence[str],
        bound: Iterable[Spelled],
    ) -> list[str]:
        """Return the names of solutions of queries, whose numbers are given for each."""
        found = []
        for solution in zip(queries, t, sign, *bound, strict=True):
            text = repr((self._batch, solution))
            found.append(hashlib.sha256(f"{self._seen[text]}{text}".encode()).hexdigest()[:24])
            self._seen[text] += 1
        return found


def makes_blank_nodes(form: ConstructForm | None) -> bool:
    """Return whether a template has blank nodes."""
    return form is not None and any(
        isinstance(term, BlankNode) for triple in form.template for term in triple.parts
    )


@final
@dataclass(frozen=True, slots=True)
class SolutionColumns:
    """Solutions of queries that select the same variables.

    Attributes:
        queries: the number of the query of each.
        t: the report instant of each.
        sign: the sign of each.
        bound: the spellings of each variable, None where it is not bound.
        names: names each solution, if blank nodes are made for it; else empty.
        construct: the triples that are made of a solution; None if solutions are the answers.
    """

    queries: Sequence[int]
    t: Sequence[int]
    sign: Sequence[str]
    bound: Mapping[str, Spelled]
    names: Sequence[str]
    construct: ConstructForm | None

    def graphs(self) -> Iterator[list[str]]:
        """Yield the statements that a CONSTRUCT makes of each solution, sorted; bad ones are left out."""
        for quads in self.quads():
            yield sorted(map(statement_line, quads))

    def quads(self) -> Iterator[set[SpelledQuad]]:
        """Yield the quads that a CONSTRUCT makes of each solution."""
        assert self.construct is not None
        columns = self.bound
        for place in range(len(self.t)):

            def value_of(variable: Variable, place: int = place) -> str | None:
                column = columns.get(variable.name)
                return None if column is None else column[place]

            name = self.names[place] if self.names else ""
            yield set(filled_template(self.construct, value_of, name))

    def answers(self, query: str) -> Iterator[NetworkAnswer]:
        """Yield the answers of one query for a function; a CONSTRUCT without triples gives none."""
        from quadweir.runtime.network.delivery import NetworkAnswer

        graphs = self.graphs() if self.construct is not None else None
        for place, (t, sign) in enumerate(zip(self.t, self.sign, strict=True)):
            if graphs is not None:
                graph = tuple(next(graphs))
                if graph:
                    yield NetworkAnswer(query, t, sign, {}, graph)
                continue
            bindings = {
                name: column[place]
                for name, column in self.bound.items()
                if column[place] is not None
            }
            yield NetworkAnswer(query, t, sign, bindings)  # type: ignore[arg-type]


def network_lines(found: SolutionColumns, names: Mapping[int, str]) -> Iterator[str]:
    r"""Yield answers as JSON lines that say which query each belongs to.

    >>> one = SolutionColumns([4], [5], ["+"], {"x": ["<urn:a>"]}, [], None)
    >>> list(network_lines(one, {4: "rooms"}))
    ['{"query":"rooms","t":5,"sign":"+","bindings":{"x":{"type":"uri","value":"urn:a"}}}']
    """
    spelled = {each: json.dumps(names[each], ensure_ascii=False) for each in set(found.queries)}
    heads = (
        f'{{"query":{spelled[query]},"{rows.REPORT}":{t},"{rows.SIGN}":"{sign}","'
        for query, t, sign in zip(found.queries, found.t, found.sign, strict=True)
    )
    if found.construct is not None:
        for head, graph in zip(heads, found.graphs(), strict=True):
            if graph:
                lines = json.dumps(graph, ensure_ascii=False, separators=(",", ":"))
                yield f'{head}{rows.TRIPLES}":{lines}}}'
        return
    variables = sorted(found.bound)
    members = [
        _members(f"{json.dumps(name, ensure_ascii=False)}:", found.bound[name])
        for name in variables
    ]
    for head, *own in zip(heads, *members, strict=True):
        inside = ",".join(each for each in own if each)
        yield f'{head}{rows.BINDINGS}":{{{inside}}}}}'


def _members(key: str, terms: Spelled) -> list[str]:
    """Return each term as a member of a JSON object, each different one made once."""
    made = {term: "" if term is None else key + json_term(term) for term in set(terms)}
    return [made[term] for term in terms]


def query_lines(found: SolutionColumns, form: LineFormat) -> list[str]:
    """Return the answers of one query as lines, as a query alone writes them.

    Raises:
        UsageError: the answers cannot be written in this format.
    """
    if found.construct is None:
        if form is LineFormat.JSONL:
            return [*_plain_lines(found)]
        lines = answer_text(form, found.t, found.sign, found.bound)
        if lines is None:
            raise UsageError(
                f"solutions cannot be written as {form}",
                hint="Write them as answers-jsonl, answers-csv or answers-tsv.",
            )
        return lines
    graphs = zip(found.t, found.sign, found.graphs(), strict=True)
    match form:
        case LineFormat.NQUADS | LineFormat.NTRIPLES:
            return [statement for _, _, graph in graphs for statement in graph]
        case LineFormat.TIMED_LINES:
            return [
                f"{t} {statement}"
                for t, sign, quads in zip(found.t, found.sign, found.quads(), strict=True)
                for statement in _as_element(f"{t} {sign}", quads)
            ]
        case LineFormat.ANSWERS_JSONL | LineFormat.JSONL:
            return [
                _json({rows.REPORT: t, rows.SIGN: sign, rows.TRIPLES: graph})
                for t, sign, graph in graphs
                if graph
            ]
        case _:
            raise UsageError(
                f"the triples of a CONSTRUCT cannot be written as {form}",
                hint="Write them as answers-jsonl, nquads or timed-lines.",
            )


def _plain_lines(found: SolutionColumns) -> Iterator[str]:
    """Yield solutions as rows of JSON, with the spellings of terms."""
    for place, (t, sign) in enumerate(zip(found.t, found.sign, strict=True)):
        bound = {name: column[place] for name, column in found.bound.items()}
        yield _json({rows.REPORT: t, rows.SIGN: sign, rows.BINDINGS: bound})


def _json(row: Mapping[str, object]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def _as_element(salt: str, quads: Collection[SpelledQuad]) -> list[str]:
    """Return the triples of an answer with a graph name that shows that they are one element.

    Quads that are in a graph keep its name, as in `answers.asstatement_lines`.
    """
    found = sorted(map(statement_line, quads))
    if len(quads) < 2:
        return found
    digest = hashlib.sha256(" ".join((salt, *found)).encode()).hexdigest()[:16]
    name = f"_:a{digest}"
    return sorted(
        statement_line((one, verb, end, graph or name)) for one, verb, end, graph in quads
    )
