"""A checkpoint comes in, as a run left it.

The same checkpoint goes out with another number of shards, or with its shards on another host. Nothing
runs meanwhile. Read `checkpoints.py` first; `journals.py` reads and writes state outside of a run.
"""
