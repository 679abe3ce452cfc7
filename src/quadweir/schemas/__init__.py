"""JSON Schemas of the files that Quadweir reads, shipped in the package.

Out goes nothing but the schemas themselves: `streams.schema.json` for stream declarations.
Read `../sources/declare.py` first: it checks files against them.
"""
