"""The triples that follow from one triple and a schema.

The triples of a schema and the patterns of a query come in. Out go a `Table` of the consequences
that the patterns can use, and for each pattern the kinds of statements that match it.
Read `schema.py` first, then `table.py`.
"""

from quadweir.entailment.schema import Axiom, AxiomKind, Schema, SchemaWarning
from quadweir.entailment.table import Derived, End, Table

__all__ = ["Axiom", "Derived", "End", "AxiomKind", "Schema", "SchemaWarning", "Table"]
