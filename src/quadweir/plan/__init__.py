"""How a query is run: what is matched before the shuffle, by which key rows are sharded, and why.

The algebra comes in. Out goes a `QueryPlan`, which the runtime turns into Spark DataFrames and
`explain --plan` prints. Read `query.py` first.
"""
