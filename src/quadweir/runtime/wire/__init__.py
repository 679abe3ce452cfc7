"""Matched rows come in, in Spark or in a worker process.

Blobs for the shards go out, and the shards read events from them. This is the one codec between
Spark and the shards. Read `pack.py` first.
"""
