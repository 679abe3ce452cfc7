"""Readings of road sensors come in, as paper 000 played them.

Out go measurements of joins in windows, each beside the figures of a plain model and of the paper.
Read `publisher.py` first: what is played, when; then `model.py`: what must come out.
"""
