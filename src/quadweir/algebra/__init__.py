"""The meaning of a continuous query as an immutable tree, which `quadweir.syntax` builds.

Out go the trees that the optimiser rewrites, the planner plans and the renderer prints.
Read `query.py` first: the root.
"""
