"""Compiles function executions to Spark columns, including nested calls and several values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from quadweir.errors import MappingError, QuadweirError
from quadweir.mapping.functions.columns import ALWAYS_GIVES, BUILDERS, Argument
from quadweir.mapping.functions.kinds import (
    TypedColumn,
    as_kind,
    as_list,
    can_misfit,
    first_of,
    misfit,
    shown,
    text_of,
    truth_of,
)
from quadweir.mapping.functions.patterns import BY_PATTERN, compiled
from quadweir.mapping.functions.registry import (
    FUNCTIONS,
    Function,
    Kind,
    MappingFunctions,
    Output,
    Parameter,
)
from quadweir.mapping.functions.users import call_python
from quadweir.mapping.model import ConstantTerm, FunctionExecution, TermMap
from quadweir.mapping.vocabulary import GREL, IDLAB


@dataclass(frozen=True, slots=True)
class CompiledValues:
    """The values of an expression for each record.

    `column` is a nullable string, or, if `many`, an array of strings (NULL and empty both mean no
    value). `datatype` is the natural datatype's IRI, None for plain strings. Each of `problems` is
    a nullable string: the reason for a dead letter.
    """

    column: Column
    many: bool = False
    datatype: str | None = None
    problems: tuple[Column, ...] = ()


Resolve = Callable[[TermMap], CompiledValues]
"""Returns the values of a term map that is not a function; the caller knows the record's
columns."""


def compile_function(
    execution: FunctionExecution, resolve: Resolve, registry: MappingFunctions = FUNCTIONS
) -> CompiledValues:
    """Compile a function execution to the column of its values.

    Args:
        execution: the call, with calls inside it.
        resolve: returns the values of inputs that are references, templates or constants.
        registry: the functions to look up.
    """
    registry.check(execution)
    typed = _compile(execution, resolve, registry)
    column = typed.column
    if typed.kind is Kind.LIST:
        return CompiledValues(F.array_compact(column), True, None, typed.problems)
    if typed.many:
        texts = F.transform(column, lambda item: text_of(item, typed.kind))
        return CompiledValues(F.array_compact(texts), True, typed.kind.datatype, typed.problems)
    return CompiledValues(text_of(column, typed.kind), False, typed.kind.datatype, typed.problems)


@dataclass(frozen=True, slots=True)
class CompiledCondition:
    """Whether records meet a condition (never NULL), and the reason if that could not be
    computed.
    """

    holds: Column
    problems: tuple[Column, ...] = ()


def compile_condition(
    execution: FunctionExecution, resolve: Resolve, registry: MappingFunctions = FUNCTIONS
) -> CompiledCondition:
    """Compile a condition; a missing value fails it, and so does one that is a problem."""
    registry.check(execution)
    typed = _compile(execution, resolve, registry)
    column = typed.column
    if typed.kind is Kind.LIST or typed.many:
        holds = F.exists(column, lambda item: truth_of(item, typed.kind))
    else:
        holds = truth_of(column, typed.kind)
    return CompiledCondition(F.coalesce(holds, F.lit(False)), typed.problems)


def uses_python(execution: FunctionExecution, registry: MappingFunctions = FUNCTIONS) -> bool:
    """Whether a call needs a Python worker, which real-time mode does not have."""
    return any(
        function.code is not None or function.iri in BY_PATTERN
        for function in _called(execution, registry)
    )


def _called(execution: FunctionExecution, registry: MappingFunctions) -> Iterator[Function]:
    function = registry.get(execution.function)
    if function is not None:
        yield function
    for item in execution.inputs:
        if isinstance(item.value.expression, FunctionExecution):
            yield from _called(item.value.expression, registry)


def _compile(
    execution: FunctionExecution, resolve: Resolve, registry: MappingFunctions
) -> TypedColumn:
    function = registry.check(execution)
    output = function.output(execution.returns)
    assert output is not None
    given: dict[str, list[TypedColumn]] = {}
    for item in execution.inputs:
        parameter = function.parameter(item.parameter)
        assert parameter is not None
        given.setdefault(parameter.name, []).append(_input(item.value, resolve, registry))
    problems = tuple(_problems(function, given))
    try:
        if function.code is None and function.iri in BY_PATTERN:
            _check_patterns(function, given)
            function = replace(function, code=BY_PATTERN[function.iri])
        if function.code is not None:
            return call_python(function, output, given, problems)
        return _built_in(function, output, given, problems)
    except QuadweirError as error:
        if error.span is None:
            error.span = execution.span
        raise


def _check_patterns(function: Function, given: dict[str, list[TypedColumn]]) -> None:
    """Refuse constants that are not regular expressions."""
    for parameter in function.parameters:
        if parameter.kind is not Kind.REGEX:
            continue
        for value in given.get(parameter.name, ()):
            if value.constant is None:
                continue
            try:
                compiled(value.constant)
            except ValueError as error:
                raise MappingError(
                    str(error),
                    hint="Write a pattern of RE2, which has neither back references nor look-around.",
                ) from None


def _problems(function: Function, given: dict[str, list[TypedColumn]]) -> Iterator[Column]:
    """The problems of all inputs, except those that a choice does not use."""
    chosen = _CHOICES.get(function.iri, {})
    (condition,) = given.get("condition", [None])[:1] if chosen else (None,)
    for name, values in given.items():
        for problem in (problem for value in values for problem in value.problems):
            if name in chosen and condition is not None and not condition.many:
                holds = F.coalesce(truth_of(condition.column, condition.kind), F.lit(False))
                yield F.when(holds if chosen[name] else ~holds, problem)
            else:
                yield problem


_CHOICES: Final[dict[str, dict[str, bool]]] = {
    GREL.controls_if: {"then": True, "otherwise": False},
    IDLAB.trueCondition: {"value": True},
}
"""Functions that use an input only if their condition is true, or only if it is false."""


def _input(term: TermMap, resolve: Resolve, registry: MappingFunctions) -> TypedColumn:
    expression = term.expression
    if isinstance(expression, FunctionExecution):
        return _compile(expression, resolve, registry)
    constant = None
    if isinstance(expression, ConstantTerm):
        spelling = expression.term
        constant = getattr(spelling, "lexical", None) or getattr(spelling, "value", None) or ""
        return TypedColumn(F.lit(constant), Kind.STRING, False, constant)
    values = resolve(term)
    return TypedColumn(values.column, Kind.STRING, values.many, None, values.problems)


# -- built-ins ---------------------------------------------------------------------------------


def _built_in(
    function: Function,
    output: Output,
    given: dict[str, list[TypedColumn]],
    problems: tuple[Column, ...],
) -> TypedColumn:
    builder = BUILDERS.get(function.iri)
    if builder is None:
        raise MappingError(f"the function {function.iri} has no implementation")
    own = function.outputs[0].kind
    fixed: dict[str, Argument] = {}
    varied: list[tuple[Parameter, TypedColumn]] = []
    found: list[Column] = list(problems)
    for parameter in function.parameters:
        values = given.get(parameter.name)
        if values is None:
            continue
        if parameter.kind is Kind.LIST:
            fixed[parameter.name] = Argument(as_list(values))
            continue
        value = values[0]
        if value.many or value.kind is Kind.LIST:
            varied.append((parameter, value))
        else:
            column = as_kind(value.column, value.kind, parameter.kind)
            fixed[parameter.name] = Argument(column, value.constant)
        if value.constant is None:
            found.extend(_misfits(function, parameter, value))
    found.extend(_without_result(function, builder, fixed, varied))
    problems = tuple(found)
    # Each combination of several values is one call; a list of lists is flattened.
    result = _each(builder, fixed, varied, lists=own is Kind.LIST)
    kind = output.kind
    if own is Kind.LIST or kind is own:
        return TypedColumn(result, own, bool(varied), None, problems)
    if varied:
        return TypedColumn(
            F.transform(result, lambda item: as_kind(item, own, kind)), kind, True, None, problems
        )
    return TypedColumn(as_kind(result, own, kind), kind, False, None, problems)


def _misfits(function: Function, parameter: Parameter, value: TypedColumn) -> Iterator[Column]:
    """The reasons for values that the parameter cannot take."""
    kind = Kind.STRING if value.kind is Kind.LIST else value.kind

    if not can_misfit(kind, parameter.kind):
        return
    taker = function.iri
    if value.many or value.kind is Kind.LIST:
        yield first_of(value.column, lambda item: misfit(item, kind, parameter.kind, taker))
    else:
        yield misfit(value.column, kind, parameter.kind, taker)


def _without_result(
    function: Function,
    builder: Callable[[dict[str, Argument]], Column],
    fixed: dict[str, Argument],
    varied: list[tuple[Parameter, TypedColumn]],
) -> Iterator[Column]:
    """The reason for valid arguments that have no result."""
    why = ALWAYS_GIVES.get(function.iri)
    if why is None:
        return
    kinds = {parameter.name: parameter.kind for parameter in function.parameters}

    def reason(given: dict[str, Argument]) -> Column:
        present = [
            ~F.exists(argument.column, F.isnull)
            if kinds[name] is Kind.LIST
            else argument.column.isNotNull()
            for name, argument in given.items()
        ]
        texts = [
            F.concat(F.lit("'"), shown(argument.column, kinds[name]), F.lit("'"))
            for name, argument in given.items()
            if kinds[name] is not Kind.LIST
        ]
        return F.when(
            reduce(and_, present) & builder(given).isNull(),
            F.concat(
                F.lit(f"the function {function.iri} gives nothing for "),
                F.concat_ws(", ", *texts) if texts else F.lit("a list"),
                F.lit(f": {why}"),
            ),
        )

    reasons = _each(reason, fixed, varied, lists=False)
    if varied:
        yield F.try_element_at(F.array_compact(reasons), F.lit(1))
    else:
        yield reasons


def _each(
    builder: Callable[[dict[str, Argument]], Column],
    fixed: dict[str, Argument],
    varied: list[tuple[Parameter, TypedColumn]],
    *,
    lists: bool,
) -> Column:
    if not varied:
        return builder(fixed)
    (parameter, value), rest = varied[0], varied[1:]
    item_kind = Kind.STRING if value.kind is Kind.LIST else value.kind

    def one(item: Column) -> Column:
        argument = Argument(as_kind(item, item_kind, parameter.kind))
        return _each(builder, {**fixed, parameter.name: argument}, rest, lists=lists)

    result = F.transform(value.column, one)
    return F.flatten(result) if lists or rest else result
