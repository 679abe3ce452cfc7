"""Functions that mappings call by IRI come in as `FunctionExecution` nodes of the model.

Out go Spark columns: built-ins as column expressions, users' Python functions as Arrow UDFs.
Read `registry.py` first: what a function is, and how a user adds one.
"""

from quadweir.mapping.functions.registry import (
    FUNCTIONS,
    Function,
    Kind,
    MappingFunctions,
    Output,
    Parameter,
    register,
)

__all__ = ["FUNCTIONS", "Function", "Kind", "Output", "Parameter", "MappingFunctions", "register"]
