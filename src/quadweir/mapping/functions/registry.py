"""The functions that mappings can call: those that users registered, and the built-in ones.

`quadweir.functions` defines functions, and how a user adds one. Nothing here needs Spark, so
a mapping's function calls can be checked without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from quadweir.errors import MappingError
from quadweir.functions import (
    REGISTERED,
    Function,
    Kind,
    Output,
    Parameter,
    Registry,
    normalize,
    register,
)
from quadweir.mapping.functions.dateformats import is_date_format
from quadweir.mapping.model import ConstantTerm, FunctionExecution, FunctionInput
from quadweir.mapping.vocabulary import GREL, IDLAB, suggest
from quadweir.terms import Literal

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")


class MappingFunctions(Registry):
    """Functions by IRI, and checks of a mapping's calls.

    >>> FUNCTIONS.get(GREL.toUpperCase).parameters[0].name
    'value'
    """

    def copy(self) -> MappingFunctions:
        """A new registry with the same functions."""
        return MappingFunctions(self)

    def check(self, execution: FunctionExecution) -> Function:
        """The function of a call; raises if the call is not valid."""
        function = self.get(execution.function)
        if function is None:
            guess = suggest(normalize(execution.function), [known.iri for known in self])
            raise MappingError(
                f"the function {execution.function} is not known",
                hint=f"Did you mean {guess}?"
                if guess
                else "Register it in Python with quadweir.register.",
                span=execution.span,
            )
        if any(parameter.required and not parameter.iris for parameter in function.parameters):
            raise MappingError(
                f"the parameters of the function {function.iri} have no IRIs, so no mapping can name them",
                hint=f"Register it with them: quadweir.register({function.iri!r}, code, "
                "[IRIs of the parameters], returns=[IRIs of the outputs]).",
                span=execution.span,
            )
        given: dict[str, FunctionInput] = {}
        for item in execution.inputs:
            parameter = function.parameter(item.parameter)
            if parameter is None:
                known = [iri for p in function.parameters for iri in p.iris[:1]]
                guess = suggest(normalize(item.parameter), known)
                raise MappingError(
                    f"the function {function.iri} has no parameter {item.parameter}",
                    hint=f"Did you mean {guess}?"
                    if guess
                    else f"Its parameters: {', '.join(known) or 'none'}.",
                    span=item.value.span or execution.span,
                )
            if parameter.name in given and parameter.kind is not Kind.LIST:
                raise MappingError(
                    f"the function {function.iri} is given {item.parameter} twice",
                    hint="Keep one of the two inputs.",
                    span=item.value.span or execution.span,
                )
            given[parameter.name] = item
            _check_constant(function, parameter, item)
        for parameter in function.parameters:
            if parameter.required and parameter.name not in given:
                raise MappingError(
                    f"the function {function.iri} is not given {parameter.iris[0]}",
                    hint="Give it an input for that parameter.",
                    span=execution.span,
                )
        if function.output(execution.returns) is None:
            known = [iri for output in function.outputs for iri in output.iris[:1]]
            raise MappingError(
                f"the function {function.iri} does not return {execution.returns}",
                hint=f"It returns {' and '.join(known)}."
                if known
                else "Its result has no IRI: leave rml:return out, or register it with returns=[IRI].",
                span=execution.span,
            )
        for item in execution.inputs:
            if isinstance(item.value.expression, FunctionExecution):
                self.check(item.value.expression)
        return function


def _check_constant(function: Function, parameter: Parameter, item: FunctionInput) -> None:
    """Raise a MappingError for a constant that the parameter cannot take."""
    expression = item.value.expression
    if not isinstance(expression, ConstantTerm) or not isinstance(expression.term, Literal):
        return
    text = expression.term.lexical
    match parameter.kind:
        case Kind.INTEGER:
            fits, what = _is_long(text), "a whole number of 64 bits"
        case Kind.NUMBER:
            fits, what = _is_number(text), "a number"
        case Kind.DATE_FORMAT:
            fits, what = is_date_format(text), "a date format"
        case _:
            return
    if not fits:
        raise MappingError(
            f"the function {function.iri} is given {text!r} as {item.parameter}, "
            f"which is not {what}",
            hint="A date format is made of yyyy, MM, dd, HH, mm, ss and the like, and of other "
            "text in single quotes."
            if parameter.kind is Kind.DATE_FORMAT
            else "Mend the constant.",
            span=item.value.span,
        )


def _is_long(text: str) -> bool:
    return bool(_WHOLE.fullmatch(text.strip())) and -(2**63) <= int(text) < 2**63


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


class _SharedRegistry(MappingFunctions):
    """The functions that users registered in this process, and the built-in ones, made on first
    use.
    """

    def __init__(self) -> None:
        super().__init__()
        # The same table, so that a function registered for queries is there for mappings.
        self._functions = REGISTERED._functions
        self._built_in: dict[str, Function] = {}

    def _built_ins(self) -> dict[str, Function]:
        if not self._built_in:
            # The catalogue needs the classes above, so it cannot be imported before they exist.
            from quadweir.mapping.functions.catalogue import BUILT_IN

            self._built_in = {function.iri: function for function in BUILT_IN}
        return self._built_in

    def get(self, iri: str) -> Function | None:
        return super().get(iri) or self._built_ins().get(normalize(iri))

    def __iter__(self) -> Iterator[Function]:
        return iter({**self._built_ins(), **self._functions}.values())


FUNCTIONS: Final[MappingFunctions] = _SharedRegistry()
"""The functions that all mappings share: the built-in ones and those added by `register`."""

__all__ = [
    "FUNCTIONS",
    "GREL",
    "IDLAB",
    "Function",
    "Kind",
    "Output",
    "Parameter",
    "MappingFunctions",
    "normalize",
    "register",
]
