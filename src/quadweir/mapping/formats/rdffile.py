"""Solutions of a SPARQL query over an RDF file, as records.

Spec: https://kg-construct.github.io/rml-io/spec/docs/#query
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

import pyoxigraph as ox

from quadweir.errors import MappingError
from quadweir.mapping.formats.batches import RecordRow, bad_row
from quadweir.vocab import XSD

_KINDS = {
    XSD.string: "string",
    XSD.integer: "integer",
    XSD.double: "double",
    XSD.boolean: "boolean",
}


def read_solutions(
    stream: IO[bytes], name: str, query: str, variables: Sequence[str]
) -> Iterator[RecordRow]:
    """The values of the variables in each solution."""
    suffix = name.rpartition(".")[2]
    form = ox.RdfFormat.from_extension(suffix) or ox.RdfFormat.TURTLE
    store = ox.Store()
    try:
        store.load(stream.read(), form)
    except SyntaxError as error:
        yield bad_row("the file", f"not valid RDF: {error}")
        return
    try:
        # No SERVICE: a mapping may not reach the network.
        solutions = store.query(query)
    except (SyntaxError, ValueError) as error:
        raise MappingError(f"the iterator is not a SPARQL query: {error}") from None
    if not isinstance(solutions, ox.QuerySolutions):
        raise MappingError("the iterator must be a SELECT query")
    known = {variable.value for variable in solutions.variables}
    for variable in variables:
        if variable.lstrip("?$") not in known:
            raise MappingError(
                f"the reference {variable} is not a variable of the query",
                hint=f"It selects {', '.join(sorted(known))}.",
            )
    for number, solution in enumerate(solutions, 1):
        values = tuple(_spell(solution[variable.lstrip("?$")]) for variable in variables)
        yield RecordRow(f"solution {number}", values)


def _spell(
    term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple | None,
) -> list[tuple[str, str]]:
    match term:
        case None | ox.Triple():
            return []
        case ox.Literal(value=value):
            datatype = term.datatype.value
            return [(value, _KINDS.get(datatype, datatype if not term.language else "string"))]
        case _:
            return [(term.value, "string")]
