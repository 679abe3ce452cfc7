"""Triples blocks to triple and path patterns, and to CONSTRUCT templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from lark import Token, Tree

from quadweir.algebra.patterns import (
    Alternative,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    Path,
    PathPattern,
    PatternTerm,
    Sequence,
    TriplePattern,
    ZeroOrMore,
    ZeroOrOne,
)
from quadweir.algebra.query import TemplateTriple
from quadweir.spans import Span
from quadweir.syntax.build_terms import Branch, Child, TermBuilder, trees
from quadweir.syntax.scan import SourceText
from quadweir.terms import IRI, BlankNode, Literal, Variable
from quadweir.vocab import RDF

NodeTerm: TypeAlias = IRI | Literal | Variable | BlankNode

_TYPE: Final = IRI(RDF.type)
_FIRST: Final = IRI(RDF.first)
_REST: Final = IRI(RDF.rest)
_NIL: Final = IRI(RDF.nil)


class TripleBuilder(TermBuilder):
    """Reads triples into a `BasicRun` or a `Template`."""

    def __init__(
        self, source: SourceText, *, base: str | None, prefixes: Mapping[str, str] | None
    ) -> None:
        super().__init__(source, base=base, prefixes=prefixes)
        # Which run of triples first used each blank node label; see `BasicRun.blank`.
        self.labels: dict[str, tuple[BasicRun, Variable]] = {}

    def triples_block(self, tree: Branch, target: BasicRun | Template) -> None:
        for triples in trees(tree):
            first, *rest = triples.children
            subject = self.node(first, target)
            for properties in rest:
                assert isinstance(properties, Tree)
                self._properties(subject, properties, target)

    def _properties(self, subject: NodeTerm, tree: Branch, target: BasicRun | Template) -> None:
        for verb_objects in trees(tree):
            verb, *objects = verb_objects.children
            if isinstance(verb, Token):
                target.see(variable := self.variable(verb))
                for each in objects:
                    target.triple(subject, variable, self.node(each, target), self.span(verb))
                continue
            path = self.path(verb)
            for each in objects:
                target.path(subject, path, self.node(each, target), verb)

    def node(self, child: Child, target: BasicRun | Template) -> NodeTerm:
        if isinstance(child, Token):
            target.see(variable := self.variable(child))
            return variable
        match str(child.data):
            case "iri":
                return self.iri(child)
            case "literal":
                return self.literal(child)
            case "nil":
                return _NIL
            case "blank_node":
                (token,) = child.children
                assert isinstance(token, Token)
                label = token[2:] if token.type == "BLANK_NODE_LABEL" else None
                if label is not None:
                    self.check_name(label, token)
                return target.blank(label, token)
            case "property_node":
                bracket, properties = child.children
                subject = target.blank(None, bracket)
                assert isinstance(properties, Tree)
                self._properties(subject, properties, target)
                return subject
            case _:
                return self._collection(child, target)

    def _collection(self, tree: Branch, target: BasicRun | Template) -> NodeTerm:
        bracket, *items = tree.children
        cells = [target.blank(None, bracket) for _ in items]
        place = self.span(bracket)
        for index, item in enumerate(items):
            rest = cells[index + 1] if index + 1 < len(cells) else _NIL
            target.triple(cells[index], _FIRST, self.node(item, target), place)
            target.triple(cells[index], _REST, rest, place)
        return cells[0]

    # --- paths --------------------------------------------------------------------------------

    def path(self, tree: Branch) -> Path:
        choices: list[Path] = []
        for each in trees(tree):
            choice = self._sequence(each)
            choices.extend(choice.paths if isinstance(choice, Alternative) else (choice,))
        return choices[0] if len(choices) == 1 else Alternative(paths=tuple(choices))

    def _sequence(self, tree: Branch) -> Path:
        steps: list[Path] = []
        for each in trees(tree):
            step = self._element(each)
            steps.extend(step.paths if isinstance(step, Sequence) else (step,))
        return steps[0] if len(steps) == 1 else Sequence(paths=tuple(steps))

    def _element(self, tree: Branch) -> Path:
        children = list(tree.children)
        inverse = isinstance(children[0], Token) and children[0].type == "INVERSE"
        if inverse:
            children.pop(0)
        primary = children[0]
        path: Path
        if isinstance(primary, Token):
            path = Link(predicate=_TYPE)
        elif primary.data == "iri":
            path = Link(predicate=self.iri(primary))
        elif primary.data == "negated_set":
            path = self._negated(primary)
        else:
            path = self.path(primary)
        if len(children) == 2:
            assert isinstance(children[1], Token)
            match children[1].type:
                case "STAR":
                    path = ZeroOrMore(path=path)
                case "PLUS":
                    path = OneOrMore(path=path)
                case _:
                    path = ZeroOrOne(path=path)
        return Inverse(path=path) if inverse else path

    def _negated(self, tree: Branch) -> Path:
        forward: list[IRI] = []
        backward: list[IRI] = []
        for link in trees(tree):
            *inverse, name = link.children
            iri = self.iri(name) if isinstance(name, Tree) else _TYPE
            (backward if inverse else forward).append(iri)
        return NegatedSet(forward=tuple(forward), backward=tuple(backward))


class BasicRun:
    """The triples between two other parts of a group: one basic graph pattern.

    A blank node label may be used in one basic graph pattern only
    (https://www.w3.org/TR/sparql11-query/#grammarBNodes).
    """

    def __init__(self, builder: TripleBuilder) -> None:
        self.builder = builder
        self.patterns: list[TriplePattern | PathPattern] = []
        self.variables: dict[Variable, None] = {}

    def see(self, variable: Variable) -> None:
        self.variables[variable] = None

    def blank(self, label: str | None, place: Child) -> Variable:
        if label is None:
            return self.builder.hidden("")
        run, variable = self.builder.labels.get(label, (None, None))
        if run is None or variable is None:
            variable = self.builder.hidden("")
            self.builder.labels[label] = (self, variable)
        elif run is not self:
            raise self.builder.error(
                f"the blank node _:{label} is used in two basic graph patterns",
                place,
                hint="Use a variable instead, which may be shared between them.",
            )
        return variable

    def triple(
        self, subject: NodeTerm, predicate: IRI | Variable, object_: NodeTerm, place: Span | None
    ) -> None:
        assert not isinstance(subject, BlankNode)
        assert not isinstance(object_, BlankNode)
        self.patterns.append(
            TriplePattern(subject=subject, predicate=predicate, object=object_, span=place)
        )

    def path(self, subject: NodeTerm, path: Path, object_: NodeTerm, tree: Branch) -> None:
        assert not isinstance(subject, BlankNode)
        assert not isinstance(object_, BlankNode)
        self._path(subject, path, object_, self.builder.span(tree))

    def _path(
        self, subject: PatternTerm, path: Path, object_: PatternTerm, place: Span | None
    ) -> None:
        # https://www.w3.org/TR/sparql11-query/#sparqlTranslatePathPatterns
        match path:
            case Link(predicate=predicate):
                self.triple(subject, predicate, object_, place)
            case Inverse(path=inner):
                self._path(object_, inner, subject, place)
            case Sequence(paths=steps):
                start = subject
                for index, step in enumerate(steps):
                    last = index == len(steps) - 1
                    end = object_ if last else self.builder.hidden("")
                    self._path(start, step, end, place)
                    start = end
            case _:
                self.patterns.append(
                    PathPattern(subject=subject, path=path, object=object_, span=place)
                )


class Template:
    """The triples of a CONSTRUCT template; its blank nodes are numbered in order of appearance."""

    def __init__(self, builder: TripleBuilder) -> None:
        self.builder = builder
        self.triples: list[TemplateTriple] = []
        self._blanks: dict[str, BlankNode] = {}
        self._count = 0

    def see(self, variable: Variable) -> None:
        """Any variable may stand in a template; an unbound one only drops its triple."""

    def blank(self, label: str | None, place: Child) -> BlankNode:  # noqa: ARG002 - as in BasicRun
        if label is not None and label in self._blanks:
            return self._blanks[label]
        self._count += 1
        node = BlankNode(f"b{self._count}")
        if label is not None:
            self._blanks[label] = node
        return node

    def triple(
        self, subject: NodeTerm, predicate: IRI | Variable, object_: NodeTerm, place: Span | None
    ) -> None:
        self.triples.append(
            TemplateTriple(subject=subject, predicate=predicate, object=object_, span=place)
        )

    def path(self, subject: NodeTerm, path: Path, object_: NodeTerm, tree: Branch) -> None:
        if not isinstance(path, Link):
            raise self.builder.error(
                "a CONSTRUCT template holds a property path",
                tree,
                hint="A template makes triples; name the predicate.",
            )
        self.triple(subject, path.predicate, object_, self.builder.span(tree))
