"""Reads the text form of a tree: the inverse of `render`.

A checkpoint names its query in this form, so that an upgrade can plan that query once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

from quadweir.algebra.expressions import (
    AGGREGATES,
    ARITHMETIC,
    COMPARISONS,
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
    Aggregation,
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
    PathPattern,
    Pattern,
    Project,
    Reduced,
    Service,
    Slice,
    TriplePattern,
    Union,
    Values,
    WindowPattern,
)
from quadweir.algebra.query import (
    AskForm,
    ConstructForm,
    ContinuousQuery,
    DescribeForm,
    QueryForm,
    SelectForm,
    TemplateTriple,
)
from quadweir.algebra.readforms import (
    atom_of,
    head_of,
    iri_of,
    ms_of,
    name_of,
    parse_form,
    parts_of,
    path_of,
    pattern_term_of,
    string_of,
    term_of,
    value_of,
    variable_of,
    variables_of,
)
from quadweir.algebra.sexpr import Sexpr, flat
from quadweir.algebra.streams import EVERY_INSTANT, OutputOperator, Report, ReportPolicy, Tick
from quadweir.algebra.windows import (
    AllScope,
    Content,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    Scope,
    TimeScope,
    Window,
)
from quadweir.errors import DataError, InternalError, LimitError, QuerySyntaxError
from quadweir.terms import Variable

_T = TypeVar("_T")
_BUILTIN: Final = re.compile(r"[A-Z][A-Z0-9_]*")


def read_query(text: str) -> ContinuousQuery:
    """Read a query that `render` wrote.

    >>> read_query("(query (ask) (report on-change) (output rstream) (pattern (bgp)))").form
    AskForm()
    """
    return _reading(text, _query)


def read_pattern(text: str) -> Pattern:
    """Read a pattern that `render` wrote.

    >>> read_pattern("(distinct (bgp))")
    Distinct(input=BasicPattern(patterns=()))
    """
    return _reading(text, _pattern)


def read_expression(text: str) -> Expression:
    """Read an expression that `render_expression` wrote.

    >>> read_expression("(BOUND ?x)")
    Bound(variable=Variable(name='x'))
    """
    return _reading(text, _expression)


def _reading(text: str, read: Callable[[Sexpr], _T]) -> _T:
    try:
        return read(parse_form(text))
    except (IndexError, KeyError, ValueError, DataError, InternalError) as problem:
        raise QuerySyntaxError(f"not a query tree: {problem}") from None
    except RecursionError:
        raise LimitError("the query tree nests too deeply") from None


# --- query and windows --------------------------------------------------------------------------


def _query(form: Sexpr) -> ContinuousQuery:
    if head_of(form) != "query":
        raise ValueError("a query starts with (query")
    parts = {head_of(part): parts_of(part)[1:] for part in parts_of(form)[1:]}
    kinds = [kind for kind in ("select", "construct", "ask", "describe") if kind in parts]
    policy, *flags = parts["report"]
    name = parts.get("name")
    return ContinuousQuery(
        name=None if name is None else string_of(name[0]),
        form=_query_form(kinds[0], parts[kinds[0]]),
        pattern=_pattern(parts["pattern"][0]),
        windows=tuple(map(_window, parts.get("windows", []))),
        default_graphs=tuple(map(iri_of, parts.get("from", []))),
        named_graphs=tuple(map(iri_of, parts.get("from-named", []))),
        default_graph_windows=tuple(map(iri_of, parts.get("default-graph", []))),
        report=Report(policy=ReportPolicy(policy), non_empty_only=flags == ["non-empty"]),
        tick=Tick(every_ms=ms_of(parts["tick"][0])) if "tick" in parts else EVERY_INSTANT,
        output=OutputOperator(parts["output"][0]),
    )


def _query_form(kind: str, parts: list[Sexpr]) -> QueryForm:
    match kind:
        case "select":
            return SelectForm(variables=tuple(map(variable_of, parts)))
        case "construct":
            return ConstructForm(template=tuple(map(_template, parts)))
        case "ask":
            return AskForm()
        case _:
            return DescribeForm(targets=tuple(map(name_of, parts)))


def _template(form: Sexpr) -> TemplateTriple:
    _, subject, predicate, object_, *graph = parts_of(form)
    return TemplateTriple(
        subject=term_of(subject),
        predicate=name_of(predicate),
        object=term_of(object_),
        graph=name_of(graph[0]) if graph else None,
    )


def _window(form: Sexpr) -> Window:
    _, name, stream, scope, content, *rest = parts_of(form)
    return Window(
        name=iri_of(name),
        stream=name_of(stream),
        scope=_scope(parts_of(scope)),
        content=Content(content),
        event_time=iri_of(parts_of(rest[0])[1]) if rest else None,
    )


def _scope(form: list[Sexpr]) -> Scope:
    head, *rest = map(atom_of, form)
    match head:
        case "range":
            flags = {"full", "while-open"} & set(rest)
            options = _options([each for each in rest[1:] if each not in flags])
            return TimeScope(
                range_ms=ms_of(rest[0]),
                step_ms=options.get("step"),
                origin_ms=options.get("origin", 0),
                full="full" in flags,
                while_open="while-open" in flags,
            )
        case "past":
            options = _options(rest[2:])
            return PastScope(
                from_ms=ms_of(rest[0]),
                to_ms=ms_of(rest[1]),
                step_ms=options.get("step"),
                origin_ms=options.get("origin", 0),
            )
        case "triples" | "elements":
            step = _options(rest[1:]).get("step")
            return CountScope(unit=CountUnit(head), size=int(rest[0]), step=step)
        case "now":
            return NowScope()
        case "all":
            return AllScope()
        case _:
            raise ValueError(f"no window scope {head}")


def _options(atoms: list[str]) -> dict[str, int]:
    return {name: ms_of(value) for name, value in zip(atoms[::2], atoms[1::2], strict=True)}


# --- patterns ---------------------------------------------------------------------------------


def _pattern(form: Sexpr) -> Pattern:
    head, *rest = parts_of(form)
    match head:
        case "bgp":
            return BasicPattern(patterns=tuple(map(_triple, rest)))
        case "values":
            return Values(
                variables=variables_of(rest[0]),
                rows=tuple(
                    tuple(None if cell == "undef" else value_of(cell) for cell in parts_of(row))
                    for row in rest[1:]
                ),
            )
        case "join":
            return Join(inputs=tuple(map(_pattern, rest)))
        case "leftjoin":
            *condition, left, right = rest
            return LeftJoin(
                left=_pattern(left),
                right=_pattern(right),
                condition=_expression(condition[0]) if condition else None,
            )
        case "union":
            return Union(inputs=tuple(map(_pattern, rest)))
        case "minus":
            return Minus(left=_pattern(rest[0]), right=_pattern(rest[1]))
        case "filter":
            return Filter(condition=_expression(rest[0]), input=_pattern(rest[1]))
        case "extend":
            return Extend(
                variable=variable_of(rest[0]),
                expression=_expression(rest[1]),
                input=_pattern(rest[2]),
            )
        case "graph":
            return Graph(graph=name_of(rest[0]), input=_pattern(rest[1]))
        case "window":
            return WindowPattern(window=name_of(rest[0]), input=_pattern(rest[1]))
        case "service" | "service-silent":
            return Service(
                endpoint=name_of(rest[0]), input=_pattern(rest[1]), silent=head == "service-silent"
            )
        case "group":
            return Group(
                keys=variables_of(rest[0]),
                aggregates=tuple(map(_aggregation, parts_of(rest[1]))),
                input=_pattern(rest[2]),
            )
        case "project":
            return Project(variables=variables_of(rest[0]), input=_pattern(rest[1]))
        case "distinct":
            return Distinct(input=_pattern(rest[0]))
        case "reduced":
            return Reduced(input=_pattern(rest[0]))
        case "order":
            return OrderBy(keys=tuple(map(_order_key, parts_of(rest[0]))), input=_pattern(rest[1]))
        case "slice":
            limit = None if rest[1] == "all" else int(atom_of(rest[1]))
            return Slice(offset=int(atom_of(rest[0])), limit=limit, input=_pattern(rest[2]))
        case _:
            raise ValueError(f"no pattern {flat(head)[:40]}")


def _triple(form: Sexpr) -> TriplePattern | PathPattern:
    head, subject, middle, object_ = parts_of(form)
    if head == "triple":
        return TriplePattern(
            subject=pattern_term_of(subject),
            predicate=name_of(middle),
            object=pattern_term_of(object_),
        )
    return PathPattern(
        subject=pattern_term_of(subject), path=path_of(middle), object=pattern_term_of(object_)
    )


def _order_key(form: Sexpr) -> OrderKey:
    direction, expression = parts_of(form)
    return OrderKey(expression=_expression(expression), descending=direction == "desc")


def _aggregation(form: Sexpr) -> Aggregation:
    variable, call = parts_of(form)
    function, *rest = parts_of(call)
    name = atom_of(function)
    if name not in AGGREGATES:
        raise ValueError(f"no aggregate {name}")
    distinct = rest[0] == "distinct"
    rest = rest[1:] if distinct else rest
    return Aggregation(
        variable=variable_of(variable),
        call=AggregateCall(
            function=name,
            argument=None if rest[0] == "*" else _expression(rest[0]),
            distinct=distinct,
            separator=string_of(rest[1]) if len(rest) > 1 else None,
        ),
    )


# --- expressions ------------------------------------------------------------------------------


def _expression(form: Sexpr) -> Expression:
    if isinstance(form, str) or form[:1] == ["triple-term"]:
        value = term_of(form)
        if isinstance(value, Variable):
            return VariableExpression(variable=value)
        return Constant(term=value_of(form))
    head, *rest = form
    name = atom_of(head)
    if name.startswith("<") and name.endswith(">"):
        return FunctionCall(function=iri_of(name), arguments=tuple(map(_expression, rest)))
    if name in ("exists", "not-exists"):
        return Exists(pattern=_pattern(rest[0]), negated=name == "not-exists")
    if name == "BOUND":
        return Bound(variable=variable_of(rest[0]))
    arguments = tuple(map(_expression, rest))
    if name in COMPARISONS:
        left, right = arguments
        return Compare(operator=name, left=left, right=right)
    if name in ARITHMETIC:
        left, right = arguments
        return Arithmetic(operator=name, left=left, right=right)
    match name:
        case "&&":
            return And(parts=arguments)
        case "||":
            return Or(parts=arguments)
        case "!":
            return Not(operand=arguments[0])
        case "negate":
            return Negate(operand=arguments[0])
        case "in" | "not-in":
            return In(operand=arguments[0], choices=arguments[1:], negated=name == "not-in")
        case "IF":
            condition, then, otherwise = arguments
            return If(condition=condition, then=then, otherwise=otherwise)
        case "COALESCE":
            return Coalesce(arguments=arguments)
        case _ if _BUILTIN.fullmatch(name):
            return FunctionCall(function=name, arguments=arguments)
        case _:
            raise ValueError(f"no expression {name[:40]}")
