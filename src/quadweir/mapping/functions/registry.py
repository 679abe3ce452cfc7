"""What functions there are, by IRI: their parameters, outputs and, for a user's, the code.

Nothing here needs Spark, so a mapping's function calls can be checked without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, final

from quadweir.errors import MappingError, UsageError
from quadweir.mapping.model import FunctionExecution, FunctionInput
from quadweir.mapping.vocabulary import GREL, IDLAB, suggest
from quadweir.vocab import XSD

_OLD_IDLAB: Final = "http://example.com/idlab/function/"


class Kind(StrEnum):
    """What a parameter takes or an output gives."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    DATE_TIME = "dateTime"
    LIST = "list"
    """All values at once; every other kind takes or gives them one by one."""

    @property
    def datatype(self) -> str | None:
        """The natural datatype of values of this kind; None leaves them plain strings."""
        return _DATATYPES.get(self)


_DATATYPES: Final = {
    Kind.INTEGER: XSD.integer,
    Kind.NUMBER: XSD.double,
    Kind.BOOLEAN: XSD.boolean,
    Kind.DATE: XSD.date,
    Kind.DATE_TIME: XSD.dateTime,
}


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter, the IRIs it goes by (its own and its predicate's), and what it takes."""

    name: str
    iris: tuple[str, ...]
    kind: Kind = Kind.STRING
    required: bool = True


@final
@dataclass(frozen=True, slots=True)
class Output:
    """An output, the IRIs it goes by, and what it gives."""

    iris: tuple[str, ...]
    kind: Kind = Kind.STRING


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function; `code` is None for built-ins, which `columns.py` writes as expressions."""

    iri: str
    parameters: tuple[Parameter, ...] = ()
    outputs: tuple[Output, ...]
    deterministic: bool = True
    code: Callable[..., Any] | None = field(default=None, compare=False)
    vectorized: bool = False

    def __post_init__(self) -> None:
        if not self.outputs:
            raise UsageError(f"the function {self.iri} has no output")
        names = [parameter.name for parameter in self.parameters]
        if len(set(names)) != len(names):
            raise UsageError(f"the function {self.iri} has two parameters of one name")

    def parameter(self, iri: str) -> Parameter | None:
        """Find a parameter by one of its IRIs."""
        wanted = normalize(iri)
        return next((p for p in self.parameters if wanted in p.iris), None)

    def output(self, iri: str | None) -> Output | None:
        """Find an output by one of its IRIs; None asks for the first."""
        if iri is None:
            return self.outputs[0]
        wanted = normalize(iri)
        return next((o for o in self.outputs if wanted in o.iris), None)


class Registry:
    """Functions by IRI.

    >>> from quadweir.mapping.vocabulary import GREL
    >>> FUNCTIONS.get(GREL.toUpperCase).parameters[0].name
    'value'
    """

    def __init__(self, functions: Iterable[Function] = ()) -> None:
        self._functions = {function.iri: function for function in functions}

    def add(self, function: Function) -> None:
        """Add a function, in place of one with the same IRI."""
        self._functions[function.iri] = function

    def remove(self, iri: str) -> None:
        """Forget a function; nothing happens if there is none."""
        self._functions.pop(iri, None)

    def get(self, iri: str) -> Function | None:
        """Find a function by its IRI."""
        return self._functions.get(normalize(iri))

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions.values())

    def copy(self) -> Registry:
        """Make a registry of its own with the same functions."""
        return Registry(self._functions.values())

    def check(self, execution: FunctionExecution) -> Function:
        """Give the function that is executed, or say what is wrong with the call."""
        function = self.get(execution.function)
        if function is None:
            guess = suggest(normalize(execution.function), self._functions)
            raise MappingError(
                f"the function {execution.function} is not known",
                hint=f"Did you mean {guess}?"
                if guess
                else "Register it in Python with quadweir.mapping.functions.register.",
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
        for parameter in function.parameters:
            if parameter.required and parameter.name not in given:
                raise MappingError(
                    f"the function {function.iri} is not given {parameter.iris[0]}",
                    hint="Give it an input for that parameter.",
                    span=execution.span,
                )
        if function.output(execution.returns) is None:
            known = [output.iris[0] for output in function.outputs]
            raise MappingError(
                f"the function {function.iri} does not return {execution.returns}",
                hint=f"It returns {' and '.join(known)}.",
                span=execution.span,
            )
        for item in execution.inputs:
            if isinstance(item.value.expression, FunctionExecution):
                self.check(item.value.expression)
        return function


def normalize(iri: str) -> str:
    """Fold the namespace that idlab-fn had before it got a permanent one.

    >>> normalize("http://example.com/idlab/function/equal")
    'https://w3id.org/imec/idlab/function#equal'
    """
    return str(IDLAB) + iri.removeprefix(_OLD_IDLAB) if iri.startswith(_OLD_IDLAB) else iri


def register(
    iri: str,
    code: Callable[..., Any],
    parameters: Iterable[str | Parameter] = (),
    *,
    returns: Iterable[str | Output] = (),
    kind: Kind = Kind.STRING,
    deterministic: bool = True,
    vectorized: bool = False,
    registry: Registry | None = None,
) -> Function:
    """Make a Python function callable from mappings.

    The code is called with one value for each parameter, in order: a `str` (or what the
    parameter's kind says), None if the record has no such value, or a list for `Kind.LIST`. It
    returns a value, None for no term, a list for several terms (or `Kind.LIST`), or, with several
    outputs, a tuple of one value for each. It runs in Spark's Python workers on Arrow batches; with
    `vectorized=True` it gets and returns pandas Series. If it raises, the record becomes a dead
    letter.

    Args:
        iri: the function's IRI.
        code: the Python function; it must be importable or picklable.
        parameters: the parameters' IRIs in the order of the code's arguments.
        returns: the outputs' IRIs; without any, every `rml:return` is an error but none is needed.
        kind: what the outputs that are given by IRI alone hold.
        deterministic: False if equal inputs may give different results.
        vectorized: True if the code works on whole pandas Series.
        registry: where to add it; the one that all mappings share by default.

    >>> shout = register("urn:f:shout", lambda s: s + "!", ["urn:f:in"], returns=["urn:f:out"])
    >>> FUNCTIONS.get("urn:f:shout").output("urn:f:out").kind
    <Kind.STRING: 'string'>
    >>> FUNCTIONS.remove("urn:f:shout")
    """
    made = tuple(
        item if isinstance(item, Parameter) else Parameter(f"p{index}", (item,), required=False)
        for index, item in enumerate(parameters)
    )
    outputs = tuple(
        item if isinstance(item, Output) else Output((item,), kind) for item in returns
    ) or (Output((), kind),)
    function = Function(
        iri=iri,
        parameters=made,
        outputs=outputs,
        deterministic=deterministic,
        code=code,
        vectorized=vectorized,
    )
    (FUNCTIONS if registry is None else registry).add(function)
    return function


def _built_in() -> Registry:
    # The catalogue needs the classes above, so it cannot be imported before they exist.
    from quadweir.mapping.functions.catalogue import BUILT_IN

    return Registry(BUILT_IN)


class _SharedRegistry(Registry):
    """The registry that mappings use by default; it is filled on first use."""

    def __init__(self) -> None:
        super().__init__()
        self._filled = False

    def _fill(self) -> None:
        if not self._filled:
            self._filled = True
            for function in _built_in():
                self._functions.setdefault(function.iri, function)

    def get(self, iri: str) -> Function | None:
        self._fill()
        return super().get(iri)

    def check(self, execution: FunctionExecution) -> Function:
        self._fill()
        return super().check(execution)

    def copy(self) -> Registry:
        self._fill()
        return super().copy()

    def __iter__(self) -> Iterator[Function]:
        self._fill()
        return super().__iter__()


FUNCTIONS: Final[Registry] = _SharedRegistry()
"""The functions that all mappings share: the built-ins and what `register` added."""

__all__ = [
    "FUNCTIONS",
    "GREL",
    "IDLAB",
    "Function",
    "Kind",
    "Output",
    "Parameter",
    "Registry",
    "normalize",
    "register",
]
