"""Static files and quads come in, with the patterns that a query solves over them.

Relations go out, as files that the shards of every machine can read.
Read `data.py` first.
"""
