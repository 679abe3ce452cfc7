"""Parse tree to algebra: groups, SELECT, solution modifiers, forms; what all dialects share.

It follows the translation of https://www.w3.org/TR/sparql11-query/#sparqlQuery step by step and
checks the rules that the grammar alone cannot: scope of BIND and SELECT variables, grouping, blank
node labels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

from lark import Token, Tree

from quadweir.algebra.expressions import Expression, VariableExpression
from quadweir.algebra.patterns import (
    BasicPattern,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    OrderBy,
    OrderKey,
    Pattern,
    Project,
    Reduced,
    Service,
    Slice,
    Union,
    Values,
    is_hidden,
)
from quadweir.algebra.query import (
    AskForm,
    ConstructForm,
    ContinuousQuery,
    DescribeForm,
    QueryForm,
    SelectForm,
)
from quadweir.algebra.windows import Content
from quadweir.errors import UnsupportedError
from quadweir.syntax.build_expressions import Aggregations, ExpressionBuilder, conjunction
from quadweir.syntax.build_select import SelectParts, expression_variables, substitute
from quadweir.syntax.build_terms import Branch, Child, find, trees, words
from quadweir.syntax.build_triples import BasicRun, ConstructTemplate, NoBlanks
from quadweir.syntax.scan import SourceText
from quadweir.terms import IRI, Ground, TripleTerm, Variable

InScope: TypeAlias = dict[Variable, None]
Scoped: TypeAlias = tuple[Pattern, InScope]

# Graph names under these schemes cannot be mistaken for something to fetch.
_LOCAL_SCHEMES = ("urn:", "tag:")


class QueryBuilder(ExpressionBuilder):
    """Builds a plain SPARQL query; each dialect is a subclass that says what differs."""

    def __init__(
        self,
        source: SourceText,
        *,
        base: str | None,
        prefixes: Mapping[str, str] | None,
        allow: Collection[str],
        content: Content | None,
    ) -> None:
        super().__init__(source, base=base, prefixes=prefixes)
        self.allow = frozenset(allow)
        self.content = content
        self.default_graphs: list[IRI] = []
        self.named_graphs: list[IRI] = []
        self.describes = False
        # How many GRAPH, SERVICE, WINDOW or STREAM blocks are open around the current group.
        self.blocks = 0

    # --- what a dialect may change ------------------------------------------------------------

    def register(self, tree: Branch) -> None:
        """Read a REGISTER clause."""
        raise NotImplementedError

    def window_clause(self, tree: Branch) -> None:
        """Read a FROM clause with a window in it."""
        raise NotImplementedError

    def window_element(self, tree: Branch) -> Scoped:
        """Read a WINDOW or STREAM block."""
        raise NotImplementedError

    def leaf(self, pattern: BasicPattern) -> Pattern:
        """A basic graph pattern in the scope of its data; here, the active graph."""
        return pattern

    def output_word(self, word: str) -> None:
        """Take note of ISTREAM, RSTREAM or DSTREAM after SELECT or CONSTRUCT."""

    def finish(self, query: ContinuousQuery) -> ContinuousQuery:
        """Add windows, report and output to the query."""
        return query

    # --- the whole query ----------------------------------------------------------------------

    def build(self, unit: Branch) -> ContinuousQuery:
        # The name in REGISTER may use a prefix that is declared after it.
        for prologue in trees(unit, "prologue"):
            self.prologue(prologue)
        for child in trees(unit):
            match str(child.data):
                case "prologue":
                    continue
                case "register":
                    self.register(child)
                case _:
                    form, pattern = self._query(child)
        query = ContinuousQuery(
            form=form,
            pattern=pattern,
            default_graphs=tuple(dict.fromkeys(self.default_graphs)),
            named_graphs=tuple(dict.fromkeys(self.named_graphs)),
            span=self.span(unit),
        )
        return self.finish(query)

    def _query(self, tree: Branch) -> tuple[QueryForm, Pattern]:
        main = tree.children[0]
        assert isinstance(main, Tree)
        values = find(tree, "values_clause")
        self.describes = main.data == "describe_query"
        for clause in trees(main, "from_graph", "from_named"):
            self._dataset_clause(clause)
        for clause in trees(main, "from_window", "from_stream"):
            self.window_clause(clause)
        match str(main.data):
            case "select_query":
                pattern, variables = self._select(main, values)
                return SelectForm(variables=tuple(variables), span=self.span(main)), pattern
            case "construct_query":
                return self._construct(main, values)
            case "construct_where":
                return self._construct_where(main, values)
            case "describe_query":
                return self._describe(main, values)
            case _:
                pattern, _ = self._modified(main, self._where(main), values)
                return AskForm(span=self.span(main)), pattern

    def _dataset_clause(self, clause: Branch) -> None:
        name = self.iri(clause.children[-1])
        self.refuse_remote(name, "FROM", clause)
        (self.default_graphs if clause.data == "from_graph" else self.named_graphs).append(name)

    def refuse_remote(self, name: IRI, word: str, place: Child) -> None:
        """Refuse to reach out to anything that was not allowed by name."""
        if word in self.allow or name.value in self.allow:
            return
        if word == "FROM" and name.value.startswith(_LOCAL_SCHEMES):
            return
        raise UnsupportedError(
            f"{word} {name} is not allowed",
            detail="Quadweir fetches nothing because a query names it.",
            hint=f"Load the data as a static graph and allow the name {name.value}."
            if word == "FROM"
            else f"Allow the endpoint by its name {name.value}, if you trust it.",
            span=self.span(place),
        )

    # --- forms --------------------------------------------------------------------------------

    def _where(self, tree: Branch) -> Scoped:
        where = find(tree, "where_clause")
        if where is None:
            return BasicPattern(), {}
        (group,) = trees(where)
        return self.group(group)

    def _construct(self, tree: Branch, values: Branch | None) -> tuple[QueryForm, Pattern]:
        for word in words(tree) - {"CONSTRUCT"}:
            self.output_word(word)
        quads = find(tree, "quads")
        assert quads is not None
        target = ConstructTemplate(self)
        for part in trees(quads):
            if part.data == "triples_block":
                self.triples_block(part, target)
                continue
            _, name, template = part.children
            assert isinstance(template, Tree)
            target.graph = self.name_or_variable(name)
            for block in trees(template):
                self.triples_block(block, target)
            target.graph = None
        pattern, _ = self._modified(tree, self._where(tree), values)
        return ConstructForm(template=tuple(target.triples), span=self.span(tree)), pattern

    def _construct_where(self, tree: Branch, values: Branch | None) -> tuple[QueryForm, Pattern]:
        template = find(tree, "template")
        assert template is not None
        target = ConstructTemplate(self)
        run = BasicRun(self)
        for block in trees(template):
            self.triples_block(block, target)
            self.triples_block(block, run)
        where = (run.built(self.leaf, self.span(tree)), run.variables)
        pattern, _ = self._modified(tree, where, values)
        return ConstructForm(template=tuple(target.triples), span=self.span(tree)), pattern

    def _describe(self, tree: Branch, values: Branch | None) -> tuple[QueryForm, Pattern]:
        pattern, scope = self._modified(tree, self._where(tree), values)
        targets: dict[IRI | Variable, None] = {}
        for child in tree.children[1:]:
            if isinstance(child, Token):
                if child.type == "STAR":
                    targets.update(dict.fromkeys(scope))
                else:
                    targets[self.variable(child)] = None
            elif child.data == "iri":
                targets[self.iri(child)] = None
        return DescribeForm(targets=tuple(targets), span=self.span(tree)), pattern

    # --- groups -------------------------------------------------------------------------------

    def group(self, tree: Branch) -> Scoped:
        pattern, scope, conditions = self._group_parts(tree)
        if conditions:
            condition = conjunction(tuple(conditions), conditions[0].span)
            pattern = Filter(input=pattern, condition=condition, span=self.span(tree))
        return pattern, scope

    def _group_parts(self, tree: Branch) -> tuple[Pattern, InScope, list[Expression]]:
        """Read a group as SPARQL does: its filters count at its end, over the whole of it."""
        children = tree.children[1:]
        if children and isinstance(children[0], Tree) and children[0].data == "subselect":
            pattern, variables = self._select(children[0], find(children[0], "values_clause"))
            return pattern, variables, []
        current = _GroupSoFar(self)
        conditions: list[Expression] = []
        for child in children:
            assert isinstance(child, Tree)
            match str(child.data):
                case "triples_block":
                    current.triples(child)
                case "filter":
                    outer, self.aggregations = self.aggregations, None
                    conditions.append(self.constraint(child.children[1]))
                    self.aggregations = outer
                case "bind":
                    self._bind(child, current)
                case "optional":
                    right, scope, filters = self._group_parts(_group_of(child))
                    condition = conjunction(tuple(filters), filters[0].span) if filters else None
                    current.replace(
                        LeftJoin(
                            left=current.flush(),
                            right=right,
                            condition=condition,
                            span=self.span(child.children[0]),
                        )
                    )
                    current.scope.update(scope)
                case "minus":
                    right, _ = self.group(_group_of(child))
                    place = self.span(child.children[0])
                    current.replace(Minus(left=current.flush(), right=right, span=place))
                case _:
                    current.join(*self.element(child))
        return current.flush(), current.scope, conditions

    def element(self, tree: Branch) -> Scoped:
        """Read a part of a group that is joined to the rest."""
        match str(tree.data):
            case "union":
                return self._union(tree)
            case "graph":
                return self.graph(tree)
            case "service":
                return self._service(tree)
            case "values":
                return self.values(tree)
            case _:
                return self.window_element(tree)

    def _union(self, tree: Branch) -> Scoped:
        inputs: list[Pattern] = []
        scope: InScope = {}
        for each in trees(tree):
            pattern, variables = self.group(each)
            inputs.append(pattern)
            scope.update(variables)
        if len(inputs) == 1:
            return inputs[0], scope
        return Union(inputs=tuple(inputs), span=self.span(tree)), scope

    def block(self, name: IRI | Variable, tree: Branch) -> Scoped:
        """Read the group of a GRAPH, SERVICE, WINDOW or STREAM block."""
        self.blocks += 1
        pattern, variables = self.group(tree)
        self.blocks -= 1
        first = {name: None} if isinstance(name, Variable) else {}
        return pattern, {**first, **variables}

    def name_or_variable(self, child: Child) -> IRI | Variable:
        if isinstance(child, Token) and child.type == "VAR":
            return self.variable(child)
        return self.iri(child)

    def graph(self, tree: Branch) -> Scoped:
        word, name_tree, group = tree.children
        assert isinstance(group, Tree)
        name = self.name_or_variable(name_tree)
        pattern, scope = self.block(name, group)
        return Graph(graph=name, input=pattern, span=self.span(word)), scope

    def _service(self, tree: Branch) -> Scoped:
        *_, name_tree, group = tree.children
        assert isinstance(group, Tree)
        endpoint = self.name_or_variable(name_tree)
        if isinstance(endpoint, IRI):
            self.refuse_remote(endpoint, "SERVICE", tree)
        elif "SERVICE" not in self.allow:
            raise UnsupportedError(
                f"SERVICE {endpoint} could reach any endpoint",
                hint="Name the endpoint, and allow it by that name.",
                span=self.span(tree),
            )
        pattern, scope = self.block(endpoint, group)
        silent = "SILENT" in words(tree)
        place = self.span(tree.children[0])
        return Service(endpoint=endpoint, input=pattern, silent=silent, span=place), scope

    def _bind(self, tree: Branch, current: _GroupSoFar) -> None:
        _, expression_tree, name = tree.children
        assert isinstance(expression_tree, Tree)
        variable = self.variable(name)
        pattern = current.flush()
        if variable in current.scope:
            raise self.error(
                f"BIND gives {variable} a value, but it already has one in this group",
                name,
                hint="Bind a new variable and compare the two in a FILTER.",
            )
        outer, self.aggregations = self.aggregations, None
        expression = self.expression(expression_tree)
        self.aggregations = outer
        place = self.span(tree.children[0])
        current.replace(Extend(input=pattern, variable=variable, expression=expression, span=place))
        current.scope[variable] = None

    def values(self, tree: Branch) -> Scoped:
        """Read VALUES, in a group or at the end of a query."""
        _, first, *rest = tree.children
        rows: list[tuple[Ground | None, ...]]
        if isinstance(first, Token):
            variables = [self.variable(first)]
            rows = [(self._value(child),) for child in rest]
        else:
            head, *row_trees = trees(first)
            variables = [self.variable(child) for child in head.children]
            rows = []
            for row in row_trees:
                cells = tuple(self._value(child) for child in row.children[1:])
                if len(cells) != len(variables):
                    raise self.error(
                        f"a VALUES row has {len(cells)} values for {len(variables)} variables",
                        row,
                        hint="Write UNDEF where there is no value.",
                    )
                rows.append(cells)
        if len(set(variables)) != len(variables):
            raise self.error("a VALUES variable stands twice", tree)
        node = Values(variables=tuple(variables), rows=tuple(rows), span=self.span(tree))
        return node, dict.fromkeys(variables)

    def _value(self, child: Child) -> Ground | None:
        if isinstance(child, Token):
            return None
        if child.data == "triple_term":
            term = self.triple_term(child, NoBlanks(self))
            if not isinstance(term, TripleTerm):
                raise self.error(
                    "a variable stands in a triple term of VALUES",
                    child,
                    hint="VALUES has fixed terms; BIND makes one of variables.",
                )
            return term
        return self.literal(child) if child.data == "literal" else self.iri(child)

    # --- SELECT and solution modifiers --------------------------------------------------------

    def _select(self, tree: Branch, values: Branch | None) -> Scoped:
        clause = find(tree, "select_clause")
        assert clause is not None
        kinds = words(clause)
        for word in sorted(kinds & {"ISTREAM", "RSTREAM", "DSTREAM"}):
            self.output_word(word)
        where = self._where(tree)
        parts = self._parts(tree, where, clause)
        pattern, variables = self._assemble(parts, values)
        pattern = Project(input=pattern, variables=tuple(variables), span=self.span(clause))
        if "DISTINCT" in kinds:
            pattern = Distinct(input=pattern, span=pattern.span)
        elif "REDUCED" in kinds:
            pattern = Reduced(input=pattern, span=pattern.span)
        return self._slice(tree, pattern), variables

    def _modified(self, tree: Branch, where: Scoped, values: Branch | None) -> Scoped:
        """Apply the modifiers of a query that selects no columns."""
        parts = self._parts(tree, where, None)
        pattern, scope = self._assemble(parts, values)
        return self._slice(tree, pattern), scope

    def _parts(self, tree: Branch, where: Scoped, clause: Branch | None) -> SelectParts:
        """Read the clauses, each expression once, with its aggregates taken out."""
        modifiers = find(tree, "modifiers")
        assert modifiers is not None
        pattern, scope = where
        parts = SelectParts(pattern=pattern, scope=dict(scope), place=self.span(tree))
        outer = self.aggregations
        self.aggregations = None
        for condition in trees(find(modifiers, "group_clause") or modifiers, "group_condition"):
            self._group_condition(condition, parts)
        aggregations = self.aggregations = Aggregations(self)
        for item in trees(clause, "select_item") if clause is not None else ():
            self._select_item(item, parts)
        having = find(modifiers, "having_clause")
        for child in having.children[1:] if having is not None else ():
            parts.having.append(self.constraint(child))
        for condition in trees(find(modifiers, "order_clause") or modifiers, "order_condition"):
            first = condition.children[0]
            descending = isinstance(first, Token) and first.type == "DESC"
            expression = self.constraint(condition.children[-1])
            place = self.span(condition)
            parts.order.append(OrderKey(expression=expression, descending=descending, span=place))
        self.aggregations = outer
        parts.aggregations = aggregations
        parts.star = clause is None or "STAR" in words(clause)
        parts.grouped = bool(find(modifiers, "group_clause") or parts.having or aggregations.calls)
        if parts.grouped and clause is not None:
            self._check_grouped(parts, clause)
        return parts

    def _group_condition(self, tree: Branch, parts: SelectParts) -> None:
        first = tree.children[0]
        if isinstance(first, Token):
            parts.keys[self.variable(first)] = None
            return
        expression = self.constraint(first)
        if len(tree.children) == 2:
            variable = self.variable(tree.children[1])
            if variable in parts.scope:
                raise self.error(f"GROUP BY names {variable}, which has a value already", tree)
        elif isinstance(expression, VariableExpression):
            parts.keys[expression.variable] = None
            return
        else:
            variable = self.hidden("key")
        parts.pattern = Extend(
            input=parts.pattern, variable=variable, expression=expression, span=self.span(tree)
        )
        parts.scope[variable] = None
        parts.keys[variable] = None

    def _select_item(self, tree: Branch, parts: SelectParts) -> None:
        variable = self.variable(tree.children[-1])
        if len(tree.children) == 1:
            if parts.columns.setdefault(variable, None) is not None:
                return
            parts.places[variable] = tree
            return
        expression_tree = tree.children[0]
        assert isinstance(expression_tree, Tree)
        if variable in parts.columns or variable in parts.scope:
            raise self.error(
                f"SELECT gives {variable} a value, but it already has one",
                tree.children[-1],
                hint="Name the result with a new variable.",
            )
        parts.columns[variable] = self.expression(expression_tree)
        parts.places[variable] = tree

    def _check_grouped(self, parts: SelectParts, clause: Branch) -> None:
        if parts.star:
            raise self.error(
                "SELECT * cannot be used with groups",
                clause,
                hint="Name the GROUP BY variables and the aggregates.",
            )
        known = set(parts.keys)
        for variable, expression in parts.columns.items():
            used = {variable} if expression is None else expression_variables(expression)
            for each in sorted(used - known):
                if not is_hidden(each):
                    raise self.error(
                        f"SELECT uses {each}, which is neither grouped by nor aggregated",
                        parts.places[variable],
                        hint=f"Add {each} to GROUP BY, or aggregate it, as in SAMPLE({each}).",
                    )
            known.add(variable)

    def _assemble(self, parts: SelectParts, values: Branch | None) -> Scoped:
        # The order is that of https://www.w3.org/TR/sparql11-query/#convertSolMod.
        pattern, scope = parts.pattern, parts.scope
        having, order = parts.having, parts.order
        if parts.grouped:
            aliases = {name: value for name, value in parts.columns.items() if value is not None}
            having = [substitute(each, aliases) for each in having]
            seen = set(parts.keys)
            having = [parts.sampled(each, seen) for each in having]
            seen |= set(aliases)
            order = [replace(key, expression=parts.sampled(key.expression, seen)) for key in order]
            assert parts.aggregations is not None
            pattern = Group(
                input=pattern,
                keys=tuple(parts.keys),
                aggregates=parts.aggregations.all(),
                span=parts.place,
            )
            scope = {key: None for key in parts.keys if not is_hidden(key)}
        if having:
            condition = conjunction(tuple(having), having[0].span)
            pattern = Filter(input=pattern, condition=condition, span=having[0].span)
        if values is not None:
            rows, variables = self.values(values)
            for variable in variables:
                if parts.columns.get(variable) is not None:
                    raise self.error(
                        f"VALUES gives {variable} a value, but SELECT does too", values
                    )
            pattern = join(pattern, rows)
            scope = {**scope, **variables}
        for variable, expression in parts.columns.items():
            if expression is not None:
                pattern = Extend(
                    input=pattern,
                    variable=variable,
                    expression=expression,
                    span=self.span(parts.places[variable]),
                )
        if order:
            pattern = OrderBy(input=pattern, keys=tuple(order), span=order[0].span)
        if parts.star:
            return pattern, {each: None for each in scope if not is_hidden(each)}
        return pattern, dict.fromkeys(parts.columns)

    def _slice(self, tree: Branch, pattern: Pattern) -> Pattern:
        modifiers = find(tree, "modifiers")
        assert modifiers is not None
        limit_tree = find(modifiers, "limit_clause")
        offset_tree = find(modifiers, "offset_clause")
        limit = self.integer(limit_tree.children[0], "the limit") if limit_tree else None
        offset = self.integer(offset_tree.children[0], "the offset") if offset_tree else 0
        if limit is None and offset == 0:
            return pattern
        place = self.span(limit_tree or offset_tree or tree)
        return Slice(input=pattern, offset=offset, limit=limit, span=place)


def _group_of(tree: Branch) -> Branch:
    group = tree.children[-1]
    assert isinstance(group, Tree)
    return group


def join(left: Pattern, right: Pattern) -> Pattern:
    """Join two patterns, without needless units; joins in a row become one."""
    match left, right:
        case BasicPattern(patterns=()), _:
            return right
        case _, BasicPattern(patterns=()):
            return left
        case Join(inputs=inputs), _:
            return Join(inputs=(*inputs, right), span=left.span)
        case _:
            return Join(inputs=(left, right), span=left.span)


class _GroupSoFar:
    """The pattern of a group's parts so far."""

    def __init__(self, builder: QueryBuilder) -> None:
        self.builder = builder
        self.pattern: Pattern = BasicPattern()
        self.scope: InScope = {}
        self.run: BasicRun | None = None
        self.place: Branch | None = None

    def triples(self, tree: Branch) -> None:
        # A filter between two triples blocks does not part them: they are one basic pattern.
        if self.run is None:
            self.run = BasicRun(self.builder)
            self.place = tree
        self.builder.triples_block(tree, self.run)

    def flush(self) -> Pattern:
        if self.run is not None and self.place is not None:
            run, self.run = self.run, None
            self.scope.update(run.variables)
            built = run.built(self.builder.leaf, self.builder.span(self.place))
            for part in built.inputs if isinstance(built, Join) else (built,):
                self.pattern = join(self.pattern, part)
        return self.pattern

    def replace(self, pattern: Pattern) -> None:
        self.pattern = pattern

    def join(self, pattern: Pattern, variables: InScope) -> None:
        self.pattern = join(self.flush(), pattern)
        self.scope.update(variables)
