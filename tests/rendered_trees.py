"""Reads the text form of a tree: the inverse of `quadweir.algebra.render`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

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
    PatternTerm,
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
    TemplateTriple,
    TripleTemplate,
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
from quadweir.spans import Span
from quadweir.terms import IRI, BlankNode, Ground, Literal, TripleTerm, Variable, unescape
from quadweir.vocab import XSD

_T = TypeVar("_T")
AnyTerm: TypeAlias = TemplateTerm

_ATOM: Final = re.compile(
    r'\s+|(?P<bracket>[()])|(?P<atom><[^<>\s]*>|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^>]*>)?|[^\s()"]+)',
    re.DOTALL,
)
_LITERAL: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?', re.DOTALL)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]*\.[0-9]+")
_DOUBLE: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+")
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


def parse_form(text: str) -> Sexpr:
    """Read one form.

    >>> parse_form('(extend ?x "a b"@en (bgp))')
    ['extend', '?x', '"a b"@en', ['bgp']]
    """
    stack: list[list[Sexpr]] = [[]]
    place = 0
    while place < len(text):
        match = _ATOM.match(text, place)
        if match is None:
            raise _error(text, place, f"unexpected {text[place]!r} in a query tree")
        place = match.end()
        if match["atom"] is not None:
            stack[-1].append(match["atom"])
        elif match["bracket"] == "(":
            stack.append([])
        elif match["bracket"] == ")":
            if len(stack) == 1:
                raise _error(text, match.start(), "a bracket closes that was not opened")
            done = stack.pop()
            stack[-1].append(done)
    if len(stack) > 1:
        raise _error(text, len(text), "a bracket is not closed")
    if len(stack[0]) != 1:
        raise _error(text, 0, f"a query tree is one form, and here are {len(stack[0])}")
    return stack[0][0]


def _error(text: str, place: int, message: str) -> QuerySyntaxError:
    line = text.count("\n", 0, place) + 1
    column = place - (text.rfind("\n", 0, place) + 1) + 1
    return QuerySyntaxError(message, span=Span(line, column))


def _reading(text: str, read: Callable[[Sexpr], _T]) -> _T:
    try:
        return read(parse_form(text))
    except (IndexError, KeyError, ValueError, DataError, InternalError) as problem:
        raise QuerySyntaxError(f"not a query tree: {problem}") from None
    except RecursionError:
        raise LimitError("the query tree nests too deeply") from None


def _list(form: Sexpr) -> list[Sexpr]:
    if isinstance(form, str):
        raise ValueError(f"expected a form in brackets, not {form[:40]}")
    return form


def _atom(form: Sexpr) -> str:
    if not isinstance(form, str):
        raise ValueError(f"expected a word, not {flat(form)[:40]}")
    return form


def _head(form: Sexpr) -> str:
    return _atom(_list(form)[0])


# --- terms ------------------------------------------------------------------------------------


def _term(form: Sexpr) -> AnyTerm:
    if not isinstance(form, str):
        return _triple_term(form)
    atom = _atom(form)
    if atom.startswith("<") and atom.endswith(">"):
        return IRI(atom[1:-1])
    if atom.startswith("?"):
        return Variable(atom[1:])
    if atom.startswith("_:"):
        return BlankNode(atom[2:])
    if atom in ("true", "false"):
        return Literal(atom, datatype=IRI(XSD.boolean))
    if _INTEGER.fullmatch(atom):
        return Literal(atom, datatype=IRI(XSD.integer))
    if _DECIMAL.fullmatch(atom):
        return Literal(atom, datatype=IRI(XSD.decimal))
    if _DOUBLE.fullmatch(atom):
        return Literal(atom, datatype=IRI(XSD.double))
    match = _LITERAL.fullmatch(atom)
    if match is None:
        raise ValueError(f"{atom[:40]} is no term")
    lexical = unescape(match[1])
    if match[2] is not None:
        return Literal(lexical, language=match[2])
    return Literal(lexical, datatype=IRI(match[3])) if match[3] is not None else Literal(lexical)


def _triple_term(form: list[Sexpr]) -> AnyTerm:
    head, *parts = form
    if head != "triple-term" or len(parts) != 3:
        raise ValueError(f"{flat(form)[:40]} is no term")
    subject, predicate, end = _term(parts[0]), _name(parts[1]), _term(parts[2])
    if (
        isinstance(subject, IRI)
        and isinstance(predicate, IRI)
        and isinstance(end, IRI | Literal | TripleTerm)
    ):
        return TripleTerm(subject, predicate, end)
    return TripleTemplate(subject=subject, predicate=predicate, object=end)


def _iri(form: Sexpr) -> IRI:
    value = _term(form)
    if not isinstance(value, IRI):
        raise ValueError(f"{value} is no IRI")
    return value


def _variable(form: Sexpr) -> Variable:
    value = _term(form)
    if not isinstance(value, Variable):
        raise ValueError(f"{value} is no variable")
    return value


def _name(form: Sexpr) -> IRI | Variable:
    value = _term(form)
    if not isinstance(value, IRI | Variable):
        raise ValueError(f"{value} is no name")
    return value


def _pattern_term(form: Sexpr) -> PatternTerm:
    value = _term(form)
    if isinstance(value, BlankNode | TripleTemplate):
        raise ValueError(f"{flat(form)} cannot stand in a pattern")
    return value


def _value(form: Sexpr) -> Ground:
    value = _term(form)
    if not isinstance(value, IRI | Literal | TripleTerm):
        raise ValueError(f"{value} is no value")
    return value


def _string(form: Sexpr) -> str:
    value = _term(form)
    if not isinstance(value, Literal):
        raise ValueError(f"{value} is no string")
    return value.lexical


def _variables(form: Sexpr) -> tuple[Variable, ...]:
    return tuple(map(_variable, _list(form)))


def _ms(form: Sexpr) -> int:
    return int(_atom(form).removesuffix("ms"))


# --- query and windows --------------------------------------------------------------------------


def _query(form: Sexpr) -> ContinuousQuery:
    if _head(form) != "query":
        raise ValueError("a query starts with (query")
    parts = {_head(part): _list(part)[1:] for part in _list(form)[1:]}
    kinds = [kind for kind in ("select", "construct", "ask", "describe") if kind in parts]
    policy, *flags = parts["report"]
    name = parts.get("name")
    return ContinuousQuery(
        name=None if name is None else _string(name[0]),
        form=_query_form(kinds[0], parts[kinds[0]]),
        pattern=_pattern(parts["pattern"][0]),
        windows=tuple(map(_window, parts.get("windows", []))),
        default_graphs=tuple(map(_iri, parts.get("from", []))),
        named_graphs=tuple(map(_iri, parts.get("from-named", []))),
        default_graph_windows=tuple(map(_iri, parts.get("default-graph", []))),
        report=Report(policy=ReportPolicy(policy), non_empty_only=flags == ["non-empty"]),
        tick=Tick(every_ms=_ms(parts["tick"][0])) if "tick" in parts else EVERY_INSTANT,
        output=OutputOperator(parts["output"][0]),
    )


def _query_form(kind: str, parts: list[Sexpr]) -> QueryForm:
    match kind:
        case "select":
            return SelectForm(variables=tuple(map(_variable, parts)))
        case "construct":
            return ConstructForm(template=tuple(map(_template, parts)))
        case "ask":
            return AskForm()
        case _:
            return DescribeForm(targets=tuple(map(_name, parts)))


def _template(form: Sexpr) -> TemplateTriple:
    _, subject, predicate, object_, *graph = _list(form)
    return TemplateTriple(
        subject=_term(subject),
        predicate=_name(predicate),
        object=_term(object_),
        graph=_name(graph[0]) if graph else None,
    )


def _window(form: Sexpr) -> Window:
    _, name, stream, scope, content, *rest = _list(form)
    return Window(
        name=_iri(name),
        stream=_name(stream),
        scope=_scope(_list(scope)),
        content=Content(content),
        event_time=_iri(_list(rest[0])[1]) if rest else None,
    )


def _scope(form: list[Sexpr]) -> Scope:
    head, *rest = map(_atom, form)
    match head:
        case "range":
            flags = {"full", "while-open"} & set(rest)
            options = _options([each for each in rest[1:] if each not in flags])
            return TimeScope(
                range_ms=_ms(rest[0]),
                step_ms=options.get("step"),
                origin_ms=options.get("origin", 0),
                full="full" in flags,
                while_open="while-open" in flags,
            )
        case "past":
            options = _options(rest[2:])
            return PastScope(
                from_ms=_ms(rest[0]),
                to_ms=_ms(rest[1]),
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
    return {name: _ms(value) for name, value in zip(atoms[::2], atoms[1::2], strict=True)}


# --- patterns ---------------------------------------------------------------------------------


def _pattern(form: Sexpr) -> Pattern:
    head, *rest = _list(form)
    match head:
        case "bgp":
            return BasicPattern(patterns=tuple(map(_triple, rest)))
        case "values":
            return Values(
                variables=_variables(rest[0]),
                rows=tuple(
                    tuple(None if cell == "undef" else _value(cell) for cell in _list(row))
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
                variable=_variable(rest[0]),
                expression=_expression(rest[1]),
                input=_pattern(rest[2]),
            )
        case "graph":
            return Graph(graph=_name(rest[0]), input=_pattern(rest[1]))
        case "window":
            return WindowPattern(window=_name(rest[0]), input=_pattern(rest[1]))
        case "service" | "service-silent":
            return Service(
                endpoint=_name(rest[0]), input=_pattern(rest[1]), silent=head == "service-silent"
            )
        case "group":
            return Group(
                keys=_variables(rest[0]),
                aggregates=tuple(map(_aggregation, _list(rest[1]))),
                input=_pattern(rest[2]),
            )
        case "project":
            return Project(variables=_variables(rest[0]), input=_pattern(rest[1]))
        case "distinct":
            return Distinct(input=_pattern(rest[0]))
        case "reduced":
            return Reduced(input=_pattern(rest[0]))
        case "order":
            return OrderBy(keys=tuple(map(_order_key, _list(rest[0]))), input=_pattern(rest[1]))
        case "slice":
            limit = None if rest[1] == "all" else int(_atom(rest[1]))
            return Slice(offset=int(_atom(rest[0])), limit=limit, input=_pattern(rest[2]))
        case _:
            raise ValueError(f"no pattern {flat(head)[:40]}")


def _triple(form: Sexpr) -> TriplePattern | PathPattern:
    head, subject, middle, object_ = _list(form)
    if head == "triple":
        return TriplePattern(
            subject=_pattern_term(subject), predicate=_name(middle), object=_pattern_term(object_)
        )
    return PathPattern(
        subject=_pattern_term(subject), path=_path(middle), object=_pattern_term(object_)
    )


def _path(form: Sexpr) -> Path:
    if isinstance(form, str):
        return Link(predicate=_iri(form))
    head, *rest = form
    match head:
        case "inverse":
            return Inverse(path=_path(rest[0]))
        case "sequence":
            return Sequence(paths=tuple(map(_path, rest)))
        case "alternative":
            return Alternative(paths=tuple(map(_path, rest)))
        case "zero-or-more":
            return ZeroOrMore(path=_path(rest[0]))
        case "one-or-more":
            return OneOrMore(path=_path(rest[0]))
        case "zero-or-one":
            return ZeroOrOne(path=_path(rest[0]))
        case "none-of":
            return NegatedSet(
                forward=tuple(_iri(each) for each in rest if isinstance(each, str)),
                backward=tuple(_iri(each[1]) for each in rest if not isinstance(each, str)),
            )
        case _:
            raise ValueError(f"no path {flat(head)[:40]}")


def _order_key(form: Sexpr) -> OrderKey:
    direction, expression = _list(form)
    return OrderKey(expression=_expression(expression), descending=direction == "desc")


def _aggregation(form: Sexpr) -> Aggregation:
    variable, call = _list(form)
    function, *rest = _list(call)
    name = _atom(function)
    if name not in AGGREGATES:
        raise ValueError(f"no aggregate {name}")
    distinct = rest[0] == "distinct"
    rest = rest[1:] if distinct else rest
    return Aggregation(
        variable=_variable(variable),
        call=AggregateCall(
            function=name,
            argument=None if rest[0] == "*" else _expression(rest[0]),
            distinct=distinct,
            separator=_string(rest[1]) if len(rest) > 1 else None,
        ),
    )


# --- expressions ------------------------------------------------------------------------------


def _expression(form: Sexpr) -> Expression:
    if isinstance(form, str) or form[:1] == ["triple-term"]:
        value = _term(form)
        if isinstance(value, Variable):
            return VariableExpression(variable=value)
        return Constant(term=_value(form))
    head, *rest = form
    name = _atom(head)
    if name.startswith("<") and name.endswith(">"):
        return FunctionCall(function=_iri(name), arguments=tuple(map(_expression, rest)))
    if name in ("exists", "not-exists"):
        return Exists(pattern=_pattern(rest[0]), negated=name == "not-exists")
    if name == "BOUND":
        return Bound(variable=_variable(rest[0]))
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
