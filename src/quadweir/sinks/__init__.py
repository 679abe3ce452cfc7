"""Quads, elements and answers come in as Spark DataFrames in the row forms of `quadweir.rows`.

Out they go to files, Kafka, the console, a table in memory or a function of the user's.
Read `start.py` first, then `files.py`: it carries the strongest guarantee.
"""
