"""An algebra tree comes in.

Out goes a tree of the same meaning that costs less to evaluate.
Read `pipeline.py` first: it holds the order of the rules.
"""

from quadweir.optimize.order_joins import Hints
from quadweir.optimize.pipeline import Optimized, Step, UnsettledWarning, optimize

__all__ = ["Hints", "Optimized", "Step", "UnsettledWarning", "optimize"]
