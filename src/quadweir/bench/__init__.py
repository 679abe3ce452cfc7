"""Workloads and generators come in.

Out go measurements, each beside the baseline it was measured against in the same run.
Read `ntriples.py` first: the smallest complete benchmark.
"""
