"""An algebra tree comes in.

Out goes a tree of the same meaning that costs less to evaluate.
Read `pipeline.py` first: it holds the order of the rules.
"""
