"""A job comes in: rows, what shards are made from, and the outputs.

A run goes out. There are three hosts: Spark tasks for bounded input, Spark's state store in
executors, and worker processes on the driver's machine. Read `base.py` first.
"""
