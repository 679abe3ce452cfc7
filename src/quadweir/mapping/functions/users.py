"""Functions that are Python code, called from Spark on Arrow batches."""

from __future__ import annotations

import itertools
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from quadweir.errors import MappingError
from quadweir.mapping.functions.kinds import TypedColumn, as_kind, as_list, text_of, texts_of
from quadweir.mapping.functions.registry import Function, Kind, Output

_ANSWER: Final = StructType(
    [
        StructField("values", ArrayType(StringType())),
        StructField("problem", StringType()),
    ]
)


def call_python(
    function: Function,
    output: Output,
    given: dict[str, list[TypedColumn]],
    problems: tuple[Column, ...],
) -> TypedColumn:
    """The column of a Python function's results, and the column of its errors."""
    index = function.outputs.index(output)
    columns: list[Column] = []
    shapes: list[bool] = []
    for parameter in function.parameters:
        values = given.get(parameter.name)
        if values is None:
            columns.append(F.lit(None).cast("string"))
            shapes.append(False)
        elif parameter.kind is Kind.LIST:
            columns.append(as_list(values))
            shapes.append(True)
        else:
            value = values[0]
            many = value.many or value.kind is Kind.LIST
            if many:
                columns.append(texts_of(value.column, value.kind))
            else:
                columns.append(text_of(value.column, value.kind))
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
        return TypedColumn(texts, Kind.LIST, False, None, found)
    # Kinds other than lists come back as text, which any later cast reads again.
    return TypedColumn(_retyped(texts, kind), kind, True, None, found)


def _retyped(texts: Column, kind: Kind) -> Column:
    if kind in (Kind.STRING, Kind.DATE, Kind.DATE_TIME):
        return texts
    return F.transform(texts, lambda item: as_kind(item, Kind.STRING, kind))


def _vectorized(
    function: Function,
    output: Output,
    columns: list[Column],
    shapes: list[bool],
    problems: tuple[Column, ...],
) -> TypedColumn:
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
    column = as_kind(answer(*columns), Kind.STRING, output.kind)
    return TypedColumn(column, output.kind, False, None, problems)


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
