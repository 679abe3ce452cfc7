"""The one text form of a tree, for `explain`, golden files and fingerprints.

It is complete: the tests read the same tree back. Equal trees have equal
texts, whatever query text they came from. Terms are spelt as in N-Triples, but numbers and booleans
stand as they are; times are milliseconds.
"""

from __future__ import annotations

import re
from typing import Final, assert_never

from quadweir.algebra.expressions import (
    AggregateCall,
    And,
    Arithmetic,
    Bound,
    Coalesce,
    Compare,
    Constant,
    Exists,
    Expression,
    FunctionCall,
    If,
    In,
    Negate,
    Not,
    Or,
    VariableExpression,
)
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
)
from quadweir.algebra.query import (
    AskForm,
    ConstructForm,
    ContinuousQuery,
    DescribeForm,
    QueryForm,
    SelectForm,
    TemplateTerm,
    TripleTemplate,
)
from quadweir.algebra.sexpr import Sexpr, layout
from quadweir.algebra.windows import (
    AllScope,
    CountScope,
    NowScope,
    PastScope,
    Scope,
    TimeScope,
    Window,
)
from quadweir.terms import IRI, Literal, TripleTerm, escape
from quadweir.vocab import XSD

_BARE: Final = {
    IRI(XSD.integer): re.compile(r"[+-]?[0-9]+"),
    IRI(XSD.decimal): re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    IRI(XSD.double): re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+"),
    IRI(XSD.boolean): re.compile(r"true|false"),
}
BLOCKS: Final = frozenset(
    [
        "query",
        "windows",
        "declare",
        "pattern",
        "construct",
        "make",
        "bgp",
        "triple",
        "path",
        "values",
        "join",
        "leftjoin",
        "union",
        "minus",
        "filter",
        "extend",
        "graph",
        "window",
        "service",
        "service-silent",
        "group",
        "project",
        "distinct",
        "reduced",
        "order",
        "slice",
    ]
)


def render(node: ContinuousQuery | Pattern) -> str:
    """Write a query or a pattern, laid out for people.

    >>> from quadweir.terms import Variable
    >>> x = Variable("x")
    >>> print(render(Project(input=BasicPattern(), variables=(x,))))
    (project (?x)
      (bgp))
    """
    form = _query(node) if isinstance(node, ContinuousQuery) else pattern_form(node)
    return (
        layout(form, BLOCKS) + "\n" if isinstance(node, ContinuousQuery) else layout(form, BLOCKS)
    )


def render_expression(expression: Expression) -> str:
    """Write an expression.

    >>> from quadweir.terms import Variable
    >>> render_expression(Not(operand=Bound(variable=Variable("x"))))
    '(! (BOUND ?x))'
    """
    return layout(expression_form(expression), BLOCKS)


def render_aggregate(call: AggregateCall) -> str:
    """Write an aggregate on its own."""
    return layout(aggregate_form(call), BLOCKS)


def render_path(path: Path) -> str:
    """Write a property path on its own."""
    return layout(path_form(path), BLOCKS)


def term(value: TemplateTerm) -> Sexpr:
    """Spell a term; a plain number or boolean stands without quotes, a triple term is a form.

    >>> term(Literal("5", datatype=IRI(XSD.integer))), term(Literal("a b"))
    ('5', '"a b"')
    """
    if isinstance(value, TripleTerm | TripleTemplate):
        return ["triple-term", term(value.subject), term(value.predicate), term(value.object)]
    if isinstance(value, Literal) and value.language is None:
        bare = _BARE.get(value.datatype)
        if bare is not None and bare.fullmatch(value.lexical):
            return value.lexical
    return str(value)


def _ms(value: int) -> str:
    return f"{value}ms"


# --- query and windows --------------------------------------------------------------------------


def _query(query: ContinuousQuery) -> Sexpr:
    parts: list[Sexpr] = ["query"]
    if query.name is not None:
        parts.append(["name", f'"{escape(query.name)}"'])
    parts.append(_form(query.form))
    if query.default_graphs:
        parts.append(["from", *map(term, query.default_graphs)])
    if query.named_graphs:
        parts.append(["from-named", *map(term, query.named_graphs)])
    if query.windows:
        parts.append(["windows", *map(window_form, query.windows)])
    if query.default_graph_windows:
        parts.append(["default-graph", *map(term, query.default_graph_windows)])
    report: list[Sexpr] = ["report", query.report.policy.value]
    if query.report.non_empty_only:
        report.append("non-empty")
    parts.append(report)
    if query.tick.every_ms is not None:
        parts.append(["tick", _ms(query.tick.every_ms)])
    parts.append(["output", query.output.value])
    parts.append(["pattern", pattern_form(query.pattern)])
    return parts


def _form(form: QueryForm) -> Sexpr:
    match form:
        case SelectForm(variables=variables):
            return ["select", *map(term, variables)]
        case ConstructForm(template=template):
            triples: list[Sexpr] = [
                ["make", *(term(part) for part in each.terms if part is not None)]
                for each in template
            ]
            return ["construct", *triples]
        case AskForm():
            return ["ask"]
        case DescribeForm(targets=targets):
            return ["describe", *map(term, targets)]
        case _:
            assert_never(form)


def window_form(window: Window) -> Sexpr:
    """A window's declaration as a form."""
    parts: list[Sexpr] = [
        "declare",
        term(window.name),
        term(window.stream),
        _scope(window.scope),
        window.content.value,
    ]
    if window.event_time is not None:
        parts.append(["event-time", term(window.event_time)])
    return parts


def _scope(scope: Scope) -> Sexpr:
    match scope:
        case TimeScope():
            flags = [
                *(["full"] if scope.full else []),
                *(["while-open"] if scope.while_open else []),
            ]
            return ["range", _ms(scope.range_ms), *_step(scope), *flags]
        case PastScope():
            return ["past", _ms(scope.from_ms), _ms(scope.to_ms), *_step(scope)]
        case CountScope():
            step = [] if scope.step is None else ["step", str(scope.step)]
            return [scope.unit.value, str(scope.size), *step]
        case NowScope():
            return ["now"]
        case AllScope():
            return ["all"]
        case _:
            assert_never(scope)


def _step(scope: TimeScope | PastScope) -> list[Sexpr]:
    step: list[Sexpr] = [] if scope.step_ms is None else ["step", _ms(scope.step_ms)]
    origin: list[Sexpr] = [] if scope.origin_ms == 0 else ["origin", _ms(scope.origin_ms)]
    return step + origin


# --- patterns ---------------------------------------------------------------------------------


def pattern_form(pattern: Pattern) -> Sexpr:
    """A pattern as a form."""
    match pattern:
        case BasicPattern(patterns=parts):
            return ["bgp", *map(_triple, parts)]
        case Values(variables=variables, rows=rows):
            cells: list[Sexpr] = [
                ["undef" if cell is None else term(cell) for cell in row] for row in rows
            ]
            return ["values", [*map(term, variables)], *cells]
        case Join(inputs=inputs):
            return ["join", *map(pattern_form, inputs)]
        case LeftJoin(left=left, right=right, condition=condition):
            on: list[Sexpr] = [] if condition is None else [expression_form(condition)]
            return ["leftjoin", *on, pattern_form(left), pattern_form(right)]
        case Union(inputs=inputs):
            return ["union", *map(pattern_form, inputs)]
        case Minus(left=left, right=right):
            return ["minus", pattern_form(left), pattern_form(right)]
        case Filter(input=source, condition=condition):
            return ["filter", expression_form(condition), pattern_form(source)]
        case Extend(input=source, variable=variable, expression=expression):
            return ["extend", term(variable), expression_form(expression), pattern_form(source)]
        case Graph(graph=name, input=source):
            return ["graph", term(name), pattern_form(source)]
        case WindowPattern(window=name, input=source):
            return ["window", term(name), pattern_form(source)]
        case Service(endpoint=endpoint, input=source, silent=silent):
            head = "service-silent" if silent else "service"
            return [head, term(endpoint), pattern_form(source)]
        case Group(input=source, keys=keys, aggregates=aggregates):
            calls: list[Sexpr] = [
                [term(each.variable), aggregate_form(each.call)] for each in aggregates
            ]
            return ["group", [*map(term, keys)], calls, pattern_form(source)]
        case Project(input=source, variables=variables):
            return ["project", [*map(term, variables)], pattern_form(source)]
        case Distinct(input=source):
            return ["distinct", pattern_form(source)]
        case Reduced(input=source):
            return ["reduced", pattern_form(source)]
        case OrderBy(input=source, keys=order):
            by: list[Sexpr] = [
                ["desc" if key.descending else "asc", expression_form(key.expression)]
                for key in order
            ]
            return ["order", by, pattern_form(source)]
        case Slice(input=source, offset=offset, limit=limit):
            most = "all" if limit is None else str(limit)
            return ["slice", str(offset), most, pattern_form(source)]
        case _:
            assert_never(pattern)


def _triple(part: TriplePattern | PathPattern) -> Sexpr:
    match part:
        case TriplePattern(subject=subject, predicate=predicate, object=object_):
            return ["triple", term(subject), term(predicate), term(object_)]
        case PathPattern(subject=subject, path=path, object=object_):
            return ["path", term(subject), path_form(path), term(object_)]
        case _:
            assert_never(part)


def path_form(path: Path) -> Sexpr:
    """A property path as a form."""
    match path:
        case Link(predicate=predicate):
            return term(predicate)
        case Inverse(path=inner):
            return ["inverse", path_form(inner)]
        case Sequence(paths=paths):
            return ["sequence", *map(path_form, paths)]
        case Alternative(paths=paths):
            return ["alternative", *map(path_form, paths)]
        case ZeroOrMore(path=inner):
            return ["zero-or-more", path_form(inner)]
        case OneOrMore(path=inner):
            return ["one-or-more", path_form(inner)]
        case ZeroOrOne(path=inner):
            return ["zero-or-one", path_form(inner)]
        case NegatedSet(forward=forward, backward=backward):
            behind: list[Sexpr] = [["inverse", term(each)] for each in backward]
            return ["none-of", *map(term, forward), *behind]
        case _:
            assert_never(path)


# --- expressions ------------------------------------------------------------------------------


def expression_form(expression: Expression) -> Sexpr:
    """An expression as a form."""
    match expression:
        case VariableExpression(variable=variable):
            return term(variable)
        case Constant(term=value):
            return term(value)
        case And(parts=parts):
            return ["&&", *map(expression_form, parts)]
        case Or(parts=parts):
            return ["||", *map(expression_form, parts)]
        case Not(operand=operand):
            return ["!", expression_form(operand)]
        case Negate(operand=operand):
            return ["negate", expression_form(operand)]
        case (
            Compare(operator=operator, left=left, right=right)
            | Arithmetic(operator=operator, left=left, right=right)
        ):
            return [operator, expression_form(left), expression_form(right)]
        case In(operand=operand, choices=choices, negated=negated):
            head = "not-in" if negated else "in"
            return [head, expression_form(operand), *map(expression_form, choices)]
        case FunctionCall(function=function, arguments=arguments):
            name = term(function) if isinstance(function, IRI) else function
            return [name, *map(expression_form, arguments)]
        case If(condition=condition, then=then, otherwise=otherwise):
            return ["IF", *map(expression_form, (condition, then, otherwise))]
        case Coalesce(arguments=arguments):
            return ["COALESCE", *map(expression_form, arguments)]
        case Bound(variable=variable):
            return ["BOUND", term(variable)]
        case Exists(pattern=pattern, negated=negated):
            return ["not-exists" if negated else "exists", pattern_form(pattern)]
        case _:
            assert_never(expression)


def aggregate_form(call: AggregateCall) -> Sexpr:
    """An aggregate as a form."""
    parts: list[Sexpr] = [call.function]
    if call.distinct:
        parts.append("distinct")
    parts.append("*" if call.argument is None else expression_form(call.argument))
    if call.separator is not None:
        parts.append(f'"{escape(call.separator)}"')
    return parts
