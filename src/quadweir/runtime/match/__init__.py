"""The streams of a query come in as frames of statements.

The rows that match a pattern of the query go out; column expressions find them.
Read `matching.py` first.
"""
