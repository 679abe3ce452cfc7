"""Joins of two record streams in windows, before mapping: tumbling, sliding, interval and dynamic.

In come records of a child and a parent stream with their keys, event times and arrival times; out
go pairs of records with equal keys that share a window. Read `join.py` first, then `windows.py`.
"""
