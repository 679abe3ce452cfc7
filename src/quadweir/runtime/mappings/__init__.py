"""A mapping comes in, with the streams and files that it reads.

Quads go out, to their end or as records arrive: sources, the compiled mapping and sinks meet here.
Read `bounded.py` first, then `live.py`.
"""
