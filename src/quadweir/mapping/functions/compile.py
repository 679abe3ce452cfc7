"""Turn function executions into Spark columns, nested ones and several values included."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from quadweir.errors import MappingError, QuadweirError
from quadweir.mapping.functions.columns import BUILDERS, Argument, truth
from quadweir.mapping.functions.registry import (
    FUNCTIONS,
    Function,
    Kind,
    Output,
    Parameter,
    Registry,
)
from quadweir.mapping.model import Constant, FunctionExecution, TermMap

_CASTS = {Kind.INTEGER: "bigint", Kind.NUMBER: "double"}
_ANSWER = StructType(
    [
        StructField("values", ArrayType(StringType())),
        StructField("problem", StringType()),
    ]
)


@dataclass(frozen=True, slots=True)
class Values:
    """What an expression yields for each record.

    `column` is a nullable string, or, if `many`, an array of strings (NULL and empty both mean no
    value). `datatype` is the natural datatype's IRI, None for plain strings. Each of `problems` is
    a nullable string: why the record could not be computed, for the dead letters.
    """

    column: Column
    many: bool = False
    datatype: str | None = None
    problems: tuple[Column, ...] = ()


Resolve = Callable[[TermMap], Values]
"""Gives the values of a term map that is not a function; the caller knows the record's columns."""


@dataclass(frozen=True, slots=True)
class _Typed:
    column: Column
    kind: Kind
    many: bool
    constant: str | None = None
    problems: tuple[Column, ...] = ()


def compile_function(
    execution: FunctionExecution, resolve: Resolve, registry: Registry = FUNCTIONS
) -> Values:
    """Compile a function execution to the column of its values.

    Args:
        execution: the call, with calls inside it.
        resolve: gives the values of inputs that are references, templates or constants.
        registry: the functions to look up.
    """
    registry.check(execution)
    typed = _compile(execution, resolve, registry)
    column = typed.column
    if typed.kind is Kind.LIST:
        return Values(F.array_compact(column), True, None, typed.problems)
    if typed.many:
        texts = F.transform(column, lambda item: _text(item, typed.kind))
        return Values(F.array_compact(texts), True, typed.kind.datatype, typed.problems)
    return Values(_text(column, typed.kind), False, typed.kind.datatype, typed.problems)


def compile_condition(
    execution: FunctionExecution, resolve: Resolve, registry: Registry = FUNCTIONS
) -> Column:
    """Compile a condition to a boolean column that is never NULL; a missing value fails it."""
    registry.check(execution)
    typed = _compile(execution, resolve, registry)
    column = typed.column
    if typed.kind is Kind.LIST or typed.many:
        holds = F.exists(column, lambda item: _truth(item, typed.kind))
    else:
        holds = _truth(column, typed.kind)
    return F.coalesce(holds, F.lit(False))


def uses_python(execution: FunctionExecution, registry: Registry = FUNCTIONS) -> bool:
    """Tell whether a call needs a Python worker, and so keeps a plan out of real-time mode."""
    return any(function.code is not None for function in _called(execution, registry))


def is_deterministic(execution: FunctionExecution, registry: Registry = FUNCTIONS) -> bool:
    """Tell whether equal records always give equal results."""
    return all(function.deterministic for function in _called(execution, registry))


def _called(execution: FunctionExecution, registry: Registry) -> Iterator[Function]:
    function = registry.get(execution.function)
    if function is not None:
        yield function
    for item in execution.inputs:
        if isinstance(item.value.expression, FunctionExecution):
            yield from _called(item.value.expression, registry)


def _compile(execution: FunctionExecution, resolve: Resolve, registry: Registry) -> _Typed:
    function = registry.check(execution)
    output = function.output(execution.returns)
    assert output is not None
    given: dict[str, list[_Typed]] = {}
    for item in execution.inputs:
        parameter = function.parameter(item.parameter)
        assert parameter is not None
        given.setdefault(parameter.name, []).append(_input(item.value, resolve, registry))
    problems = tuple(p for values in given.values() for value in values for p in value.problems)
    try:
        if function.code is not None:
            return _user(function, output, given, problems)
        return _built_in(function, output, given, problems)
    except QuadweirError as error:
        if error.span is None:
            error.span = execution.span
        raise


def _input(term: TermMap, resolve: Resolve, registry: Registry) -> _Typed:
    expression = term.expression
    if isinstance(expression, FunctionExecution):
        return _compile(expression, resolve, registry)
    constant = None
    if isinstance(expression, Constant):
        spelling = expression.term
        constant = getattr(spelling, "lexical", None) or getattr(spelling, "value", None) or ""
        return _Typed(F.lit(constant), Kind.STRING, False, constant)
    values = resolve(term)
    return _Typed(values.column, Kind.STRING, values.many, None, values.problems)


# -- built-ins ---------------------------------------------------------------------------------


def _built_in(
    function: Function,
    output: Output,
    given: dict[str, list[_Typed]],
    problems: tuple[Column, ...],
) -> _Typed:
    builder = BUILDERS.get(function.iri)
    if builder is None:
        raise MappingError(f"the function {function.iri} has no implementation")
    own = function.outputs[0].kind
    fixed: dict[str, Argument] = {}
    varied: list[tuple[Parameter, _Typed]] = []
    for parameter in function.parameters:
        values = given.get(parameter.name)
        if values is None:
            continue
        if parameter.kind is Kind.LIST:
            fixed[parameter.name] = Argument(_as_list(values))
            continue
        value = values[0]
        if value.many or value.kind is Kind.LIST:
            varied.append((parameter, value))
        else:
            column = _as_kind(value.column, value.kind, parameter.kind)
            fixed[parameter.name] = Argument(column, value.constant)
    # Each combination of several values is one call; a list of lists is flattened.
    result = _each(builder, fixed, varied, lists=own is Kind.LIST)
    kind = output.kind
    if own is Kind.LIST or kind is own:
        return _Typed(result, own, bool(varied), None, problems)
    if varied:
        return _Typed(
            F.transform(result, lambda item: _as_kind(item, own, kind)), kind, True, None, problems
        )
    return _Typed(_as_kind(result, own, kind), kind, False, None, problems)


def _each(
    builder: Callable[[dict[str, Argument]], Column],
    fixed: dict[str, Argument],
    varied: list[tuple[Parameter, _Typed]],
    *,
    lists: bool,
) -> Column:
    if not varied:
        return builder(fixed)
    (parameter, value), rest = varied[0], varied[1:]
    item_kind = Kind.STRING if value.kind is Kind.LIST else value.kind

    def one(item: Column) -> Column:
        argument = Argument(_as_kind(item, item_kind, parameter.kind))
        return _each(builder, {**fixed, parameter.name: argument}, rest, lists=lists)

    result = F.transform(value.column, one)
    return F.flatten(result) if lists or rest else result


def _as_list(values: list[_Typed]) -> Column:
    arrays = []
    for value in values:
        if value.kind is Kind.LIST:
            arrays.append(value.column)
        elif value.many:
            arrays.append(_texts_of(value.column, value.kind))
        else:
            arrays.append(F.array(_text(value.column, value.kind)))
    if len(arrays) == 1:
        return arrays[0]
    return F.concat(*(F.coalesce(array, F.array().cast("array<string>")) for array in arrays))


def _as_kind(column: Column, have: Kind, want: Kind) -> Column:
    if have is want:
        return column
    if want is Kind.BOOLEAN:
        return _truth(column, have)
    if want in _CASTS:
        # Text that is no number counts as missing.
        return column.try_cast(_CASTS[want])
    return _text(column, have)


def _texts_of(array: Column, kind: Kind) -> Column:
    return array if kind is Kind.LIST else F.transform(array, lambda item: _text(item, kind))


def _truth(column: Column, kind: Kind) -> Column:
    return column if kind is Kind.BOOLEAN else truth(_text(column, kind))


def _text(column: Column, kind: Kind) -> Column:
    return column if kind in (Kind.STRING, Kind.LIST) else column.cast("string")


# -- users' functions --------------------------------------------------------------------------


def _user(
    function: Function,
    output: Output,
    given: dict[str, list[_Typed]],
    problems: tuple[Column, ...],
) -> _Typed:
    index = function.outputs.index(output)
    columns: list[Column] = []
    shapes: list[bool] = []
    for parameter in function.parameters:
        values = given.get(parameter.name)
        if values is None:
            columns.append(F.lit(None).cast("string"))
            shapes.append(False)
        elif parameter.kind is Kind.LIST:
            columns.append(_as_list(values))
            shapes.append(True)
        else:
            value = values[0]
            many = value.many or value.kind is Kind.LIST
            if many:
                columns.append(_texts_of(value.column, value.kind))
            else:
                columns.append(_text(value.column, value.kind))
            shapes.append(many)
    if function.vectorized:
        return _vectorized(function, output, columns, shapes, problems)
    call = _Call(function, index, tuple(shapes))
    answer = F.udf(call, _ANSWER, useArrow=True)
    if not function.deterministic:
        answer = answer.asNondeterministic()
    result = answer(*columns)
    kind = output.kind
    texts = result["values"]
    found = (*problems, result["problem"])
    if kind is Kind.LIST:
        return _Typed(texts, Kind.LIST, False, None, found)
    # Kinds other than lists come back as text, which any later cast reads again.
    return _Typed(_retyped(texts, kind), kind, True, None, found)


def _retyped(texts: Column, kind: Kind) -> Column:
    if kind in (Kind.STRING, Kind.DATE, Kind.DATE_TIME):
        return texts
    return F.transform(texts, lambda item: _as_kind(item, Kind.STRING, kind))


def _vectorized(
    function: Function,
    output: Output,
    columns: list[Column],
    shapes: list[bool],
    problems: tuple[Column, ...],
) -> _Typed:
    if any(shapes) or len(function.outputs) > 1:
        raise MappingError(
            f"the function {function.iri} works on whole columns and cannot take or give several "
            "values for a record",
            hint="Register it without vectorized=True.",
        )
    # pandas_udf's overloads want to know how many Series the code takes.
    make: Any = pandas_udf
    answer = make(function.code, StringType())
    if not function.deterministic:
        answer = answer.asNondeterministic()
    column = _as_kind(answer(*columns), Kind.STRING, output.kind)
    return _Typed(column, output.kind, False, None, problems)


class _Call:
    """Calls a user's function for one record, for each combination of several values."""

    __name__ = "quadweir_user_function"

    def __init__(self, function: Function, index: int, shapes: tuple[bool, ...]) -> None:
        self._code = function.code
        self._iri = function.iri
        self._index = index if len(function.outputs) > 1 else None
        self._kinds = tuple(parameter.kind for parameter in function.parameters)
        self._shapes = shapes

    def __call__(self, *values: Any) -> dict[str, Any]:
        found: list[str] = []
        assert self._code is not None
        try:
            choices = [
                self._choices(value, kind, many)
                for value, kind, many in zip(values, self._kinds, self._shapes, strict=True)
            ]
            for arguments in itertools.product(*choices):
                answer = self._code(*arguments)
                if self._index is not None and answer is not None:
                    answer = answer[self._index]
                found.extend(_texts(answer))
        except Exception as error:
            return {
                "values": None,
                "problem": f"the function {self._iri} failed: {type(error).__name__}: {error}",
            }
        return {"values": found, "problem": None}

    def _choices(self, value: Any, kind: Kind, many: bool) -> list[Any]:
        if kind is Kind.LIST:
            return [[] if value is None else list(value)]
        if many:
            return [] if value is None else [_typed(item, kind) for item in value]
        return [_typed(value, kind)]


def _typed(value: str | None, kind: Kind) -> Any:
    if value is None:
        return None
    match kind:
        case Kind.INTEGER:
            return int(value)
        case Kind.NUMBER:
            return float(value)
        case Kind.BOOLEAN:
            return value.strip().lower() in ("true", "1")
        case _:
            return value


def _texts(answer: Any) -> list[str]:
    if answer is None:
        return []
    if isinstance(answer, (list, tuple, set, frozenset)):
        return [text for item in answer for text in _texts(item)]
    if isinstance(answer, bool):
        return ["true" if answer else "false"]
    return [str(answer)]
