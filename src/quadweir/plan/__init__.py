"""How a query is run: what is matched before the shuffle, by which key rows are sharded, and why.

In comes the algebra, out goes a `QueryPlan`, which the runtime turns into Spark DataFrames and
which `explain --plan` prints. Read `query.py` first.
"""
