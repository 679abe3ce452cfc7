"""Quads, elements and answers come in as Spark DataFrames in the row forms of `quadweir.rows`.

They go out to files, Kafka, the console, a table in memory or a function of the user.
Read `start.py` first, then `files.py`, which has the strongest guarantee.
"""
