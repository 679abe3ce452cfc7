"""Plans and stream declarations come in.

Out go streaming DataFrames on a well-configured Spark session.
Read `session.py` first.
"""
