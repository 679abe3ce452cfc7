"""Algebra to SPARQL text: groups, SELECT, modifiers, forms; what all dialects share.

It undoes `build.py`: reading what is written here gives the tree it was written from, but for the
numbers of hidden variables. Trees that no query text has, such as optimised ones, are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import assert_never, final

from quadweir.algebra.expressions import (
    AggregateCall,
    And,
    Bound,
    Exists,
    Expression,
    VariableExpression,
)
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import (
    Alternative,
    BasicPattern,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Inverse,
    Join,
    LeftJoin,
    Link,
    Minus,
    NegatedSet,
    OneOrMore,
    OrderBy,
    OrderKey,
    Path,
    PathPattern,
    Pattern,
    Project,
    Reduced,
    Sequence,
    Service,
    Slice,
    TriplePattern,
    Union,
    Values,
    WindowPattern,
    ZeroOrMore,
    ZeroOrOne,
    is_hidden,
)
from quadweir.algebra.query import (
    AskForm,
    ConstructForm,
    ContinuousQuery,
    DescribeForm,
    SelectForm,
)
from quadweir.algebra.traverse import walk
from quadweir.errors import UnsupportedError
from quadweir.spans import Span
from quadweir.syntax.write_terms import ExpressionWriter
from quadweir.terms import Variable


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationWarning:
    """Something that a query means and that its translation does not; `aspect` is a stable word."""

    aspect: str
    message: str
    span: Span | None = None


@final
@dataclass(slots=True, kw_only=True)
class _Modifiers:
    """The clauses around a WHERE: the inverse of `SelectParts`."""

    where: Pattern
    columns: dict[Variable, Expression | None] = field(default_factory=dict)
    keys: dict[Variable, Expression | None] | None = None
    having: Expression | None = None
    values: Values | None = None
    order: tuple[OrderKey, ...] = ()


class SparqlWriter(ExpressionWriter):
    """Writes plain SPARQL queries; each dialect is a subclass that says what differs."""

    def __init__(self, query: ContinuousQuery, prefixes: Mapping[str, str] | None = None) -> None:
        super().__init__(prefixes)
        self.query = query
        self.warnings: list[TranslationWarning] = []
        # How many GRAPH, SERVICE, WINDOW or STREAM blocks are open around the current group.
        self.blocks = 0
        self._aggregates: dict[Variable, AggregateCall] = {}
        # In which basic patterns each blank node has been written, and the variables that stand
        # for those that would be in two of them.
        self._basic = 0
        self._labels: dict[Variable, set[int]] = {}
        self._written: set[Variable] = set()
        self._shared: dict[Variable, Variable] = {}
        # Blank nodes of the text cannot stand in expressions, and BIND cannot give them values.
        self._computed = {
            each.variable
            for each in walk(query)
            if isinstance(each, VariableExpression | Bound | Extend) and _is_node(each.variable)
        }

    # --- what a dialect may change ----------------------------------------------------------------

    def heading(self) -> list[str]:
        """Write the clauses before SELECT, without prefixes."""
        return []

    def joined(self, prologue: list[str], heading: list[str], body: list[str]) -> list[str]:
        """Put the parts of the text in order."""
        return [*prologue, *heading, *body]

    def output_word(self) -> str:
        """Write the output operator where it stands after SELECT or CONSTRUCT."""
        return ""

    def window_clauses(self) -> list[str]:
        """Write the dataset clauses with windows in them."""
        return []

    def window(self, pattern: WindowPattern) -> list[str]:
        """Write a WINDOW or STREAM block."""
        raise self.refused("plain SPARQL has no windows", pattern)

    def leaf(self, pattern: BasicPattern) -> list[str]:
        """Write a basic pattern where it stands."""
        return self.triples(pattern)

    # --- the whole query --------------------------------------------------------------------------

    def text(self) -> str:
        """Write the query."""
        body = self._main()
        shared = [
            label
            for label, uses in self._labels.items()
            if len(uses) > 1 or label in self._computed
        ]
        if shared:
            self._shared = self._fresh(shared)
            body = self._main()
        heading = self.heading()
        return "\n".join(self.joined(self.prologue(), heading, body)) + "\n"

    def _fresh(self, labels: list[Variable]) -> dict[Variable, Variable]:
        """Name blank nodes that two basic patterns share: SPARQL wants variables there."""
        names = (Variable(f"b{number}") for number in count(1))
        free = (name for name in names if name not in self._written)
        return dict(zip(labels, free, strict=False))

    def warn(self, aspect: str, message: str, node: Node | None = None) -> None:
        """Take note of something that is lost."""
        warning = TranslationWarning(
            aspect=aspect, message=message, span=None if node is None else node.span
        )
        if warning not in self.warnings:
            self.warnings.append(warning)

    def refused(self, message: str, node: Node) -> UnsupportedError:
        """Make an error about something that cannot be written at all."""
        return UnsupportedError(message, span=node.span)

    def _main(self) -> list[str]:
        form, pattern = self.query.form, self.query.pattern
        dataset = [f"FROM {self.iri(name)}" for name in self.query.default_graphs]
        dataset += [f"FROM NAMED {self.iri(name)}" for name in self.query.named_graphs]
        dataset = [*self.window_clauses(), *dataset]
        match form:
            case SelectForm():
                return self._select(pattern, dataset, self.output_word())
            case ConstructForm():
                template = self._template(form)
                head = " ".join(filter(None, ("CONSTRUCT", self.output_word(), "{")))
                first = [head, *indented(template), "}"]
            case AskForm():
                first = ["ASK"]
            case DescribeForm():
                targets = " ".join(map(self.term, form.targets))
                first = [f"DESCRIBE {targets}"]
        limits: list[str] = []
        if isinstance(pattern, Slice):
            limits = _limits(pattern)
            pattern = pattern.input
        parts = self._take_apart(pattern, None)
        return [*first, *dataset, *self._where(parts), *self._tail(parts, limits)]

    def _template(self, form: ConstructForm) -> list[str]:
        found: list[str] = []
        for graph, triples in groupby(form.template, key=lambda each: each.graph):
            lines = [
                f"{self.term(each.subject)} {self.verb(each.predicate)} {self.term(each.object)} ."
                for each in triples
            ]
            if graph is None:
                found += lines
            else:
                found += [f"GRAPH {self.term(graph)} {{", *indented(lines), "}"]
        return found

    # --- SELECT and modifiers ---------------------------------------------------------------------

    def _select(self, pattern: Pattern, dataset: list[str], output: str = "") -> list[str]:
        limits: list[str] = []
        word = ""
        whole = pattern
        if isinstance(pattern, Slice):
            limits = _limits(pattern)
            pattern = pattern.input
        if isinstance(pattern, Distinct | Reduced):
            word = "DISTINCT" if isinstance(pattern, Distinct) else "REDUCED"
            pattern = pattern.input
        if not isinstance(pattern, Project):
            raise self.refused("this tree is not that of a query text", whole)
        outer, self._aggregates = self._aggregates, {}
        parts = self._take_apart(pattern.input, pattern.variables)
        where = self._where(parts)
        columns = [
            self.variable(name)
            if value is None
            else f"({self.expression(value)} AS {self.variable(name)})"
            for name, value in parts.columns.items()
        ]
        head = " ".join(filter(None, ("SELECT", output, word, *(columns or ["*"]))))
        lines = [head, *dataset, *where, *self._tail(parts, limits)]
        self._aggregates = outer
        return lines

    def _take_apart(self, pattern: Pattern, columns: tuple[Variable, ...] | None) -> _Modifiers:
        """Undo `QueryBuilder._assemble`."""
        order: tuple[OrderKey, ...] = ()
        if isinstance(pattern, OrderBy):
            order = pattern.keys
            pattern = pattern.input
        named: dict[Variable, Expression | None] = dict.fromkeys(columns or ())
        rest = pattern
        places = {variable: place for place, variable in enumerate(columns or ())}
        below = len(places)
        while isinstance(rest, Extend) and places.get(rest.variable, below) < below:
            # Columns are computed in their order, so a step back means that BIND was meant.
            below = places[rest.variable]
            named[rest.variable] = rest.expression
            rest = rest.input
        parts = _Modifiers(where=rest, columns=named, order=order)
        if isinstance(rest, Join) and _grouped(rest.inputs[0]) is not None:
            if len(rest.inputs) != 2 or not isinstance(rest.inputs[1], Values):
                raise self.refused("this tree is not that of a query text", rest)
            parts.values = rest.inputs[1]
            rest = rest.inputs[0]
        group = _grouped(rest)
        if group is None:
            return parts
        if isinstance(rest, Filter):
            parts.having = rest.condition
        self._aggregates.update({each.variable: each.call for each in group.aggregates})
        parts.keys = dict.fromkeys(group.keys)
        below_group = group.input
        positions = {key: place for place, key in enumerate(group.keys)}
        last = len(positions)
        while isinstance(below_group, Extend) and positions.get(below_group.variable, last) < last:
            last = positions[below_group.variable]
            parts.keys[below_group.variable] = below_group.expression
            below_group = below_group.input
        parts.where = below_group
        return parts

    def _where(self, parts: _Modifiers) -> list[str]:
        return ["WHERE {", *indented(self.group(parts.where)), "}"]

    def _tail(self, parts: _Modifiers, limits: list[str]) -> list[str]:
        lines = []
        if parts.keys:
            lines.append("GROUP BY " + " ".join(self._key(*each) for each in parts.keys.items()))
        if parts.having is not None:
            conditions = parts.having.parts if isinstance(parts.having, And) else (parts.having,)
            lines.append("HAVING " + " ".join(map(self._constraint, conditions)))
        if parts.order:
            lines.append("ORDER BY " + " ".join(map(self._order, parts.order)))
        lines += limits
        if parts.values is not None:
            lines += self._values(parts.values)
        return lines

    def _key(self, variable: Variable, expression: Expression | None) -> str:
        if expression is None:
            return self.variable(variable)
        if is_hidden(variable):
            return f"({self.expression(expression)})"
        return f"({self.expression(expression)} AS {self.variable(variable)})"

    def _constraint(self, condition: Expression) -> str:
        if isinstance(condition, VariableExpression) and condition.variable in self._aggregates:
            return self.expression(condition)
        return self.bracketted(condition)

    def _order(self, key: OrderKey) -> str:
        text = self.expression(key.expression)
        if key.descending:
            return f"DESC({text})"
        plain = isinstance(key.expression, VariableExpression)
        return text if plain and text.startswith("?") else f"ASC({text})"

    def variable(self, variable: Variable) -> str:
        call = self._aggregates.get(variable)
        if call is not None:
            return self.aggregate(call)
        if is_hidden(variable):
            if variable in self._shared:
                return str(self._shared[variable])
            # A blank node of the text; its kind and number make a label.
            self._labels.setdefault(variable, set()).add(self._basic)
            return f"_:b{variable.name[2:]}"
        self._written.add(variable)
        return str(variable)

    # --- groups -----------------------------------------------------------------------------------

    def exists(self, exists: Exists) -> str:
        inner = " ".join(line.strip() for line in self.group(exists.pattern))
        return f"{'NOT ' if exists.negated else ''}EXISTS {{ {inner} }}"

    def group(self, pattern: Pattern) -> list[str]:
        """Write the inside of a group."""
        match pattern:
            case Filter():
                conditions = (
                    pattern.condition.parts
                    if isinstance(pattern.condition, And)
                    else (pattern.condition,)
                )
                filters = [f"FILTER {self._constraint(each)}" for each in conditions]
                return [*self._inline(pattern.input), *filters]
            case Project() | Distinct() | Reduced() | Slice():
                return self._select(pattern, [])
            case _:
                return self._inline(pattern)

    def _inline(self, pattern: Pattern) -> list[str]:
        """Write a pattern as the first parts of a group, whose filters come last."""
        match pattern:
            case Join():
                first, *rest = pattern.inputs
                lines = self._inline(first)
                after_triples = self.is_bare(first)
                for each in rest:
                    # Triples after triples would become one basic pattern.
                    bare = self.is_bare(each)
                    lines += (
                        self._braced(each) if bare and after_triples else self._inline_one(each)
                    )
                    after_triples = bare and not after_triples
                return lines
            case LeftJoin():
                right = pattern.right
                inner = self._braced(right) if isinstance(right, Filter) else self.group(right)
                if pattern.condition is not None:
                    if isinstance(right, Project | Distinct | Reduced | Slice):
                        inner = self._braced(right)
                    inner = [*inner, f"FILTER {self._constraint(pattern.condition)}"]
                return [*self._inline(pattern.left), "OPTIONAL {", *indented(inner), "}"]
            case Minus():
                inner = self.group(pattern.right)
                return [*self._inline(pattern.left), "MINUS {", *indented(inner), "}"]
            case Extend():
                name = self.variable(pattern.variable)
                bind = f"BIND({self.expression(pattern.expression)} AS {name})"
                return [*self._inline(pattern.input), bind]
            case _:
                return self._inline_one(pattern)

    def is_bare(self, pattern: Pattern) -> bool:
        """Whether a pattern is written as triples without anything around them."""
        return isinstance(pattern, BasicPattern) and bool(pattern.patterns)

    def _inline_one(self, pattern: Pattern) -> list[str]:
        if isinstance(pattern, BasicPattern):
            return self.leaf(pattern) if pattern.patterns else []
        return self._element(pattern)

    def _element(self, pattern: Pattern) -> list[str]:
        """Write a pattern as a part of a group that is joined to the parts before it."""
        match pattern:
            case Union():
                first, *rest = (self._braced(each) for each in pattern.inputs)
                for each in rest:
                    first = [*first[:-1], f"}} UNION {each[0]}", *each[1:]]
                return first
            case Graph():
                return self.block(f"GRAPH {self.term(pattern.graph)}", pattern.input)
            case Service():
                silent = "SILENT " if pattern.silent else ""
                return self.block(f"SERVICE {silent}{self.term(pattern.endpoint)}", pattern.input)
            case WindowPattern():
                return self.window(pattern)
            case Values():
                return self._values(pattern)
            case OrderBy() | Group():
                raise self.refused("this tree is not that of a query text", pattern)
            case _:
                return self._braced(pattern)

    def _braced(self, pattern: Pattern) -> list[str]:
        return ["{", *indented(self.group(pattern)), "}"]

    def block(self, heading: str, pattern: Pattern) -> list[str]:
        """Write a block that changes what patterns are matched in."""
        self.blocks += 1
        inner = self.group(pattern)
        self.blocks -= 1
        return [f"{heading} {{", *indented(inner), "}"]

    def _values(self, values: Values) -> list[str]:
        names = " ".join(map(self.variable, values.variables))
        rows = [
            "(" + " ".join("UNDEF" if term is None else self.term(term) for term in row) + ")"
            for row in values.rows
        ]
        return [f"VALUES ({names}) {{", *indented(rows), "}"]

    # --- triples ----------------------------------------------------------------------------------

    def triples(self, pattern: BasicPattern) -> list[str]:
        """Write triples, one a line."""
        self._basic += 1
        return [f"{self.triple(each)} ." for each in pattern.patterns]

    def triple(self, triple: TriplePattern | PathPattern) -> str:
        verb = (
            self.verb(triple.predicate)
            if isinstance(triple, TriplePattern)
            else self._path(triple.path, 0)
        )
        return f"{self.term(triple.subject)} {verb} {self.term(triple.object)}"

    def _path(self, path: Path, level: int) -> str:
        """Write a path; level 0 takes alternatives, 1 sequences, 2 an inverse, 3 a single step."""
        match path:
            case Link():
                return self.verb(path.predicate)
            case NegatedSet():
                parts = [self.verb(iri) for iri in path.forward]
                parts += [f"^{self.verb(iri)}" for iri in path.backward]
                return f"!({'|'.join(parts)})"
            case Alternative():
                own, text = 0, "|".join(self._path(each, 1) for each in path.paths)
            case Sequence():
                own, text = 1, "/".join(self._path(each, 2) for each in path.paths)
            case Inverse():
                # `^` reaches over the sign that follows: ^a* is the inverse of a*.
                inner = path.path
                repeated = isinstance(inner, ZeroOrMore | OneOrMore | ZeroOrOne)
                own, text = 2, f"^{self._path(inner, 2 if repeated else 3)}"
            case ZeroOrMore():
                own, text = 2, f"{self._path(path.path, 3)}*"
            case OneOrMore():
                own, text = 2, f"{self._path(path.path, 3)}+"
            case ZeroOrOne():
                own, text = 2, f"{self._path(path.path, 3)}?"
            case _:
                assert_never(path)
        return f"({text})" if own < level else text


def _is_node(variable: Variable) -> bool:
    """Whether a hidden variable stands for a blank node or for a triple term of the text."""
    return is_hidden(variable) and variable.name[2:].removeprefix("triple").isdigit()


def indented(lines: Iterable[str]) -> list[str]:
    """Move lines two columns to the right."""
    return [f"  {line}" for line in lines]


def _grouped(pattern: Pattern) -> Group | None:
    if isinstance(pattern, Filter):
        pattern = pattern.input
    return pattern if isinstance(pattern, Group) else None


def _limits(pattern: Slice) -> list[str]:
    lines = [] if pattern.limit is None else [f"LIMIT {pattern.limit}"]
    return lines + ([f"OFFSET {pattern.offset}"] if pattern.offset else [])
