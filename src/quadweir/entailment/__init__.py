"""What a schema adds to a query: the triples that follow from one triple and the schema.

In come the triples of a schema and the patterns of a query, out goes a `Table` of consequences, cut
down to what the patterns can use, and for each pattern the kinds of statements that match it.
Read `schema.py` first, then `table.py`.
"""

from quadweir.entailment.schema import Axiom, AxiomKind, Schema, SchemaWarning
from quadweir.entailment.table import Derived, End, Table

__all__ = ["Axiom", "Derived", "End", "AxiomKind", "Schema", "SchemaWarning", "Table"]
