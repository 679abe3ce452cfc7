"""Byte streams come in; records go out, each with its place or the reason why it is unusable.

These readers are plain Python and run in the driver for small files and in Spark's Python workers
for the others.
Read `batches.py` first: the form of what goes out.
"""
