"""The way in: a query text, its dialect and the limits it must keep, to algebra."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from quadweir.algebra.node import Node
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.traverse import children
from quadweir.algebra.windows import Content
from quadweir.errors import LimitError, QuerySyntaxError, UsageError
from quadweir.syntax.build import QueryBuilder
from quadweir.syntax.cqels import Cqels2Builder, CqelsBuilder
from quadweir.syntax.csparql import CsparqlBuilder
from quadweir.syntax.limits import DEFAULT_LIMITS, Limits
from quadweir.syntax.parser import parse_tree
from quadweir.syntax.rspql import RspqlBuilder
from quadweir.syntax.scan import DIALECTS, SourceText, check_nesting, detect_in, pieces
from quadweir.syntax.sparqlstream import SparqlStreamBuilder
from quadweir.terms import IRI

_BUILDERS: Final[dict[str, type[QueryBuilder]]] = {
    "sparql": QueryBuilder,
    "rspql": RspqlBuilder,
    "csparql": CsparqlBuilder,
    "cqels": CqelsBuilder,
    "cqels2": Cqels2Builder,
    "sparqlstream": SparqlStreamBuilder,
}


def parse(
    text: str,
    *,
    dialect: str | None = None,
    base: str | None = None,
    prefixes: Mapping[str, str] | None = None,
    content: Content | None = None,
    limits: Limits = DEFAULT_LIMITS,
    allow: Collection[str] = (),
    source: str | None = None,
) -> ContinuousQuery:
    """Read a query.

    Args:
        text: The query.
        dialect: One of `DIALECTS`; by default it is recognised from the text.
        base: What relative IRIs are resolved against.
        prefixes: Prefixes to know beforehand, for texts printed without their own.
        content: Bags or graphs for all windows, in place of the dialect's own choice.
        limits: How large the query may be.
        allow: IRIs that FROM, FROM NAMED and SERVICE may name; the word `FROM` allows all graph
            names (right where they are only looked up among static data), and `SERVICE` all
            endpoints.
        source: The name of the file, for error messages.

    Raises:
        QuerySyntaxError: The text is not a query of the dialect.
        LimitError: It is too large or nests too deeply.
        UnsupportedError: It asks for something that is not allowed or not there by design.

    >>> query = parse("SELECT ?s { STREAM <http://x/s> [RANGE 5s] { ?s ?p ?o } }")
    >>> query.windows[0].scope.range_ms, query.output.name
    (5000, 'ISTREAM')
    """
    if dialect is not None and dialect not in DIALECTS:
        raise UsageError(f"no dialect {dialect!r}", hint=f"Choose one of {', '.join(DIALECTS)}.")
    if len(text) > limits.length:
        raise LimitError(
            f"the query has {len(text):,} characters, and the limit is {limits.length:,}",
            hint="Put large VALUES into static data, or raise the limit if you trust its author.",
        )
    _check_characters(text)
    if base is not None and not IRI(base).is_valid():
        raise UsageError(
            f"the base {base} is not an absolute IRI", hint="Write it in full: http://example.org/"
        )
    origin = SourceText(text, source)
    seen = pieces(origin.text)
    check_nesting(origin, seen, limits)
    chosen = dialect or detect_in(seen)
    if chosen == "cqels2" and dialect is None:
        # Its windows look like C-SPARQL's and CQELS-QL's, and mean neither; CQELS-QL's builder
        # says so, with the place.
        chosen = "cqels"
    try:
        tree = parse_tree(origin, chosen)
        builder = _BUILDERS[chosen](
            origin, base=base, prefixes=prefixes, allow=allow, content=content
        )
        query = builder.build(tree)
        _check_size(query, limits)
    except RecursionError:
        # The limits are set so that this cannot happen from a shallow stack; a caller may have
        # used most of it up, or raised the limits.
        raise LimitError("the query nests too deeply for the stack that is left") from None
    return query


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise QuerySyntaxError(
            "the query holds half of a surrogate pair, which is no character",
            span=SourceText(text).span(problem.start, problem.end),
        ) from None


def _check_size(query: ContinuousQuery, limits: Limits) -> None:
    count = 0
    nodes: list[tuple[Node, int]] = [(query, 0)]
    while nodes:
        node, level = nodes.pop()
        count += 1
        if level > limits.depth:
            raise LimitError(
                f"the query's tree is more than {limits.depth} levels deep",
                hint="Long chains of OPTIONAL, BIND or arithmetic count; split the query.",
                span=node.span,
            )
        if count > limits.operators:
            raise LimitError(
                f"the query has more than {limits.operators:,} operators",
                hint="Split the query, or raise the limit if you trust its author.",
            )
        nodes.extend((child, level + 1) for child in children(node))
