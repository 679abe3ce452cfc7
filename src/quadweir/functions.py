"""Functions that users write in Python and register by IRI, for queries and mappings.

Queries find them through `quadweir.algebra.functions`, mappings through
`quadweir.mapping.functions`, which adds its built-in functions. Nothing here needs Spark.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, final, get_args, get_type_hints

from quadweir.errors import UsageError
from quadweir.terms import IRI
from quadweir.vocab import XSD

_IDLAB: Final = "https://w3id.org/imec/idlab/function#"
_OTHER_IDLAB: Final = (
    "http://example.com/idlab/function/",
    "http://w3id.org/imec/idlab/function#",
)


class Kind(StrEnum):
    """The kind of a parameter's or an output's values."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    DATE_TIME = "dateTime"
    REGEX = "regular expression"
    DATE_FORMAT = "date format"
    LIST = "list"
    """All values at once; every other kind has one value at a time."""

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
_ANNOTATED: Final = {
    bool: Kind.BOOLEAN,
    int: Kind.INTEGER,
    float: Kind.NUMBER,
    str: Kind.STRING,
    list: Kind.LIST,
}


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter, its IRIs (its own and its predicate's), and its kind."""

    name: str
    iris: tuple[str, ...]
    kind: Kind = Kind.STRING
    required: bool = True


@final
@dataclass(frozen=True, slots=True)
class Output:
    """An output, its IRIs, and its kind."""

    iris: tuple[str, ...]
    kind: Kind = Kind.STRING


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function; `code` is None for those built into mappings, which are column expressions."""

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
    """Functions by IRI."""

    def __init__(self, functions: Iterable[Function] = ()) -> None:
        self._functions = {function.iri: function for function in functions}

    def add(self, function: Function) -> None:
        """Add a function; it replaces one with the same IRI."""
        self._functions[function.iri] = function

    def remove(self, iri: str) -> None:
        """Remove a function, if it exists."""
        self._functions.pop(iri, None)

    def get(self, iri: str) -> Function | None:
        """Find a function by its IRI."""
        return self._functions.get(normalize(iri))

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions.values())


REGISTERED: Final = Registry()
"""The functions that `register` added in this process."""


def normalize(iri: str) -> str:
    """The permanent IRI of an idlab-fn function that is written in an older namespace or with http.

    >>> normalize("http://example.com/idlab/function/equal")
    'https://w3id.org/imec/idlab/function#equal'
    """
    for namespace in _OTHER_IDLAB:
        if iri.startswith(namespace):
            return _IDLAB + iri.removeprefix(namespace)
    return iri


def register(
    iri: str,
    code: Callable[..., Any],
    parameters: Iterable[str | Parameter] | None = None,
    *,
    returns: Iterable[str | Output] = (),
    kind: Kind | None = None,
    deterministic: bool = True,
    vectorized: bool = False,
    registry: Registry | None = None,
) -> Function:
    """Make a Python function callable by its IRI, from queries and from mappings.

    The code is called with one value for each parameter, in order: a `str`, or what the
    parameter's kind says. In a mapping a value is None if the record lacks it, and a list for
    `Kind.LIST`; in a query every argument has a value. It returns a value, None for no term, a
    list for several terms (in mappings), or, with several outputs, a tuple of one value for each.
    In a query it may also return a term, for example `quadweir.IRI("...")`.

    If the code raises, the record of a mapping becomes a dead letter, and the expression of a query
    is an error, as SPARQL says. It is sent to the processes that run the query or mapping.

    Args:
        iri: the function's IRI.
        code: the Python function; it must be importable or picklable.
        parameters: the parameters' IRIs in the order of the code's arguments, for mappings. If
            None, they are those of the code's signature, with the kinds of their annotations.
        returns: the outputs' IRIs; without any, no `rml:return` is needed, and each one is an
        error.
        kind: the kind of outputs that are given by IRI alone; by default that of the code's
        annotation, else strings.
        deterministic: False if equal inputs may give different results.
        vectorized: True if the code works on whole pandas Series.
        registry: the registry; by default the one that all queries and mappings share.

    Raises:
        UsageError: the IRI is not absolute, or the signature has keyword arguments only.

    >>> def double(number: float) -> float:
    ...     return 2 * number
    >>> register("urn:f:double", double).parameters[0].kind
    <Kind.NUMBER: 'number'>
    >>> REGISTERED.get("urn:f:double").outputs[0].kind
    <Kind.NUMBER: 'number'>
    >>> REGISTERED.remove("urn:f:double")
    """
    if not IRI(iri).is_valid():
        raise UsageError(
            f"the function's name {iri!r} is not an absolute IRI",
            hint="Write it in full, as queries and mappings will: http://example.org/f",
        )
    hints = _hints(code)
    made: tuple[Parameter, ...]
    if parameters is None:
        made = _signature(iri, code, hints)
    else:
        made = tuple(
            item if isinstance(item, Parameter) else Parameter(f"p{index}", (item,), required=False)
            for index, item in enumerate(parameters)
        )
    given = kind if kind is not None else _kind_of(hints.get("return"))
    outputs = tuple(
        item if isinstance(item, Output) else Output((item,), given) for item in returns
    ) or (Output((), given),)
    function = Function(
        iri=iri,
        parameters=made,
        outputs=outputs,
        deterministic=deterministic,
        code=code,
        vectorized=vectorized,
    )
    (REGISTERED if registry is None else registry).add(function)
    return function


def _hints(code: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(code)
    except (TypeError, NameError):  # a built-in function, or an annotation with an unknown name
        return {}


def _signature(iri: str, code: Callable[..., Any], hints: dict[str, Any]) -> tuple[Parameter, ...]:
    """Read the parameters from the code; one with a default value may be left out."""
    try:
        found = inspect.signature(code).parameters.values()
    except (TypeError, ValueError):
        raise UsageError(
            f"nothing says which arguments the function {iri} takes",
            hint="Give register() the parameters, or wrap the code in a function of your own.",
        ) from None
    for each in found:
        if each.kind not in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            raise UsageError(
                f"the function {iri} has the argument {each.name}, which has no place",
                hint="Write arguments one by one, without * and **.",
            )
    return tuple(
        Parameter(
            each.name, (), _kind_of(hints.get(each.name)), required=each.default is each.empty
        )
        for each in found
    )


def _kind_of(annotation: Any) -> Kind:
    """Read an annotation such as `float`, `int | None` or `list[str]`."""
    for each in (annotation, *get_args(annotation)):
        if each in _ANNOTATED:
            return _ANNOTATED[each]
    origin = getattr(annotation, "__origin__", None)
    return Kind.LIST if origin is list else Kind.STRING
