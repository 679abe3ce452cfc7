"""Flat lists of operands and operators to expression trees; built-in calls; aggregates."""

from __future__ import annotations

from typing import Final

from lark import Token, Tree

from quadweir.algebra import geo
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
from quadweir.algebra.patterns import Aggregation, Pattern
from quadweir.algebra.query import TemplateTerm, TripleTemplate
from quadweir.errors import UnsupportedError
from quadweir.spans import Span
from quadweir.syntax.build_terms import Branch, Child, trees, words
from quadweir.syntax.build_triples import NoBlanks, TripleBuilder
from quadweir.syntax.iris import resolve
from quadweir.terms import IRI, XSD_STRING, BlankNode, Literal, Variable
from quadweir.vocab import XSD

# How many arguments each built-in takes; None is any number.
_ARGUMENTS: Final[dict[str, tuple[int, int | None]]] = {
    **dict.fromkeys(("NOW", "RAND", "STRUUID", "UUID"), (0, 0)),
    "BNODE": (0, 1),
    **dict.fromkeys(
        (
            *("ABS", "BOUND", "CEIL", "DATATYPE", "DAY", "ENCODE_FOR_URI", "FLOOR", "HOURS", "IRI"),
            *("ISBLANK", "ISIRI", "ISLITERAL", "ISNUMERIC", "LANG", "LCASE", "MD5", "MINUTES"),
            *("MONTH", "ROUND", "SECONDS", "SHA1", "SHA256", "SHA384", "SHA512", "STR", "STRLEN"),
            *("TIMEZONE", "TZ", "UCASE", "YEAR", "ISTRIPLE", "SUBJECT", "PREDICATE", "OBJECT"),
        ),
        (1, 1),
    ),
    **dict.fromkeys(
        (
            *("CONTAINS", "LANGMATCHES", "SAMETERM", "STRAFTER", "STRBEFORE", "STRDT", "STRENDS"),
            *("STRLANG", "STRSTARTS"),
        ),
        (2, 2),
    ),
    "REGEX": (2, 3),
    "SUBSTR": (2, 3),
    "IF": (3, 3),
    "TRIPLE": (3, 3),
    "REPLACE": (3, 4),
    "TIMESTAMP": (1, 3),
    "COALESCE": (0, None),
    "CONCAT": (0, None),
}
_SYNONYMS: Final = {"URI": "IRI", "ISURI": "ISIRI", "AVERAGE": "AVG"}
# Under this name C-SPARQL's engine has its timestamp function.
_TIMESTAMP: Final = IRI("http://larkc.eu/csparql/sparql/jena/ext#timestamp")
_PRECEDENCE: Final = {"||": 1, "&&": 2, "+": 4, "-": 4, "*": 5, "/": 5}
_COMPARISON: Final = 3
_ZERO: Final = "0"


class Aggregations:
    """The aggregates of one SELECT and the hidden variables that take their values."""

    def __init__(self, builder: ExpressionBuilder) -> None:
        self.builder = builder
        self.calls: dict[AggregateCall, Variable] = {}

    def variable(self, call: AggregateCall) -> Variable:
        known = self.calls.get(call)
        if known is None:
            known = self.calls[call] = self.builder.hidden(call.function.lower())
        return known

    def all(self) -> tuple[Aggregation, ...]:
        return tuple(
            Aggregation(variable=variable, call=call, span=call.span)
            for call, variable in self.calls.items()
        )


class ExpressionBuilder(TripleBuilder):
    """Reads expressions; `aggregations` is where aggregates go, or None where none may stand."""

    aggregations: Aggregations | None = None

    def group(self, tree: Branch) -> tuple[Pattern, dict[Variable, None]]:
        """Read a group graph pattern; for EXISTS."""
        raise NotImplementedError

    def constraint(self, child: Child) -> Expression:
        """Read what FILTER, HAVING and ORDER BY take: brackets or a call."""
        return self._primary(child)

    def expression(self, tree: Branch) -> Expression:
        children = tree.children
        if len(children) == 1:
            return self._primary(children[0])
        return self._operators(children)

    # --- operators ----------------------------------------------------------------------------

    def _operators(self, children: list[Child]) -> Expression:
        operands: list[Expression] = [self._primary(children[0])]
        pending: list[Token] = []
        compared = False
        index = 1
        while index < len(children):
            child = children[index]
            index += 1
            if isinstance(child, Tree):  # IN or NOT IN, which has its right side in it
                self._reduce(operands, pending, _COMPARISON + 1)
                compared = self._compare_once(compared, child)
                operands.append(self._membership(operands.pop(), child))
                continue
            if child.type == "SIGNED_NUMBER":  # `?x -1` is a subtraction
                operator = child.update(type="HYPHEN", value=str(child)[0])
                operand: Expression = self._number(child, str(child)[1:])
            else:
                operator = child
                operand = self._primary(children[index])
                index += 1
            rank = _rank(operator)
            self._reduce(operands, pending, rank)
            if rank == _COMPARISON:
                compared = self._compare_once(compared, operator)
            elif rank < _COMPARISON:
                compared = False
            pending.append(operator)
            operands.append(operand)
        self._reduce(operands, pending, 0)
        return operands[0]

    def _compare_once(self, compared: bool, place: Child) -> bool:
        if compared:
            raise self.error(
                "two comparisons stand side by side",
                place,
                hint="Put one in brackets, or join them with &&.",
            )
        return True

    def _reduce(self, operands: list[Expression], pending: list[Token], rank: int) -> None:
        while pending and _rank(pending[-1]) >= rank:
            operator = pending.pop()
            right = operands.pop()
            left = operands.pop()
            operands.append(_combine(str(operator), left, right, self.span(operator)))

    def _membership(self, operand: Expression, tree: Branch) -> Expression:
        return In(
            operand=operand,
            choices=tuple(self.expression(each) for each in trees(tree)),
            negated="NOT" in words(tree),
            span=self.span(tree),
        )

    def _number(self, token: Token, text: str) -> Expression:
        return Constant(term=self.number(text), span=self.span(token))

    # --- operands -----------------------------------------------------------------------------

    def _primary(self, child: Child) -> Expression:
        if isinstance(child, Token):
            return VariableExpression(variable=self.variable(child), span=self.span(child))
        match str(child.data):
            case "expression":
                return self.expression(child)
            case "literal":
                return Constant(term=self.literal(child), span=self.span(child))
            case "unary":
                return self._unary(child)
            case "builtin":
                return self._builtin(child)
            case "aggregate":
                return self._aggregate(child)
            case "exists":
                return self._exists(child)
            case "triple_term":
                return self._triple_expression(self.triple_term(child, NoBlanks(self)), child)
            case _:  # iri_or_call, function_call
                return self._function(child)

    def _triple_expression(self, term: TemplateTerm, place: Branch) -> Expression:
        match term:
            case Variable():
                return VariableExpression(variable=term, span=self.span(place))
            case TripleTemplate(subject=subject, predicate=predicate, object=end):
                parts = (subject, predicate, end)
                arguments = tuple(self._triple_expression(each, place) for each in parts)
                return FunctionCall(function="TRIPLE", arguments=arguments, span=self.span(place))
            case _:
                assert not isinstance(term, BlankNode)
                return Constant(term=term, span=self.span(place))

    def _unary(self, tree: Branch) -> Expression:
        sign, operand_tree = tree.children
        operand = self._primary(operand_tree)
        match str(sign):
            case "!":
                return Not(operand=operand, span=self.span(sign))
            case "-":
                return Negate(operand=operand, span=self.span(sign))
            case _:
                zero = Constant(term=self.number(_ZERO))
                return Arithmetic(operator="+", left=zero, right=operand, span=self.span(sign))

    def _function(self, tree: Branch) -> Expression:
        name = self.iri(tree.children[0])
        place = self.span(tree)
        if len(tree.children) == 1:
            return Constant(term=name, span=place)
        arguments_tree = tree.children[1]
        assert isinstance(arguments_tree, Tree)
        if "DISTINCT" in words(arguments_tree):
            raise UnsupportedError(
                f"DISTINCT in a call of {name} asks for an aggregate that Quadweir does not have",
                span=place,
            )
        arguments = tuple(self.expression(each) for each in trees(arguments_tree))
        if name == _TIMESTAMP:
            return self._call("TIMESTAMP", arguments, tree)
        if geo.is_missing(name):
            raise UnsupportedError(
                f"the function {name} needs shapely, which is not installed",
                hint="Install it: pip install 'quadweir[geo]'.",
                span=place,
            )
        if name.value.startswith(XSD.base) and len(arguments) != 1:
            raise self.error(f"the cast {name} takes one argument", tree)
        return FunctionCall(function=name, arguments=arguments, span=place)

    def _builtin(self, tree: Branch) -> Expression:
        name = str(tree.children[0]).upper()
        name = _SYNONYMS.get(name, name)
        return self._call(name, tuple(self.expression(each) for each in trees(tree)), tree)

    def _call(self, name: str, arguments: tuple[Expression, ...], tree: Branch) -> Expression:
        fewest, most = _ARGUMENTS[name]
        if len(arguments) < fewest or (most is not None and len(arguments) > most):
            wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise self.error(
                f"{name} takes {wanted} arguments, and here are {len(arguments)}", tree
            )
        place = self.span(tree)
        match name:
            case "BOUND":
                match arguments[0]:
                    case VariableExpression(variable=variable):
                        return Bound(variable=variable, span=place)
                raise self.error("BOUND asks about something that is no variable", tree)
            case "IF":
                condition, then, otherwise = arguments
                return If(condition=condition, then=then, otherwise=otherwise, span=place)
            case "COALESCE":
                return Coalesce(arguments=arguments, span=place)
            case "IRI" if self.base is not None:
                # The base is known here only, so a constant is resolved here.
                match arguments[0]:
                    case Constant(term=Literal(lexical=text, datatype=datatype)) if (
                        datatype == XSD_STRING and IRI(resolve(text, self.base)).is_valid()
                    ):
                        return Constant(term=IRI(resolve(text, self.base)), span=place)
                return FunctionCall(function=name, arguments=arguments, span=place)
            case "TIMESTAMP":
                self._check_timestamp(arguments, tree)
                return FunctionCall(function=name, arguments=arguments, span=place)
            case _:
                return FunctionCall(function=name, arguments=arguments, span=place)

    def _check_timestamp(self, arguments: tuple[Expression, ...], tree: Branch) -> None:
        """Refuse what can be no variable that an element binds and no triple that one carries."""
        match arguments:
            case (VariableExpression(),):
                return
            case (_,):
                raise self.error(
                    "timestamp() asks about something that is no variable",
                    tree,
                    hint="Give it a variable that a stream pattern binds, or the subject, predicate "
                    "and object of a triple: timestamp(?s, ?p, ?o).",
                )
            case (_, _):
                raise self.error(
                    "timestamp() takes a variable, or the subject, predicate and object of a triple",
                    tree,
                    hint="Write timestamp(?v) or timestamp(?s, ?p, ?o).",
                )
        for part, argument in zip(("subject", "predicate"), arguments, strict=False):
            if isinstance(argument, Constant) and isinstance(argument.term, Literal):
                raise self.error(
                    f"timestamp() asks about a triple whose {part} is a literal",
                    tree,
                    hint=f"No triple has such a {part}; give an IRI or a variable.",
                )

    def _exists(self, tree: Branch) -> Expression:
        outer, self.aggregations = self.aggregations, None
        group = tree.children[-1]
        assert isinstance(group, Tree)
        pattern, _ = self.group(group)
        self.aggregations = outer
        return Exists(pattern=pattern, negated="NOT" in words(tree), span=self.span(tree))

    # --- aggregates ---------------------------------------------------------------------------

    def _aggregate(self, tree: Branch) -> Expression:
        collector = self.aggregations
        first = tree.children[0]
        name = str(first).upper()
        name = _SYNONYMS.get(name, name)
        if collector is None:
            raise self.error(
                f"the aggregate {name} stands where there are no groups",
                first,
                hint="Aggregates belong in SELECT, HAVING and ORDER BY, and not inside each other.",
            )
        kinds = words(tree)
        arguments = trees(tree)
        if not arguments and name != "COUNT":
            raise self.error(f"{name}(*) means nothing; only COUNT takes a star", tree)
        if "STRING" in kinds and name != "GROUP_CONCAT":
            raise self.error(f"{name} has no SEPARATOR; only GROUP_CONCAT does", tree)
        self.aggregations = None
        argument = self.expression(arguments[0]) if arguments else None
        self.aggregations = collector
        separator = self.string(tree.children[-1]) if "STRING" in kinds else " "
        place = self.span(tree)
        call = AggregateCall(
            function=name,
            argument=argument,
            distinct="DISTINCT" in kinds,
            separator=separator if name == "GROUP_CONCAT" else None,
            span=place,
        )
        return VariableExpression(variable=collector.variable(call), span=place)


def _rank(operator: Token) -> int:
    return _PRECEDENCE.get(str(operator), _COMPARISON)


def _combine(operator: str, left: Expression, right: Expression, place: Span | None) -> Expression:
    match operator:
        case "&&":
            return conjunction((left, right), place)
        case "||":
            parts = (
                *(left.parts if isinstance(left, Or) else (left,)),
                *(right.parts if isinstance(right, Or) else (right,)),
            )
            return Or(parts=parts, span=place)
        case "+" | "-" | "*" | "/":
            return Arithmetic(operator=operator, left=left, right=right, span=place)
        case _:
            return Compare(operator=operator, left=left, right=right, span=place)


def conjunction(conditions: tuple[Expression, ...], place: Span | None) -> Expression:
    """Join conditions into one, with no conjunction inside another."""
    parts: list[Expression] = []
    for each in conditions:
        parts.extend(each.parts if isinstance(each, And) else (each,))
    return parts[0] if len(parts) == 1 else And(parts=tuple(parts), span=place)
