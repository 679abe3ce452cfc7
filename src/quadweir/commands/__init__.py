"""Arguments come in from the command line, one module for each verb.

Out go calls to the engine, and their results on standard output.
Read `../cli.py` first: it holds the list of verbs.

A verb's module offers a function of the verb's name that typer can read, or, if the verb has verbs
of its own, a `typer.Typer` named `app`. It imports pyspark, pandas and the like inside functions.
"""
