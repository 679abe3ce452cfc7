"""Incremental operators over arrays: one shard of one query group, compiled with Numba.

In come the matches of triple patterns with their event times, and how far time has come; out go
the answers that are final, both as columns. Read `shard.py` first, then `relation.py`.
`streamjoin/` is apart from these: it joins records before they are mapped to RDF.
"""
