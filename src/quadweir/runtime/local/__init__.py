"""Queries over small bounded streams, answered in this process, without Spark and without Java.

In come declared stream files, static data and a query; out go the answers that the engine on Spark
gives, as lines of text. Start with `query.py`.
"""
