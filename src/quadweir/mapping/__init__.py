"""Records come in as Spark DataFrames, with an RML mapping that says what they mean.

Out go quads in the row form of `quadweir.rows`.
Read `model.py` first: RML as dataclasses.
"""
