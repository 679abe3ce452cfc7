"""What a continuous query means, as immutable trees; nothing comes in but what `quadweir.syntax` builds.

Out go the trees that the optimiser rewrites, the planner plans and the renderer prints.
Read `query.py` first: the root.
"""
