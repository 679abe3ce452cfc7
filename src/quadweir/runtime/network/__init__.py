"""Queries come in, one by one or thousands at a time, while a network runs.

Out go their answers, each under the name of its query. One Spark query reads every stream once for
all of them. Read `network.py` first, then `hosted.py`, which is what a shard does in a batch.
"""
