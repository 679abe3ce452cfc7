"""The root: a continuous query, whatever language it was written in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, final

from quadweir.algebra.node import Node, require
from quadweir.algebra.patterns import Pattern
from quadweir.algebra.streams import EVERY_INSTANT, ON_CHANGE, OutputOperator, Report, Tick
from quadweir.algebra.windows import Window
from quadweir.terms import IRI, BlankNode, Ground, Variable


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SelectForm(Node):
    """Answers are solutions; `variables` are the columns, in the order of the outermost `Project`.

    Spec: https://www.w3.org/TR/sparql11-query/#select
    """

    variables: tuple[Variable, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TripleTemplate(Node):
    """A triple term of a CONSTRUCT template with something to be filled in."""

    subject: TemplateTerm
    predicate: IRI | Variable
    object: TemplateTerm


TemplateTerm: TypeAlias = Ground | BlankNode | Variable | TripleTemplate


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateTriple(Node):
    """One triple of a CONSTRUCT template; a blank node in it is a new one for each solution.

    `graph` is the named graph that it goes to; None stands for the default graph.
    """

    subject: TemplateTerm
    predicate: IRI | Variable
    object: TemplateTerm
    graph: IRI | Variable | None = None

    @property
    def terms(self) -> tuple[TemplateTerm | None, ...]:
        """Subject, predicate, object and graph."""
        return (self.subject, self.predicate, self.object, self.graph)

    @property
    def parts(self) -> tuple[TemplateTerm, ...]:
        """All terms that are no triple terms to be filled in, those inside such included."""
        return tuple(_parts(self.terms))


def _parts(terms: Iterable[TemplateTerm | None]) -> Iterator[TemplateTerm]:
    for term in terms:
        if isinstance(term, TripleTemplate):
            yield from _parts((term.subject, term.predicate, term.object))
        elif term is not None:
            yield term


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConstructForm(Node):
    """Answers are graphs, the template filled in for every solution.

    GRAPH in a template is an extension: the answer then is a dataset.

    Spec: https://www.w3.org/TR/sparql11-query/#construct
    """

    template: tuple[TemplateTriple, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of the template, sorted by name."""
        terms = (term for each in self.template for term in each.parts)
        return tuple(sorted({term for term in terms if isinstance(term, Variable)}))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AskForm(Node):
    """The answer is whether there is a solution.

    Spec: https://www.w3.org/TR/sparql11-query/#ask
    """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeForm(Node):
    """Answers are graphs about these resources and the values of these variables, one for each.

    Which triples describe a resource is said by rule A5 of the semantics page.

    Spec: https://www.w3.org/TR/sparql11-query/#describe
    """

    targets: tuple[IRI | Variable, ...]


QueryForm: TypeAlias = SelectForm | ConstructForm | AskForm | DescribeForm


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousQuery(Node):
    """A query over windows and static data; without windows it is a plain SPARQL query.

    `default_graphs` and `named_graphs` are the static dataset by name; if both are empty and
    `default_graph_windows` is too, the static data that the engine holds is meant. The default
    graph of a query with `default_graph_windows` (C-SPARQL) is the merge of those windows'
    contents and of `default_graphs`, and of nothing else (A1). `name` is an IRI's text or a
    plain name; None if the query is not registered under one.
    """

    form: QueryForm
    pattern: Pattern
    name: str | None = None
    windows: tuple[Window, ...] = ()
    default_graphs: tuple[IRI, ...] = ()
    named_graphs: tuple[IRI, ...] = ()
    default_graph_windows: tuple[IRI, ...] = ()
    report: Report = ON_CHANGE
    tick: Tick = EVERY_INSTANT
    output: OutputOperator = OutputOperator.RSTREAM

    def __post_init__(self) -> None:
        names = [window.name for window in self.windows]
        require(len(set(names)) == len(names), "windows have different names")
        require(set(self.default_graph_windows) <= set(names), "a default-graph window is declared")

    def window(self, name: IRI) -> Window:
        """Find a declared window by its name."""
        for window in self.windows:
            if window.name == name:
                return window
        raise KeyError(str(name))
