"""Query text in RSP-QL, C-SPARQL, CQELS-QL or SPARQLStream comes in.

Out goes one algebra, `quadweir.algebra.query.ContinuousQuery`.
Read `sparql.lark` first, then `build.py`.
"""

from quadweir.syntax.limits import DEFAULT_LIMITS, Limits
from quadweir.syntax.read import parse
from quadweir.syntax.scan import DIALECTS, detect

__all__ = ["DEFAULT_LIMITS", "DIALECTS", "Limits", "detect", "parse"]
