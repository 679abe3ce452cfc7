"""Query text in RSP-QL, C-SPARQL or CQELS-QL comes in.

Out goes one algebra, `quadweir.algebra.query.ContinuousQuery`.
Read `sparql.lark` first, then `build.py`.
"""
