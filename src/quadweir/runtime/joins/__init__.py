"""Two streams of records come in, with the window in which they meet.

Pairs go out. The shards run on the same hosts as those of queries.
Read `frames.py` first.
"""
