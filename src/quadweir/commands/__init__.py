"""Arguments come in from the command line, one module for each verb.

Out go calls to the engine, and their results on standard output.
Read `../cli.py` first: it holds the list of verbs.
"""
