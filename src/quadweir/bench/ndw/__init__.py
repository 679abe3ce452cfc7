"""Readings of road sensors come in, as paper 000 played them.

Out go measurements of joins in windows, each with the figures of a plain model and of the paper.
Read `publisher.py` first: the records and their times; then `model.py`: the expected results.
"""
