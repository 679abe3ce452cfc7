"""Quads, elements and answers come in as Spark DataFrames in the row forms of `quadweir.rows`.

Out they go to files, Kafka, the console or a table in memory.
Read `files.py` first: it carries the strongest guarantee.
"""
