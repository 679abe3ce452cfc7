"""The plan of a query, or a stream join, comes in.

A hosted shard goes out: it takes blobs, gives answers, and keeps its state in a journal.
Read `hosted.py` first.
"""
