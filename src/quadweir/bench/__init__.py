"""Workloads and generators come in.

Out go measurements, each with the baseline that the same run measured.
Read `ntriples.py` first: the smallest complete benchmark.
"""
