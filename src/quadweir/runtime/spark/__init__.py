"""The settings of a run come in.

A Spark session that suits Quadweir goes out, with Java, local files and quiet logs.
Everything that knows Spark's internals is here. Read `session.py` first.
"""
