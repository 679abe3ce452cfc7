"""Triples blocks to triple and path patterns, and to CONSTRUCT templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from lark import Token, Tree

from quadweir.algebra.patterns import (
    Alternative,
    BasicPattern,
    Inverse,
    Join,
    Link,
    NegatedSet,
    OneOrMore,
    Path,
    PathPattern,
    Pattern,
    PatternTerm,
    Sequence,
    TriplePattern,
    ZeroOrMore,
    ZeroOrOne,
)
from quadweir.algebra.query import TemplateTerm, TemplateTriple, TripleTemplate
from quadweir.errors import LimitError
from quadweir.spans import Span
from quadweir.syntax.build_terms import Branch, Child, TermBuilder, trees
from quadweir.syntax.scan import SourceText
from quadweir.syntax.triple_terms import LeafMaker, TermMatch, template_depth
from quadweir.terms import (
    IRI,
    MOST_NESTED,
    TOO_DEEP,
    BlankNode,
    Literal,
    TripleTerm,
    Variable,
)
from quadweir.vocab import RDF

NodeTerm: TypeAlias = TemplateTerm
TripleTarget: TypeAlias = "BasicRun | ConstructTemplate | NoBlanks"

_REIFIES: Final = IRI(RDF.reifies)
_TYPE: Final = IRI(RDF.type)
_FIRST: Final = IRI(RDF.first)
_REST: Final = IRI(RDF.rest)
_NIL: Final = IRI(RDF.nil)


class TripleBuilder(TermBuilder):
    """Reads triples into a `BasicRun` or a `ConstructTemplate`."""

    def __init__(
        self, source: SourceText, *, base: str | None, prefixes: Mapping[str, str] | None
    ) -> None:
        super().__init__(source, base=base, prefixes=prefixes)
        # Which run of triples first used each blank node label; see `BasicRun.blank`.
        self.labels: dict[str, tuple[BasicRun, Variable]] = {}

    def triples_block(self, tree: Branch, target: BasicRun | ConstructTemplate) -> None:
        for triples in trees(tree):
            first, *rest = triples.children
            subject = self.node(first, target)
            for properties in rest:
                assert isinstance(properties, Tree)
                self._properties(subject, properties, target)

    def _properties(
        self, subject: NodeTerm, tree: Branch, target: BasicRun | ConstructTemplate
    ) -> None:
        for verb_objects in trees(tree):
            verb, *objects = verb_objects.children
            path: Path | Variable
            if isinstance(verb, Token):
                target.see(path := self.variable(verb))
            else:
                path = self.path(verb)
            end: NodeTerm | None = None
            reifier: NodeTerm | None = None
            for each in objects:
                if isinstance(each, Tree) and each.data in ("reifier", "annotation"):
                    assert end is not None
                    reifier = self._annotate((subject, path, end), reifier, each, target)
                    continue
                end, reifier = self.node(each, target), None
                if isinstance(path, Variable):
                    target.triple(subject, path, end, self.span(verb))
                else:
                    assert isinstance(verb, Tree)
                    target.path(subject, path, end, verb)

    # --- triple terms -------------------------------------------------------------------------

    def _annotate(
        self,
        triple: tuple[NodeTerm, Path | Variable, NodeTerm],
        reifier: NodeTerm | None,
        tree: Branch,
        target: BasicRun | ConstructTemplate,
    ) -> NodeTerm | None:
        """Read `~ :r` or `{| ... |}` after an object; return the reifier, which a block may
        follow.
        """
        subject, path, end = triple
        if not isinstance(path, Variable | Link):
            raise self.error(
                "an annotation stands after a property path",
                tree,
                hint="Only a triple can be annotated; name its predicate.",
            )
        verb = path.predicate if isinstance(path, Link) else path
        if tree.data == "reifier" or reifier is None:
            named = tree if tree.data == "reifier" else None
            reifier = self._reify((subject, verb, end), named, tree, target)
        if tree.data == "reifier":
            return reifier
        self._properties(reifier, trees(tree)[0], target)
        return None

    def _reify(
        self,
        triple: tuple[NodeTerm, IRI | Variable, NodeTerm],
        named: Branch | None,
        tree: Branch,
        target: BasicRun | ConstructTemplate,
    ) -> NodeTerm:
        """Add the triple that says what a reifier reifies."""
        first = tree.children[0]
        if named is not None and len(named.children) > 1:
            reifier = self.node(named.children[1], target)
        else:
            reifier = target.blank(None, first)
        target.triple(reifier, _REIFIES, self._triple_term(*triple, tree), self.span(first))
        return reifier

    def _reified(self, tree: Branch, target: BasicRun | ConstructTemplate) -> NodeTerm:
        _, subject, verb, end, *named, _ = tree.children
        triple = (self.node(subject, target), self._verb(verb, target), self.node(end, target))
        return self._reify(triple, named[0] if named else None, tree, target)  # type: ignore[arg-type]

    def triple_term(self, tree: Branch, target: TripleTarget) -> NodeTerm:
        """Read `<<( ... )>>`; the result is a term if it contains no variable or blank node."""
        _, subject, verb, end, _ = tree.children
        parts = (self.term(subject, target), self._verb(verb, target), self.term(end, target))
        return self._triple_term(*parts, tree)

    def _triple_term(
        self, subject: NodeTerm, predicate: IRI | Variable, end: NodeTerm, tree: Branch
    ) -> NodeTerm:
        if isinstance(subject, Literal | TripleTerm | TripleTemplate):
            what = "literal" if isinstance(subject, Literal) else "triple term"
            raise self.error(
                f"the subject of a triple term is a {what}",
                tree,
                hint="Write an IRI, a blank node or a variable there.",
            )
        if template_depth(end) >= MOST_NESTED:
            raise LimitError(f"the query has {TOO_DEEP}", span=self.span(tree))
        if (
            isinstance(subject, IRI)
            and isinstance(predicate, IRI)
            and isinstance(end, IRI | Literal | TripleTerm)
        ):
            return TripleTerm(subject, predicate, end)
        return TripleTemplate(
            subject=subject, predicate=predicate, object=end, span=self.span(tree)
        )

    def _verb(self, child: Child, target: TripleTarget) -> IRI | Variable:
        if isinstance(child, Tree):
            return self.iri(child)
        if child.type == "A":
            return _TYPE
        target.see(variable := self.variable(child))
        return variable

    # --- nodes --------------------------------------------------------------------------------

    def term(self, child: Child, target: TripleTarget) -> NodeTerm:
        """Read a node that adds no triples."""
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
            case "triple_term":
                return self.triple_term(child, target)
            case _:
                (token, *_) = child.children
                assert isinstance(token, Token)
                label = token[2:] if token.type == "BLANK_NODE_LABEL" else None
                if label is not None:
                    self.check_name(label, token)
                return target.blank(label, token)

    def node(self, child: Child, target: BasicRun | ConstructTemplate) -> NodeTerm:
        match "" if isinstance(child, Token) else str(child.data):
            case "property_node":
                assert isinstance(child, Tree)
                bracket, properties = child.children
                subject = target.blank(None, bracket)
                assert isinstance(properties, Tree)
                self._properties(subject, properties, target)
                return subject
            case "collection":
                assert isinstance(child, Tree)
                return self._collection(child, target)
            case "reified":
                assert isinstance(child, Tree)
                return self._reified(child, target)
            case _:
                return self.term(child, target)

    def _collection(self, tree: Branch, target: BasicRun | ConstructTemplate) -> NodeTerm:
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
        self.matches: list[TermMatch] = []
        self.variables: dict[Variable, None] = {}

    def see(self, variable: Variable) -> None:
        self.variables[variable] = None

    def built(self, leaf: LeafMaker, place: Span | None) -> Pattern:
        """The triples so far as a pattern; `leaf` decides where basic patterns are matched."""
        basic = BasicPattern(patterns=tuple(self.patterns), span=place)
        parts = [leaf(basic)] if self.patterns else []
        parts += [each.built(leaf) for each in self.matches]
        if len(parts) > 1:
            return Join(inputs=tuple(parts), span=place)
        return parts[0] if parts else basic

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
        (start, end), terms = self._opened(subject, object_)
        self._add(TriplePattern(subject=start, predicate=predicate, object=end, span=place), terms)

    def _add(self, pattern: TriplePattern | PathPattern, terms: list[_Opened]) -> None:
        if terms:
            self.matches.append(TermMatch(pattern, tuple(terms)))
        else:
            self.patterns.append(pattern)

    def _opened(self, *nodes: NodeTerm) -> tuple[list[PatternTerm], list[_Opened]]:
        """Put hidden variables where triple terms are to be matched."""
        ends: list[PatternTerm] = []
        terms: list[_Opened] = []
        for node in nodes:
            assert not isinstance(node, BlankNode)
            if isinstance(node, TripleTemplate):
                terms.append((self.builder.hidden("triple"), node))
                node = terms[-1][0]
            ends.append(node)
        return ends, terms

    def path(self, subject: NodeTerm, path: Path, object_: NodeTerm, tree: Branch) -> None:
        self._path(subject, path, object_, self.builder.span(tree))

    def _path(self, subject: NodeTerm, path: Path, object_: NodeTerm, place: Span | None) -> None:
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
                (start, end), terms = self._opened(subject, object_)
                pattern = PathPattern(subject=start, path=path, object=end, span=place)
                self._add(pattern, terms)


_Opened: TypeAlias = tuple[Variable, TripleTemplate]


class NoBlanks:
    """The target for triple terms of expressions and VALUES, which have no blank nodes."""

    def __init__(self, builder: TripleBuilder) -> None:
        self.builder = builder

    def see(self, variable: Variable) -> None:
        """A variable stands for its value."""

    def blank(self, label: str | None, place: Child) -> BlankNode:  # noqa: ARG002 - as in BasicRun
        raise self.builder.error(
            "a blank node stands in a triple term of an expression or of VALUES",
            place,
            hint="Use a variable that a pattern binds.",
        )


class ConstructTemplate:
    """The triples of a CONSTRUCT template; its blank nodes are numbered in order of appearance.

    `graph` is where the triples that come next go.
    """

    def __init__(self, builder: TripleBuilder) -> None:
        self.builder = builder
        self.triples: list[TemplateTriple] = []
        self.graph: IRI | Variable | None = None
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
            TemplateTriple(
                subject=subject,
                predicate=predicate,
                object=object_,
                graph=self.graph,
                span=place,
            )
        )

    def path(self, subject: NodeTerm, path: Path, object_: NodeTerm, tree: Branch) -> None:
        if not isinstance(path, Link):
            raise self.builder.error(
                "a CONSTRUCT template holds a property path",
                tree,
                hint="A template makes triples; name the predicate.",
            )
        self.triple(subject, path.predicate, object_, self.builder.span(tree))
