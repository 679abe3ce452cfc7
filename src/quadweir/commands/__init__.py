"""Arguments come in from the command line, one module for each verb.

Out go calls to the engine, and their results on standard output.
Read `../cli.py` first: it holds the list of verbs.

The module of a verb has a function of the same name for typer, or, if the verb has subcommands, a
`typer.Typer` named `app`. It imports pyspark, pandas and other slow packages inside functions.
"""
